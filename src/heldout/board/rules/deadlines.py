"""Until which day a board keeps scores to itself: what the rules said, day by day.

Rules can be changed, and what was shown is known. So a day that is over cannot be moved, whatever
later rules say, and nothing that was opened once is sealed again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec

__all__ = [
    "Term",
    "list_moved",
    "list_terms",
    "missed_deadline",
    "one_shot_deadline",
    "opened_before",
    "tells_final",
]

_ALWAYS = datetime.max.replace(tzinfo=UTC)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Rules that were in force for a while.

    Attributes:
        spec: the rules.
        since: from when on.
        until: to when; of the last ones the moment that is asked about.
        deadline: the last day of a one-shot board then; `None` while scores are told one by one.
    """

    spec: BoardSpec
    since: datetime
    until: datetime
    deadline: date | None

    @property
    def is_over(self) -> bool:
        """Whether scores were shown while, or since, these rules were in force."""
        return self.deadline is None or self.until.date() > self.deadline


def list_terms(history: History, now: datetime) -> tuple[Term, ...]:
    """The rules until a moment, in order; none of a log that has none.

    Args:
        history: of the whole log.
        now: the moment, UTC.
    """
    begun = [rules for rules in history.rules if rules[0] <= now] or [*history.rules[:1]]
    ends = [*(since for since, _ in begun[1:]), now]
    terms: list[Term] = []
    deadline: date | None = None
    for (since, text), until in zip(begun, ends, strict=True):
        spec = parse_spec(text.encode())
        if deadline is None or since.date() <= deadline:
            deadline = spec.closes if spec.kind == "one-shot" else None
        terms.append(Term(spec=spec, since=since, until=until, deadline=deadline))
    return tuple(terms)


def one_shot_deadline(history: History) -> date | None:
    """The last day of a one-shot board, `None` for any other; one that is over is never moved."""
    terms = list_terms(history, _ALWAYS)
    return terms[-1].deadline if terms else None


def missed_deadline(terms: Sequence[Term], received: datetime) -> date | None:
    """The last day of a one-shot board that had passed when something came; `None` if none had.

    What came in time by the rules of its day stays in time.

    Args:
        terms: the rules until now, at least one.
        received: when it came, UTC.
    """
    then = [term for term in terms if term.since <= received] or [terms[0]]
    deadline = then[-1].deadline
    return deadline if deadline is not None and received.date() > deadline else None


def opened_before(terms: Sequence[Term]) -> datetime:
    """The moment before which everything was logged whose scores have been shown by now.

    Args:
        terms: the rules until now.
    """
    if not terms or terms[-1].is_over:
        return _ALWAYS
    return max((term.until for term in terms if term.is_over), default=_NEVER)


def tells_final(entry: Entry, terms: Sequence[Term], received: date) -> bool:
    """Whether the final score that an event holds has been shown by now.

    Args:
        entry: the event.
        terms: the rules until now.
        received: the day on which its entry was submitted.
    """
    last = len(terms) - 1
    held = (term for i, term in enumerate(terms) if i == last or term.until > entry.time)
    days = ((term.until.date(), term.spec.last_day(received)) for term in held)
    return any(day is not None and until > day for until, day in days)


def list_moved(history: History) -> Iterator[str]:
    """The rules that would move a one-shot board's last day, or open or seal scores out of turn.

    A day that was over stays where it was, whatever they say: nobody obeys them. The others hold,
    and entries stand beside each other of which some came after scores had been seen.

    Yields:
        A sentence for each.
    """
    for before, after in pairwise(list_terms(history, _ALWAYS)):
        rules = f"the rules of {after.since:%d %b %Y}"
        day = "" if before.deadline is None else f"{before.deadline:%d %b %Y}"
        if _comes_after(before, after):
            if (after.spec.kind, after.spec.closes) != ("one-shot", before.deadline):
                yield f"{rules} move the last day of a one-shot board, {day}, which was over"
        elif not _has_entries(history, after.since):
            continue
        elif before.deadline is None and after.deadline is not None:
            yield f"{rules} seal scores on a board whose entries had been told theirs"
        elif before.deadline is not None and _opens(after):
            yield f"{rules} open the scores of a one-shot board before its last day, {day}, is over"


def _comes_after(before: Term, after: Term) -> bool:
    """Whether the last day of a one-shot board was over when its rules were changed."""
    return before.deadline is not None and after.since.date() > before.deadline


def _opens(term: Term) -> bool:
    """Whether rules show at once all scores that are there."""
    return term.deadline is None or term.since.date() > term.deadline


def _has_entries(history: History, moment: datetime) -> bool:
    """Whether an entry had been published before a moment."""
    times = (s.published for s in history.submissions.values() if not s.baseline)
    return any(time is not None and time < moment for time in times)
