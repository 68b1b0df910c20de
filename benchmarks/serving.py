"""The hosted intake under load: python benchmarks/serving.py load | kills | soak | drill.

Starts `heldout serve --board --uploads` as a process over a board of `--entries` entries, and loads
it from this process: client and server share the machine's cores.

load   Uploads by the participant's own client, `--at-once` at a time, each by a team of its own:
       begin, three files, finish. Then `--readers` readers who each ask for a page, read for a
       second on average, and ask again: the standings of the API, those for other pages, a team's
       submissions and its quota.
kills  Sealed submissions are sent while something is killed (SIGKILL) again and again, in turn: one
       worker process, all of the server, one process of PostgreSQL. Then every upload that was
       acknowledged has to be in the folder, byte for byte, and the organiser's `inbox` and `review`
       have to take and score each of them once; called again they do nothing.
soak   Readers and uploads at a fixed rate for so many minutes, while the memory of the server's
       processes is sampled, without pages of files. Flat is: the whole 95% interval of the slope in
       the second half lies below `--flat` megabytes an hour. With 2, a server that begins with
       300 MB is below its unit's ceiling of 2 GB after a month of such load.
drill  No server: the board of `--entries` entries and its vault are backed up, restored into a
       temporary folder and audited, each by the real command.

Exit status 1: something that was acknowledged is missing or was scored twice, a request failed, or
memory surely grows faster than `--flat`.
"""

import argparse
import asyncio
import gzip
import json
import os
import queue
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from scipy import stats

from heldout.board.log.manifest import Manifest, format_manifest
from heldout.board.participant.server import Server as BoardServer
from heldout.board.store.repository import Repository
from heldout.board.store.uploads import DELIVERY
from heldout.board.store.vault import Vault
from heldout.database.database import Database, open_database, sqlite_url
from heldout.envelope.bundle import new_identity, seal
from heldout.errors import HeldoutError, PushError
from heldout.ids import SubmissionId, digest_bytes
from heldout.intake.tables import INTAKE
from heldout.intake.teams import accept_invitation, create_invitation, replace_tokens
from heldout.trec.queries import read_queries
from judging import OK, Server, database_url

HERE = Path(__file__).parent
PATHS = ("/api/v1/standings?limit=100", "/api/v1/submissions", "/api/v1/quota")
MEGA = 1e6
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 600
AGE = b"age-encryption.org/v1\n"
Files = Mapping[str, bytes]


@dataclass(slots=True)
class Stage:
    """A board, its server, and teams with tokens."""

    root: Path
    server: Server
    database: Database
    url: str
    tokens: queue.Queue[str] = field(default_factory=queue.Queue)

    @property
    def uploads(self) -> Path:
        """The folder that the inbox takes from."""
        return self.root / "uploads"

    def add_teams(self, count: int) -> list[str]:
        """So many teams; their tokens."""
        made, now = [], datetime.now(UTC).replace(microsecond=0)
        for _ in range(count):
            name = f"Team {secrets.token_hex(6)}"
            _, secret = create_invitation(self.database, note="", now=now)
            team = accept_invitation(self.database, secret, name=name, mail="", now=now)
            made.append(replace_tokens(self.database, team.id, now=now))
        return made

    def client(self, token: str) -> BoardServer:
        """The participant's own client."""
        return BoardServer(
            address=self.server.address,
            token=token,
            connect=lambda: httpx2.Client(timeout=120),
            sleep=time.sleep,
        )


@contextmanager
def stage(options: argparse.Namespace) -> Iterator[Stage]:
    """A served board, which is there."""
    with (
        tempfile.TemporaryDirectory(prefix="heldout-serving-") as name,
        database_url(options.engine, Path(name)) as address,
    ):
        root = Path(name)
        (root / "uploads").mkdir()
        make_board(root / "made", options.entries)
        url = address if options.engine == "postgresql" else sqlite_url(root / "intake.sqlite")
        places = ("--board", str(root / "made/board"), "--uploads", str(root / "uploads"))
        server = Server(root / "none", url, options.workers, *places)
        database = open_database(url, INTAKE)
        server.start()
        try:
            asyncio.run(server.wait())
            yield Stage(root=root, server=server, database=database, url=url)
        finally:
            server.kill()
            database.close()


# Uploads


