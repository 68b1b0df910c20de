"""Identifiers and digests. Ids are text and never numbers: `007` is not `7`."""

import hashlib
import re
from datetime import date
from typing import NewType

from heldout.errors import InputError, Problem

__all__ = [
    "Digest",
    "DocId",
    "QueryId",
    "SubmissionId",
    "commitment",
    "digest_bytes",
    "parse_submission_id",
    "query_set_of",
    "run_name",
    "seed_of",
    "submission_date",
]

QueryId = NewType("QueryId", str)
DocId = NewType("DocId", str)
SubmissionId = NewType("SubmissionId", str)
Digest = NewType("Digest", str)
"""A SHA-256 as 64 lower-case hexadecimal digits."""

_SUBMISSION_ID = re.compile(r"\d{8}-[A-Za-z0-9._-]{1,64}", re.ASCII)


def digest_bytes(data: bytes) -> Digest:
    """SHA-256 of the bytes as received, never of a re-serialisation."""
    return Digest(hashlib.sha256(data).hexdigest())


def commitment(salt: str, value: bytes) -> Digest:
    """Salted digest that commits to a value without showing it.

    Args:
        salt: at least 16 random bytes as hexadecimal; its owner keeps it.
        value: the canonical bytes of the value.
    """
    return Digest(hashlib.sha256(bytes.fromhex(salt) + value).hexdigest())


def parse_submission_id(text: str, *, path: str = "submission id") -> SubmissionId:
    r"""Check a submission id: `\d{8}-[A-Za-z0-9._-]{1,64}`, a real date first, no `..`.

    Args:
        text: the id as somebody wrote it.
        path: where it stands, for the error.

    Raises:
        InputError: code `submission-id`.

    Source: fostering-coopetition, section 3.1 (1); the alphabet is that of the real boards.
    """
    if _SUBMISSION_ID.fullmatch(text) and ".." not in text and _day(text) is not None:
        return SubmissionId(text)
    raise InputError(
        Problem(
            code="submission-id",
            path=path,
            found=repr(text[:100]),
            expected="yyyymmdd-name: a date, a hyphen, then 1 to 64 of A-Z a-z 0-9 . _ -, no '..'",
            hint="for example 20261120-lighthouse-monot5",
        )
    )


def run_name(query_set: str, seed: int) -> str:
    """What the run of a query set is called in a submission: `eval`, then `eval~2`, `eval~3`.

    No query set has a `~` in its name, so a run's name says which set it answers.

    Args:
        query_set: name of the set.
        seed: 1 for the first run, or the only one; 2 and more for those that differ by seed.
    """
    return query_set if seed == 1 else f"{query_set}~{seed}"


def query_set_of(run: str) -> str:
    """The query set that a run answers, by the run's name."""
    return run.partition("~")[0]


def seed_of(run: str) -> int:
    """Which seed a run is of, by its name: 1 for the first or only one.

    Raises:
        ValueError: what stands behind the `~` is no number.
    """
    return int(run.partition("~")[2] or 1)


def submission_date(submission: SubmissionId) -> date:
    """The date that a submission's id claims (its official time is the `received` event's)."""
    day = _day(submission)
    if day is None:
        raise ValueError(submission)
    return day


def _day(text: str) -> date | None:
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:8]))
    except ValueError:
        return None
