"""A log whose hashes and fields are right, in an order that cannot be, is refused."""

from collections.abc import Callable, Mapping
from datetime import date

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.event_fields import EVENTS, BoardFields
from heldout.board.log.events import redact
from heldout.board.log.history import read_history
from heldout.errors import StoreError

NAME = "20261101-a"
HIDDEN = make_manifest(embargo_until=date(2026, 12, 1))
Step = Callable[[BoardLog], object]


def test_every_kind_about_an_entry_has_its_line() -> None:
    about = {kind for kind, one in EVENTS.items() if not issubclass(one.fields, BoardFields)}
    assert {kind for kind, one in EVENTS.items() if one.after} == about


STEPS: Mapping[str, Step] = {
    "received": lambda log: log.receive(NAME),
    "reviewed": lambda log: log.review(NAME, HIDDEN),
    "score-shown": lambda log: log.add("score-shown", NAME),
    "asked": lambda log: log.add("asked", NAME, {"why": "who?"}),
    "updated": lambda log: log.update(NAME, HIDDEN),
    "withdrawn": lambda log: log.update(NAME, HIDDEN, withdrawn=True),
    "rejected": lambda log: log.reject(NAME),
    "published": lambda log: log.publish(NAME, HIDDEN, "0.4"),
    "corrected": lambda log: log.add("corrected", NAME, {"why": "labels", "scores": {}}),
    "proposed": lambda log: log.propose(NAME, HIDDEN),
    "amended": lambda log: log.add("amended", NAME, _proposed()),
    "declined": lambda log: log.decline(NAME),
    "extended": lambda log: log.add(
        "extended", NAME, {"embargo_until": "2027-01-01", "why": "a review"}
    ),
    "baseline": lambda log: log.baseline(NAME, "0.3"),
}


def _proposed() -> Mapping[str, object]:
    other = BoardLog()
    other.propose(NAME, HIDDEN)
    entry = other.entries[0]
    return {"files": entry.get("files"), "identity": entry.get("identity"), "revision": 2}


BEFORE: Mapping[str, tuple[str, ...]] = {
    "new": (),
    "received": ("received",),
    "reviewed": ("received", "reviewed"),
    "asked": ("received", "reviewed", "asked"),
    "withdrawn": ("received", "withdrawn"),
    "rejected": ("received", "rejected"),
    "embargoed": ("received", "reviewed", "published"),
    "proposed": ("received", "reviewed", "published", "proposed"),
    "baseline": ("baseline",),
}


@pytest.mark.parametrize("state", BEFORE)
@pytest.mark.parametrize("kind", STEPS)
def test_an_event_comes_after_what_it_can_come_after(state: str, kind: str) -> None:
    log = BoardLog().open()
    for step in BEFORE[state]:
        STEPS[step](log)
    read_history(log.entries)
    STEPS[kind](log)
    states = {state, *(("published",) * ("published" in BEFORE[state]))}
    states |= {"embargoed"} if "published" in states else set()
    if states & EVENTS[kind].after:
        read_history(log.entries)
        return
    number = len(log.entries) - 1
    with pytest.raises(StoreError, match=rf"event {number} \('{kind}'.* before it"):
        read_history(log.entries)
    with pytest.raises(StoreError, match="cannot be"):  # who sees nothing sealed sees it too
        read_history(redact(entry, ()) for entry in log.entries)


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
def test_no_order_of_events_publishes_what_was_not_received_or_was_refused(
    kinds: list[str],
) -> None:
    log = BoardLog().open()
    for kind in kinds:
        STEPS[kind](log)
        try:
            read_history(log.entries)
        except StoreError:
            log.entries.pop()
    order = (
        [kind for _, kind, _ in read_history(log.entries).submissions[NAME].events]
        if (len(log.entries) > 1)
        else []
    )
    assert order.count("published") <= 1
    if "published" in order:
        before = order[: order.index("published")]
        assert before[0] == "received"
        decided = [kind for kind in before if kind in ("received", "rejected", "withdrawn")]
        assert decided[-1] == "received"


def test_an_embargo_that_is_over_is_not_extended() -> None:
    log = BoardLog().open()
    for step in BEFORE["embargoed"]:
        STEPS[step](log)
    log.wait(days=40)
    STEPS["extended"](log)
    with pytest.raises(StoreError, match=r"'extended'.* is published before it"):
        read_history(log.entries)


def test_a_closed_board_takes_nothing_new_and_is_opened_once() -> None:
    log = BoardLog().open()
    log.submit(NAME, make_manifest(), "0.4")
    log.add("closed-board", None, {"open_runs": []})
    read_history(log.entries)
    log.receive("20261101-b")
    with pytest.raises(StoreError, match=r"event 5 .* came after the board was closed"):
        read_history(log.entries)
    log.entries.pop()
    log.add("closed-board", None, {"open_runs": [NAME]})
    with pytest.raises(StoreError, match="came after the board was closed"):
        read_history(log.entries)
    again = BoardLog().open()
    again.open(RULES)
    with pytest.raises(StoreError, match="opens a board that is open"):
        read_history(again.entries)


def test_labels_in_the_open_bind_nobody_and_are_refused() -> None:
    log = BoardLog().open()
    log.add("changed-rules", None, {"board.toml": RULES, "labels": {"eval": "0" * 64}})
    with pytest.raises(StoreError, match="field 'labels' stands in the open"):
        read_history(log.entries)


def test_only_rules_change_labels() -> None:
    log = BoardLog().open()
    before = log.history.labels
    fields = {"board.toml": RULES, "added": [], "removed": [], "why": "a laptop", "old_keys": ""}
    later: dict[str, object] = {"grace_until": None, "sealed_again": {}, "not_opened": []}
    log.add("rekeyed", None, {**fields, **later}, {"labels": {"eval": "0" * 64}})
    assert log.history.labels == before
    assert len(log.history.commitments) == 1
