"""Does a ranking hold for every kind of query? Standings, differences, interactions, subsets.

Three questions, each with its own family:

- the standings on each facet that is large enough;
- for every system and a reference, the difference on each facet: paired t, its interval alone and
  with all at once (Bonferroni over facets and systems);
- system by facet: is a system better or worse on a facet than outside it, beyond what the facet
  does to all systems? Scores less the mean of all systems on the same query are compared inside
  and outside (`compare_subgroups`), corrected over all systems and facets.

Only the third can say that systems differ in what they are good at: a difference that is
significant on one facet and not on another is no evidence of that.

What a facet cuts out of a collection can be written out: a training set to be trained on, a test
set to be asked every question of `heldout analyse` again (Craswell et al. 2021, §5, on Med-MARCO,
the medical queries of MS MARCO).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from numpy.random import Generator

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import MUTED, cut
from heldout.errors import InputError, plural, quote
from heldout.ids import Digest
from heldout.options import Level, Opt
from heldout.scoring.sources import Scores
from heldout.scoring.table import Better, ScoreMatrix, ScoreTable, cut_table, score_matrix
from heldout.stats import regression, tests
from heldout.trec.qrels import format_qrels
from heldout.trec.queries import format_queries

_SIDES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A kind of query.

    Attributes:
        name: of the facet; "" for all queries.
        queries: how many have scores.
        means: by system, in the order of `Facets.systems`.
        ranks: likewise, from 1; equal means share the best of their ranks.
    """

    name: str
    queries: int
    means: tuple[float, ...]
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetDifference:
    """A system against the reference on one facet.

    Attributes:
        facet: its name; "" for all queries, which are a family of their own: one difference for
            each system that is compared.
        system: who is compared.
        queries: how many.
        difference: of the means, system - reference.
        low, high: its interval, alone; `None` where undefined.
        low_all, high_all: the interval that holds with all of the family.
        p: paired t, two-sided; `None` where undefined.
        p_corrected: by Bonferroni over the family; `None` where undefined.
        why: the reason where p is undefined, else "".
    """

    facet: str
    system: str
    queries: int
    difference: float
    low: float | None
    high: float | None
    low_all: float | None
    high_all: float | None
    p: float | None
    p_corrected: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """How much more of a system's advantage over all systems it has inside a facet than outside.

    Attributes:
        facet, system: which.
        effect: mean of (score - mean of all systems) inside the facet, less the same outside.
        error: its standard error; `None` where scores do not vary.
        p: corrected over all systems and facets; `None` where scores do not vary.
        why: why it is `None`, else "".
    """

    facet: str
    system: str
    effect: float
    error: float | None
    p: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetsOptions:
    """Options of `heldout analyse facets`."""

    against: Annotated[
        str | None, Opt("Reference system [the best on all queries].", metavar="SYSTEM")
    ] = None
    system: Annotated[
        str | None,
        Opt("Single system to compare, if it was declared beforehand [all].", metavar="SYSTEM"),
    ] = None
    level: Level = 0.95
    draws: Annotated[int, Opt("Number of permutations behind the interactions.", least=1)] = 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Standings, differences and interactions by facet.

    Attributes:
        systems: names, the best on all queries first.
        overall: all queries.
        facets: those that are large enough.
        left_out: facets with too few queries -> how many they have.
        unlabelled: queries in no facet.
        reference: whom systems are compared with.
        differences: all queries first, then the family: each system on each facet.
        chosen: whether the reference was chosen by its score, and not named beforehand.
        family: how many differences there are on facets.
        family_overall: how many there are on all queries.
        interactions: of systems with facets that leave queries outside; the smallest p first.
        least: fewest queries of a facet.
        options: as asked for.
        better: which scores are better.
        digest: of the table of scores.
    """

    systems: tuple[str, ...]
    overall: Facet
    facets: tuple[Facet, ...]
    left_out: Mapping[str, int]
    unlabelled: int
    reference: str
    chosen: bool
    differences: tuple[FacetDifference, ...]
    family: int
    family_overall: int
    interactions: tuple[Interaction, ...]
    least: int
    options: FacetsOptions
    better: Better
    digest: Digest


def compare_facets(
    table: ScoreTable,
    facets: Mapping[str, AbstractSet[str]],
    rng: Generator,
    options: FacetsOptions,
    *,
    least: int = 20,
    better: Better = "higher",
    executor: Executor | None = None,
) -> Facets:
    """Split a ranking by facets of its queries.

    Args:
        table: at least two systems on at least two queries, none missing.
        facets: queries by facet; a query may be in several, or in none.
        rng: where draws come from.
        options: the reference, the one system to compare with it, intervals and draws.
        least: fewest queries of a facet, at least 2; a smaller one is left out, and named.
        better: which scores are better.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`, `no-facet`,
            `unknown-system`.
    """
    matrix = score_matrix(table, better=better)
    cuts = cut_queries(table, facets, least=max(least, _SIDES))
    sizes = {name: len(queries & set(table.queries)) for name, queries in facets.items()}
    if not cuts:
        largest = max(sizes.values(), default=0)
        raise InputError.of(
            "no-facet",
            "facets",
            (
                f"{plural(len(sizes), 'facet')}, the largest with "
                f"{plural(largest, 'query', 'queries')} that have scores"
            ),
            f"at least one with {least}",
            "are these the ids of the queries? a smaller facet says little",
        )
    reference = matrix.systems[0]
    if options.against is not None:
        reference = _known(options.against, matrix.systems, "--against")
    others = [name for name in matrix.systems if name != reference]
    if options.system is not None:
        others = [_known(options.system, others, "--system")]
    family = len(cuts) * len(others)
    differences = [
        _compare(
            cut, name, reference, other, level=options.level, family=family if name else len(others)
        )
        for name, cut in {"": table, **cuts}.items()
        for other in others
    ]
    return Facets(
        systems=matrix.systems,
        overall=_stand("", table, matrix.systems, better),
        facets=tuple(_stand(name, cut, matrix.systems, better) for name, cut in cuts.items()),
        left_out={name: size for name, size in sizes.items() if name not in cuts},
        unlabelled=len(set(table.queries).difference(*facets.values())),
        reference=reference,
        chosen=options.against is None,
        differences=tuple(differences),
        family=family,
        family_overall=len(others),
        interactions=_interact(matrix, cuts, rng, options.draws, executor),
        least=least,
        options=options,
        better=better,
        digest=table.digest,
    )


def _stand(name: str, table: ScoreTable, systems: tuple[str, ...], better: Better) -> Facet:
    means = [table.mean(system) or 0.0 for system in systems]
    signed = np.round(means, 12) * (1 if better == "higher" else -1)
    return Facet(
        name=name,
        queries=len(table.queries),
        means=tuple(means),
        ranks=tuple(int(1 + (signed > own).sum()) for own in signed),
    )


def _compare(
    table: ScoreTable, facet: str, reference: str, system: str, *, level: float, family: int
) -> FacetDifference:
    a, b = (table.values[table.systems.index(name)] for name in (reference, system))
    alone = tests.run_test("t", a, b, level=level)
    together = tests.run_test("t", a, b, level=1 - (1 - level) / family)
    return FacetDifference(
        facet=facet,
        system=system,
        queries=len(table.queries),
        difference=float(np.mean(b - a)),
        low=alone.low,
        high=alone.high,
        low_all=together.low,
        high_all=together.high,
        p=alone.p,
        p_corrected=None if alone.p is None else min(1.0, alone.p * family),
        why=alone.why or "",
    )


def _interact(
    matrix: ScoreMatrix,
    cuts: Mapping[str, ScoreTable],
    rng: Generator,
    draws: int,
    executor: Executor | None,
) -> tuple[Interaction, ...]:
    # In the order of names, so that shuffled columns give the same draws.
    inside = {name: set(cut.queries) for name, cut in cuts.items()}
    names = [name for name in cuts if len(matrix.queries) - len(inside[name]) >= _SIDES]
    if not names:
        return ()
    member = np.array([[query in inside[name] for query in matrix.queries] for name in names])
    values = matrix.values if matrix.better == "higher" else -matrix.values
    found = regression.compare_subgroups(
        values - values.mean(axis=0), member, rng, draws=draws, executor=executor
    )
    interactions = []
    for (row, column), effect in np.ndenumerate(found.difference):
        error, p = float(found.error[row, column]), float(found.p[row, column])
        varies = error > 0
        interactions.append(
            Interaction(
                facet=names[column],
                system=matrix.systems[row],
                effect=float(effect),
                error=error if varies else None,
                p=p if varies else None,
                why="" if varies else "scores less the mean of all systems do not vary",
            )
        )
    return tuple(sorted(interactions, key=_by_p))


def _by_p(one: Interaction) -> tuple[float, float]:
    """Least p first, then the largest effect in errors; what differs in the last digits ties.

    Of two systems each is as far from the mean as the other, and processors round differently.
    """
    ratio = abs(one.effect) / one.error if one.error else 0.0
    return (2.0 if one.p is None else one.p, -float(f"{ratio:.9g}"))


def _known(name: str, systems: Sequence[str], option: str) -> str:
    if name not in systems:
        expected = "a system that has scores, and not the reference"
        raise InputError.of("unknown-system", option, quote(name), expected)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresByKind:
    """Scores, and which queries are of which kind.

    Attributes:
        scores: of all queries.
        kinds: queries by kind.
        least: fewest queries of a kind that is looked at.
    """

    scores: Scores
    kinds: Mapping[str, AbstractSet[str]]
    least: int = 20

    @property
    def size(self) -> int:
        """How many queries."""
        return self.scores.size

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        return replace(self, scores=self.scores.cut(queries))


def _analyse(given: ScoresByKind, options: FacetsOptions, draws: Draws) -> Answer:
    result = compare_facets(
        given.scores.table,
        given.kinds,
        draws.rng(),
        options,
        least=given.least,
        better=given.scores.better,
        executor=draws.executor,
    )
    return Answer(
        answer=headline(result),
        summary=(*summary(result), *given.scores.facts),
        tables=tables(result, measure=given.scores.measure),
        document=to_document(result) | given.scores.document,
        chart=lambda: chart(result),
        title=title(result),
    )


ANALYSIS = Analysis(
    name="facets",
    help="""Does a ranking hold for every kind of query?

    Standings and differences on each kind, and whether a system is better on a kind than outside
    it. With --write the queries of --only become a collection of their own.

    \b
    Example:
      heldout analyse facets --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 \\
        --queries queries.tsv --facet question --chart facets.svg
      heldout analyse facets --queries train.tsv --qrels train.qrels \\
        --only words:medical.txt=medical --write med
    """,
    source="kinds",
    options=FacetsOptions,
    analyse=_analyse,
    chapter="By kind of query",
)


_ALL = "all queries"
_NAME = 32


def headline(result: Facets) -> str:
    """Return whether a system does better or worse on a kind of query than elsewhere."""
    found = _standing_out(result)
    return write("facets.headline", result=result, **_weigh(result, found))


def _weigh(result: Facets, found: Sequence[Interaction]) -> dict[str, object]:
    """Return what sentences say of the interactions: how many, why none, and the clearest."""
    tested = sum(one.p is not None for one in result.interactions)
    why = [one.why for one in result.interactions] or ["no facet leaves two queries outside"]
    better = bool(found) and (found[0].effect > 0) == (result.better == "higher")
    return {
        "tested": tested,
        "why": "" if tested else why[0],
        "found": found,
        "direction": "better" if better else "worse",
    }


def _standing_out(result: Facets) -> list[Interaction]:
    """The interactions that are significant, corrected."""
    alpha = 1 - result.options.level
    return [one for one in result.interactions if one.p is not None and one.p <= alpha]


def summary(result: Facets) -> tuple[tuple[str, str], ...]:
    """Return who leads where, and how many systems differ in what they are for.

    Args:
        result: what was found.
    """
    leads = sum(facet.ranks[0] == 1 for facet in result.facets)
    found = _weigh(result, _standing_out(result))
    return write_facts("facets.summary", result=result, leads=leads, **found)


def tables(result: Facets, *, measure: str = "") -> tuple[Table, ...]:
    """Standings by facet, differences from the reference, and interactions.

    Args:
        result: what was found.
        measure: what was measured, for the heading.
    """
    interactions = [_interactions(result)] if result.interactions else []
    return (_standings(result, measure or "score"), _differences(result), *interactions)


def title(result: Facets) -> str:
    """Return what the picture shows."""
    return f"{_drawn(result)} against {result.reference} on each facet of the queries"


def chart(result: Facets) -> Plot:
    """One system's difference from the reference by facet, alone and with all at once."""
    system = _drawn(result)
    shown = [one for one in result.differences if one.system == system]
    ends = [end for one in shown for end in _ends(one) if end is not None]
    plot = Plot(
        x=score_axis([0.0, *ends]),
        rows=[PlotRow(name=f"{_name(one.facet)} ({one.queries:,})") for one in shown],
        head="facet (queries)",
        foot=f"{system} - {result.reference}",
    )
    plot.upright(0)
    for row, one in enumerate(shown):
        plot.interval(row, one.low_all, one.high_all, MUTED, thin=True)
        plot.interval(row, one.low, one.high)
    plot.dots(
        [
            (one.difference, row, f"{_name(one.facet)}: {one.difference:+.4f}")
            for row, one in enumerate(shown)
        ],
        "disc",
    )
    plot.key("line", f"{result.options.level:.0%} interval, each alone")
    plot.key("thin", "all at once", MUTED)
    return plot


def _ends(one: FacetDifference) -> tuple[float | None, ...]:
    return one.difference, one.low, one.high, one.low_all, one.high_all


def _drawn(result: Facets) -> str:
    return result.differences[0].system


def _name(facet: str) -> str:
    return facet or _ALL


def _standings(result: Facets, measure: str) -> Table:
    facets = (result.overall, *result.facets)
    rows: list[tuple[Cell, ...]] = []
    for position, system in enumerate(result.systems):
        cells = [
            cell for facet in facets for cell in (facet.ranks[position], facet.means[position])
        ]
        rows.append((cut(system, _NAME), *cells))
    headings = [f"{cut(_name(facet.name), _NAME)} ({facet.queries:,})" for facet in facets]
    return write_table(
        "facets.standings", tuple(rows), result=result, measure=measure, headings=headings
    )


def _differences(result: Facets) -> Table:
    return write_table(
        "facets.differences",
        tuple(_difference_row(one) for one in result.differences),
        result=result,
        undefined=sorted({one.why for one in result.differences if one.why}),
    )


def _difference_row(one: FacetDifference) -> tuple[Cell, ...]:
    head = (cut(one.system, _NAME), cut(_name(one.facet), _NAME), one.queries)
    return (*head, *_ends(one), one.p, one.p_corrected)


def _interactions(result: Facets) -> Table:
    shown = result.interactions
    return write_table(
        "facets.interactions",
        tuple(
            (cut(one.system, _NAME), cut(one.facet, _NAME), one.effect, one.error, one.p)
            for one in shown
        ),
        result=result,
        undefined=sorted({one.why for one in shown if one.why}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """What is left of a collection.

    Attributes:
        texts: text by query, in the order they came in.
        judgments: query -> document -> grade, of the queries above that have any.
        pairs: (query, relevant document), in the order of the judgments.
        relevant: lowest grade that makes a pair.
    """

    texts: Mapping[str, str]
    judgments: Mapping[str, Mapping[str, int]]
    pairs: tuple[tuple[str, str], ...]
    relevant: int

    def files(self) -> Mapping[str, bytes]:
        """Content by name: `queries.tsv`, `qrels.txt`, `pairs.tsv`; none that would be empty."""
        files = {
            "queries.tsv": format_queries(self.texts),
            "qrels.txt": format_qrels(self.judgments),
            "pairs.tsv": format_pairs(self.pairs),
        }
        return {name: data for name, data in files.items() if data}


def cut_subset(
    texts: Mapping[str, str],
    judgments: Mapping[str, Mapping[str, int]],
    chosen: AbstractSet[str],
    *,
    relevant: int = 1,
) -> Subset:
    """Keep some queries with all that is known of them.

    Args:
        texts: text by query.
        judgments: query -> document -> grade.
        chosen: the queries to keep.
        relevant: lowest grade that makes a training pair.
    """
    chosen_grades = {query: grades for query, grades in judgments.items() if query in chosen}
    return Subset(
        texts={query: text for query, text in texts.items() if query in chosen},
        judgments=chosen_grades,
        pairs=tuple(
            (query, document)
            for query, grades in chosen_grades.items()
            for document, grade in grades.items()
            if grade >= relevant
        ),
        relevant=relevant,
    )


def format_pairs(pairs: tuple[tuple[str, str], ...]) -> bytes:
    """Training pairs: `query<TAB>document`, one in each line."""
    return "".join(f"{query}\t{document}\n" for query, document in pairs).encode()


def cut_queries(
    table: ScoreTable, facets: Mapping[str, AbstractSet[str]], *, least: int
) -> Mapping[str, ScoreTable]:
    """The table of each facet that has enough queries, for any analysis or for standings.

    Args:
        table: systems by queries.
        facets: queries by facet; those that the table does not have are ignored.
        least: fewest queries of a facet, below which it has no table.
    """
    cuts = {name: cut_table(table, queries) for name, queries in facets.items()}
    return {name: cut for name, cut in cuts.items() if len(cut.queries) >= max(least, 1)}
