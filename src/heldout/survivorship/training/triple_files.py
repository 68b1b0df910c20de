"""Files of training triples: query id, positive id, negative id, divided by tabs.

So are the official sequences of MS MARCO (`qidpidtriples.train`), of which the largest have
hundreds of millions of lines. They are read and written as they pass by: read plain, gzip, bzip2 or
zstd, written as gzip. Each condition takes its triples while the sequence passes by, into memory
as many as its training sees, or into a file. Depths need one pass; random samples and shares need a
second, since what they draw from is known only at the end of the first. Labels that nobody knows
and ids without a text are errors.
"""

import gzip
import io
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import ceil
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import numpy as np

from heldout.errors import InputError, Problem, plural
from heldout.files.durable import ASIDE, Folder
from heldout.ids import DocId, QueryId
from heldout.survivorship.training.triples import (
    WHOLE,
    Condition,
    Label,
    Sampler,
    SelectedPlaces,
    Triple,
    TripleCounts,
    as_small_as,
    count_triples,
)
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import Block, Limits, TextReader
from heldout.trec.text import ProblemLog, check_line, is_clean, is_regular, show

ReadTriples = Callable[[], Iterable[Triple]]
"""Gives the same sequence from its beginning at each call; the annotations know each positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a condition leaves.

    Attributes:
        triples: in the order of the sequence; perhaps none.
        labels: different pairs of a query and its positive among them.
        queries: different queries among them.
        missing: for a control: how many triples fewer it has than the condition it follows.
    """

    triples: tuple[Triple, ...]
    labels: int
    queries: int
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What all conditions leave of a sequence.

    Attributes:
        selections: in the order in which they were asked for.
        counts: of the whole sequence.
    """

    selections: tuple[Selection, ...]
    counts: TripleCounts


@dataclass(slots=True, kw_only=True)
class _Draw:
    """What a condition draws at random, while the sequence passes by.

    Attributes:
        takes: whether it takes a triple.
        put: gets what it takes.
        left: how many more it takes; `None` for all.
        missing, missing_labels: as in `Sample`.
        per_label: how many it has taken of each label.
    """

    takes: Callable[[Triple], bool]
    put: Callable[[Triple], object]
    left: int | None = None
    missing: int = 0
    missing_labels: int = 0
    per_label: Counter[Label] = field(default_factory=Counter)


def select_triples(
    read: ReadTriples,
    places: SelectedPlaces,
    wanted: Sequence[tuple[Condition, int]],
    *,
    limit: int | None = None,
) -> Selected:
    """The triples of each condition.

    Args:
        read: the sequence; it is read once, or twice where something is drawn at random.
        places: where selected documents were shown.
        wanted: conditions, each with the seed of what is drawn at random. With one seed a larger
            share holds the smaller ones.
        limit: how many triples there are steps for; what comes later is left out. A control
            is as small as what is left of the condition it follows.
    """
    depths = {one.like or one.depth for one, _ in wanted if one.share == WHOLE}
    heads: dict[int | None, list[Triple]] = {depth: [] for depth in depths}
    per_label: Counter[Label] = Counter()
    for triple in read():
        place = places[triple.query][triple.positive]
        per_label[triple.query, triple.positive] += 1
        for depth, head in heads.items():
            if (depth is None or place <= depth) and len(head) != limit:
                head.append(triple)
    counts = TripleCounts(per_label=per_label)
    shallow = {depth: _selection(head) for depth, head in heads.items()}
    taken: dict[tuple[Condition, int], list[Triple]] = {}
    drawn: dict[tuple[Condition, int], _Draw] = {}
    for condition, seed in wanted:
        put = taken.setdefault((condition, seed), []).append
        if condition.like is not None:
            like = count_triples(heads[condition.like])
            drawn[condition, seed] = _draw_sample(counts, like, seed, put)
        elif condition.share != WHOLE:
            queries = share_queries(counts, condition.share, seed=seed)
            drawn[condition, seed] = _Draw(
                takes=partial(_is_of, queries=queries), put=put, left=limit
            )
    _pass_by(read, drawn.values())
    return Selected(
        selections=tuple(
            _selection(taken[one], missing=drawn[one].missing)
            if one in drawn
            else shallow[one[0].depth]
            for one in wanted
        ),
        counts=counts,
    )


def share_queries(counts: TripleCounts, share: float, *, seed: int) -> frozenset[QueryId]:
    """The queries of a random share of the labels.

    Args:
        counts: of the whole sequence.
        share: of its queries, in (0, 1]; with one seed a larger share holds the smaller ones.
        seed: of the draw.
    """
    queries = sorted({query for query, _ in counts.per_label})
    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    return frozenset(queries[index] for index in islice(order, ceil(share * len(queries))))


def _is_of(triple: Triple, *, queries: frozenset[QueryId]) -> bool:
    return triple.query in queries


def _draw_sample(
    whole: TripleCounts, shallow: TripleCounts, seed: int, put: Callable[[Triple], object]
) -> _Draw:
    """A random sample of the whole, as small as what a depth has."""
    if not shallow.triples:
        return _Draw(takes=lambda _: False, put=put, left=0)
    rng = np.random.default_rng(seed)
    sample = as_small_as(shallow, whole, rng)
    return _Draw(
        takes=Sampler(sample, rng).takes,
        put=put,
        left=sample.triples,
        missing=sample.missing,
        missing_labels=sample.missing_labels,
    )


def _pass_by(read: ReadTriples, draws: Iterable[_Draw]) -> None:
    """Pass by the sequence until each has as many triples as it may have."""
    waiting = [one for one in draws if one.left != 0]
    for triple in read() if waiting else ():
        for one in waiting:
            if one.takes(triple):
                one.put(triple)
                one.per_label[triple.query, triple.positive] += 1
                one.left = None if one.left is None else one.left - 1
                if one.left == 0:
                    waiting = [other for other in waiting if other is not one]
        if not waiting:
            break


def _selection(triples: Sequence[Triple], *, missing: int = 0) -> Selection:
    counts = count_triples(triples)
    return Selection(
        triples=tuple(triples), labels=counts.labels, queries=counts.queries, missing=missing
    )


TRIPLE_LIMITS = Limits(compressed_bytes=1 << 36, bytes=1 << 38, lines=1 << 32)
"""How much of a file of triples is read: 64 GiB received, 256 GiB of text, 4 billion lines."""

_COLUMNS = 3
_BUFFER = 1 << 16
"""Bytes given to a compressor at once: a line at a time takes twice as long."""


class PlacedTriple(NamedTuple):
    """A triple and the line on which it stands, from 1."""

    line: int
    triple: Triple


def read_triples(
    source: BinaryIO, *, path: str, limits: Limits = TRIPLE_LIMITS
) -> Iterator[PlacedTriple]:
    """Read triples one by one; nothing is stored.

    Args:
        source: the bytes of the file: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: at the first block with an error, with all errors of that block up to
            `limits.problems`: `wrong-columns`, `same-document` (the positive is the negative),
            `bad-utf8`, `control-character`, and those of `TextReader`. Empty lines and comments
            are passed over.
    """
    with TextReader(source, path=path, limits=limits) as reader:
        for block in reader.blocks():
            log = ProblemLog(limits.problems)
            rows = _usual_rows(block) or _checked_rows(block, path, log)
            yield from _without_same(rows, path, log)
            log.raise_errors()


@contextmanager
def write_triples(path: Path) -> Iterator[Callable[[Triple], None]]:
    """Write a file of triples as they come; it has its name only when it is whole.

    Args:
        path: replaced where it exists, compressed by gzip. Its folder is made where it is
            missing.

    Yields:
        To be called with each triple.

    Raises:
        OSError: the file cannot be written; one of this name that was there stays.
    """
    folder, aside = Folder(path.parent), f"{ASIDE}{secrets.token_hex(8)}"
    folder.make_folder()
    try:
        with folder.create(aside) as file:
            # No time of day and no name in the archive: equal triples give equal bytes.
            packed = io.BufferedWriter(gzip.GzipFile("", "wb", 6, file, mtime=0), _BUFFER)
            yield lambda triple: _write(packed, triple)
            packed.close()
            file.flush()
            os.fsync(file.fileno())
        folder.rename(aside, path.name)
    except BaseException:
        folder.delete(aside)
        raise


def _write(file: IO[bytes], triple: Triple) -> None:
    file.write("\t".join(triple).encode() + b"\n")


def _usual_rows(block: Block) -> Sequence[PlacedTriple] | None:
    """The block's triples; `None` if any line may have a problem."""
    text = block.text
    if not is_clean(text):
        return None
    words = text.decode().split()
    if not is_regular(text, block.ends, len(words), _COLUMNS):
        return None
    columns = (words[start::_COLUMNS] for start in range(_COLUMNS))
    return [
        PlacedTriple(line, Triple(QueryId(query), DocId(positive), DocId(negative)))
        for line, (query, positive, negative) in enumerate(
            zip(*columns, strict=True), start=block.line
        )
    ]


