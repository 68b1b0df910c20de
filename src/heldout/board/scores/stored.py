"""What a score was told for: scores by query and the labels they were made with, kept for good.

Each lies in the vault as a file named by its digest, and the event that tells the score holds that
digest, sealed. So neither can be changed afterwards, and whoever gets to see the files can go over
every release: the organisers at any time, everybody in the archive.

What scores by query have to be, whoever says that they are a run's: checked before used.

`scores/ID.json` in the vault: all that opening a submission gave.

Signatures in the vault: later runs are compared with them, not with the run.

Labels are corrected entry by entry: until the last one is scored again, the corrected ones are
ranked by other labels than the rest. Whoever corrects one entry alone chooses who is ranked by
which. So it is said where scores that stand beside each other were made with different labels.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules.changes import is_key, names_of_view, rules_of_scores
from heldout.board.rules.release import NOISE, add_noise, draw_noise, score_vector
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.score import ViewScore
from heldout.board.store.vault import Vault
from heldout.errors import Problem, StoreError, printable, quote
from heldout.ids import digest_bytes
from heldout.scoring.measures import Measure, parse_measure
from heldout.trec.scans import Scan, Signature

_CLOSE = 1e-9
_HIGHEST_GRADE = 1000


def is_score_of(view: View, score: ViewScore | None) -> bool:
    """Check whether it can be a score of that view.

    It is of its measure, finite and within its range, and mean, n and seeds are those of its
    queries.
    """
    if score is None or score.measure != view.measure:
        return False
    values = [value for value in score.per_query.values() if value is not None]
    if not values or not all(map(math.isfinite, values)) or score.n < len(values):
        return False
    mean = math.fsum(values) / score.n
    sound = math.isclose(mean, score.mean, abs_tol=_CLOSE) and _are_seeds_of(score)
    return sound and _is_within(view, score, values)


def _are_seeds_of(score: ViewScore) -> bool:
    """Check whether the seeds' own means have this mean; one run has none."""
    seeds = score.seeds
    if not seeds:
        return True
    finite = len(seeds) > 1 and all(map(math.isfinite, seeds))
    return finite and math.isclose(math.fsum(seeds) / len(seeds), score.mean, abs_tol=_CLOSE)


def _is_within(view: View, score: ViewScore, values: Iterable[float]) -> bool:
    """Check whether every score is one that the measure can give.

    A gap between groups weighs its queries, so there only the gap itself has a range.
    """
    low, high = _range(parse_measure(view.measure))
    if view.summary == "gap":
        return -_CLOSE <= score.mean <= high - low + _CLOSE
    return all(low - _CLOSE <= value <= high + _CLOSE for value in (*values, *score.seeds))


def _range(measure: Measure) -> tuple[float, float]:
    """The lowest and the highest score of a query."""
    if measure.kind.better == "lower":  # a position, counted from 1
        return 1.0, math.inf
    graded = measure.name == "RBP" and measure.params.rel is None and measure.params.max_rel is None
    return 0.0, float(_HIGHEST_GRADE) if graded else 1.0


def are_equal_scores(one: ViewScore, other: ViewScore) -> bool:
    """Check whether two are the same but for rounding, query by query."""
    return (
        one.n == other.n
        and one.per_query.keys() == other.per_query.keys()
        and len(one.seeds) == len(other.seeds)
        and all(map(_is_equal, [one.mean, *one.seeds], [other.mean, *other.seeds]))
        and all(_is_equal(v, other.per_query[query]) for query, v in one.per_query.items())
    )


def _is_equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, abs_tol=_CLOSE)


