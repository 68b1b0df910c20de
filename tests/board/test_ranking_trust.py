"""What may be told of a ranking and when, its figures, and what the page says of them."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from boardlog import RULES, BoardLog, find_problems, make_manifest
from certain import sure
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_boards import BOARDS, busy, facts, seasonal, spec, trusted
from sample_boards import RULES as PAGE_RULES

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.analyses.stability import rank_ranges
from heldout.board.log.events import parse_log
from heldout.board.log.final import PARTS, TrustPart, list_wrong
from heldout.board.log.history import read_history
from heldout.board.rules.days import list_early
from heldout.board.rules.spec import BoardSpec, Trust, due_day
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores import measuring
from heldout.board.site.pages import make_board_page, render_board
from heldout.board.standings import standings
from heldout.errors import StoreError
from heldout.scoring.table import table_of

DAYS = st.dates(date(2026, 1, 1), date(2028, 1, 1))
AFTER = st.one_of(
    st.sampled_from(["season", "closing"]),
    st.integers(1, 400).map(lambda n: f"{n} days"),
    DAYS.map(date.isoformat),
)
ONE, TWO, THREE = "20261101-a", "20261101-b", "20261101-c"
ALLOWED = RULES + '\n[trust]\nafter = "1 day"\n'


@given(AFTER, DAYS, st.none() | DAYS, st.none() | DAYS)
def test_what_is_due(after: str, published: date, last: date | None, closed: date | None) -> None:
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
    [problem] = find_problems(f"{RULES}\n[trust]\n{after}\n")
    assert problem.line is not None
    assert key in problem.found


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)
ALIKE = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("abcdefgh")))


@given(NAMES, ALIKE, st.frozensets(st.sampled_from("abcdefgh")))
def test_each_entry_is_compared_with_all_but_its_like(
    names: list[str], alike: Mapping[str, frozenset[str]], hidden: frozenset[str]
) -> None:
    found = standings.choose_comparable(names, alike, hidden)
    assert sorted((*found.entries, *found.left_out)) == sorted(names)
    assert list(found.entries) == [name for name in names if name in found.entries]
    for a in found.entries:
        like = {b for b in found.entries if b in alike.get(a, ()) or a in alike.get(b, ())} - {a}
        assert found.alike[a] == like
        assert len(like) < len(found.entries) - 1  # so there is somebody to compare it with
        assert not (a in hidden and like)
    assert standings.read_pairs(found.pairs, found.entries) == found.alike
    assert all(found.entries.index(a) < found.entries.index(b) for a, b in found.pairs)


def test_a_pair_that_would_say_who_is_behind_an_embargo_is_not_named() -> None:
    found = standings.choose_comparable(["hidden", "b", "c"], {"b": {"hidden"}}, {"hidden"})
    assert found.entries == ("b", "c")
    assert found.pairs == ()
    assert found.left_out == {"hidden": "withheld"}


def test_what_is_like_all_others_is_left_out() -> None:
    assert standings.choose_comparable(["a", "b", "c"], {"a": {"b", "c"}}).left_out == {"a": "near"}
    assert standings.choose_comparable(["a", "b"], {"a": {"b"}}).entries == ()


def board(rules: str = ALLOWED) -> BoardLog:
    log = BoardLog().open(rules)
    log.baseline("20261101-bm25", "0.3")
    for name, score in ((ONE, "0.5"), (TWO, "0.4"), (THREE, "0.35")):
        log.submit(name, make_manifest(), score)
    return log


def stand(log: BoardLog, *, days: float = 0) -> standings.Standings:
    now = log.entries[-1].time + timedelta(days=days)
    rules = log.history.rules[-1][1]
    public = standings.project(log.entries, now=now)
    shown = standings.make_standings(public, parse_spec(rules.encode()), now=now)
    assert shown == standings.make_standings(log.entries, parse_spec(rules.encode()), now=now)
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
    shown = standings.make_standings(entries, parse_spec(ALLOWED.encode()), now=moment)
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
    ids=[*("too-few", "crossed", "not-compared"), *("unknown-like", "like-itself", "pair-twice")],
)
def test_figures_that_do_not_fit_their_entries_are_refused(figures: dict[str, Any]) -> None:
    log = board().wait(days=2)
    log.measure(ONE, TWO, **figures)
    with pytest.raises(StoreError, match="measured"):
        read_history(parse_log(log.data, path="log.jsonl"))


def page(board: standings.Standings, rules: BoardSpec, **changes: object) -> str:
    files = render_board(board, rules, facts(**changes))
    text = files["leaderboard/index.html"].decode().replace("\u00a0", " ")
    return re.sub(r"\s+", " ", text)


def section(text: str) -> str:
    found = re.search(r'<section class="ranking-trust".*?</section>', text)
    return "" if found is None else found[0]


def test_a_board_that_allows_nothing_has_no_section() -> None:
    files = render_board(BOARDS["busy"], PAGE_RULES["busy"], facts())
    assert 'class="ranking-trust"' not in files["leaderboard/index.html"].decode()
    assert "leaderboard/trust.json" not in files


@pytest.mark.parametrize(
    ("after", "closes", "words"),
    [
        ("season", date(2027, 3, 31), "from 01 Apr 2027 on"),
        ("season", None, "once the board is closed"),
        ("closing", date(2027, 3, 31), "once the board is closed"),
        ("30 days", None, "30 days after an entry is published"),
        ("2026-11-20", None, "once the board is closed"),
        ("2026-11-20", date(2027, 3, 31), "from 01 Apr 2027 on"),
        ("2027-01-02", None, "from 02 Jan 2027 on, for entries published before that day"),
    ],
    ids=["season", "open-ended", "closing", "delay", "day-over", "day-over-season", "day"],
)
def test_what_is_not_allowed_yet_is_announced(after: str, closes: date | None, words: str) -> None:
    said = section(page(busy(6), spec(trust=Trust(after=after), closes=closes)))
    assert re.search(rf"Ranges of ranks [^.]* appear here {words}\. They are held back", said)
    assert "<table" not in said


def test_what_is_due_and_not_computed_yet_is_said() -> None:
    assert "Due since " in section(page(busy(6), spec(trust=Trust(after="1 day"))))
    closed = datetime(2026, 11, 1, tzinfo=UTC)
    assert "Due since " in section(page(busy(6), spec(trust=Trust()), closed=closed))


def test_every_figure_comes_with_its_test_correction_family_and_data() -> None:
    said = section(page(BOARDS["trusted"], PAGE_RULES["trusted"]))
    assert "max-t over one family of 90 hypotheses, each pair in both directions" in said
    assert 'href="trust.json"' in said
    assert "(nearly the same as others)" in said


def test_the_data_hold_what_the_page_shows() -> None:
    files = render_board(BOARDS["trusted"], PAGE_RULES["trusted"], facts())
    data = json.loads(files["leaderboard/trust.json"])
    rows = {r["id"]: r for r in json.loads(files["leaderboard/leaderboard.json"])["rows"]}
    more = sum(r["rank"] is not None for r in rows.values()) - len(data["entries"])
    ranges = data["figures"]["ranges"]
    for name, low, high in zip(data["entries"], ranges["low"], ranges["high"], strict=True):
        assert (rows[name]["rank_low"], rows[name]["rank_high"]) == (low, high + more)
        assert low <= rows[name]["rank"] <= high + more


def test_no_name_behind_an_embargo_is_in_the_section() -> None:
    board = trusted()
    hidden = sure(board.measured).entries[0]
    rows = tuple(
        replace(r, identity=None, embargo_until=None) if r.id == hidden else r for r in board.rows
    )
    assert "an anonymous entry" in section(page(replace(board, rows=rows), PAGE_RULES["trusted"]))


def test_the_chart_of_records_says_which_were_significant() -> None:
    text = page(BOARDS["trusted"], PAGE_RULES["trusted"])
    chart = sure(re.search(r'<figure class="figure progress".*?</figure>', text))
    assert "★: significantly better than the best before it when it came" in chart[0]
    assert re.search(r">[★☆] \w", chart[0])
    assert "★" not in page(BOARDS["busy"], PAGE_RULES["busy"])


def test_records_in_the_section_are_those_of_the_chart_whatever_was_compared() -> None:
    board = trusted()
    spec_ = PAGE_RULES["trusted"]
    shown = [row for row in board.rows if row.baseline or row.rank is not None]
    records = standings.best_so_far(shown, spec_.primary, bar=spec_.baselines.bar)
    said = section(page(board, spec_))
    _, _, left_out = said.partition("Not compared: ")
    marked = {
        name
        for line in re.findall(r"<tr>.*?</tr>", said, re.DOTALL)
        if 'class="record"' in line
        for name in re.findall(r'href="entries/([^"]*)\.html"', line)
    }
    compared = {row.id for row in records if row.id in sure(board.measured).entries}
    assert marked == compared
    assert compared
    for row in records:
        assert row.id in compared or row.baseline or f'{row.id}.html"' in left_out


def test_a_record_that_is_like_the_best_before_it_is_said_to_be() -> None:
    board = trusted()
    figures = sure(board.measured).figures
    first, second = (step.entry for step in sure(figures.progress)[:2])
    told = msgspec.structs.replace(figures, alike=((first, second),))
    like = replace(board, measured=replace(sure(board.measured), figures=told))
    words = "nearly the same as the best before it, so not compared with it"
    assert words in section(page(like, PAGE_RULES["trusted"]))
    assert words not in section(page(board, PAGE_RULES["trusted"]))


def test_pairs_that_are_not_compared_are_named_with_the_reason() -> None:
    said = section(page(BOARDS["trusted"], PAGE_RULES["trusted"]))
    board = BOARDS["trusted"]
    [(one, other)] = sure(board.measured).figures.alike or ()
    pair = sure(re.search(r"so not compared with each other: .*?\.</p>", said))
    assert pair[0].index(one) < pair[0].index(other)
    assert "each is compared with all others" in said


def test_the_page_of_seasons_has_the_ranges_of_each_season_that_tells_it() -> None:
    [winter], rules = seasonal()
    told = winter.standings
    shown = msgspec.structs.replace(sure(told.measured).figures, ranges=None, progress=None)
    silent = replace(told, measured=replace(sure(told.measured), figures=shown))
    for board, maps in ((told, 1), (replace(told, measured=None), 0), (silent, 0)):
        seasons = [replace(winter, standings=board)]
        files = render_board(board, rules, facts(), seasons=seasons)
        text = files["leaderboard/seasons.html"].decode()
        assert text.count('<table class="heat"') == maps
        assert text.count('href="trust-winter.json"') == maps
        assert ('id="ranks-season-winter"' in text) == bool(maps)


def test_the_ranges_are_those_of_the_table() -> None:
    made = make_board_page(trusted(), PAGE_RULES["trusted"], facts())
    assert trusted().measured is not None
    ranges = {row.id: row.ranks for row in made.table.rows if row.span}
    assert {one.row.id: one.row.ranks for one in sure(made.ranking_trust).ranks} == ranges
    assert all(ranges.values())


QUERIES = 60
START = datetime(2026, 11, 1, tzinfo=UTC)


def view(name: str, rows: Mapping[str, np.ndarray], *, public: bool = True) -> ViewScores:
    scores = {s: {f"q{i:02}": float(v) for i, v in enumerate(row)} for s, row in rows.items()}
    return ViewScores(
        view=name,
        queries=name,
        measure="RR@10",
        public=public,
        held_out=name != "dev",
        means={s: float(row.mean()) for s, row in rows.items()},
        table=table_of(scores),
    )


def scores_of(systems: int = 5, *, seed: int = 1) -> BoardScores:
    """Systems from bad to good, and a baseline; scores are reciprocal ranks."""
    rng = np.random.default_rng(seed)
    names = ["base", *(f"s{n}" for n in range(systems))]
    values = np.array([0, 0.1, 0.25, 0.5, 1.0])
    rows = {}
    for n, name in enumerate(names):
        weights = np.arange(1, 6) ** (n / 2)
        rows[name] = rng.choice(values, size=QUERIES, p=weights / weights.sum())
    dev = {name: np.roll(row, 1) for name, row in rows.items()}
    return BoardScores(
        board="b",
        entries=tuple(
            BoardEntry(id=s, received=START + timedelta(days=9 * n), baseline=s == "base")
            for n, s in enumerate(names)
        ),
        views={"eval": view("eval", rows), "dev": view("dev", dev)},
        primary="eval",
    )


def compare(scores: BoardScores) -> measuring.Compared:
    means = scores.view().means
    names = [e.id for e in scores.entries if not e.baseline]
    released = {name: round(mean, 3) for name, mean in means.items()}
    ranked = sorted(names, key=lambda name: -means[name])
    return sure(measuring.choose_compared(scores, ranked, released=released))


@settings(max_examples=5)
@given(st.sets(st.sampled_from(PARTS)), st.integers(0, 99))
def test_a_part_is_the_same_whatever_else_is_told(show: set[TrustPart], seed: int) -> None:
    compared = compare(scores_of())
    every = measuring.measure_ranking(compared, PARTS, seed=seed)
    some = measuring.measure_ranking(compared, sorted(show), seed=seed)
    assert some.published == show
    assert all(getattr(some, part) == getattr(every, part) for part in show)
    assert [*list_wrong(every, compared.table.systems)] == []


def test_clear_differences_are_told_apart_and_copies_of_noise_are_not() -> None:
    figures = measuring.measure_ranking(compare(scores_of(systems=6)), PARTS, seed=0)
    assert figures.why == {}
    assert sure(figures.ranges).low[0] > 1  # the first that came is the worst
    assert sure(figures.ranges).high[-1] < 6


def test_a_pair_that_differs_in_one_query_is_near_and_counts_would_give_its_label_away() -> None:
    rows = {"a": np.zeros(QUERIES), "b": np.zeros(QUERIES), "c": np.zeros(QUERIES)}
    rows["b"][0] = 1
    rows["c"][: standings.FEWEST_DIFFERENT] = 1
    near = measuring.find_near_scores(sure(view("eval", rows).table))
    assert near == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}


def test_without_near_entries_ranges_are_those_of_the_analyses() -> None:
    compared = compare(scores_of())
    table, apart = compared.table, compared.apart
    for seed in (0, 1):
        mine, theirs = (np.random.default_rng(seed) for _ in range(2))
        ranges = measuring.measure_ranges(table, apart, mine, better="higher")
        known = rank_ranges(table, theirs)
        rows = [known.systems.index(name) for name in table.systems]
        assert ranges.low == tuple(known.low[row] for row in rows)
        assert ranges.high == tuple(known.high[row] for row in rows)


def with_copy(change: int) -> tuple[BoardScores, measuring.Compared]:
    """The best system again, with another score on some queries, as the last entry."""
    scores = scores_of(systems=6)
    table = sure(scores.view().table)
    rows = dict(zip(table.systems, table.values, strict=True))
    row = rows["s5"].copy()
    row[np.flatnonzero(row > 0.1)[:change]] = 0.1
    rows["copy"] = row
    entry = BoardEntry(id="copy", received=START + timedelta(days=99))
    views = {"eval": view("eval", rows), "dev": view("dev", rows)}
    both = replace(scores, entries=(*scores.entries, entry), views=views)
    found = compare(both)
    released = {name: round(mean, 3) for name, mean in both.view().means.items()}
    return both, replace(found, alike=(("s5", "copy"),), released=released)


def test_of_two_near_entries_each_is_compared_with_all_others_and_not_with_the_other() -> None:
    _, compared = with_copy(5)
    figures = measuring.measure_ranking(compared, PARTS, seed=0)
    assert [*list_wrong(figures, compared.table.systems)] == []
    place = {name: at for at, name in enumerate(compared.table.systems)}
    for name in ("s5", "copy"):
        assert sure(figures.ranges).low[place[name]] == 1
        assert 2 <= sure(figures.ranges).high[place[name]] < 7  # better than some of the others


def test_records_are_those_of_the_released_scores_and_a_like_is_no_test() -> None:
    both, compared = with_copy(5)
    higher = {**compared.released, "copy": 0.999}
    figures = measuring.measure_ranking(replace(compared, released=higher), ["progress"], seed=0)
    assert figures.progress is not None
    assert [step.entry for step in figures.progress][-1] == "copy"
    assert figures.progress[-1].significant is None
    steps = measuring.measure_ranking(compared, ["progress"], seed=0).progress or ()
    assert "copy" not in [step.entry for step in steps]
    assert figures.progress[-1].family == len([e for e in both.entries if not e.baseline])


def test_no_figure_looks_at_a_private_view_or_one_for_information() -> None:
    plain = scores_of()
    rows = {s: np.zeros(QUERIES) for s in plain.views["eval"].means}
    views = dict(plain.views) | {"reserve": view("reserve", rows, public=False)}
    for name in ("feedback", "check"):
        views[name] = replace(view(name, rows), for_information=True)
    ranked = sorted(n for n in plain.views["eval"].means if n != "base")
    found = sure(measuring.choose_compared(replace(plain, views=views), ranked, released={}))
    assert found.board.views.keys() == plain.views.keys()


def test_one_entry_or_missing_scores_are_not_compared() -> None:
    scores = scores_of()
    assert measuring.choose_compared(scores, ["s0"], released={}) is None
    assert measuring.choose_compared(scores, ["s0", "unknown"], released={}) is None
