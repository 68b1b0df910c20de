"""A real board and its vault with thousands of entries, made in bulk.

    python benchmarks/growth_board.py OUT ENTRIES EVENTS QUERIES DEPTH

OUT gets `board`, `vault`, `origin.git` with one branch for each submission, `clone` of a
participant, and `plan.json` with the time, the entry that waits and what the first rebuild took.
Every team is registered and signs its submissions. Runs are drawn from a seed: they share first
documents, as runs over one collection do, and some are near copies or ensembles of earlier ones.
They are sealed, opened, scanned and scored by heldout's own functions, in parallel; every event is
linked and signed as `Vault.append` does it. Only the order is another one: the log is written once,
so that a board takes minutes and no day. `heldout audit` finds nothing wrong with it. By `[trust]`,
figures of an entry fall due two days after its publication: at the first rebuild those of nearly
all, the next day (`now`) those of one day more.
"""

import gzip
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from io import BytesIO
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from process import LONGEST, run_process

from heldout.board.log.events import Draft, format_entry, link, signers_of
from heldout.board.log.manifest import (
    Manifest,
    SubmissionSignature,
    format_manifest,
    identity_fields,
    join_signature,
)
from heldout.board.log.registration import (
    Registrant,
    Statement,
    registrant_digest,
    registration_message,
    submission_message,
    team_handle,
)
from heldout.board.log.submission import Submission
from heldout.board.organiser.creation import GivenSet, create_board
from heldout.board.organiser.decide import publish_baseline
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.rules.template import NewBoard
from heldout.board.scores.releasing import release_entry
from heldout.board.scores.rescoring import open_and_score, score_baseline
from heldout.board.scores.score import signature_field
from heldout.board.scores.session import Session, accept_rules, begin_session
from heldout.board.scores.sets import load_sets
from heldout.board.scores.stored import store_evidence_of, store_scores
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import seal, seal_metadata
from heldout.envelope.keys import public_key, sign
from heldout.ids import SubmissionId, digest_bytes
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries

__all__ = ["main"]

