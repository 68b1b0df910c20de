"""The figures that a board tells of its ranking beside the scores, computed from true scores.

Equal input and seed give equal figures, so that whoever has the scores can go over them.

The facets of the queries that a board ranks on, as its other views name their files.

Ranks of entries of which some pairs are not compared: their ranges, shares and facets. Two entries
that are nearly the same stand towards each other as their released scores do, in every resampling
and on every facet, and no range tells them apart. So nothing is said of such a pair beyond what its
scores say; with all others each of the two is compared as any entry is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.drift import find_drift
from heldout.analyses.entries import BoardScores
from heldout.analyses.progress import trace_progress
from heldout.analyses.ranges import rank_ranges
from heldout.board.log.measured import (
    PARTS,
    Drift,
    FacetRanks,
    Facets,
    Figures,
    LeftOut,
    Ranges,
    Stability,
    Step,
    TrustPart,
)
from heldout.board.log.submission import Submission
from heldout.board.policy.similarity import TOP, list_alike
from heldout.board.policy.sketches import propose_pairs
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.analyses_source import read_board_scores
from heldout.board.scores.compared import signatures_of
from heldout.board.scores.due_figures import Due
from heldout.board.scores.session import Session
from heldout.board.scores.sets import load_view_files
from heldout.board.standings.standings import FEWEST_DIFFERENT, choose_comparable, read_pairs
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import InputError
from heldout.scoring.table import Better, ScoreTable, cut_table, table_of
from heldout.stats.resampling import bootstrap_means, rank_rows
from heldout.trec.scans import Signature

FEWEST_IN_FACET = 50
"""Fewest queries with scores of a facet of which a board tells anything; the `min_group` of a view
may ask for more, of all facets. Fewer tell hardly two entries apart, and each rank on them says
more of every label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacet:
    """A kind of query.

    Attributes:
        of: name of the view whose file has it.
        name: its name there.
        queries: which.
        least: fewest of them that must have scores.
    """

    of: str
    name: str
    queries: frozenset[str]
    least: int


def read_query_facets(
    repository: Repository, vault: Vault, spec: BoardSpec, *, view: str
) -> Sequence[QueryFacet]:
    """The facets in the order of the views and of their names; a file that two views name, once.

    Private views are not looked at: what they name is nobody's business.

    Args:
        repository: the board.
        vault: of it, for a file that is held out.
        spec: the rules.
        view: the view that ranks.

    Raises:
        StoreError: a file is missing.
        InputError: a file is wrong.
    """
    ranked = next(one for one in spec.views if one.name == view)
    named = [
        one
        for one in spec.public_views
        if one.set == ranked.set and one.facets is not None and not one.for_information
    ]
    files: Mapping[str, Mapping[str, frozenset[str]]]
    files = load_view_files(repository, named, vault=vault).facets if named else {}
    first = {one.facets: one for one in reversed(named)}
    least = max([FEWEST_IN_FACET, *(one.min_group for one in named)])
    return [
        QueryFacet(of=first[path].name, name=name, queries=queries, least=least)
        for path, groups in files.items()
        for name, queries in groups.items()
    ]


_LEVEL, _TRIALS = 0.95, 1000

Apart = Mapping[str, frozenset[str]]
"""Id -> those that it is not compared with, both ways, for all entries of a table."""


def find_near_scores(table: ScoreTable) -> Apart:
    """Id -> the others whose scores differ from its own for fewer than ten queries.

    Counts between two such entries would tell the labels of those queries.
    """
    near: dict[str, frozenset[str]] = {}
    for row, name in enumerate(table.systems):
        different = (table.values != table.values[row]).sum(axis=1)
        others = np.flatnonzero(different < FEWEST_DIFFERENT).tolist()
        near[name] = frozenset(table.systems[other] for other in others if other != row)
    return near


def measure_ranges(
    table: ScoreTable, apart: Apart, rng: Generator, *, better: Better, level: float = _LEVEL
) -> Ranges:
    """Ranges of ranks that hold at once; a pair that is not compared is not told apart.

    All pairs are in the family, also those that are not compared: that makes no range too narrow.

    Args:
        table: scores by query, in the order that entries came.
        apart: the pairs that are not compared.
        rng: where signs come from.
        better: which scores are better.
        level: chance that all ranges hold.

    Raises:
        InputError: as `validity.ranges.rank_ranges`.
    """
    found = rank_ranges(table, rng, better=better, level=level)
    n = len(found.systems)
    told = np.triu(np.nan_to_num(found.p, nan=1.0) <= round(1 - level, 12), 1)
    told &= ~_mark(found.systems, apart)
    place = [found.systems.index(name) for name in table.systems]
    return Ranges(
        low=tuple((1 + told.sum(axis=0))[place].tolist()),
        high=tuple((n - told.sum(axis=1))[place].tolist()),
        level=found.level,
        flips=found.flips,
        pairs=n * (n - 1) // 2,
    )


