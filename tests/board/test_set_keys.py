"""The secret key of a query set: made once, committed to, and never another one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from scored_board import ScoredBoard, as_clear, make_board

from heldout.board.audit.audit import audit_board
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.rules import template
from heldout.board.rules.changes import format_key, is_key, needs_key, parse_key
from heldout.board.rules.template import NewBoard, new_board_files
from heldout.board.scores.commitments import compare_held_out, list_broken_keys
from heldout.board.scores.rescoring import is_earlier, lacks_key
from heldout.board.scores.session import Session, accept_rules, commit_held_out
from heldout.board.scores.sets import load_sets
from heldout.board.scores.stored import RunReport
from heldout.board.store.repository import SPEC
from heldout.errors import StoreError
from heldout.ids import digest_bytes

_EMPTY: dict[str, Any] = {
    "digest": "",
    "problems": (),
    "counts": {},
    "queries": 0,
    "documents": 0,
    "queries_tied": 0,
    "queries_displaced": 0,
    "repeated_ranks": 0,
    "first_ranks": {},
}
LOW = [0.1] * 40


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """A board that publishes every score, with a baseline."""
    board = make_board(tmp_path_factory.mktemp("keys") / "town")
    board.baseline("20261101-base", LOW)
    return board


@pytest.fixture
def board(founded: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    return founded.copy(tmp_path / "town")


def key_file(board: ScoredBoard) -> Path:
    return board.root / "vault" / "labels" / "eval.key"


def committed(board: ScoredBoard) -> dict[str, str]:
    return {n: d for n, d in board.session.history().labels.items() if is_key(n)}


def test_a_key_is_read_as_it_was_written() -> None:
    key = bytes(range(32))
    assert format_key(key) == (key.hex() + "\n").encode()
    assert parse_key(format_key(key), path="labels/eval.key") == key


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"0" * 64, b"0" * 63 + b"\n", b"A" * 64 + b"\n", b"0" * 64 + b"\r\n"]
)
def test_what_is_no_key_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StoreError, match=r"labels/eval\.key is no key .* 64 digits"):
        parse_key(data, path="labels/eval.key")


def test_only_held_out_sets_of_the_clear_rule_need_one(board: ScoredBoard) -> None:
    spec = board.session.spec()
    assert not any(needs_key(spec, name) for name in spec.sets)
    assert not key_file(board).exists()
    as_clear(board)
    spec = board.session.spec()
    assert [name for name in spec.sets if needs_key(spec, name)] == ["eval"]


def test_new_rules_make_the_key_and_commit_to_it(board: ScoredBoard) -> None:
    as_clear(board)
    data = key_file(board).read_bytes()
    assert board.vault.set_key("eval") == bytes.fromhex(data.decode())
    assert len(board.vault.set_key("eval")) == 32
    digest = str(digest_bytes(data))
    assert committed(board) == {"eval.key": digest}
    assert board.vault.has_sealed(digest)
    assert key_file(board).stat().st_mode & 0o077 == 0


def test_it_is_made_once(board: ScoredBoard) -> None:
    as_clear(board)
    before = key_file(board).read_bytes()
    board.rules(("quota = 2", "quota = 3"))
    board.rules(('rule = "clear"', 'rule = "rounded"'))
    board.rules(('rule = "rounded"', 'rule = "clear"'))
    assert key_file(board).read_bytes() == before
    assert not list(list_broken_keys(board.session.history()))


def test_a_new_board_has_its_key_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = new_board_files

    def files(plan: NewBoard) -> dict[str, bytes]:
        made = dict(honest(plan))
        made[SPEC] = made[SPEC].replace(b'rule = "rounded"', b'rule = "clear"')
        return made

    monkeypatch.setattr(template, "new_board_files", files)
    board = make_board(tmp_path / "town")
    assert board.vault.entries()[0].get("labels").keys() == {"eval", "eval.key"}
    before = key_file(board).read_bytes()
    make_board(tmp_path / "town")  # a second call finds the board that is there
    assert key_file(board).read_bytes() == before
    assert len(board.vault.entries()) == 1


def test_a_key_of_a_call_that_was_killed_is_committed_to(board: ScoredBoard) -> None:
    board.vault.make_set_key("eval")
    before = key_file(board).read_bytes()
    as_clear(board)
    assert key_file(board).read_bytes() == before
    assert committed(board) == {"eval.key": str(digest_bytes(before))}


def test_without_an_event_no_key_stays(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(*_: object, **__: object) -> None:
        raise StoreError("another organiser's event came first")

    monkeypatch.setattr(Session, "log", overtaken)
    with pytest.raises(StoreError, match="came first"):
        as_clear(board)
    assert not key_file(board).exists()


CHANGES = {
    "another key": lambda file: file.write_bytes(format_key(bytes(32))),
    "nonsense": lambda file: file.write_bytes(b"nonsense"),
    "missing": lambda file: file.unlink(),
}


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("told", [False, True], ids=["before any score", "after scores"])
def test_another_key_is_always_refused(board: ScoredBoard, case: str, *, told: bool) -> None:
    as_clear(board)
    if told:
        board.enter("20261102-one", LOW)
    kept = key_file(board).read_bytes()
    events = len(board.vault.entries())
    CHANGES[case](key_file(board))
    session = board.tick()
    refused = r"labels/eval\.key in the vault is missing, or is not the key .* no reason allows it"
    for step in (
        lambda: commit_held_out(session, why="a better key"),
        lambda: bring_up_to_date(session),
        lambda: accept_rules(replace_rules(session)),
        lambda: board.enter("20261103-two", LOW) if told else board.baseline("20261103-b", LOW),
    ):
        with pytest.raises(StoreError, match=refused):
            step()
    faults = audit_board(session.repository, session.vault.root).faults
    assert any("labels/eval.key" in fault for fault in faults)
    kinds = {entry.event.kind for entry in board.vault.entries()[events:]}
    assert kinds <= {"received", "reviewed"}
    # As the message says:
    digest = committed(board)["eval.key"]
    key_file(board).write_bytes((board.root / "vault" / "sealed" / digest).read_bytes())
    assert key_file(board).read_bytes() == kept
    bring_up_to_date(board.tick())


def replace_rules(session: Session) -> Session:
    text = session.repository.tree_rules().replace("quota = 2", "quota = 5")
    session.repository.write_file(SPEC, text.encode())
    return session


def test_a_log_of_another_key_found(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    as_clear(board)
    key_file(board).write_bytes(format_key(bytes(32)))
    session = board.tick()
    with monkeypatch.context() as patched:
        patched.setattr("heldout.board.scores.commitments.check_keys", lambda _held: None)
        commit_held_out(session, why="a better key")
    (fault,) = list_broken_keys(board.session.history())
    assert "labels/eval.key" in fault
    assert fault in audit_board(session.repository, session.vault.root).faults


def test_a_key_that_comes_later_makes_no_score_an_earlier_one(board: ScoredBoard) -> None:
    sent = board.send("20261102-one", LOW)
    as_clear(board)
    session = board.session
    held = compare_held_out(session.vault, session.history(), session.spec())
    assert (held.new, held.changed) == ((), ())
    kept = sent.scores
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    assert not is_earlier(kept, sets)
    # Before it is published it is scored again, so that what it is told for names the key.
    runs = {name: RunReport(**_EMPTY) for name in ("dev", "eval")}
    assert lacks_key(msgspec.structs.replace(kept, runs=runs), sets)
    now = msgspec.structs.replace(board.scores(LOW, {}), runs=runs)
    assert not lacks_key(now, sets)
    assert not is_earlier(now, sets)


def test_old_boards_have_no_key(board: ScoredBoard) -> None:
    board.enter("20261102-one", LOW)
    bring_up_to_date(board.tick())
    assert not key_file(board).exists()
    assert committed(board) == {}
