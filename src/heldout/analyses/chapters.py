"""Every analysis of a board, the reserve views too, as chapters of one report for its organisers.

An analysis that cannot be made of this board is a chapter that says why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.random import PCG64, Generator

from heldout.analyses import drift, facets, power, progress, reliability, scales, stability, teams
from heldout.analyses import stability as stability_charts
from heldout.analyses import teams as team_charts
from heldout.analyses.drift import find_drift
from heldout.analyses.entries import AlikeRuns, BoardScores, ViewScores
from heldout.analyses.facets import compare_facets
from heldout.analyses.outcomes import pairs as outcome_pairs
from heldout.analyses.outcomes.curves import bars_spec, bars_title
from heldout.analyses.outcomes.outcomes import analyse_outcomes, pairs_with
from heldout.analyses.outcomes.verdicts import Rules
from heldout.analyses.power import plan_power
from heldout.analyses.progress import trace_progress
from heldout.analyses.ranges import rank_ranges
from heldout.analyses.reliability import measure_reliability
from heldout.analyses.scales import describe_scale
from heldout.analyses.stability import bootstrap_stability
from heldout.analyses.teams import look_at_teams
from heldout.analyses.views import words as view_charts
from heldout.analyses.views import words as views
from heldout.analyses.views.views import bootstrap_views, views_of_board
from heldout.answers.table import Table
from heldout.errors import InputError, Problem
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.spec import parse_measure
from heldout.scoring.table import ScoreTable
from heldout.scoring.transforms import universe_of

_UNCUT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an analysis found.

    Attributes:
        tables: the evidence.
        facts: the answer, in lines of (name, words).
        chart: Vega-Lite dict of the picture, `None` where there is none.
        shows: what the picture shows, for those who do not see it.
    """

    tables: tuple[Table, ...]
    facts: tuple[tuple[str, str], ...] = ()
    chart: Mapping[str, Any] | None = None
    shows: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One analysis of one view.

    Attributes:
        name: of its files; lower case, digits and hyphens.
        title: its heading.
        found: what there is to say, `None` where the analysis cannot be made.
        why_not: why it cannot; "" where it can.
    """

    name: str
    title: str
    found: Findings | None
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How the analyses draw, and where they are computed.

    Attributes:
        seed: of every analysis anew, so that each is what its command prints.
        trials: resamplings of the queries.
        flips: sign flips of all pairs.
        splits: of the queries into halves.
        permutations: of which queries are of a kind.
        executor: where to compute; `None` for here.
    """

    seed: int = 0
    trials: int = 1000
    flips: int = 10_000
    splits: int = 100
    permutations: int = 9999
    executor: Executor | None = None

    def rng(self) -> Generator:
        """A generator at its start."""
        return Generator(PCG64(self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Kinds of query, by some facet.

    Attributes:
        queries: by kind.
        least: fewest queries of a kind that is looked at.
    """

    queries: Mapping[str, AbstractSet[str]]
    least: int = 20


def write_chapters(
    board: BoardScores,
    *,
    alike: Iterable[AlikeRuns] | None,
    draws: Draws,
    view: str | None = None,
    kinds: Kinds | None = None,
) -> Iterator[Chapter]:
    """The chapters, one after the other: view by view, all views, then over time and by team.

    Args:
        board: entries and scores.
        alike: pairs of nearly identical runs of different teams; `None` where no runs are known.
        draws: seed and numbers.
        view: whose progress, drift and teams; `None` for the view that ranks.
        kinds: of queries; `None` where no facet is named.

    Raises:
        InputError: code `no-view`.
    """
    official = board.view(view)
    for number, shown in enumerate(board.views.values(), start=1):
        told = f"{shown.title}, {'public' if shown.public else 'reserve'}"
        told += ", for information only" * shown.for_information
        for name, title, make in (
            ("stability", "Ranks", _stability),
            ("reliability", "Halves of the queries", _reliability),
            ("outcomes", "The best against all others", _outcomes),
            ("power", "How many queries a difference takes", _power),
            *((("facets", "By kind of query", partial(_facets, kinds)),) if kinds else ()),
        ):
            yield _attempt(f"view-{number}-{name}", f"{title}: {told}", partial(make, shown, draws))
    if kinds is None:
        why = "no facet is named; this needs --facet FACET"
        yield Chapter(name="facets", title="By kind of query", found=None, why_not=why)
    measures = dict.fromkeys(shown.measure for shown in board.views.values())
    for number, measure in enumerate(measures, start=1):
        yield _attempt(f"scale-{number}", f"Scale of {measure}", partial(_scale, measure))
    yield _attempt("views", "Views side by side", partial(_views, board, draws))
    yield _attempt("progress", "Progress", partial(_progress, board, official))
    yield _attempt("drift", "Drift from dev", partial(_drift, board, official, draws))
    yield _attempt("teams", "Teams", partial(_teams, board, official, alike, draws))


def _attempt(name: str, title: str, make: Callable[[], Findings]) -> Chapter:
    try:
        return Chapter(name=name, title=title, found=make())
    except InputError as error:
        first = error.problems[0]
        why = f"{first.found}; this needs {first.expected}" if first.expected else first.found
        return Chapter(name=name, title=title, found=None, why_not=why)


def _stability(view: ViewScores, draws: Draws) -> Findings:
    table = _by_query(view)
    found = bootstrap_stability(
        table, draws.rng(), better=view.better, trials=draws.trials, executor=draws.executor
    )
    ranges = rank_ranges(
        table, draws.rng(), better=view.better, flips=draws.flips, executor=draws.executor
    )
    return Findings(
        facts=stability.facts(found, ranges),
        tables=stability.tables(found, ranges, measure=view.measure),
        chart=stability_charts.spec(found, ranges, measure=view.measure),
        shows=stability_charts.title(found),
    )


def _reliability(view: ViewScores, draws: Draws) -> Findings:
    found = measure_reliability(
        _by_query(view), draws.rng(), splits=draws.splits, executor=draws.executor
    )
    return Findings(
        facts=reliability.facts(found),
        tables=reliability.tables(found, measure=view.measure),
        chart=reliability.spec(found),
        shows=reliability.title(found),
    )


def _outcomes(view: ViewScores, draws: Draws) -> Findings:
    measure = parse_measure(view.measure)
    if measure.name != "RR":
        raise _cannot("not-reciprocal-ranks", view, str(measure), "a view of RR")
    ranks = first_ranks(_by_query(view), k=measure.cutoff or _UNCUT)
    best = max(view.means, key=view.means.__getitem__)
    found = analyse_outcomes(ranks, pairs_with(ranks, best), Rules(), executor=draws.executor)
    return Findings(
        facts=outcome_pairs.facts(found),
        tables=outcome_pairs.tables(found),
        chart=bars_spec(found),
        shows=bars_title(found),
    )


def _facets(kinds: Kinds, view: ViewScores, draws: Draws) -> Findings:
    found = compare_facets(
        _by_query(view),
        kinds.queries,
        draws.rng(),
        least=kinds.least,
        draws=draws.permutations,
        better=view.better,
        executor=draws.executor,
    )
    return Findings(
        facts=facets.facts(found),
        tables=facets.tables(found, measure=view.measure),
        chart=facets.spec(found),
        shows=facets.title(found),
    )


def _power(view: ViewScores, draws: Draws) -> Findings:
    found = plan_power(
        _by_query(view),
        draws.rng(),
        trials=draws.trials,
        largest=parse_measure(view.measure).largest,
        executor=draws.executor,
    )
    return Findings(
        facts=power.facts(found),
        tables=power.tables(found, measure=view.measure),
        chart=power.spec(found),
        shows=power.title(found),
    )


def _scale(name: str) -> Findings:
    measure = parse_measure(name)
    if measure.cutoff is None:
        raise InputError(
            Problem(code="no-scale", path=name, found="no cutoff", expected="lists of one length")
        )
    judged = {1: measure.cutoff}
    found = describe_scale(universe_of(measure, length=measure.cutoff, judged=judged))
    return Findings(
        facts=scales.facts(found),
        tables=scales.tables(found),
        chart=scales.spec(found),
        shows=scales.title(found),
    )


def _views(board: BoardScores, draws: Draws) -> Findings:
    found = bootstrap_views(
        views_of_board(board), draws.rng(), trials=draws.trials, executor=draws.executor
    )
    return Findings(
        facts=views.facts(found),
        tables=views.tables(found),
        chart=view_charts.spec_of_view_charts(found) if found.ranks else None,
        shows=view_charts.title_of_view_charts(found),
    )


def _progress(board: BoardScores, official: ViewScores) -> Findings:
    found = trace_progress(board, official)
    return Findings(
        tables=progress.tables(found), chart=progress.spec(found), shows=progress.title(found)
    )


def _drift(board: BoardScores, official: ViewScores, draws: Draws) -> Findings:
    dev = board.dev_view(official)
    found = find_drift(
        board, official, dev, rng=draws.rng(), trials=draws.trials, executor=draws.executor
    )
    return Findings(
        facts=drift.facts(found),
        tables=drift.tables(found),
        chart=drift.spec(found, "time") if found.points else None,
        shows=drift.title(found, "time"),
    )


def _teams(
    board: BoardScores, public: ViewScores, alike: Iterable[AlikeRuns] | None, draws: Draws
) -> Findings:
    reserve = board.reserve_view(public)
    found = look_at_teams(
        board, public, reserve, rng=draws.rng(), alike=alike, executor=draws.executor
    )
    drawn = any(group.slope is not None for group in found.groups)
    return Findings(
        tables=teams.tables(found),
        chart=team_charts.spec(found) if drawn else None,
        shows=team_charts.title(found),
    )


def _by_query(view: ViewScores) -> ScoreTable:
    if view.table is None:
        raise _cannot("no-query-scores", view, "means alone", "a score for each query")
    return view.table


def _cannot(code: str, view: ViewScores, found: str, expected: str) -> InputError:
    return InputError(Problem(code=code, path=f"view {view.view}", found=found, expected=expected))
