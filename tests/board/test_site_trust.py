"""The page shows what the organisers are bound by: commitments, changed keys, the closing."""

import re
from collections.abc import Mapping

import pytest
from boardlog import BoardLog
from sample_boards import BOARDS, RULES, facts

from heldout.board.log.events import Entry, redact
from heldout.board.site.pages import render_board
from heldout.board.site.sections import TrustLine, list_trust

RULES_TEXT = {"board.toml": "x"}


def grow(*events: tuple[str, Mapping[str, object], bool]) -> list[Entry]:
    """As the public log is: nothing is opened. An event commits to labels or does not."""
    log = BoardLog(private=b"")
    for kind, public, commits in events:
        log.add(kind, None, public, {"labels": {"eval": "0" * 64}} if commits else {})
        log.wait(days=1)
    return [redact(entry, ()) for entry in log.entries]


OPENED = ("opened-board", RULES_TEXT, True)


@pytest.fixture
def log() -> list[Entry]:
    keys = {"added": ["age1a"], "removed": ["age1b", "age1c"], "why": "she left"}
    return grow(
        OPENED,
        ("changed-rules", RULES_TEXT, False),
        ("changed-rules", {**RULES_TEXT, "why": "two\x07 labels\u202e"}, True),
        ("rekeyed", {**RULES_TEXT, **keys}, False),
        ("closed-board", {"open_runs": []}, False),
    )


def list_all(log: list[Entry]) -> tuple[TrustLine, ...]:
    """Of a whole log."""
    about_board = [entry for entry in log if entry.event.submission is None]
    return list_trust(about_board, heads=lambda: [(e.event.kind, e.event.submission) for e in log])


def test_every_commitment_every_change_of_keys_and_the_closing_is_listed(log: list[Entry]) -> None:
    found = [(one.event, re.split(r" \(|:", one.says)[0], one.why) for one in list_all(log)]
    assert found == [
        (0, "Committed to everything held out that decides a score", ""),
        (2, "Committed again to everything held out that decides a score", "two labels"),
        (3, "Keys of the organisers changed", "she left"),
        (4, "Closed for good", ""),
    ]


def test_the_digest_is_the_one_in_the_log(log: list[Entry]) -> None:
    lines = list_all(log)
    assert [line.digest for line in lines[:2]] == [log[n].event.sealed["labels"] for n in (0, 2)]
    assert {line.digest for line in lines[2:]} == {""}
    assert "1 key added, 2 keys dropped" in lines[2].says


def test_the_record_of_an_old_board_commits_to_nothing() -> None:
    assert list_all(grow(OPENED, ("imported-board", {}, False))) == ()


def test_the_page_shows_them_and_says_when_it_was_closed(log: list[Entry]) -> None:
    told = facts(trust=list_all(log), closed=log[-1].time)
    page = render_board(BOARDS["busy"], RULES["busy"], told)["leaderboard/index.html"].decode()
    assert "Closed for good on 5\u00a0Nov\u00a02026" in page
    assert "take-part" not in page
    for entry in (log[0], log[2]):
        assert entry.event.sealed["labels"] in page
    assert "she left" in page
    assert '<a href="#trust">Audit trail</a>' in page


def test_a_reason_is_text() -> None:
    hostile = ("changed-rules", {**RULES_TEXT, "why": "<script>x</script>"}, True)
    told = facts(trust=list_all(grow(OPENED, hostile)))
    page = render_board(BOARDS["busy"], RULES["busy"], told)["leaderboard/index.html"]
    assert b"<script>x" not in page
    assert b"&lt;script&gt;x" in page
