"""The leak ledger: how many bits about the held-out labels the releases could have carried.

`transcripts` counts the answers that a team could have been given; here are whose and how many
they were. A correction may say anything, and a new climb begins with it; so does one where the
rule changes. Both can only count too much. A final score is one more text, of a reserve. An entry
of several seeds has a second text beside each score, their spread; it counts also where neither is
told, for both could have been. Figures of the ranking, such as ranges of ranks, are a row of their
own.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from heldout.board.leaks.ledger_terms import Season, Terms, read_seasons, read_terms
from heldout.board.log.figures import count_bits
from heldout.board.log.history import History, Submission
from heldout.board.log.joined_names import list_renamed, names_of
from heldout.board.log.manifest import team_key
from heldout.board.rules.spec_file import parse_spec

__all__ = ["STATEMENT", "Ledger", "LedgerRow", "make_ledger"]

STATEMENT = (
    "Bits are what the releases could have carried at most, not what anybody learned. As a "
    "guarantee they are vacuous at this size: the error that they cannot rule out is larger than "
    "the differences between systems. What attacks gain against these rules is measured by "
    "heldout redteam, which says more. The row of figures is what [trust] publishes: a figure can "
    "still reveal a label to somebody who knows all others that it rests on (docs/release.md)."
)
"""What has to be said beside every ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What one team, the baselines, or the whole board could have learned.

    Attributes:
        name: the team as its latest entry names it, with the entries under every name that an
            approved new name joins to it; what the row is about for the others.
        submissions: published ones.
        releases: scores that were told, or will be after the last day, over all counted views; a
            correction tells them once more.
        bits: that the releases could have carried, at most.
        most: submissions that the quota allows from the first to the last day, of every season;
            where that is less, or there is no quota or last day, those made and all that are left
            of the board's declared number.
        bits_at_most: bits once there are so many submissions, and no more corrections.
    """

    name: str
    submissions: int
    releases: int
    bits: float
    most: int
    bits_at_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The bits of a board, for its organisers: it names teams under embargo.

    Attributes:
        views: the views that are counted: scores on held-out labels that are public, or final.
        uncounted: such views whose measure has no highest value, so that no bits can be counted.
        teams: a row each, most bits first.
        baselines: the organisers' own runs, each told whatever it is.
        figures: what was told of the ranking beside the scores: ranges, shares, counts. A release
            is an event, and its bits are those of all that its figures could have been.
        board: all together. Its `bits_at_most` takes every further submission for the first of a
            new team, which is the worst that could be: a Ladder begins anew with every name.
    """

    views: tuple[str, ...]
    uncounted: tuple[str, ...]
    teams: tuple[LedgerRow, ...]
    baselines: LedgerRow
    figures: LedgerRow
    board: LedgerRow


@dataclass(slots=True, kw_only=True)
class _Climb:
    """Submissions of a team in a view, of which none may be told less than the one before."""

    terms: Terms
    submissions: int


def make_ledger(history: History) -> Ledger:
    """Count what every team, and the board, could have been told.

    Args:
        history: the organisers'. Scores that are told after a last day count from the moment that
            they are in the log.

    Raises:
        InputError: a board.toml in the log is wrong.
        ValueError: the history is the public one, which does not name every team.
    """
    specs = {text: parse_spec(text.encode()) for _, text in history.rules}
    terms = {text: read_terms(spec) for text, spec in specs.items()}
    seasons = read_seasons(specs[history.rules[-1][1]])
    published = [s for s in history.submissions.values() if s.status == "published"]
    when = {s.id: terms[history.rules_at(s.received)] for s in published}
    own = [s for s in published if not s.baseline]
    left = max(0, seasons[0].terms.rule.submissions - len(own))
    by_team = _by_team(own, list_renamed(history))
    teams = [_team_row(group, when, seasons, left) for group in by_team.values()]
    baselines = _baselines_row([s for s in published if s.baseline], when)
    figures = _figures_row(history)
    bits = math.fsum(row.bits for row in (*teams, baselines, figures))
    return Ledger(
        views=_unique(view for s in seasons for view in (*s.terms.views, *s.terms.final)),
        uncounted=_unique(view for s in seasons for view in s.terms.uncounted),
        teams=tuple(sorted(teams, key=lambda row: (-row.bits, row.name))),
        baselines=baselines,
        figures=figures,
        board=LedgerRow(
            name="board",
            submissions=len(own),
            releases=sum(row.releases for row in (*teams, baselines, figures)),
            bits=bits,
            most=len(own) + left,
            bits_at_most=bits + left * _widest(seasons),
        ),
    )


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _by_team(
    submissions: Iterable[Submission], renamed: Sequence[Submission]
) -> Mapping[frozenset[str], Sequence[Submission]]:
    """All names of a team -> its submissions."""
    teams: dict[frozenset[str], list[Submission]] = defaultdict(list)
    for submission in submissions:
        teams[names_of(renamed, [_name(submission)])].append(submission)
    return teams


def _name(submission: Submission) -> str:
    if submission.identity is None:
        raise ValueError(f"{submission.id}: the ledger needs the organisers' log")
    return submission.identity.team


def _team_row(
    group: Sequence[Submission],
    when: Mapping[str, Terms],
    seasons: Sequence[Season],
    left: int,
) -> LedgerRow:
    """A team's row; `left` is how many submissions the board still takes of everybody."""
    views = _unique(view for submission in group for view in _told(submission, when))
    parts = _by_first_name(group)
    climbs = {view: [c for p in parts for c in _find_climbs(p, view, when)] for view in views}
    quota = sum(season.quota for season in seasons)
    most = max(len(group), min(len(group) + left, quota))
    bits = math.fsum(c.terms.bits(c.submissions) for row in climbs.values() for c in row)
    bits += _count_final_bits(group, when) + _count_spread_bits(group, when)
    return LedgerRow(
        name=_name(max(group, key=lambda submission: submission.received)),
        submissions=len(group),
        releases=_count_releases(group, when),
        bits=bits,
        most=most,
        bits_at_most=bits + _count_further_bits(group, climbs, when, seasons, most - len(group)),
    )


