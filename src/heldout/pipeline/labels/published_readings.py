"""What a reader makes of the published runs over a query set, each opened once more."""

from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from typing import BinaryIO, TypeVar

from heldout.board.log.history import Submission
from heldout.ids import query_set_of
from heldout.pipeline.labels.published_runs import open_published_runs
from heldout.pipeline.organiser.desk import Desk
from heldout.trec.ranking import Order

__all__ = ["Reader", "read_published"]

T = TypeVar("T")
Reader = Callable[[BinaryIO, str, Order], T]
"""Gets a run at its start, its name for messages, and the order of its documents; never gives
`None`."""


def read_published(
    desk: Desk,
    query_set: str,
    entries: Collection[Submission],
    read: Reader[T],
    *,
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, T]:
    """Open runs over a query set, one in memory at a time.

    Args:
        desk: of the organiser.
        query_set: its name.
        entries: published ones.
        read: what is made of each.
        done: called after each entry.

    Returns:
        Id of the entry, with `~2` and so on for its further seeds -> what was made of it. Entries
        that did not have to answer the set are left out.

    Raises:
        TrustError: a run does not open.
        InputError: a run has errors.
        StoreError: a sealed file is missing.
    """
    found: dict[str, T] = {}
    for entry in entries:
        of_entry = _read_baseline if entry.baseline else _read_sealed
        for run, made in of_entry(desk, entry, query_set, read).items():
            found[entry.id + run.removeprefix(query_set)] = made
        done()
    return found


def _read_baseline(
    desk: Desk, entry: Submission, query_set: str, read: Reader[T]
) -> Mapping[str, T]:
    order = desk.spec_at(entry.received).runs.order
    found = {}
    for run in sorted(name for name in entry.runs if query_set_of(name) == query_set):
        with desk.vault.sealed(entry.runs[run]).open("rb") as source:
            found[run] = read(source, f"{entry.id}/{run}", order)
    return found


def _read_sealed(desk: Desk, entry: Submission, query_set: str, read: Reader[T]) -> Mapping[str, T]:
    order = desk.spec_at(entry.received).runs.order

    def read_member(run: str, stream: BinaryIO) -> T:
        return read(BytesIO(stream.read()), f"{entry.id}/{run}", order)

    opened = open_published_runs(desk, entry, {query_set}, read_member)
    return {run: one.value for run, one in opened.items()}
