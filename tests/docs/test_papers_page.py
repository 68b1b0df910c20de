"""papers.md is what tools/papers.py writes, and that refuses rows which compare unlike things."""

import sys
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from papers import Figure, compute_ours, find_fault, format_figure, format_page, read_papers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "papers.md").read_text("utf-8")
FIGURES = [one for paper in read_papers() for one in paper.figure]
WAYS = [*dict.fromkeys(one.command or one.test for one in FIGURES if one.command or one.test)]
COMMANDS = [way for way in WAYS if "::" not in way]
OURS = 4  # cell of a row
SCALE: dict[str, Any] = {
    "place": "table 3",
    "what": "values of RR on lists of 3",
    "measure": "RR@3",
    "printed": ("1.00", "0.50", "0.33", "0.00"),
    "kind": "equal",
    "command": "analyse scales -m RR@3",
    "jq": ".values",
    "format": ".2f",
}


def make(**changes: object) -> Figure:
    return msgspec.convert(SCALE | changes, Figure)


def test_every_row_keeps_the_rules() -> None:
    assert [(one.place, fault) for one in FIGURES if (fault := find_fault(one))] == []


def test_the_page_is_what_the_program_writes_from_the_figures() -> None:
    def compute(one: Figure) -> tuple[str, ...]:
        return ("see below",) if one.command else compute_ours(one, ROOT)

    written = format_page(read_papers(), compute).splitlines()
    for line, expected in zip_longest(PAGE.splitlines(), written):
        cells, wanted = (text.split(" | ") for text in (line or "", expected or ""))
        if "see below" in wanted[min(OURS, len(wanted) - 1)]:
            cells[OURS] = wanted[OURS]
        assert cells == wanted


@pytest.mark.real
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(n, marks=[pytest.mark.slow] * ("--runs" in way or "--types" in way))
        for n, way in enumerate(COMMANDS, 1)
    ],
)
def test_ours_are_what_the_command_says(number: int, data: Callable[[str], Path]) -> None:
    numbers = {way: n for n, way in enumerate(WAYS, 1)}
    for one in FIGURES:
        if one.command == COMMANDS[number - 1]:
            assert format_figure(one, compute_ours(one, data(".")), numbers) in PAGE


def test_a_row_of_another_measure_is_refused() -> None:
    assert find_fault(make()) == ""
    for measure in ("", "RR@10", "nDCG@3"):
        assert "the command's RR@3" in find_fault(make(measure=measure))
    assert find_fault(make(measure="RR")) == ""  # the paper leaves the depth open
    both = {"command": "evaluate x -m RR@3 -m nDCG@3"}
    assert "jq takes none of RR@3" in find_fault(make(**both, jq='."nDCG@3"'))
    assert find_fault(make(**both, jq='."RR@3"')) == ""


def test_unequal_figures_are_not_called_equal() -> None:
    assert compute_ours(make(), ROOT) == ("1.00", "0.50", "0.33", "0.00")
    with pytest.raises(ValueError, match=r"printed .*0\.34.*, ours .*0\.33"):
        compute_ours(make(printed=("1.00", "0.50", "0.34", "0.00")), ROOT)
    with pytest.raises(ValueError, match="jq finds"):
        compute_ours(make(jq=".nothing"), ROOT)
    with pytest.raises(ValueError, match="measure-name"):
        compute_ours(make(command="analyse scales -m RRR@3"), ROOT)


@pytest.mark.parametrize(
    "changes",
    [
        {"printed": ()},
        {"command": ""},
        {"jq": ""},
        {"test": "tests/docs/test_papers_page.py::make"},
        {"kind": "cannot"},
        {"kind": "cannot", "command": "", "jq": "", "because": "mood"},
        {"because": "runs"},
        {"ours": ("1.00",)},
        {"kind": "differs"},
        {"kind": "other data"},
        {"kind": "arithmetic"},
        {"command": "", "jq": "", "test": "tests/docs/test_papers_page.py::test_of_nothing"},
        {"command": "", "jq": "", "printed": ("8" * 9,), "test": "tests/conftest.py::data"},
    ],
)
def test_a_row_that_does_not_say_how_ours_is_computed_is_refused(changes: dict[str, Any]) -> None:
    assert find_fault(make(**changes))
