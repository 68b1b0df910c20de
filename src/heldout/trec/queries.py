"""Queries and topics: `id<TAB>text`, or TREC topics in two dialects.

The dialects are XML `<topic number="1">`, and `<top>` as in the first TRECs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO

from heldout.errors import Problem
from heldout.ids import Digest
from heldout.trec.reading.streams import Limits, TextReader
from heldout.trec.text import ProblemLog, check_line, names_query, show

_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)(?:\s[^<>]*)?>", re.ASCII)
_LABELS = {
    "num": re.compile(r"\s*(?:Number\s*:)?", re.IGNORECASE),
    "title": re.compile(r"\s*(?:Topic\s*:)?", re.IGNORECASE),
}
_FIELDS = ("query", "title")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A query as it stands in a file, not yet checked.

    Attributes:
        line: 1-based line where it begins.
        query: its id, perhaps empty or wrong.
        text: its text, perhaps empty; blanks and line ends have become single blanks.
    """

    line: int
    query: str
    text: str


def looks_like_sgml(text: str) -> bool:
    """Check whether topics are in the `<top>` dialect."""
    return re.search(r"<top\s*>", text, re.IGNORECASE) is not None


def find_sgml_topics(text: str) -> list[Topic]:
    """Topics of the `<top>` dialect, whose tags may be left open.

    Labels such as `Number:` and `Topic:` are dropped, `&amp;`, `&lt;` and `&gt;` resolved.
    """
    tags = list(_TAG.finditer(text))
    ends = [tag.start() for tag in tags[1:]] + [len(text)]
    topics: list[Topic] = []
    line, position = 1, 0
    fields: dict[str, str] = {}
    for tag, end in zip(tags, ends, strict=True):
        name = tag[2].lower()
        if name == "top" and not tag[1]:
            topics += _sgml_topic(fields, line)
            line += text.count("\n", position, tag.start())
            position, fields = tag.start(), {"top": ""}
        elif fields and not tag[1]:
            fields.setdefault(name, text[tag.end() : end])
    return topics + _sgml_topic(fields, line)


def _sgml_topic(fields: dict[str, str], line: int) -> list[Topic]:
    """One topic, none before the first `<top>`."""
    if not fields:
        return []
    values = {
        # The ampersand last, so that "&amp;lt;" becomes "&lt;".
        name: _flat(text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
        for name, label in _LABELS.items()
        for text in [label.sub("", fields.get(name, ""), count=1)]
    }
    return [Topic(line=line, query=values["num"], text=values["title"])]


def find_xml_topics(text: str, *, path: str) -> tuple[list[Topic], Problem | None]:
    """Topics of the XML dialect; a document type, and with it any entity, is refused.

    Returns:
        The topics up to the first problem, and that problem: code `bad-topics`.
    """
    from xml.parsers import expat  # noqa: PLC0415 - few query files are XML

    parser = expat.ParserCreate()
    handler = _Handler(current_line=lambda: parser.CurrentLineNumber)
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = handler.doctype
    try:
        parser.Parse(text.encode(), True)  # noqa: FBT003 - expat takes its flag by position
    except expat.ExpatError as error:
        return handler.topics, _bad_topics(path, error.lineno, expat.ErrorString(error.code))
    except _DoctypeError:
        return handler.topics, _bad_topics(path, parser.CurrentLineNumber, "a document type")
    return handler.topics, None


def _bad_topics(path: str, line: int, found: str) -> Problem:
    return Problem.of("bad-topics", path, found, line=line)


class _DoctypeError(Exception):
    """Entities could be defined here, which can blow up a small file."""


@dataclass(slots=True)
class _Handler:
    """Collects topics as expat meets them."""

    current_line: Callable[[], int]
    topics: list[Topic] = field(default_factory=list)
    _line: int = 0
    _number: str = ""
    _open: list[str] = field(default_factory=list)
    _fields: dict[str, list[str]] = field(default_factory=dict)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "topic" and not self._open:
            self._line = self.current_line()
            self._number = attributes.get("number", "")
            self._fields = {}
            self._open = [name]
        elif self._open:
            self._open.append(name)

    def text(self, data: str) -> None:
        if self._open:
            self._fields.setdefault(self._open[-1], []).append(data)

    def end(self, _name: str) -> None:
        if not self._open:
            return
        self._open.pop()
        if self._open:
            return
        texts = {name: _flat("".join(parts)) for name, parts in self._fields.items()}
        chosen = next((name for name in _FIELDS if name in texts), "topic")
        self.topics.append(
            Topic(line=self._line, query=_flat(self._number), text=texts.get(chosen, ""))
        )

    def doctype(self, *_: object) -> None:
        raise _DoctypeError


def _flat(text: str) -> str:
    return " ".join(text.split())


_TEXT_HEADINGS = frozenset(("text", "query", "querytext", "title", "question", "topic", "content"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """A query set.

    Attributes:
        texts: query id -> text, in the order of the file; no text is empty, blanks at its ends
            are gone.
        digest: SHA-256 of the received bytes.
        notes: what was read in a way worth a note, the first of each code.
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
        log.add(Problem("empty-file", path, "no queries", "at least one"))
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
        log.add(Problem(code, path, found_text, expected, line=number))
    return found


def _is_heading(query: str, text: str) -> bool:
    """Check whether a first line names its columns: as a query, no run would ever answer it."""
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
    return Problem(code, path, found, expected, line=topic.line)
