"""`scores/ID.json` in the vault: all that opening a submission gave."""

from typing import TypeVar

import msgspec

from heldout.board.log.history import Submission
from heldout.errors import Problem, StoreError
from heldout.ids import digest_bytes
from heldout.pipeline.scoring.score import ViewScore
from heldout.store.vault import Vault

__all__ = [
    "RunReport",
    "ScoreFile",
    "digest_scores",
    "keep_scores",
    "read_kept",
    "read_key",
    "read_scores",
]

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
            -> SHA-256; empty before such files were noted.
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
    """What the vault knows of a submission's scores, `None` before its first review.

    Raises:
        StoreError: the file is damaged.
    """
    return _read(vault, submission, ScoreFile, None)


def read_kept(vault: Vault, submission: Submission) -> ScoreFile | None:
    """The same as far as it holds: `None` too where it is damaged or not what an event vouches for.

    Whoever gets `None` opens and scores the submission anew.
    """
    logged = submission.kept.get("scores")
    if logged is not None and vault.kept(submission.id).get("scores") != logged:
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


def keep_scores(vault: Vault, submission: str, scores: ScoreFile) -> None:
    """Store what opening and scoring gave."""
    vault.scores(submission).write_whole(_encode(scores), mode=0o600)


def digest_scores(scores: ScoreFile) -> str:
    """SHA-256 of the file that `keep_scores` writes."""
    return digest_bytes(_encode(scores))


def _encode(scores: ScoreFile) -> bytes:
    return msgspec.json.encode(scores, order="deterministic")
