"""The first documents of the published runs, out of the sealed files: what pools are made of."""

from collections.abc import Callable, Collection, Mapping
from typing import BinaryIO

from heldout.board.log.history import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, Problem
from heldout.pipeline.labels.published_readings import read_published
from heldout.pipeline.organiser.desk import Desk
from heldout.trec.ranking import Order
from heldout.trec.tops import Tops, read_tops

__all__ = ["check_set", "list_published", "read_published_tops"]


def check_set(spec: BoardSpec, name: str) -> None:
    """Refuse the name of a query set that a board does not have.

    Raises:
        InputError: code `unknown-set`.
    """
    if name not in spec.sets:
        raise InputError(
            Problem(
                code="unknown-set",
                path="--set",
                found=name,
                expected="one of " + ", ".join(spec.sets),
            )
        )


def list_published(desk: Desk) -> tuple[Submission, ...]:
    """Published entries and baselines whose runs the vault has, in the order they came."""
    every = desk.history().submissions.values()
    return tuple(s for s in every if s.status == "published" and (s.runs or not s.baseline))


def read_published_tops(
    desk: Desk,
    query_set: str,
    *,
    depth: int,
    entries: Collection[Submission],
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, Tops]:
    """Open runs over a query set and keep their first documents; one run is in memory at a time.

    Args:
        desk: of the organiser.
        query_set: its name.
        depth: 1 to 100 documents of a query.
        entries: published ones.
        done: called after each entry.

    Returns:
        Id of the entry, with `~2` and so on for its further seeds -> query -> documents. Entries
        that did not have to answer the set are left out.

    Raises:
        TrustError: a run does not open.
        InputError: a run has errors.
        StoreError: a sealed file is missing.
    """

    def read(source: BinaryIO, path: str, order: Order) -> Tops:
        return read_tops(source, path=path, depth=depth, order=order)

    return read_published(desk, query_set, entries, read, done=done)
