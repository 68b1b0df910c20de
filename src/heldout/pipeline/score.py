"""Opens a sealed submission and scores it: one pass over each run file, nothing on disk."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from heldout.board.history import Submission
from heldout.board.identity import key_digest
from heldout.board.manifest import Manifest, parse_manifest
from heldout.board.spec import BoardSpec, View
from heldout.envelope.bundle import Binding, file_names, open_key, open_metadata, open_runs
from heldout.errors import InputError, Problem, TrustError
from heldout.ids import Digest, SubmissionId
from heldout.measures.evaluate import MeasureScores, evaluate
from heldout.measures.spec import parse_measure
from heldout.pipeline.sets import SetData, expected_run
from heldout.store.vault import Vault
from heldout.trec.accelerators import find_accelerators
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import Scan, scan_run

__all__ = [
    "Opened",
    "ViewScore",
    "check_id",
    "open_manifest",
    "open_own_key",
    "open_submission",
    "score_run",
    "score_views",
]


class ViewScore(msgspec.Struct, frozen=True, kw_only=True):
    """A true score, as it lies in the vault.

    Attributes:
        measure: what was measured.
        mean: over `n` queries.
        n: judged and not excluded queries; all judged ones where the board's denominator is `all`.
        unanswered: how many of them the run does not answer; they count 0.
        without_relevant: how many of them have no relevant document; they count 0.
        per_query: query -> score, `None` where the measure is undefined.
    """

    measure: str
    mean: float
    n: int
    unanswered: int
    without_relevant: int
    per_query: dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A submission in the clear.

    Attributes:
        manifest: its metadata.
        scans: query set -> what one pass over the run found.
        scores: view -> true score; empty where a run has errors.
        key: digest of the submission's own key.
    """

    manifest: Manifest
    scans: Mapping[str, Scan]
    scores: Mapping[str, ViewScore]
    key: Digest

    @property
    def problems(self) -> Mapping[str, tuple[Problem, ...]]:
        """Query set -> problems of its run."""
        return {name: scan.problems for name, scan in self.scans.items()}


def open_manifest(vault: Vault, spec: BoardSpec, submission: Submission) -> tuple[bytes, Manifest]:
    """Open a submission's key and metadata.

    Returns:
        The submission's own key, and the metadata.

    Raises:
        TrustError: they do not open, or belong to another submission.
        InputError: the metadata is wrong.
    """
    names = file_names(spec.envelope, SubmissionId(submission.id))
    key = open_own_key(vault, spec, submission)
    sealed = vault.sealed(submission.files[names.metadata]).read_bytes()
    data = open_metadata(spec.envelope, sealed, key=key)
    manifest = parse_manifest(data)
    check_id(spec, manifest, submission.id)
    return key, manifest


def open_own_key(vault: Vault, spec: BoardSpec, submission: Submission) -> bytes:
    """Open a submission's own key, as it was sealed last: for the organisers of now.

    Raises:
        TrustError: it does not open.
    """
    names = file_names(spec.envelope, SubmissionId(submission.id))
    sealed = vault.sealed(submission.sealed_again or submission.files[names.key]).read_bytes()
    return open_key(spec.envelope, sealed, vault.identities())


def open_submission(
    vault: Vault, spec: BoardSpec, sets: Mapping[str, SetData], submission: Submission
) -> Opened:
    """Open a submission, scan its runs as they stream out of the envelope, and score them.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the metadata is wrong. (A wrong run is told in `Opened.scans`.)
    """
    key, manifest = open_manifest(vault, spec, submission)
    names = file_names(spec.envelope, SubmissionId(submission.id))

    def scan(name: str, stream: BinaryIO) -> Scan:
        return score_run(spec, sets[name], stream, path=name, submission_type=manifest.type)

    with vault.sealed(submission.files[names.tar]).open("rb") as sealed:
        opened = open_runs(
            spec.envelope,
            sealed,
            key=key,
            submission_id=SubmissionId(submission.id),
            sets=sets.keys(),
            binding=_binding(manifest),
            consume=scan,
        )
    scans = {name: run.value for name, run in opened.items()}
    return Opened(
        manifest=manifest, scans=scans, scores=score_views(spec, sets, scans), key=key_digest(key)
    )


def check_id(spec: BoardSpec, manifest: Manifest, submission: str) -> None:
    """Refuse metadata that was sealed for another submission, where the form binds an id.

    Raises:
        TrustError: it was.
    """
    if manifest.id != submission and (spec.envelope == "age" or manifest.id):
        raise TrustError


def _binding(manifest: Manifest) -> Binding | None:
    """What the metadata says of its runs, `None` where it says nothing."""
    if not manifest.id:
        return None
    return Binding(
        submission_id=SubmissionId(manifest.id),
        revision=manifest.revision,
        digests={name: Digest(digest) for name, digest in manifest.digests.items()},
    )


def score_run(
    spec: BoardSpec, data: SetData, stream: BinaryIO, *, path: str, submission_type: str
) -> Scan:
    """Scan one run file by the board's rules."""
    return scan_run(
        stream,
        path=path,
        order=spec.runs.order,
        qrels=data.grades,
        expected=expected_run(spec, data, submission_type=submission_type),
        limits=Limits(),
        accelerators=find_accelerators(os.environ),
    )


def score_views(
    spec: BoardSpec, sets: Mapping[str, SetData], scans: Mapping[str, Scan]
) -> Mapping[str, ViewScore]:
    """The true score of every view whose labels are at hand; none where a run has errors.

    Raises:
        InputError: a view has no judged query, so its score is undefined.
    """
    if not all(scan.ok for scan in scans.values()):
        return {}
    return {
        view.name: _score(spec, view, sets[view.set], scans[view.set])
        for view in spec.views
        if view.set in scans and sets[view.set].judgments(view.labels) is not None
    }


def _score(spec: BoardSpec, view: View, data: SetData, scan: Scan) -> ViewScore:
    given = data.judgments(view.labels)
    if given is None:
        raise ValueError(view.name)
    measure = parse_measure(view.measure)
    # Judgments of queries that the set does not have would count 0 for every run.
    judgments = {q: j for q, j in given.items() if q in data.queries.texts}
    rankings = data.rankings(scan.rankings, view.labels)
    evaluation = evaluate(rankings, judgments, [measure], excluded=data.excluded)
    scores = evaluation.scores[measure]
    if scores.mean is None:
        raise InputError(
            Problem(
                code="undefined-score",
                path=f"view {view.name}",
                found=scores.why,
                expected=f"a query over which {view.measure} can be averaged",
                hint="look at the labels of the set: heldout board describe",
            )
        )
    per_query = evaluation.per_query()
    # As the MS MARCO scripts have it: queries that don't count score 0 and stay in the mean.
    zeros = evaluation.excluded if spec.denominator == "all" else 0
    return ViewScore(
        measure=view.measure,
        mean=_mean(scores, zeros) if zeros else scores.mean,
        n=scores.n + zeros,
        unanswered=evaluation.unanswered,
        without_relevant=scores.without_relevant,
        per_query={query: values[measure] for query, values in per_query.items()},
    )


def _mean(scores: MeasureScores, zeros: int) -> float:
    """The mean with so many zeros more."""
    return math.fsum(scores.values[scores.defined].tolist()) / (scores.n + zeros)
