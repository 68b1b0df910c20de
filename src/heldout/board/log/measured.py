"""What a board publishes of its ranking beside the scores: the fields of an event `measured`.

Small and rounded, for each digit can carry something about labels that nobody else has. Ranges,
shares and counts say nothing of a system that was left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, get_args

import msgspec

from heldout.board.log.events import Entry
from heldout.errors import quote

TrustPart = Literal["ranges", "stability", "progress", "drift", "facets"]
"""What a page may tell of a ranking beside its scores."""

PARTS: tuple[TrustPart, ...] = get_args(TrustPart)
"""All of them, in the order of the page. Each draws from a stream of its own by its place here, so
a new one comes last."""

LeftOut = Literal["near", "incomplete", "withheld"]
"""Why an entry is not compared: nearly the same as all it could be compared with; no score for each
query; not said while an embargo holds."""

_Whole = Annotated[int, msgspec.Meta(ge=0)]

_HUNDRED = 100
"""Parts in which shares are published."""

_Level = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Ranges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranges of ranks that hold for all compared entries at once.

    Attributes:
        low, high: first and last rank of each, among the compared ones.
        level: chance that all hold.
        flips: sign flips drawn.
        pairs: how many were tested; both directions of each form the family.
    """

    low: tuple[_Whole, ...]
    high: tuple[_Whole, ...]
    level: _Level
    flips: _Whole
    pairs: _Whole


