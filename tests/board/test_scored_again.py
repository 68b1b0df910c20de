"""Entries scored again: side by side as one by one, and what fails says so here."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scored_board import ScoredBoard, make_board, query_ids

from heldout.board.log.manifest import Identity
from heldout.board.organiser.decide import publish_baseline, score_part
from heldout.board.scores import rescoring
from heldout.board.scores.session import Session, look_at
from heldout.board.scores.sets import SetData, load_sets
from heldout.board.scores.stored import ScoreFile, digest_scores
from heldout.board.store.vault import Vault
from heldout.errors import HeldoutError, InputError, StoreError
from heldout.scoring.shards import Shard, parse_shard

IDENTITY = Identity(
    team="organisers", institution="", description="a run", paper="", code="", training_data=""
)


def add_baseline(board: ScoredBoard, number: int, entry: str) -> None:
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
    scored = rescoring.score_baseline(spec, sets_of(board), runs)
    publish_baseline(session, entry, scored, IDENTITY)


def sets_of(board: ScoredBoard) -> dict[str, SetData]:
    session = board.session
    return dict(load_sets(session.repository, session.spec(), vault=session.vault))


IDS = [f"2026110{number}-base" for number in range(1, 5)]


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    board = make_board(tmp_path_factory.mktemp("again") / "town")
    for number, name in enumerate(IDS, 1):
        add_baseline(board, number, name)
    return board


def one_by_one(board: ScoredBoard, ids: Sequence[str]) -> list[tuple[str, ScoreFile]]:
    return [(name, rescoring.rescore(board.session, sets_of(board), name)) for name in ids]


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescoring, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(rescoring, "_BATCH", 3)
    monkeypatch.setattr(rescoring, "count_cores", lambda: 2)


@pytest.mark.slow
@pytest.mark.usefixtures("two_processes")
def test_side_by_side_as_one_by_one(entered: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    board = entered
    alone = one_by_one(board, IDS)
    assert len({str(scores.views) for _, scores in alone}) == len(IDS)

    def refuse(*_: object) -> None:
        pytest.fail("scored in this process")

    monkeypatch.setattr(rescoring, "rescore", refuse)
    done: list[None] = []
    again = rescoring.rescore_each(
        board.session, sets_of(board), IDS, done=lambda: done.append(None)
    )
    assert list(again) == alone
    assert len(done) == len(IDS)


@pytest.mark.usefixtures("two_processes")
def test_no_score_says_why(entered: ScoredBoard, tmp_path: Path) -> None:
    board = entered.copy(tmp_path / "town")
    run = next(iter(board.session.history().submissions[IDS[1]].runs.values()))
    (board.root / "vault" / "sealed" / run).write_bytes(b"nothing\n")
    with pytest.raises(HeldoutError) as alone:
        one_by_one(board, IDS)
    again = rescoring.rescore_each(board.session, sets_of(board), IDS)
    assert next(again)[0] == IDS[0]
    with pytest.raises(HeldoutError, match=str(alone.value)[:40]):
        next(again)


# Parts of a correction: scored ahead of it, by others, into the vault.


@pytest.fixture
def town(entered: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    """A copy whose labels were repaired since, which nobody has logged."""
    board = entered.copy(tmp_path / "town")
    labels = board.vault.labels_file("eval")
    labels.write_whole(labels.read_bytes() + b"eval00 0 deval01 1\n", mode=0o600)
    return board


def score(board: ScoredBoard, ids: Sequence[str], part: str) -> rescoring.ScoredAhead:
    session = look_at(board.session.repository, board.root / "vault", now=board.now)
    return score_part(session, ids, parse_shard(part))


def ahead_of(board: ScoredBoard) -> rescoring.Precomputed:
    return rescoring.Precomputed(board.session, sets_of(board))


def again(
    board: ScoredBoard, ids: Sequence[str], ahead: rescoring.Precomputed
) -> list[tuple[str, ScoreFile]]:
    return list(rescoring.rescore_each(board.session, sets_of(board), ids, ahead=ahead))


def files_of(board: ScoredBoard) -> dict[str, bytes]:
    found = (path for path in board.root.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(board.root).as_posix(): path.read_bytes() for path in found}


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_a_correction_finds_what_its_parts_scored(
    town: ScoredBoard, entered: ScoredBoard, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescoring, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(rescoring, "count_cores", lambda: cores)
    alone = one_by_one(town, IDS)
    assert alone != one_by_one(entered, IDS)
    before = files_of(town)
    parts = [score(town, IDS, part) for part in ("1/3", "2/3", "3/3")]
    assert sorted(name for part in parts for name in part.scored) == sorted(IDS)
    assert [(part.before, part.left, part.failed) for part in parts] == [((), (), {})] * 3
    assert files_of(town).keys() - before.keys() == {f"vault/remembered/scores/{n}" for n in IDS}
    assert {name: files_of(town)[name] for name in before} == before

    def refuse(*_: object) -> None:
        pytest.fail("scored again")

    monkeypatch.setattr(rescoring, "rescore", refuse)
    ahead = ahead_of(town)
    found = again(town, IDS, ahead)
    assert list(map(digest_scores, dict(found).values())) == [digest_scores(s) for _, s in alone]
    assert found == alone
    assert ahead.taken() == rescoring.Taken(used=len(IDS), others=0)
    ahead.forget(IDS)
    assert files_of(town) == before


def test_a_part_that_was_ended_goes_on_where_it_was(
    town: ScoredBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []
    rescore = rescoring.rescore

    def interrupted(session: Session, sets: dict[str, SetData], name: str) -> ScoreFile:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(name)
        return rescore(session, sets, name)

    with monkeypatch.context() as patch:
        patch.setattr(rescoring, "rescore", interrupted)
        with pytest.raises(KeyboardInterrupt):
            score(town, IDS, "1/1")
    found = score(town, IDS, "1/1")
    assert sorted(found.before) == sorted(scored)
    assert sorted((*found.before, *found.scored)) == sorted(IDS)
    assert score(town, IDS, "1/1").before == tuple(Shard(1, 1).deal(IDS, size=lambda _: 0))
    assert len(again(town, IDS, ahead := ahead_of(town))) == ahead.taken().used == len(IDS)


def relabel(board: ScoredBoard) -> None:
    labels = board.vault.labels_file("eval")
    labels.write_whole(labels.read_bytes() + b"eval01 0 deval00 1\n", mode=0o600)


def add_view(board: ScoredBoard) -> None:
    """Published entries get a score on it too."""
    labels = board.vault.labels_file("eval")
    board.vault.labels_file("more").write_whole(labels.read_bytes(), mode=0o600)
    names = 'name = "more"\nset = "eval"\nmeasure = "RR@10"\nlabels = "more"\npublic = false'
    board.rules(more=f"\n[[views]]\n{names}\n")


def edit_queries(board: ScoredBoard) -> None:
    repository = board.session.repository
    (path,) = (q.queries for name, q in board.session.spec().sets.items() if name == "dev")
    text = repository.files.read(path)
    repository.files.write_whole(path, text.replace(b"what is dev00", b"what was dev00"))


def replace_keys(board: ScoredBoard) -> None:
    board.vault.add_identity("another", "AGE-SECRET-KEY-1")


def damage(board: ScoredBoard) -> None:
    for path in (board.root / "vault/remembered/scores").iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


def swap(board: ScoredBoard) -> None:
    """Each entry has the scores of another one, by whoever can write into the vault's folder."""
    paths = sorted((board.root / "vault/remembered/scores").iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "outdated"),
    [(relabel, 1), (add_view, 1), (edit_queries, 1), (replace_keys, 0), (damage, 0), (swap, 0)],
)
def test_what_another_plan_scored_is_scored_again(
    town: ScoredBoard, change: Callable[[ScoredBoard], None], outdated: int
) -> None:
    score(town, IDS, "1/1")
    change(town)
    ahead = ahead_of(town)
    assert again(town, IDS, ahead) == one_by_one(town, IDS)
    assert ahead.taken() == rescoring.Taken(used=0, others=len(IDS) * outdated)


