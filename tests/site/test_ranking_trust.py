"""Can I trust this ranking? What a page says of it, when, and never of whom."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from sample_boards import AS_OF, BOARDS, RULES, busy, facts, spec, trusted

from heldout.board.spec import BoardSpec
from heldout.board.standings import Standings
from heldout.board.trust import Trust
from heldout.site.render import render_board


def page(board: Standings, rules: BoardSpec, **changes: object) -> str:
    files = render_board(board, rules, facts(**changes))
    text = files["leaderboard/index.html"].decode().replace("\u00a0", " ")
    return re.sub(r"\s+", " ", text)


def section(text: str) -> str:
    found = re.search(r'<section class="ranking-trust".*?</section>', text)
    return "" if found is None else found[0]


def test_a_board_that_allows_nothing_has_no_section() -> None:
    files = render_board(BOARDS["busy"], RULES["busy"], facts())
    assert "Can I trust this ranking?" not in files["leaderboard/index.html"].decode()
    assert "leaderboard/trust.json" not in files


@pytest.mark.parametrize(
    ("after", "closes", "words"),
    [
        ("season", date(2027, 3, 31), "from 01 Apr 2027 on"),
        ("season", None, "once the board is closed"),
        ("closing", date(2027, 3, 31), "once the board is closed"),
        ("30 days", None, "30 days after an entry is published"),
        ("2027-01-02", None, "from 02 Jan 2027 on, of what was published before"),
    ],
    ids=["season", "open-ended", "closing", "delay", "day"],
)
def test_what_is_not_allowed_yet_is_announced(after: str, closes: date | None, words: str) -> None:
    said = section(page(busy(6), spec(trust=Trust(after=after), closes=closes)))
    assert f"Told {words}: ranges of ranks" in said
    assert "<table" not in said


def test_what_is_due_and_not_computed_yet_is_said() -> None:
    past = section(page(busy(6), spec(trust=Trust(after="1 day"))))
    assert "Due since " in past
    closed = datetime(2026, 11, 1, tzinfo=UTC)
    assert "Due since " in section(page(busy(6), spec(trust=Trust()), closed=closed))


def test_every_figure_comes_with_its_test_correction_family_and_data() -> None:
    said = section(page(BOARDS["trusted"], RULES["trusted"]))
    assert "max-t over one family of 90 hypotheses, 45 pairs in both directions" in said
    assert "1,000 resamplings of 1,050 queries" in said
    assert "Holm over one family of 18 hypotheses, 9 pairs of neighbours" in said
    assert 'href="trust.json"' in said
    assert "No official against dev scores over time" in said
    assert "(nearly the same as an earlier entry)" in said


def test_the_data_hold_what_the_page_shows() -> None:
    files = render_board(BOARDS["trusted"], RULES["trusted"], facts())
    data = json.loads(files["leaderboard/trust.json"])
    rows = {r["id"]: r for r in json.loads(files["leaderboard/leaderboard.json"])["rows"]}
    more = sum(r["rank"] is not None for r in rows.values()) - len(data["entries"])
    ranges = data["figures"]["ranges"]
    for name, low, high in zip(data["entries"], ranges["low"], ranges["high"], strict=True):
        assert (rows[name]["rank_low"], rows[name]["rank_high"]) == (low, high + more)
        assert low <= rows[name]["rank"] <= high + more


def test_the_lead_group_ends_with_a_line_and_stars_have_words() -> None:
    text = page(BOARDS["trusted"], RULES["trusted"])
    assert text.count('class="lead-end"') == 1
    assert '★</span><span class="unseen"> best when submitted, significantly' in text
    assert '☆</span><span class="unseen"> best when submitted, within noise' in text


def test_a_lead_group_with_a_gap_has_no_line() -> None:
    board = trusted()
    rows = list(board.rows)
    last = max(n for n, row in enumerate(rows) if row.rank_low is not None)
    rows[last] = replace(rows[last], rank_low=1)
    assert 'class="lead-end"' not in page(replace(board, rows=tuple(rows)), RULES["trusted"])


def test_an_entry_s_page_has_its_neighbours_and_no_others() -> None:
    files = render_board(BOARDS["trusted"], RULES["trusted"], facts())
    board = BOARDS["trusted"]
    assert board.measured is not None
    first, second = board.measured.entries[:2]
    for name, pairs in ((first, 1), (second, 2)):
        text = files[f"leaderboard/entries/{name}.html"].decode()
        assert text.count('<div class="outcome">') == pairs
    newest = files[f"leaderboard/entries/{next(iter(board.measured.left_out))}.html"].decode()
    assert "outcome" not in newest


def test_no_name_behind_an_embargo_is_in_the_section() -> None:
    board = trusted()
    assert board.measured is not None
    hidden = board.measured.entries[0]
    rows = tuple(
        replace(r, embargoed=True, team="Secret", description="Hidden system", embargo_until=None)
        if r.id == hidden
        else r
        for r in board.rows
    )
    files = render_board(replace(board, rows=rows), RULES["trusted"], facts())
    assert not [name for name, data in files.items() if b"Hidden system" in data]
    assert "an anonymous entry" in section(page(replace(board, rows=rows), RULES["trusted"]))


def test_the_same_board_gives_the_same_bytes() -> None:
    first, second = (render_board(trusted(), RULES["trusted"], facts()) for _ in range(2))
    assert first == second
    assert BOARDS["trusted"].as_of == AS_OF


def test_the_chart_of_records_says_which_were_significant() -> None:
    text = page(BOARDS["trusted"], RULES["trusted"])
    chart = re.search(r'<figure class="figure progress".*?</figure>', text)
    assert chart is not None
    assert "★: significantly better than the best before it when it came" in chart[0]
    assert re.search(r">[★☆] \w", chart[0])
    assert "★" not in page(BOARDS["busy"], RULES["busy"])