def _checked_rows(block: Block, path: str, log: ProblemLog) -> Sequence[PlacedTriple]:
    found = []
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        problem = check_line(line, path=path, number=number)
        columns = line.split()
        if problem is None and len(columns) != _COLUMNS:
            problem = Problem(
                "wrong-columns",
                path,
                line=number,
                found=f"{len(columns)} columns in {show(line)}",
                expected="3 columns: query id, id of the positive, id of the negative",
                hint="triples of texts are not read: take the file of ids",
            )
        if problem is None:
            query, positive, negative = (column.decode() for column in columns)
            triple = Triple(QueryId(query), DocId(positive), DocId(negative))
            found.append(PlacedTriple(number, triple))
        else:
            log.add(problem)
    return found


def _without_same(
    rows: Sequence[PlacedTriple], path: str, log: ProblemLog
) -> Iterator[PlacedTriple]:
    for row in rows:
        if row.triple.positive == row.triple.negative:
            log.add(
                Problem(
                    "same-document",
                    path,
                    line=row.line,
                    found=f"{show(row.triple.positive)} as positive and as negative",
                    expected="two documents",
                )
            )
        elif not log.errors:
            yield row


_MOST = 20


@dataclass(slots=True)
class Unknown:
    """Triples whose positive the annotations do not know, counted while they pass by.

    Attributes:
        triples: how many.
        first: the first of them with its line, `None` where there is none.
    """

    triples: int = 0
    first: PlacedTriple | None = None

    def __str__(self) -> str:
        return f"{plural(self.triples, 'triple')} with positives that the annotations do not know"