def measure_shares(
    table: ScoreTable, apart: Apart, ranked: Sequence[str], rng: Generator, *, better: Better
) -> Stability:
    """Shares of resamplings of the queries in which an entry had a rank.

    Args:
        table: scores by query, in the order that entries came: of equal means the earlier is first.
        apart: the pairs that are not compared.
        ranked: the entries by released score, the best first.
        rng: where draws come from.
        better: which scores are better.
    """
    means = bootstrap_means(_signed(table, better), rng, trials=_TRIALS)
    ranks = _rank_apart(means, table.systems, apart, ranked)
    shares = tuple(_list_shares(column) for column in ranks.T)
    return Stability(trials=_TRIALS, shares=shares)


def _list_shares(ranks: NDArray[np.int64]) -> tuple[int, ...]:
    """As `Stability` has them of one entry, from its rank in each trial."""
    hundredths = (np.bincount(ranks) * (100 / _TRIALS)).round().astype(np.int64)
    told, last = list[int](), 0
    for rank in np.flatnonzero(hundredths).tolist():
        if rank > last + 1:
            told.append(last + 1 - rank)
        told.append(int(hundredths[rank]))
        last = rank
    return tuple(told)


def measure_facets(
    table: ScoreTable,
    facets: Sequence[QueryFacet],
    apart: Apart,
    ranked: Sequence[str],
    rng: Generator,
    *,
    better: Better,
) -> Facets:
    """Standings by facet; pairs whose scores are near on a facet are not compared on it.

    Args:
        table: scores by query, in the order that entries came.
        facets: all there are, of one least size; smaller ones are named and no more.
        apart: the pairs that are not compared at all.
        ranked: the entries by released score, the best first.
        rng: where signs come from; each facet draws from a stream of its own.
        better: which scores are better.

    Raises:
        InputError: code `no-facet`.
    """
    if not facets:
        raise InputError.of(
            code="no-facet",
            path="board.toml",
            found="no public view with facets of these queries",
            expected="one that names a file of groups of queries",
        )
    cuts = [(facet, cut_table(table, facet.queries)) for facet in facets]
    large = [(facet, cut) for facet, cut in cuts if len(cut.queries) >= facet.least]
    level = round(1 - (1 - _LEVEL) / max(1, len(large)), 12)
    streams = rng.spawn(len(large))
    told, flips = [], 0
    for (facet, cut), stream in zip(large, streams, strict=True):
        near = find_near_scores(cut)
        here = {name: apart[name] | near[name] for name in cut.systems}
        ranges = measure_ranges(cut, here, stream, better=better, level=level)
        flips = ranges.flips
        means = np.round([[cut.mean(name) or 0.0 for name in cut.systems]], 12)
        signed = means if better == "higher" else -means
        told.append(
            FacetRanks(
                of=facet.of,
                facet=facet.name,
                queries=len(cut.queries),
                rank=tuple(_rank_apart(signed, cut.systems, here, ranked, shared=True)[0].tolist()),
                low=ranges.low,
                high=ranges.high,
            )
        )
    n = len(table.systems)
    return Facets(
        told=tuple(told),
        withheld=tuple(facet.name for facet, cut in cuts if len(cut.queries) < facet.least),
        least=min(facet.least for facet in facets),
        level=_LEVEL,
        flips=flips,
        pairs=n * (n - 1) // 2,
    )


def _rank_apart(
    means: NDArray[np.float64],
    systems: Sequence[str],
    apart: Apart,
    ranked: Sequence[str],
    *,
    shared: bool = False,
) -> NDArray[np.int64]:
    """Ranks within each row; a pair that is not compared keeps the order of released scores."""
    ranks, _ = rank_rows(means, "shared" if shared else "earlier")
    place = {name: at for at, name in enumerate(ranked)}
    for column, name in enumerate(systems):
        for other in (at for at, one in enumerate(systems) if one in apart[name]):
            earlier = other < column and not shared
            above = means[:, other] > means[:, column]
            above |= earlier & (means[:, other] == means[:, column])
            ranks[:, column] += int(place[systems[other]] < place[name]) - above
    return ranks


def _mark(systems: Sequence[str], apart: Apart) -> NDArray[np.bool_]:
    """True for the pairs that are not compared, shape (systems, systems)."""
    return np.array([[one in apart[name] for one in systems] for name in systems], np.bool_)


