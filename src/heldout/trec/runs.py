"""One pass over a run file: every problem with its line, and integers for the measures.

A scanner finds queries and judged documents in the text; of the run itself nothing remains but
the places of judged documents and a signature. What a scanner marks as odd is looked at here
again, and decided by code that all scanners share. A query's lines may stand apart in the file:
then it is read again, all rows are gathered in bounded memory, and the same answer comes out. Rows
that do not fit go to a temporary database of SQLite, which nobody else can open and which is gone
when it is closed.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import BinaryIO

from heldout.errors import InputError, Problem
from heldout.trec import ir_metadata, orders
from heldout.trec.answers import SIGNATURE_DEPTH, Examiner, Parsed
from heldout.trec.reading.sources import rewindable
from heldout.trec.reading.streams import Block, Limits, TextReader
from heldout.trec.rows import COLUMNS, Form, Rows, cut_rows, parse_rows
from heldout.trec.scanning import scanners
from heldout.trec.scans import Coverage, Expected, Results, Scan, report_rising
from heldout.trec.text import ProblemLog, is_clean, parse_integer

_IN_MEMORY = 1 << 22
_CACHE_KIB = 4096
_NUMBER = 8


class Gathered:
    """Lines by query, in the order in which they were added.

    Args:
        in_memory: bytes of text that are kept before they go to a database, which keeps some too.
        path: the file, for messages.
    """

    def __init__(self, in_memory: int = _IN_MEMORY, *, path: str) -> None:
        import sqlite3  # noqa: PLC0415 - few runs come here, and each call would pay for it

        self._in_memory = in_memory
        self._path = path
        self._size = 0
        self._lines: dict[bytes, tuple[bytearray, array[int]]] = {}
        self._queries: dict[bytes, None] = {}
        with _scratch(path):
            self._database = sqlite3.connect("", isolation_level=None)  # "": a temporary file
            self._database.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA cache_size = -{_CACHE_KIB};"
                "CREATE TABLE lines (query BLOB, numbers BLOB, text BLOB)"
            )

    def add(self, query: bytes, text: bytes, numbers: Sequence[int]) -> None:
        """Keep lines of a query; `numbers` are their 1-based numbers in the file.

        Raises:
            InputError: code `no-scratch`.
        """
        if query not in self._lines:
            self._queries[query] = None
            self._lines[query] = bytearray(), array("q")
        texts, known = self._lines[query]
        texts += text
        if len(numbers) == 1:
            known.append(numbers[0])  # much faster, and the usual case
        else:
            known.extend(numbers)
        self._size += len(text) + _NUMBER * len(numbers)
        if self._size > self._in_memory:
            self._spill()

    def __len__(self) -> int:
        """Number of queries."""
        return len(self._queries)

    def queries(self) -> Iterator[tuple[bytes, list[int]]]:
        """The lines of each query, first come first, and their numbers.

        Raises:
            InputError: code `no-scratch`.
        """
        self._spill()
        rows = "SELECT numbers, text FROM lines WHERE query = ? ORDER BY rowid"
        with _scratch(self._path):
            self._database.execute("CREATE INDEX by_query ON lines (query)")
        for query in self._queries:
            with _scratch(self._path):
                found = self._database.execute(rows, (query,)).fetchall()
            numbers = array("q", b"".join(some for some, _ in found))
            yield b"".join(text for _, text in found), numbers.tolist()

    def close(self) -> None:
        """Forget everything."""
        self._database.close()
        self._lines.clear()

    def _spill(self) -> None:
        lines = self._lines.items()
        with _scratch(self._path):
            self._database.execute("BEGIN")
            self._database.executemany(
                "INSERT INTO lines VALUES (?, ?, ?)",
                ((query, numbers.tobytes(), text) for query, (text, numbers) in lines),
            )
            self._database.execute("COMMIT")
        self._lines.clear()
        self._size = 0


@contextmanager
def _scratch(path: str) -> Iterator[None]:
    """Report what the database cannot do for the run that needs it."""
    import sqlite3  # noqa: PLC0415 - as above

    try:
        yield
    except sqlite3.Error as error:
        raise InputError.of("no-scratch", path, why=error) from error


_LOOKED_AT = 1000
_QRELS = 4
_ROUND = 3
"""Bytes of `0`, `Q0` or `0.5`: a round of judging, and no document."""
_HEAD = 1 << 13
"""Bytes of a run that show what its ids look like."""


def scan_run(
    source: BinaryIO,
    *,
    path: str,
    order: orders.Order | None,
    qrels: scanners.Grades | None = None,
    expected: Expected | None = None,
    limits: Limits | None = None,
    scanner: scanners.Scanner | None = None,
    signature_depth: int = SIGNATURE_DEPTH,
    listed: int = 0,
) -> Scan:
    """Read a run once and see it through judgments.

    Args:
        source: bytes of a run in MS MARCO or TREC form, plain or as gzip, bzip2 or zstd,
            recognised by content. Read to its end. If it is neither a file nor a `BytesIO`,
            received bytes are stored in a temporary file until the end, in case they are needed
            again.
        path: its name for messages.
        order: how documents are ordered; `None` for `trec` where the form has scores, and
            `msmarco` where it has none. Under `trec` and `trec9` it must have them.
        qrels: query -> document -> grade; `None` sees nothing.
        expected: what the run must be like.
        limits: how much is read.
        scanner: who looks through it; `None` for the fastest. Nothing else depends on it.
        signature_depth: documents of a query in the signature; 0 if nobody needs it.
        listed: documents of a query in `Scan.lists`; 0 if nobody needs their ids.

    Returns:
        The scan. Errors in the file are in it and not raised.

    Raises:
        Exception: whatever reading `source` raises (a decrypting pipe's `TrustError`).
    """
    rules = _Rules(
        path=path,
        order=order,
        qrels=qrels or {},
        expected=expected or Expected(),
        limits=limits or Limits(),
        scanner=scanner,
        depth=signature_depth,
        listed=listed,
    )
    try:
        with rewindable(source, path=path, most=rules.limits.compressed_bytes) as file:
            return _scan(file, rules)
    except InputError as error:
        refused = _Pass(rules, _reader(BytesIO(), rules))
        refused.log.extend(error.problems)
        return refused.result()


def _scan(file: BinaryIO, rules: "_Rules") -> Scan:
    start = file.tell()
    try:
        with _reader(file, rules) as reader:
            return _Pass(rules, reader).scan(gather=False)
    except _SplitQueryError:
        file.seek(start)
        with _reader(file, rules) as reader:
            return _Pass(rules, reader).scan(gather=True)


def _reader(source: BinaryIO, rules: "_Rules") -> TextReader:
    return TextReader(source, path=rules.path, limits=rules.limits)


class _SplitQueryError(Exception):
    """A query's rows go on after those of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    path: str
    order: orders.Order | None
    qrels: scanners.Grades
    expected: Expected
    limits: Limits
    scanner: scanners.Scanner | None
    depth: int
    listed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Text that was scanned, and the 1-based number of each of its lines."""

    text: bytes
    numbers: Sequence[int]
    found: scanners.ScanResult

    def query(self, segment: scanners.Segment) -> bytes:
        return self.text[segment.query : segment.query + segment.query_length]

    def lines(self, segment: scanners.Segment) -> bytes:
        return self.text[segment.start : segment.end]

    def line_numbers(self, segment: scanners.Segment) -> Sequence[int]:
        return self.numbers[segment.line : segment.line + segment.lines]

    @property
    def rest(self) -> bytes:
        return self.text[self.found.consumed :]


def _scanned(
    scanner: scanners.TextScanner, text: bytes, line: int, *, last: bool
) -> Iterator[_Part]:
    """The text in one part, or in several where the scanner leaves some of it."""
    more = True
    while more:
        found = scanner.scan(text, last=last)
        part = _Part(text=text, numbers=range(line, line + found.lines), found=found)
        yield part
        line += found.lines
        more = found.more and found.consumed > 0
        text = part.rest if more else b""


class _Pass:
    """One reading of a run."""

    def __init__(self, rules: _Rules, reader: TextReader) -> None:
        self.rules = rules
        self.reader = reader
        self.log = ProblemLog(rules.limits.problems)
        self.form: Form | None = None
        self.head: dict[str, tuple[str, ...]] = {}
        self.header = range(0)
        self.results = Results(rules.depth)
        self.coverage = Coverage(rules.expected, path=rules.path, limits=rules.limits, log=self.log)
        self.order: orders.Order = rules.order or "trec"
        self.examiner = self._examiner()

    def scan(self, *, gather: bool) -> Scan:
        """The whole scan; a query's rows may stand apart if `gather`."""
        try:
            blocks = self.reader.blocks()
            first = next(blocks)
            form = self.form = self._choose_form(first)
            self.head = _read_head(first.text, form)
            self.header = ir_metadata.find_header_lines(first.text)
            if self.rules.order is None and form == "msmarco":
                self.order = "msmarco"
                self.examiner = self._examiner()
            scanner = self._scanner(form)
            parts = self._parts(
                chain((first,), blocks), self._scanner(form, cuts_only=True) if gather else scanner
            )
            for part in self._gathered(parts, form, scanner) if gather else parts:
                for position in range(len(part.found.segments)):
                    self._take(part, position, form, scanner)
            self.coverage.check_answered()
        except InputError as error:
            self.log.extend(error.problems)
        self.log.extend(self.reader.notes)
        return self.result()

    def _choose_form(self, block: Block) -> Form:
        wanted: Form = "msmarco" if self.rules.order == "msmarco" else "trec"
        form = _detect_form(block)
        if form is None and _looks_like_qrels(block):
            raise InputError.of("looks-like-qrels", self.rules.path, line=1)
        form = form or wanted
        path, order = self.rules.path, self.rules.order
        if order in ("trec", "trec9") and form == "msmarco":
            raise InputError.of("no-scores", path, "ranks alone", line=1, order=order)
        return form

    def _examiner(self) -> Examiner:
        rules = self.rules
        return Examiner(
            path=rules.path,
            order=self.order,
            depth=rules.depth,
            listed=rules.listed,
            report=self.log.add,
        )

    def _scanner(self, form: Form, *, cuts_only: bool = False) -> scanners.TextScanner:
        rules = self.rules
        return scanners.make_scanner(
            rules.scanner,
            {} if cuts_only else rules.qrels,
            columns=COLUMNS[form],
            order=self.order,
            depth=0 if cuts_only else rules.depth,
        )

    def _parts(self, blocks: Iterable[Block], scanner: scanners.TextScanner) -> Iterator[_Part]:
        """The text in parts that hold whole queries."""
        rest, line = b"", 1
        least = 0
        for block in blocks:
            rest, line = block.text, block.line
            if len(rest) >= least:
                for part in _scanned(scanner, rest, line, last=False):
                    yield part
                    line += part.found.lines
                    rest = part.rest
                self._check_size(len(rest), line)
                least = 2 * len(rest)  # so that a long query is not scanned again for each block
            self.reader.give_back(rest, lines=block.line + block.count - line)
        yield from _scanned(scanner, rest, line, last=True)

    def _check_size(self, size: int, line: int) -> None:
        if size > (most := self.rules.limits.query_bytes):
            raise InputError.of("query-too-large", self.rules.path, line=line, most=most)

    def _gathered(
        self, parts: Iterable[_Part], form: Form, scanner: scanners.TextScanner
    ) -> Iterator[_Part]:
        """Each query once, with all its lines."""
        with closing(Gathered(path=self.rules.path)) as gathered:
            for part in parts:
                for segment in part.found.segments:
                    if segment.query_length:
                        numbers = part.line_numbers(segment)
                        gathered.add(part.query(segment), part.lines(segment), numbers)
                        self.coverage.check_number(len(gathered), numbers[0])
                    else:
                        self._parse(part, segment, form)
            for text, numbers in gathered.queries():
                self._check_size(len(text), numbers[0])
                found = scanner.scan(text, last=True)
                yield _Part(text=text, numbers=numbers, found=found)

    def _take(self, part: _Part, position: int, form: Form, scanner: scanners.TextScanner) -> None:
        """One query, by the shortest way that its rows allow."""
        segment = part.found.segments[position]
        if segment.query_length:
            self._check_size(segment.end - segment.start, part.numbers[segment.line])
        if self._is_broken(part, segment):
            self._take_broken(part, segment, form)
            return
        columns = None
        if not self._is_usual(part, segment):
            columns = scanner.columns(segment)
            if columns is None:
                self._take_broken(part, segment, form)
                return
        numbers = part.line_numbers(segment)
        query = self._admit(part.query(segment), numbers)
        if query is None:
            return
        hits = part.found.hits[segment.hit : segment.hit + segment.hits]
        if columns is None:
            top = part.found.tops[segment.top : segment.top + min(segment.rows, self.rules.depth)]
            self.results.add_usual(
                query,
                rows=segment.rows,
                hits=hits,
                top=top,
                swapped=bool(segment.flags & scanners.CLOSE),
            )
        else:
            rows = cut_rows(part.text, segment, columns, numbers)
            parsed = Parsed(ranks=columns.ranks, keys=columns.keys, hits=hits)
            self._examine(query, rows, parsed)

    def _is_broken(self, part: _Part, segment: scanners.Segment) -> bool:
        """Check whether only reading line by line shows what the segment is."""
        if segment.flags & scanners.BROKEN:
            return True
        return bool(segment.flags & scanners.UNICODE) and not is_clean(part.lines(segment))

    def _is_usual(self, part: _Part, segment: scanners.Segment) -> bool:
        """Check that rows are in the order, numbered 1, 2, 3, …, and that nobody asks for ids."""
        if self.rules.listed or segment.flags & (scanners.UNSORTED | scanners.UNRANKED):
            return False
        candidates = self.rules.expected.candidates
        return candidates is None or part.query(segment).decode() not in candidates

    def _take_broken(self, part: _Part, segment: scanners.Segment, form: Form) -> None:
        rows = self._parse(part, segment, form)
        if rows is None:
            return
        query = self._admit(rows.query, rows.lines)
        if query is not None:
            self._examine(query, rows, None)

    def _parse(self, part: _Part, segment: scanners.Segment, form: Form) -> Rows | None:
        return parse_rows(
            part.lines(segment),
            part.line_numbers(segment),
            form,
            path=self.rules.path,
            report=self._report,
        )

    def _report(self, problem: Problem) -> None:
        """Log a problem; that a header stands in comments is none."""
        if problem.code != "comment-line" or problem.line not in self.header:
            self.log.add(problem)

    def _admit(self, query: bytes, lines: Sequence[int]) -> str | None:
        if query in self.coverage.depths:
            raise _SplitQueryError
        return self.coverage.admit(query, lines)

    def _examine(self, query: str, rows: Rows, parsed: Parsed | None) -> None:
        candidates = self.rules.expected.candidates
        answer = self.examiner.examine(
            rows,
            parsed=parsed,
            judged=self.rules.qrels.get(query),
            candidates=None if candidates is None else candidates.get(query),
        )
        if answer is not None:
            self.results.add(query, answer)

    def result(self) -> Scan:
        """Return what was found so far."""
        digest = self.reader.digest()
        depths = list(self.coverage.depths.values())
        facts = self.results.facts(lines=self.reader.lines, depths=depths)
        if 2 * facts.queries_rising > facts.queries:
            self.log.add(report_rising(facts, self.rules.path))
        return Scan(
            path=self.rules.path,
            digest=digest,
            form=self.form,
            order=self.order,
            problems=self.log.problems(),
            counts=dict(sorted(self.log.counts.items())),
            facts=facts,
            answers=None if self.log.errors else self.results.pack(),
            head=self.head,
            lists=self.results.lists,
        )


def _detect_form(block: Block) -> Form | None:
    """The form that most of the first lines have; `None` if none of them has 3 or 6 columns."""
    counts = Counter(map(len, map(bytes.split, _first_lines(block.text))))
    trec, msmarco = counts[COLUMNS["trec"]], counts[COLUMNS["msmarco"]]
    if not trec and not msmarco:
        return None
    return "trec" if trec >= msmarco else "msmarco"


def _looks_like_qrels(block: Block) -> bool:
    """Check whether the first lines have 4 columns, a short second one and a number at the end."""
    rows = [line for line in map(bytes.split, _first_lines(block.text)) if line]
    return bool(rows) and all(
        len(row) == _QRELS and len(row[1]) <= _ROUND and parse_integer(row[3]) is not None
        for row in rows
    )


def _first_lines(text: bytes) -> list[bytes]:
    """The first lines below the comments at the head of a run."""
    return text[_skip_comments(text) :].split(b"\n", _LOOKED_AT)[:_LOOKED_AT]


def _skip_comments(text: bytes) -> int:
    """Return where the first line begins that is no comment."""
    start = 0
    while text.startswith(b"#", start):
        start = text.find(b"\n", start) + 1
    return start


def _read_head(text: bytes, form: Form) -> dict[str, tuple[str, ...]]:
    """Query -> documents of the rows that a text begins with, as they stand there."""
    column = 2 if form == "trec" else 1
    width = COLUMNS[form]
    start = _skip_comments(text)
    end = start + _HEAD
    head = text[start:] if len(text) <= end else text[start : text.rfind(b"\n", start, end) + 1]
    rows = [line.split() for line in head.decode(errors="replace").split("\n")]
    documents: dict[str, list[str]] = {}
    for row in rows:
        if len(row) == width:
            documents.setdefault(row[0], []).append(row[column])
    return {query: tuple(found) for query, found in documents.items()}
