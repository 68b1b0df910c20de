"""What pages say of an embargoed entry; tests/board/test_embargo_bytes.py tries what they hide."""

from datetime import date
from typing import Any

from page_documents import Document, render_page
from sample_boards import baseline, facts, row, spec, standings

from heldout.board.site.pages import make_board_page, render_board
from heldout.board.standings.standings import Standings


def _secretive(until: date, **changes: Any) -> Standings:
    hidden = row(
        "0.500",
        "0.510",
        days=400,
        id="20261006-x7f3",
        embargoed=True,
        embargo_until=until,
        **changes,
    )
    return standings([baseline(), hidden, row("0.4", "0.41", days=3), row("0.3", "0.31", days=9)])


def test_an_embargoed_entry_is_anonymous_with_its_score() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    document = Document(files["leaderboard/index.html"])
    assert "Anonymous until 20 May 2027" in document.text
    assert "0.500" in document.text
    entry = Document(files["leaderboard/entries/20261006-x7f3.html"])
    assert "Team, description, paper and code are withheld; score" in entry.text
    assert "{{Anonymous}}" in entry.text


def test_a_reveal_that_is_due_is_told() -> None:
    board = _secretive(date(2026, 11, 18), reveal_due=True)
    files = render_board(board, spec(), facts())
    text = Document(files["leaderboard/index.html"]).text
    assert "Anonymous; reveal due since 18 Nov 2026" in text
    assert (
        "until the organisers rebuild"
        in Document(files["leaderboard/entries/20261006-x7f3.html"]).text
    )


def test_the_script_knows_the_day_of_a_reveal() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    for path in ("index.html", "entries/20261006-x7f3.html"):
        elements = Document(files[f"leaderboard/{path}"]).elements
        marked = [a for _, a in elements if "data-embargo-until" in a]
        assert marked
        assert all(a["data-embargo-until"] == "2027-05-20" for a in marked)
        assert all(a["data-after"] == "Anonymous; reveal due since 20 May 2027" for a in marked)


def test_an_embargo_without_a_day_is_anonymous() -> None:
    board = standings([row("0.4", days=1, embargoed=True)])
    page = render_page(make_board_page(board, spec(), facts()))
    assert "Anonymous" in page.text
    assert "Anonymous until" not in page.text
    assert not [a for _, a in page.elements if "data-embargo-until" in a]
