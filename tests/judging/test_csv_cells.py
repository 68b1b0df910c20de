"""Cells of CSV files: none is a formula, however a program parts them, and each reads back."""

import csv
import re
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heldout.files.csv import defuse, format_csv, restore

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
HOSTILE = st.text(st.sampled_from(SIGNS + ";\t\r\n\"' ,a1"), max_size=12) | st.text()


@given(HOSTILE)
@example("=1+1")
@example("  @SUM(A1)")
@example("\t-1")
@example("\uff1d1")
@example('"=1')
@example("a;=1+1")
@example('a; "" =1+1')
@example("a\t=1+1")
@example("a\r\n=1+1")
def test_no_part_of_a_cell_starts_a_formula(text: str) -> None:
    for part in re.split(r"[;\t\r\n]", defuse(text)):
        assert part.strip().lstrip(' "')[:1] not in set(SIGNS) or not part.strip(' "')


@given(HOSTILE)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_program_finds_a_formula_however_it_parts_cells(delimiter: str, text: str) -> None:
    data = format_csv(["first", "second"], [["x", defuse(text)]]).decode()
    for row in csv.reader(StringIO(data, newline=""), delimiter=delimiter):
        assert not [cell for cell in row if cell.strip()[:1] in set(SIGNS) and cell.strip()]


@given(HOSTILE)
@example("'=1")
@example("''=1")
@example("a;'=1")
@example("\t\t'=1")
def test_each_cell_reads_back_as_its_text(text: str) -> None:
    assert restore(defuse(text)) == text


def test_two_workers_ids_stay_two() -> None:
    assert len({defuse(name) for name in ("=1", "'=1", "''=1", "'1", "1")}) == 5


@pytest.mark.parametrize("text", ["ada", "O'Neil", "a - b", "x=1; y = 2", '"best" - model', ""])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert defuse(text) == restore(text) == text


@pytest.mark.parametrize("text", ["\t" * 100_000, " " * 100_000, ";" * 100_000, '" ' * 50_000])
def test_a_long_run_of_blanks_is_no_denial_of_service(text: str) -> None:
    assert restore(defuse(text)) == text
