"""A log whose hashes are right and whose events are nonsense is refused, and says where."""

from datetime import UTC, datetime
from typing import Any

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.event_fields import EVENTS, check_fields
from heldout.board.log.events import KINDS, parse_log, redact
from heldout.board.log.history import read_history
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import current_standings
from heldout.errors import HeldoutError, StoreError

NOW = datetime(2028, 1, 1, tzinfo=UTC)
NAME = "20261101-a"


def test_every_kind_of_event_has_its_fields() -> None:
    assert set(EVENTS) == KINDS


def whole() -> BoardLog:
    log = BoardLog().open()
    log.baseline("20261101-bm25", "0.3")
    log.submit(NAME, make_manifest(), "0.4")
    return log


MISSING = {
    ("received", "files"): "event 4 ('received', line 5 of the log): field 'files' is missing",
    ("published", "type"): "field 'type' is missing",
    ("corrected", "why"): "field 'why' is missing",
    ("extended", "embargo_until"): "field 'embargo_until' is missing",
    ("updated", "files"): "field 'files' is missing",
    ("rejected", "why"): "field 'why' is missing",
}
FULL: dict[str, dict[str, Any]] = {
    "received": {"files": {}},
    "published": {"type": "full ranking"},
    "corrected": {"why": "x"},
    "extended": {"embargo_until": "2027-01-01", "why": "x"},
    "updated": {"files": {}},
    "rejected": {"why": "x"},
}


@pytest.mark.parametrize(("kind", "field"), MISSING)
@pytest.mark.parametrize("how", ["missing", "null"])
def test_a_field_that_is_missing_is_named(kind: str, field: str, how: str) -> None:
    log = BoardLog().open()
    for number in (1, 2, 3):
        log.receive(f"2026110{number}-x")
    log.add(kind, NAME, FULL[kind])
    check_fields(log.entries[-1])
    log.entries.pop()
    public = {name: value for name, value in FULL[kind].items() if name != field}
    log.add(kind, NAME, public | ({field: None} if how == "null" else {}))
    with pytest.raises(StoreError, match=f"event 4 .*{kind}.*'{field}'") as told:
        read_history(log.entries)
    if how == "missing":
        assert MISSING[kind, field] in str(told.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scores", {"eval": 0.4}),
        ("scores", {"eval": "high"}),
        ("scores", {"eval": "NaN"}),
        ("scores", ["0.4"]),
        ("queries", {"eval": -1}),
        ("queries", {"eval": True}),
        ("embargo_until", "2027-02-30"),
        ("identity", {"team": "Lighthouse"}),
        ("identity", "Lighthouse"),
        ("revision", "2"),
        ("final", {}),
        ("evidence", {"eval": "short"}),
    ],
)
def test_a_field_of_another_type_is_named(field: str, value: object) -> None:
    log = whole()
    log.publish("20261101-b", make_manifest(), "0.4", public={field: value})
    with pytest.raises(StoreError, match=f"field '{field}'"):
        read_history(log.entries)


def test_what_everybody_goes_by_may_not_be_sealed() -> None:
    log = whole()
    log.add("published", "20261101-b", {}, {"type": "full ranking"})
    with pytest.raises(StoreError, match="'type' is missing, or sealed where it may not be"):
        read_history(log.entries)


def test_a_sealed_field_may_hold_anything_as_long_as_it_is_sealed() -> None:
    log = whole()
    log.add("reviewed", NAME, {}, {"identity": 7})
    read_history([redact(entry, ()) for entry in log.entries])
    with pytest.raises(StoreError, match="'identity'"):
        read_history(log.entries)


@pytest.mark.parametrize(
    ("kind", "submission", "told"),
    [("closed-board", NAME, "names a submission"), ("rejected", None, "names no submission")],
)
def test_an_event_about_the_wrong_thing(kind: str, submission: str | None, told: str) -> None:
    log = whole()
    log.add(kind, submission, {"open_runs": [], "why": "x"})
    with pytest.raises(StoreError, match=told):
        read_history(log.entries)


def test_a_log_begins_with_the_opening() -> None:
    log = BoardLog()
    log.receive(NAME)
    with pytest.raises(StoreError, match="begins with 'opened-board'"):
        read_history(log.entries)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "0.4", "x", NAME])
    | st.just("2027-01-01")
    | st.just("a" * 64)
    | st.just("\ud7ff"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["eval", "dev", "scores", "queries", "team"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
NAMES = sorted({name for one in EVENTS.values() for name in one.fields.__struct_encode_fields__})
PARTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
RIGHT: dict[str, Any] = {
    "board.toml": RULES,
    "type": "full ranking",
    "why": "x",
    "files": {},
    "scores": {"eval": "0.4", "dev": "0.4"},
    "queries": {"eval": 9, "dev": 9},
    "embargo_until": None,
    "open_runs": [],
    "sealed_again": {},
    "view": "final",
    "finalists": [NAME],
    "final_scores": {NAME: "0.4"},
    "best": NAME,
    "below": [],
    "winner": NAME,
    "luck": "",
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from([None, NAME, "x"]), PARTS, PARTS),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_nonsense_with_right_hashes_never_ends_in_a_traceback(
    events: list[tuple[str, str | None, dict[str, Any], dict[str, Any]]],
    shown: bool,  # noqa: FBT001 - hypothesis gives it by place
) -> None:
    log = whole()
    for kind, submission, public, sealed in events:
        given = RIGHT | public
        log.add(kind, submission, given, {n: v for n, v in sealed.items() if n not in given})
    try:
        entries = parse_log(log.data, path="log.jsonl")
        read_history(entries if shown else [redact(entry, ()) for entry in entries])
        current_standings(entries, parse_spec(RULES.encode()), now=NOW)
    except HeldoutError as error:
        assert str(error)  # noqa: PT017 - any refusal will do, as long as it is one
