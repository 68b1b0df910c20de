"""Judges at once on the real pages: python benchmarks/judging.py [--engine sqlite] [--kills 50].

Starts `heldout serve` as a process over SQLite or a PostgreSQL server of its own, and lets made-up
judges do their tasks through the pages, all at once, from this process: client and server share
the machine's cores. With --kills something is killed (SIGKILL) so many times meanwhile: all
processes of the server, its parent alone (the workers must end by themselves), one worker, or one
process of PostgreSQL (--kill). Judges repeat what was not acknowledged, as a person would.

Afterwards the database is compared with what was acknowledged: an answer is acknowledged when the
server has sent on to the next page. Exit status 1: one is missing or differs, a pair has more
judges than planned, or a task was not finished.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import httpx2
import numpy as np
import psycopg
from page_judge import Ending, PageJudge, Question

from heldout.database.database import sqlite_url
from heldout.judging.campaign.drawing import draw_tasks, list_pairs
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import counted
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.campaigns import Campaign, read_campaign
from heldout.judging.database.organiser import judgments
from heldout.judging.database.tables import open_database
from heldout.judging.platforms.links import personal_link

HELDOUT = [sys.executable, "-m", "heldout"]
PATIENCE = 120
OK, SEE_OTHER, LATER = 200, 303, 503
ITEMS = 13
TWO = 2
PORT_PATIENCE = 30


@dataclass(slots=True)
class Seen:
    """What the judges' side saw."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    repeated: int = 0
    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)


class Patient(httpx2.AsyncBaseTransport):
    """Sends a request again until the server answers it, and times every answer."""

    def __init__(self, seen: Seen) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._seen = seen

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it until it is answered otherwise than by 503."""
        end = time.monotonic() + PATIENCE
        while True:
            start = time.perf_counter()
            try:
                answer = await self._inner.handle_async_request(request)
                content = await answer.aread()
            except httpx2.TransportError:
                if time.monotonic() > end:
                    raise
                self._seen.repeated += 1
                await asyncio.sleep(random.uniform(0.05, 0.3))  # noqa: S311 - not a secret
                continue
            self._seen.latencies.append(time.perf_counter() - start)
            self._seen.statuses[answer.status_code] += 1
            if answer.status_code == LATER and time.monotonic() < end:
                self._seen.repeated += 1
                await asyncio.sleep(0.2)
                continue
            self._keep(request, answer)
            return httpx2.Response(
                answer.status_code, headers=answer.headers, content=content, request=request
            )

    def _keep(self, request: httpx2.Request, answer: httpx2.Response) -> None:
        parts = request.url.path.split("/")
        if request.method == "POST" and parts[3:4] == ["item"] and answer.status_code == SEE_OTHER:
            fields = dict(httpx2.QueryParams(request.content.decode()))
            self._seen.acknowledged[parts[2], int(parts[4])] = fields["choice"]


def make_campaign(folder: Path, *, judges: int, per_pair: int) -> CampaignFolder:
    """A campaign with a task for each judge; its passages are of the usual length."""
    words = [f"word{number}" for number in range(400)]
    draw = random.Random(0)  # noqa: S311 - not a secret
    pools = [
        Pool(
            query=f"q{number}",
            text=f"what is subject{number}",
            candidates=tuple(
                Candidate(
                    doc=f"d{number}-{place}",
                    text=f"topic{number} " + " ".join(draw.choices(words, k=60)),
                    known=place == 0,
                )
                for place in range(5)
            ),
        )
        for number in range(-(-judges // per_pair) + 60)
    ]
    settings = Settings(name="load", judges=per_pair, consent="Yes?")
    tests = [
        Item(query=f"q{n}", left=f"d{n}-0", right=f"d{n + 1}-1", answer=f"d{n}-0")
        for n in range(59)
    ]
    pairs = list_pairs(pools[60:])
    found = CampaignFolder(folder)
    found.create("load")
    text = (folder / "campaign.toml").read_text().replace("judges = 1 ", f"judges = {per_pair} ")
    (folder / "campaign.toml").write_text(text)
    found.write_pools(pools)
    found.write_tests(tests)
    found.write_tasks(draw_tasks(pairs, tests, settings, rng=np.random.default_rng(0)))
    return found


class Server:
    """`heldout serve`, which can be killed."""

    def __init__(self, campaign: Path, url: str, workers: int, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._call = [*HELDOUT, "serve", str(campaign), "--port", str(self.port)]
        self._call += ["--workers", str(workers), *options]
        self._environ = {**os.environ, "DATABASE_URL": url}
        self._process: subprocess.Popen[bytes] | None = None
        self._url = url

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it; it may not listen yet."""
        self._process = subprocess.Popen(
            self._call, env=self._environ, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self) -> None:
        """Kill it and all its processes with SIGKILL."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_parent(self) -> None:
        """Kill the process that started the workers, and start it again once the port is free."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        end = time.monotonic() + PORT_PATIENCE
        while time.monotonic() < end:
            with suppress(OSError), socket.create_server(("127.0.0.1", self.port)):
                break
            time.sleep(0.05)
        else:
            raise TimeoutError("workers held the port after their parent was killed")
        self.start()

    def kill_worker(self) -> None:
        """Kill one process that answers requests; its parent starts another one."""
        if self._process is None:
            return
        root = Path("/proc") / str(self._process.pid)
        with suppress(FileNotFoundError, ProcessLookupError, IndexError):
            children = (root / "task" / root.name / "children").read_text().split()
            workers = [int(one) for one in children if _answers(Path("/proc") / one)]
            os.kill(random.choice(workers), signal.SIGKILL)  # noqa: S311 - not a secret

    def kill_database(self) -> None:
        """Kill one process of PostgreSQL, which ends all the others and recovers from its log."""
        rows: list[tuple[Any, ...]] = []
        with (
            suppress(psycopg.OperationalError),  # it still recovers from the kill before
            psycopg.connect(self._url, autocommit=True) as connection,
        ):
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid()"
            ).fetchall()
        with suppress(ProcessLookupError, IndexError):
            os.kill(random.choice(rows)[0], signal.SIGKILL)  # noqa: S311 - not a secret

    async def wait(self) -> None:
        """Wait until it answers."""
        async with httpx2.AsyncClient() as client:
            for _ in range(600):
                with suppress(httpx2.TransportError):
                    if (await client.get(f"{self.address}/health")).status_code == OK:
                        return
                await asyncio.sleep(0.05)
        raise TimeoutError("the server did not start")


