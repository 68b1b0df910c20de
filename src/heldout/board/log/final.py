"""A board's final as its log tells it: who the finalists are, and what their scores said."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from heldout.board.log.events import Entry
from heldout.board.log.submission import Submission


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
class OpenedFinal:
    """What the scores of the finalists said.

    Attributes:
        event: number of the event.
        at: its time.
        scores: finalist -> score as text.
        queries: how many a score is a mean over.
        best: the finalist with the highest score.
        below: those that are clearly below it, in the order of receipt.
        winner: the earliest of the others.
        luck: how far the highest score lies above its worth on average, as text; "" for one
            finalist.
        why: the reason for scoring them again; "" for the first time.
        evidence: finalist -> digest of what its score was published for; empty while sealed.
    """

    event: int
    at: datetime
    scores: Mapping[str, str]
    queries: int
    best: str
    below: tuple[str, ...]
    winner: str
    luck: str
    why: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)


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
    named = Naming(
        event=entry.event.seq,
        at=entry.time,
        finalists=tuple(entry.get("finalists")),
        why=entry.get("why"),
    )
    if final is not None and final.openings:
        raise ValueError("the final was opened before")
    if final is not None and not named.why:
        raise ValueError("it names other finalists without a reason")
    if not named.finalists or len(set(named.finalists)) < len(named.finalists):
        raise ValueError("it names nobody, or somebody twice")
    known = [submissions.get(name) for name in named.finalists]
    if not all(one is not None and _is_entry(one) for one in known):
        raise ValueError("a finalist is no published entry")
    if named.finalists != order_by_receipt(named.finalists, submissions):
        raise ValueError("the finalists are not in the order of receipt")
    if final is None:
        return Final(view=entry.get("view"), namings=(named,))
    return replace(final, namings=(*final.namings, named))


def order_by_receipt(
    names: Collection[str], submissions: Mapping[str, Submission]
) -> tuple[str, ...]:
    """The ids in the order of receipt; of one second, as the log has their first events."""
    chosen = [one for one in submissions.values() if one.id in names]
    return tuple(one.id for one in sorted(chosen, key=lambda one: one.received))


def _is_entry(submission: Submission) -> bool:
    return submission.status == "published" and not submission.baseline


def _open(final: Final, entry: Entry, *, closed: bool) -> Final:
    opened = OpenedFinal(
        event=entry.event.seq,
        at=entry.time,
        scores=entry.get("final_scores"),
        queries=entry.get("queries").get(final.view, 0),
        best=entry.get("best"),
        below=tuple(entry.get("below")),
        winner=entry.get("winner"),
        luck=entry.get("luck"),
        why=entry.get("why"),
        evidence=entry.get("evidence") or {},
    )
    if closed and not final.openings:
        raise ValueError("the board was closed before")
    if final.openings and not opened.why:
        raise ValueError("it opens the final again without a reason")
    wrong = [*_list_wrong(opened, final.finalists)]
    if wrong:
        raise ValueError("; ".join(wrong))
    return replace(final, openings=(*final.openings, opened))


def _list_wrong(opened: OpenedFinal, finalists: Sequence[str]) -> Iterator[str]:
    """What anybody can see to be wrong, without the scores by query."""
    if opened.scores.keys() != set(finalists):
        yield "it does not have the scores of just the finalists"
        return
    if opened.evidence and opened.evidence.keys() != set(finalists):
        yield "it does not say for each finalist what the score was published for"
    if not opened.queries:
        yield "it does not say over how many queries"
    highest = max(map(Decimal, opened.scores.values()))
    if opened.best not in opened.scores or Decimal(opened.scores[opened.best]) < highest:
        yield "its best finalist is not the one with the highest score"
    others = [name for name in finalists if name not in opened.below]
    if [*opened.below] != [name for name in finalists if name in opened.below]:
        yield "who is clearly below the best is not in the order of receipt"
    elif opened.best in opened.below or opened.winner != next(iter(others), ""):
        yield "its winner is not the earliest finalist that is not clearly below the best"
    if bool(opened.luck) != (len(finalists) > 1):
        yield "it states luck for one finalist, or none for several"
