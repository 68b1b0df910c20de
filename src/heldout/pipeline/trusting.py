"""Computes in the vault what board.toml allows to be told of the ranking, once for each due date.

The result is an event of the log, so the page stays a function of log, rules and now, and whoever
has the archive can compute it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from heldout.board.figures import LeftOut
from heldout.board.history import History
from heldout.board.rank_ranges import is_stale
from heldout.board.seasons import list_seasons
from heldout.board.similarity import TOP, nearest
from heldout.board.spec import BoardSpec
from heldout.board.standings import Standings, make_standings
from heldout.board.trust import Trust, due_day, keep_apart
from heldout.pipeline.board_scores import read_board_scores
from heldout.pipeline.comparing import signatures_of
from heldout.pipeline.desk import Desk
from heldout.pipeline.measuring import choose_compared, find_near_scores, measure_ranking
from heldout.trec.scans import Signature
from heldout.validity.entries import BoardScores

__all__ = ["SEED", "measure_due"]

SEED = 0
"""Of everything that is drawn for a page; the event names it."""

_FEWEST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
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


def measure_due(desk: Desk) -> int:
    """Log what is due and was not logged yet.

    Args:
        desk: its lock is held; a new board.toml was logged.

    Returns:
        How many events were logged.

    Raises:
        StoreError: a run that has to be scored anew is missing.
        TrustError: such a run does not open.
    """
    found = [*_find_due(desk)]
    if not found:
        return 0
    board = read_board_scores(desk)
    for due in found:
        _log(desk, replace(board, primary=due.spec.primary), due)
    return len(found)


def _find_due(desk: Desk) -> Iterator[_Due]:
    entries, spec = desk.vault.entries(), desk.repository.spec()
    trust = spec.trust
    if trust is None or not trust.show:
        return
    history = desk.history()
    boards = [
        (one.standings, spec.in_season(one.season))
        for one in list_seasons(entries, spec, now=desk.now)
    ] or [(make_standings(entries, spec, now=desk.now), spec)]
    for standings, here in boards:
        due = _make_due(standings, here, trust, history, desk.now.date())
        if len(due.ranked) >= _FEWEST and not _is_told(due, history):
            yield due


def _make_due(
    standings: Standings, spec: BoardSpec, trust: Trust, history: History, today: date
) -> _Due:
    last = spec.last_day_of(standings.season)
    closed = None if history.closed is None else history.closed.date()
    days = {
        row.id: due_day(trust, row.published.date(), last=last, closed=closed)
        for row in standings.rows
        if row.rank is not None and not row.imported
    }
    by_now = {name: day for name, day in days.items() if day is not None and day <= today}
    return _Due(
        spec=spec,
        trust=trust,
        season=standings.season,
        ranked=tuple(by_now),
        since=max(by_now.values(), default=today),
    )


def _is_told(due: _Due, history: History) -> bool:
    """Whether the latest event says all that is due, of scores that still hold."""
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
    return whole and not is_stale(latest, corrected)


def _log(desk: Desk, board: BoardScores, due: _Due) -> None:
    arrived = [e.id for e in board.entries if e.id in set(due.ranked)]
    view = board.view()
    scored = [name for name in arrived if view.table is not None and name in view.table.systems]
    alike = _find_alike(desk, scored, view.queries)
    every = choose_compared(board, [name for name in due.ranked if name in scored])
    if every is not None:
        same = find_near_scores(every.table)
        alike = {name: alike.get(name, frozenset()) | same[name] for name in scored}
    kept, near = keep_apart(scored, alike)
    compared = choose_compared(
        board, [name for name in due.ranked if name in kept], bar=due.spec.baselines.bar
    )
    if compared is None:
        return
    figures = measure_ranking(compared, due.trust.show, seed=SEED)
    public = {
        "view": view.view,
        "season": due.season,
        "due": due.since.isoformat(),
        "seed": SEED,
        "entries": list(compared.table.systems),
        "left_out": {
            name: _say_why(desk, name, "near" if name in near else "incomplete")
            for name in due.ranked
            if name not in kept
        },
        "figures": msgspec.to_builtins(figures),
    }
    desk.log("measured", None, public=public, sealed={"table": str(compared.table.digest)})


def _say_why(desk: Desk, entry: str, why: LeftOut) -> LeftOut:
    hidden = desk.history().submissions[entry].is_hidden(desk.now.date())
    return "withheld" if hidden else why


def _find_alike(desk: Desk, entries: Sequence[str], query_set: str) -> Mapping[str, frozenset[str]]:
    """Id -> the others whose run is nearly the same, whoever sent them."""
    submissions = desk.history().submissions
    found: dict[str, set[str]] = {name: set() for name in entries}
    runs: dict[str, Signature] = {}
    for name in entries:
        signatures = signatures_of(desk.vault, submissions[name], mend=lambda _: False)
        if query_set in signatures:
            run = signatures[query_set]
            cut = replace(run, documents=run.documents[:, :TOP].copy())
            alike = nearest(cut, runs.items(), most=len(entries))
            found[name] |= {one.id for one in alike if one.verdict != "none"}
            runs[name] = cut
    return {name: frozenset(others) for name, others in found.items()}
