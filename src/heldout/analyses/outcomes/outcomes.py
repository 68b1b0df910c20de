"""How runs differ: what they find, how high they rank it, and the verdict on which is better.

For every pair each query is found by neither run, by one alone or by both; no mean mixes these
outcomes (Lin et al. 2021, §§4 and 5).

Strict: a run finds more queries that the other does not, and ranks better where both find. By
search length it also needs evidence that its mean is not longer by a margin: the signed ranks of
most queries know nothing of a rare loss. Do no harm: it does one of them, and the other is not
worse by a margin.

Two families of hypotheses are corrected. The p-values of the tests: pairs × outcomes under the one
test that was declared for case (3). The verdicts: pairs, since a strict verdict needs both of its
tests at full alpha (an intersection-union test, Berger 1982), and one that does no harm has two
ways, at half of alpha each.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.outcomes import tests
from heldout.analyses.outcomes.options import Correction, DeclaredRules
from heldout.answers.answer import to_document
from heldout.errors import InputError, quote
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, MethodSide
from heldout.stats.results import bonferroni_column, holm_column, with_none

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Signs = NDArray[np.int8]
"""For each pair -1 for A, 1 for B, 0 for neither."""

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
    systems: Sequence[str], means: Sequence[float], beats: Collection[tuple[int, int]]
) -> RunOrder:
    """Put runs in a line.

    Args:
        systems: names, all different.
        means: their scores, higher is better; equal ones keep the order of `systems`.
        beats: places of runs (better, worse), also as an array of two columns; a pair stands in
            it once at most.
    """
    size = len(systems)
    edges = np.asarray(beats if isinstance(beats, np.ndarray) else list(beats), np.intp)
    better, worse = edges.reshape(-1, 2).T
    above = np.zeros((size, size), np.bool_)
    above[better, worse] = True
    circle = _circles(above)
    members = [np.flatnonzero(circle == group).tolist() for group in range(circle.max() + 1)]
    for rows in members:
        rows.sort(key=lambda row: (-means[row], row))
    # A circle is placed as one, by the best mean in it
    before = np.zeros((len(members), len(members)), np.bool_)
    before[circle[worse], circle[better]] = True
    np.fill_diagonal(before, val=False)
    waits = before.sum(axis=1)
    free = [
        (-means[rows[0]], rows[0], group) for group, rows in enumerate(members) if not waits[group]
    ]
    heapify(free)
    line: list[int] = []
    while free:
        *_, group = heappop(free)
        line += members[group]
        waits -= before[:, group]
        for other in np.flatnonzero(before[:, group] & (waits == 0)).tolist():
            heappush(free, (-means[members[other][0]], members[other][0], other))
    groups = [rows for rows in members if len(rows) > 1]
    return RunOrder(
        systems=tuple(systems[row] for row in line),
        by_verdict=tuple(bool(above[pair]) for pair in pairwise(line)),
        cycles=tuple(tuple(systems[row] for row in rows) for rows in groups),
        circles=tuple(tuple(systems[row] for row in _walk(rows[0], above)) for rows in groups),
        verdicts=int(above.sum()),
    )


def _walk(start: int, above: Flags) -> list[int]:
    """The shortest way along verdicts from a run back to itself, without the return."""
    ways = [[start]]
    seen: set[int] = set()
    for way in ways:  # grows while it is read: the shortest ways first
        if above[way[-1], start]:
            return way
        for worse in np.flatnonzero(above[way[-1]]).tolist():
            if worse not in seen:
                seen.add(worse)
                ways.append([*way, worse])
    raise ValueError(start)


def _circles(above: Flags) -> NDArray[np.intp]:
    """For each run the number of its strongly connected component."""
    if not above.any():
        return np.arange(len(above))
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - slow to load

    labels: NDArray[np.intp] = connected_components(
        csr_array(above.astype(np.int8)), directed=True, connection="strong"
    )[1]
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
        plain: which of the two is the better by the rule of Lin et al. 2021, §5, which `--harm
            plain` applies: one outcome significantly better, the other not significantly worse.
        p_strict: the largest p of both tests and, by search length and a margin, of the evidence
            against rare harm; corrected over pairs. `None` where the tests point different ways
            or one is undefined.
        p_no_harm: twice the smaller p of both ways, corrected over pairs; `None` where nothing
            was tested: with `by` rr, under the plain rule, or where all is undefined.
    """

    word: Word
    better: Side | None
    why: str
    plain: Side | None
    p_strict: P
    p_no_harm: P


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair(tests.PairTests):
    """A pair, counted and tested, with what is said of it.

    Attributes:
        declared: the line that decides case (3).
        corrected: p by line; a line that was not declared is corrected as if it had been.
        verdict: what the rules say.
    """

    declared: tests.Line
    corrected: Mapping[tests.Line, P]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedPairs(tests.TestedPairs[JudgedPair]):
    """Pairs, tested and judged, in columns.

    Attributes:
        declared: the line that decides case (3).
        corrected: p by line, NaN where undefined.
        kinds: verdicts that differ in their words or in `plain`, without a p.
        kind: for each pair the place of its verdict in `kinds`.
        p_strict: as in `Verdict`, NaN where undefined.
        p_no_harm: likewise.
    """

    declared: tests.Line
    corrected: Mapping[tests.Line, Floats]
    kinds: tuple[Verdict, ...]
    kind: NDArray[np.int16]
    p_strict: Floats
    p_no_harm: Floats

    @property
    def better(self) -> Signs:
        """Which is the better."""
        sides = [_SIGNS[kind.better] for kind in self.kinds]
        return np.array(sides, np.int8)[self.kind]

    @property
    def plain(self) -> Signs:
        """Which is the better by the rule of Lin et al. 2021, §5."""
        sides = [_SIGNS[kind.plain] for kind in self.kinds]
        return np.array(sides, np.int8)[self.kind]

    def count(self, word: object) -> int:
        """Return how many pairs have a verdict of this word."""
        of = [position for position, kind in enumerate(self.kinds) if kind.word == word]
        return int(np.isin(self.kind, of).sum())

    def rows(self, start: int, stop: int) -> list[JudgedPair]:
        """Make the pairs that follow each other."""
        part = slice(start, stop)
        corrected = zip(*(with_none(ps[part]) for ps in self.corrected.values()), strict=True)
        kinds = [self.kinds[position] for position in self.kind[part].tolist()]
        return [
            JudgedPair(
                **tested,
                declared=self.declared,
                corrected=dict(zip(self.corrected, ps, strict=True)),
                verdict=Verdict(
                    word=kind.word,
                    better=kind.better,
                    why=kind.why,
                    plain=kind.plain,
                    p_strict=strict,
                    p_no_harm=no_harm,
                ),
            )
            for tested, ps, kind, strict, no_harm in zip(
                self.fields(start, stop),
                corrected,
                kinds,
                with_none(self.p_strict[part]),
                with_none(self.p_no_harm[part]),
                strict=True,
            )
        ]


