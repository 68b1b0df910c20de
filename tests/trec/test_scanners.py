"""What every scanner promises of its segments, on any text; and that no text is scanned often."""

import io
from collections.abc import Mapping
from itertools import pairwise
from operator import ge, gt

import pytest
from combinations import blocks_of
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import SCANNERS, as_float32, hash_document, scanner_of
from odd_runs import GRADES, odd_runs

from heldout.trec.orders import ORDERS, Order
from heldout.trec.rows import COLUMNS
from heldout.trec.runs import scan_run
from heldout.trec.scanning import scanners
from heldout.trec.text import is_clean

DEPTH = 3
TEXTS = odd_runs().map(
    lambda data: data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\0", b"?")
)


def whole_lines(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


def is_row(line: bytes, columns: int) -> bool:
    return not line.startswith(b"#") and len(line.split()) == columns


def check_tiles(text: bytes, found: scanners.ScanResult, *, last: bool) -> None:
    """Segments lie side by side from the first byte to the last one consumed."""
    assert [s.start for s in found.segments] == [0, *(s.end for s in found.segments)][:-1] or (
        not found.segments
    )
    assert found.consumed == (found.segments[-1].end if found.segments else 0)
    line = 0
    for segment in found.segments:
        part = text[segment.start : segment.end]
        assert part.endswith(b"\n")
        assert (segment.line, segment.lines) == (line, part.count(b"\n"))
        line += segment.lines
    assert found.lines == line == text.count(b"\n", 0, found.consumed)
    if last and not found.more:
        assert found.consumed == len(text)


def check_queries(text: bytes, found: scanners.ScanResult, columns: int) -> None:
    """Each has the rows of one query, and its neighbours those of others."""
    for place, segment in enumerate(found.segments):
        lines = text[segment.start : segment.end].split(b"\n")[:-1]
        query = text[segment.query : segment.query + segment.query_length]
        rows = [line for line in lines if is_row(line, columns) and is_clean(line)]
        assert {line.split()[0] for line in rows} <= {query}
        if not segment.query_length:
            assert place == 0
            assert not rows
        else:
            assert segment.start <= segment.query < segment.end
            assert lines[0].split()[0] == query
    queries = [text[s.query : s.query + s.query_length] for s in found.segments]
    assert all(one != other for one, other in pairwise(queries))


def check_rest(text: bytes, found: scanners.ScanResult, columns: int) -> None:
    """With more text to come, the last query is left, and nothing else."""
    if found.more or not found.segments:
        return
    rest = text[found.consumed :]
    rows = [line for line in rest.split(b"\n") if is_row(line, columns) and is_clean(line)]
    assert len({line.split()[0] for line in rows}) <= 1
    if rows and found.segments[-1].query_length:
        before = found.segments[-1]
        assert rows[0].split()[0] != text[before.query : before.query + before.query_length]


def check_answer(
    text: bytes,
    found: scanners.ScanResult,
    segment: scanners.Segment,
    order: Order,
    grades: scanners.Grades,
) -> None:
    """What is not broken: its hits, its tops and its flags, from its lines."""
    lines = [line.split() for line in text[segment.start : segment.end].split(b"\n")[:-1]]
    assert segment.rows == segment.lines == len(lines)
    trec = len(lines[0]) == COLUMNS["trec"]
    documents = [tokens[2 if trec else 1] for tokens in lines]
    assert len(set(documents)) == len(documents)
    ranks = [int(tokens[3 if trec else 2]) for tokens in lines]
    assert bool(segment.flags & scanners.UNRANKED) == (ranks != list(range(1, len(ranks) + 1)))
    keys = [float(tokens[4]) if trec else 0.0 for tokens in lines]
    if order == "trec9":
        keys = [as_float32(key) for key in keys]
    agree = ge if order == "msmarco" else gt
    assert bool(segment.flags & scanners.UNSORTED) == (not all(map(agree, keys, keys[1:])))
    close = [
        before > after and as_float32(before) == as_float32(after) and one < other
        for (before, one), (after, other) in pairwise(zip(keys, documents, strict=True))
    ]
    assert bool(segment.flags & scanners.CLOSE) == (order == "trec" and any(close))
    query = text[segment.query : segment.query + segment.query_length]
    judged: Mapping[str, int] = grades.get(query.decode(), {}) if _is_text(query) else {}
    hits = found.hits[segment.hit : segment.hit + segment.hits].tolist()
    wanted = {document.encode(): grade for document, grade in judged.items()}
    assert hits == [[row, wanted[d]] for row, d in enumerate(documents) if d in wanted]
    tops = found.tops[segment.top : segment.top + min(segment.rows, DEPTH)].tolist()
    assert tops == [hash_document(document) for document in documents[:DEPTH]]


def _is_text(id_: bytes) -> bool:
    return id_.decode(errors="replace").encode() == id_


def check_columns(
    text: bytes, scanner: scanners.TextScanner, segment: scanners.Segment, order: Order
) -> None:
    columns = scanner.columns(segment)
    if columns is None:
        return
    lines = [line.split() for line in text[segment.start : segment.end].split(b"\n")[:-1]]
    trec = len(lines[0]) == COLUMNS["trec"]
    assert columns.ranks.tolist() == [int(tokens[3 if trec else 2]) for tokens in lines]
    keys = [float(tokens[4]) if trec else 0.0 for tokens in lines]
    if order == "trec9":
        keys = [as_float32(key) for key in keys]
    assert columns.keys.tolist() == keys
    pairs = zip(columns.starts.tolist(), columns.lengths.tolist(), strict=True)
    documents = [text[start : start + length] for start, length in pairs]
    assert documents == [tokens[2 if trec else 1] for tokens in lines]


@pytest.mark.parametrize("name", SCANNERS)
@given(
    text=TEXTS.filter(bool).map(whole_lines),
    order=st.sampled_from(ORDERS),
    columns=st.sampled_from([3, 6]),
    grades=GRADES,
    last=st.booleans(),
    window=st.integers(16, 400),
)
def test_segments(
    *,
    name: str,
    text: bytes,
    order: Order,
    columns: int,
    grades: scanners.Grades,
    last: bool,
    window: int,
) -> None:
    order = order if columns == COLUMNS["trec"] else "msmarco"
    scanner = scanner_of(name, grades, columns=columns, order=order, depth=DEPTH)
    with blocks_of(window):
        found = scanner.scan(text, last=last)
    check_tiles(text, found, last=last)
    check_queries(text, found, columns)
    if not last:
        check_rest(text, found, columns)
    for segment in found.segments:
        lines = text[segment.start : segment.end]
        if segment.flags & scanners.BROKEN or not is_clean(lines):
            assert segment.flags & (scanners.BROKEN | scanners.UNICODE)
        else:
            check_answer(text, found, segment, order, grades)
            check_columns(text, scanner, segment, order)


@given(text=TEXTS.filter(bool).map(whole_lines).filter(is_clean), last=st.booleans())
def test_scanners_cut_clean_text_alike(*, text: bytes, last: bool) -> None:
    for columns in COLUMNS.values():
        cuts = []
        for name in SCANNERS:
            scanner = scanner_of(name, {}, columns=columns, order="msmarco", depth=0)
            found = scanner.scan(text, last=last)
            cuts.append((found.consumed, found.lines, [segment[:6] for segment in found.segments]))
        assert all(cut == cuts[0] for cut in cuts)


@given(text=TEXTS.filter(bool).map(whole_lines), window=st.integers(8, 200))
def test_nothing_is_lost_between_two_scans(*, text: bytes, window: int) -> None:
    """What a scanner leaves comes again with the next text, and all of it is consumed once."""
    for name in SCANNERS:
        scanner = scanner_of(name, {}, columns=3, order="msmarco", depth=0)
        taken, rest, at = b"", b"", 0
        with blocks_of(window):
            while at < len(text):
                end = text.find(b"\n", min(at + window, len(text) - 1)) + 1
                rest, at = rest + text[at:end], end
                found = scanner.scan(rest, last=at == len(text))
                taken, rest = taken + rest[: found.consumed], rest[found.consumed :]
            while rest:
                found = scanner.scan(rest, last=True)
                assert found.consumed
                taken, rest = taken + rest[: found.consumed], rest[found.consumed :]
        assert taken == text


@pytest.mark.parametrize("name", [n for n in SCANNERS if n != "plain"])
def test_a_regular_query_is_answered_at_once(name: str) -> None:
    """So that the checks above do not pass because all is broken."""
    text = b"".join(b"%d Q0 d%d %d %d t\n" % (q, r, r, -r) for q in (1, 2) for r in range(1, 9))
    scanner = scanner_of(name, {"2": {"d5": 3}}, columns=6, order="trec", depth=DEPTH)
    found = scanner.scan(text, last=True)
    assert [segment.flags for segment in found.segments] == [0, 0]
    assert found.hits.tolist() == [[4, 3]]


class Counting:
    """A scanner, and how many bytes it was given to look at."""

    def __init__(self, inner: scanners.TextScanner) -> None:
        self.inner = inner
        self.bytes = 0

    def scan(self, text: bytes, *, last: bool) -> scanners.ScanResult:
        found = self.inner.scan(text, last=last)
        # With more to come it stopped early; the line or query at which it did is counted twice.
        self.bytes += found.consumed if found.more else len(text)
        return found

    columns = property(lambda self: self.inner.columns)


@pytest.mark.parametrize("name", SCANNERS)
@pytest.mark.parametrize("depth", [3000, 300, 7], ids=["huge query", "large queries", "small"])
def test_no_text_is_scanned_often(name: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1 KiB: the rows of a query of 3,000 documents stand in 50 of them."""
    made: list[Counting] = []

    def count(*arguments: object, **options: object) -> Counting:
        made.append(Counting(scanner_of(name, *arguments[1:], **options)))  # type: ignore[arg-type]  # passed on
        return made[-1]

    monkeypatch.setattr(scanners, "make_scanner", count)
    lines = [
        b"q%d Q0 d%07d %d %d t\n" % (query, rank, rank, -rank)
        for query in range(3000 // depth)
        for rank in range(1, depth + 1)
    ]
    data = b"small Q0 a 1 1 t\n" + b"".join(lines) + b"last Q0 a 1 1 t\n"
    with blocks_of(1024):
        found = scan_run(io.BytesIO(data), path="run", order="trec")
    assert found.facts.max_depth == depth
    scanned = sum(counting.bytes for counting in made)
    assert len(data) <= scanned <= 4 * len(data)
