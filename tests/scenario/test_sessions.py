"""Whoever works on a board opens the session that protects it, or cannot write."""

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lab import FOUNDED, Lab, fresh_lab

import heldout
from heldout.board.scores.commitments import RuleChange
from heldout.board.scores.session import look_at, organiser_session
from heldout.board.store.repository import Repository
from heldout.errors import StoreError

NOW = datetime(2026, 11, 2, tzinfo=UTC)
SOURCES = Path(heldout.__file__).parent

# A new board has no history to protect yet; without a key in the vault nobody can open a session.
CREATE = {"board/organiser/creation.py", "board/old_boards.py"}
SESSION = {"board/scores/session.py"}


lab = fresh_lab


def _calls(name: str) -> dict[str, list[ast.Call]]:
    """Module -> calls of a function or method of this name."""
    found: dict[str, list[ast.Call]] = {}
    for path in SOURCES.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if f"{name}(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
                found.setdefault(path.relative_to(SOURCES).as_posix(), []).append(node)
    return found


def test_a_vault_is_opened_to_be_written_by_a_session_alone() -> None:
    writing = {
        module
        for module, calls in _calls("Vault.open").items()
        if any("read_only=True" not in ast.unparse(call) for call in calls)
    }
    assert writing == SESSION | {"board/organiser/rekey.py"}
    assert _calls("begin_session").keys() == SESSION | CREATE


def test_a_session_of_any_program_refuses_a_clock_that_is_behind(lab: Lab) -> None:
    early = datetime.fromisoformat(FOUNDED) - timedelta(days=1)
    session = organiser_session(Repository(lab.board), lab.vault, clock=lambda: early)
    with pytest.raises(StoreError, match="the clock"), session:
        pass


def test_a_session_of_any_program_refuses_rules_that_nobody_accepted(lab: Lab) -> None:
    repository = Repository(lab.board)
    lab.edit(("submissions = 300", "submissions = 200"))
    before = (lab.vault / "events.jsonl").read_bytes()
    with (
        pytest.raises(StoreError, match="nobody accepted it"),
        organiser_session(repository, lab.vault, clock=lambda: NOW),
    ):
        pass
    assert (lab.vault / "events.jsonl").read_bytes() == before
    seen: list[RuleChange] = []
    with organiser_session(repository, lab.vault, clock=lambda: NOW, accept=seen.append) as session:
        assert session.spec().release.submissions == 200
    (change,) = seen
    assert [one.key for one in change.differences] == ["release.submissions"]


def test_two_sessions_do_not_work_at_once(lab: Lab) -> None:
    repository = Repository(lab.board)
    with organiser_session(repository, lab.vault, clock=lambda: NOW) as session:
        second = organiser_session(repository, lab.vault, clock=lambda: NOW)
        with pytest.raises(StoreError, match="another heldout is at work"), second:
            pass
        assert look_at(repository, lab.vault, now=NOW).by == session.by
