"""Tables of results: what a cell becomes, and that no text of a stranger leaves its cell."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.answers.table import (
    Column,
    Table,
    ends_first,
    format_cell,
    format_p,
    shorten,
    to_latex,
    to_markdown,
)

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def table(*rows: tuple[str | int | float | None, ...], notes: tuple[str, ...] = ()) -> Table:
    columns = (
        Column(name="system"),
        Column(name="queries", form="count"),
        Column(name="nDCG@10", form="score"),
        Column(name="B − A", form="difference", decimals=3),
        Column(name="p", form="p"),
    )
    return Table(title="Two systems", columns=columns, rows=rows, notes=notes)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "1.00"),
        (0.5, ".50"),
        (0.042, ".042"),
        (0.00042, ".0004"),
        (0.0001, ".0001"),
        (0.00009, "<.0001"),
        (5e-324, "<.0001"),
        (None, "-"),
    ],
)
def test_a_p_value_says_what_it_can_and_is_never_0(p: float | None, text: str) -> None:
    assert format_p(p) == text


@given(st.floats(min_value=0, max_value=1, exclude_min=True))
def test_no_p_value_is_printed_as_0_or_far_from_what_it_is(p: float) -> None:
    text = format_p(p)

    if text == "<.0001":
        assert p < 0.0001
    else:
        assert float(text) > 0
        assert float(text) == pytest.approx(p, rel=0.05, abs=0.00005)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_out_of_a_failure_makes_no_table(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        table(("a", 3, number, 0.1, 0.2))


def test_a_row_of_another_length_makes_no_table() -> None:
    with pytest.raises(ValueError, match="a"):
        table(("a", 3))


def test_a_small_number_that_rounds_to_0_has_no_sign_as_a_score() -> None:
    assert format_cell(-0.00001, Column(name="x", form="score")) == "0.0000"
    assert format_cell(-0.0, Column(name="x", form="difference")) == "+0.0000"


def test_the_same_cells_stand_in_markdown_and_latex() -> None:
    made = table(("bm25", 5793, 0.25, -0.0125, 0.00042), ("none", 1, None, None, None))

    assert to_markdown(made).splitlines() == [
        "**Two systems**",
        "",
        "| system | queries | nDCG@10 | B − A | p |",
        "| :-- | --: | --: | --: | --: |",
        "| bm25 | 5,793 | 0.2500 | -0.013 | .0004 |",
        "| none | 1 | - | - | - |",
    ]
    latex = to_latex(made)
    assert r"bm25 & 5,793 & 0.2500 & -0.013 & .0004 \\" in latex
    assert r"system & queries & nDCG@10 & B $-$ A & p \\" in latex
    assert r"\begin{tabular}{lrrrr}" in latex


def test_notes_stand_below_a_table_each_with_a_full_stop() -> None:
    made = table(("a", 1, 0.5, 0.0, 1.0), notes=("Holm over 3 pairs", "50% of all."))

    assert to_markdown(made).endswith("\n\nHolm over 3 pairs\n\n50% of all.\n")
    latex = to_latex(made)
    assert "\\caption{Two systems.}\n" in latex
    below = latex[latex.index(r"\end{tabular}") :]
    assert "\nHolm over 3 pairs.\\par\n50\\% of all.\\par\n" in below
    assert below.endswith("\\end{table}\n")


@pytest.mark.parametrize(("rows", "environment"), [(40, "tabular"), (41, "longtable")])
def test_a_table_that_is_longer_than_a_page_goes_on_over_pages(rows: int, environment: str) -> None:
    latex = to_latex(table(*[(f"s{n}", n, 0.5, 0.0, 1.0) for n in range(rows)], notes=("A note.",)))

    assert latex.count(f"\\begin{{{environment}}}") == latex.count(f"\\end{{{environment}}}") == 1
    assert (r"\begin{table}" in latex) == (environment == "tabular")
    assert latex.count(r"\midrule") == (1 if environment == "tabular" else 2)
    assert "\nA note.\\par\n" in latex[latex.index(rf"\end{{{environment}}}") :]


@given(NAMES)
def test_a_name_stays_in_its_cell_of_a_markdown_table(name: str) -> None:
    (row,) = to_markdown(table((name, 1, 0.5, 0.0, 1.0))).splitlines()[4:]

    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 6


@given(NAMES)
def test_a_name_stays_in_its_cell_of_a_latex_table(name: str) -> None:
    latex = to_latex(table((name, 1, 0.5, 0.0, 1.0)))
    (cell,) = re.findall(r"\\midrule\n(.*) & 1 & 0\.5000 & \+0\.000 & 1\.00 \\\\\n\\bottom", latex)

    without = re.sub(r"\\[&%$#_{}]|\\text[a-z]+\{\}|\$\\?[a-zA-Z-]+\$", "", cell)
    assert not set(without) & set("&%$#_{}\\~^")


def test_hostile_markup_in_a_name_is_text() -> None:
    hostile = "<script>alert(1)</script>|x\n# head [a](javascript:x) \\input{/etc/passwd}"
    made = table((hostile, 1, 0.5, 0.0, 1.0))

    assert r"\<script\>" in to_markdown(made)
    assert r"\[a\](" in to_markdown(made)
    assert "\n# head" not in to_markdown(made)
    assert r"\input" not in to_latex(made)
    assert r"\textbackslash{}input\{/etc/passwd\}" in to_latex(made)


@pytest.mark.parametrize("mark", ["\x1b[2J", "\u202e", "\x07", "\x9b"], ids=ascii)
def test_nothing_that_moves_a_cursor_is_in_a_table(mark: str) -> None:
    made = replace(table((f"a{mark}b", 1, 0.5, 0.0, 1.0), notes=(mark,)), title=f"of {mark}")

    assert mark not in to_markdown(made)
    assert mark not in to_latex(made)


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    names = (Column(name="system"), Column(name="n", form="count"))
    rows = tuple((f"s{n}", n // 2) for n in range(10))
    table = Table(title="T", columns=names, rows=rows, notes=("n: a number",))
    assert shorten(table, 10) == table
    short = shorten(table, 3, what="system")
    assert short.rows == (("s0 and 1 more", 0), ("s2 and 1 more", 1), ("s4 and 1 more", 2))
    assert short.notes == ("4 more systems are left out here", "n: a number")
    assert shorten(table, 5).notes == table.notes
    last = shorten(replace(table, first=range(9, -1, -1)), 2)
    assert last.rows == (("s9 and 1 more", 4), ("s7 and 1 more", 3))


def test_the_largest_and_the_smallest_take_turns_and_what_is_undefined_comes_last() -> None:
    assert ends_first([0.1, None, 0.5, -0.2, 0.3]) == [2, 3, 4, 0, 1]
    assert ends_first([None]) == [0]