class Stability(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of resamplings of the queries in which an entry had a rank.

    Attributes:
        trials: how many there were.
        shares: for each entry, from the first rank down: a number above 0 is in how many hundredths
            of them it had that rank, rounded; one below 0 says how many ranks have none. Behind
            the last rank with any there is nothing. A table of ranks would grow as the square of
            entries; these are at most 200 ranks of an entry.
    """

    trials: Annotated[int, msgspec.Meta(ge=1)]
    shares: tuple[tuple[int, ...], ...]

    def shares_of(self, place: int) -> Mapping[int, float]:
        """Rank, from 1 -> share, to two decimals, for the ranks that have one.

        Args:
            place: of the entry among those compared.
        """
        rank, told = 1, {}
        for number in self.shares[place]:
            if number > 0:
                told[rank] = number / _HUNDRED
            rank += 1 if number > 0 else -number
        return told


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry that was the best when it came.

    Attributes:
        entry: its id.
        significant: whether significantly better than the best before it, corrected for all that
            had come by then; `None` where there was nothing to test against, or that was nearly
            the same.
        family: hypotheses that it was corrected for.
    """

    entry: str
    significant: bool | None
    family: _Whole


class Drift(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scores that rank against dev scores, over time.

    Attributes:
        dev: the view with labels that everybody has.
        ratio, gap: median of official / dev and of official - dev; `None` where undefined.
        per_year: trend of the difference, with its interval; `None` where undefined.
        low, high: of that interval.
        verdict: `no drift`, `mask or difficulty`, `not explained` or `undefined`.
        why: the reason, in words.
    """

    dev: str
    ratio: float | None
    gap: float | None
    per_year: float | None
    low: float | None
    high: float | None
    verdict: Literal["no drift", "mask or difficulty", "not explained", "undefined"]
    why: str


class FacetRanks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The standings on the queries of a facet.

    Attributes:
        of: the view that names the file of facets.
        facet: its name there.
        queries: how many of it have scores.
        rank: of each compared entry, from 1; equal means share the best of their ranks.
        low, high: first and last rank of each.
    """

    of: str
    facet: str
    queries: _Whole
    rank: tuple[_Whole, ...]
    low: tuple[_Whole, ...]
    high: tuple[_Whole, ...]


class Facets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Standings by facet; all ranges of all facets hold at once.

    Attributes:
        told: those with enough queries.
        withheld: names of those with fewer: a rank on few queries says much of each label.
        least: fewest queries of one that is told.
        level: chance that all ranges hold.
        flips: sign flips drawn for each.
        pairs: how many were tested on each; both directions of each form the family.
    """

    told: tuple[FacetRanks, ...]
    withheld: tuple[str, ...]
    least: _Whole
    level: _Level
    flips: _Whole
    pairs: _Whole


class Figures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is told at once.

    Attributes:
        queries: how many the scores are over.
        alike: pairs of entries that are nearly the same and not compared with each other.
        ranges, stability, progress, drift, facets: `None` where not told.
        why: part that was to be told -> why it cannot be.
    """

    queries: _Whole
    alike: tuple[tuple[str, str], ...] = ()
    ranges: Ranges | None = None
    stability: Stability | None = None
    progress: tuple[Step, ...] | None = None
    drift: Drift | None = None
    facets: Facets | None = None
    why: dict[str, str] = {}

    @property
    def told(self) -> frozenset[str]:
        """The parts of which something is said, if only why not."""
        return frozenset(self.why) | {part for part in PARTS if getattr(self, part) is not None}


def list_wrong(figures: Figures, entries: Sequence[str]) -> Iterator[str]:
    """What does not fit the entries that figures are of.

    Args:
        figures: of right types.
        entries: ids of the compared ones, in the order of ranges and shares.
    """
    n = len(entries)
    if len(set(entries)) < n:
        yield "an entry is named twice"
    if figures.ranges is not None and not _fit(figures.ranges.low, figures.ranges.high, n):
        yield f"ranges are not of {n} entries"
    shares = () if figures.stability is None else figures.stability.shares
    if figures.stability is not None and (
        len(shares) != n or not all(_is_spread(row, n) for row in shares)
    ):
        yield f"shares are not of {n} entries and ranks"
    named = {step.entry for step in figures.progress or ()}
    named |= {name for pair in figures.alike for name in pair}
    if not named <= set(entries):
        yield "an entry is named that was not compared"
    yield from _list_wrong_pairs(figures)
    yield from _list_wrong_facets(figures, n)


def _is_spread(row: Sequence[int], n: int) -> bool:
    """Check that these are the shares of an entry that had some of so many ranks."""
    ranks = sum(1 if number > 0 else -number for number in row)
    ends = not row or row[-1] > 0
    return ends and ranks <= n and 0 not in row and max(row, default=0) <= _HUNDRED


def _fit(low: Sequence[int], high: Sequence[int], n: int) -> bool:
    """Whether these are ranges of the ranks of some entries."""
    return len(low) == len(high) == n and all(
        1 <= a <= b <= n for a, b in zip(low, high, strict=True)
    )


def _list_wrong_pairs(figures: Figures) -> Iterator[str]:
    alike = [frozenset(pair) for pair in figures.alike]
    if len(set(alike)) < len(alike) or any(len(pair) == 1 for pair in alike):
        yield "a pair that is not compared is named twice, or is one entry"


def _list_wrong_facets(figures: Figures, entries: int) -> Iterator[str]:
    if figures.facets is None:
        return
    for one in figures.facets.told:
        if not _fit(one.low, one.high, entries) or not _fit(one.rank, one.rank, entries):
            yield f"ranks on facet {quote(one.facet)} are not of {entries} entries"
        if not figures.facets.least <= one.queries <= figures.queries:
            yield (
                f"facet {quote(one.facet)} has fewer queries than board.toml asks for, or more "
                f"than the set"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What an event told of a ranking.

    Attributes:
        event: its number.
        at: its time.
        season: whose entries; "" for a board without seasons.
        view: what they were ranked by.
        due: the day from which it may be shown.
        seed: of what was drawn.
        entries: ids of those that were compared, in the order they came.
        left_out: id -> why it was not compared.
        figures: what is told.
        digest: salted digest of the scores by query.
    """

    event: int
    at: datetime
    season: str
    view: str
    due: date
    seed: int
    entries: tuple[str, ...]
    left_out: Mapping[str, LeftOut]
    figures: Figures
    digest: str

    @property
    def covered(self) -> frozenset[str]:
        """The ids that were looked at, compared or left out."""
        return frozenset((*self.entries, *self.left_out))


def read_measured(entry: Entry, *, known: AbstractSet[str]) -> Measured:
    """What an event says whose fields are of the right types.

    Args:
        entry: the event.
        known: ids of what was published.

    Raises:
        ValueError: its figures do not fit its entries, or these are not published.
    """
    measured = Measured(
        event=entry.event.seq,
        at=entry.time,
        season=entry.get("season"),
        view=entry.get("view"),
        due=date.fromisoformat(entry.get("due")),
        seed=entry.get("seed"),
        entries=tuple(entry.get("entries")),
        left_out=dict(entry.get("left_out")),
        figures=msgspec.convert(entry.get("figures"), Figures),
        digest=entry.event.sealed["table"],
    )
    wrong = [*list_wrong(measured.figures, measured.entries)]
    if measured.due > entry.time.date():
        wrong.append("it was published before its day")
    if not measured.covered <= known or set(measured.entries) & measured.left_out.keys():
        wrong.append("an entry is not published, or compared and left out")
    if wrong:
        raise ValueError("; ".join(wrong))
    return measured
