"""A board whose submissions are made-up scores by query: no run is sealed, opened or scored.

Everything behind the opening is real: vault, log, release rule, evidence, audit, archive.
"""

import math
import random
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from boardlog import ranking, season, table

from heldout.board.audit.archive import close_board, write_archive
from heldout.board.audit.audit import audit_board
from heldout.board.log.manifest import Identity, Manifest, identity_fields
from heldout.board.organiser.creation import GivenSet, create_board
from heldout.board.organiser.decide import Decision, correct, publish, publish_baseline, reject
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.organiser.review import Review
from heldout.board.rules.changes import add_label_views
from heldout.board.rules.template import NewBoard
from heldout.board.scores.rescoring import ScoredBaseline
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import Session, accept_rules, commit_held_out
from heldout.board.scores.sets import load_sets
from heldout.board.scores.stored import ScoreFile, store_scores
from heldout.board.standings.standings import Standings, make_standings
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.ids import digest_bytes
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from memory_board import memory_board

FOUNDED = datetime(2026, 11, 1, 9, tzinfo=UTC)
QUERIES = 40
Values = Sequence[float] | Sequence[Sequence[float]]
"""Scores by query of each set; several rows are seeds."""
Row = Sequence[float]
BASE, ONE, TWO, THREE = "20261101-base", "20261102-one", "20261102-two", "20261102-three"
_RANDOM = random.Random(7)  # noqa: S311 - made-up scores, not keys
LOW = [_RANDOM.random() / 2 for _ in range(QUERIES)]


def above(values: Row, rise: float) -> list[float]:
    """Clearly above, whatever the jitter: by about as much on every query."""
    return [v + rise * (0.9 + 0.2 * (n % 2)) for n, v in enumerate(values)]


def nudge(values: Row, query: int, rise: float = 0.2) -> list[float]:
    """Higher, by one standard error and so never clearly: on one query."""
    return [v + rise * (n == query) for n, v in enumerate(values)]


HIGH = above(LOW, 0.2)


def text(values: Row) -> str:
    return f"{sum(values) / len(values):.3f}"


def query_ids(name: str) -> tuple[str, ...]:
    return tuple(f"{name}{number:02}" for number in range(QUERIES))


def view_score(
    query_set: str,
    values: Values,
    *,
    measure: str = "nDCG@10",
    asked: Collection[str] | None = None,
) -> ViewScore:
    """Made-up values as a score; those on dev, whose labels are public, are always the same.

    Args:
        query_set: the set that they are of.
        values: of all its queries.
        measure: of the view.
        asked: the queries that the view is over; `None` for all.
    """
    rows: list[Any] = [*values] if isinstance(values[0], Sequence) else [values]
    ids = [query for query in query_ids(query_set) if asked is None or query in asked]
    chosen = [query_ids(query_set).index(query) for query in ids]
    rows = [[0.5 if query_set == "dev" else row[at] for at in chosen] for row in rows]
    columns = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return ViewScore(
        measure=measure,
        mean=math.fsum(columns) / len(columns),
        n=len(columns),
        unanswered=0,
        without_relevant=0,
        per_query=dict(zip(ids, columns, strict=True)),
        seeds=tuple(math.fsum(row) / len(row) for row in rows) if len(rows) > 1 else (),
    )


