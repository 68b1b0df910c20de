"""The first documents of each query of a run, and where a run lists certain documents.

`tops` are by id: what pools are made of. The scan decides what comes first; it keeps hashes, and a
second reading finds the ids they belong to. Orders break ties by id, as measures need it; whoever
compares rankings wants documents of equal scores together (`tied_tops`).

`Places` are all that any labels of certain documents can see of a run. A run read once can be
scored on labels that are made later, as long as these are among the documents that were looked for.

`Rankings` are both, for a person who looks at them side by side.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.trec.answers import SIGNATURE_DEPTH
from heldout.trec.memory import MemoryRun, list_documents, scan_memory
from heldout.trec.orders import Order
from heldout.trec.ranking import JudgedRanking, sort_keys
from heldout.trec.reading.streams import Block, Limits, TextReader, read_lines
from heldout.trec.rows import COLUMNS, Form
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Scan, Signature
from heldout.trec.text import check_line, is_regular


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of certain documents in a run.

    Attributes:
        found: answered query -> document -> place, from 1; only documents that it lists.
        retrieved: answered query -> how many documents it lists.
    """

    found: Mapping[str, Mapping[str, int]]
    retrieved: Mapping[str, int]


def read_places(
    source: BinaryIO,
    *,
    path: str,
    documents: Mapping[str, Collection[str]],
    order: Order | None = None,
    limits: Limits | None = None,
) -> Places:
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
    return _places(scan, names)


def _number(
    documents: Mapping[str, Collection[str]],
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Mapping[str, int]]]:
    """The documents of each query, and their numbers, which a scan takes for grades."""
    names = {query: sorted(set(wanted)) for query, wanted in documents.items()}
    return names, {query: {doc: n for n, doc in enumerate(docs)} for query, docs in names.items()}


def _places(scan: Scan, names: Mapping[str, Sequence[str]]) -> Places:
    """What a scan with numbers for grades found."""
    seen = {query: ranking for query, ranking in scan.rankings.items() if query in names}
    return Places(
        found={
            query: {
                names[query][code]: place
                for code, place in zip(
                    ranking.grades.tolist(), ranking.positions.tolist(), strict=True
                )
            }
            for query, ranking in seen.items()
        },
        retrieved={query: ranking.retrieved for query, ranking in seen.items()},
    )


def see_through(
    places: Places, labels: Mapping[str, Mapping[str, int]]
) -> Mapping[str, JudgedRanking]:
    """A run as labels see it.

    Args:
        places: of at least the documents of the labels.
        labels: query -> document -> grade.

    Returns:
        Query -> ranking, of the answered queries that have labels.
    """
    return {
        query: _see(places.found[query], grades, places.retrieved[query])
        for query, grades in labels.items()
        if query in places.found
    }


def _see(places: Mapping[str, int], grades: Mapping[str, int], retrieved: int) -> JudgedRanking:
    listed = sorted((places[doc], grade) for doc, grade in grades.items() if doc in places)
    return JudgedRanking(
        positions=np.array([place for place, _ in listed], np.int64),
        grades=np.array([grade for _, grade in listed], np.int64),
        retrieved=retrieved,
    )


TiedTops = Mapping[str, tuple[tuple[str, ...], ...]]
"""Query -> groups of documents with equal scores, the best first, ids sorted within a group."""

Key = tuple[float, int]
_SLACK = 4000


