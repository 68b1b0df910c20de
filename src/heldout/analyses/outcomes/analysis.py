"""Which runs are better than which, by what they find and how high."""

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.outcomes.curves import bars_chart, bars_title
from heldout.analyses.outcomes.options import MOST_PAIRS, OutcomesOptions
from heldout.analyses.outcomes.outcomes import (
    all_pairs,
    analyse_outcomes,
    describe_outcomes,
    pairs_with,
)
from heldout.analyses.outcomes.pairs import count_opposed, summary, tables
from heldout.analyses.outcomes.words import fit_summary
from heldout.answers.answer import Answer
from heldout.errors import InputError
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.sources import Scores, queries_with_several

_DEFAULT = "RR@100"
_UNCUT = 1000
_INSTEAD = "compare by a measure: heldout compare -m nDCG@10, heldout analyse stability -m nDCG@10"


def _analyse(scores: Scores, options: OutcomesOptions, draws: Draws) -> Answer:
    ranks = first_ranks(scores.table, k=_depth(scores.measure, options.k))
    baseline = options.baseline
    pairs = all_pairs(ranks) if baseline is None else pairs_with(ranks, baseline)
    found = analyse_outcomes(
        ranks, pairs, options.rules, level=options.level, executor=draws.executor
    )
    several = None
    if scores.judgments is not None:
        rel = parse_measure(scores.measure).params.rel or 1
        several = len(queries_with_several(scores.judgments, rel).intersection(ranks.queries))
    opposed, sure = count_opposed(found)
    most = MOST_PAIRS if draws.short and not options.every else None
    return Answer(
        summary=(
            *fit_summary(found, several=several, instead=_INSTEAD),
            *summary(found),
            *scores.facts,
        ),
        tables=tables(found, most=most),
        document=describe_outcomes(found, several)
        | scores.document
        | {"baseline": baseline, "esl_and_rr_disagree": {"pairs": opposed, "significant": sure}},
        chart=lambda: bars_chart(found),
        title=bars_title(found),
    )


def _depth(name: str, k: int | None) -> int:
    """How deep lists are looked at: 1,000 of a measure without a cutoff, and 100 of a bare table.

    Raises:
        InputError: code `not-reciprocal-ranks`.
    """
    measure = parse_measure(name or _DEFAULT, path="-m")
    code = "not-reciprocal-ranks"
    if name and measure.name != "RR":
        expected = "a reciprocal rank, from which outcomes are counted"
        raise InputError.of(code, "-m", str(measure), expected, "-m RR@100")
    if name and k is not None and measure.cutoff is not None and measure.cutoff < k:
        found = f"{k}, deeper than {measure} looks"
        raise InputError.of(code, "-k", found, f"{measure.cutoff} at most")
    return k or measure.cutoff or _UNCUT


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
