"""Which runs are better than which, by what they find and how high."""

from dataclasses import dataclass, field
from typing import Annotated

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.outcomes.curves import bars_spec, bars_title
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes, pairs_with
from heldout.analyses.outcomes.pairs import facts, tables, value
from heldout.analyses.outcomes.verdicts import Rules
from heldout.analyses.outcomes.words import fit_facts
from heldout.answers.answer import Answer
from heldout.errors import InputError, Problem
from heldout.options import Level, Opt
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.scores import Scores
from heldout.scoring.sources import queries_with_several
from heldout.scoring.spec import parse_measure

_DEFAULT = "RR@100"
_UNCUT = 1000
_INSTEAD = "compare by a measure: heldout compare -m nDCG@10, heldout analyse stability -m nDCG@10"
_MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesOptions:
    """Options of `heldout analyse outcomes`."""

    baseline: Annotated[
        str | None, Opt("Run to compare with all others [all pairs].", metavar="RUN")
    ] = None
    k: Annotated[
        int | None,
        Opt(
            "Depth to which lists are looked at [as the measure; 100 of a table].",
            names=("-k",),
            least=1,
        ),
    ] = None
    every: Annotated[
        bool, Opt(f"All pairs on the terminal, not {_MOST} at most.", names=("--all",))
    ] = False
    rules: Rules = field(default_factory=Rules)
    level: Level = 0.95


def _analyse(scores: Scores, options: OutcomesOptions, draws: Draws) -> Answer:
    ranks = first_ranks(scores.table, k=_depth(scores.measure, options.k))
    baseline = options.baseline
    pairs = all_pairs(ranks) if baseline is None else pairs_with(ranks, baseline)
    found = analyse_outcomes(
        ranks, pairs, options.rules, level=options.level, executor=draws.executor
    )
    several = _count_several(scores, ranks.queries)
    most = _MOST if draws.short and not options.every else None
    return Answer(
        summary=(
            *fit_facts(found, several=several, instead=_INSTEAD),
            *facts(found),
            *scores.facts,
        ),
        tables=tables(found, most=most),
        document=value(found, several=several) | scores.document | {"baseline": baseline},
        chart=lambda: bars_spec(found),
        title=bars_title(found),
    )


def _depth(name: str, k: int | None) -> int:
    """How deep lists are looked at: 1,000 of a measure without a cutoff, and 100 of a bare table.

    Raises:
        InputError: code `not-reciprocal-ranks`.
    """
    measure = parse_measure(name or _DEFAULT, path="-m")
    if name and measure.name != "RR":
        raise InputError(
            Problem(
                code="not-reciprocal-ranks",
                path="-m",
                found=str(measure),
                expected="a reciprocal rank, from which outcomes are counted",
                hint="-m RR@100",
            )
        )
    if name and k is not None and measure.cutoff is not None and measure.cutoff < k:
        raise InputError(
            Problem(
                code="not-reciprocal-ranks",
                path="-k",
                found=f"{k}, deeper than {measure} looks",
                expected=f"{measure.cutoff} at most",
            )
        )
    return k or measure.cutoff or _UNCUT


def _count_several(scores: Scores, queries: tuple[str, ...]) -> int | None:
    """Queries with several relevant documents; `None` where no judgments are known."""
    if scores.judgments is None:
        return None
    rel = parse_measure(scores.measure).params.rel or 1
    return len(queries_with_several(scores.judgments, rel).intersection(queries))


def _against_best(scores: Scores) -> OutcomesOptions:
    """The best run against all others: all pairs of a board are too many to read."""
    means = {system: scores.table.mean(system) or 0.0 for system in scores.table.systems}
    return OutcomesOptions(baseline=max(means, key=means.__getitem__))


ANALYSIS = Analysis(
    name="outcomes",
    help="""For every two runs: who finds what, how high, and which is the better.

    The measure is a reciprocal rank, RR@100 if not given; RR(rel=2)@100 counts grade 2 and above.

    \b
    Example:
      heldout analyse outcomes --runs 'runs/*.gz' --qrels dev.qrels --baseline bm25
    """,
    source="scores",
    options=OutcomesOptions,
    analyse=_analyse,
    chapter="The best against all others",
    seeded=False,
    measure=_DEFAULT,
    report_options=_against_best,
)
