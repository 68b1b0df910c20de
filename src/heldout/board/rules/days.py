"""The days of a board: how long scores stay sealed, and whose runs may be opened at the end.

Rules can be changed, and what was shown is known. So a day that is over cannot be moved, whatever
later rules say, and nothing that was opened once is sealed again.

A run is its team's. The rules say beforehand whether runs can be opened at all, the team's word
is in its sealed metadata and can be changed until the closing, and the stricter of the rules
holds: those of the day of submission, under which the team agreed, and those at the end.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from heldout.board.log.events import Entry
from heldout.board.log.final import Measured, Naming, OpenedFinal
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules.spec import BoardSpec, OpenRuns, due_day
from heldout.board.rules.spec_file import parse_spec

_STRICTEST_FIRST: tuple[OpenRuns, ...] = ("never", "with-consent", "always")


def rule_for_runs(history: History, submission: Submission) -> OpenRuns:
    """The stricter of the rules of the day of submission and those in force at the end."""
    texts = (history.rules_at(submission.received), history.rules[-1][1])
    rules = [parse_spec(text.encode()).archive.runs for text in texts]
    return min(rules, key=_STRICTEST_FIRST.index)


def may_open_runs(
    history: History, submission: Submission, *, agreed: Collection[str] = ()
) -> bool:
    """Check whether the runs of an entry or baseline may be in the archive.

    Args:
        history: the board's, with the metadata in force.
        submission: a published entry, or a baseline.
        agreed: ids of entries whose teams agreed in another way than by their metadata. It counts
            only where the metadata says nothing: a "no" is never overruled.
    """
    rule = rule_for_runs(history, submission)
    if submission.baseline or rule == "never":
        return rule != "never"
    said = None if submission.identity is None else submission.identity.open_runs
    return (rule == "always" or submission.id in agreed) if said is None else said


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


def shows_final(entry: Entry, terms: Sequence[Term], received: date) -> bool:
    """Check whether the final score that an event holds has been shown by now.

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
    published = [s.published for s in history.submissions.values() if not s.baseline]
    for before, after in pairwise(list_terms(history, _ALWAYS)):
        rules = f"the rules of {after.since:%d %b %Y}"
        last = "" if before.deadline is None else f"{before.deadline:%d %b %Y}"
        if before.deadline is not None and after.since.date() > before.deadline:
            if (after.spec.kind, after.spec.closes) != ("one-shot", before.deadline):
                yield f"{rules} move the last day of a one-shot board, {last}, which was over"
        elif not any(day is not None and day < after.since for day in published):
            continue
        elif before.deadline is None and after.deadline is not None:
            yield f"{rules} hide scores on a board that had published scores"
        elif before.deadline is not None and (
            after.deadline is None or after.since.date() > after.deadline
        ):
            which = f"the scores of a one-shot board before its last day, {last}, is over"
            yield f"{rules} open {which}"


def list_early(history: History) -> Iterator[str]:
    """Yield what was told too early, or though no rule allows it.

    Args:
        history: what a log says, the public one too.

    Yields:
        A sentence for each event.
    """
    for one in history.measured:
        spec = parse_spec(history.rules_at(one.at).encode(), path="the rules in the log")
        event = f"event {one.event} ('measured')"
        if spec.trust is None or not one.figures.published <= set(spec.trust.show):
            yield f"{event} publishes what board.toml did not allow"
            continue
        early = sorted(
            name
            for name in one.covered
            if not _is_due(history.submissions[name], one, spec, history)
        )
        if early:
            yield (
                f"{event} publishes figures of {', '.join(early[:3])} before the day of board.toml"
            )


def list_early_finals(history: History) -> Iterator[str]:
    """Finalists and scores that the rules of the day did not allow.

    Args:
        history: what a log says, the public one too.

    Yields:
        A sentence for each event.
    """
    final = history.final
    if final is None:
        return
    events: list[Naming | OpenedFinal] = [*final.namings, *final.openings]
    for event in events:
        spec = parse_spec(history.rules_at(event.at).encode(), path="the rules in the log")
        view, last = spec.finalists_view, spec.closes
        if view is None or last is None or view.name != final.view:
            yield f"event {event.event} is about a final view that board.toml did not have"
        elif isinstance(event, Naming):
            yield from _list_wrong_names(history, event, last, most=view.finalists or 0)
        elif event.at.date() <= last:
            yield f"event {event.event} ('opened-final') came before the last day, {last}, was over"


def _list_wrong_names(history: History, event: Naming, last: date, *, most: int) -> Iterator[str]:
    which = f"event {event.event} ('named-finalists')"
    if len(event.finalists) > most:
        yield f"{which} names more than {most} finalists"
    late = [n for n in event.finalists if history.submissions[n].received.date() > last]
    if late:
        yield f"{which} names {', '.join(late[:3])}, received after the last day, {last}"


def _is_due(submission: Submission, one: Measured, spec: BoardSpec, history: History) -> bool:
    if spec.trust is None or submission.published is None:
        return False
    closed: date | None = None
    if history.closed is not None and history.closed <= one.at:
        closed = history.closed.date()
    day = due_day(
        spec.trust,
        submission.published.date(),
        last=spec.last_day_of(one.season),
        closed=closed,
    )
    return day is not None and day <= one.at.date()