_SIGNS: Mapping[Side | None, int] = {"A": -1, None: 0, "B": 1}
_SIDES: tuple[Side | None, ...] = ("A", None, "B")


def correct_lines(
    ps: Mapping[tests.Line, Floats], *, declared: tests.Line, correction: Correction
) -> dict[tests.Line, Floats]:
    """Correct every p for pairs × outcomes.

    Args:
        ps: for each line the p of every pair, NaN where undefined.
        declared: the line that decides case (3).
        correction: how.

    Returns:
        The same, corrected. The family of a line of case (3) is that line and case (2), of
        all pairs; of case (2) it is that of the declared line.
    """
    found = next(ps[line] for line in tests.FOUND if line in ps)
    corrected = {}
    for line in ps:
        both = correct_column(
            np.concatenate((found, ps[declared if line in tests.FOUND else line])), correction
        )
        corrected[line] = both[: len(found)] if line in tests.FOUND else both[len(found) :]
    return corrected


def correct(ps: Sequence[P], correction: Correction) -> Sequence[P]:
    """Correct the p-values of a family; an undefined one counts, and stays undefined."""
    return with_none(correct_column(np.array(ps, np.float64), correction))


def correct_column(ps: Floats, correction: Correction) -> Floats:
    """As `correct`, of an array; NaN where undefined."""
    if correction == "none":
        return ps
    return (holm_column if correction == "holm" else bonferroni_column)(ps)


