"""Groups that a measure of fairness or a view asks for, and candidates of a re-ranking run.

Small files, with tabs between columns:

- document groups: `document<TAB>group`, or a weight as third column;
- facets: `query<TAB>group`;
- a list of queries: one id in each line;
- official candidates: per query the documents that may be ordered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural
from heldout.trec.reading.streams import Limits, open_rows
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.text import ProblemLog, show

_TOP1000 = 4
_DOCUMENT_COLUMN = {2: 1, 3: 1, 6: 2}
"""Columns separated by blanks or tabs -> where the document id stands."""
_CANDIDATE = (
    "query and document, a run of 3 or 6 columns, or query, document and two texts separated by "
    "tabs; the same in every line"
)


def read_candidates(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> Mapping[str, frozenset[str]]:
    """Read candidates to their end: plain, gzip, bzip2 or zstd.

    All rows have the layout of the first: query and document; a run of 3 or 6 columns; or, as
    MS MARCO gives its top 1000, query, document, query text and passage, separated by tabs.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Returns:
        Query -> documents; a document that is listed twice counts once.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `bad-utf8`,
            `control-character`, and those of `TextReader`.
    """
    candidates: dict[str, set[str]] = {}
    width = 0
    with open_rows(source, path=path, limits=limits, prose=True) as (log, rows):
        for number, line in rows:
            columns = line.split(b"\t")
            if len(columns) != _TOP1000:
                columns = line.split()
            width = width or len(columns)
            if len(columns) != width or width not in {*_DOCUMENT_COLUMN, _TOP1000}:
                found = f"{len(columns)} columns in {show(line)}"
                log.add(Problem("wrong-columns", path, found, _CANDIDATE, line=number))
                continue
            document = columns[_DOCUMENT_COLUMN.get(width, 1)].decode()
            candidates.setdefault(columns[0].decode(), set()).add(document)
    return {query: frozenset(documents) for query, documents in candidates.items()}


UNKNOWN = -1
"""The place of a document that the file of groups does not have."""

_WEIGHT = re.compile(rb"\d{1,9}(?:\.\d{1,9})?")
_MOST_GROUPS = 1000
_BATCH = 1 << 16

Membership = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentGroups:
    """Which groups documents belong to; a document is known by its hash.

    Attributes:
        names: the groups, sorted.
        profiles: float64, shape (profiles, groups), each row a share of 1 by group: the different
            memberships that documents have.
        documents: how many documents have each profile.
    """

    names: tuple[str, ...]
    profiles: NDArray[np.float64]
    documents: tuple[int, ...]
    _hashes: NDArray[np.uint64]
    _rows: NDArray[np.int32]

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The profile of each document by its `hash_document`, `UNKNOWN` where it has none."""
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[at] == hashes, self._rows[at], np.int32(UNKNOWN))

    def shares(self) -> dict[str, float]:
        """The share of the documents in the file that each group has."""
        total = np.array(self.documents, np.float64) @ self.profiles
        return dict(zip(self.names, (total / total.sum()).tolist(), strict=True))