def guess(question: Question) -> Literal["a", "b"]:
    """A guess, but the right answer to a test: passages of a query name its topic."""
    topic = question.query.strip().rsplit("subject", 1)[-1]
    named = [f"topic{topic} " in f"{text} " for text in (question.a, question.b)]
    if named[0] != named[1]:
        return "a" if named[0] else "b"
    return random.choice(("a", "b"))  # noqa: S311 - not a secret


async def play(
    server: Server, campaign: Campaign, seen: Seen, options: argparse.Namespace
) -> tuple[list[Ending], float]:
    """All judges at once; how each ended, and how long it took."""
    await server.wait()
    killer = asyncio.create_task(kill_often(server, options.kills, options.kill))
    start = time.perf_counter()
    links = (
        personal_link("", campaign.code, key=campaign.key, worker=f"w{number}")
        for number in range(options.judges)
    )
    visits = (visit(server.address, link, seen) for link in links)
    endings = await asyncio.gather(*visits)
    seconds = time.perf_counter() - start
    await killer
    return endings, seconds


async def visit(address: str, link: str, seen: Seen) -> Ending:
    """One judge, with a connection of their own: a shared pool is searched for every request."""
    async with httpx2.AsyncClient(
        base_url=address, transport=Patient(seen), timeout=PATIENCE
    ) as client:
        return await PageJudge(client=client, link=link, decide=guess).visit()


async def kill_often(server: Server, kills: int, what: str) -> None:
    """Kill the server, or a part of it, again and again, each time under load."""
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.2, 0.9))  # noqa: S311 - not a secret
        if what == "all":
            server.kill()
            server.start()
        else:
            parts = {
                "parent": server.kill_parent,
                "worker": server.kill_worker,
                "database": server.kill_database,
            }
            await asyncio.to_thread(parts[what])
        await server.wait()


