"""Entries scored again: side by side as one by one, and what fails says so here."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from scored_board import ScoredBoard, make_board, query_ids

from heldout.board.log.manifest import Identity
from heldout.board.organiser.decide import publish_baseline
from heldout.board.scores import rescoring
from heldout.board.scores.kept import ScoreFile
from heldout.board.scores.rescoring import rescore, rescore_each, score_baseline
from heldout.board.scores.sets import SetData, load_sets
from heldout.errors import HeldoutError

IDENTITY = Identity(
    team="organisers", institution="", description="a run", paper="", code="", training_data=""
)


def add_baseline(board: ScoredBoard, number: int) -> str:
    """A baseline whose runs are real: each finds the relevant document one place lower."""
    session = board.tick()
    spec = session.spec().on(session.now.date())
    runs = {}
    for name in spec.sets:
        run = board.root / f"{name}.{number}.run"
        rows = (
            f"{query} Q0 {'d' + query if place == number else place} {place} {-place} t\n"
            for query in query_ids(name)
            for place in range(1, 10)
        )
        run.write_text("".join(rows), encoding="utf-8")
        runs[name] = run
    scored = score_baseline(spec, sets_of(board), runs)
    publish_baseline(session, f"2026110{number}-base", scored, IDENTITY)
    return f"2026110{number}-base"


def sets_of(board: ScoredBoard) -> dict[str, SetData]:
    session = board.session
    return dict(load_sets(session.repository, session.spec(), vault=session.vault))


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScoredBoard, Sequence[str]]:
    board = make_board(tmp_path_factory.mktemp("again") / "town")
    return board, [add_baseline(board, number) for number in range(1, 5)]


def one_by_one(board: ScoredBoard, ids: Sequence[str]) -> list[tuple[str, ScoreFile]]:
    return [(name, rescore(board.session, sets_of(board), name)) for name in ids]


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescoring, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(rescoring, "_BATCH", 3)
    monkeypatch.setattr(rescoring, "count_cores", lambda: 2)


@pytest.mark.usefixtures("two_processes")
def test_side_by_side_is_as_one_by_one(
    entered: tuple[ScoredBoard, Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    board, ids = entered
    alone = one_by_one(board, ids)
    assert len({str(scores.views) for _, scores in alone}) == len(ids)

    def refuse(*_: object) -> None:
        pytest.fail("scored in this process")

    monkeypatch.setattr(rescoring, "rescore", refuse)
    done: list[None] = []
    again = rescore_each(board.session, sets_of(board), ids, done=lambda: done.append(None))
    assert list(again) == alone
    assert len(done) == len(ids)


@pytest.mark.usefixtures("two_processes")
def test_what_cannot_be_scored_says_why(
    entered: tuple[ScoredBoard, Sequence[str]], tmp_path: Path
) -> None:
    board, ids = entered[0].copy(tmp_path / "town"), entered[1]
    run = next(iter(board.session.history().submissions[ids[1]].runs.values()))
    (board.root / "vault" / "sealed" / run).write_bytes(b"nothing\n")
    with pytest.raises(HeldoutError) as alone:
        one_by_one(board, ids)
    again = rescore_each(board.session, sets_of(board), ids)
    assert next(again)[0] == ids[0]
    with pytest.raises(HeldoutError, match=str(alone.value)[:40]):
        next(again)
