"""The intervals that are printed, and the worlds in which they are tried: one explicit table."""

from collections.abc import Sequence
from dataclasses import dataclass

from interval_judges import judges, labellers, runs
from interval_trainings import curve_mean, share
from interval_worlds import (
    GAIN,
    Trial,
    difference,
    drift,
    facet_differences,
    facet_of_rare_losses,
    found_alone,
    found_by_both,
    late_by_both,
    percentiles_of_ranks,
    pilot,
    pilot_of_rare_losses,
    progress,
    ranges_of_equal_systems,
    ranges_of_near_ties,
    ranges_of_rare_failures,
    rare_losses,
    seeds,
    success,
    success_of_few,
    team_ols,
    team_slopes,
)

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One interval in one world.

    Attributes:
        analysis: the command that prints it.
        interval: which it is.
        world: what is drawn.
        near: whether what is compared is nearly tied.
        trial: draws a sample and tells whether the interval of a level holds.
        least: how often it holds at 95% as far as is known: lower than that where the page says
            that it holds too rarely.
        trials: samples of the test; the table has as many as are asked for.
        wide: whether it holds more often than its level: one of several at once, or exact.
    """

    analysis: str
    interval: str
    world: str
    near: bool
    trial: Trial
    least: float = 0.95
    trials: int = 40
    wide: bool = False


_PAIR = "RR@10, B changes 30% of the answers and gains {:.4f}, {} queries"
_FAILURES = "8 equal systems that lose .8 on up to 3% of {} queries, little noise"
_LOSSES = "B gains a little on each of {} queries and loses .9 on 1% of them"
_SAME = "RR@10, each changes 10% of the answers of the one before and none is better"

CASES: Sequence[Case] = (
    Case(
        analysis="stability", interval="ranges of ranks, all at once",
        world="20 systems 0.05 standard errors apart, 100 queries", near=True,
        trial=ranges_of_near_ties, wide=True,
    ),
    Case(
        analysis="stability", interval="ranges of ranks, all at once",
        world=f"12 systems, 60 queries, {_SAME}", near=True,
        trial=ranges_of_equal_systems, wide=True,
    ),
    Case(
        analysis="compare, outcomes, progress, facets", interval="difference of means by t",
        world=_PAIR.format(GAIN, 60), near=True, trial=difference("t"), trials=300,
    ),
    Case(
        analysis="compare, outcomes", interval="found by one alone, exact binomial",
        world="RR@10 of two systems, .25 and .27 to find at each rank, 100 queries", near=True,
        trial=found_alone, trials=300, wide=True,
    ),
    Case(
        analysis="compare", interval="Success@1 to @10, all at once",
        world=_PAIR.format(GAIN, 100), near=True, trial=success("simultaneous"), wide=True,
    ),
    Case(
        analysis="compare", interval="Success@3 alone",
        world=_PAIR.format(GAIN, 100), near=True, trial=success("pointwise"), trials=300,
    ),
    Case(
        analysis="compare, of groups of seeds", interval="difference across seeds and queries",
        world="4 and 4 seeds of deviation .02, methods .005 apart, 60 queries", near=True,
        trial=seeds(4), trials=300,
    ),
    Case(
        analysis="teams", interval="slope of a team",
        world=f"6 submissions, 100 queries, {_SAME}", near=True,
        trial=team_slopes(all_teams=False), least=0.92,
    ),
    Case(
        analysis="teams", interval="slopes of 5 teams, all at once",
        world=f"6 submissions each, 100 queries, {_SAME}", near=True,
        trial=team_slopes(all_teams=True), wide=True,
    ),
    Case(
        analysis="drift", interval="trend of the difference",
        world=f"10 entries, 200 queries, {_SAME}", near=True,
        trial=drift(lambda found: found.difference, rises=0.0),
    ),
    Case(
        analysis="drift", interval="trend of the difference",
        world="10 entries, 200 queries, scores rise alike on both", near=False,
        trial=drift(lambda found: found.difference, rises=0.02),
    ),
    Case(
        analysis="drift", interval="trend of what the ratio leaves",
        world=f"10 entries, 200 queries, {_SAME}", near=True,
        trial=drift(lambda found: found.remainder, rises=0.0),
    ),
    Case(
        analysis="drift", interval="trend of the ratio",
        world="10 entries, 200 queries, scores rise alike on both", near=False,
        trial=drift(lambda found: found.ratio_trend, rises=0.02),
    ),
    Case(
        analysis="progress", interval="a pair named beforehand, by t",
        world=f"10 systems, 60 queries, {_SAME}", near=True, trial=progress(chosen=False),
        trials=300,
    ),
    Case(
        analysis="progress", interval="the last step of the line, chosen for its score, by t",
        world=f"10 systems, 60 queries, {_SAME}", near=True, trial=progress(chosen=True),
        wide=True,
    ),
    Case(
        analysis="facets", interval="difference on a facet alone, by t",
        world="RR@10, facets of 40 queries with gains 0 to .10", near=True,
        trial=facet_differences(together=False),
    ),
    Case(
        analysis="facets", interval="differences on 4 facets, all at once",
        world="RR@10, facets of 40 queries with gains 0 to .10", near=True,
        trial=facet_differences(together=True), wide=True,
    ),
    Case(
        analysis="power", interval="deviation of the pilot's middle pair",
        world=_PAIR.format(GAIN, 60), near=True, trial=pilot(60), least=0.88,
    ),
    Case(
        analysis="power", interval="deviation of the pilot's middle pair",
        world=_PAIR.format(GAIN, 400), near=True, trial=pilot(400), least=0.92,
    ),
    Case(
        analysis="agreement", interval="Krippendorff's alpha, over queries",
        world="2 judges, 3 grades, 30 queries of 10 documents", near=False,
        trial=judges(kappa=False, queries=30), least=0.92,
    ),
    Case(
        analysis="agreement", interval="Cohen's kappa, over queries",
        world="2 judges, 3 grades, 30 queries of 10 documents", near=False,
        trial=judges(kappa=True, queries=30), least=0.92,
    ),
    Case(
        analysis="agreement", interval="Cohen's kappa, over queries",
        world="2 judges, 3 grades, 10 queries of 10 documents", near=False,
        trial=judges(kappa=True, queries=10), least=0.89,
    ),
    Case(
        analysis="agreement", interval="RBO of two runs, by t",
        world="20 of 40 documents seen through noise, 30 queries", near=False, trial=runs("rbo"),
    ),
    Case(
        analysis="agreement", interval="tau of two runs, by t",
        world="20 of 40 documents seen through noise, 30 queries", near=False, trial=runs("tau"),
    ),
    Case(
        analysis="compare, outcomes", interval="ranks where both find, by t",
        world=_PAIR.format(GAIN, 100), near=True, trial=found_by_both("esl_t"), trials=300,
    ),
    Case(
        analysis="compare, outcomes", interval="reciprocal ranks where both find, by t",
        world=_PAIR.format(GAIN, 100), near=True, trial=found_by_both("rr_t"), trials=300,
    ),
    Case(
        analysis="compare, outcomes", interval="ranks where both find, by signed-rank",
        world=_PAIR.format(GAIN, 100), near=True, trial=found_by_both("esl_signed_rank"),
        trials=300, wide=True,
    ),
    # Where each is weakest: losses too rare to be seen, few queries, few seeds, few entries
    Case(
        analysis="stability", interval="ranges of ranks, all at once",
        world=_FAILURES.format(50), near=True, trial=ranges_of_rare_failures(50),
        least=0.0, wide=True,
    ),
    Case(
        analysis="stability", interval="ranges of ranks, all at once",
        world=_FAILURES.format(100), near=True, trial=ranges_of_rare_failures(100),
        least=0.05, wide=True,
    ),
    Case(
        analysis="stability", interval="ranges of ranks, all at once",
        world=_FAILURES.format("1,000"), near=True, trial=ranges_of_rare_failures(1000),
        trials=30, least=0.7, wide=True,
    ),
    Case(
        analysis="compare, outcomes, progress, facets", interval="difference of means by t",
        world=_LOSSES.format(60), near=True, trial=rare_losses(60), trials=300, least=0.44,
    ),
    Case(
        analysis="compare, outcomes, progress, facets", interval="difference of means by t",
        world=_LOSSES.format(300), near=True, trial=rare_losses(300), trials=300, least=0.78,
    ),
    Case(
        analysis="compare, outcomes, progress, facets", interval="difference of means by t",
        world=_LOSSES.format("1,000"), near=True, trial=rare_losses(1000), trials=300, least=0.9,
    ),
    Case(
        analysis="compare", interval="Success@3 alone",
        world="RR@10, B changes 3% of the answers, 100 queries", near=True,
        trial=success_of_few, trials=300, least=0.8,
    ),
    Case(
        analysis="compare, of groups of seeds", interval="difference across seeds and queries",
        world="2 and 2 seeds of deviation .02, methods .005 apart, 60 queries", near=True,
        trial=seeds(2), trials=300, wide=True,
    ),
    Case(
        analysis="teams", interval="slope of a team",
        world=f"3 submissions, 30 queries, {_SAME}", near=True,
        trial=team_slopes(all_teams=False, submissions=3, queries=30), least=0.85,
    ),
    Case(
        analysis="teams", interval="slopes of 5 teams, all at once",
        world=f"3 submissions each, 30 queries, {_SAME}", near=True,
        trial=team_slopes(all_teams=True, submissions=3, queries=30), least=0.8, wide=True,
    ),
    Case(
        analysis="drift", interval="trend of the difference",
        world=f"4 entries, 30 queries, {_SAME}", near=True,
        trial=drift(lambda found: found.difference, rises=0.0, entries=4, queries=30), least=0.85,
    ),
    Case(
        analysis="drift", interval="trend of what the ratio leaves",
        world=f"4 entries, 30 queries, {_SAME}", near=True,
        trial=drift(lambda found: found.remainder, rises=0.0, entries=4, queries=30), least=0.85,
    ),
    Case(
        analysis="drift", interval="trend of the ratio",
        world=f"4 entries, 30 queries, {_SAME}", near=True,
        trial=drift(lambda found: found.ratio_trend, rises=0.0, entries=4, queries=30), least=0.85,
    ),
    Case(
        analysis="facets", interval="difference on a facet alone, by t",
        world="B gains .018 on 40 queries and loses .9 on 2% of them", near=True,
        trial=facet_of_rare_losses, trials=300, least=0.5,
    ),
    Case(
        analysis="power", interval="deviation of the pilot's middle pair",
        world="B loses .9 on 2% of 100 queries, little noise", near=True,
        trial=pilot_of_rare_losses, least=0.6,
    ),
    Case(
        analysis="agreement", interval="RBO of two runs, by t",
        world="20 of 40 documents seen through noise, 5 queries", near=False,
        trial=runs("rbo", queries=5), least=0.88,
    ),
    Case(
        analysis="agreement", interval="tau of two runs, by t",
        world="20 of 40 documents seen through noise, 5 queries", near=False,
        trial=runs("tau", queries=5), least=0.88,
    ),
    Case(
        analysis="agreement", interval="Krippendorff's alpha, over queries",
        world="2 judges, 3 grades, 10 queries of 10 documents", near=False,
        trial=judges(kappa=False, queries=10), least=0.85,
    ),
    Case(
        analysis="compare, outcomes", interval="ranks where both find, by t",
        world="B 9 later on 2% of 100 queries, 1 earlier on 18%", near=True,
        trial=late_by_both, trials=300, least=0.6,
    ),
    Case(
        analysis="survive types, triage, answerable", interval="share of queries, by Wilson",
        world="10% of 100 queries", near=False, trial=share(0.1, queries=100), trials=300,
        least=0.93,
    ),
    Case(
        analysis="survive types, triage, answerable", interval="share of queries, by Wilson",
        world="0.17% of 100 queries", near=True, trial=share(0.0017, queries=100), trials=300,
        least=0.83, wide=True,
    ),
    Case(
        analysis="survive train", interval="mean of trainings by t",
        world="3 seeds of deviation .01", near=False, trial=curve_mean(seeds=3, fails=0.0),
        trials=300,
    ),
    Case(
        analysis="survive train", interval="mean of trainings by t",
        world="3 seeds of deviation .01, one training in ten falls by .10", near=False,
        trial=curve_mean(seeds=3, fails=0.1), trials=300, least=0.8,
    ),
    Case(
        analysis="survive triage, answerable", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 20 queries, alpha .81", near=False, trial=labellers(20),
        trials=200, least=0.86,
    ),
    Case(
        analysis="agreement", interval="tau_AP of two runs, by t",
        world="20 of 40 documents seen through noise, 30 queries", near=False,
        trial=runs("tau_ap"),
    ),
    Case(
        analysis="agreement", interval="tau_AP of two runs, by t",
        world="20 of 40 documents seen through noise, 5 queries", near=False,
        trial=runs("tau_ap", queries=5), least=0.88,
    ),
    Case(
        analysis="agreement", interval="shared documents of two runs, by t",
        world="20 of 40 documents seen through noise, 30 queries", near=False,
        trial=runs("shared"),
    ),
    Case(
        analysis="agreement", interval="shared documents of two runs, by t",
        world="20 of 40 documents seen through noise, 5 queries", near=False,
        trial=runs("shared", queries=5), least=0.88,
    ),
    Case(
        analysis="teams", interval="slope of a team, by OLS",
        world=f"6 submissions, 100 queries, {_SAME}", near=True, trial=team_ols(), least=0.6,
    ),
    Case(
        analysis="teams", interval="slope of a team, by OLS",
        world=f"20 submissions, 200 queries, {_SAME}", near=True,
        trial=team_ols(submissions=20, queries=200), least=0.3,
    ),
    Case(
        analysis="(library)", interval="percentiles of resampled ranks, all at once",
        world="20 systems 0.05 standard errors apart, 100 queries", near=True,
        trial=percentiles_of_ranks, least=0.0,
    ),
    Case(
        analysis="survive triage, answerable", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 20 queries, alpha .36", near=False,
        trial=labellers(20, clear=0.6), trials=100, least=0.86,
    ),
    Case(
        analysis="(library)", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 20 units, alpha .36, interval scale", near=False,
        trial=labellers(20, clear=0.6, scale="interval"), trials=100, least=0.84,
    ),
    Case(
        analysis="(library)", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 20 units, alpha .81, interval scale", near=False,
        trial=labellers(20, scale="interval"), trials=100, least=0.8,
    ),
    Case(
        analysis="(library)", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 50 units, alpha .81, interval scale", near=False,
        trial=labellers(50, scale="interval"), trials=100, least=0.86,
    ),
    Case(
        analysis="(library)", interval="Krippendorff's alpha, over units",
        world="3 people, 4 categories, 200 units, alpha .81, interval scale", near=False,
        trial=labellers(200, scale="interval"), trials=100, least=0.9,
    ),
)  # fmt: skip
"""Every interval that a command prints, and those of the library, each in a world or two."""
