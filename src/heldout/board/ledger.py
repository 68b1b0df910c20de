"""The leak ledger: how many bits about the held-out labels the releases could have carried.

A bit is counted where the answer could have been another: log2 of the number of transcripts that a
team could have been given. Under `rounded` each release is one of V texts, so k of them are V^k
transcripts. Under `ladder` and `step` the best that a team was told never falls, so a climb of k
submissions is a row of k values of V that never falls: C(V + k - 1, k) transcripts, the sum over j
of C(k - 1, j - 1) C(V, j), where j is how many of the k were released. (Source: the count of
transcripts in Blum and Hardt 2015, section 3; the closed form is ours.)

A correction may say anything of V, and a new climb begins with it; so does one where the rule
changes. Both can only count too much.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from heldout.board.history import History, Submission
from heldout.board.manifest import team_key
from heldout.board.quota import quota_window
from heldout.board.release import ReleaseRule
from heldout.board.spec import BoardSpec, View, parse_spec
from heldout.measures.spec import parse_measure

__all__ = ["STATEMENT", "Ledger", "LedgerRow", "bits_of", "count_texts", "make_ledger"]

STATEMENT = (
    "Bits are what the releases could have carried at most, not what anybody learned. As a "
    "guarantee they are vacuous at this size: the error that they cannot rule out is larger than "
    "the differences between systems. What attacks gain against these rules is measured by "
    "heldout redteam, which says more."
)
"""What has to be said beside every ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What one team, the baselines, or the whole board could have learned.

    Attributes:
        name: the team as its latest entry names it; what the row is about for the others.
        submissions: published ones.
        releases: scores that were told, over all counted views; a correction tells one more.
        bits: that the releases could have carried, at most.
        most: submissions that the quota allows from the first to the last day, or the board's
            declared number where that is less or there is no quota or last day.
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
        views: the views that are counted: public scores on labels that are held out.
        uncounted: such views whose measure has no highest value, so that no bits can be counted.
        teams: a row each, most bits first.
        baselines: the organisers' own runs, each told whatever it is.
        board: all together. Its `bits_at_most` takes every further submission for the first of a
            new team, which is the worst that could be: a Ladder begins anew with every name.
    """

    views: tuple[str, ...]
    uncounted: tuple[str, ...]
    teams: tuple[LedgerRow, ...]
    baselines: LedgerRow
    board: LedgerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What board.toml says of releases: rule, digits, views, and submissions of a team."""

    rule: ReleaseRule
    decimals: int
    views: tuple[str, ...]
    uncounted: tuple[str, ...]
    quota: int

    @property
    def texts(self) -> int:
        """How many a release may be."""
        return count_texts(self.rule, decimals=self.decimals)

    def bits(self, submissions: int) -> float:
        """Of so many submissions that climb together, in one view."""
        return bits_of(self.rule, decimals=self.decimals, submissions=submissions)

    def goes_on(self, other: "_Terms") -> bool:
        """Whether a climb under the other terms can go on under these."""
        return (self.rule.rule, self.texts) == (other.rule.rule, other.texts)


@dataclass(slots=True, kw_only=True)
class _Climb:
    """Submissions of a team in a view, of which none may be told less than the one before."""

    terms: _Terms
    submissions: int


def count_texts(rule: ReleaseRule, *, decimals: int) -> int:
    """How many texts a release may be, for a score from 0 to 1.

    Args:
        rule: its numbers are right by `release.check_rule`.
        decimals: digits after the point, 1 to 6.
    """
    return 1 + (round(1 / rule.step) if rule.rule == "step" else 10**decimals)


def bits_of(rule: ReleaseRule, *, decimals: int, submissions: int) -> float:
    """Bits that a team's submissions could have been told in one view, at most.

    Args:
        rule: its numbers are right by `release.check_rule`.
        decimals: digits after the point, 1 to 6.
        submissions: of one team in a row, told or not; at least 0.

    Returns:
        log2 of the number of transcripts, for scores from 0 to 1.
    """
    if submissions < 0:
        raise ValueError(submissions)
    texts = count_texts(rule, decimals=decimals)
    if rule.rule == "rounded" or submissions == 0:
        return submissions * math.log2(texts)
    rows = math.lgamma(texts + submissions) - math.lgamma(submissions + 1) - math.lgamma(texts)
    return rows / math.log(2)


