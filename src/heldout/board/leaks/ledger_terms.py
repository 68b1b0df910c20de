"""What the rules of a board say of releases: how much each could carry, and how many there are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from heldout.board.leaks.transcripts import bits_of, count_spreads, count_texts
from heldout.board.policy.quota import quota_window
from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import BoardSpec, View
from heldout.measures.spec import parse_measure

__all__ = ["Season", "Terms", "read_seasons", "read_terms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the rules of a day say of releases.

    Attributes:
        rule, decimals: what a text may be.
        views: counted ones that are public; `final`: that are told after the last day.
        uncounted: either, without a highest value.
        seeds: most of a submission.
    """

    rule: ReleaseRule
    decimals: int
    views: tuple[str, ...]
    final: tuple[str, ...]
    uncounted: tuple[str, ...]
    seeds: int

    @property
    def texts(self) -> int:
        """How many a release may be."""
        return count_texts(self.rule, decimals=self.decimals)

    @property
    def final_bits(self) -> float:
        """Of one final score."""
        return bits_of(ReleaseRule(rule="rounded"), decimals=self.decimals, submissions=1)

    @property
    def widest(self) -> float:
        """Bits of one submission that climbs nowhere, in all views."""
        told = len(self.views) + len(self.final)
        climbs = len(self.views) * self.bits(1) + len(self.final) * self.final_bits
        return climbs + told * self.widest_spread

    @property
    def widest_spread(self) -> float:
        """Bits of the spread beside one score of a submission to come: two seeds spread most."""
        return self.spread_bits(min(self.seeds, 2))

    def spread_bits(self, seeds: int) -> float:
        """Bits of one spread over so many seeds."""
        return math.log2(count_spreads(seeds, decimals=self.decimals))

    def bits(self, submissions: int) -> float:
        """Of so many submissions that climb together, in one view."""
        return bits_of(self.rule, decimals=self.decimals, submissions=submissions)

    def goes_on(self, other: "Terms") -> bool:
        """Whether a climb under the other terms can go on under these."""
        return (self.rule.rule, self.texts) == (other.rule.rule, other.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """Terms, and the most submissions of a team on them, of a season or of all of a board."""

    terms: Terms
    quota: int


def read_seasons(spec: BoardSpec) -> Sequence[Season]:
    """The seasons of a board, or all of it as the only one."""
    days = [(spec.in_season(s), s.opens, s.closes or spec.closes) for s in spec.seasons]
    return [
        Season(terms=read_terms(rules), quota=_quota(rules, opens, closes))
        for rules, opens, closes in days or [(spec, spec.opens, spec.closes)]
    ]


def read_terms(spec: BoardSpec) -> Terms:
    """What the rules of a board.toml, or of one season of it, say of releases."""
    views = [view for view in spec.views if spec.sets[view.set].held_out]
    counted = [view for view in views if _is_bounded(view)]
    return Terms(
        rule=spec.release,
        decimals=spec.decimals,
        views=tuple(view.name for view in counted if view.public),
        final=tuple(view.name for view in counted if view.final),
        uncounted=tuple(v.name for v in views if (v.public or v.final) and v not in counted),
        seeds=spec.runs.seeds,
    )


def _quota(spec: BoardSpec, opens: date, closes: date | None) -> int:
    """The most submissions of a team from one day to another."""
    declared = spec.release.submissions
    if closes is None or "quota" in spec.policy.off:
        return declared
    windows = math.ceil(((closes - opens).days + 1) / quota_window(spec).days)
    return min(declared, spec.policy.quota * windows)


def _is_bounded(view: View) -> bool:
    """Whether no score in the view lies above 1."""
    measure = parse_measure(view.measure)
    normalised = measure.params.rel is not None or measure.params.max_rel is not None
    return measure.kind.range == "0 to 1" or (measure.name == "RBP" and normalised)
