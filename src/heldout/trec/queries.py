"""Queries and topics: `id<TAB>text`, or TREC topics in their two dialects."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

from heldout.errors import Problem
from heldout.ids import Digest
from heldout.trec.headings import names_query
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader
from heldout.trec.text import check_line
from heldout.trec.topics import Topic, find_sgml_topics, find_xml_topics, looks_like_sgml

__all__ = ["Queries", "format_queries", "parse_queries", "read_queries"]

_TEXT_HEADINGS = frozenset(("text", "query", "querytext", "title", "question", "topic", "content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """A query set.

    Attributes:
        texts: query id -> text, in the order of the file; no text is empty, blanks at its ends
            are gone.
        digest: SHA-256 of the received bytes.
        notes: what was read in a way worth telling, the first of each code.
    """

    texts: Mapping[str, str]
    digest: Digest
    notes: tuple[Problem, ...] = ()


def parse_queries(data: bytes, *, path: str, limits: Limits | None = None) -> Queries:
    """As `read_queries`, from bytes."""
    return read_queries(BytesIO(data), path=path, limits=limits)


def read_queries(source: BinaryIO, *, path: str, limits: Limits | None = None) -> Queries:
    """Read a query file to its end: plain, gzip, bzip2 or zstd.

    Text that begins with `<` and has no tab in its first line is read as TREC topics: `<topic
    number="1">` (XML: the text of `query`, else `title`, else its own) or `<top>` with `<num>`
    and `<title>` (closed or not).

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: all problems up to `limits.problems`: `no-tab`, `no-query-id`, `empty-query`,
            `repeated-query`, `wrong-columns`, `heading-line`, `bad-topics`, `bad-utf8`,
            `control-character`, and those of `TextReader`. Notes are `blank-line`, `comment-line`,
            `byte-order-mark`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    with TextReader(source, path=path, limits=limits) as reader:
        text = b"".join(block.text for block in reader.blocks())
    lines = text[:-1].split(b"\n")
    topics = _looks_like_topics(text)
    fit = _fit_lines(lines, path, log, topics=topics)
    log.raise_errors()
    found = _find_topics(text.decode(), path, log) if topics else _find_rows(fit, path, log)
    texts = _collect(found, path, log)
    log.extend(reader.notes)
    if not texts and not log.errors:
        log.add(Problem(code="empty-file", path=path, found="no queries", expected="at least one"))
    log.raise_errors()
    return Queries(texts=texts, digest=reader.digest(), notes=log.notes())


def format_queries(texts: Mapping[str, str]) -> bytes:
    """A query file in the given order: `id<TAB>text`."""
    return "".join(f"{query}\t{text}\n" for query, text in texts.items()).encode()


def _looks_like_topics(text: bytes) -> bool:
    first = text.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"<") and b"\t" not in first


def _fit_lines(
    lines: list[bytes], path: str, log: ProblemLog, *, topics: bool
) -> list[tuple[int, str]]:
    """Numbered lines that can be read; in topics, empty lines and `#` mean nothing."""
    fit = []
    for number, line in enumerate(lines, start=1):
        problem = check_line(line, path=path, number=number, prose=True)
        if problem is None:
            fit.append((number, line.decode()))
        elif problem.severity == "error" or not topics:
            log.add(problem)
    return fit


def _find_rows(lines: list[tuple[int, str]], path: str, log: ProblemLog) -> list[Topic]:
    found = []
    for number, line in lines:
        query, tab, text = line.partition("\t")
        problem = None
        if not tab:
            problem = ("no-tab", "no tab", "query id, one tab, text")
        elif "\t" in text:
            problem = ("wrong-columns", "more than one tab", "query id, one tab, text")
        elif number == lines[0][0] and _is_heading(query, text):
            problem = ("heading-line", "names of columns", "the first query")
        if problem is None:
            found.append(Topic(line=number, query=query, text=text.strip()))
            continue
        code, what, expected = problem
        found_text = f"{what} in {show(line)}"
        log.add(Problem(code=code, path=path, line=number, found=found_text, expected=expected))
    return found


def _is_heading(query: str, text: str) -> bool:
    """Whether a first line names its columns: as a query, no run would ever answer it."""
    heading = "".join(filter(str.isalnum, text.casefold()))
    return names_query(query) and heading in _TEXT_HEADINGS


def _find_topics(text: str, path: str, log: ProblemLog) -> list[Topic]:
    if looks_like_sgml(text):
        return find_sgml_topics(text)
    topics, problem = find_xml_topics(text, path=path)
    if problem is not None:
        log.add(problem)
    return topics


def _collect(topics: list[Topic], path: str, log: ProblemLog) -> dict[str, str]:
    texts: dict[str, str] = {}
    first: dict[str, int] = {}
    for topic in topics:
        problem = _topic_problem(topic, first.get(topic.query), path)
        if problem is not None:
            log.add(problem)
            continue
        first[topic.query] = topic.line
        texts[topic.query] = topic.text
    return texts


def _topic_problem(topic: Topic, earlier: int | None, path: str) -> Problem | None:
    query = topic.query
    if len(query.split()) != 1 or not query.isprintable() or query != query.strip():
        code, found = "no-query-id", f"id {show(query)}"
        expected = "an id of visible characters, without blanks"
    elif earlier is not None:
        code, found = "repeated-query", f"query {show(query)} again, first on line {earlier}"
        expected = "each query once"
    elif not topic.text:
        code, found, expected = "empty-query", f"no text for {show(query)}", "a text"
    else:
        return None
    return Problem(code=code, path=path, line=topic.line, found=found, expected=expected)
