"""The section Confidence: what a page says of it, when, and never of whom."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime

import msgspec
import pytest
from sample_boards import BOARDS, RULES, busy, facts, seasonal, spec, trusted

from heldout.board.rules.spec import BoardSpec, Trust
from heldout.board.site.pages import make_board_page, render_board
from heldout.board.standings.standings import Standings, best_so_far


def page(board: Standings, rules: BoardSpec, **changes: object) -> str:
    files = render_board(board, rules, facts(**changes))
    text = files["leaderboard/index.html"].decode().replace("\u00a0", " ")
    return re.sub(r"\s+", " ", text)


def section(text: str) -> str:
    found = re.search(r'<section class="ranking-trust".*?</section>', text)
    return "" if found is None else found[0]


def test_a_board_that_allows_nothing_has_no_section() -> None:
    files = render_board(BOARDS["busy"], RULES["busy"], facts())
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
    past = section(page(busy(6), spec(trust=Trust(after="1 day"))))
    assert "Due since " in past
    closed = datetime(2026, 11, 1, tzinfo=UTC)
    assert "Due since " in section(page(busy(6), spec(trust=Trust()), closed=closed))


def test_every_figure_comes_with_its_test_correction_family_and_data() -> None:
    said = section(page(BOARDS["trusted"], RULES["trusted"]))
    assert "max-t over one family of 90 hypotheses, each pair in both directions" in said
    assert 'href="trust.json"' in said
    assert "(nearly the same as others)" in said


def test_the_data_hold_what_the_page_shows() -> None:
    files = render_board(BOARDS["trusted"], RULES["trusted"], facts())
    data = json.loads(files["leaderboard/trust.json"])
    rows = {r["id"]: r for r in json.loads(files["leaderboard/leaderboard.json"])["rows"]}
    more = sum(r["rank"] is not None for r in rows.values()) - len(data["entries"])
    ranges = data["figures"]["ranges"]
    for name, low, high in zip(data["entries"], ranges["low"], ranges["high"], strict=True):
        assert (rows[name]["rank_low"], rows[name]["rank_high"]) == (low, high + more)
        assert low <= rows[name]["rank"] <= high + more


def test_no_name_behind_an_embargo_is_in_the_section() -> None:
    board = trusted()
    assert board.measured is not None
    hidden = board.measured.entries[0]
    rows = tuple(
        replace(r, identity=None, embargo_until=None) if r.id == hidden else r for r in board.rows
    )
    assert "an anonymous entry" in section(page(replace(board, rows=rows), RULES["trusted"]))


def test_the_chart_of_records_says_which_were_significant() -> None:
    text = page(BOARDS["trusted"], RULES["trusted"])
    chart = re.search(r'<figure class="figure progress".*?</figure>', text)
    assert chart is not None
    assert "★: significantly better than the best before it when it came" in chart[0]
    assert re.search(r">[★☆] \w", chart[0])
    assert "★" not in page(BOARDS["busy"], RULES["busy"])


def test_records_in_the_section_are_those_of_the_chart_whatever_was_compared() -> None:
    board = trusted()
    assert board.measured is not None
    spec_ = RULES["trusted"]
    shown = [row for row in board.rows if row.baseline or row.rank is not None]
    records = best_so_far(shown, spec_.primary, bar=spec_.baselines.bar)
    said = section(page(board, spec_))
    _, _, left_out = said.partition("Not compared: ")
    marked = {
        name
        for line in re.findall(r"<tr>.*?</tr>", said, re.DOTALL)
        if 'class="record"' in line
        for name in re.findall(r'href="entries/([^"]*)\.html"', line)
    }
    compared = {row.id for row in records if row.id in board.measured.entries}
    assert marked == compared
    assert compared
    for row in records:
        assert row.id in compared or row.baseline or f'{row.id}.html"' in left_out


def test_a_record_that_is_like_the_best_before_it_is_said_to_be() -> None:
    board = trusted()
    assert board.measured is not None
    figures = board.measured.figures
    assert figures.progress is not None
    first, second = (step.entry for step in figures.progress[:2])
    told = msgspec.structs.replace(figures, alike=((first, second),))
    like = replace(board, measured=replace(board.measured, figures=told))
    words = "nearly the same as the best before it, so not compared with it"
    assert words in section(page(like, RULES["trusted"]))
    assert words not in section(page(board, RULES["trusted"]))


def test_pairs_that_are_not_compared_are_named_with_the_reason() -> None:
    said = section(page(BOARDS["trusted"], RULES["trusted"]))
    board = BOARDS["trusted"]
    assert board.measured is not None
    [(one, other)] = board.measured.figures.alike or ()
    pair = re.search(r"so not compared with each other: .*?\.</p>", said)
    assert pair is not None
    assert pair[0].index(one) < pair[0].index(other)
    assert "each is compared with all others" in said


def test_the_page_of_seasons_has_the_ranges_of_each_season_that_tells_it() -> None:
    [winter], rules = seasonal()
    told = winter.standings
    assert told.measured is not None
    shown = msgspec.structs.replace(told.measured.figures, ranges=None, progress=None)
    silent = replace(told, measured=replace(told.measured, figures=shown))
    for board, maps in ((told, 1), (replace(told, measured=None), 0), (silent, 0)):
        seasons = [replace(winter, standings=board)]
        files = render_board(board, rules, facts(), seasons=seasons)
        text = files["leaderboard/seasons.html"].decode()
        assert text.count('<table class="heat"') == maps
        assert text.count('href="trust-winter.json"') == maps
        assert ('id="ranks-season-winter"' in text) == bool(maps)


def test_the_ranges_are_those_of_the_table() -> None:
    made = make_board_page(trusted(), RULES["trusted"], facts())
    assert made.ranking_trust is not None
    assert trusted().measured is not None
    ranges = {row.id: row.ranks for row in made.table.rows if row.span}
    assert {one.row.id: one.row.ranks for one in made.ranking_trust.ranks} == ranges
    assert all(ranges.values())
