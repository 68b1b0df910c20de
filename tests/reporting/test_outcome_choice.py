"""Of very many pairs a reader sees neighbours and the telling ones, and how many are left out."""

from itertools import pairwise

import numpy as np
import pytest

from heldout.report.outcome_choice import telling_pairs
from heldout.report.outcome_pairs import tables
from heldout.scores import table_of
from heldout.validity.first_ranks import FirstRanks, first_ranks
from heldout.validity.outcomes import Outcomes, all_pairs, analyse_outcomes, pairs_with
from heldout.validity.verdicts import Rules


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
def found(ranks: FirstRanks) -> Outcomes:
    return analyse_outcomes(ranks, all_pairs(ranks), Rules())


def test_all_are_shown_where_there_is_room(found: Outcomes) -> None:
    assert telling_pairs(found, most=66) == found.pairs
    assert not any("left out" in note for table in tables(found) for note in table.notes)


def test_neighbours_come_first_then_verdicts_between_the_nearest(found: Outcomes) -> None:
    assert found.order is not None
    line = found.order.systems
    shown = telling_pairs(found, most=10)
    assert len({id(one) for one in shown}) == 10
    assert [{one.pair.a.name, one.pair.b.name} for one in shown[:5]] == [
        {*pair} for pair in pairwise(line[:6])
    ]
    told = [one for one in found.pairs if one.verdict.better and one not in shown[:5]]
    apart = [abs(line.index(one.pair.a.name) - line.index(one.pair.b.name)) for one in shown[5:]]
    assert all(one.verdict.better for one in shown[5:])
    assert apart == sorted(apart)
    assert max(apart) <= min(
        abs(line.index(one.pair.a.name) - line.index(one.pair.b.name))
        for one in told
        if one not in shown
    )


def test_against_a_baseline_the_rest_is_by_p(ranks: FirstRanks) -> None:
    found = analyse_outcomes(ranks, pairs_with(ranks, "r5"), Rules(alpha=1e-300))
    shown = telling_pairs(found, most=4)
    least = [min(test.p or 1.0 for test in one.pair.tests.values()) for one in found.pairs]
    assert {one.verdict.better for one in shown} == {None}
    assert min(test.p or 1.0 for test in shown[2].pair.tests.values()) <= sorted(least)[2]


def test_both_tables_say_how_many_are_left_out(found: Outcomes) -> None:
    first, second, line = tables(found, most=10)
    assert len(first.rows) == len(second.rows) == 10
    assert len(line.rows) == 12
    for table in (first, second):
        assert "56 pairs are left out" in table.notes[0]
        assert "--all" in table.notes[0]
