"""Where facets mean nothing, an interaction is found as rarely as its level says."""

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from facet_errors import (  # noqa: E402 - a folder, no package
    ALPHA,
    WORLDS,
    FacetWorld,
    count_errors,
    main,
)

TABLES = 60


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_chance_is_rarely_called_an_interaction(world: FacetWorld) -> None:
    assert count_errors(world, tables=TABLES) <= binom.ppf(0.999, TABLES, ALPHA)


def test_the_page_has_a_row_for_every_world(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tables", "1"])
    page = (BENCHMARKS.parent / "docs" / "results" / "intervals.md").read_text("utf-8")
    table = page.split("python benchmarks/facet_errors.py")[1].split("\n\n")[1]
    printed = capsys.readouterr().out
    names = [[row.split("|")[1:3] for row in text.splitlines()] for text in (printed, table)]

    assert names[0] == names[1]
    assert len(names[0]) == len(WORLDS) + 2
