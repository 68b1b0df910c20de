"""The first documents of the published runs, out of the sealed files: what pools are made of."""

from collections.abc import Callable, Collection, Mapping
from io import BytesIO
from typing import BinaryIO

from heldout.board.history import Submission
from heldout.board.spec import BoardSpec
from heldout.envelope.bundle import Binding, file_names, open_runs
from heldout.errors import InputError, Problem
from heldout.ids import Digest, SubmissionId, query_set_of
from heldout.pipeline.desk import Desk
from heldout.pipeline.score import open_manifest
from heldout.pipeline.seeds import list_runs
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
    spec = desk.spec_at(entry.received)
    if query_set not in spec.sets:
        return {}
    key, manifest = open_manifest(desk.vault, spec, entry)
    claimed = Binding(
        submission_id=SubmissionId(manifest.id),
        revision=manifest.revision,
        digests={name: Digest(digest) for name, digest in manifest.digests.items()},
    )

    def read(run: str, stream: BinaryIO) -> Tops:
        if query_set_of(run) != query_set:
            return {}
        source = BytesIO(stream.read())
        return read_tops(source, path=f"{entry.id}/{run}", depth=depth, order=spec.runs.order)

    name = SubmissionId(entry.id)
    with desk.vault.sealed(entry.files[file_names(spec.envelope, name).tar]).open("rb") as sealed:
        opened = open_runs(
            spec.envelope,
            sealed,
            key=key,
            submission_id=name,
            runs=list_runs(manifest.digests, sets=spec.sets),
            binding=claimed if manifest.id else None,
            consume=read,
        )
    return {run: one.value for run, one in opened.items() if query_set_of(run) == query_set}