def _answers(process: Path) -> bool:
    """Whether a child is a worker, and not Python's own keeper of shared resources."""
    return b"resource_tracker" not in (process / "cmdline").read_bytes()


@contextmanager
def database_url(engine: str, folder: Path) -> Iterator[str]:
    """The address of an empty database on a server of its own."""
    if engine == "sqlite":
        yield sqlite_url(folder / "campaign.sqlite")
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pgserver.postgres_server import get_server  # noqa: PLC0415 - it reads the variable at once

    with get_server(folder / "postgresql", cleanup_mode="stop") as postgres:
        yield postgres.get_uri()


def check(url: str, seen: Seen, per_pair: int) -> dict[str, Any]:
    """What the database holds, against what was acknowledged."""
    database = open_database(url)
    try:
        rows = judgments(database)
    finally:
        database.close()
    voted = counted(rows)
    pairs = Counter(one.pair for one in voted)
    stored: defaultdict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for one in rows:
        choice = "a" if one.preferred == one.left else "b"
        stored[one.worker, one.task][one.position] = choice
    told: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for (token, position), choice in seen.acknowledged.items():
        told[token][position] = choice
    lost = _sheets(told) - _sheets(stored)
    return {
        "acknowledged": len(seen.acknowledged),
        "stored": len(rows),
        "sheets_lost": lost.total(),
        "pairs": len(pairs),
        "most_judges": max(pairs.values(), default=0),
        "over_limit": sum(count > per_pair for count in pairs.values()),
        "workers_twice": max(Counter((o.worker, o.pair) for o in voted).values(), default=0) > 1,
    }


def _sheets(answers: Mapping[Any, Mapping[int, str]]) -> Counter[tuple[tuple[int, str], ...]]:
    """What each judge answered to each item, whoever it was."""
    return Counter(tuple(sorted(sheet.items())) for sheet in answers.values())


def measure(options: argparse.Namespace) -> Mapping[str, Any]:
    """One run."""
    with tempfile.TemporaryDirectory() as name, database_url(options.engine, Path(name)) as url:
        folder = make_campaign(
            Path(name) / "campaign", judges=options.judges, per_pair=options.per_pair
        )
        server = Server(folder.path, url, options.workers)
        server.start()
        seen = Seen()
        try:
            asyncio.run(server.wait())
            database = open_database(url)
            campaign = read_campaign(database)
            database.close()
            endings, seconds = asyncio.run(play(server, campaign, seen, options))
        finally:
            server.kill()
        found = check(url, seen, options.per_pair)
    latencies = np.array(seen.latencies) * 1000
    return {
        "engine": options.engine,
        "judges": options.judges,
        "workers": options.workers,
        "kills": options.kills,
        "killed": options.kill,
        "requests": len(seen.latencies),
        "seconds": round(seconds, 1),
        "requests_per_second": round(len(seen.latencies) / seconds),
        "p50_ms": round(float(np.median(latencies)), 1),
        "p95_ms": round(float(np.quantile(latencies, 0.95)), 1),
        "repeated": seen.repeated,
        "statuses": dict(sorted(seen.statuses.items())),
        "finished": sum(bool(one.answered == ITEMS) for one in endings),
        **found,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--judges", type=int, default=200)
    parser.add_argument("--per-pair", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--kill", choices=("all", "parent", "worker", "database"), default="all")
    options = parser.parse_args()
    if options.kills and options.kill in ("parent", "worker") and options.workers < TWO:
        parser.error("a parent and workers are two things with --workers 2 or more")
    if options.kills and options.kill == "database" and options.engine == "sqlite":
        parser.error("SQLite has no process of its own: --engine postgresql")
    found = measure(options)
    print(json.dumps(found, indent=1))
    wrong = found["sheets_lost"] or found["over_limit"]
    sys.exit(bool(wrong or found["workers_twice"] or found["finished"] < found["judges"]))


if __name__ == "__main__":
    main()