@dataclass(slots=True)
class ScoredBoard:
    """Board and vault in a folder or in memory, and a clock that goes on by an hour at a call.

    Runs of baselines lie in the folder in any case.
    """

    root: Path
    now: datetime
    memory: tuple[Repository, Vault] | None = None

    @property
    def session(self) -> Session:
        on_disk = Repository(self.root / "board"), Vault(self.root / "vault")
        repository, vault = self.memory or on_disk
        return Session(repository=repository, vault=vault, now=self.now, by="organiser")

    @property
    def vault(self) -> Vault:
        return self.session.vault

    def tick(self) -> Session:
        self.now += timedelta(hours=1)
        return self.session

    def rules(self, *changes: tuple[str, str], more: str = "") -> None:
        """Edit board.toml and accept it."""
        session = self.tick()
        text = session.repository.tree_rules()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        session.repository.write_file(SPEC, (text + more).encode())
        accept_rules(session)

    def scores(
        self,
        values: Values,
        files: Mapping[str, str],
        *,
        received: datetime | None = None,
        baseline: bool = False,
    ) -> ScoreFile:
        """What scoring a run gives that has these scores on every view, by the labels of today."""
        session = self.session
        then = session.spec_at(received or self.now, baseline=baseline)
        spec = add_label_views(then, session.spec())
        sets = load_sets(session.repository, spec, vault=session.vault)
        return ScoreFile(
            files=dict(files),
            code_version="made up",
            views={
                v.name: view_score(v.set, values, measure=v.measure, asked=sets[v.set].asked(v))
                for v in spec.views
            },
            labels={
                f"{name}/{labels}" if labels else name: str(digest)
                for name, data in sets.items()
                for labels, digest in data.digests.items()
            },
            held_out={n: d for data in sets.values() for n, d in data.held_out.items()},
        )

    def baseline(self, name: str, values: Values) -> Decision:
        session = self.tick()
        run = self.root / f"{name}.run"
        run.write_text(name)
        digest = str(digest_bytes(name.encode()))
        spec = session.spec().on(session.now.date())
        scores = self.scores(values, dict.fromkeys(spec.sets, digest), baseline=True)
        who: dict[str, Any] = dict.fromkeys(("institution", "paper", "code", "training_data"), "")
        identity = Identity(team="organisers", description=name, **who)
        runs = dict.fromkeys(spec.sets, run)
        return publish_baseline(
            session, name, ScoredBaseline(runs=runs, scans={}, scores=scores), identity
        )

    def send(
        self,
        name: str,
        values: Values,
        *,
        team: str = "Some Team",
        until: date | None = None,
        season_entry: bool = False,
    ) -> Review:
        """Received and reviewed; the review is given back."""
        session = self.tick()
        parts = [f"{name}.{part}.age" for part in ("key", "metadata", "tar")]
        files = {part: str(session.vault.store_sealed(part.encode())) for part in parts}
        session.log("received", name, public={"files": files})
        scores = self.scores(values, files)
        store_scores(session.vault, name, scores)
        manifest = Manifest(
            team=team,
            institution=f"University of {team}",
            description=name,
            paper="",
            code="",
            type="full ranking",
            training_data="none",
            embargo_until=until,
            season_entry=season_entry,
        )
        sealed: dict[str, Any] = {
            "identity": identity_fields(manifest),
            "type": manifest.type,
            "embargo_until": None if until is None else until.isoformat(),
            "revision": 1,
            "kept": session.vault.result_digests(name),
        }
        session.log("reviewed", name, sealed=sealed)
        found = session.find(name)
        given: dict[str, Any] = {"manifest": manifest, "scores": scores, "findings": ()}
        return Review(submission=found, quota=None, done_before=True, **given)

    def publish(self, sent: Review) -> Decision:
        """Publish what was sent, under the session's clock."""
        session = self.tick()
        found = publish(session, replace(sent, submission=session.find(sent.submission.id)), why="")
        assert found.done, found
        return found

    def enter(self, name: str, values: Values, **told: Any) -> Decision:
        return self.publish(self.send(name, values, **told))

    def reject(self, name: str) -> Decision:
        return reject(self.tick(), name, why="a copy")

    def relabel(self, query: str = "eval00") -> None:
        """Change a label of the held-out set, and log it for a reason."""
        session = self.tick()
        file = session.vault.labels_file("eval")
        more = f"{query} 0 more{self.now:%d%H} 1\n".encode()
        file.write_whole(file.read_bytes() + more, mode=0o600)
        assert commit_held_out(session, why="a label was wrong")

    def correct(self, name: str, values: Values, *, anyway: bool = True) -> Decision:
        """Score an entry again, by the labels of today."""
        session = self.tick()
        known = session.history().submissions[name]
        files = dict(known.runs if known.baseline else known.files)
        scores = self.scores(values, files, received=known.received, baseline=known.baseline)
        return correct(session, name, scores, why="a label was wrong", anyway=anyway)

    def published(self, name: str) -> Mapping[str, Any]:
        """The event that published an entry, with every field opened."""
        (entry,) = [
            entry
            for entry in self.vault.entries()
            if (entry.event.submission, entry.event.kind) == (name, "published")
        ]
        return {**entry.event.public, **{n: one.value for n, one in entry.opened.items()}}

    def copy(self, root: Path) -> "ScoredBoard":
        shutil.copytree(self.root, root, symlinks=True)
        return ScoredBoard(root=root, now=self.now)

    def in_memory(self, root: Path) -> "ScoredBoard":
        """A copy whose board and vault are in memory."""
        memory = memory_board(self.root / "board", self.root / "vault")
        return ScoredBoard(root=root, now=self.now, memory=memory)


