"""What a vault remembers of logs saves work, and never makes a wrong log pass."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from certain import sure
from scored_board import QUERIES, ScoredBoard, make_board

from heldout.board.audit.audit import _read_entries
from heldout.board.log import reading as logs
from heldout.board.log.events import parse_log
from heldout.board.log.history import read_history
from heldout.board.log.reading import Remembered, decode_memory, encode_memory
from heldout.board.organiser.rebuild import rebuild
from heldout.board.scores import public_log
from heldout.board.scores.public_log import plan_public_log
from heldout.board.store.vault import Vault
from heldout.errors import StoreError

_MEMORY = Path("vault/remembered/events")
_EVENTS = Path("vault/events.jsonl")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """Two entries, one under an embargo, and a memory of all their events."""
    board = make_board(tmp_path_factory.mktemp("remembered"))
    board.baseline("bm25", [0.3] * QUERIES)
    until = (board.now + timedelta(days=30)).date()
    board.enter("20261101-open", [0.5] * QUERIES, team="One")
    board.enter("20261101-hidden", [0.6] * QUERIES, team="Two", until=until)
    rebuild(board.tick())
    board.vault.remember_log(least=1)
    return board


@pytest.fixture
def board(template: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    """A copy, as another process would find it."""
    logs._LOGS.clear()
    logs._APPENDED.clear()
    public_log._KNOWN.clear()
    return template.copy(tmp_path / "copy")


def test_what_was_verified_is_not_verified_again(board: ScoredBoard) -> None:
    log = board.vault.log()
    assert log.remembered == len(log) == len(board.vault.entries())
    assert log.history == read_history(board.vault.entries())
    board.reject(board.send("20261101-third", [0.1] * QUERIES).submission.id)
    again = board.vault.log()
    assert (again.remembered, len(again)) == (log.remembered, len(board.vault.entries()))
    assert again.history == read_history(board.vault.entries())


@pytest.mark.parametrize("number", [0, 3])
def test_a_forged_beginning_is_refused(board: ScoredBoard, number: int) -> None:
    file = board.root / _EVENTS
    lines = file.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"by":"', b'"by":"x', 1)
    file.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=rf"events.jsonl:{number + 1}: the event was changed"):
        board.vault.log()


def test_an_event_that_was_left_out_is_missed(board: ScoredBoard) -> None:
    file = board.root / _EVENTS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(StoreError, match="the chain is broken"):
        board.vault.log()


def test_a_memory_of_a_forged_log_is_not_believed(board: ScoredBoard, tmp_path: Path) -> None:
    """Who can write to the folder, and lacks the private keys, cannot write a memory."""
    stranger = make_board(tmp_path / "stranger")
    forged = board.root / _EVENTS
    data = forged.read_bytes().replace(b'"by":"', b'"by":"x', 1)
    forged.write_bytes(data)
    honest = sure(decode_memory(board.vault.recall("events"), Remembered))
    told = {name: getattr(honest, name) for name in ("chain", "fold", "marks")}
    lie = Remembered(length=len(data), sha256=hashlib.sha256(data).digest(), **told)
    stranger.vault.remember("events", encode_memory(lie))
    (board.root / _MEMORY).write_bytes((stranger.root / _MEMORY).read_bytes())
    assert board.vault.recall("events") is None
    with pytest.raises(StoreError, match="the event was changed"):
        board.vault.log()


@pytest.mark.parametrize("cut", [0, 10, 40, -1])
def test_a_damaged_memory_costs_time_alone(board: ScoredBoard, cut: int) -> None:
    file = board.root / _MEMORY
    file.write_bytes(file.read_bytes()[:cut])
    log = board.vault.log()
    assert (log.remembered, len(log)) == (0, len(board.vault.entries()))


def test_a_change_within_one_step_of_the_clock_is_seen(board: ScoredBoard) -> None:
    """The same bytes but one, the same length, and no time between."""
    file = board.root / _EVENTS
    data = file.read_bytes()
    assert len(board.vault.log())
    file.write_bytes(data.replace(b'"by":"a', b'"by":"b', 1))
    with pytest.raises(StoreError, match="the event was changed"):
        board.vault.log()


def test_many_events_read_the_log_once(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    board.tick().log("received", "20261102-first", public={"files": {}})
    with monkeypatch.context() as patch:
        patch.setattr(logs, "_is_still", lambda *_: pytest.fail("read again"))
        for number in range(20):
            event = board.tick().log("received", f"20261102-{number:02}", public={"files": {}})
            assert f"20261102-{number:02}" in board.session.history().submissions
            assert board.vault.log().last == event
    assert board.vault.log().history == read_history(board.vault.entries())


@pytest.mark.parametrize("after", ["another line", "a part of a line", "another file"])
def test_what_others_do_after_an_event_is_seen(board: ScoredBoard, after: str) -> None:
    """Where no mark tells it, since the clock of the file system has steps."""
    board.tick().log("received", "20261102-mine", public={"files": {}})
    file = board.root / _EVENTS
    data = file.read_bytes()
    if after == "another file":
        file.unlink()
        file.write_bytes(data.replace(b'"by":"a', b'"by":"b', 1))
    else:
        line = data.splitlines(keepends=True)[-1]
        file.write_bytes(data + (line if after == "another line" else line[:-2]))
    if after == "a part of a line":
        assert board.vault.log().history == read_history(parse_log(data, path="events.jsonl"))
    else:
        with pytest.raises(StoreError, match=r"changed|chain is broken"):
            board.vault.log()


def test_an_audit_has_each_event_of_both_logs_once(board: ScoredBoard) -> None:
    """A large board's events are half a gigabyte."""
    file = board.root / _EVENTS
    public = board.session.repository.log()
    expected = board.vault.entries()
    file.write_bytes(file.read_bytes() + b'{"event":')  # the line of a killed call never counted
    found = _read_entries(board.vault, public)
    assert found == expected
    pairs = list(zip(found, public, strict=False))
    for one, known in pairs:
        assert one.event is known.event
        assert one.raw is known.raw
        assert all(one.opened[name] is opening for name, opening in known.opened.items())
    assert any(one.opened.keys() > known.opened.keys() for one, known in pairs)
    assert _read_entries(board.vault, public[:2]) == expected


def test_a_clock_set_back_projects_all(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_log, "_MANY", 0)
    board.now += timedelta(days=40)
    rebuild(board.tick())
    session = board.session
    plan = plan_public_log(session.repository, session.vault, now=datetime(2026, 11, 2, tzinfo=UTC))
    assert [entry.event.submission for entry in plan.changed.values()] == ["20261101-hidden"]


def test_a_vault_that_is_only_read_remembers_nothing(board: ScoredBoard) -> None:
    (board.root / _MEMORY).unlink()
    Vault(board.root / "vault", read_only=True).remember("events", b"x")
    assert not (board.root / _MEMORY).exists()
