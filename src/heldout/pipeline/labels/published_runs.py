"""The runs of a published submission, out of the envelope once more."""

from collections.abc import Callable, Collection, Mapping
from typing import BinaryIO, TypeVar

from heldout.board.log.history import Submission
from heldout.envelope.bundle import Binding, OpenedRun, file_names, open_runs
from heldout.ids import Digest, SubmissionId, query_set_of
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.query_sets.seeds import list_runs
from heldout.pipeline.scoring.score import open_manifest

__all__ = ["open_published_runs"]

T = TypeVar("T")


def open_published_runs(
    desk: Desk,
    entry: Submission,
    query_sets: Collection[str],
    consume: Callable[[str, BinaryIO], T],
) -> Mapping[str, OpenedRun[T]]:
    """Open the runs over some query sets; all are verified, the others are not looked at.

    Args:
        desk: of the organiser.
        entry: a submission, and no baseline.
        query_sets: their names; those that the entry did not have to answer give nothing.
        consume: gets a run's name and its bytes as packed; what it returns is never `None`.

    Returns:
        Run (`SET`, `SET~2` and so on) -> what `consume` made of it.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the problems that `consume` raised.
        StoreError: a sealed file is missing.
    """
    spec = desk.spec_at(entry.received)
    if not spec.sets.keys() & set(query_sets):
        return {}
    key, manifest = open_manifest(desk.vault, spec, entry)
    claimed = Binding(
        submission_id=SubmissionId(manifest.id),
        revision=manifest.revision,
        digests={name: Digest(digest) for name, digest in manifest.digests.items()},
    )
    name = SubmissionId(entry.id)
    with desk.vault.sealed(entry.files[file_names(spec.envelope, name).tar]).open("rb") as sealed:
        opened = open_runs(
            spec.envelope,
            sealed,
            key=key,
            submission_id=name,
            runs=list_runs(manifest.digests, sets=spec.sets),
            binding=claimed if manifest.id else None,
            consume=lambda run, stream: (
                consume(run, stream) if query_set_of(run) in query_sets else None
            ),
        )
    return {
        run: OpenedRun(member=one.member, size=one.size, digest=one.digest, value=one.value)
        for run, one in opened.items()
        if one.value is not None
    }
