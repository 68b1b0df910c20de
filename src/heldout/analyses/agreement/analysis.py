"""How far do judges agree beyond chance, and how alike do runs rank?"""

from dataclasses import dataclass, field
from typing import Annotated

from heldout.analyses.agreement import judges, runs
from heldout.analyses.agreement.judges import JudgeOptions, Ratings, judge_agreement
from heldout.analyses.agreement.runs import Tops, run_agreement
from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.options import Opt
from heldout.stats.rank_correlation import RboTies


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOptions:
    """Options of `heldout analyse agreement`."""

    judges: JudgeOptions = field(default_factory=JudgeOptions)
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
    if isinstance(given, Tops):
        alike = run_agreement(
            given.runs,
            depth=given.depth,
            p=options.persistence,
            ties=options.ties,
            level=options.judges.level,
        )
        return Answer(
            answer=runs.headline(alike),
            summary=(*runs.summary(alike), *given.facts),
            tables=runs.tables(alike),
            document=to_document(alike) | {"orders": list(given.orders)},
            chart=lambda: runs.chart(alike),
            title=runs.title(alike),
        )
    found = judge_agreement(given, draws.rng(), options.judges)
    return Answer(
        answer=judges.headline(found),
        summary=judges.summary(found),
        tables=judges.tables(found),
        document=to_document(found),
        chart=(lambda: judges.chart(found)) if found.pairs else None,
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
