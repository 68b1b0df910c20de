"""What was published before the day that the rules of the time allow: figures, and a final."""

from collections.abc import Iterator
from datetime import date

from heldout.board.log.final import Naming, OpenedFinal
from heldout.board.log.history import History, Submission
from heldout.board.log.measured import Measured
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.rules.trust import due_day

__all__ = ["list_early", "list_early_finals"]


def list_early(history: History) -> Iterator[str]:
    """What was told too early, or though no rule allows it.

    Args:
        history: what a log says, the public one too.

    Yields:
        A sentence for each event.
    """
    for one in history.measured:
        spec = parse_spec(history.rules_at(one.at).encode(), path="the rules in the log")
        place = f"event {one.event} ('measured')"
        if spec.trust is None or not one.figures.told <= set(spec.trust.show):
            yield f"{place} tells what board.toml did not allow to be told"
            continue
        early = sorted(
            name
            for name in one.covered
            if not _is_due(history.submissions[name], one, spec, history)
        )
        if early:
            yield f"{place} tells of {', '.join(early[:3])} before the day of board.toml"


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
    place = f"event {event.event} ('named-finalists')"
    if len(event.finalists) > most:
        yield f"{place} names more than {most} finalists"
    late = [n for n in event.finalists if history.submissions[n].received.date() > last]
    if late:
        yield f"{place} names {', '.join(late[:3])}, received after the last day, {last}"


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
