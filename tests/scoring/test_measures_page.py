"""docs/reference/measures.md says what the table of measures says."""

import re
from pathlib import Path

import pytest

from heldout.scoring.families import FAMILIES, TREC_EVAL
from heldout.scoring.measures import MEASURES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "measures.md").read_text(
    encoding="utf-8"
)
ROWS = {
    match[1]: [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## Other names")[0].splitlines()
    if (match := re.match(r"\| `(\w+)", line))
}


def test_no_measure_is_missing_and_none_is_made_up() -> None:
    assert list(ROWS) == list(MEASURES)


def test_measures_of_others_are_named_each_with_who_computes_it() -> None:
    others = PAGE.split("## Measures of other libraries")[1].split("## ")[0]
    cells = " ".join(line.split("|")[1] for line in others.splitlines() if line.startswith("| "))
    named = set(re.findall(r"\w+", cells.replace("@k", "").replace("@r", "")))
    assert named - {"measure"} == {*FAMILIES, *TREC_EVAL}


@pytest.mark.parametrize("name", MEASURES)
def test_row(name: str) -> None:
    names, _, value_range, parameters, source = ROWS[name]
    kind = MEASURES[name]
    assert (f"`{name}`" in names) == (kind.cutoff != "required")
    assert (f"`{name}@k`" in names) == (kind.cutoff != "none")
    assert tuple(re.findall(r"`(\w+)`", parameters)) == kind.parameters
    assert ("lower is better" in value_range) == (kind.better == "lower")
    plain = source.replace("`", "").replace("ä", "a")
    assert kind.source.split(";")[0].split(":")[0].split(" ")[0] in plain


@pytest.mark.parametrize("name", MEASURES)
def test_aliases_and_parameters_are_named(name: str) -> None:
    kind = MEASURES[name]
    for word in (*kind.aliases, *kind.parameters):
        assert f"`{word}`" in PAGE
