"""What events publish of a ranking: figures beside the scores, a final, and the ends of seasons.

The figures of an event `measured` are few and rounded, for each digit can carry something about
labels that nobody else has. Ranges say nothing of a system that was left out. A final and the end
of a season publish exact scores.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import msgspec

from heldout.board.log.events import Entry
from heldout.board.log.submission import Submission

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
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
    def published(self) -> frozenset[str]:
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
    measured = _read(entry, Measured, digest=entry.event.sealed["table"])
    twice = set(measured.entries) & measured.left_out.keys()
    _refuse(
        *((True, text) for text in list_wrong(measured.figures, measured.entries)),
        (measured.due > entry.time.date(), "it was published before its day"),
        (
            twice or not measured.covered <= known,
            "an entry is not published, or compared and left out",
        ),
    )
    return measured


def _read(entry: Entry, kind: type[T], **more: object) -> T:
    """An event as a value that has its fields, beside its number and time and what is given."""
    said = {one.name: entry.get(one.name) for one in fields(kind)}
    known = {name: one for name, one in said.items() if one is not None}
    return msgspec.convert({**known, "event": entry.event.seq, "at": entry.time, **more}, kind)


def _refuse(*rows: tuple[object, str]) -> None:
    """Raise a ValueError with every text whose condition holds."""
    if wrong := [text for found, text in rows if found]:
        raise ValueError("; ".join(wrong))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """A list of finalists.

    Attributes:
        event: number of the event.
        at: its time.
        finalists: their ids, in the order of receipt.
        why: the reason for another list; "" for the first one.
    """

    event: int
    at: datetime
    finalists: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactScores:
    """Exact scores of several entries, published together.

    Attributes:
        event: number of the event.
        at: its time.
        scores: entry -> score as text.
        queries: how many a score is a mean over.
        luck: how far the highest score lies above its worth on average, as text; "" for one entry.
        why: the reason for scoring them again; "" for the first time.
    """

    event: int
    at: datetime
    scores: Mapping[str, str]
    queries: int
    luck: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFinal(ExactScores):
    """The scores of the finalists, and who wins.

    Attributes:
        best: the finalist with the highest score.
        below: those that are clearly below it, in the order of receipt.
        winner: the earliest of the others.
        evidence: finalist -> digest of what its score was published for; empty while sealed.
    """

    best: str
    below: tuple[str, ...]
    winner: str
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndScores(ExactScores):
    """The scores at a season's end, by which its entries are ranked.

    Attributes:
        spreads: entry -> standard deviation over its seeds as text, if it has several.
    """

    spreads: Mapping[str, str] = field(default_factory=dict)

    def fields(self, view: str) -> Mapping[str, Any]:
        """Return what the event says of the scores in a view, as `end_fields` gives it."""
        return {
            "view": view,
            "final_scores": self.scores,
            "queries": {view: self.queries},
            "luck": self.luck,
            "spreads": self.spreads,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The final of a board.

    Attributes:
        view: name of the view.
        namings: the lists of finalists, in order; the last one holds.
        openings: what their scores said, in order; none before the final was opened, several where
            labels were corrected afterwards; the last one holds.
    """

    view: str
    namings: tuple[Naming, ...]
    openings: tuple[OpenedFinal, ...] = ()

    @property
    def finalists(self) -> tuple[str, ...]:
        """The ids of those who are finalists, in the order of receipt."""
        return self.namings[-1].finalists

    @property
    def opened(self) -> OpenedFinal | None:
        """What holds of the scores, `None` before the final was opened."""
        return self.openings[-1] if self.openings else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonEnd:
    """The end of a season, or of a board without seasons.

    Attributes:
        season: its name; "" without seasons.
        view: name of the view that ranks it.
        named: the entries that stand for their teams, in the order of receipt; the others with a
            score had one before the end.
        openings: the scores, in order; several where labels were corrected afterwards; the last
            ones hold.
    """

    season: str
    view: str
    named: tuple[str, ...]
    openings: tuple[EndScores, ...]

    @property
    def opened(self) -> EndScores:
        """The scores that hold."""
        return self.openings[-1]


def fold_season_end(
    before: SeasonEnd | None, entry: Entry, submissions: Mapping[str, Submission], *, closed: bool
) -> SeasonEnd:
    """The end of a season after an event `ended-season`.

    Args:
        before: as it was, `None` before its first event.
        entry: the event, whose fields are of the right types.
        submissions: of the board.
        closed: whether the board was closed before.

    Raises:
        ValueError: the event cannot come where it stands, or contradicts itself.
    """
    opened = _read(entry, EndScores, **_find_scores(entry, entry.get("view")))
    names = tuple(entry.get("named"))
    end = SeasonEnd(
        season=entry.get("season"), view=entry.get("view"), named=names, openings=(opened,)
    )
    strange = [name for name in opened.scores if not _is_entry(submissions.get(name))]
    named = opened.scores.keys() >= set(names) and names == order_by_receipt(names, submissions)
    same = before and (before.view, before.named, before.opened.scores.keys())
    again = before is not None
    _refuse(
        (not names or strange, "it names nobody, or a score is that of no published entry"),
        (not named, "who is named has no score, or is not in the order of receipt"),
        (closed and not again, "the board was closed before"),
        *_list_wrong_scores(opened),
        (again and not opened.why, "it ends the season again without a reason"),
        (
            again and same != (end.view, end.named, opened.scores.keys()),
            "it ends the season again with other entries",
        ),
    )
    return end if before is None else replace(before, openings=(*before.openings, opened))