def test_a_new_title_is_no_plan(town: ScoredBoard) -> None:
    score(town, IDS, "1/1")
    town.rules(('title = "KB"', 'title = "Another title"'))
    again(town, IDS, ahead := ahead_of(town))
    assert ahead.taken() == rescoring.Taken(used=len(IDS), others=0)


def test_other_code_and_other_files_of_an_entry_are_another_plan(
    town: ScoredBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    score(town, IDS, "1/1")
    submission = town.session.history().submissions[IDS[0]]
    ahead = ahead_of(town)
    assert ahead.find(submission) is not None
    assert ahead.find(replace(submission, sealed_again="0" * 64)) is None
    assert ahead.taken().others == 1
    monkeypatch.setattr(rescoring, "code_version", lambda: "heldout 9")
    newer = ahead_of(town)
    assert newer.find(submission) is None
    assert newer.taken().others == 1


def test_a_part_names_what_cannot_be_scored_and_stores_the_rest(
    town: ScoredBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, damaged = IDS[:2]
    (town.root / f"vault/signatures/{lost}.npz").unlink()
    run = next(iter(town.session.history().submissions[damaged].runs.values()))
    (town.root / "vault/sealed" / run).write_bytes(b"nothing\n")
    found = score(town, IDS, "1/1")
    assert (found.left, sorted(found.scored)) == ((lost,), sorted(IDS[2:]))
    assert [p.code for p in found.failed[damaged]] == ["not-scored"]
    assert "is missing or damaged" in found.failed[damaged][0].found

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space is left")

    monkeypatch.setattr(Vault, "remember", full)
    assert score(town, IDS[3:], "1/1").before == tuple(IDS[3:])
    damage(town)
    assert [p.code for p in score(town, IDS[3:], "1/1").failed[IDS[3]]] == ["not-stored"]


def test_a_part_takes_no_other(town: ScoredBoard) -> None:
    with pytest.raises(InputError, match="unknown-submission"):
        score(town, [*IDS, "20261101-nobody"], "1/2")
    edit_queries(town)
    with pytest.raises(StoreError, match=r"queries/dev\.tsv is not the file that the log has"):
        score(town, IDS, "1/2")
    assert not (town.root / "vault/remembered/scores").exists()
