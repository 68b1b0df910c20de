"""All contenders on one input: first whether their scores are right, then how long they take."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agreement import compare
from contenders import Contender, Scores
from process import Ran, run_process
from results import Row, Table
from workplace import child_environment

__all__ = ["measure"]

_BUSY = 1.5  # what the last contender leaves behind is less


@dataclass(slots=True)
class _Entry:
    """A contender and what is known of it so far."""

    contender: Contender
    row: Row
    found: Scores


def measure(
    title: str,
    contenders: Sequence[Contender],
    *,
    expected: Mapping[str, float] | None,
    repeats: int,
    tell: Callable[[str], None],
) -> Table:
    """Check and time the contenders on one input.

    In each repeat they take turns, and the one to begin changes, so a machine that is busy for a
    while hurts all alike. One that fails is not timed; one that finds other scores is, and says so.

    Args:
        title: of the table.
        contenders: those that are missing get a row that says so.
        expected: the right scores by measure; `None`: those of the first contender that has any.
        repeats: how often each is timed, >= 1.
        tell: takes what is going on.
    """
    before = os.getloadavg()[0]
    if before > _BUSY:
        tell(f"  the machine is busy: load {before:.1f}")
    entries = [_check(contender, tell) for contender in contenders]
    if expected is None:
        expected = next((entry.found for entry in entries if entry.found), {})
    for entry in entries:
        if entry.found:
            entry.row = replace(entry.row, verdict=compare(entry.found, expected))
    timed = [e for e in entries if not e.row.missing and not e.row.verdict.startswith("failed")]
    for repeat in range(repeats):
        tell(f"  repeat {repeat + 1} of {repeats}")
        first = repeat % max(len(timed), 1)
        for entry in timed[first:] + timed[:first]:
            entry.row = _timed(entry.row, _run(entry.contender, watch=False))
    rows = tuple(entry.row for entry in entries)
    return Table(title=title, load=(before, os.getloadavg()[0]), rows=rows)


def _check(contender: Contender, tell: Callable[[str], None]) -> _Entry:
    """One run that is not timed: what it finds, and how much memory it takes."""
    row = Row(name=contender.name, role=contender.role, missing=contender.missing)
    if contender.missing:
        tell(f"  {contender.name}: {contender.missing}")
        return _Entry(contender, row, {})
    ran = _run(contender, watch=True)
    row = replace(row, peak=ran.peak, tree=max(ran.tree, ran.peak))
    if ran.status:
        tell(f"  {contender.name}: status {ran.status}\n{ran.errors}")
        return _Entry(contender, replace(row, verdict=f"failed, status {ran.status}"), {})
    try:
        found = contender.scores(ran.output) if contender.scores else {}
    except (ValueError, KeyError, IndexError):
        tell(f"  {contender.name} printed no scores:\n{ran.output}")
        return _Entry(contender, replace(row, verdict="failed, no scores"), {})
    tell(f"  {contender.name}: {ran.seconds:.2f} s")
    return _Entry(contender, row, found)


def _run(contender: Contender, *, watch: bool) -> Ran:
    return run_process(
        contender.command,
        environ=child_environment(),
        keep=contender.scores is not None,
        watch=watch,
    )


def _timed(row: Row, ran: Ran) -> Row:
    if ran.status:
        return replace(row, verdict=f"failed, status {ran.status}")
    return replace(
        row,
        seconds=(*row.seconds, ran.seconds),
        cpu=(*row.cpu, ran.cpu),
        peak=max(row.peak, ran.peak),
    )
