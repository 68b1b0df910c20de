"""The first documents of the published runs, out of the sealed files: what pools are made of."""

from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from typing import BinaryIO

from heldout.board.history import Submission
from heldout.board.spec import BoardSpec
from heldout.errors import InputError, Problem
from heldout.ids import query_set_of
from heldout.pipeline.desk import Desk
from heldout.pipeline.published_runs import open_published_runs
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
    tops: dict[str, Tops] = {}
    for entry in entries:
        read = _read_baseline if entry.baseline else _read_sealed
        for run, found in read(desk, entry, query_set, depth).items():
            tops[entry.id + run.removeprefix(query_set)] = found
        done()
    return tops


def _read_baseline(desk: Desk, entry: Submission, query_set: str, depth: int) -> Mapping[str, Tops]:
    order = desk.spec_at(entry.received).runs.order
    found = {}
    for run in sorted(name for name in entry.runs if query_set_of(name) == query_set):
        with desk.vault.sealed(entry.runs[run]).open("rb") as source:
            found[run] = read_tops(source, path=f"{entry.id}/{run}", depth=depth, order=order)
    return found


def _read_sealed(desk: Desk, entry: Submission, query_set: str, depth: int) -> Mapping[str, Tops]:
    order = desk.spec_at(entry.received).runs.order

    def read(run: str, stream: BinaryIO) -> Tops:
        source = BytesIO(stream.read())
        return read_tops(source, path=f"{entry.id}/{run}", depth=depth, order=order)

    opened = open_published_runs(desk, entry, {query_set}, read)
    return {run: one.value for run, one in opened.items()}
