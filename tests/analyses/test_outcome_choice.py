"""Of very many pairs a reader sees neighbours and the telling ones, and how many are left out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated_boards import table

from drawings import boxes, texts, tips
from heldout.analyses.outcomes.analysis import rank_pairs, tables
from heldout.analyses.outcomes.curves import bars_chart, curves_chart, success_curves
from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes
from heldout.answers.table import shorten
from heldout.scoring.first_ranks import FirstRanks, MethodSide, first_ranks
from heldout.scoring.table import ScoreTable, table_of


@pytest.fixture(scope="module")
def ranks() -> FirstRanks:
    """Twelve runs, each somewhat better than the one before."""
    random = np.random.default_rng(4)
    hard = random.normal(size=400)
    rows = {}
    for run in range(12):
        places = np.exp(1.2 + hard + random.normal(size=400) - 0.12 * run).astype(int) + 1
        rows[f"r{run}"] = {f"q{at}": 1 / place for at, place in enumerate(places.tolist())}
    return first_ranks(table_of(rows), k=20)


@pytest.fixture(scope="module")
def found(ranks: FirstRanks) -> Any:
    return analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules())


def test_verdicts_between_the_nearest_in_the_line_come_first_then_the_smallest_p(
    found: Any,
) -> None:
    line = found.order.systems
    ranked = [found.pairs[place] for place in rank_pairs(found)]
    decided = [one for one in ranked if one.verdict.better]
    assert 10 < len(decided) < 66
    assert ranked[: len(decided)] == decided
    apart = [abs(line.index(one.a.name) - line.index(one.b.name)) for one in decided]
    assert apart == sorted(apart)
    least = [min(test.p or 1.0 for test in one.tests.values()) for one in ranked[len(decided) :]]
    assert least == sorted(least)
    first, second, line_table = (shorten(table, 10) for table in tables(found))
    assert len(first.rows) == len(second.rows) == len(line_table.rows) == 10
    assert all(row[6] for row in first.rows)
    assert first.notes[0] == "56 more rows are left out here"


def test_the_picture_of_bars_says_how_many_pairs_it_leaves_out(found: Any) -> None:
    assert "A / B, 40 of 66 pairs" in texts(bars_chart(found))
    assert "A / B" in texts(bars_chart(replace(found, pairs=found.pairs[:40])))


def sides_of(*ranks: NDArray[np.int64]) -> tuple[MethodSide, MethodSide, ScoreTable]:
    """Two runs by their ranks, 0 for none, and the table of both."""
    rows = {name: [1 / n if n else 0.0 for n in row] for name, row in zip("ab", ranks, strict=True)}
    return MethodSide(name="a", runs=("a",)), MethodSide(name="b", runs=("b",)), table(rows)


def test_the_picture_of_curves_ends_at_k_and_says_where_two_runs_are_told_apart() -> None:
    first, second = np.full(80, 7), np.arange(80) % 2 * 3
    a, b, found = sides_of(first, second)
    curves = success_curves(first_ranks(found, k=10), a, b, np.random.default_rng(0))
    drawn = curves_chart(curves)

    assert (drawn.x.low, drawn.x.high) == (1, 10)
    assert "Success@j" in texts(drawn)
    assert "A lies outside the band: the two differ at this depth" in texts(drawn)
    told = [tip for tip in tips(drawn) if "finds more" in tip]
    assert [text.split(":")[0] for text in told] == [f"j = {j}" for j in range(3, 11)]
    assert [text.split(":")[1] for text in told] == [" B finds more"] * 4 + [" A finds more"] * 4


def test_no_band_of_shares_lies_above_1_or_below_0() -> None:
    """Both find nearly all of few queries: A + the interval of B - A reaches 1.04 at the top."""
    first, second = np.array([1] * 27 + [0, 0, 9]), np.array([1] * 28 + [0, 9])
    a, b, found = sides_of(first, second)
    curves = success_curves(first_ranks(found, k=10), a, b, np.random.default_rng(0))
    reach = [
        at + high
        for at, high in zip(curves.success_a, curves.high, strict=True)
        if high is not None
    ]
    assert max(reach) > 1
    drawn: Any = curves_chart(curves)
    head = 17 + 8  # the line above the plot, and the space below it
    top = min(float(box.get("y", "")) for box in boxes(drawn))
    low, high = drawn.y.low, drawn.y.high
    assert high - (top - head) / drawn.height * (high - low) == pytest.approx(1, abs=1e-4)


def test_no_interval_of_a_difference_of_shares_lies_beyond_1() -> None:
    first, second = np.array([0, 0, 0]), np.array([1, 1, 0])
    a, b, found = sides_of(first, second)
    ranks = first_ranks(found, k=3)
    curves: Any = success_curves(ranks, a, b, np.random.default_rng(0), band="pointwise")
    assert curves.high == (1.0, 1.0, 1.0)
    assert -1 < curves.low[0] < 0
