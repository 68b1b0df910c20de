"""Finds what board.toml allows by now to be told of the ranking, and has it told once.

The result is an event of the log, so the page stays a function of log, rules and now, and whoever
has the archive can compute it again.

Entries of which a board may publish more than their scores by now.

What is published of a ranking beside the scores, computed from those of the vault and logged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from heldout.analyses.entries import BoardScores, ViewScores
from heldout.board.log.history import History
from heldout.board.log.measured import LeftOut
from heldout.board.policy.similarity import TOP, list_alike
from heldout.board.rules.spec import BoardSpec, Trust, due_day
from heldout.board.scores.analyses_source import read_board_scores
from heldout.board.scores.compared import signatures_of
from heldout.board.scores.measuring import (
    QueryFacet,
    choose_compared,
    find_near_scores,
    measure_ranking,
    read_query_facets,
    read_released,
)
from heldout.board.scores.session import Session
from heldout.board.standings.seasons import list_seasons
from heldout.board.standings.standings import (
    Standings,
    choose_comparable,
    count_step,
    is_stale,
    make_standings,
)
from heldout.trec.scans import Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Entries of a season, or of a board without seasons, that may be compared by now.

    Attributes:
        spec: the rules, of the season.
        trust: what is told.
        season: its name.
        ranked: ids by released score, the best first.
        since: the latest of the days from which they may be.
    """

    spec: BoardSpec
    trust: Trust
    season: str
    ranked: tuple[str, ...]
    since: date


SEED = 0
"""Of everything that is drawn for a page; the event names it."""


def log_figures(session: Session, every_due: Sequence[Due]) -> None:
    """Compute and log the figures of each season in which some are due.

    Args:
        session: its lock is held.
        every_due: at least one.

    Raises:
        StoreError: a run that has to be scored anew is missing.
        TrustError: such a run does not open.
    """
    board = read_board_scores(session)
    for due in every_due:
        _log(session, replace(board, primary=due.spec.primary), due)


def _log(session: Session, board: BoardScores, due: Due) -> None:
    view = board.view()
    complete = [name for name in _list_complete(view) if name in set(due.ranked)]
    alike = {
        name: set(others) for name, others in _find_alike(session, complete, view.queries).items()
    }
    every = choose_compared(board, [name for name in due.ranked if name in complete])
    if every is None:
        return
    for name, others in find_near_scores(every.table).items():
        alike[name] |= others
    hidden = {name for name in due.ranked if _is_hidden(session, name)}
    chosen = choose_comparable(complete, alike, hidden)
    compared = choose_compared(
        board, [name for name in due.ranked if name in chosen.entries], bar=due.spec.baselines.bar
    )
    if compared is None:
        return
    facets: Sequence[QueryFacet] = ()
    if "facets" in due.trust.show:
        facets = read_query_facets(session.repository, session.vault, due.spec, view=view.view)
    compared = replace(
        compared,
        released=read_released(session.history().submissions.values(), view.view),
        alike=chosen.pairs,
        step=count_step(len(compared.table.queries)),
        facets=facets,
    )
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


def _list_complete(view: ViewScores) -> list[str]:
    """The ids with a score for each query, in the order they came."""
    if view.table is None:
        return []
    table = view.table
    return [name for row, name in enumerate(table.systems) if table.known[row].all()]


def _is_hidden(session: Session, entry: str) -> bool:
    return session.history().submissions[entry].is_hidden(session.now.date())


def _find_alike(
    session: Session, entries: Sequence[str], query_set: str
) -> Mapping[str, frozenset[str]]:
    """Id -> the others whose run is nearly the same, whoever sent them."""
    submissions = session.history().submissions
    found: dict[str, set[str]] = {name: set() for name in entries}
    runs: dict[str, Signature] = {}
    for name in entries:
        signatures = signatures_of(session.vault, submissions[name], mend=lambda _: False)
        if query_set in signatures:
            run = signatures[query_set]
            cut = replace(run, documents=run.documents[:, :TOP].copy())
            found[name] |= {one.id for one in list_alike(cut, runs.items())}
            runs[name] = cut
    return {name: frozenset(others) for name, others in found.items()}


_FEWEST = 2


def measure_due(session: Session) -> int:
    """Log what is due and was not logged yet.

    Args:
        session: its lock is held; a new board.toml was logged.

    Returns:
        In how many seasons something was due.

    Raises:
        StoreError: a run that has to be scored anew is missing.
        TrustError: such a run does not open.
    """
    found = [*_find_due(session)]
    if not found:
        return 0
    # scipy, which this needs, takes 0.3 s to load, and mostly nothing is due

    log_figures(session, found)
    return len(found)


def _find_due(session: Session) -> Iterator[Due]:
    entries, spec = session.vault.entries(), session.spec()
    trust = spec.trust
    if trust is None or not trust.show:
        return
    history = session.history()
    boards = [
        (one.standings, spec.in_season(one.season))
        for one in list_seasons(entries, spec, now=session.now)
    ] or [(make_standings(entries, spec, now=session.now), spec)]
    for standings, here in boards:
        due = _make_due(standings, here, trust, history, session.now.date())
        if len(due.ranked) >= _FEWEST and not _is_told(due, history, session.now.date()):
            yield due


def _make_due(
    standings: Standings, spec: BoardSpec, trust: Trust, history: History, today: date
) -> Due:
    last = spec.last_day_of(standings.season)
    closed = None if history.closed is None else history.closed.date()
    days = {
        row.id: due_day(trust, row.published.date(), last=last, closed=closed)
        for row in standings.rows
        if row.rank is not None and not row.imported
    }
    by_now = {name: day for name, day in days.items() if day is not None and day <= today}
    return Due(
        spec=spec,
        trust=trust,
        season=standings.season,
        ranked=tuple(by_now),
        since=max(by_now.values(), default=today),
    )


def _is_told(due: Due, history: History, today: date) -> bool:
    """Whether the latest event says all that is due, of scores that still hold.

    What waited for the end of an embargo is due on its day.
    """
    of_season = [
        one for one in history.measured if (one.season, one.view) == (due.season, due.spec.primary)
    ]
    if not of_season:
        return False
    latest = of_season[-1]
    corrected = {
        s.id: max(at for at, _ in s.errata) for s in history.submissions.values() if s.errata
    }
    whole = set(due.ranked) <= latest.covered and set(due.trust.show) <= latest.figures.told
    waits = any(
        why == "withheld" and not history.submissions[name].is_hidden(today)
        for name, why in latest.left_out.items()
    )
    return whole and not waits and not is_stale(latest, corrected)