def read_document_groups(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> DocumentGroups:
    """Read document groups to their end: plain, gzip, bzip2 or zstd.

    A document in several groups is shared among them, by weight; a row without a weight has
    weight 1. A document that is not in the file is of no known group.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `bad-weight`,
            `repeated-group`, `too-many-groups`, `bad-utf8`, `control-character`, and those of
            `TextReader`.
    """
    members: dict[bytes, Membership] = {}
    same: dict[Membership, Membership] = {}  # few different ones, for very many documents
    with open_rows(source, path=path, limits=limits, prose=True) as (log, rows):
        for number, columns in _columns(rows, path, log, widths=(2, 3), expected=_DOCUMENT):
            weight = _weight(columns[2]) if len(columns) > 2 else 1.0  # noqa: PLR2004 - the third
            group = columns[1].decode()
            before = members.get(columns[0], ())
            if weight is None:
                found = f"weight {show(columns[2])}"
                log.add(Problem.of("bad-weight", path, found, line=number))
            elif any(group == name for name, _ in before):
                log.add(_repeated(columns, "each document once in a group", path, number))
            else:
                now = tuple(sorted((*before, (group, weight))))
                members[columns[0]] = same.setdefault(now, now)
    return _pack(members, path)


def read_facets(
    source: BinaryIO, *, path: str, limits: Limits | None = None, group: str = "group"
) -> Mapping[str, frozenset[str]]:
    """Read groups of queries to their end; a query may be in several.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.
        group: what a group is called in messages.

    Returns:
        Group -> queries, sorted by group.

    Raises:
        InputError: as `read_document_groups`, without the codes of weights.
    """
    found: dict[str, set[str]] = {}
    layout = f"query, one tab, {group}"
    with open_rows(source, path=path, limits=limits, prose=True) as (log, rows):
        for number, columns in _columns(rows, path, log, widths=(2,), expected=layout):
            queries = found.setdefault(columns[1].decode(), set())
            query = columns[0].decode()
            if query in queries:
                log.add(_repeated(columns, "each query once in a group", path, number))
            queries.add(query)
    _check_number(found, path)
    return {group: frozenset(found[group]) for group in sorted(found)}


def read_query_list(source: BinaryIO, *, path: str, limits: Limits | None = None) -> frozenset[str]:
    """Read ids of queries, one in each line, to their end.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: `wrong-columns`, `repeated-query`, `bad-utf8`, `control-character`, and those
            of `TextReader`.
    """
    found: set[str] = set()
    with open_rows(source, path=path, limits=limits, prose=True) as (log, rows):
        for number, columns in _columns(rows, path, log, widths=(1,), expected="one query id"):
            query = columns[0].decode().strip()
            if query in found:
                again = f"query {show(query)} again"
                log.add(Problem("repeated-query", path, again, "each query once", line=number))
            found.add(query)
    return frozenset(found)


_DOCUMENT = "document, one tab, group, and perhaps one tab and a weight"


def _columns(
    rows: Iterator[tuple[int, bytes]],
    path: str,
    log: ProblemLog,
    *,
    widths: Sequence[int],
    expected: str,
) -> Iterator[tuple[int, list[bytes]]]:
    """Numbered rows with as many columns as they should have; other rows are logged."""
    for number, line in rows:
        columns = [column.strip() for column in line.split(b"\t")]
        if len(columns) in widths and all(columns) and len(columns[0].split()) == 1:
            yield number, columns
        else:
            found = f"{_misfit(columns, widths)} in {show(line)}"
            log.add(Problem("wrong-columns", path, found, expected, line=number))


def _misfit(columns: Sequence[bytes], widths: Sequence[int]) -> str:
    """Return what is wrong with columns, of which there may be as many as expected."""
    if len(columns) not in widths:
        return plural(len(columns), "column")
    if not all(columns):
        return "an empty column"
    return f"a blank within {show(columns[0])}"


def _weight(text: bytes) -> float | None:
    """A weight above 0, `None` where it is none."""
    weight = float(text) if _WEIGHT.fullmatch(text) else 0.0
    return weight if weight > 0 else None


def _repeated(columns: Sequence[bytes], expected: str, path: str, number: int) -> Problem:
    found = f"{show(columns[0])} in {show(columns[1])} again"
    return Problem("repeated-group", path, found, expected, line=number)


def _check_number(groups: Mapping[str, object], path: str) -> None:
    if len(groups) > _MOST_GROUPS:
        raise InputError.of(
            "too-many-groups", path, f"{len(groups):,} groups", most_groups=_MOST_GROUPS
        )


def _pack(members: Mapping[bytes, Membership], path: str) -> DocumentGroups:
    positions: dict[Membership, int] = {}
    of_document = [positions.setdefault(one, len(positions)) for one in members.values()]
    names = {name: 0 for one in positions for name, _ in one}
    _check_number(names, path)
    columns = {name: column for column, name in enumerate(sorted(names))}
    profiles = np.zeros((len(positions), len(columns)))
    for row, one in enumerate(positions):
        for name, weight in one:
            profiles[row, columns[name]] = weight
    profiles /= profiles.sum(axis=1, keepdims=True)
    documents = tuple(members)
    parts = [
        hash_documents(documents[start : start + _BATCH])
        for start in range(0, len(documents), _BATCH)
    ]
    hashes = np.concatenate(parts)
    order = np.argsort(hashes)
    at = np.array(of_document, np.int32)
    return DocumentGroups(
        names=tuple(columns),
        profiles=profiles,
        documents=tuple(np.bincount(at, minlength=len(positions)).tolist()),
        _hashes=hashes[order],
        _rows=at[order],
    )