SEASONS = (
    table("\n[sets.next]", queries="queries/next.tsv")
    + ranking("next", measure="nDCG@10")
    + season("first", "eval", date(2026, 11, 1), date(2026, 11, 30))
    + season("second", "next", date(2026, 12, 1))
)


def next_season(board: ScoredBoard, *, closes: date) -> None:
    """Give the board two seasons; the second has a set of its own."""
    ids = query_ids("next")
    queries = "".join(f"{q}\twhat is {q}\n" for q in ids)
    board.session.repository.files.write_whole("queries/next.tsv", queries.encode())
    labels = "".join(f"{q} 0 d{q} 1\n" for q in ids)
    board.vault.labels_file("next").write_whole(labels.encode())
    opens = closes + timedelta(1)
    board.rules(more=SEASONS.replace("2026-11-30", f"{closes}").replace("2026-12-01", f"{opens}"))


def make_plan(**changes: Any) -> NewBoard:
    fields: dict[str, Any] = {
        "name": "kb",
        "title": "KB",
        "task": "Find it.",
        "opens": FOUNDED.date(),
        "envelope": "age",
        "recipients": (),
        "measure": "nDCG@10",
        "order": "trec",
        "depth": 10,
        "sets": {"dev": True, "eval": False},
        "primary": "eval",
    }
    return NewBoard(**(fields | changes))


def make_board(root: Path) -> ScoredBoard:
    """A board with a public and a held-out set, that publishes every score."""
    sets = {}
    for name, public in (("dev", True), ("eval", False)):
        ids = query_ids(name)
        queries = "".join(f"{q}\twhat is {q}\n" for q in ids).encode()
        qrels = "".join(f"{q} 0 d{q} 1\n" for q in ids).encode()
        sets[name] = GivenSet(
            queries=read_queries(BytesIO(queries), path=name),
            qrels=read_qrels(BytesIO(qrels), path=name),
            public=public,
        )
    create_board(root / "board", root / "vault", make_plan(), sets, now=FOUNDED)
    return ScoredBoard(root=root, now=FOUNDED)


def as_clear(board: ScoredBoard, *, closes: str = "") -> ScoredBoard:
    """The same board under `clear`."""
    board.rules(('rule = "rounded"', 'rule = "clear"'), ("# closes = 2027-03-31", closes))
    return board


def stand(board: ScoredBoard) -> Standings:
    session = board.session
    return make_standings(session.vault.entries(), session.spec(), now=session.now)


def faults(board: ScoredBoard) -> tuple[str, ...]:
    """Those of an audit of the rebuilt board, but of sealed files, which nobody made."""
    bring_up_to_date(board.tick())
    found = audit_board(board.session.repository, board.session.vault).faults
    return tuple(fault for fault in found if not fault.startswith("submissions/"))


def archive(board: ScoredBoard, folder: Path) -> Path:
    board.rules(('runs = "with-consent"', 'runs = "never"'))  # there are no runs
    bring_up_to_date(board.tick())
    assert close_board(board.tick())
    bring_up_to_date(board.tick())
    write_archive(board.tick(), folder / "archive.zip")
    return folder / "archive.zip"