def make_ledger(history: History, *, rule_of: Callable[[BoardSpec], ReleaseRule]) -> Ledger:
    """Count what every team, and the board, could have been told.

    Args:
        history: the organisers'. Scores of a one-shot board count from their publication on.
        rule_of: the release rule of a board.toml.

    Raises:
        InputError: a board.toml in the log is wrong.
        ValueError: the history is the public one, which does not name every team.
    """
    terms = {text: _read_terms(parse_spec(text.encode()), rule_of) for _, text in history.rules}
    published = [s for s in history.submissions.values() if s.status == "published"]
    when = {s.id: terms[history.rules_at(s.received)] for s in published}
    now = terms[history.rules[-1][1]]
    own = [s for s in published if not s.baseline]
    teams = [_team_row(group, when, now) for group in _by_team(own).values()]
    baselines = _baselines_row([s for s in published if s.baseline], when)
    left = max(0, now.rule.submissions - len(own))
    bits = math.fsum(row.bits for row in (*teams, baselines))
    return Ledger(
        views=now.views,
        uncounted=now.uncounted,
        teams=tuple(sorted(teams, key=lambda row: (-row.bits, row.name))),
        baselines=baselines,
        board=LedgerRow(
            name="board",
            submissions=len(own),
            releases=sum(row.releases for row in (*teams, baselines)),
            bits=bits,
            most=len(own) + left,
            bits_at_most=bits + left * len(now.views) * now.bits(1),
        ),
    )


def _read_terms(spec: BoardSpec, rule_of: Callable[[BoardSpec], ReleaseRule]) -> _Terms:
    views = [view for view in spec.public_views if spec.sets[view.set].held_out]
    rule = rule_of(spec)
    return _Terms(
        rule=rule,
        decimals=spec.decimals,
        views=tuple(view.name for view in views if _is_bounded(view)),
        uncounted=tuple(view.name for view in views if not _is_bounded(view)),
        quota=_quota(spec, rule.submissions),
    )


def _is_bounded(view: View) -> bool:
    """Whether no score in the view lies above 1."""
    measure = parse_measure(view.measure)
    normalised = measure.params.rel is not None or measure.params.max_rel is not None
    return measure.kind.range == "0 to 1" or (measure.name == "RBP" and normalised)


def _quota(spec: BoardSpec, declared: int) -> int:
    """The most submissions of a team in the board's life."""
    if spec.closes is None or "quota" in spec.policy.off:
        return declared
    days = (spec.closes - spec.opens).days + 1
    return min(declared, spec.policy.quota * math.ceil(days / quota_window(spec).days))


def _by_team(submissions: Iterable[Submission]) -> Mapping[str, Sequence[Submission]]:
    """Team as it is counted -> its submissions, by the name that each has today."""
    teams: dict[str, list[Submission]] = defaultdict(list)
    for submission in submissions:
        teams[team_key(_name(submission))].append(submission)
    return teams


def _name(submission: Submission) -> str:
    if submission.identity is None:
        raise ValueError(f"{submission.id}: the ledger needs the organisers' log")
    return submission.identity.team


def _team_row(group: Sequence[Submission], when: Mapping[str, _Terms], now: _Terms) -> LedgerRow:
    climbs = {view: _find_climbs(group, view, when) for view in _views(group, when)}
    most = max(len(group), now.quota)
    bits = math.fsum(c.terms.bits(c.submissions) for row in climbs.values() for c in row)
    more = (_further_bits(climbs.get(v, ()), now, most - len(group)) for v in now.views)
    return LedgerRow(
        name=_name(max(group, key=lambda submission: submission.received)),
        submissions=len(group),
        releases=_count_releases(group, when),
        bits=bits,
        most=most,
        bits_at_most=bits + math.fsum(more),
    )


def _baselines_row(group: Sequence[Submission], when: Mapping[str, _Terms]) -> LedgerRow:
    """Each is told by itself, and again with each correction."""
    bits = math.fsum(
        (1 + len(submission.errata)) * len(_told(submission, when)) * when[submission.id].bits(1)
        for submission in group
    )
    return LedgerRow(
        name="baselines",
        submissions=len(group),
        releases=_count_releases(group, when),
        bits=bits,
        most=len(group),
        bits_at_most=bits,
    )


def _views(group: Iterable[Submission], when: Mapping[str, _Terms]) -> Iterable[str]:
    return {view: None for s in group for view in _told(s, when)}


def _told(submission: Submission, when: Mapping[str, _Terms]) -> tuple[str, ...]:
    """The counted views in which something was said of an entry, a score or that it is no rise."""
    said = {*submission.scores, *submission.not_above}
    return tuple(view for view in when[submission.id].views if view in said)


def _count_releases(group: Iterable[Submission], when: Mapping[str, _Terms]) -> int:
    return sum(
        1 + len(submission.errata)
        for submission in group
        for view in _told(submission, when)
        if view in submission.scores
    )


def _find_climbs(
    group: Sequence[Submission], view: str, when: Mapping[str, _Terms]
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
    group: Iterable[Submission], view: str, when: Mapping[str, _Terms]
) -> Iterator[tuple[datetime, _Terms]]:
    """When a team was told something in a view, a correction too, and on what terms."""
    for submission in group:
        terms = when[submission.id]
        if view in _told(submission, when):
            yield (submission.published or submission.received, terms)
            yield from ((moment, terms) for moment, _ in submission.errata)


def _further_bits(climbs: Sequence[_Climb], now: _Terms, submissions: int) -> float:
    """Bits of so many more submissions, which go on with the last climb where they can."""
    before = climbs[-1].submissions if climbs and now.goes_on(climbs[-1].terms) else 0
    return now.bits(before + submissions) - now.bits(before)
