"""How two runs differ: what they find, how high they rank it, and whether one is the better.

For every pair each query is found by neither run, by one alone or by both; no mean mixes these
outcomes (Lin et al. 2021, §§4 and 5). Counts, tests, correction and verdicts
of all pairs; see `outcome_tests`, `verdicts`, `run_order`.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.outcomes.tests import Margins, Means, PairTests, compare_runs
from heldout.analyses.outcomes.verdicts import Judged, Rules, RunOrder, judge_pairs, order_runs
from heldout.errors import InputError, Problem, quote
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, Side
from heldout.stats.exact import gather_samples
from heldout.stats.results import Alternative
from heldout.stats.student import bounded_mean_p, crossed_t

# What is counted and tested of two groups of seeds.
#
# The same outcomes as of two runs (`outcome_tests`), averaged over all pairs of a seed of A and
# one of B, and compared across seeds and queries at once (`stats.crossed`).

Floats = NDArray[np.float64]

_SIDES: tuple[Alternative, Alternative] = ("greater", "less")
"""Lower is better: A does no harm if B - A is above minus the margin, B if it is below it."""


def compare_groups(
    ranks: FirstRanks, a: Side, b: Side, margins: Margins, *, level: float
) -> PairTests:
    """Count and test two groups of seeds, or a group and a run.

    Args:
        ranks: positions of all runs.
        a: a group or a run.
        b: another; no run is in both.
        margins: of harm.
        level: of intervals.
    """
    first, second = ranks.rows(a.runs), ranks.rows(b.runs)
    found_a, found_b = (one[axis] > 0 for one, axis in ((first, _ROWS), (second, _COLUMNS)))
    both = (found_a & found_b).astype(np.float64)
    found = found_b.astype(np.float64) - found_a
    places = first[_ROWS] * both, second[_COLUMNS] * both
    shares = tuple(np.divide(1, one, out=np.zeros(both.shape), where=both > 0) for one in places)
    length, ones = places[1] - places[0], np.ones(both.shape)
    sums = {
        "neither": (~found_a & ~found_b),
        "a_only": (found_a & ~found_b),
        "b_only": (found_b & ~found_a),
        "both": both,
    }
    longer = [
        crossed_t(length, both, alternative=side, null=null).p
        for side, null in zip(_SIDES, (-margins.esl, margins.esl), strict=True)
    ]
    fewer = [
        crossed_t(-found, ones, alternative=side, null=null).p
        for side, null in zip(_SIDES, (-margins.found, margins.found), strict=True)
    ]
    finds_more = 1 if found.sum() > 0 else -1
    # A mean over pairs of seeds for each query; one that no pair finds is 0 and weighs nothing
    harm = (finds_more * length - margins.esl * both).mean(axis=(0, 1), keepdims=True)[0]
    rare = bounded_mean_p(
        gather_samples(harm, np.ones(harm.shape, np.bool_)),
        null=0.0,
        bound=ranks.k - 1 - margins.esl,
    )
    pairs = both.shape[0] * both.shape[1]
    return PairTests(
        a=a,
        b=b,
        **{name: float(cells.sum()) / pairs for name, cells in sums.items()},
        esl=_weigh(*places, both),
        rr=_weigh(shares[0], shares[1], both),
        tests={
            "found_crossed_t": crossed_t(found, ones, level=level),
            "esl_crossed_t": crossed_t(length, both, level=level),
            "rr_crossed_t": crossed_t(shares[1] - shares[0], both, level=level),
        },
        a_not_fewer=fewer[0],
        b_not_fewer=fewer[1],
        a_not_longer=longer[0],
        b_not_longer=longer[1],
        no_rare_harm=float(rare[0]),
    )


_ROWS = np.s_[:, None, :]
_COLUMNS = np.s_[None, :, :]
"""Seeds of A go down, seeds of B across, queries along the third axis."""


def _weigh(first: Floats, second: Floats, both: Floats) -> Means:
    count = float(both.sum())
    if not count:
        return Means(a=None, b=None)
    return Means(a=float(first.sum()) / count, b=float(second.sum()) / count)


Pair = tuple[Side, Side]
_TASKS = 32
_SEVERAL = 0.2


def fits_labels(several: int | None, queries: int) -> bool:
    """Whether the first relevant document says nearly all that the labels know of a query.

    Args:
        several: queries with more than one relevant document; `None` where the labels are unknown.
        queries: how many there are.

    Returns:
        False where more than a fifth of the queries have several: two runs that find any of many
        relevant documents may differ in everything else, and no outcome sees it. True where the
        labels are unknown.
    """
    return several is None or several <= _SEVERAL * queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Pairs of runs or of groups with their outcomes.

    Attributes:
        pairs: all that were looked at: they form the family.
        order: the runs in a line by verdict; `None` for a single pair.
        rules: what was declared.
        level: of intervals.
        k: how deep was looked.
        queries: how many there are.
        digest: of the table of scores.
    """

    pairs: tuple[Judged, ...]
    order: RunOrder | None
    rules: Rules
    level: float
    k: int
    queries: int
    digest: Digest

    @property
    def hypotheses(self) -> int:
        """Size of the family of tests: pairs × outcomes."""
        return 2 * len(self.pairs)


