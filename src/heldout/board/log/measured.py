"""What a board publishes of its ranking beside the scores: the fields of an event `measured`.

Few and rounded, for each digit can carry something about labels that nobody else has. Ranges say
nothing of a system that was left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, get_args

import msgspec

from heldout.board.log.events import Entry

TrustPart = Literal["ranges", "progress"]
"""What a page may tell of a ranking beside its scores."""

PARTS: tuple[TrustPart, ...] = get_args(TrustPart)
"""All of them, in the order of the page."""

LeftOut = Literal["near", "incomplete", "withheld"]
"""Why an entry is not compared: nearly the same as all it could be compared with; no score for each
query; not said while an embargo holds."""

_Whole = Annotated[int, msgspec.Meta(ge=0)]

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


class Figures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is published at once.

    Attributes:
        queries: how many the scores are over.
        alike: pairs of entries that are nearly the same and not compared with each other.
        ranges, progress: `None` where not published.
        why: part that was to be told -> why it cannot be.
    """

    queries: _Whole
    alike: tuple[tuple[str, str], ...] = ()
    ranges: Ranges | None = None
    progress: tuple[Step, ...] | None = None
    why: dict[TrustPart, str] = {}

    @property
    def told(self) -> frozenset[str]:
        """The parts of which something is said, if only why not."""
        return frozenset(self.why) | {part for part in PARTS if getattr(self, part) is not None}


def list_wrong(figures: Figures, entries: Sequence[str]) -> Iterator[str]:
    """List what does not fit the entries that figures are of.

    Args:
        figures: of right types.
        entries: ids of the compared ones, in the order of the ranges.
    """
    n = len(entries)
    if len(set(entries)) < n:
        yield "an entry is named twice"
    if figures.ranges is not None and not _fit(figures.ranges.low, figures.ranges.high, n):
        yield f"ranges are not of {n} entries"
    named = {step.entry for step in figures.progress or ()}
    named |= {name for pair in figures.alike for name in pair}
    if not named <= set(entries):
        yield "an entry is named that was not compared"
    alike = [frozenset(pair) for pair in figures.alike]
    if len(set(alike)) < len(alike) or any(len(pair) == 1 for pair in alike):
        yield "a pair that is not compared is named twice, or is one entry"


def _fit(low: Sequence[int], high: Sequence[int], n: int) -> bool:
    """Check whether these are ranges of the ranks of some entries."""
    return len(low) == len(high) == n and all(
        1 <= a <= b <= n for a, b in zip(low, high, strict=True)
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
    """Return what an event says whose fields are of the right types.

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