def _by_first_name(group: Sequence[Submission]) -> Sequence[Sequence[Submission]]:
    """A team's submissions by the names that they were published under, the latest name last.

    Two names climb apart until they are joined, so of both together an answer may be less than
    the one before it.
    """
    parts: dict[str, list[Submission]] = defaultdict(list)
    for submission in group:
        parts[team_key(submission.counts_for[0])].append(submission)
    return sorted(parts.values(), key=lambda part: max(one.received for one in part))


def _baselines_row(group: Sequence[Submission], when: Mapping[str, Terms]) -> LedgerRow:
    """Each is told by itself, and again with each correction."""
    bits = math.fsum(
        (1 + len(submission.errata)) * len(_told(submission, when)) * when[submission.id].bits(1)
        for submission in group
    )
    bits += _count_final_bits(group, when) + _count_spread_bits(group, when)
    return LedgerRow(
        name="baselines",
        submissions=len(group),
        releases=_count_releases(group, when),
        bits=bits,
        most=len(group),
        bits_at_most=bits,
    )


def _figures_row(history: History) -> LedgerRow:
    """Each event is counted by itself: what an earlier one said may be known or not."""
    bits = math.fsum(count_bits(one.figures, len(one.entries)) for one in history.measured)
    compared = frozenset[str]().union(*(one.entries for one in history.measured))
    return LedgerRow(
        name="figures",
        submissions=len(compared),
        releases=len(history.measured),
        bits=bits,
        most=len(compared),
        bits_at_most=bits,
    )


def _told(submission: Submission, when: Mapping[str, Terms]) -> tuple[str, ...]:
    """The counted views in which something was said of an entry, a score or that it is no rise."""
    said = {*submission.scores, *submission.untold}
    return tuple(view for view in when[submission.id].views if view in said)


def _count_final(submission: Submission, when: Mapping[str, Terms]) -> int:
    """How many final scores were told of an entry, with those of its corrections."""
    told = [view for view in when[submission.id].final if view in submission.final]
    return len(told) * (1 + len(submission.errata))


def _count_final_bits(group: Iterable[Submission], when: Mapping[str, Terms]) -> float:
    return math.fsum(_count_final(s, when) * when[s.id].final_bits for s in group)


def _count_spread_bits(group: Iterable[Submission], when: Mapping[str, Terms]) -> float:
    """Of the spreads that were told of some entries, or could have been."""
    return math.fsum(
        (len(_told(s, when)) * (1 + len(s.errata)) + _count_final(s, when))
        * when[s.id].spread_bits(s.seeds)
        for s in group
    )


def _count_releases(group: Iterable[Submission], when: Mapping[str, Terms]) -> int:
    """Scores that were told of some entries, with those of their corrections."""
    return sum(
        sum(view in s.scores for view in _told(s, when)) * (1 + len(s.errata))
        + _count_final(s, when)
        for s in group
    )


def _count_further_bits(
    group: Sequence[Submission],
    climbs: Mapping[str, Sequence[_Climb]],
    when: Mapping[str, Terms],
    seasons: Sequence[Season],
    left: int,
) -> float:
    """Bits of all that a team may still submit, in every season as much as its quota allows.

    A view of one season and a view of another cannot both take what is left, so there is no more
    than if each were a team of its own.
    """
    terms = seasons[0].terms
    final_bits = terms.final_bits + terms.widest_spread
    further = [left * max(len(s.terms.final) for s in seasons) * final_bits]
    for view in _unique(view for season in seasons for view in season.terms.views):
        quota = sum(season.quota for season in seasons if view in season.terms.views)
        used = sum(view in _told(submission, when) for submission in group)
        more = max(0, min(left, quota - used))
        further.append(_climb_further(climbs.get(view, ()), terms, more))
        further.append(more * terms.widest_spread)
    return min(math.fsum(further), left * _widest(seasons))


def _widest(seasons: Iterable[Season]) -> float:
    return max(season.terms.widest for season in seasons)


def _find_climbs(
    group: Sequence[Submission], view: str, when: Mapping[str, Terms]
) -> Sequence[_Climb]:
    # What was published in the second of a correction may have come before or after it.
    corrected = {moment for submission in group for moment, _ in submission.errata}
    climbs: list[_Climb] = []
    for moment, terms in sorted(_find_answers(group, view, when), key=lambda answer: answer[0]):
        if climbs and moment not in corrected and terms.goes_on(climbs[-1].terms):
            climbs[-1].submissions += 1
        else:
            climbs.append(_Climb(terms=terms, submissions=1))
    return climbs


def _find_answers(
    group: Iterable[Submission], view: str, when: Mapping[str, Terms]
) -> Iterator[tuple[datetime, Terms]]:
    """When a team was told something in a view, a correction too, and on what terms."""
    for submission in group:
        terms = when[submission.id]
        if view in _told(submission, when):
            yield (submission.published or submission.received, terms)
            yield from ((moment, terms) for moment, _ in submission.errata)


def _climb_further(climbs: Sequence[_Climb], now: Terms, submissions: int) -> float:
    """Bits of so many more submissions, which go on with the last climb where they can."""
    before = climbs[-1].submissions if climbs and now.goes_on(climbs[-1].terms) else 0
    return now.bits(before + submissions) - now.bits(before)
