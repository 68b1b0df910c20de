"""What may be told of a ranking, of which entries and from when; nothing before its day."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.events import parse_log
from heldout.board.log.history import read_history
from heldout.board.rules.days import list_early
from heldout.board.rules.spec import Trust, due_day
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import (
    Standings,
    choose_comparable,
    make_standings,
    project,
    read_pairs,
)
from heldout.errors import InputError, StoreError

DAYS = st.dates(date(2026, 1, 1), date(2028, 1, 1))
AFTER = st.one_of(
    st.sampled_from(["season", "closing"]),
    st.integers(1, 400).map(lambda n: f"{n} days"),
    DAYS.map(date.isoformat),
)
ONE, TWO, THREE = "20261101-a", "20261101-b", "20261101-c"
ALLOWED = RULES + '\n[trust]\nafter = "1 day"\n'


@given(AFTER, DAYS, st.none() | DAYS, st.none() | DAYS)
def test_nothing_is_due_before_its_publication_and_all_of_it_at_the_end(
    after: str, published: date, last: date | None, closed: date | None
) -> None:
    day = due_day(Trust(after=after), published, last=last, closed=closed)
    if day is None:
        assert closed is None
        return
    assert day >= published
    ends = [] if last is None or after == "closing" else [last + timedelta(1)]
    ends += [] if closed is None else [closed]
    if ends:
        assert day <= max(published, min(ends))
    if after in ("season", "closing"):
        assert day == max(published, min(ends))


def test_a_delay_counts_from_the_publication_and_a_day_takes_what_came_before_it() -> None:
    first, last = date(2026, 11, 1), date(2027, 3, 31)
    delay, day = Trust(after="30 days"), Trust(after="2026-12-24")
    assert due_day(delay, first, last=last, closed=None) == date(2026, 12, 1)
    assert due_day(delay, last, last=last, closed=None) == date(2027, 4, 1)
    assert due_day(day, first, last=last, closed=None) == date(2026, 12, 24)
    assert due_day(day, date(2026, 12, 24), last=last, closed=None) == date(2027, 4, 1)
    assert due_day(Trust(), first, last=None, closed=None) is None


@pytest.mark.parametrize(
    ("after", "key"),
    [
        ('after = "soon"', "trust.after"),
        ('after = "0 days"', "trust.after"),
        ('after = "2027-02-30"', "trust.after"),
        ('show = ["ranges", "ranges"]', "trust.show"),
        ('show = ["everything"]', "trust.show"),
    ],
    ids=["soon", "zero", "no-day", "twice", "unknown"],
)
def test_a_wrong_table_is_refused_with_its_line(after: str, key: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec((RULES + f"\n[trust]\n{after}\n").encode())
    [problem] = caught.value.problems
    assert problem.line is not None
    assert key in problem.found


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)
ALIKE = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("abcdefgh")))


@given(NAMES, ALIKE, st.frozensets(st.sampled_from("abcdefgh")))
def test_each_entry_is_compared_with_all_but_its_like(
    names: list[str], alike: Mapping[str, frozenset[str]], hidden: frozenset[str]
) -> None:
    found = choose_comparable(names, alike, hidden)
    assert sorted((*found.entries, *found.left_out)) == sorted(names)
    assert list(found.entries) == [name for name in names if name in found.entries]
    for a in found.entries:
        like = {b for b in found.entries if b in alike.get(a, ()) or a in alike.get(b, ())} - {a}
        assert found.alike[a] == like
        assert len(like) < len(found.entries) - 1  # so there is somebody to compare it with
        assert not (a in hidden and like)
    assert read_pairs(found.pairs, found.entries) == found.alike
    assert all(found.entries.index(a) < found.entries.index(b) for a, b in found.pairs)


def test_a_leader_that_is_like_an_earlier_entry_is_compared_with_the_others() -> None:
    found = choose_comparable(["old", "other", "leader"], {"leader": {"old"}})
    assert found.entries == ("old", "other", "leader")
    assert found.pairs == (("old", "leader"),)
    assert found.left_out == {}


def test_a_pair_that_would_say_who_is_behind_an_embargo_is_not_named() -> None:
    found = choose_comparable(["hidden", "b", "c"], {"b": {"hidden"}}, {"hidden"})
    assert found.entries == ("b", "c")
    assert found.pairs == ()
    assert found.left_out == {"hidden": "withheld"}


def test_what_is_like_all_others_is_left_out() -> None:
    found = choose_comparable(["a", "b", "c"], {"a": {"b", "c"}})
    assert found.left_out == {"a": "near"}
    assert choose_comparable(["a", "b"], {"a": {"b"}}).entries == ()


def board(rules: str = ALLOWED) -> BoardLog:
    log = BoardLog().open(rules)
    log.baseline("20261101-bm25", "0.3")
    for name, score in ((ONE, "0.5"), (TWO, "0.4"), (THREE, "0.35")):
        log.submit(name, make_manifest(), score)
    return log


def stand(log: BoardLog, *, days: float = 0) -> Standings:
    now = log.entries[-1].time + timedelta(days=days)
    rules = log.history.rules[-1][1]
    public = project(log.entries, now=now)
    shown = make_standings(public, parse_spec(rules.encode()), now=now)
    assert shown == make_standings(log.entries, parse_spec(rules.encode()), now=now)
    return shown


def told(log: BoardLog) -> dict[str, tuple[int | None, int | None, str]]:
    return {row.id: (row.rank_low, row.rank_high, row.unranged) for row in stand(log).rows}


def test_a_board_that_allows_nothing_says_nothing() -> None:
    assert set(told(board(RULES)).values()) == {(None, None, "")}


def test_before_the_day_the_row_says_when() -> None:
    ranges = told(board())
    assert ranges[ONE][:2] == (None, None)
    assert ranges[ONE][2].startswith("published from 20")
    assert ranges["20261101-bm25"][2] == "a baseline has no rank"


def test_an_entry_that_was_not_compared_widens_the_ranges_of_the_others() -> None:
    log = board().wait(days=2)
    ranges = {"low": [1, 2], "high": [1, 2], "level": 0.95, "flips": 100, "pairs": 1}
    log.measure(ONE, TWO, ranges=ranges)
    shown = told(log)
    assert shown[ONE] == (1, 2, "")
    assert shown[TWO] == (2, 3, "")
    assert shown[THREE][:2] == (None, None)


def test_ranges_of_scores_that_were_corrected_since_are_not_shown() -> None:
    log = board().wait(days=2)
    log.measure(ONE, TWO)
    assert stand(log).measured is not None
    log.wait(days=1)
    log.correct(TWO, "0.39")
    assert stand(log).measured is None
    assert told(log)[ONE][:2] == (None, None)


@given(st.integers(0, 60), st.integers(0, 60))
def test_no_page_shows_figures_before_their_day(passed: int, asked: int) -> None:
    log = board().wait(days=passed)
    day = log.entries[-1].time.date() + timedelta(passed)
    log.measure(ONE, TWO, due=day.isoformat())
    entries = parse_log(log.data, path="log.jsonl")
    if entries[-1].time.date() < day:
        with pytest.raises(StoreError, match="before its day"):
            read_history(entries)
        return
    moment = entries[-1].time + timedelta(days=asked - 30)
    shown = make_standings(entries, parse_spec(ALLOWED.encode()), now=moment)
    assert (shown.measured is not None) == (moment.date() >= day)


def test_what_rules_did_not_allow_then_is_found() -> None:
    early = board()
    early.measure(ONE, TWO)
    assert ["before the day" in one for one in list_early(early.history)] == [True]
    never = board(RULES).wait(days=400)
    never.measure(ONE, TWO)
    assert ["did not allow" in one for one in list_early(never.history)] == [True]
    right = board().wait(days=2)
    right.measure(ONE, TWO)
    assert [*list_early(right.history)] == []


@pytest.mark.parametrize(
    "figures",
    [
        {"ranges": {"low": [1], "high": [2], "level": 0.9, "flips": 9, "pairs": 1}},
        {"ranges": {"low": [2, 1], "high": [1, 2], "level": 0.9, "flips": 9, "pairs": 1}},
        {"progress": [{"entry": THREE, "significant": True, "family": 1}]},
        {"alike": [[ONE, THREE]]},
        {"alike": [[ONE, ONE]]},
        {"alike": [[ONE, TWO], [TWO, ONE]]},
    ],
    ids=[
        *("too-few", "crossed", "not-compared"),
        *("unknown-like", "like-itself", "pair-twice"),
    ],
)
def test_figures_that_do_not_fit_their_entries_are_refused(figures: dict[str, Any]) -> None:
    log = board().wait(days=2)
    log.measure(ONE, TWO, **figures)
    with pytest.raises(StoreError, match="measured"):
        read_history(parse_log(log.data, path="log.jsonl"))
