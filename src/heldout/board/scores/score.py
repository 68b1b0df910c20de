"""Opens a sealed submission and scores it: one pass over each run file, nothing on disk."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, TypeVar

import msgspec

from heldout.board.log.manifest import (
    Manifest,
    SubmissionSignature,
    parse_manifest,
    split_signature,
)
from heldout.board.log.submission import Submission
from heldout.board.policy.identity import key_digest
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.sets import SetData, check_seeds, group_seeds, list_runs, scan_for_board
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import OpenedRun, file_names, open_key, open_metadata, open_runs
from heldout.envelope.keys import Binding
from heldout.errors import InputError, Problem, TrustError
from heldout.ids import Digest, SubmissionId
from heldout.scoring import fairness, measures
from heldout.scoring.evaluate import MeasureScores, evaluate
from heldout.trec.scans import Scan

T = TypeVar("T")


class ViewScore(msgspec.Struct, frozen=True, kw_only=True):
    """A true score, as it lies in the vault.

    Attributes:
        measure: what was measured.
        mean: over `n` queries; of several seeds, each query counts with their mean.
        n: judged and not excluded queries; all judged ones where the board's denominator is `all`.
        unanswered: how many of them the run does not answer; they count 0. Of several seeds, of
            the one that leaves out most.
        without_relevant: how many of them have no relevant document; they count 0.
        per_query: query -> score, `None` where the measure is undefined. Of several seeds the mean
            over them, `None` where it is undefined for one of them. Under a summary of groups
            only the queries that it is over, each weighted so that their mean is the summary.
        seeds: each seed's own mean, over the same `n` queries; empty for a single run.
        groups: of a summary of groups the worst one, or the best and the worst.
    """

    measure: str
    mean: float
    n: int
    unanswered: int
    without_relevant: int
    per_query: dict[str, float | None]
    seeds: tuple[float, ...] = ()
    groups: tuple[str, ...] = ()


def open_signed(
    vault: Vault, spec: BoardSpec, submission: Submission
) -> tuple[bytes, Manifest, SubmissionSignature | None]:
    """As `open_manifest`, with the team's signature; whether it holds is not looked at."""
    names = file_names(spec.envelope, SubmissionId(submission.id))
    key = open_own_key(vault, spec, submission)
    sealed = vault.sealed(submission.files[names.metadata]).read_bytes()
    data, signature = split_signature(open_metadata(spec.envelope, sealed, key=key))
    manifest = parse_manifest(data)
    check_id(spec, manifest, submission.id)
    return key, manifest, signature


def signature_field(spec: BoardSpec, signature: SubmissionSignature | None) -> dict[str, Any]:
    """A submission's signature as events seal it: on boards that register teams, and no others."""
    return {} if spec.registration is None else {"signature": msgspec.to_builtins(signature)}


def open_manifest(vault: Vault, spec: BoardSpec, submission: Submission) -> tuple[bytes, Manifest]:
    """Open a submission's key and metadata.

    Returns:
        The submission's own key, and the metadata.

    Raises:
        TrustError: they do not open, or belong to another submission.
        InputError: the metadata is wrong.
    """
    key, manifest, _ = open_signed(vault, spec, submission)
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
) -> tuple[Mapping[str, Scan], Mapping[str, ViewScore], Digest]:
    """Open a submission, scan its runs as they stream out of the envelope, and score them.

    Returns:
        Run -> what one pass over it found; view -> true score, none where a run has errors; and the
        digest of the submission's own key.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the metadata is wrong, or names seeds that the board does not take. (A wrong
            run is told in its scan.)
    """
    key, manifest = open_manifest(vault, spec, submission)
    given = manifest.digests.keys()
    where = "metadata.json:digests"
    problems = [*check_seeds(given, sets=sets.keys(), most=spec.runs.seeds, path=where)]
    if problems:
        raise InputError(problems)

    scan = partial(scan_for_board, spec, sets, manifest.type)
    opened = open_own_runs(vault, spec, submission, manifest, key=key, consume=scan)
    scans = {name: run.value for name, run in opened.items()}
    return scans, score_views(spec, sets, scans), key_digest(key)


def open_own_runs(
    vault: Vault,
    spec: BoardSpec,
    submission: Submission,
    manifest: Manifest,
    *,
    key: bytes,
    consume: Callable[[str, BinaryIO], T],
) -> Mapping[str, OpenedRun[T]]:
    """Stream a submission's runs: out of its envelope, or those that its program wrote.

    Args:
        vault: that has them.
        spec: the rules of its day.
        submission: as the log knows it.
        manifest: its metadata.
        key: its own key.
        consume: as of `open_runs`.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the problems that `consume` raised; code `not-run` where nobody ran its program.
        StoreError: a run that its program wrote is missing or damaged.
    """
    name = SubmissionId(submission.id)
    if manifest.program is not None:
        return _open_written(vault, spec, submission, consume)
    with vault.sealed(submission.files[file_names(spec.envelope, name).tar]).open("rb") as sealed:
        return open_runs(
            spec.envelope,
            sealed,
            key=key,
            submission_id=name,
            runs=list_runs(manifest.digests, sets=spec.sets),
            binding=binding_of(manifest),
            consume=consume,
        )


