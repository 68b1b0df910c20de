"""What an analysis of all pairs holds at once: no table of pairs by draws, no lists of the answer.

Ceilings are twice what is taken, and less than stacks of blocks or lists of numbers would take.
"""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heldout.analyses.analysis import Draws, load_analysis
from heldout.answers.answer import format_json
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable, table_of_values
from heldout.scoring.table_files import read_table, write_table

MB = 1_000_000


def make(systems: int, queries: int, *, ranks: bool = False) -> ScoreTable:
    source = np.random.default_rng(0)
    values = source.random((systems, queries))
    if ranks:
        values = 1 / np.ceil(20 * values)
    return table_of_values(
        [f"s{row}" for row in range(systems)],
        [f"q{column}" for column in range(queries)],
        values,
        np.ones(values.shape, np.bool_),
    )


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def print_answer(name: str, table: ScoreTable, **options: object) -> None:
    """The answer as the command prints it with --json."""
    analysis = load_analysis(name)
    measure = "RR@20" if name == "outcomes" else ""
    scores = Scores(table=table, measure=measure)
    answer = analysis.answer(scores, analysis.options(**options), Draws())
    for piece in format_json(answer.document):
        assert piece


CASES = {
    # 31,125 pairs: a byte for each in each of 2,000 flips would be 62 MB, lists of p 2 x 4 MB
    "stability": (250, 20, {"flips": 2000, "trials": 300}, 9),
    # 4,950 pairs: a number for each in 2 x 100 halves, for four tests, would be 32 MB
    "reliability": (100, 40, {}, 15),
    # 3,160 pairs: as objects 10 MB
    "outcomes": (80, 8, {}, 8),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n if n != "outcomes" else pytest.param(n, marks=pytest.mark.night) for n in CASES]
)
def test_the_peak_of_an_analysis_stays_below_a_ceiling(name: str) -> None:
    systems, queries, options, ceiling = CASES[name]
    table = make(systems, queries, ranks=name == "outcomes")
    few = make(5, queries, ranks=name == "outcomes")
    print_answer(name, few, **options)  # what is loaded or compiled once is no matter
    taken = peak(lambda: print_answer(name, table, **options))
    assert taken < ceiling * MB


@pytest.mark.parametrize(("suffix", "ceiling"), [("csv", 4), ("parquet", 3)])
def test_a_table_is_read_with_little_more_than_its_numbers(
    suffix: str, ceiling: float, tmp_path: Path
) -> None:
    """100,000 scores are 0.8 MB, and as many Python numbers with their texts 10 MB."""
    path = tmp_path / f"scores.{suffix}"
    write_table(make(200, 500), path)
    read_table(path)  # what is loaded once is no matter
    text = path.stat().st_size if suffix == "csv" else 0
    assert peak(lambda: read_table(path)) < ceiling * MB + 2 * text