def made_up(number: int, size: int) -> Files:
    """Files that look like a sealed submission: the server has no key, and cannot tell."""
    name = f"{datetime.now(UTC):%Y%m%d}-load-{number}"
    return {
        f"{name}.tar.age": AGE + secrets.token_bytes(size),
        f"{name}-metadata.json.age": AGE + secrets.token_bytes(2_000),
        f"{name}.key.age": AGE + secrets.token_bytes(300),
    }


@dataclass(slots=True)
class Sent:
    """What the senders' side saw."""

    acknowledged: dict[str, Files] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def send(client: BoardServer, files: Files, sent: Sent) -> None:
    """Send one submission until the server acknowledges it, as a person does who is told to."""
    began = time.perf_counter()
    opened = {name: (lambda data=data: BytesIO(data)) for name, data in files.items()}
    while True:
        try:
            client.upload(opened)
        except PushError as error:  # the client gives up after a minute, and says: call again
            if time.perf_counter() - began < PATIENCE:
                continue
            sent.failed.append(str(error))
            return
        except HeldoutError as error:
            sent.failed.append(str(error))
            return
        break
    sent.seconds.append(time.perf_counter() - began)
    sent.acknowledged[min(files)] = files


def send_all(
    served: Stage, work: Sequence[Files], tokens: Sequence[str], *, at_once: int
) -> tuple[Sent, float]:
    """Send so many at a time; what was seen, and how long it took."""
    sent, waiting = Sent(), queue.SimpleQueue[tuple[Files, str]]()
    for files, token in zip(work, tokens, strict=True):
        waiting.put((files, token))

    def go_on() -> None:
        with suppress(queue.Empty):
            while True:
                files, token = waiting.get_nowait()
                send(served.client(token), files, sent)

    threads = [threading.Thread(target=go_on) for _ in range(at_once)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent, time.perf_counter() - began


# Readers


@dataclass(slots=True)
class Read:
    """What readers saw: seconds of each answer by path, and statuses."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {path: [] for path in PATHS})
    statuses: Counter[int] = field(default_factory=Counter)


async def read_pages(
    address: str, tokens: Sequence[str], seen: Read, *, until: float, pause: float
) -> None:
    """One reader for each token, all at once."""

    async def visit(token: str, number: int) -> None:
        draw = random.Random(number)  # noqa: S311 - not a secret
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=address, timeout=60, headers=headers) as client:
            await asyncio.sleep(draw.uniform(0, pause))
            while time.monotonic() < until:
                path = PATHS[draw.choices(range(len(PATHS)), (5, 2, 2, 1))[0]]
                began = time.perf_counter()
                status = 0
                for _ in range(2):  # a browser asks again where an idle connection was closed
                    with suppress(httpx2.TransportError):
                        status = (await client.get(path)).status_code
                        break
                seen.seconds[path].append(time.perf_counter() - began)
                seen.statuses[status] += 1
                await asyncio.sleep(draw.expovariate(1 / pause))

    await asyncio.gather(*(visit(token, number) for number, token in enumerate(tokens)))


# What the server takes


def tree_of(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
            found += map(int, children)
    return found


def cpu_of(pid: int) -> float:
    """Seconds of processor of a process and all below it."""
    total = 0
    for one in tree_of(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / TICKS


def memory_of(pid: int, *, files: bool = True) -> int:
    """Bytes in memory of a process and all below it.

    Args:
        pid: of the process.
        files: whether pages of files count, as of libraries: the system drops and reads them again
            as it needs room for others.
    """
    total = 0
    for one in tree_of(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            _, resident, shared, *_ = map(int, Path(f"/proc/{one}/statm").read_text().split())
            total += (resident - (0 if files else shared)) * PAGE
    return total


# The three measurements


def measure_load(options: argparse.Namespace) -> Mapping[str, Any]:
    """Uploads a second, then readers."""
    with stage(options) as served:
        tokens = served.add_teams(options.uploads)
        work = [made_up(number, options.bytes) for number in range(options.uploads)]
        began = cpu_of(served.server.pid)
        sent, seconds = send_all(served, work, tokens, at_once=options.at_once)
        cpu = cpu_of(served.server.pid) - began
        readers = served.add_teams(options.readers)
        seen = Read()
        until = time.monotonic() + options.seconds
        began_cpu = cpu_of(served.server.pid)
        asyncio.run(
            read_pages(served.server.address, readers, seen, until=until, pause=options.pause)
        )
        read_cpu = cpu_of(served.server.pid) - began_cpu
    requests = sum(seen.statuses.values())
    return {
        "uploads": len(sent.acknowledged),
        "failed": len(sent.failed),
        "uploads_per_second": round(len(sent.acknowledged) / seconds, 1),
        "megabytes_per_second": round(len(sent.acknowledged) * options.bytes / MEGA / seconds, 1),
        "upload_p95_ms": quantile(sent.seconds, 0.95),
        "server_cpu_ms_per_upload": round(1000 * cpu / max(len(sent.acknowledged), 1), 1),
        "readers": options.readers,
        "requests_per_second": round(requests / options.seconds),
        "statuses": {str(status): count for status, count in sorted(seen.statuses.items())},
        "p50_ms": {path: quantile(found, 0.5) for path, found in seen.seconds.items()},
        "p95_ms": {path: quantile(found, 0.95) for path, found in seen.seconds.items()},
        "server_cpu_ms_per_request": round(1000 * read_cpu / max(requests, 1), 2),
        "wrong": bool(sent.failed or set(seen.statuses) - {OK}),
    }


def quantile(seconds: Sequence[float], share: float) -> float | None:
    """In milliseconds; `None` of nothing."""
    return round(float(np.quantile(seconds, share)) * 1000, 1) if seconds else None


def measure_soak(options: argparse.Namespace) -> Mapping[str, Any]:
    """Memory over time, under load at a fixed rate."""
    with stage(options) as served:
        uploads = max(int(options.minutes * 60 * options.rate), 1)
        tokens = served.add_teams(uploads)
        readers = served.add_teams(options.readers)
        seen, sent, samples = Read(), Sent(), list[tuple[float, int]]()
        start = time.monotonic()
        until = start + options.minutes * 60
        done = threading.Event()

        def sample() -> None:
            while not done.wait(options.every):
                memory = memory_of(served.server.pid, files=False)
                samples.append((time.monotonic() - start, memory))

        def upload() -> None:
            for number, token in enumerate(tokens):
                wait = start + number / options.rate - time.monotonic()
                if done.wait(max(wait, 0)):  # it is over, also for a sender who comes too late
                    return
                send(served.client(token), made_up(number, options.bytes), sent)

        threads = [threading.Thread(target=sample), threading.Thread(target=upload)]
        for thread in threads:
            thread.start()
        reading = read_pages(served.server.address, readers, seen, until=until, pause=options.pause)
        asyncio.run(reading)
        done.wait(max(until - time.monotonic(), 0))  # without readers
        done.set()
        for thread in threads:
            thread.join()
    slope, low, high = slope_of(samples)
    return {
        "minutes": options.minutes,
        "requests": sum(seen.statuses.values()),
        "statuses": {str(status): count for status, count in sorted(seen.statuses.items())},
        "uploads": len(sent.acknowledged),
        "failed": len(sent.failed),
        "p95_ms": {path: quantile(found, 0.95) for path, found in seen.seconds.items()},
        "memory_mb": [round(memory / MEGA, 1) for _, memory in samples[:: len(samples) // 10 or 1]],
        "slope_mb_per_hour": round(slope, 1),
        "slope_interval": [round(low, 1), round(high, 1)],
        "flat": high < options.flat,
        "wrong": bool(sent.failed or set(seen.statuses) - {OK} or low > options.flat),
    }


def slope_of(samples: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Megabytes an hour in the second half, with the 95% interval.

    The line goes through the means of twenty blocks. What memory holds now it held a moment ago:
    where the blocks lie on one side of the line for long, they are as good as fewer of them, and
    the interval is wider. So many are n (1 - r) / (1 + r), with r the correlation of a block with
    the next, and Kendall's correction for r in a short series (1954: r + (1 + 4r) / n).
    """
    late = np.array(samples[len(samples) // 2 :], dtype=float)
    blocks = np.array([block.mean(axis=0) for block in np.array_split(late, 20) if len(block)])
    hours, megabytes = blocks[:, 0] / 3600, blocks[:, 1] / MEGA
    hours -= hours.mean()
    spread = float(hours @ hours)
    slope = float(hours @ megabytes) / spread
    left = megabytes - megabytes.mean() - slope * hours
    total = float(left @ left)
    alike = float(left[1:] @ left[:-1]) / total if total else -1.0
    alike = min(max(alike + (1 + 4 * alike) / len(blocks), 0.0), 0.95)
    count = max(len(blocks) * (1 - alike) / (1 + alike), 3.0)
    half = float(np.sqrt(total / (count - 2) / spread)) * float(stats.t.ppf(0.975, count - 2))
    return slope, slope - half, slope + half


def measure_kills(options: argparse.Namespace) -> Mapping[str, Any]:
    """Submissions that are sealed for the board, sent while things are killed; then scored."""
    with stage(options) as served:
        work = seal_submissions(served.root / "made", options.uploads)
        tokens = served.add_teams(len(work))
        stop, killed = threading.Event(), Counter[str]()
        killer = threading.Thread(target=kill_in_turn, args=(served, options, stop, killed))
        killer.start()
        sent, seconds = send_all(served, work, tokens, at_once=options.at_once)
        stop.set()
        killer.join()
        asyncio.run(served.server.wait())
        lost = wait_for_files(served, sent)
        served.server.kill()
        found = score_all(served, sent)
    return {
        "killed": dict(killed),
        "seconds": round(seconds, 1),
        "acknowledged": len(sent.acknowledged),
        "failed": sent.failed,
        "lost": len(lost),
        **found,
        "wrong": bool(lost or sent.failed or found["not_once"] or found["events_later"]),
    }


def seal_submissions(made: Path, count: int) -> list[Files]:
    """Real submissions to the board, each of a team of its own."""
    repository = Repository(made / "board")
    spec = repository.spec()
    (view,) = (view for view in spec.views if view.name == spec.primary)
    with (made / "board" / spec.sets[view.set].queries).open("rb") as source:
        names = list(read_queries(source, path="queries").texts)
    draw, found = random.Random(0), list[Files]()  # noqa: S311 - not a secret
    for number in range(count):
        name = SubmissionId(f"{datetime.now(UTC):%Y%m%d}-kill-{number}")
        lines = [
            f"{query}\tX{draw.getrandbits(40)}\t{rank}\n"
            for query in names
            for rank in range(1, 21)
        ]
        run = gzip.compress("".join(lines).encode(), mtime=0)
        manifest = Manifest(
            id=name,
            digests={view.set: digest_bytes(run)},
            team=f"Crew {number}",
            institution=f"Ship {number}",
            description=f"Ranker {number}",
            paper=f"https://example.org/{number}",
            code="",
            training_data="none",
            type="full ranking",
        )
        sealed = seal(
            spec.envelope,
            name,
            runs={view.set: (".txt.gz", run)},
            metadata=format_manifest(manifest),
            recipients=spec.recipients,
        )
        found.append(dict(sealed.files))
    return found


def kill_in_turn(
    served: Stage, options: argparse.Namespace, stop: threading.Event, killed: Counter[str]
) -> None:
    """Kill a worker, the server, and the database, again and again."""
    what: dict[str, Callable[[], None]] = {"server": served.server.kill_parent}
    if options.workers > 1:
        what["worker"] = served.server.kill_worker
    if options.engine == "postgresql":
        what["database"] = served.server.kill_database
    for number in range(options.kills):
        if stop.wait(random.uniform(0.3, 1.2)):  # noqa: S311 - not a secret
            return
        name = list(what)[number % len(what)]
        what[name]()
        killed[name] += 1
        asyncio.run(served.server.wait())


def wait_for_files(served: Stage, sent: Sent, *, patience: float = 120) -> list[str]:
    """Names of acknowledged files that are not in the folder, byte for byte, after some time."""
    wanted = {name: data for files in sent.acknowledged.values() for name, data in files.items()}
    end = time.monotonic() + patience
    while True:
        here = {
            path.name: path
            for path in served.uploads.rglob("*")
            if path.is_file() and path.parent.name.startswith(DELIVERY)
        }
        lost = [
            name
            for name, data in wanted.items()
            if name not in here or here[name].read_bytes() != data
        ]
        if not lost or time.monotonic() > end:
            return lost
        time.sleep(0.5)


def score_all(served: Stage, sent: Sent) -> dict[str, Any]:
    """The organiser takes all in, scores them, and does it once more."""
    made = served.root / "made"
    vault = Vault(made / "vault", read_only=True)
    place = ["--board", str(made / "board"), "--vault", str(made / "vault")]
    ids = sorted(name.removesuffix("-metadata.json.age") for name in sent.acknowledged)

    def work() -> None:
        call("inbox", "--from", str(served.uploads), *place)
        call("review", *ids, *place)

    call("rebuild", "--yes", *place)  # the board's entries are of years ago
    before = len(vault.entries())
    work()
    events = Counter(
        (entry.event.kind, entry.event.submission) for entry in vault.entries()[before:]
    )
    first = len(vault.entries())
    work()
    return {
        "received": sum(events["received", name] for name in ids),
        "scored": sum(events["reviewed", name] for name in ids),
        "not_once": [
            name for name in ids if (events["received", name], events["reviewed", name]) != (1, 1)
        ],
        "events_later": len(vault.entries()) - first,
    }


def measure_drill(options: argparse.Namespace) -> Mapping[str, Any]:
    """A backup of a board and its vault, and its restore."""
    with tempfile.TemporaryDirectory(prefix="heldout-drill-") as name:
        made, keys = Path(name) / "made", new_identity("age")
        make_board(made, options.entries)
        file, key = Path(name) / "drill.backup", Path(name) / "backup.key"
        key.write_text(keys.private)
        board = ["--board", str(made / "board")]
        vault = ["--vault", str(made / "vault"), "--recipient", keys.recipient]
        steps = {
            "backup": ["backup", str(file), *board, *vault],
            "restore": ["restore", str(file), "--to", f"{name}/to", "--identity", str(key)],
            "drill": ["restore", str(file), "--check", "--identity", str(key), *board],
        }
        took = {step: watch(arguments) for step, arguments in steps.items()}
        sources = sum(
            path.stat().st_size
            for folder in ("board", "vault")
            for path in (made / folder).rglob("*")
            if path.is_file()
        )
        return {
            "megabytes": round(sources / MEGA, 1),
            "backup_megabytes": round(file.stat().st_size / MEGA, 1),
            **took,
            "wrong": any(one["status"] for one in took.values()),
        }


def watch(arguments: Sequence[str]) -> dict[str, float]:
    """Run the real program; seconds, seconds of processor, most megabytes in memory."""
    began, most, cpu = time.perf_counter(), 0, 0.0
    command = [sys.executable, "-m", "heldout", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most, cpu = max(most, memory_of(process.pid)), max(cpu, cpu_of(process.pid))
            time.sleep(0.02)
    return {
        "status": process.returncode,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(cpu, 1),
        "megabytes": round(most / MEGA),
    }


def make_board(out: Path, entries: int) -> None:
    """A board with so many entries."""
    numbers = (entries, entries * 5, 50, 20)
    builder = [sys.executable, str(HERE / "growth_board.py"), str(out)]
    subprocess.run([*builder, *map(str, numbers)], check=True, stdout=subprocess.DEVNULL)


def call(*arguments: str) -> None:
    """The real program."""
    done = subprocess.run(
        [sys.executable, "-m", "heldout", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.stderr.write(f"{arguments[0]}: exit {done.returncode}\n{done.stderr}\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("load", "kills", "soak", "drill"):
        one = kinds.add_parser(kind)
        one.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
        one.add_argument("--workers", type=int, default=2)
        one.add_argument("--entries", type=int, default=200)
        one.add_argument("--at-once", type=int, default=8)
        one.add_argument("--bytes", type=int, default=1_000_000)
        one.add_argument("--readers", type=int, default=200)
        one.add_argument("--pause", type=float, default=1.0, help="mean seconds between pages")
        one.add_argument("--uploads", type=int, default=200)
        one.add_argument("--seconds", type=float, default=60)
        one.add_argument("--kills", type=int, default=30)
        one.add_argument("--minutes", type=float, default=30)
        one.add_argument("--rate", type=float, default=1.0, help="uploads a second in a soak")
        one.add_argument("--every", type=float, default=5.0, help="seconds between samples")
        one.add_argument("--flat", type=float, default=2.0, help="megabytes an hour")
    options = parser.parse_args()
    measures = {
        "load": measure_load,
        "kills": measure_kills,
        "soak": measure_soak,
        "drill": measure_drill,
    }
    found = measures[options.kind](options)
    told = {"kind": options.kind, "engine": options.engine, "workers": options.workers}
    at = datetime.now(UTC).isoformat(timespec="seconds")
    print(json.dumps({**told, "entries": options.entries, **found, "at": at}, indent=1))
    sys.exit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