def read_known_triples(
    path: Path, places: SelectedPlaces, unknown: Unknown | None
) -> Iterator[Triple]:
    """The triples of a file whose positive the annotations know, from its beginning.

    Args:
        path: the file.
        places: where selected documents were shown.
        unknown: gets the count of the others at the end of the file; `None` where there may be
            none.

    Raises:
        InputError: code `unknown-positive`, at the first of them, where there may be none; and as
            `read_triples`.
    """
    counted = Unknown()
    with open_input(path) as file:
        for row in read_triples(file, path=str(path)):
            if row.triple.positive in places.get(row.triple.query, ()):
                yield row.triple
            elif unknown is None:
                raise InputError(_unknown(row, places, str(path)))
            else:
                counted.triples += 1
                counted.first = counted.first or row
    if unknown is not None:
        unknown.triples, unknown.first = counted.triples, counted.first


def triples_with_texts(
    triples: Iterable[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
    *,
    path: str,
) -> Iterator[Triple]:
    """The triples, each of whose ids has a text, in their order.

    Args:
        triples: in any number.
        queries: texts of queries.
        documents: texts of documents.
        path: where the triples come from, for messages.

    Raises:
        InputError: code `triple-without-text`, with up to twenty ids: behind the twentieth, or at
            the end.
    """
    missing: dict[tuple[str, str], None] = {}
    for triple in triples:
        query, positive, negative = triple
        if query in queries and positive in documents and negative in documents:
            yield triple
            continue
        missing |= {("query", query): None} if query not in queries else {}
        missing |= {("document", one): None for one in (positive, negative) if one not in documents}
        if len(missing) >= _MOST:
            break
    if missing:
        raise InputError(
            [
                Problem(
                    "triple-without-text",
                    path,
                    found=f"no text of {kind} {show(identity)}",
                    expected="triples of the collection's queries and documents",
                )
                for kind, identity in islice(missing, _MOST)
            ]
        )


def _unknown(row: PlacedTriple, places: SelectedPlaces, path: str) -> Problem:
    triple = row.triple
    known = triple.query in places
    found = f"positive {show(triple.positive)} of query {show(triple.query)}"
    return Problem(
        "unknown-positive",
        path,
        line=row.line,
        found=f"{found}, which annotators did not select"
        if known
        else f"{found}, a query without labels in the annotations",
        expected="positives whose position the annotations have",
        hint="are both of the same collection? --skip-unknown leaves such triples out",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of triples that was written.

    Attributes:
        condition: what it has.
        path: the file.
        counts: how much there is in it.
        dropped: triples that the condition left out.
        missing: for a sample: how many triples it has too few.
        missing_labels: for a sample: how many labels.
    """

    condition: Condition
    path: Path
    counts: TripleCounts
    dropped: int
    missing: int = 0
    missing_labels: int = 0


def filter_triples(
    read: ReadTriples,
    places: SelectedPlaces,
    conditions: Sequence[Condition],
    *,
    name_of: Callable[[Condition], Path],
    seed: int,
) -> tuple[Written, ...]:
    """Write the triples of each condition, in their order.

    Args:
        read: gives the same sequence at each call; the annotations know each positive.
        places: where selected documents were shown.
        conditions: depths, all, or samples as small as a depth; without shares.
        name_of: the file of each, compressed by gzip.
        seed: of the samples.

    Returns:
        What was written, in the order of the conditions.

    Raises:
        InputError: code `no-triples`: a depth leaves none; nothing is written then.
        OSError: a file cannot be written; files of these names that were there stay, unless
            the failure came between two of them.
    """
    depths = [one for one in conditions if one.like is None]
    sizes = dict.fromkeys(one.like or one.depth for one in conditions)
    per_label: Counter[Label] = Counter()
    with ExitStack() as files:
        writers = [(one.depth, files.enter_context(write_triples(name_of(one)))) for one in depths]
        for triple in read():
            place = places[triple.query][triple.positive]
            per_label[triple.query, triple.positive] += 1
            for depth, write in writers:
                if depth is None or place <= depth:
                    write(triple)
        whole = TripleCounts(per_label=per_label)
        counts = {one: _count_within(whole, places, one) for one in sizes}
        for depth, found in counts.items():
            if not found.triples:
                raise no_triples(Condition(depth=depth), "triples")
    draws: dict[Condition, _Draw] = {}
    with ExitStack() as files:
        for one in conditions:
            if one.like is not None:
                put = files.enter_context(write_triples(name_of(one)))
                draws[one] = _draw_sample(whole, counts[one.like], seed, put)
        _pass_by(read, draws.values())
    written = []
    for one in conditions:
        draw = draws.get(one)
        found = TripleCounts(per_label=draw.per_label) if draw else counts[one.depth]
        written.append(
            Written(
                condition=one,
                path=name_of(one),
                counts=found,
                dropped=whole.triples - found.triples,
                missing=draw.missing if draw else 0,
                missing_labels=draw.missing_labels if draw else 0,
            )
        )
    return tuple(written)


def _count_within(whole: TripleCounts, places: SelectedPlaces, depth: int | None) -> TripleCounts:
    """How much a depth has: what a triple's position is depends on its label alone."""
    return TripleCounts(
        per_label={
            (query, document): count
            for (query, document), count in whole.per_label.items()
            if depth is None or places[query][document] <= depth
        }
    )


def no_triples(condition: Condition, path: str) -> InputError:
    """Code `no-triples`: a condition leaves none."""
    return InputError.of(
        "no-triples",
        path,
        found=f"no triple for {condition.name}",
        expected="at least one for each condition",
    )
