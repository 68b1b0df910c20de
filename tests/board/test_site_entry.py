"""The page of an entry: its story, its place, its reference."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from page_documents import entry_page, render_page
from sample_boards import AS_OF, facts, row, spec, standings, trusted

from heldout.board.site.entries import format_bibtex, list_entry_sources
from heldout.board.site.pages import _render
from heldout.board.site.rows import TableRow, make_columns, public_rows


def test_the_page_of_an_entry_tells_its_story() -> None:
    when = datetime(2026, 11, 19, 8, 30, tzinfo=UTC)
    one = row(
        *("0.403", "0.405"),
        days=3,
        findings=("near-variant",),
        errata=((when, "Scored again."),),
        paper="https://papers.example.org/1",
    )
    text = render_page(entry_page(one)).text
    for words in (
        *("Rank 1 of 1", "0.403", "mean over 1,050 queries", "near-variant", "Scored again."),
        *("19 Nov 2026", "Sealed files received", "4 Sep 2025, 12:00 UTC"),
        *(one.id, one.events[0][2], next(iter(one.files.values()))),
        "https://stdlib-docs.example.org/leaderboard/entries/" + one.id + ".html",
    ):
        assert words in text


def test_the_rank_then_is_told_where_it_differs() -> None:
    rows = [row("0.3", days=1, id="a"), row("0.35", days=2, id="b"), row("0.4", days=3, id="c")]
    pages = list_entry_sources(standings(rows), spec=spec(), facts=facts())
    places = {page.id: page.make().position for page in pages}
    assert places == {
        "a": "Rank 3 of 3; rank 1 of 1 when it was submitted",
        "b": "Rank 2 of 3; rank 1 of 2 when it was submitted",
        "c": "Rank 1 of 3",
    }


def test_without_an_address_there_is_no_permalink() -> None:
    board = standings([row("0.4", days=1)])
    made = next(list_entry_sources(board, spec=spec(), facts=facts(home=""))).make()
    assert made.permalink == ""
    assert "url" not in made.bibtex


@given(st.text())
def test_bibtex_braces_balance_and_nothing_escapes_them(text: str) -> None:
    one = row("0.4", days=1, team=text, description=text)
    line = TableRow(public_rows(standings([one]))[0], make_columns(spec()))
    made = format_bibtex(line, board=text.replace("\n", " "), link="https://a.example/%7D}")
    depth, low = 0, 1
    for character in made[made.index("{") :]:
        depth += (character == "{") - (character == "}")
        low = min(low, depth)
        assert depth > 0 or character == "}"
    assert depth == low == 0


def test_a_score_on_a_new_view_is_no_erratum() -> None:
    first, second = AS_OF, AS_OF - timedelta(days=1)
    one = row(
        "0.403",
        days=3,
        errata=((second, "Labels by judges were added."), (first, "A label was wrong.")),
        corrected=True,
        added=(second,),
        events=((second, "corrected", "a" * 64), (first, "corrected", "b" * 64)),
    )
    made = next(list_entry_sources(standings([one]), spec=spec(), facts=facts())).make()
    errata, added = _render(made).decode().split('id="errata"')[1].split('id="added"')
    assert "A label was wrong." in errata
    assert "Labels by judges were added." in added.split("</section>")[0]
    added, corrected = (moment.words for moment in made.history)
    assert added == "Scored on a new view; no earlier score changed"
    assert corrected == "Corrected by the organisers"


def test_a_program_is_scored_after_it_was_run_and_not_before() -> None:
    kinds = ("received", "reviewed", "ran", "reviewed")
    one = row("0.403", days=3, events=tuple((AS_OF, kind, "a" * 64) for kind in kinds))
    made = next(list_entry_sources(standings([one]), spec=spec(), facts=facts())).make()
    assert [moment.words for moment in made.history][1:] == [
        "Opened in the vault",
        "The organisers ran its program, which made the runs",
        "Opened and scored in the vault",
    ]


def test_the_position_has_the_range_of_the_table() -> None:
    board = trusted()
    first = board.rows[0]
    pages = list_entry_sources(board, spec=spec(), facts=facts())
    (page,) = (one.make() for one in pages if one.id == first.id)
    assert page.position.startswith(f"Rank 1 of 12 (range {first.rank_low}\u2013{first.rank_high})")
