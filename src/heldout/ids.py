"""Identifiers and digests. Ids are text and never numbers: `007` is not `7`.

Ids of two files that differ in their spelling do not match, and a query without its judgments
counts 0. Nothing here joins them: `find_near` finds such pairs, so that a message can name them.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, NewType

from heldout.errors import InputError, quote

QueryId = NewType("QueryId", str)
DocId = NewType("DocId", str)
SubmissionId = NewType("SubmissionId", str)
Digest = NewType("Digest", str)
"""A SHA-256 as 64 lower-case hexadecimal digits."""

_SEAL_PURPOSE = b"heldout sealed field\n"
_SUBMISSION_ID = re.compile(r"\d{8}-[A-Za-z0-9._-]{1,64}", re.ASCII)
_SHOWN = 40
_ZEROS = re.compile(r"(?<![0-9.])0+(?=[0-9])")
_NUMBERED = re.compile(r"(?:[^\W\d_]+[-_:.#/]?)?0*([0-9]+?)(?:\.0)?")


def digest_bytes(data: bytes) -> Digest:
    """SHA-256 of the bytes as received, never of a re-serialisation."""
    return Digest(hashlib.sha256(data).hexdigest())


SALT = re.compile("[0-9a-f]{32}", re.ASCII)
"""A salt: 16 random bytes. A fixed length leaves one way to cut a preimage into salt and value."""


def commitment(salt: str, value: bytes) -> Digest:
    """Salted digest that commits to a value without showing it.

    Args:
        salt: 16 random bytes as hexadecimal; its owner keeps it.
        value: the canonical bytes of the value.

    Raises:
        ValueError: the salt has another length: a longer or shorter one could be joined with
            another value to the same bytes.
    """
    return Digest(hashlib.sha256(_salt_bytes(salt) + value).hexdigest())


def seal_digest(salt: str, value: bytes) -> Digest:
    """The digest of a sealed field since schema 2 of the log: each part after its length.

    Args:
        salt: 16 random bytes as hexadecimal; its owner keeps it.
        value: the canonical bytes of the value.

    Raises:
        ValueError: the salt has another length.
    """
    _salt_bytes(salt)
    return digest_bytes(seal_preimage(salt, value))


def seal_preimage(salt: str, value: bytes) -> bytes:
    """Return what `seal_digest` hashes: its purpose, then salt and value as netstrings.

    No two different pairs have the same bytes, whatever a salt looks like.

    Source: D. J. Bernstein, Netstrings (1997).
    """
    parts = (salt.encode(), value)
    return _SEAL_PURPOSE + b"".join(b"%d:%b," % (len(part), part) for part in parts)


def _salt_bytes(salt: str) -> bytes:
    if not SALT.fullmatch(salt):
        raise ValueError("a salt is 32 lower-case hexadecimal digits")
    return bytes.fromhex(salt)


def is_submission_id(text: str) -> bool:
    """Check whether a text is a submission id, as `parse_submission_id` takes it."""
    return bool(_SUBMISSION_ID.fullmatch(text)) and ".." not in text and _day(text) is not None


def parse_submission_id(text: str, *, path: str = "submission id") -> SubmissionId:
    r"""Check a submission id: `\d{8}-[A-Za-z0-9._-]{1,64}`, a real date first, no `..`.

    Args:
        text: the id as somebody wrote it.
        path: where it stands, for the error.

    Raises:
        InputError: code `submission-id`.

    Source: Lin et al. 2022, §3.1 (1); the alphabet is that of the real boards.
    """
    if is_submission_id(text):
        return SubmissionId(text)
    raise InputError.of(
        code="submission-id",
        path=path,
        found=repr(text[:100]),
        expected="yyyymmdd-name: a date, a hyphen, then 1 to 64 of A-Z a-z 0-9 . _ -, no '..'",
        hint="for example 20261120-lighthouse-monot5",
    )


def run_name(query_set: str, seed: int) -> str:
    """Return what a set's run is called in a submission: `eval`, then `eval~2`, `eval~3`.

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
    """Return which seed a run is of, by its name: 1 for the first or only one.

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


class Near(NamedTuple):
    """An id, the one of the other file that it would match, and what is different."""

    own: str
    other: str
    difference: str


def _without_zeros(text: str) -> str:
    return _ZEROS.sub("", text)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _number(text: str) -> str:
    """The number of an id like `D12` or `12.0`; "" for an id of another kind."""
    found = _NUMBERED.fullmatch(text)
    return "" if found is None else found[1]


@dataclass(frozen=True, slots=True)
class _Rule:
    difference: str
    fold: Callable[[str], str]

    def holds(self, own: str, other: str) -> bool:
        """`D12` is no other spelling of `Q12`: one of the two has to be the number alone."""
        return self.fold is not _number or own.isdecimal() or other.isdecimal()


_RULES = (
    _Rule("leading zeros", _without_zeros),
    _Rule("Unicode form", _composed),
    _Rule("upper and lower case", str.casefold),
    _Rule("what stands around the number", _number),
)


class Spellings:
    """Ids of one file, to be found by other spellings.

    Args:
        ids: of the file; two that one spelling could mean are found by none.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._folded: list[tuple[_Rule, Mapping[str, str]]] = []
        known = tuple(ids)
        for rule in _RULES:
            folded: dict[str, str] = {}
            for one in known:
                key = rule.fold(one)
                folded[key] = "" if key in folded else one
            self._folded.append((rule, folded))

    def find(self, own: str) -> Near | None:
        """The id that was probably meant; `None` where there is none, or the very same one."""
        for rule, folded in self._folded:
            key = rule.fold(own)
            other = folded.get(key) if key else None
            if other and other != own and rule.holds(own, other):
                return Near(own, other, rule.difference)
        return None


def find_near(own: Iterable[str], others: Iterable[str]) -> tuple[Near, ...]:
    """The pairs between ids that two files do not share, sorted; each id in one pair at most.

    Args:
        own: ids of one file alone.
        others: ids of the other alone.
    """
    known = Spellings(others)
    pairs = {near.other: near for one in sorted(own) if (near := known.find(one)) is not None}
    return tuple(sorted(pairs.values()))


def find_surely_near(own: Iterable[str], others: Iterable[str]) -> tuple[Near, ...]:
    """As `find_near`, fast, and only pairs that are hardly ever two things: zeros, Unicode form.

    `farm` and `Farm` may be two documents of one collection.
    """
    own, others = tuple(own), tuple(others)
    text = "\n".join((*own, *others))
    if text.isascii() and _ZEROS.search(text) is None:
        return ()
    folded: dict[str, str] = {}
    for one in others:
        key = _surely(one)
        folded[key] = "" if key in folded else one
    pairs = {}
    for one in own:
        other = folded.get(_surely(one))
        if other and other != one:
            zeros = _without_zeros(one) == _without_zeros(other)
            pairs[other] = Near(one, other, "leading zeros" if zeros else "Unicode form")
    return tuple(sorted(pairs.values()))


def _surely(text: str) -> str:
    if not text.isascii():
        text = _composed(text)
    return _without_zeros(text) if "0" in text else text


def say_near(pairs: tuple[Near, ...]) -> str:
    """A hint: `2 differ only in leading zeros, as "01" from "1"`; "" where there are none."""
    if not pairs:
        return ""
    (difference, count), *_ = Counter(pair.difference for pair in pairs).most_common(1)
    first = next(pair for pair in pairs if pair.difference == difference)
    own, other = (quote(name, limit=_SHOWN) for name in (first.own, first.other))
    verb = "differs" if count == 1 else "differ"
    return f"{count:,} {verb} only in {difference}, as {own} from {other}"