def _open_written(
    vault: Vault, spec: BoardSpec, submission: Submission, consume: Callable[[str, BinaryIO], T]
) -> Mapping[str, OpenedRun[T]]:
    """The runs that a program wrote, of which the log has the digests."""
    if submission.runs.keys() != spec.sets.keys():
        raise InputError.of("not-run", submission.id, id=submission.id)
    opened = {}
    for run, digest in submission.runs.items():
        file = vault.sealed(digest)
        with file.open("rb") as stream:
            value = consume(run, stream)
        member = f"{submission.id}/{run}"
        opened[run] = OpenedRun(member=member, size=file.size(), digest=Digest(digest), value=value)
    return opened


def check_id(spec: BoardSpec, manifest: Manifest, submission: str) -> None:
    """Refuse metadata that was sealed for another submission, where the form binds an id.

    Raises:
        TrustError: it was.
    """
    if manifest.id != submission and (spec.envelope == "age" or manifest.id):
        raise TrustError


def binding_of(manifest: Manifest) -> Binding | None:
    """Return what the metadata says of its runs, `None` where it says nothing."""
    if not manifest.id:
        return None
    return Binding(
        submission_id=SubmissionId(manifest.id),
        revision=manifest.revision,
        digests={name: Digest(digest) for name, digest in manifest.digests.items()},
    )


def score_views(
    spec: BoardSpec, sets: Mapping[str, SetData], scans: Mapping[str, Scan]
) -> Mapping[str, ViewScore]:
    """The true score of every view whose labels are at hand; none where a run has errors.

    Args:
        spec: the rules.
        sets: the query sets.
        scans: run -> what the scan found; several seeds of a set are one score, their mean.

    Raises:
        InputError: a view has no judged query, so its score is undefined.
    """
    if not all(scan.ok for scan in scans.values()):
        return {}
    seeds = group_seeds(scans)
    return {
        view.name: _score_view(spec, view, sets[view.set], seeds[view.set])
        for view in spec.views
        if view.set in seeds and sets[view.set].can_score(view)
    }


def _score_view(spec: BoardSpec, view: View, data: SetData, scans: Sequence[Scan]) -> ViewScore:
    """The score of all seeds; groups are chosen by the mean over them."""
    scores = [_score(spec, view, data, scan) for scan in scans]
    whole = average_seeds(scores)
    if view.facets is None:
        return whole
    weighting = fairness.weigh_facets(
        {query: value for query, value in whole.per_query.items() if value is not None},
        data.files.facets[view.facets],
        summary=view.summary,
        least=view.min_group,
    )
    if weighting is None:
        number = "two groups" if view.summary == "gap" else "a group"
        found = f"not {number} of {view.min_group} queries that count"
        raise InputError(_undefined(view.measure, found, path=f"view {view.name}"))
    return average_seeds([_weigh(score, weighting) for score in scores])


def _weigh(score: ViewScore, weighting: fairness.Weighting) -> ViewScore:
    weights = weighting.weights
    per_query = {
        q: weights[q] * v for q, v in score.per_query.items() if q in weights and v is not None
    }
    return msgspec.structs.replace(
        score,
        mean=math.fsum(per_query.values()) / len(per_query),
        n=len(per_query),
        per_query=per_query,
        groups=weighting.groups,
    )


def average_seeds(scores: Sequence[ViewScore]) -> ViewScore:
    """The score of runs that differ by seed: per query their mean, and each one's own mean.

    Args:
        scores: of one view by one board's rules, so of the same queries; at least one.

    Raises:
        InputError: no query has a score under every seed.
    """
    first = scores[0]
    if len(scores) == 1:
        return first
    rows = {query: [score.per_query[query] for score in scores] for query in first.per_query}
    whole = {q: [v for v in row if v is not None] for q, row in rows.items() if None not in row}
    # With `denominator = "all"` queries that don't count are in n, and in no row.
    n = len(whole) + first.n - sum(value is not None for value in first.per_query.values())
    if not whole:
        raise InputError(_undefined(first.measure, "no query has a score under every seed"))
    means = {query: math.fsum(row) / len(row) for query, row in whole.items()}
    return ViewScore(
        measure=first.measure,
        mean=math.fsum(means.values()) / n,
        n=n,
        unanswered=max(score.unanswered for score in scores),
        without_relevant=first.without_relevant,
        per_query={query: means.get(query) for query in rows},
        seeds=tuple(math.fsum(column) / n for column in zip(*whole.values(), strict=True)),
        groups=first.groups,
    )


def _score(spec: BoardSpec, view: View, data: SetData, scan: Scan) -> ViewScore:
    measure = measures.parse_measure(view.measure)
    evaluation = evaluate(
        data.rankings(scan.rankings, view.labels),
        data.judgments_of(view),
        [measure],
        excluded=data.excluded,
        exposures=data.files.expose(view, scan.signature),
    )
    scores = evaluation.scores[measure]
    if scores.mean is None:
        raise InputError(_undefined(view.measure, scores.why, path=f"view {view.name}"))
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


def _undefined(measure: str, found: str, *, path: str = "seeds") -> Problem:
    return Problem.of("undefined-score", path, found, measure=measure)


def _mean(scores: MeasureScores, zeros: int) -> float:
    """The mean with so many zeros more."""
    return math.fsum(scores.values[scores.defined].tolist()) / (scores.n + zeros)