T = TypeVar("T", bound=msgspec.Struct)
D = TypeVar("D")


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass over a run file found.

    Attributes:
        digest: SHA-256 of the file as packed.
        problems: the first of each kind.
        counts: code -> how many there are.
        queries: answered queries.
        documents: rows in them.
        queries_tied: queries with equal scores.
        queries_displaced: queries whose ranks and scores disagree in the top ten.
        repeated_ranks: rows whose rank another row of the query has.
        first_ranks: rank in a query's first line -> number of queries.
    """

    digest: str
    problems: tuple[Problem, ...]
    counts: dict[str, int]
    queries: int
    documents: int
    queries_tied: int
    queries_displaced: int
    repeated_ranks: int
    first_ranks: dict[str, int]


class ScoreFile(msgspec.Struct, frozen=True, kw_only=True):
    """`scores/ID.json` in the vault: all that opening a submission gave.

    Attributes:
        files: the sealed files it was made from, name -> SHA-256.
        code_version: what computed them.
        refusal: why nothing could be opened; empty where it could.
        metadata_problems: what is wrong with the metadata.
        runs: run (`SET`, `SET~2` and so on) -> what the scan found.
        views: view -> true score; empty where a run has errors.
        labels: query set, or set/labels where a view names others -> SHA-256 of the labels that
            it was scored with.
        held_out: every file of the vault that the scores depend on, as `board.held_out` names it
            -> SHA-256.
        key: digest of the submission's own key; "" where it was not opened, or before there was
            such a digest.
        schema: version of this format.
    """

    files: dict[str, str]
    code_version: str
    refusal: str = ""
    metadata_problems: tuple[Problem, ...] = ()
    runs: dict[str, RunReport] = msgspec.field(default_factory=dict)
    views: dict[str, ViewScore] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    held_out: dict[str, str] = msgspec.field(default_factory=dict)
    key: str = ""
    schema: int = 1


def read_scores(vault: Vault, submission: str) -> ScoreFile | None:
    """Return what the vault knows of a submission's scores, `None` before its first review.

    Raises:
        StoreError: the file is damaged.
    """
    return _read(vault, submission, ScoreFile, None)


def read_stored(vault: Vault, submission: Submission) -> ScoreFile | None:
    """The same as far as it holds: `None` too where it is damaged or not what an event vouches for.

    Whoever gets `None` opens and scores the submission again.
    """
    logged = submission.stored.get("scores")
    if logged is not None and vault.result_digests(submission.id).get("scores") != logged:
        return None
    try:
        return read_scores(vault, submission.id)
    except StoreError:
        return None


def _read(vault: Vault, submission: str, kind: type[T], otherwise: T | D) -> T | D:
    file = vault.scores(submission)
    try:
        data = file.find()
        return otherwise if data is None else msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(f"{file} is damaged; restore it from the backup, or remove it") from None


class _Key(msgspec.Struct):
    """The one field that is asked of every submission at each review."""

    key: str = ""


def read_key(vault: Vault, submission: str) -> str:
    """Digest of a submission's own key; "" where it is not known.

    Raises:
        StoreError: the file is damaged.
    """
    return _read(vault, submission, _Key, _Key()).key


def store_scores(vault: Vault, submission: str, scores: ScoreFile) -> None:
    """Store what opening and scoring gave."""
    vault.scores(submission).write_whole(_encode(scores), mode=0o600)


def digest_scores(scores: ScoreFile) -> str:
    """SHA-256 of the file that `store_scores` writes."""
    return digest_bytes(_encode(scores))


def _encode(struct: msgspec.Struct) -> bytes:
    return msgspec.json.encode(struct, order="deterministic")


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one score was told, or withheld, for.

    Attributes:
        id: the submission or baseline.
        view: name of the view.
        score: by query.
        labels: held-out file, as `board.held_out` names it -> SHA-256, as it was scored with.
    """

    id: str
    view: str
    score: ViewScore
    labels: dict[str, str]

    @property
    def scored_with(self) -> dict[str, str]:
        """The same files without the key: it never changes, and a run may be older than it."""
        return {name: digest for name, digest in self.labels.items() if not is_key(name)}


def make_evidence(submission: str, view: View, scores: ScoreFile) -> Evidence:
    """Out of what the vault knows of a submission; the view must be among its scores."""
    names = names_of_view(view)
    return Evidence(
        id=submission,
        view=view.name,
        score=scores.views[view.name],
        labels={n: digest for n, digest in scores.held_out.items() if n in names},
    )


def follows_on(before: Evidence, now: Evidence, committed: Mapping[str, str]) -> bool:
    """Check whether scores of today are those that were told, or made again by repaired labels.

    Args:
        before: what the last event about them published a score for.
        now: what is stored as their scores.
        committed: what the log commits to today.
    """
    if before.scored_with == now.scored_with:
        return (before.id, before.view, before.score) == (now.id, now.view, now.score)
    return committed.items() >= now.labels.items()


def store_evidence(vault: Vault, evidence: Evidence) -> str:
    """Store it by its digest, which is given back."""
    return vault.store_sealed(_encode(evidence))


def digest_evidence(evidence: Evidence) -> str:
    """The digest under which `store_evidence` stores it."""
    return digest_bytes(_encode(evidence))


def store_evidence_of(
    vault: Vault, submission: str, spec: BoardSpec, scores: ScoreFile
) -> Mapping[str, str]:
    """Store what every view was told for that is released now or later; view -> digest."""
    views: Iterable[View] = (*spec.public_views, *spec.final_views)
    return {
        view.name: store_evidence(vault, make_evidence(submission, view, scores))
        for view in views
        if view.name in scores.views
    }


def parse_evidence(data: bytes, *, path: str) -> Evidence:
    """Read such a file.

    Raises:
        StoreError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Evidence)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"{path} is no evidence of a score: {quote(str(error))}"
        raise StoreError(message) from None


def read_evidence(vault: Vault, digest: str) -> Evidence:
    """Return what a score was told for, by the digest in its event.

    Raises:
        StoreError: the vault does not have it, or it is none.
    """
    return parse_evidence(vault.sealed(digest).read_bytes(), path=f"sealed/{digest}")


def first_baseline(entries: Iterable[Entry], view: str) -> Entry | None:
    """The event that first tells a baseline's score in a view; `None` before there is one."""
    baselines = set()
    for entry in entries:
        if entry.event.kind == "baseline":
            baselines.add(entry.event.submission)
        if entry.event.submission in baselines and view in (entry.get("scores") or ()):
            return entry
    return None


