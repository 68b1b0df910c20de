"""How far do judges agree beyond chance, and how alike do runs rank?"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated, Self

from heldout.analyses.agreement import judges, runs
from heldout.analyses.agreement.judges import Ratings, judge_agreement
from heldout.analyses.agreement.runs import run_agreement
from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer
from heldout.options import Level, Opt
from heldout.stats.agreement import KappaWeights, Scale
from heldout.stats.rank_correlation import RboTies
from heldout.trec.ranking import Order
from heldout.trec.tops import TiedTops


@dataclass(frozen=True, slots=True, kw_only=True)
class Tops:
    """The first documents of runs.

    Attributes:
        runs: by name, then by query.
        depth: documents of each query, and those that tie with the last of them.
        orders: of the documents, each once.
        facts: how they are ordered, in lines of `name      what there is to say`.
    """

    runs: Mapping[str, TiedTops]
    depth: int = 100
    orders: tuple[Order, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Queries that some run answers."""
        return len(set().union(*self.runs.values()))

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        part = {
            name: {query: top for query, top in tops.items() if query in queries}
            for name, tops in self.runs.items()
        }
        return replace(self, runs=part)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOptions:
    """Options of `heldout analyse agreement`."""

    scale: Annotated[Scale, Opt("Scale of the grades, for Krippendorff's alpha.")] = "nominal"
    weights: Annotated[
        KappaWeights, Opt("Weights of Cohen's kappa for judges who are several grades apart.")
    ] = "none"
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 1000
    level: Level = 0.95
    persistence: Annotated[
        float,
        Opt(
            "Persistence of rank-biased overlap: 0.9 is about the first ten documents.",
            names=("-p", "--persistence"),
            above=0,
            below=1,
        ),
    ] = 0.9
    ties: Annotated[
        RboTies,
        Opt("Documents with equal scores: w equally good, a order unknown, b as a but corrected."),
    ] = "a"


def _analyse(given: Ratings | Tops, options: AgreementOptions, draws: Draws) -> Answer:
    return (
        _compare_runs(given, options)
        if isinstance(given, Tops)
        else _compare_judges(given, options, draws)
    )


def _compare_runs(given: Tops, options: AgreementOptions) -> Answer:
    alike = run_agreement(
        given.runs,
        depth=given.depth,
        p=options.persistence,
        ties=options.ties,
        level=options.level,
    )
    return Answer(
        summary=(*runs.facts(alike), *given.facts),
        tables=runs.tables(alike),
        document=runs.value(alike) | {"orders": list(given.orders)},
        chart=lambda: runs.spec(alike),
        title=runs.title(alike),
    )


def _compare_judges(given: Ratings, options: AgreementOptions, draws: Draws) -> Answer:
    found = judge_agreement(
        given,
        draws.rng(),
        scale=options.scale,
        weights=options.weights,
        trials=options.trials,
        level=options.level,
    )
    return Answer(
        summary=judges.facts(found),
        tables=judges.tables(found),
        document=judges.value(found),
        chart=(lambda: judges.spec(found)) if found.pairs else None,
        title=judges.title(found),
    )


ANALYSIS = Analysis(
    name="agreement",
    help="""How far do judges agree beyond chance, and how alike do runs rank?

    Judges: Cohen's kappa of each two, Fleiss' kappa where all judged, Krippendorff's alpha of all,
    with intervals over queries. Runs: rank-biased overlap and tau of each two, query by query.

    \b
    Examples:
      heldout analyse agreement --qrels nist.qrels --qrels crowd.qrels --relevant 2
      heldout analyse agreement --ratings labels.tsv --scale ordinal --chart kappa.svg
      heldout analyse agreement --runs 'runs/*.gz' -p 0.9 --chart rbo.svg
    """,
    source="judges",
    options=AgreementOptions,
    analyse=_analyse,
    parallel=False,
)
