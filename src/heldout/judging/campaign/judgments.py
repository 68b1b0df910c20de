"""Judgments: which of two passages somebody preferred; JSON lines of our own, or four columns.

A judgment is what was recorded, whether it counts or not; `counted` says which do, at any day.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Annotated, Literal

import msgspec

from heldout.errors import InputError, Problem
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Why, format_rows, hidden_name, parse_rows, read_text
from heldout.judging.campaign.settings import Exclusion
from heldout.trec.judgments import read_preferences
from heldout.trec.text import show
from heldout.trec.tops import Tops

Reason = Literal["same", "neither", "unreadable", "language", "other"]
"""Why somebody could not judge: both say the same; neither answers; it cannot be read; it is in a
language they do not read; something else."""

REASONS: Mapping[Reason, str] = {
    "same": "both say the same",
    "neither": "neither answers it",
    "unreadable": "I can't read one of them",
    "language": "I don't know the language",
    "other": "of another reason",
}
"""Why somebody cannot judge, in their words, which go on after "because"."""

By = Literal["key", "pointer", "form"]
"""How a choice was made: with a key, a pointer, or by a plain form without JavaScript."""

Side = Literal["left", "right"]
"""Passage A is left, passage B right."""

_DAY_MS = 86_400_000
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_SECONDS = re.compile(r"[0-9T:-]{19}Z")
_TIMES = ("shown_at", "answered_at", "submitted_at")
_LONGEST_MS = 10**10


class Judgment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of one judge to one pair, or to a query with all passages of its pool.

    Times get milliseconds where they have none: as texts they are then in the order of time.

    Attributes:
        query: its id.
        left: the passage shown as A; of four columns the first; empty for a query with all of them.
        right: the one shown as B.
        preferred: one of the two, or `None` where they could not judge.
        choice: what was chosen for a query with all passages (`QuestionForm.choices`); else `None`.
        ticked: the passages that were ticked with it, in the order shown.
        reason: why they could not; `None` where they could.
        worker: a pseudonym; empty where unknown.
        task: the task's id; empty where unknown.
        position: of the pair in its task, from 1; 0 where unknown.
        answer: of a test, the passage to be preferred; `None` for a pair that nobody knows.
        why: why the pair is judged.
        shown_at: when the page left the server, ISO 8601 in UTC; empty where unknown.
        answered_at: when the answer came; empty where unknown.
        active_ms: milliseconds the page was looked at; `None` where no script ran.
        by: how it was chosen; `None` where unknown.
        submitted: the judge finished the task.
        submitted_at: when; empty where unknown, and where they did not.
    """

    query: str
    left: str
    right: str
    preferred: str | None
    choice: str | None = None
    ticked: tuple[str, ...] = ()
    reason: Reason | None = None
    worker: str = ""
    task: str = ""
    position: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    answer: str | None = None
    why: Why = "pool"
    shown_at: str = ""
    answered_at: str = ""
    active_ms: Annotated[int, msgspec.Meta(ge=0, le=_LONGEST_MS)] | None = None
    by: By | None = None
    submitted: bool = True
    submitted_at: str = ""

    def __post_init__(self) -> None:
        """Bring times into the form in which they can be compared."""
        for name in _TIMES:
            time = getattr(self, name)
            if time and "." not in time:
                msgspec.structs.force_setattr(self, name, _with_milliseconds(time))

    @property
    def other(self) -> str | None:
        """The passage that was not preferred; `None` where they could not judge."""
        if self.preferred is None:
            return None
        return self.left if self.preferred == self.right else self.right

    @property
    def pair(self) -> tuple[str, str, str]:
        """Query and the two ids, the lesser first, so that the sides do not matter."""
        return (self.query, min(self.left, self.right), max(self.left, self.right))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a judge chose on a page; a column of the database for each attribute.

    Attributes:
        side: which passage, `left` or `right`, or a choice of a `QuestionForm`; `None` for "cannot
            judge".
        reason: why they cannot; exactly where `side` is `None`.
        by: how it was chosen.
        active_ms: milliseconds the page was looked at, 0 to 86,400,000 (a day); `None` where no
            script ran.
        ticked: ids of passages that were ticked.

    Raises:
        ValueError: neither a side nor a reason, or both; a time out of its range.
    """

    side: str | None
    reason: Reason | None = None
    by: By | None = None
    active_ms: int | None = None
    ticked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one = (self.side is None) != (self.reason is None)
        if not one or not 0 <= (self.active_ms or 0) <= _DAY_MS:
            raise ValueError(self)


_SURELY_REPEATED = 20
"""Rows that do not come twice in the same order by chance."""


def parse_judgments(data: bytes, *, path: str) -> tuple[Judgment, ...]:
    """Read judgments: JSON lines, or query, A, B, the preferred one; compressed too.

    Raises:
        InputError: code `bad-row`: no judgment, an id that nobody can see whole, or a time that is
            none; `bad-preference`; each with lines; `doubled-judgments`: the file holds the same
            rows several times over, or a judge gave the same answer to a pair twice; `empty-file`;
            and those of `read_preferences`.
    """
    text = read_text(BytesIO(data), path=path)
    if not text.lstrip().startswith(b"{"):
        found = tuple(
            Judgment(query=one.query, left=one.a, right=one.b, preferred=one.preferred)
            for one in read_preferences(BytesIO(text), path=path)
        )
    else:
        found = parse_rows(text, Judgment, path=path, check=_find_error)
    _refuse_repeated(found, path)
    return found


def _refuse_repeated(found: Sequence[Judgment], path: str) -> None:
    """Refuse rows that were put in twice: each vote more makes judges seem to agree more.

    Rows without a judge may be alike, as two people can prefer the same. A whole file of them that
    stands there twice over, row by row, is no chance. Rows of a task with a position are one
    answer however often they come.
    """
    bare = [one for one in found if not one.position]
    period = _period(bare)
    if period >= _SURELY_REPEATED and period < len(bare):
        repeated = f"the same {period:,} rows {len(bare) // period:,} times over"
        raise InputError.of("doubled-judgments", path, repeated)
    seen: set[Judgment] = set()
    for one in bare:
        if one.worker and one in seen:
            pair = f"{show(one.left)} and {show(one.right)} of query {show(one.query)}"
            same = f"{show(one.worker)} on {pair}, twice the same"
            raise InputError.of("doubled-judgments", path, same, hint="remove the copy")
        seen.add(one)


def _period(rows: Sequence[Judgment]) -> int:
    """The least number of rows that the whole is made of, row by row; all where it is none."""
    matched = [0] * len(rows)
    for end in range(1, len(rows)):
        length = matched[end - 1]
        while length and rows[end] != rows[length]:
            length = matched[length - 1]
        matched[end] = length + (rows[end] == rows[length])
    period = len(rows) - (matched[-1] if rows else 0)
    return period if period and len(rows) % period == 0 else len(rows)


def format_judgments(judgments: Iterable[Judgment]) -> bytes:
    """JSON lines, in the order given."""
    return format_rows(judgments)


def failed_tests(judgments: Iterable[Judgment]) -> dict[tuple[str, str], int]:
    """(worker, task) -> tests whose last answer was not the known one; 0 where all were passed."""
    failed: dict[tuple[str, str], int] = {}
    for one in last_answers(judgments):
        wrong = one.answer is not None and one.preferred != one.answer
        failed[one.worker, one.task] = failed.get((one.worker, one.task), 0) + wrong
    return failed


def counted(
    judgments: Iterable[Judgment],
    *,
    exclusion: Exclusion = "task",
    failures: int = 1,
    until: str | None = None,
) -> tuple[Judgment, ...]:
    """The judgments that count, in order: votes on pairs that nobody knows, of honest judges.

    Of answers to one pair in one task the last counts. Left out are tests, answers without a
    preference, tasks that were not finished, and what a failed test excludes: Arabzadeh et al.
    2021, §3.1, leaves open whether that is the task or the worker.

    Args:
        judgments: all that were recorded.
        exclusion: what a failed test excludes.
        failures: so many failed tests in a task exclude.
        until: only answers up to this time, ISO 8601 in UTC.
    """
    seen = judgments_at(tuple(judgments), until)
    return tuple(
        one
        for one in honest_answers(seen, exclusion=exclusion, failures=failures)
        if one.answer is None and one.preferred is not None
    )


def honest_answers(
    judgments: Iterable[Judgment], *, exclusion: Exclusion, failures: int
) -> list[Judgment]:
    """The last answers of finished tasks that no failed test excludes.

    Tests are among them, and answers without a preference.
    """
    last = last_answers(judgments)
    failed = {slot for slot, n in failed_tests(last).items() if n >= failures}
    workers = {worker for worker, _ in failed} if exclusion == "worker" else set()
    return [
        one
        for one in last
        if one.submitted and (one.worker, one.task) not in failed and one.worker not in workers
    ]


def judgments_at(judgments: Sequence[Judgment], until: str | None) -> Sequence[Judgment]:
    """Judgments as they were recorded at a time.

    A task that was finished later, or got an answer later, was not finished yet, whatever it is
    now.

    Args:
        judgments: all that were recorded.
        until: the time, ISO 8601 in UTC; `None` for now.
    """
    if until is None:
        return judgments
    until = _with_milliseconds(until)
    later = {
        (one.worker, one.task)
        for one in judgments
        if one.task and max(one.answered_at, one.submitted_at) > until
    }
    return [
        msgspec.structs.replace(one, submitted=False, submitted_at="")
        if (one.worker, one.task) in later
        else one
        for one in judgments
        if one.answered_at <= until
    ]


def last_answers(judgments: Iterable[Judgment]) -> list[Judgment]:
    """The last answer to each place of a task; a judgment without a place is its own.

    Returns:
        In the order in which they were given.
    """
    last: dict[object, Judgment] = {}
    for number, one in enumerate(judgments):
        slot = (one.worker, one.task, one.position) if one.position else number
        last.pop(slot, None)
        last[slot] = one
    return list(last.values())


def _with_milliseconds(time: str) -> str:
    # "." sorts before "Z", so that 12:03:11.204Z would come before 12:03:11Z.
    return f"{time[:-1]}.000Z" if _SECONDS.fullmatch(time) else time


def _find_error(row: Judgment, path: str, number: int) -> Problem | None:
    sides = (row.left, row.right, None)
    asked = not row.left and not row.right  # of a query with all passages
    if (
        (row.left == row.right and not asked)
        or (row.choice is not None) != (asked and row.reason is None)
        or (row.choice is None and len(row.ticked) > 0)
        or not {row.preferred, row.answer} <= {*sides}
        or (row.reason is not None and row.preferred is not None)
    ):
        found = f"{show(row.left)} against {show(row.right)}: {show(str(row.preferred))}"
        return Problem.of("bad-preference", path, found, line=number)
    times = (getattr(row, name) for name in _TIMES)
    wrong = next((one for one in times if one and not _is_time(one)), None)
    if wrong is not None:
        expected = "a time in UTC, as in 2026-11-21T12:03:11.204Z"
        return Problem.of("bad-row", path, show(wrong), expected, line=number)
    names = (row.query, row.left, row.right, row.worker, row.task, *row.ticked)
    return hidden_name(names, path=path, line=number)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.fullmatch(text) is not None


# Pools where only judgments are there, and tops of runs where only pools are there.


def pool_judged(
    judgments: Iterable[Judgment],
    *,
    known: Mapping[str, Sequence[str]] | None = None,
    tops: Mapping[str, Tops] | None = None,
) -> tuple[Pool, ...]:
    """The passages that were judged, as pools.

    Args:
        judgments: all of them; tests count for nothing.
        known: query -> relevant documents, the best first; the first of them is the known answer,
            whether it was judged or not.
        tops: run -> query -> first documents: whose passage each is.

    Returns:
        A pool for each judged query, by its id.
    """
    passages: defaultdict[str, set[str]] = defaultdict(set)
    for one in judgments:
        if one.answer is None:
            passages[one.query] |= {one.left, one.right}
    answers = {query: docs[0] for query, docs in (known or {}).items() if docs}
    pools, by_run = [], tops or {}
    for query in sorted(passages):
        answer = answers.get(query)
        docs = sorted(passages[query] | ({answer} if answer is not None else set()))
        candidates = tuple(
            Candidate(
                doc=doc,
                known=doc == answer,
                runs=tuple(sorted(r for r, tops_ in by_run.items() if doc in tops_.get(query, ()))),
            )
            for doc in docs
        )
        pools.append(Pool(query=query, candidates=candidates))
    return tuple(pools)


def pooled_tops(pools: Iterable[Pool]) -> Mapping[str, Tops]:
    """Run -> query -> its first document, of pools of first documents.

    Raises:
        InputError: code `deep-pool`: a pool has several documents of one run, so that nobody knows
            which came first.
    """
    found: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for pool in pools:
        for one in pool.candidates:
            for run in one.runs:
                if pool.query in found[run]:
                    raise InputError.of(
                        "deep-pool",
                        "pool.jsonl",
                        f"several documents of {run} for query {pool.query}",
                    )
                found[run][pool.query] = (one.doc,)
    return dict(sorted(found.items()))


# Judgments from several places in one file: each once, and none is ever taken out.


def merge_judgments(before: Iterable[Judgment], found: Iterable[Judgment]) -> tuple[Judgment, ...]:
    """Return what was there, in its order, then what is new.

    A judgment that is there stays as it is, but that its task may have been finished since.

    Args:
        before: in the file.
        found: in a database, or in a platform's results.
    """
    fresh = dict(enumerate(found))
    slots = defaultdict(list)
    for number in reversed(fresh):
        slots[_slot(fresh[number])].append(number)
    merged = []
    for one in before:
        again = slots[_slot(one)]
        later = fresh.pop(again.pop()) if again else one
        merged.append(later if later.submitted else one)
    return (*merged, *fresh.values())


def _slot(one: Judgment) -> tuple[object, ...]:
    """Return what never changes about a judgment, and is that of no other."""
    return (
        *(one.worker, one.task, one.position, one.query, one.left, one.right),
        *(one.preferred, one.reason, one.shown_at, one.answered_at),
    )


# Votes: what the judgments of each pair come to.


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVotes:
    """The votes on one pair.

    Attributes:
        first: for the passage with the lesser id.
        second: for the other.
    """

    first: int
    second: int

    @property
    def total(self) -> int:
        """All votes."""
        return self.first + self.second

    def winner(self, pair: tuple[str, str]) -> str | None:
        """Return which of the pair has more votes; `None` where both have as many."""
        return None if self.first == self.second else pair[self.second > self.first]


Votes = Mapping[str, Mapping[tuple[str, str], PairVotes]]
"""Query -> (lesser id, greater id) -> votes."""


def lead_of(votes: Mapping[tuple[str, str], PairVotes], one: str, other: str) -> int | None:
    """Votes for one document less those for another; `None` where the pair has none."""
    found = votes.get((min(one, other), max(one, other)))
    if found is None:
        return None
    return (found.first - found.second) * (1 if one < other else -1)


def count_votes(
    judgments: Iterable[Judgment], *, same: Mapping[str, Mapping[str, str]] | None = None
) -> Votes:
    """Count votes by pair.

    Args:
        judgments: those that count, as `counted` gives them.
        same: query -> document -> the one that stands for its text in the pool. A vote between
            two documents of one text says nothing and is left out.

    Returns:
        Queries and pairs in order of their ids, each with at least one vote.
    """
    found: defaultdict[str, defaultdict[tuple[str, str], list[int]]] = defaultdict(
        lambda: defaultdict(lambda: [0, 0])
    )
    for one in judgments:
        stands = (same or {}).get(one.query, {})
        if one.preferred is None or one.other is None:
            continue
        won, lost = stands.get(one.preferred, one.preferred), stands.get(one.other, one.other)
        if won != lost:
            found[one.query][min(won, lost), max(won, lost)][won > lost] += 1
    return {
        query: {
            pair: PairVotes(first=first, second=second)
            for pair, (first, second) in sorted(found[query].items())
        }
        for query in sorted(found)
    }
