"""How runs differ: what they find, how high they rank it, and whether one is the better.

For every pair each query is found by neither run, by one alone or by both; no mean mixes these
outcomes (Lin et al. 2021, §§4 and 5).
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.tests import Pair, Pairs, TestedPairs, compare_groups, compare_runs
from heldout.analyses.outcomes.verdicts import JudgedPairs, RunOrder, judge_pairs, order_runs
from heldout.answers.answer import to_document
from heldout.errors import InputError, quote
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, MethodSide

_SEVERAL = 0.2


def fits_labels(several: int | None, queries: int) -> bool:
    """Check whether the first relevant document says nearly all that the labels know of a query.

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

    pairs: JudgedPairs
    order: RunOrder | None
    rules: DeclaredRules
    level: float
    k: int
    queries: int
    digest: Digest

    @property
    def hypotheses(self) -> int:
        """Size of the family of tests: pairs × outcomes."""
        return 2 * len(self.pairs)


def describe_outcomes(result: Outcomes, several: int | None) -> dict[str, Any]:
    """The JSON document.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
    """
    # Half a million pairs as lists would take gigabytes
    given = {one.name: getattr(result, one.name) for one in fields(result) if one.name != "pairs"}
    return (
        {"pairs": result.pairs}
        | to_document(given)
        | {
            "hypotheses": result.hypotheses,
            "several_relevant": several,
            "fits_labels": fits_labels(several, result.queries),
        }
    )


def all_pairs(ranks: FirstRanks) -> Pairs:
    """Every two runs, the earlier in the table as A."""
    a, b = np.triu_indices(len(ranks.systems), 1)
    return Pairs(sides=tuple(_single(name) for name in ranks.systems), a=a, b=b)


def pairs_with(ranks: FirstRanks, baseline: str) -> Pairs:
    """A baseline as A against every other run.

    Raises:
        InputError: code `no-run`: there is none of this name.
    """
    if baseline not in ranks.systems:
        known = ", ".join(ranks.systems[:3])
        raise InputError.of(
            "no-run",
            "--baseline",
            quote(baseline),
            f"one of the {len(ranks.systems):,} runs, such as {known}",
        )
    a = ranks.systems.index(baseline)
    b = np.delete(np.arange(len(ranks.systems)), a)
    sides = tuple(_single(name) for name in ranks.systems)
    return Pairs(sides=sides, a=np.full(len(b), a), b=b)


def _single(name: str) -> MethodSide:
    return MethodSide(name=name, runs=(name,))


def analyse_outcomes(
    ranks: FirstRanks,
    pairs: Sequence[Pair],
    rules: DeclaredRules,
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
    some = Pairs.of(pairs)
    _check(some)
    if any(len(side.runs) > 1 for side in some.sides):
        ((a, b),) = some
        tested = TestedPairs.of(compare_groups(ranks, a, b, rules.margins, level=level))
    else:
        tested = compare_runs(ranks, some, rules.margins, level=level, executor=executor)
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


def _check(pairs: Pairs) -> None:
    if not len(pairs):
        raise InputError.of("too-few-systems", "runs", "no pair", "two runs")
    number = {run: at for at, run in enumerate(run for side in pairs.sides for run in side.runs)}
    first = np.array([number[side.runs[0]] for side in pairs.sides], np.intp)
    single = all(len(side.runs) == 1 for side in pairs.sides)
    same = np.flatnonzero(first[pairs.a] == first[pairs.b]) if single else range(len(pairs))
    for place in same:
        a, b = pairs[int(place)]
        shared = [run for run in a.runs if run in b.runs]
        if shared:
            raise InputError.of(
                "same-run", quote(shared[0]), "the same run as A and as B", "different runs"
            )


def _order(ranks: FirstRanks, judged: JudgedPairs) -> RunOrder:
    """The runs by verdict; mean reciprocal rank decides between those without one."""
    pairs, better = judged.tested.pairs, judged.better
    place = {name: row for row, name in enumerate(ranks.systems)}
    rows = np.array([place[side.name] for side in pairs.sides], np.intp)
    first, second = rows[pairs.a], rows[pairs.b]
    beats = np.stack((np.where(better < 0, first, second), np.where(better < 0, second, first)))
    shares = np.divide(1.0, ranks.ranks, out=np.zeros(ranks.ranks.shape), where=ranks.ranks > 0)
    means = np.round(shares.mean(axis=1), 12).tolist()
    return order_runs(ranks.systems, means, beats[:, better != 0].T)