def make_noisy(
    spec: BoardSpec,
    view: View,
    score: ViewScore,
    first: ViewScore,
    *,
    key: bytes,
) -> str:
    """A score with the noise of its view, as the text that leaves the vault.

    Args:
        spec: the rules of its day.
        view: one with `noise`, or one whose numbers are published by `clear`.
        score: the true score.
        first: that of the first baseline, as it was published first: if the unit of the noise
            changed later, two texts with the same noise would give the true score away.
        key: the secret key of the view's set.

    Raises:
        StoreError: the scores give no noise.
    """
    values, unit = (score_vector(one.per_query, n=one.n) for one in (score, first))
    drawn = draw_noise(key, view.name, values)
    errors = NOISE if view.noise is None else view.noise
    try:
        return add_noise(values, unit, errors=errors, drawn=drawn, decimals=spec.decimals)
    except ValueError as error:
        raise StoreError(f"view {view.name} publishes scores with noise: {error}") from None


DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, MemoryError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading nonsense as an archive of arrays may raise."""


def store_signatures(vault: Vault, submission: str, scans: Mapping[str, Scan]) -> None:
    """Store the first documents of each query of the runs that have no errors.

    Args:
        vault: where to.
        submission: its id.
        scans: run (`SET`, `SET~2` and so on) -> what the scan found.
    """
    arrays = {}
    for name, scan in scans.items():
        if scan.ok:
            arrays[f"{name}.documents"] = scan.signature.documents
            arrays[f"{name}.queries"] = np.array(scan.signature.queries)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    vault.signature(submission).write_whole(buffer.getvalue(), mode=0o600)


def read_signatures(vault: Vault, submission: str) -> dict[str, Signature]:
    """Run -> signature, of each seed; empty where none was stored.

    Raises:
        StoreError: the file is damaged.
    """
    file = vault.signature(submission)
    if not file.is_file():
        return {}
    try:
        with file.open() as source, np.load(source, allow_pickle=False) as arrays:
            names = [key.removesuffix(".queries") for key in arrays if key.endswith(".queries")]
            return {
                name: _signature(arrays[f"{name}.queries"], arrays[f"{name}.documents"])
                for name in names
            }
    except DAMAGED:
        raise StoreError(f"{file} is damaged; restore it from the backup, or remove it") from None


def _signature(queries: NDArray[np.str_], documents: NDArray[np.uint64]) -> Signature:
    """Raises ValueError where the two do not belong together."""
    if documents.ndim != 2 or len(queries) != len(documents):  # noqa: PLR2004 - a row for each query
        raise ValueError(documents.shape)
    return Signature(queries=tuple(map(str, queries)), documents=documents)


_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLabels:
    """A view whose scores were made with different versions of its labels.

    Attributes:
        view: its name.
        earlier: the entries and baselines whose scores were not made with the last version.
    """

    view: str
    earlier: tuple[str, ...]


def has_labels_in_force(evidence: Evidence, view: View, history: History) -> bool:
    """Check whether scores were made with the labels that the log commits to now.

    The key does not count: it never changes, and a run may be older than it.
    """
    names = {name for name in names_of_view(view) if not is_key(name)}
    now = {name: digest for name, digest in history.labels.items() if name in names}
    return now == evidence.scored_with


def scored_with(
    history: History, submission: Submission, spec: BoardSpec, scores: ScoreFile
) -> Iterator[tuple[Evidence, bool]]:
    """The evidence of each published score, and whether its labels are those in force.

    Args:
        history: with the commitments that are to be held against.
        submission: published.
        spec: the rules that it was published by.
        scores: of today.
    """
    for view in spec.views:
        if view.name in submission.evidence and view.name in scores.views:
            made = make_evidence(submission.id, view, scores)
            yield made, has_labels_in_force(made, view, history)


def list_mixed(every: Iterable[tuple[Evidence, bool]]) -> tuple[MixedLabels, ...]:
    """The views whose scores were not all made with the same labels; see `scored_with`."""
    views: dict[str, list[tuple[Evidence, bool]]] = {}
    for one in every:
        views.setdefault(one[0].view, []).append(one)
    return tuple(
        MixedLabels(view=view, earlier=tuple(one.id for one, last in scored if not last))
        for view, scored in views.items()
        if any(one.scored_with != scored[0][0].scored_with for one, _ in scored)
    )


def find_mixed(vault: Vault, history: History) -> tuple[MixedLabels, ...]:
    """The same of a vault; without reading a score where labels were never changed.

    Args:
        vault: with the scores.
        history: its log.
    """
    if not history.commitments[1:]:
        return ()
    published = (s for s in history.submissions.values() if s.status == "published")
    return list_mixed(
        one
        for submission in published
        if (scores := read_stored(vault, submission)) is not None
        for one in scored_with(
            history, submission, rules_of_scores(history, submission, submission.evidence), scores
        )
    )


def say_mixed(mixed: MixedLabels) -> str:
    """A sentence that names the entries."""
    more = len(mixed.earlier) - _SHOWN
    names = ", ".join(map(printable, mixed.earlier[:_SHOWN])) + (
        f" and {more} more" if more > 0 else ""
    )
    return (
        f"view {printable(mixed.view)}: {names} scored with earlier labels than others beside "
        "them, so that their scores cannot be compared"
    )
