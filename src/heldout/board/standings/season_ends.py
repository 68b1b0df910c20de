"""The end of a season under `clear`: when it is due, and whose entries get their exact score.

After the last day each team's named entry gets its exact score in the view that ranks the season,
and so does every entry whose score was published there before. Nobody asks who sent an entry under
an embargo: it stands for itself, for the page would otherwise show which entries are of one team.
So the public log is enough to choose the same entries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from heldout.board.log.events import Entry
from heldout.board.log.final import order_by_receipt
from heldout.board.log.history import Fold, History, list_renamed, names_of
from heldout.board.log.submission import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A season that ends, or a board without seasons.

    Attributes:
        season: its name; "" without seasons.
        view: name of the view that ranks it.
        informs: names of the views for information, in the order of board.toml.
        opens: its first day; `None` of the first season, which has what came before, too.
        last: its last day.
    """

    season: str
    view: str
    informs: tuple[str, ...]
    opens: date | None
    last: date

    def has(self, submission: Submission) -> bool:
        """Tell whether something was received in the season."""
        day = submission.received.date()
        return (self.opens is None or self.opens <= day) and day <= self.last


def find_ending(spec: BoardSpec, season: str) -> Ending | None:
    """Find how a season ends; `None` where it has no end, or no exact scores are published at it.

    Args:
        spec: the rules, of the board or of that season.
        season: its name, "" for a board without seasons.
    """
    one = next((one for one in spec.seasons if one.name == season), None)
    last = spec.last_day_of(season)
    view = spec.view(spec.primary if one is None else one.view)
    held_out = view.public and not view.for_information and spec.sets[view.set].held_out
    unknown = one is None and (bool(season) or bool(spec.seasons))
    if unknown or last is None or not held_out or spec.release.rule != "clear":
        return None
    return Ending(
        season=season,
        view=view.name,
        informs=tuple(view.name for view in spec.public_views if view.for_information),
        opens=None if one is None or one == spec.seasons[0] else one.opens,
        last=last,
    )


def say_season(season: str) -> str:
    """Name a season in a sentence."""
    return f"season {season}" if season else "the season"


def list_due_ends(history: History, spec: BoardSpec, today: date) -> tuple[Ending, ...]:
    """The seasons that are over, have entries, and whose exact scores are not published yet.

    Args:
        history: what a log says, the public one too.
        spec: the rules in force, of the whole board.
        today: the day.
    """
    names = [season.name for season in spec.seasons] or [""]
    endings = (find_ending(spec, name) for name in names if name not in history.season_ends)
    return tuple(
        one
        for one in endings
        if one is not None
        and history.closed is None
        and one.last < today
        and (list_entries(history, one) or list_waiting(history, one))
    )


def list_entries(history: History, ending: Ending) -> list[Submission]:
    """The published entries of a season, in the order of receipt; baselines are none."""
    known = history.submissions
    of_season = {
        one.id
        for one in known.values()
        if one.status == "published"
        and not one.baseline
        and ending.has(one)
        and ending.view in (*one.scores, *one.untold)
    }
    return [known[name] for name in order_by_receipt(of_season, known)]


def list_waiting(history: History, ending: Ending) -> tuple[str, ...]:
    """The submissions of a season that wait for a decision: its end waits for them."""
    known = history.submissions.values()
    return tuple(one.id for one in known if one.pending and ending.has(one))


def choose_named(history: History, ending: Ending, day: date) -> tuple[str, ...]:
    """The entries that stand for their teams at a season's end, in the order of receipt.

    Of several entries of a team that say `season_entry: true` the latest stands for it. Of none it
    is the one with the highest number in the first view for information, of equal ones the
    earliest; without such a view the latest.

    Args:
        history: what the log says before the end, the public log too.
        ending: the season.
        day: on which it is ended: who is under an embargo then stands for itself.
    """
    renamed = [one for one in list_renamed(history) if not one.is_hidden(day)]
    teams: dict[str | frozenset[str], list[Submission]] = {}
    for one in list_entries(history, ending):
        known = one.identity is not None and not one.is_hidden(day)
        teams.setdefault(names_of(renamed, one.counts_for) if known else one.id, []).append(one)
    chosen = {_choose(entries, ending.informs).id for entries in teams.values()}
    return order_by_receipt(chosen, history.submissions)


def _choose(entries: Sequence[Submission], informs: Iterable[str]) -> Submission:
    named = [one for one in entries if one.identity is not None and one.identity.season_entry]
    if named:
        return named[-1]
    views = (view for view in informs if any(view in one.scores for one in entries))
    view = next(views, None)
    if view is None:
        return entries[-1]
    return max((e for e in entries if view in e.scores), key=lambda e: Decimal(e.scores[view]))


def list_scored(history: History, ending: Ending, named: Iterable[str]) -> tuple[str, ...]:
    """List whose exact scores a season's end publishes: the named, and who had a score."""
    before = {one.id for one in list_entries(history, ending) if ending.view in one.scores}
    return order_by_receipt(before.union(named), history.submissions)


def list_wrong_ends(entries: Sequence[Entry], history: History) -> Iterator[str]:
    """Ends of seasons that the rules of their day did not allow, or with other entries.

    Args:
        entries: a verified log, the public one too.
        history: what it says.

    Yields:
        A sentence for each.
    """
    if not history.season_ends:
        return
    fold = Fold()
    for entry in entries:
        if entry.event.kind == "ended-season" and entry.get("season") not in fold.season_ends:
            yield from _check_end(entry, fold.now(), history)
        fold.take(entry)


def _check_end(entry: Entry, before: History, history: History) -> Iterator[str]:
    place, season = f"event {entry.event.seq} ('ended-season')", str(entry.get("season"))
    spec = parse_spec(before.rules_at(entry.time).encode(), path="the rules in the log")
    ending = find_ending(spec, season)
    if ending is None or ending.view != entry.get("view"):
        yield f"{place} is about a season that does not end so by the rules of its day"
        return
    day = entry.time.date()
    if day <= ending.last:
        yield f"{place} came before the last day, {ending.last}, was over"
    if waiting := list_waiting(before, ending):
        yield f"{place} leaves out {', '.join(waiting[:3])}, on which nobody had decided"
    named, listed = choose_named(before, ending, day), tuple(entry.get("named"))
    if listed != named:
        wrong, right = _differ(listed, named), _differ(named, listed)
        yield f"{place} names {wrong}, but the rule names {right}"
    scored, given = list_scored(before, ending, named), entry.get("final_scores").keys()
    if listed == named and given != set(scored):
        wrong = ", ".join(sorted(given ^ set(scored))[:3])
        yield f"{place} publishes other scores than those of the named and earlier ones: {wrong}"
    for since, text in history.rules:
        later = find_ending(parse_spec(text.encode()), season) if since > entry.time else None
        if later is not None and later.last != ending.last:
            yield f"the rules of {since:%d %b %Y} move the last day of a season that had ended"


def _differ(these: Sequence[str], others: Sequence[str]) -> str:
    """The first few ids that only one list has."""
    return ", ".join([name for name in these if name not in others][:3]) or "nobody else"
