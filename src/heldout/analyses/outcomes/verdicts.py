"""Is one run better than another? Verdicts on the outcomes of pairs.

Strict: a run finds more queries that the other does not, and ranks better where both find. By
search length it also needs evidence that its mean is not longer by a margin: the signed ranks of
most queries know nothing of a rare loss. Do no harm: it does one of them, and the other is not
worse by a margin (Lin et al. 2021, §5).

Two families of hypotheses are corrected. The p-values of the tests: pairs × outcomes under the one
test that was declared for case (3). The verdicts: pairs, since a strict verdict needs both of its
tests at full alpha (an intersection-union test, Berger 1982), and one that does no harm has two
ways, at half of alpha each.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Literal

import numpy as np

from heldout.analyses.outcomes.options import Correction, Rules
from heldout.analyses.outcomes.tests import FOUND, Line, PairTests, line_of
from heldout.stats.results import bonferroni, holm

# Runs in a line by what was said of pairs of them, with the circles that no line can show.
#
# "Better" by a verdict is neither complete nor transitive: most pairs have no verdict, and three
# runs may beat each other in a circle. The line respects every verdict outside of circles, and
# goes by the mean score where no verdict decides (Lin et al. 2021, §5, asks
# for a linear order; how ties and circles are dealt with is ours).


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Runs in a line, none behind one that it beats, as far as there are no cycles.

    Attributes:
        systems: names, the best first.
        by_verdict: for each but the first, whether a verdict sets it below the one before it; else
            they stand in the order of their mean scores.
        cycles: groups of runs that beat each other in circles; within one the mean decides.
        circles: of each group the shortest circle through its run with the highest mean: each run
            beats the next one, and the last beats the first.
        verdicts: how many pairs have one.
    """

    systems: tuple[str, ...]
    by_verdict: tuple[bool, ...]
    cycles: tuple[tuple[str, ...], ...]
    circles: tuple[tuple[str, ...], ...]
    verdicts: int


def order_runs(
    systems: Sequence[str], means: Sequence[float], beats: Collection[tuple[str, str]]
) -> RunOrder:
    """Put runs in a line.

    Args:
        systems: names, all different.
        means: their scores, higher is better; equal ones keep the order of `systems`.
        beats: pairs (better, worse); a pair stands in it once at most.
    """
    place = {name: row for row, name in enumerate(systems)}
    edges = sorted((place[better], place[worse]) for better, worse in beats)
    circle = _circles(len(systems), edges)
    # A circle is placed as one, by the best mean in it
    waiting = {
        group: {circle[better] for better, worse in edges if circle[worse] == group} - {group}
        for group in set(circle)
    }
    members = {group: [row for row, own in enumerate(circle) if own == group] for group in waiting}
    for rows in members.values():
        rows.sort(key=lambda row: (-means[row], row))
    line: list[int] = []
    placed: set[int] = set()
    while waiting:
        free = [group for group, before in waiting.items() if before <= placed]
        group = min(free, key=lambda one: (-means[members[one][0]], members[one][0]))
        line += members[group]
        placed.add(group)
        del waiting[group]
    below = set(edges)
    groups = [rows for rows in members.values() if len(rows) > 1]
    return RunOrder(
        systems=tuple(systems[row] for row in line),
        by_verdict=tuple(pair in below for pair in pairwise(line)),
        cycles=tuple(tuple(systems[row] for row in rows) for rows in groups),
        circles=tuple(tuple(systems[row] for row in _walk(rows[0], edges)) for rows in groups),
        verdicts=len(edges),
    )