def judge_pairs(pairs: tests.TestedPairs[Any], rules: DeclaredRules) -> JudgedPairs:
    """Correct the tests of all pairs and say what the rules say.

    Args:
        pairs: all pairs that were looked at, at least one; all of runs, or one of groups.
        rules: as declared.
    """
    declared = tests.line_of(rules.by, "crossed-t" if pairs.grouped else rules.decide)
    corrected = correct_lines(
        {line: test.p for line, test in pairs.tests.items()},
        declared=declared,
        correction=rules.correction,
    )
    facts = _Facts.of(pairs, declared)
    strict = correct_column(facts.strict(rules), rules.correction)
    no_harm = correct_column(facts.no_harm(rules), rules.correction)
    case_2 = next(ps for line, ps in corrected.items() if line in tests.FOUND)
    unguarded = correct_column(facts.strict(replace(rules, harm="plain")), rules.correction)
    signs = _Signs(
        strict=strict <= rules.alpha,
        unguarded=unguarded <= rules.alpha,
        more=facts.more,
        found=np.where(case_2 <= rules.alpha, facts.more, 0),
        above=np.where(corrected[declared] <= rules.alpha, facts.above, 0),
        line=facts.line,
        way_a=facts.harmless("A", no_harm, rules),
        way_b=facts.harmless("B", no_harm, rules),
        constant=facts.constant,
        some=facts.some,
    )
    kinds, kind = _name_kinds(signs, rules)
    return JudgedPairs(
        **{one.name: getattr(pairs, one.name) for one in fields(pairs)},
        declared=declared,
        corrected=corrected,
        kinds=kinds,
        kind=kind,
        p_strict=strict,
        p_no_harm=no_harm,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Facts:
    """What the rules look at of each pair: p-values before correction, and whom they favour.

    Attributes:
        more: who finds more.
        more_p: its p, NaN where undefined.
        above: whom the declared line favours.
        above_p: its p.
        not_longer: p against harm by search length.
        not_fewer: p against harm by queries.
        constant: whether all search lengths differ by the same.
        some: whether a query is found by both.
        line: whom every line favours; 0 too where they do not agree.
    """

    more: Signs
    more_p: Floats
    above: Signs
    above_p: Floats
    not_longer: Mapping[Side, Floats]
    not_fewer: Mapping[Side, Floats]
    constant: Flags
    some: Flags
    line: Signs

    @classmethod
    def of(cls, pairs: tests.TestedPairs[Any], declared: tests.Line) -> "_Facts":
        found = next(test for line, test in pairs.tests.items() if line in tests.FOUND)
        favoured = [_favoured_by(pairs, line) for line in pairs.tests]
        agreed = np.all([one == favoured[0] for one in favoured], axis=0)
        rare = pairs.no_rare_harm
        return cls(
            more=_favoured(found.difference),
            more_p=found.p,
            above=_favoured_by(pairs, declared),
            above_p=pairs.tests[declared].p,
            not_longer={
                "A": np.maximum(rare, np.nan_to_num(pairs.a_not_longer)),
                "B": np.maximum(rare, np.nan_to_num(pairs.b_not_longer)),
            },
            not_fewer={"A": _p(pairs.a_not_fewer), "B": _p(pairs.b_not_fewer)},
            constant=np.isnan(pairs.a_not_longer),
            some=pairs.both > 0,
            line=np.where(agreed, favoured[0], 0).astype(np.int8),
        )

    def strict(self, rules: DeclaredRules) -> Floats:
        """The p of the strict rule: the largest of both tests, and of the guard against harm."""
        largest = np.maximum(self.more_p, self.above_p)  # NaN where either is
        if rules.harm == "margin" and rules.by == "esl":
            guard = np.where(self.more < 0, self.not_longer["A"], self.not_longer["B"])
            largest = np.maximum(largest, guard)
        return np.where((self.more == self.above) & (self.more != 0), largest, np.nan)

    def ways(self, side: Side) -> tuple[Floats, Floats]:
        """The p of both ways to do no harm: to find more, to rank better."""
        sign = _SIGNS[side]
        more = np.where(self.more == sign, _p(self.more_p), 1.0)
        above = np.where(self.above == sign, _p(self.above_p), 1.0)
        return np.maximum(more, self.not_longer[side]), np.maximum(above, self.not_fewer[side])

    def no_harm(self, rules: DeclaredRules) -> Floats:
        """Twice the smaller p of both ways, of the side for which it is smaller."""
        if rules.by == "rr" or rules.harm == "plain":
            return np.full(len(self.more), np.nan)
        least = np.minimum.reduce([*self.ways("A"), *self.ways("B")])
        none = np.isnan(self.more_p) & np.isnan(self.above_p)
        return np.where(none, np.nan, np.minimum(1.0, 2 * least))

    def harmless(self, side: Side, no_harm: Floats, rules: DeclaredRules) -> NDArray[np.int8]:
        """By which way a side does no harm once corrected: 1 finds more, 2 ranks better, 0 none."""
        more, above = self.ways(side)
        sure = (no_harm <= rules.alpha) & (2 * np.minimum(more, above) <= rules.alpha)
        return np.where(sure, np.where(more <= above, 1, 2), 0).astype(np.int8)


def _p(ps: Floats) -> Floats:
    """Return what is undefined is no evidence."""
    return np.where(np.isnan(ps), 1.0, ps)


def _favoured(differences: Floats) -> Signs:
    return np.sign(np.nan_to_num(differences)).astype(np.int8)


def _favoured_by(pairs: tests.TestedPairs[Any], line: tests.Line) -> Signs:
    """Whom a line favours, by its test and by the mean; nobody where these differ."""
    tested = _favoured(pairs.tests[line].difference)
    if line in tests.FOUND:
        return tested
    length = line.startswith("esl")
    means = pairs.esl if length else pairs.rr
    agreed = np.where(tested == _favoured(means[1] - means[0]), tested, 0)
    return (-agreed if length else agreed).astype(np.int8)


class _Signs(NamedTuple):
    """What a verdict is made from: of all pairs, or of one.

    Attributes:
        strict: whether the strict rule holds.
        unguarded: whether it holds without evidence against rare harm.
        more: who finds more.
        found: who finds significantly more, once corrected.
        above: who ranks significantly better.
        line: whom every line favours.
        way_a: by which way A does no harm.
        way_b: by which B does none.
        constant: whether all search lengths differ by the same.
        some: whether a query is found by both.
    """

    strict: Any
    unguarded: Any
    more: Any
    found: Any
    above: Any
    line: Any
    way_a: Any
    way_b: Any
    constant: Any
    some: Any


def _name_kinds(
    signs: _Signs, rules: DeclaredRules
) -> tuple[tuple[Verdict, ...], NDArray[np.int16]]:
    """The verdicts that there are, and which of them each pair has."""
    codes = np.zeros(len(signs.more), np.int32)
    for one in signs:
        codes = 4 * codes + (one + np.int8(1))
    different = np.unique(codes)
    shape = (4,) * len(signs)
    digits = np.stack(np.unravel_index(different, shape), axis=1) - 1
    kinds = tuple(_judge(_Signs(*row), rules) for row in digits.tolist())
    return kinds, np.searchsorted(different, codes).astype(np.int16)


_OTHER: Mapping[Side, Side] = {"A": "B", "B": "A"}


def _judge(signs: _Signs, rules: DeclaredRules) -> Verdict:
    """The verdict on a pair, without its p."""
    word: Word = "no verdict"
    better: Side | None = None
    plainly = {}
    if rules.by == "esl":
        plainly = _plainly_harmless(_side(signs.found), _side(signs.above))
    plain = _side(signs.more) if signs.unguarded else next(iter(plainly), None)
    harmless = plainly if rules.harm == "plain" else _surely_harmless(signs, rules)
    if signs.strict:
        word, better = "strict", _side(signs.more)
        why = f"{better} finds more, and {_ranks_better(rules)} where both find; each significant"
    elif len(harmless) == 1:
        word = "do no harm"
        ((better, why),) = harmless.items()
    elif harmless:
        why = "each does one thing better, and neither harms"
    else:
        why = _why_none(signs, rules)
    return Verdict(word=word, better=better, why=why, plain=plain, p_strict=None, p_no_harm=None)


def _side(sign: int) -> Side | None:
    return _SIDES[sign + 1]


def _surely_harmless(signs: _Signs, rules: DeclaredRules) -> dict[Side, str]:
    """Return who does one thing better, with the other not worse by the margin; and why."""
    found: dict[Side, str] = {}
    for side, way in zip(_OTHER, (signs.way_a, signs.way_b), strict=True):
        if way == 1:
            found[side] = f"{side} finds significantly more, and {_not_longer(signs, rules)}"
        elif way:
            found[side] = (
                f"{side} has a significantly lower ESL, and does not find fewer queries by a share "
                f"of {rules.margins.found:g} or more"
            )
    return found


def _not_longer(signs: _Signs, rules: DeclaredRules) -> str:
    if not signs.constant:
        return f"its ESL is not higher by {rules.margins.esl:g} or more"
    if not signs.some:
        return f"among so few ranks none can be higher by {rules.margins.esl:g}"
    return (
        f"on every query that both find its rank differs by the same, less than "
        f"{rules.margins.esl:g} to its harm"
    )


def _plainly_harmless(more: Side | None, above: Side | None) -> dict[Side, str]:
    """The paper's rule: whom nothing significant speaks against."""
    found: dict[Side, str] = {}
    for side, other in _OTHER.items():
        if more == side and above != other:
            found[side] = f"{side} finds significantly more, without a significantly higher ESL"
        elif above == side and more != other:
            found[side] = (
                f"{side} has a significantly lower ESL, without finding significantly fewer"
            )
    return found


def _ranks_better(rules: DeclaredRules) -> str:
    return "has the lower ESL" if rules.by == "esl" else "has the higher RR"


def _why_none(signs: _Signs, rules: DeclaredRules) -> str:
    """Return why no rule holds."""
    favoured, more, above = _side(signs.line), _side(signs.found), _side(signs.above)
    if favoured and not (more or above):
        return f"every line favours {favoured}, none significantly"
    if more and more == above:
        return (
            f"{more} finds significantly more and {_ranks_better(rules)}, but rare "
            f"harm of {rules.margins.esl:g} positions or more in the mean is not ruled out"
        )
    if not (more or above):
        return "no significant difference in which queries are answered, or in how high"
    parts = [
        f"{more} finds significantly more"
        if more
        else "no significant difference in which queries are answered",
        f"{above} {_ranks_better(rules)}, significantly"
        if above
        else "no significant difference in how high",
    ]
    if more and above and more != above:
        parts.append("they favour different runs")
    else:
        parts.append("the strict rule needs both, and harm is not ruled out")
    return "; ".join(parts)


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


def all_pairs(ranks: FirstRanks) -> tests.Pairs:
    """Every two runs, the earlier in the table as A."""
    a, b = np.triu_indices(len(ranks.systems), 1)
    return tests.Pairs(sides=tuple(_single(name) for name in ranks.systems), a=a, b=b)


def pairs_with(ranks: FirstRanks, baseline: str) -> tests.Pairs:
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
    return tests.Pairs(sides=sides, a=np.full(len(b), a), b=b)


def _single(name: str) -> MethodSide:
    return MethodSide(name=name, runs=(name,))


def analyse_outcomes(
    ranks: FirstRanks,
    pairs: Sequence[tests.Pair],
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
    some = tests.Pairs.of(pairs)
    _check(some)
    if any(len(side.runs) > 1 for side in some.sides):
        ((a, b),) = some
        tested = tests.compare_groups(ranks, a, b, rules.margins, level=level)
    else:
        tested = tests.compare_runs(ranks, some, rules.margins, level=level, executor=executor)
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


def _check(pairs: tests.Pairs) -> None:
    if not len(pairs):
        raise InputError.of("too-few-systems", "runs", "no pair", "two runs")
    number = {run: at for at, run in enumerate(run for side in pairs.sides for run in side.runs)}
    first = np.array([number[side.runs[0]] for side in pairs.sides], np.intp)
    single = all(len(side.runs) == 1 for side in pairs.sides)
    same = np.flatnonzero(first[pairs.a] == first[pairs.b]) if single else range(len(pairs))
    for position in same:
        a, b = pairs[int(position)]
        shared = [run for run in a.runs if run in b.runs]
        if shared:
            raise InputError.of("same-run", quote(shared[0]), "the same run as A and as B")


def _order(ranks: FirstRanks, judged: JudgedPairs) -> RunOrder:
    """The runs by verdict; mean reciprocal rank decides between those without one."""
    pairs, better = judged.pairs, judged.better
    position = {name: row for row, name in enumerate(ranks.systems)}
    rows = np.array([position[side.name] for side in pairs.sides], np.intp)
    first, second = rows[pairs.a], rows[pairs.b]
    beats = np.stack((np.where(better < 0, first, second), np.where(better < 0, second, first)))
    shares = np.divide(1.0, ranks.ranks, out=np.zeros(ranks.ranks.shape), where=ranks.ranks > 0)
    means = np.round(shares.mean(axis=1), 12).tolist()
    return order_runs(ranks.systems, means, beats[:, better != 0].T)
