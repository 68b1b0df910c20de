"""Is B better than A? Two runs, or two groups of seeds: `heldout compare`."""

from dataclasses import dataclass
from itertools import chain

from numpy.random import PCG64, Generator

from heldout.analyses.outcomes.curves import curves_chart, curves_title, success_curves
from heldout.analyses.outcomes.means import compare_means, mean_summary, mean_tables
from heldout.analyses.outcomes.options import CompareOptions
from heldout.analyses.outcomes.outcomes import analyse_outcomes, describe_outcomes
from heldout.analyses.outcomes.words import (
    compared_summary,
    fit_summary,
    tables,
    verdict_summary,
)
from heldout.answers.answer import Answer, to_document
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.run_files import describe_orders
from heldout.scoring.score import Reading
from heldout.scoring.sources import ComparedRuns, ComparedScores, find_compared, score_compared


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides that are compared, on all queries or on some.

    Attributes:
        runs: both sides.
        options: as asked for.
        seed: of all draws.
    """

    runs: ComparedRuns
    options: CompareOptions
    seed: int = 0

    def load(self, reading: Reading) -> ComparedScores:
        """The scores of all runs, in one pass over each file.

        Raises:
            InputError: a file has errors, or a measure is unknown or has no value for some query.
        """
        options = self.options
        measures = dict.fromkeys(str(parse_measure(one, path="-m")) for one in options.measures)
        return score_compared(
            self.runs,
            qrels=options.qrels,
            order=options.order,
            rel=options.rel,
            k=options.k,
            measures=tuple(measures),
            reading=reading,
        )

    def answer(self, scores: ComparedScores) -> Answer:
        """Which side is better: by the measures that were asked for, and by outcomes."""
        options, a, b = self.options, self.runs.a, self.runs.b
        ranks = first_ranks(scores.ranks.table, k=options.k)
        result = analyse_outcomes(ranks, [(a, b)], options.rules, level=options.level)
        rng = Generator(PCG64(self.seed))
        curves = success_curves(ranks, a, b, rng, band=options.intervals, level=options.level)
        rng = Generator(PCG64(self.seed))
        means = compare_means(scores.measures, a, b, rng, options.rules, level=options.level)
        several = len(scores.several.intersection(ranks.queries))
        asked = mean_summary(means)
        fit = fit_summary(result, several=several, asked=bool(asked))
        verdict = verdict_summary(result)
        compared = (*compared_summary(result), *(("", line) for line in scores.ranks.zeros))
        evidence = (tables(result, curves, several=several), mean_tables(means))
        document = describe_outcomes(result, several)
        (pair,) = document.pop("pairs")
        del document["order"]
        return Answer(
            # What was asked for leads
            summary=(
                *((*asked, *compared, *verdict, *fit) if asked else (*fit, *verdict, *compared)),
                *describe_orders(scores.ranks.orders, given=options.order),
            ),
            tables=tuple(chain.from_iterable(reversed(evidence) if asked else evidence)),
            document=pair
            | document
            | {
                "success": to_document(curves),
                "means": to_document(means),
                "seed": self.seed,
                "rel": options.rel,
                "orders": list(scores.ranks.orders),
            },
            chart=lambda: curves_chart(curves),
            title=curves_title(curves),
        )


def find_comparison(options: CompareOptions, seed: int = 0) -> Comparison:
    """The comparison that was asked for, with the files of both sides.

    Raises:
        InputError: code `no-run`: a pattern names nothing; `same-run`: a file is named twice.
    """
    return Comparison(find_compared(options.a, options.b), options, seed)