_OPENED = datetime(2024, 1, 1, 9, tzinfo=UTC)
_STEP = timedelta(minutes=90)  # between two submissions
_DOCUMENTS = 300  # that can be found for a query
_STAGES = 10  # first stages that the runs share
_OF, _COPIES, _ENSEMBLES = 25, 7, 13  # of so many entries, the 7th and the 13th
_OWN = 0.2  # share of queries that a near copy ranks itself
_RULES = """
[registration]
required = true

[trust]
show = ["ranges", "progress"]
after = "2 days"
"""
_FEWEST_EVENTS = 3
_TEAMS = 600  # at least, so that nobody sends more often than once in 30 days
_SEED = 19
Logged = tuple[str, dict[str, Any], dict[str, Any]]  # kind, public and sealed fields of an event


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a board is to hold.

    Attributes:
        out: its folder.
        entries: submissions of which a decision was made.
        events: of the log, about.
        queries: of the one query set, which is held out.
        depth: documents for each query.
    """

    out: Path
    entries: int
    events: int
    queries: int
    depth: int

    @property
    def each(self) -> int:
        """Events about each entry."""
        return max(_FEWEST_EVENTS, round(self.events / self.entries))

    def received(self, number: int) -> datetime:
        """When an entry came."""
        return _OPENED + (number + 1) * _STEP

    def name(self, number: int) -> SubmissionId:
        """Its id."""
        return SubmissionId(f"{self.received(number):%Y%m%d}-entry-{number:05}")

    @property
    def made(self) -> datetime:
        """When all of it has come."""
        return self.received(self.entries) + _STEP

    def team(self, number: int) -> int:
        """Which team sent an entry."""
        return number % max(self.entries // 5, _TEAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An entry whose files lie in the vault.

    Attributes:
        name: its id.
        events: of it, in order.
        files: what its branch has, base name -> bytes, where git does not have them yet; else
            base name -> blob.
    """

    name: SubmissionId
    events: list[Logged]
    files: dict[str, bytes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the board."""
    out, *numbers = sys.argv[1:] if arguments is None else arguments
    entries, events, queries, depth = map(int, numbers)
    plan = Plan(
        out=Path(out).absolute(), entries=entries, events=events, queries=queries, depth=depth
    )
    # Nothing of it has to outlive a crash of the machine, and a disk may be slow.
    os.fsync = _wait_for_nothing
    if not (plan.out / "plan.json").exists():  # else another call came as far as this
        _found(plan)
        _fill(plan)
    _rebuild(plan)
    _make_remote(plan)
    return 0


def _found(plan: Plan) -> None:
    """A new board with a baseline."""
    names = _queries(plan)
    chosen = np.random.default_rng(_SEED)
    queries = "".join(f"{name}\twhat is {name}\n" for name in names).encode()
    labels = "".join(f"{name} 0 {_document(at, 0)} 1\n" for at, name in enumerate(names)).encode()
    given = GivenSet(
        queries=read_queries(BytesIO(queries), path="eval"),
        qrels=read_qrels(BytesIO(labels), path="eval"),
        public=False,
    )
    board = NewBoard(
        name="growth",
        title="Growth",
        task="Find the one document.",
        opens=_OPENED.date(),
        envelope="age",
        recipients=(),
        measure="RR@10",
        order="msmarco",
        depth=plan.depth,
        sets={"eval": False},
        primary="eval",
    )
    root = plan.out / "board"
    create_board(root, plan.out / "vault", board, {"eval": given}, now=_OPENED)
    with (root / "board.toml").open("a") as rules:
        rules.write(_RULES)
    session = _session(plan, now=_OPENED + timedelta(minutes=1))
    run = plan.out / "baseline.run"
    run.write_bytes(_format_run(plan, _draw_tops(plan, chosen, stage=0, quality=0.3)))
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    scored = score_baseline(session.spec(), sets, {"eval": run})
    made = _manifest(plan, 0)
    with session.vault.locked(), session.repository.locked():
        accept_rules(session)
        publish_baseline(session, "bm25", scored, made.identity)
        bring_up_to_date(session)


def _fill(plan: Plan) -> None:
    """Every entry's files in the vault, its events in the log, its branch in a stream for git."""
    session = _session(plan, now=plan.made)
    entries = session.vault.entries()
    last, own = entries[-1], session.vault.own_signer(signers_of(entries))
    if own is None:
        raise RuntimeError(plan.out)
    events = plan.out / "events"  # not the vault's: each worker would read that again as it grows
    with (
        Pool(os.cpu_count(), _begin, (plan,)) as workers,
        events.open("wb") as log,
        (plan.out / "branches").open("wb") as branches,
    ):

        def add(logged: Logged, name: SubmissionId | None, at: datetime) -> None:
            nonlocal last
            kind, public, sealed = logged
            draft = Draft(kind=kind, by=session.by, submission=name, public=public, sealed=sealed)
            last = link(draft, last, at=at, new_salt=lambda: secrets.token_hex(16), sign=own.sign)
            log.write(format_entry(last))

        for team in sorted({plan.team(number) for number in range(plan.entries + 1)}):
            add(_register(session.history().board, team), None, _OPENED + timedelta(minutes=2))
        main = session.repository.git.head()
        made = workers.imap(_make, range(plan.entries + 1), chunksize=8)
        for number, entry in enumerate(made):
            step = _STEP / (len(entry.events) + 1)
            for at, logged in enumerate(entry.events):
                add(logged, entry.name, (plan.received(number) + at * step).replace(microsecond=0))
            _write_branch(branches, entry, str(main))
    with events.open("rb") as made_events, (plan.out / "vault" / "events.jsonl").open("ab") as log:
        shutil.copyfileobj(made_events, log)
    events.unlink()
    waits = plan.name(plan.entries)
    now = f"{plan.made + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    (plan.out / "plan.json").write_text(json.dumps({"now": now, "waits": waits}))


_HERE: dict[str, Any] = {}
"""What each worker reads once."""


def _begin(plan: Plan) -> None:
    os.fsync = _wait_for_nothing
    session = _session(plan, now=plan.made)
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    _HERE.update(plan=plan, session=session, sets=sets)


def _make(number: int) -> Made:
    """Draw a run, seal it, open it, score it, and say what the log says of it."""
    plan, session, sets = _HERE["plan"], _HERE["session"], _HERE["sets"]
    vault, spec, name = session.vault, session.spec(), plan.name(number)
    run = gzip.compress(_format_run(plan, _draw(plan, number)), 1, mtime=0)
    first = msgspec.structs.replace(
        _manifest(plan, number), id=name, digests={"eval": str(digest_bytes(run))}
    )
    sealed = seal(
        spec.envelope,
        name,
        runs={"eval": (".run.gz", run)},
        metadata=_sign(session, plan, number, first)[0],
        recipients=spec.recipients,
    )
    files = {file: str(vault.store_sealed(data)) for file, data in sealed.files.items()}
    received = {"files": files, "fingerprint": _fingerprint(sealed.files)}
    events: list[Logged] = [("received", {**received, "source": f"branch submission/{name}"}, {})]
    made = Made(name=name, events=events, files=dict(sealed.files))
    if number == plan.entries:  # it waits
        return made
    as_received = Submission(
        id=name, received=plan.received(number), files=files, status="received"
    )
    scores = open_and_score(session, sets, as_received)
    store_scores(vault, name, scores)
    kept = vault.result_digests(name)

    def reviewed(manifest: Manifest) -> dict[str, Any]:
        signature = _sign(session, plan, number, manifest)[1]
        return {
            "identity": identity_fields(manifest),
            "type": manifest.type,
            "embargo_until": _day(manifest.embargo_until),
            "revision": manifest.revision,
            **signature_field(spec, signature),
            "kept": kept,
        }

    events.append(("reviewed", {}, reviewed(first)))
    extra, manifest = plan.each - _FEWEST_EVENTS, first
    for revision in range(2, extra // 2 + 2):
        manifest = msgspec.structs.replace(first, revision=revision)
        signed, signature = _sign(session, plan, number, manifest)
        data = seal_metadata(spec.envelope, signed, key=sealed.key)
        made.files[sealed.names.metadata] = data
        new = {sealed.names.metadata: str(vault.store_sealed(data))}
        changed = {"files": new, "fingerprint": _fingerprint(made.files)}
        identity = {"identity": identity_fields(manifest), "revision": revision}
        events.append(("updated", changed, {**identity, **signature_field(spec, signature)}))
        events.append(("reviewed", {}, reviewed(manifest)))
        files = files | new
    events += [("score-shown", {}, {})] * (extra % 2)
    if number % 20 == 19:  # noqa: PLR2004 - one in twenty is refused
        events.append(("rejected", {"why": "the third run in 30 days"}, {}))
        vault.files.delete(f"sealed/{files[sealed.names.tar]}")
        return made
    released = release_entry(session, spec, as_received, scores.views)
    public: dict[str, Any] = {
        **released.public,
        "type": manifest.type,
        "embargo_until": _day(manifest.embargo_until),
        "revision": manifest.revision,
    }
    hidden = {
        **released.sealed,
        "evidence": store_evidence_of(vault, name, spec, scores),
        "kept": kept,
        "identity": identity_fields(manifest),
        **signature_field(spec, _sign(session, plan, number, manifest)[1]),
        "why": "",
        "findings": [],
    }
    events.append(("published", public, hidden))
    return made


def _wait_for_nothing(fd: object) -> None:
    """Instead of `os.fsync`."""


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _manifest(plan: Plan, number: int) -> Manifest:
    """Metadata; one in ten is under an embargo of sixty days."""
    team = plan.team(number)
    day = (plan.received(number) + timedelta(days=60)).date()
    return Manifest(
        team=_name(f"team {team}"),
        institution=f"University of {_name(f'place {team}')}",
        description=f"Ranker {number} over its own first stage",
        paper=f"https://example.org/papers/{number}",
        code="",
        training_data="none",
        type="full ranking",
        embargo_until=day if number % 10 == 0 else None,
    )


def _name(what: str) -> str:
    """A name like no other: names that differ in digits alone look alike to the policy."""
    digest = hashlib.sha256(what.encode()).hexdigest()[:16]
    return digest.translate(str.maketrans("0123456789abcdef", "bdfghklmnprstvwz")).capitalize()


def _register(board: str, team: int) -> Logged:
    """A team's registration, as `heldout inbox` logs it."""
    salt = hashlib.sha256(f"salt {team}".encode()).hexdigest()[:32]
    names = {
        "team": _name(f"team {team}"),
        "institution": f"University of {_name(f'place {team}')}",
    }
    registrant = Registrant(**names, contact="", salt=salt)
    key = public_key(_team_key(team))
    statement = Statement(
        board=board,
        key=key,
        agreement="",
        at=f"{_OPENED:%Y-%m-%dT%H:%M:%SZ}",
        private=registrant_digest(registrant),
    )
    text = msgspec.json.encode(statement).decode()
    signature = sign(_team_key(team), registration_message(text))
    handle = team_handle(key)
    public = {"team": handle, "statement": text, "signature": signature}
    source = {"source": f"branch registration/{handle}"}
    return "registered", public | source, {"registrant": msgspec.to_builtins(registrant)}


def _team_key(team: int) -> bytes:
    """A team's private key: the same for each process."""
    return f"HELDOUT-TEAM-KEY-1 {hashlib.sha256(f'key {team}'.encode()).hexdigest()}\n".encode()


def _sign(
    session: Session, plan: Plan, number: int, manifest: Manifest
) -> tuple[bytes, SubmissionSignature]:
    """An entry's metadata with its team's signature, as `heldout submit` seals them."""
    data, key = format_manifest(manifest), _team_key(plan.team(number))
    digest = str(digest_bytes(data))
    message = submission_message(
        session.history().board,
        manifest.id,
        revision=manifest.revision,
        agreement="",
        metadata=digest,
    )
    signature = SubmissionSignature(
        team=team_handle(public_key(key)), agreement="", value=sign(key, message), metadata=digest
    )
    return join_signature(data, signature), signature


def _draw(plan: Plan, number: int) -> NDArray[np.int64]:
    """The documents of an entry's run, by their numbers, shape (queries, depth)."""
    drawn = np.random.default_rng((_SEED, number))
    part = number % _OF if number > _OF else 0  # the first have nothing to copy
    if part == _COPIES:
        tops = _draw(plan, int(drawn.integers(number)) // _OF * _OF)
        some = drawn.random(plan.queries) < _OWN
        tops[some] = _draw_tops(plan, drawn, stage=number, quality=0.5)[some]
        return tops
    if part == _ENSEMBLES:
        fused = np.zeros((plan.queries, _DOCUMENTS))
        rows = np.arange(plan.queries)[:, None]
        for at, member in enumerate(drawn.integers(number, size=3).tolist()):
            fused[rows, _draw(plan, member // _OF * _OF + at)] -= 1 / np.arange(61, 61 + plan.depth)
        return fused.argsort(axis=1, kind="stable")[:, : plan.depth]
    return _draw_tops(plan, drawn, stage=number, quality=drawn.uniform(0.3, 0.9))


def _draw_tops(
    plan: Plan, drawn: np.random.Generator, *, stage: int, quality: float
) -> NDArray[np.int64]:
    """A run of a first stage and a ranker of its own; document 0 of each query is relevant."""
    noise = drawn.normal(scale=drawn.uniform(0.6, 1.2), size=(plan.queries, _DOCUMENTS - 1))
    scores = _stage(plan, _STAGES) + _stage(plan, stage % _STAGES) / 2 + noise
    tops = scores.argsort(axis=1)[:, : plan.depth] + 1
    found = drawn.random(plan.queries) < quality
    rank = np.minimum(drawn.geometric(quality, plan.queries), plan.depth) - 1
    tops[found, rank[found]] = 0
    return tops


@cache
def _stage(plan: Plan, stage: int) -> NDArray[np.float64]:
    """What a first stage makes of the documents, the best lowest."""
    drawn = np.random.default_rng((_SEED, _DOCUMENTS, stage))
    ranks = drawn.permuted(np.tile(np.arange(1.0, _DOCUMENTS), (plan.queries, 1)), axis=1)
    return np.asarray(np.log(ranks), np.float64)


def _format_run(plan: Plan, tops: NDArray[np.int64]) -> bytes:
    """A run in MS MARCO's form."""
    ranks = [f"\t{rank}\n" for rank in range(1, plan.depth + 1)]
    lines = [
        documents[one] + rank
        for documents, row in zip(_lines(plan), tops.tolist(), strict=True)
        for one, rank in zip(row, ranks, strict=True)
    ]
    return "".join(lines).encode()


@cache
def _lines(plan: Plan) -> list[list[str]]:
    """Query and document of a line, for each document of each query."""
    return [
        [f"{name}\t{_document(at, one)}" for one in range(_DOCUMENTS)]
        for at, name in enumerate(_queries(plan))
    ]


def _queries(plan: Plan) -> list[str]:
    return [f"q{number:04}" for number in range(plan.queries)]


def _document(query: int, number: int) -> str:
    return f"D{(query * 7_919 + number) % 99_991}"


def _blob(data: bytes) -> str:
    """The name that git gives to these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _fingerprint(files: Mapping[str, bytes]) -> str:
    """As `board.store.arrivals` has it of a branch."""
    marks = {f"submissions/{name}": _blob(data) for name, data in files.items()}
    return digest_bytes("\n".join(f"{n} {m}" for n, m in sorted(marks.items())).encode())


def _write_branch(stream: Any, entry: Made, main: str) -> None:
    """One branch, as `git fast-import` takes it."""
    stream.write(f"commit refs/heads/submission/{entry.name}\n".encode())
    stream.write(b"committer Team <team@example.org> 1704100000 +0000\ndata 10\nSubmission\n")
    stream.write(f"from {main}\n".encode())
    for name, data in entry.files.items():
        stream.write(f"M 100644 inline submissions/{name}\ndata {len(data)}\n".encode())
        stream.write(data + b"\n")


def _rebuild(plan: Plan) -> None:
    """Make all pages and figures, by the command itself."""
    board = ["--board", str(plan.out / "board"), "--vault", str(plan.out / "vault")]
    command = ["rebuild", *board, "--now", f"{plan.made:%Y-%m-%dT%H:%M:%SZ}"]
    ran = run_process(
        [sys.executable, "-m", "heldout", *command],
        environ=os.environ,
        keep=False,
        watch=False,
        limit=LONGEST,
    )
    if ran.status not in (0, 1):
        raise SystemExit(f"rebuild: exit {ran.status}\n{ran.errors}")
    made = json.loads((plan.out / "plan.json").read_text())
    made["rebuild"] = {"cpu": ran.cpu, "peak": ran.peak, "status": ran.status}
    (plan.out / "plan.json").write_text(json.dumps(made))


def _make_remote(plan: Plan) -> None:
    """The bare repository that the board is pushed to, and a participant's clone of it."""
    git = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
    origin, branches = plan.out / "origin.git", plan.out / "branches"
    git(["git", "clone", "-q", "--bare", plan.out / "board", origin])
    with branches.open("rb") as stream:
        git(["git", "fast-import", "--quiet"], cwd=origin, stdin=stream)
    branches.unlink()
    git(["git", "remote", "add", "origin", origin], cwd=plan.out / "board")
    git(["git", "fetch", "-q", "origin", "main"], cwd=plan.out / "board")
    clone = ["git", "clone", "-q", "--single-branch", "--branch", "main", origin]
    git([*clone, plan.out / "clone"])


def _session(plan: Plan, *, now: datetime) -> Session:
    return begin_session(Repository(plan.out / "board"), Vault(plan.out / "vault"), now=now)


if __name__ == "__main__":
    sys.exit(main())