@dataclass(slots=True)
class _Top:
    """The best documents of a query so far: a key, of which lower is better, and an id."""

    rows: list[tuple[Key, str]] = field(default_factory=list)

    def cut(self, depth: int) -> None:
        """Keep the first so many, and those that tie with the last of them."""
        self.rows.sort()
        if len(self.rows) > depth:
            last = self.rows[depth - 1][0]
            self.rows = [row for row in self.rows if row[0] <= last]

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The documents by key."""
        return tuple(
            tuple(document for _, document in rows)
            for _, rows in groupby(self.rows, key=itemgetter(0))
        )


def read_tied_tops(
    source: BinaryIO,
    *,
    path: str,
    form: Form,
    order: Order,
    depth: int,
    limits: Limits | None = None,
) -> TiedTops:
    """Read a run that was scanned without errors, to keep its tops with their ties.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        form: how its lines are laid out, as the scan says.
        order: which documents tie: those of equal scores under `trec`, of scores equal as float32
            under `trec9`; none under `msmarco`, where equal ranks stand in the order of the file.
        depth: documents of each query, >= 1; more where some tie with the last.
        limits: how much is read.

    Raises:
        InputError: those of `TextReader`.
    """
    tops: dict[str, _Top] = {}
    document = 2 if form == "trec" else 1
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        for number, line in read_lines(reader):
            tokens = line.decode().split()
            if len(tokens) != COLUMNS[form] or check_line(line, path=path, number=number):
                continue  # a note of the scan: a blank line, a comment
            top = tops.setdefault(tokens[0], _Top())
            top.rows.append((_key(tokens, order, number), tokens[document]))
            if len(top.rows) > depth + _SLACK:
                top.cut(depth)
    for top in tops.values():
        top.cut(depth)
    return {query: tops[query].groups() for query in sorted(tops)}


def _key(tokens: list[str], order: Order, line: int) -> Key:
    """Equal for documents that tie."""
    if order == "msmarco":
        return float(tokens[2 if len(tokens) == COLUMNS["msmarco"] else 3]), line
    return -float(sort_keys(np.array([float(tokens[4])]), order)[0]), 0


Tops = Mapping[str, tuple[str, ...]]
"""Query -> its first documents, best first."""

_DOCUMENT: Mapping[Form, int] = {"msmarco": 1, "trec": 2}
_NEWLINE = ord("\n")


def read_tops(
    source: BinaryIO,
    *,
    path: str,
    depth: int,
    order: Order | None = None,
    limits: Limits | None = None,
) -> Tops:
    """Read a run and keep the first documents of each query.

    Args:
        source: a file or `BytesIO`, at its start; read twice.
        path: its name for messages.
        depth: 1 to 100 documents of a query; a query may have fewer.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError: all errors of the run, as `scan_run` finds them; `changed-file` if it changed
            between the readings.
        ValueError: a depth that is not kept.
    """
    if not 1 <= depth <= SIGNATURE_DEPTH:
        raise ValueError(depth)
    start = source.tell()
    scan = scan_run(source, path=path, order=order, limits=limits, signature_depth=depth)
    source.seek(start)
    return _tops(source, scan, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rankings:
    """The rankings of a run, as far as a person looks at them.

    Attributes:
        tops: the first documents of each query.
        places: of certain documents, however deep.
    """

    tops: Tops
    places: Places


def read_rankings(
    source: BinaryIO,
    *,
    path: str,
    depth: int,
    documents: Mapping[str, Collection[str]],
    order: Order | None = None,
    limits: Limits | None = None,
) -> Rankings:
    """Read what `read_tops` and `read_places` read, in the time of the first.

    Args:
        source: a file or `BytesIO`, at its start; read twice.
        path: its name for messages.
        depth: 1 to 100 documents of a query.
        documents: query -> those whose places are wanted.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError, ValueError: as `read_tops`.
    """
    if not 1 <= depth <= SIGNATURE_DEPTH:
        raise ValueError(depth)
    start = source.tell()
    names, codes = _number(documents)
    scan = scan_run(
        source, path=path, order=order, qrels=codes, limits=limits, signature_depth=depth
    )
    places = _places(scan, names)
    source.seek(start)
    return Rankings(tops=_tops(source, scan, limits), places=places)


def memory_rankings(
    run: MemoryRun,
    *,
    depth: int,
    documents: Mapping[str, Collection[str]],
    order: Order | None = None,
) -> Rankings:
    """The same of a run that is in memory.

    Raises:
        InputError: as `scan_memory`.
    """
    names, codes = _number(documents)
    scan = scan_memory(run, order=order, qrels=codes)
    lists = list_documents(run, scan.order, frozenset(run.queries))
    tops = {query: lists[query][:depth] for query in sorted(lists)}
    return Rankings(tops=tops, places=_places(scan, names))


def _tops(source: BinaryIO, scan: Scan, limits: Limits | None) -> Tops:
    """The ids of a scan's first documents, in a second reading.

    Raises:
        InputError: the run has errors, or changed.
    """
    signature, path = scan.signature, scan.path
    form: Form = scan.form or "trec"
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        ids = _find_ids(reader, signature, form)
    return {
        query: tuple(_known(ids, int(document), path) for document in row if document)
        for query, row in zip(signature.queries, signature.documents, strict=True)
    }


def _find_ids(reader: TextReader, wanted: Signature, form: Form) -> dict[int, str]:
    """Hash -> id, of every document that is wanted anywhere."""
    hashes = np.unique(wanted.documents)
    ids: dict[int, str] = {}
    for block in reader.blocks():
        documents = _documents(block, form, reader.path)
        found = hash_documents(documents)
        for place in _first_places(found, hashes):
            ids.setdefault(int(found[place]), documents[place].decode())
    return ids


def _first_places(found: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> list[int]:
    distinct, places = np.unique(found, return_index=True)
    return places[np.isin(distinct, hashes, assume_unique=True)].tolist()  # type: ignore[no-any-return]  # ints


def _documents(block: Block, form: Form, path: str) -> list[bytes]:
    columns, text = COLUMNS[form], block.text
    tokens = text.split()
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
    if b"#" in text or not is_regular(text, ends, len(tokens), columns):
        tokens = [token for line in _rows(block, path) for token in line.split()]
    return tokens[_DOCUMENT[form] :: columns]


def _rows(block: Block, path: str) -> Iterator[bytes]:
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        if check_line(line, path=path, number=number) is None:
            yield line


def _known(ids: Mapping[int, str], document: int, path: str) -> str:
    if document not in ids:
        raise InputError.of(
            "changed-file",
            path,
            "another run than a moment ago",
            "a file that stays as it is while it is read",
        )
    return ids[document]


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
            if check_line(line, path=path, number=number) is None:
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