def _signed(table: ScoreTable, better: Better) -> NDArray[np.float64]:
    return table.values if better == "higher" else -table.values


_ALPHA = 0.05
_NUMBER = 4  # decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Entries that are compared, with their scores.

    Attributes:
        board: these entries and the baselines, in the order they came, on the public views.
        table: scores by query of the entries on the view that ranks, in that order.
        ranked: the same ids by released score, the best first.
        bar: whether a record has to be above the baselines.
        released: id -> score as it was published, which decides what was a record. Drift rests on
            it too: true means give away what a release rounds, as a trend between two days has
            them times 365.
        alike: pairs that are not compared, the earlier entry first.
        facets: of the queries.
    """

    board: BoardScores
    table: ScoreTable
    ranked: tuple[str, ...]
    bar: bool
    released: Mapping[str, float]
    alike: tuple[tuple[str, str], ...] = ()
    facets: Sequence[QueryFacet] = ()

    @property
    def apart(self) -> Apart:
        """Id -> those that it is not compared with."""
        return read_pairs(self.alike, self.table.systems)


def choose_compared(
    board: BoardScores,
    ranked: Sequence[str],
    *,
    released: Mapping[str, float],
    bar: bool = True,
) -> Compared | None:
    """Some entries of a board; `None` where they are not two with scores for the same queries.

    Args:
        board: all entries.
        ranked: ids of the chosen ones by released score, the best first.
        released: id -> score as it was published, as `read_released` gives it.
        bar: whether a record has to be above the baselines.
    """
    view = board.view()
    chosen = [e.id for e in board.entries if e.id in set(ranked)]
    if view.table is None or not set(chosen) <= set(view.table.systems):
        return None
    at = [view.table.systems.index(name) for name in chosen]
    if len(at) < 2 or not len(view.table.queries) or not view.table.known[at].all():  # noqa: PLR2004 - a pair
        return None
    rows = {
        name: dict(zip(view.table.queries, view.table.values[row].tolist(), strict=True))
        for name, row in zip(chosen, at, strict=True)
    }
    kept = tuple(e for e in board.entries if e.baseline or e.id in rows)
    shown = {n: one for n, one in board.views.items() if one.public and not one.for_information}
    return Compared(
        board=replace(board, entries=kept, views=shown),
        table=table_of(rows, queries=sorted(view.table.queries)),
        ranked=tuple(name for name in ranked if name in rows),
        bar=bar,
        released=released,
    )


def read_released(submissions: Iterable[Submission], view: str) -> Mapping[str, float]:
    """Id -> the score that was told of it on a view, of those that have one."""
    return {one.id: float(one.scores[view]) for one in submissions if view in one.scores}


Added = Mapping[str, Any]
"""Fields of `Figures`."""


def measure_ranking(compared: Compared, show: Sequence[TrustPart], *, seed: int) -> Figures:
    """Compute what is told of a ranking.

    Args:
        compared: entries that may be compared; pairs that are nearly the same stand in `alike`.
        show: parts that are told.
        seed: of what is drawn; each part draws from a stream of its own.
    """
    streams = dict(zip(PARTS, Generator(PCG64(seed)).spawn(len(PARTS)), strict=True))
    figures = Figures(queries=len(compared.table.queries), alike=compared.alike)
    for part in PARTS:
        if part in show:
            try:
                added = _ADD[part](compared, streams[part])
            except InputError as error:
                added = {"why": figures.why | {part: _say(error)}}
            figures = msgspec.structs.replace(figures, **added)
    return figures


def _say(error: InputError) -> str:
    """A reason that names no path, and nothing of scores."""
    known = {
        "no-view": "there is no view of the same measure whose labels are public",
        "no-facet": "no public view names facets of these queries",
        "missing-scores": "some entry has no score for each query",
    }
    code = error.problems[0].code
    return known.get(code, f"undefined ({code})")


def _add_ranges(compared: Compared, rng: Generator) -> Added:
    better = compared.board.view().better
    return {"ranges": measure_ranges(compared.table, compared.apart, rng, better=better)}


def _add_stability(compared: Compared, rng: Generator) -> Added:
    better, ranked = compared.board.view().better, compared.ranked
    shares = measure_shares(compared.table, compared.apart, ranked, rng, better=better)
    return {"stability": shares}


def _add_facets(compared: Compared, rng: Generator) -> Added:
    better, apart, ranked = compared.board.view().better, compared.apart, compared.ranked
    facets = measure_facets(compared.table, compared.facets, apart, ranked, rng, better=better)
    return {"facets": facets}


def _add_progress(compared: Compared, _: Generator) -> Added:
    board, view, apart = compared.board, compared.board.view(), compared.apart
    told = {name: compared.released[name] for name in view.means if name in compared.released}
    found = trace_progress(board, replace(view, means=told), bar=compared.bar)
    steps = tuple(
        Step(
            entry=step.entry.id,
            significant=None
            if step.p_then is None or step.displaced in apart[step.entry.id]
            else step.p_then <= _ALPHA,
            family=step.family_then,
        )
        for step in found.line
    )
    return {"progress": steps}


def _add_drift(compared: Compared, rng: Generator) -> Added:
    board = compared.board
    dev = board.dev_view(board.view())
    told = {e.id: compared.released[e.id] for e in board.entries if not e.baseline}
    found = find_drift(board, replace(board.view(), means=told), dev, rng=rng)
    trend = found.difference
    drift = Drift(
        dev=dev.view,
        ratio=_round(found.ratio),
        gap=_round(found.gap),
        per_year=None if trend is None else _round(trend.per_year),
        low=None if trend is None else _round_limit(trend.low),
        high=None if trend is None else _round_limit(trend.high),
        verdict=found.verdict,
        why=found.why,
    )
    return {"drift": drift}


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, _NUMBER)


def _round_limit(number: float | None) -> float | None:
    """Two significant digits: the limit of an interval is made of true scores."""
    return None if number is None else float(f"{number:.1e}")


_ADD: Mapping[TrustPart, Callable[[Compared, Generator], Added]] = {
    "ranges": _add_ranges,
    "stability": _add_stability,
    "progress": _add_progress,
    "drift": _add_drift,
    "facets": _add_facets,
}


SEED = 0
"""Of everything that is drawn for a page; the event names it."""


def log_figures(session: Session, every_due: Sequence[Due]) -> None:
    """Compute and log the figures of each season in which some are due.

    Args:
        session: its lock is held.
        every_due: at least one.

    Raises:
        StoreError: a run that has to be scored again is missing.
        TrustError: such a run does not open.
    """
    board = read_board_scores(session)
    for due in every_due:
        _log(session, replace(board, primary=due.spec.primary), due)


def _log(session: Session, board: BoardScores, due: Due) -> None:
    view = board.view()
    rows = () if view.table is None else zip(view.table.systems, view.table.known, strict=True)
    complete = [name for name, known in rows if known.all() and name in set(due.ranked)]
    alike = {
        name: set(others) for name, others in _find_alike(session, complete, view.queries).items()
    }
    submissions, today = session.history().submissions, session.now.date()
    released = read_released(submissions.values(), view.view)
    ranked = [name for name in due.ranked if name in complete]
    every = choose_compared(board, ranked, released=released)
    if every is None:
        return
    for name, others in find_near_scores(every.table).items():
        alike[name] |= others
    hidden = {name for name in due.ranked if submissions[name].is_hidden(today)}
    chosen = choose_comparable(complete, alike, hidden)
    ranked = [name for name in due.ranked if name in chosen.entries]
    compared = choose_compared(board, ranked, released=released, bar=due.spec.baselines.bar)
    if compared is None:
        return
    facets: Sequence[QueryFacet] = ()
    if "facets" in due.trust.show:
        facets = read_query_facets(session.repository, session.vault, due.spec, view=view.view)
    compared = replace(compared, alike=chosen.pairs, facets=facets)
    figures = measure_ranking(compared, due.trust.show, seed=SEED)
    incomplete: dict[str, LeftOut] = {
        name: "withheld" if name in hidden else "incomplete"
        for name in due.ranked
        if name not in complete
    }
    public = {
        "view": view.view,
        "season": due.season,
        "due": due.since.isoformat(),
        "seed": SEED,
        "entries": list(compared.table.systems),
        "left_out": {**incomplete, **chosen.left_out},
        "figures": msgspec.to_builtins(figures),
    }
    session.log("measured", None, public=public, sealed={"table": str(compared.table.digest)})


def _find_alike(
    session: Session, entries: Sequence[str], query_set: str
) -> Mapping[str, frozenset[str]]:
    """Id -> the others whose run is nearly the same, whoever sent them."""
    submissions = session.history().submissions
    found: dict[str, set[str]] = {name: set() for name in entries}
    runs: dict[str, Signature] = {}
    for name in entries:
        signatures = signatures_of(session.vault, submissions[name], repair=lambda _: False)
        if query_set in signatures:
            run = signatures[query_set]
            runs[name] = replace(run, documents=run.documents[:, :TOP].copy())
    known = [*runs.items()]
    for place, earlier in propose_pairs([*runs.values()]):
        name, run = known[place]
        found[name] |= {one.id for one in list_alike(run, (known[at] for at in earlier))}
    return {name: frozenset(others) for name, others in found.items()}
