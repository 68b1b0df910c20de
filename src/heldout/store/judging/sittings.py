"""What passes between a judge and the database: who comes, what is shown, what is answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from heldout.preferences.assignments import State
from heldout.preferences.judgments import By, Reason
from heldout.preferences.settings import Money, Settings

__all__ = [
    "LONGEST_WORKER",
    "Answered",
    "Choice",
    "Given",
    "NoTask",
    "Offer",
    "Outcome",
    "Passage",
    "Shown",
    "Side",
    "Sitting",
    "Visitor",
]

LONGEST_WORKER = 255
"""Characters of a platform's id of a worker."""

Side = Literal["left", "right"]
"""Passage A is left, passage B right."""

Outcome = Literal["recorded", "repeated", "stale", "ahead", "ended"]
"""`recorded`: it is in the database. `repeated`: the same answer stands there already, also where
the assignment has ended since: whoever sent it did not see that it had arrived. `stale`:
another window answered since, nothing was changed. `ahead`: an earlier item has no answer yet.
`ended`: the assignment takes no other answers any more. Only `recorded` wrote a judgment."""

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who comes, as the platform says.

    Attributes:
        worker: the platform's id of the worker; 1 to 255 characters.
        place: its id of this sitting (`assignmentId`, `SESSION_ID`); empty where there is none.
        study: its id of the study (`hitId`, `STUDY_ID`); empty where there is none.
        submit_to: where Mechanical Turk wants the form at the end (`turkSubmitTo`), as it came: the
            page has to check it.
        signed: whether the link was signed for this worker, so that nobody else can have sent it.
    """

    worker: str
    place: str = ""
    study: str = ""
    submit_to: str = ""
    signed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker would consent to.

    Attributes:
        batch: of the task; `claim` is given the one that was shown.
        settings: the terms of this batch.
        items: how many pages the task has.
        assignment: the one under way, which this visitor may continue; else `None`.
    """

    batch: int
    settings: Settings
    items: int
    assignment: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTask:
    """There is no task for this worker.

    Attributes:
        why: `barred`: failed the tests of an earlier task. `changed`: there are tasks, but not of
            the batch that was agreed to: show the new terms. `waiting`: others hold the last ones,
            one may come free. `seen`: what is left are pairs this worker has judged. `done`:
            everything is judged. `paused`: the organiser has paused the campaign, or tasks that do
            not count have earned all that they may; who has a task goes on with it. `elsewhere`:
            the worker has a task with answers, and this visitor cannot show that it is theirs.
        settings: of the newest batch.
    """

    why: Literal["barred", "changed", "waiting", "seen", "done", "paused", "elsewhere"]
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """An assignment as it stands.

    Attributes:
        assignment: its id.
        worker: the worker's pseudonym.
        state: see `State`.
        open: whether answers are taken: it is under way, or expired and nobody else was given the
            task.
        items: how many there are.
        answered: how many have an answer, with or without a preference.
        first_open: position of the first without one, from 1; `None` where all have one.
        lease_until: until when the task is kept without a further answer.
        owed: what the worker is owed now, in hundredths.
        barred: this worker gets no later task.
        settings: the terms that were agreed to.
        visitor: who it is for the platform, as of the first visit; `signed` is not stored.
    """

    assignment: int
    worker: str
    state: State
    open: bool
    items: int
    answered: int
    first_open: int | None
    lease_until: datetime
    owed: Money
    barred: bool
    settings: Settings
    visitor: Visitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is shown.

    Attributes:
        doc: its id, never shown to a judge.
        text: as the collection has it: it may hold anything.
    """

    doc: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The answer that stands.

    Attributes:
        revision: 1 for the first answer to the item, one more with every change.
        side: which was preferred; `None` where the worker could not judge.
        reason: why not; `None` where a side was preferred.
        answered_at: when it came.
    """

    revision: int
    side: Side | None
    reason: Reason | None
    answered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An item as it is shown, the same at every refresh.

    Attributes:
        sitting: the assignment.
        position: from 1.
        query: text of the query.
        left: passage A.
        right: passage B.
        given: the answer that stands; `None` before there is one.
    """

    sitting: Sitting
    position: int
    query: str
    left: Passage
    right: Passage
    given: Given | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a judge chose.

    Attributes:
        side: which passage; `None` for "cannot judge".
        reason: why they cannot; exactly where `side` is `None`.
        by: how it was chosen.
        active_ms: milliseconds the page was looked at, 0 to 86,400,000 (a day); `None` where no
            script ran.

    Raises:
        ValueError: neither a side nor a reason, or both; a time out of its range.
    """

    side: Side | None
    reason: Reason | None = None
    by: By | None = None
    active_ms: int | None = None

    def __post_init__(self) -> None:
        if (self.side is None) == (self.reason is None) or not 0 <= (
            self.active_ms or 0
        ) <= _DAY_MS:
            raise ValueError(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of an answer.

    Attributes:
        outcome: see `Outcome`.
        shown: the item as it stands afterwards.
    """

    outcome: Outcome
    shown: Shown