def all_pairs(ranks: FirstRanks) -> tuple[Pair, ...]:
    """Every two runs, the earlier in the table as A."""
    sides = [_single(name) for name in ranks.systems]
    return tuple((a, b) for row, a in enumerate(sides) for b in sides[row + 1 :])


def pairs_with(ranks: FirstRanks, baseline: str) -> tuple[Pair, ...]:
    """A baseline as A against every other run.

    Raises:
        InputError: code `no-run`: there is none of this name.
    """
    if baseline not in ranks.systems:
        known = ", ".join(ranks.systems[:3])
        raise InputError(
            Problem(
                code="no-run",
                path="--baseline",
                found=quote(baseline),
                expected=f"one of the {len(ranks.systems):,} runs, such as {known}",
            )
        )
    a = _single(baseline)
    return tuple((a, _single(name)) for name in ranks.systems if name != baseline)


def _single(name: str) -> Side:
    return Side(name=name, runs=(name,))


def analyse_outcomes(
    ranks: FirstRanks,
    pairs: Sequence[Pair],
    rules: Rules,
    *,
    level: float = 0.95,
    executor: Executor | None = None,
) -> Outcomes:
    """Count, test, correct and judge pairs.

    Args:
        ranks: positions of all runs that the pairs name.
        pairs: at least one; all of runs, or a single one with a group of seeds.
        rules: what is declared.
        level: of intervals.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `same-run`.
    """
    _check(pairs)
    tested = _test(ranks, pairs, rules, level, executor)
    judged = judge_pairs(tested, rules)
    return Outcomes(
        pairs=judged,
        order=_order(ranks, judged) if len(judged) > 1 else None,
        rules=rules,
        level=level,
        k=ranks.k,
        queries=len(ranks.queries),
        digest=ranks.digest,
    )


def _check(pairs: Sequence[Pair]) -> None:
    if not pairs:
        raise InputError(
            Problem(code="too-few-systems", path="runs", found="no pair", expected="two runs")
        )
    for a, b in pairs:
        shared = [run for run in a.runs if run in b.runs]
        if shared:
            raise InputError(
                Problem(
                    code="same-run",
                    path=quote(shared[0]),
                    found="the same run as A and as B",
                    expected="different runs",
                )
            )


def _test(
    ranks: FirstRanks,
    pairs: Sequence[Pair],
    rules: Rules,
    level: float,
    executor: Executor | None,
) -> list[PairTests]:
    if executor is None:
        return _test_some(ranks, pairs, rules, level)
    # Few tasks: each carries the ranks to whoever does it
    length = -(-len(pairs) // _TASKS)
    futures = [
        executor.submit(_test_some, ranks, pairs[start : start + length], rules, level)
        for start in range(0, len(pairs), length)
    ]
    return [pair for future in futures for pair in future.result()]


def _test_some(
    ranks: FirstRanks, pairs: Sequence[Pair], rules: Rules, level: float
) -> list[PairTests]:
    if all(len(a.runs) == len(b.runs) == 1 for a, b in pairs):
        return compare_runs(ranks, pairs, rules.margins, level=level)
    return [compare_groups(ranks, a, b, rules.margins, level=level) for a, b in pairs]


def _order(ranks: FirstRanks, judged: Sequence[Judged]) -> RunOrder:
    """The runs by verdict; mean reciprocal rank decides between those without one."""
    beats = {
        (one.pair.a.name, one.pair.b.name)
        if one.verdict.better == "A"
        else (one.pair.b.name, one.pair.a.name)
        for one in judged
        if one.verdict.better
    }
    shares = np.divide(1.0, ranks.ranks, out=np.zeros(ranks.ranks.shape), where=ranks.ranks > 0)
    means = np.round(shares.mean(axis=1), 12).tolist()
    return order_runs(ranks.systems, means, beats)