def apply_season_end(
    entry: Entry, submissions: Mapping[str, Submission]
) -> Mapping[str, Submission]:
    """The entries with their exact scores, which replace what was published of them before.

    Args:
        entry: an event `ended-season`.
        submissions: as they were before; those that the event is not about are left out.
    """
    view, scores, spreads = (entry.get(name) for name in ("view", "final_scores", "spreads"))
    stamp = (entry.time, entry.event.kind, str(entry.hash))
    return {
        one.id: replace(
            one,
            scores={**one.scores, view: scores[one.id]},
            counts={**one.counts, **entry.get("queries")},
            spreads={**one.spreads, **({view: spreads[one.id]} if one.id in spreads else {})},
            untold=tuple(name for name in one.untold if name != view),
            exact=(view,),
            events=(*one.events, stamp),
        )
        for one in submissions.values()
        if one.id in scores
    }


def fold_final(
    final: Final | None, entry: Entry, submissions: Mapping[str, Submission], *, closed: bool
) -> Final:
    """The final after an event `named-finalists` or `opened-final`.

    Args:
        final: as it was, `None` before its first event.
        entry: the event, whose fields are of the right types.
        submissions: of the board.
        closed: whether the board was closed before.

    Raises:
        ValueError: the event cannot be where it stands, or contradicts itself.
    """
    if final is not None and entry.get("view") != final.view:
        raise ValueError(f"it is about another view than {final.view}")
    if entry.event.kind == "named-finalists":
        return _name(final, entry, submissions)
    if final is None:
        raise ValueError("no finalists were named before")
    return _open(final, entry, closed=closed)


def _name(final: Final | None, entry: Entry, submissions: Mapping[str, Submission]) -> Final:
    named = _read(entry, Naming)
    finalists, again = named.finalists, final is not None
    strange = [name for name in finalists if not _is_entry(submissions.get(name))]
    _refuse(
        (final and final.openings, "the final was opened before"),
        (again and not named.why, "it names other finalists without a reason"),
        (
            not finalists or len(set(finalists)) < len(finalists),
            "it names nobody, or somebody twice",
        ),
        (strange, "a finalist is no published entry"),
        (
            finalists != order_by_receipt(finalists, submissions),
            "the finalists are not in the order of receipt",
        ),
    )
    if final is None:
        return Final(view=entry.get("view"), namings=(named,))
    return replace(final, namings=(*final.namings, named))


def order_by_receipt(
    names: Collection[str], submissions: Mapping[str, Submission]
) -> tuple[str, ...]:
    """The ids in the order of receipt; of one second, as the log has their first events."""
    chosen = [one for one in submissions.values() if one.id in names]
    return tuple(one.id for one in sorted(chosen, key=lambda one: one.received))


def _is_entry(submission: Submission | None) -> bool:
    return submission is not None and submission.status == "published" and not submission.baseline


def _find_scores(entry: Entry, view: str) -> Mapping[str, object]:
    """Return what an event names otherwise than `ExactScores` does."""
    return {"scores": entry.get("final_scores"), "queries": entry.get("queries").get(view, 0)}


def _open(final: Final, entry: Entry, *, closed: bool) -> Final:
    opened = _read(entry, OpenedFinal, **_find_scores(entry, final.view))
    _refuse(
        (closed and not final.openings, "the board was closed before"),
        (final.openings and not opened.why, "it opens the final again without a reason"),
        *_list_wrong(opened, final.finalists),
    )
    return replace(final, openings=(*final.openings, opened))


def _list_wrong_scores(opened: ExactScores) -> Iterator[tuple[object, str]]:
    """List what anybody can see to be wrong, without the scores by query."""
    yield not opened.queries, "it does not say over how many queries"
    luck = bool(opened.luck) != (len(opened.scores) > 1)
    yield luck, "it states luck for one entry, or none for several"


def _list_wrong(opened: OpenedFinal, finalists: Sequence[str]) -> Iterator[tuple[object, str]]:
    """List the same of a final, and what is wrong with who wins."""
    if opened.scores.keys() != set(finalists):
        yield True, "it does not have the scores of just the finalists"
        return
    unknown = opened.evidence and opened.evidence.keys() != set(finalists)
    yield unknown, "it does not say for each finalist what the score was published for"
    yield from _list_wrong_scores(opened)
    scores = {name: Decimal(text) for name, text in opened.scores.items()}
    lower = scores.get(opened.best) != max(scores.values())
    yield lower, "its best is not the one with the highest score"
    below = [name for name in finalists if name in opened.below]
    first = next((name for name in finalists if name not in below), "")
    ordered = [*opened.below] == below
    yield not ordered, "who is clearly below the best is not in the order of receipt"
    yield (
        ordered and (opened.best in below or opened.winner != first),
        "its winner is not the earliest that is not clearly below the best",
    )
