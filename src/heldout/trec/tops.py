"""The first documents of each query of a run, and where a run lists certain documents.

`tops` are by id: what pools are made of. Orders break ties by id, as measures need it; whoever
compares rankings wants documents of equal scores together (`tie_tops`).

`RunPositions` are all that any labels of certain documents can see of a run. A run read once can be
scored on labels that are made later, as long as these are among the documents that were looked for.

`TopRankings` are both, for a person who looks at them side by side.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.trec import answers, memory, orders, scans, text
from heldout.trec.ranking import JudgedRanking
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.rows import COLUMNS, Form
from heldout.trec.runs import scan_run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPositions:
    """The places of certain documents in a run.

    Attributes:
        found: answered query -> document -> place, from 1; only documents that it lists.
        retrieved: answered query -> how many documents it lists.
    """

    found: Mapping[str, Mapping[str, int]]
    retrieved: Mapping[str, int]


def read_positions(
    source: BinaryIO,
    *,
    path: str,
    documents: Mapping[str, Collection[str]],
    order: orders.Order | None = None,
    limits: Limits | None = None,
) -> RunPositions:
    """Read a run and keep where certain documents stand, however deep.

    Args:
        source: a run, at its start.
        path: its name for messages.
        documents: query -> those that are looked for. Queries that are not named are left out.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError: all errors of the run, as `scan_run` finds them.
    """
    names, codes = _number(documents)
    scan = scan_run(source, path=path, order=order, qrels=codes, limits=limits, signature_depth=0)
    return _positions(scan, names)


def _number(
    documents: Mapping[str, Collection[str]],
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Mapping[str, int]]]:
    """The documents of each query, and their numbers, which a scan takes for grades."""
    names = {query: sorted(set(wanted)) for query, wanted in documents.items()}
    return names, {query: {doc: n for n, doc in enumerate(docs)} for query, docs in names.items()}


def _positions(scan: scans.Scan, names: Mapping[str, Sequence[str]]) -> RunPositions:
    """Return what a scan with numbers for grades found."""
    seen = {query: ranking for query, ranking in scan.rankings.items() if query in names}
    return RunPositions(
        found={
            query: {
                names[query][code]: position
                for code, position in zip(
                    ranking.grades.tolist(), ranking.positions.tolist(), strict=True
                )
            }
            for query, ranking in seen.items()
        },
        retrieved={query: ranking.retrieved for query, ranking in seen.items()},
    )


def see_through(
    positions: RunPositions, labels: Mapping[str, Mapping[str, int]]
) -> Mapping[str, JudgedRanking]:
    """A run as labels see it.

    Args:
        positions: of at least the documents of the labels.
        labels: query -> document -> grade.

    Returns:
        Query -> ranking, of the answered queries that have labels.
    """
    return {
        query: _see(positions.found[query], grades, positions.retrieved[query])
        for query, grades in labels.items()
        if query in positions.found
    }


def _see(positions: Mapping[str, int], grades: Mapping[str, int], retrieved: int) -> JudgedRanking:
    listed = sorted((positions[doc], grade) for doc, grade in grades.items() if doc in positions)
    return JudgedRanking(
        positions=np.array([position for position, _ in listed], np.int64),
        grades=np.array([grade for _, grade in listed], np.int64),
        retrieved=retrieved,
    )


TiedTops = Mapping[str, tuple[tuple[str, ...], ...]]
"""Query -> groups of documents with equal scores, the best first, ids sorted within a group."""


def tie_tops(scan: scans.Scan) -> TiedTops:
    """Group the documents that a scan lists by equal scores.

    Under `trec9` scores tie that are equal as float32; under `msmarco` none do.

    Raises:
        InputError: the run has errors.
    """
    scan.raise_errors()
    return {query: _group(*scan.lists[query]) for query in sorted(scan.lists)}


def _group(documents: tuple[str, ...], tied: NDArray[np.bool_]) -> tuple[tuple[str, ...], ...]:
    ends = [*(np.flatnonzero(~tied) + 1).tolist(), len(documents)]
    return tuple(
        tuple(sorted(documents[start:end])) for start, end in zip([0, *ends], ends, strict=False)
    )


Tops = Mapping[str, tuple[str, ...]]
"""Query -> its first documents, best first."""

_DOCUMENT: Mapping[Form, int] = {"msmarco": 1, "trec": 2}


def read_tops(
    source: BinaryIO,
    *,
    path: str,
    depth: int,
    order: orders.Order | None = None,
    limits: Limits | None = None,
) -> Tops:
    """Read a run and keep the first documents of each query.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        depth: 1 to 100 documents of a query; a query may have fewer.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError: all errors of the run, as `scan_run` finds them.
        ValueError: a depth that is not kept.
    """
    return _tops(_list(source, depth, path=path, order=order, limits=limits), depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRankings:
    """The rankings of a run, as far as a person looks at them.

    Attributes:
        tops: the first documents of each query.
        positions: of certain documents, however deep.
    """

    tops: Tops
    positions: RunPositions


def read_rankings(
    source: BinaryIO,
    *,
    path: str,
    depth: int,
    documents: Mapping[str, Collection[str]],
    order: orders.Order | None = None,
    limits: Limits | None = None,
) -> TopRankings:
    """Read what `read_tops` and `read_positions` read, at once.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        depth: 1 to 100 documents of a query.
        documents: query -> those whose places are wanted.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError, ValueError: as `read_tops`.
    """
    names, codes = _number(documents)
    scan = _list(source, depth, path=path, order=order, limits=limits, qrels=codes)
    return TopRankings(tops=_tops(scan, depth), positions=_positions(scan, names))


def _list(source: BinaryIO, depth: int, **rules: Any) -> scans.Scan:
    if not 1 <= depth <= answers.SIGNATURE_DEPTH:
        raise ValueError(depth)
    return scan_run(source, signature_depth=0, listed=depth, **rules)


def _tops(scan: scans.Scan, depth: int) -> Tops:
    scan.raise_errors()
    return {query: scan.lists[query].documents[:depth] for query in sorted(scan.lists)}


def memory_rankings(
    run: memory.MemoryRun,
    *,
    depth: int,
    documents: Mapping[str, Collection[str]],
    order: orders.Order | None = None,
) -> TopRankings:
    """The same of a run that is in memory.

    Raises:
        InputError: as `scan_memory`.
    """
    names, codes = _number(documents)
    scan = memory.scan_memory(run, order=order, qrels=codes)
    lists = memory.list_documents(run, scan.order, frozenset(run.queries))
    tops = {query: lists[query][:depth] for query in sorted(lists)}
    return TopRankings(tops=tops, positions=_positions(scan, names))


def read_rows(source: BinaryIO, *, path: str, limits: Limits | None = None) -> dict[str, list[Any]]:
    """All rows of a run that was scanned without errors, as columns.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        limits: how much is read.

    Returns:
        `qid`, `docno`, `score` where there are scores, and `rank` where all are whole numbers.

    Raises:
        InputError: those of `TextReader`; `changed-file` where a row has other columns than a run.
    """
    rows: list[list[str]] = []
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        for number, line in read_lines(reader):
            if text.check_line(line, path=path, number=number) is None:
                rows.append(line.decode().split())
    widths = set(map(len, rows))
    if widths not in ({COLUMNS["trec"]}, {COLUMNS["msmarco"]}):
        found = f"rows of {', '.join(map(str, sorted(widths))) or 'no'} columns"
        raise InputError.of("changed-file", path, found, "a run, as it was a moment ago")
    form: Form = "trec" if widths == {COLUMNS["trec"]} else "msmarco"
    document = _DOCUMENT[form]
    ranks = [row[document + 1] for row in rows]
    columns: dict[str, list[Any]] = {
        "qid": [row[0] for row in rows],
        "docno": [row[document] for row in rows],
    }
    if form == "trec":
        columns["score"] = [float(row[4]) for row in rows]
    if all(rank.isascii() and rank.isdigit() for rank in ranks):
        columns["rank"] = list(map(int, ranks))
    return columns