def _walk(start: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The shortest way along edges from a run back to itself, without the return."""
    ways = [[start]]
    seen: set[int] = set()
    for way in ways:  # grows while it is read: the shortest ways first
        for better, worse in edges:
            if better == way[-1] and worse == start:
                return way
            if better == way[-1] and worse not in seen:
                seen.add(worse)
                ways.append([*way, worse])
    raise ValueError(start)


def _circles(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each run the number of its strongly connected component."""
    if not edges:
        return list(range(count))
    rows, columns = zip(*edges, strict=True)
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to load

    graph = csr_array((np.ones(len(edges), np.int8), (rows, columns)), shape=(count, count))
    labels: list[int] = connected_components(graph, directed=True, connection="strong")[1].tolist()
    return labels


Side = Literal["A", "B"]
Word = Literal["strict", "do no harm", "no verdict"]
P = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules say of a pair.

    Attributes:
        word: the rule that holds; strict comes before do no harm.
        better: which of the two is the better; `None` without a verdict.
        why: the reason, as a sentence.
        p_strict: the largest p of both tests and, by search length and a margin, of the evidence
            against rare harm; corrected over pairs. `None` where the tests point different ways
            or one is undefined.
        p_no_harm: twice the smaller p of both ways, corrected over pairs; `None` where nothing
            was tested: with `by` rr, under the plain rule, or where all is undefined.
    """

    word: Word
    better: Side | None
    why: str
    p_strict: P
    p_no_harm: P


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(PairTests):
    """A pair, counted and tested, with what is said of it.

    Attributes:
        declared: the line that decides case (3).
        corrected: p by line; a line that was not declared is corrected as if it had been.
        verdict: what the rules say.
    """

    declared: Line
    corrected: Mapping[Line, P]
    verdict: Verdict


def correct_lines(
    rows: Sequence[Mapping[Line, P]], *, declared: Line, correction: Correction
) -> tuple[dict[Line, P], ...]:
    """Correct every p for pairs × outcomes.

    Args:
        rows: p by line for each pair, the same lines for each.
        declared: the line that decides case (3).
        correction: how.

    Returns:
        For each pair p by line. The family of a line of case (3) is that line and case (2), of
        all pairs; of case (2) it is that of the declared line.
    """
    corrected: list[dict[Line, P]] = [{} for _ in rows]
    for line in rows[0]:
        first = [next(row[other] for other in FOUND if other in row) for row in rows]
        second = [row[declared if line in FOUND else line] for row in rows]
        both = correct([*first, *second], correction)
        half = both[: len(rows)] if line in FOUND else both[len(rows) :]
        for into, p in zip(corrected, half, strict=True):
            into[line] = p
    return tuple(corrected)


def correct(ps: Sequence[P], correction: Correction) -> Sequence[P]:
    """Correct the p-values of a family; an undefined one counts, and stays undefined."""
    if correction == "none":
        return ps
    return (holm if correction == "holm" else bonferroni)(ps)


def judge_pairs(pairs: Sequence[PairTests], rules: Rules) -> tuple[Judged, ...]:
    """Correct the tests of all pairs and say what the rules say.

    Args:
        pairs: all pairs that were looked at, at least one; all of runs or all of groups.
        rules: as declared.
    """
    declared = line_of(rules.by, "crossed-t" if pairs[0].grouped else rules.decide)
    rows = [{line: test.p for line, test in pair.tests.items()} for pair in pairs]
    corrected = correct_lines(rows, declared=declared, correction=rules.correction)
    facts = [_Facts.of(pair, declared) for pair in pairs]
    strict = correct([fact.strict(rules) for fact in facts], rules.correction)
    no_harm = correct([fact.no_harm(rules) for fact in facts], rules.correction)
    judged = []
    for pair, fact, ps, *found in zip(pairs, facts, corrected, strict, no_harm, strict=True):
        significant = _Significant.of(fact, ps, declared, rules.alpha)
        verdict = _judge(fact, significant, rules, found[0], found[1])
        tested = {one.name: getattr(pair, one.name) for one in fields(PairTests)}
        judged.append(Judged(**tested, declared=declared, corrected=ps, verdict=verdict))
    return tuple(judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What the rules look at: p-values before correction, and whom they favour."""

    more: Side | None
    more_p: P
    above: Side | None
    above_p: P
    not_longer: Mapping[Side, float]
    not_fewer: Mapping[Side, float]
    constant: bool
    both: float
    lines: Collection[Side | None]

    @classmethod
    def of(cls, pair: PairTests, declared: Line) -> "_Facts":
        found = next(pair.tests[line] for line in FOUND if line in pair.tests)
        ranked = pair.tests[declared]
        return cls(
            more=_favoured(found.difference),
            more_p=found.p,
            above=_favoured_by(pair, declared),
            above_p=ranked.p,
            not_longer={
                "A": max(pair.no_rare_harm, pair.a_not_longer or 0.0),
                "B": max(pair.no_rare_harm, pair.b_not_longer or 0.0),
            },
            not_fewer={"A": _p(pair.a_not_fewer), "B": _p(pair.b_not_fewer)},
            constant=pair.a_not_longer is None,
            both=pair.both,
            lines={_favoured_by(pair, line) for line in pair.tests},
        )

    def strict(self, rules: Rules) -> P:
        """The p of the strict rule: the largest of both tests, and of the guard against harm."""
        if self.more_p is None or self.above_p is None:
            return None
        if self.more != self.above or self.more is None:
            return None
        guarded = rules.harm == "margin" and rules.by == "esl"
        return max(self.more_p, self.above_p, self.not_longer[self.more] if guarded else 0.0)

    def ways(self, side: Side) -> tuple[float, float]:
        """The p of both ways to do no harm: to find more, to rank better."""
        more = _p(self.more_p) if self.more == side else 1.0
        above = _p(self.above_p) if self.above == side else 1.0
        return max(more, self.not_longer[side]), max(above, self.not_fewer[side])

    def no_harm(self, rules: Rules) -> P:
        """Twice the smaller p of both ways, of the side for which it is smaller."""
        if rules.by == "rr" or rules.harm == "plain":
            return None
        if self.more_p is None and self.above_p is None:
            return None
        return min(1.0, 2 * min(*self.ways("A"), *self.ways("B")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Significant:
    """Who finds significantly more, and who ranks significantly better, once corrected."""

    more: Side | None
    above: Side | None

    @classmethod
    def of(
        cls, fact: _Facts, corrected: Mapping[Line, P], declared: Line, alpha: float
    ) -> "_Significant":
        more_p = next(corrected[line] for line in FOUND if line in corrected)
        return cls(
            more=fact.more if _p(more_p) <= alpha else None,
            above=fact.above if _p(corrected[declared]) <= alpha else None,
        )


def _p(p: P) -> float:
    """What is undefined is no evidence."""
    return 1.0 if p is None else p


def _favoured(difference: float | None) -> Side | None:
    if not difference:
        return None
    return "B" if difference > 0 else "A"


def _favoured_by(pair: PairTests, line: Line) -> Side | None:
    """Whom a line favours, by its test and by the mean; nobody where these differ."""
    tested = pair.tests[line].difference
    if line in FOUND:
        return _favoured(tested)
    means = pair.esl if line.startswith("esl") else pair.rr
    if tested is None or means.a is None or means.b is None:
        return None
    sign = -1 if line.startswith("esl") else 1
    side = _favoured(sign * tested)
    return side if side == _favoured(sign * (means.b - means.a)) else None


_OTHER: Mapping[Side, Side] = {"A": "B", "B": "A"}


def _judge(fact: _Facts, significant: _Significant, rules: Rules, strict: P, no_harm: P) -> Verdict:
    harmless = {}
    if rules.harm == "plain" and rules.by == "esl":
        harmless = _plainly_harmless(significant)
    elif _p(no_harm) <= rules.alpha:
        harmless = _surely_harmless(fact, rules)
    word: Word = "no verdict"
    better: Side | None = None
    if _p(strict) <= rules.alpha:
        word, better = "strict", fact.more
        why = f"{better} finds more, and {_ranks_better(rules)} where both find; each significant"
    elif len(harmless) == 1:
        word = "do no harm"
        ((better, why),) = harmless.items()
    elif harmless:
        why = "each does one thing better, and neither harms"
    else:
        why = _why_none(fact, significant, rules)
    return Verdict(word=word, better=better, why=why, p_strict=strict, p_no_harm=no_harm)


def _surely_harmless(fact: _Facts, rules: Rules) -> dict[Side, str]:
    """Who does one thing better, with the other not worse by the margin; and why."""
    found: dict[Side, str] = {}
    for side in _OTHER:
        more, above = fact.ways(side)
        if 2 * min(more, above) > rules.alpha:
            continue
        if more <= above:
            found[side] = f"{side} finds significantly more, and {_not_longer(fact, rules)}"
        else:
            found[side] = (
                f"{side} has a significantly lower ESL, and does not find fewer queries by a share "
                f"of {rules.margins.found:g} or more"
            )
    return found


def _not_longer(fact: _Facts, rules: Rules) -> str:
    if not fact.constant:
        return f"its ESL is not higher by {rules.margins.esl:g} or more"
    if not fact.both:
        return f"among so few ranks none can be higher by {rules.margins.esl:g}"
    return (
        f"on every query that both find its rank differs by the same, less than "
        f"{rules.margins.esl:g} to its harm"
    )


def _plainly_harmless(significant: _Significant) -> dict[Side, str]:
    """The paper's rule: whom nothing significant speaks against."""
    found: dict[Side, str] = {}
    for side, other in _OTHER.items():
        if significant.more == side and significant.above != other:
            found[side] = f"{side} finds significantly more, without a significantly higher ESL"
        elif significant.above == side and significant.more != other:
            found[side] = (
                f"{side} has a significantly lower ESL, without finding significantly fewer"
            )
    return found


def _ranks_better(rules: Rules) -> str:
    return "has the lower ESL" if rules.by == "esl" else "has the higher RR"


def _why_none(fact: _Facts, significant: _Significant, rules: Rules) -> str:
    """Why no rule holds."""
    (favoured,) = fact.lines if len(fact.lines) == 1 else (None,)
    if favoured and not (significant.more or significant.above):
        return f"every line favours {favoured}, none significantly"
    if significant.more and significant.more == significant.above:
        return (
            f"{significant.more} finds significantly more and {_ranks_better(rules)}, but rare "
            f"harm of {rules.margins.esl:g} positions or more in the mean is not ruled out"
        )
    if not (significant.more or significant.above):
        return "no significant difference in which queries are answered, or in how high"
    parts = [
        f"{significant.more} finds significantly more"
        if significant.more
        else "no significant difference in which queries are answered",
        f"{significant.above} {_ranks_better(rules)}, significantly"
        if significant.above
        else "no significant difference in how high",
    ]
    if significant.more and significant.above and significant.more != significant.above:
        parts.append("they favour different runs")
    else:
        parts.append("the strict rule needs both, and harm is not ruled out")
    return "; ".join(parts)
