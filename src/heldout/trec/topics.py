"""TREC topics in two dialects: XML `<topic number="1">`, and `<top>` as in the first TRECs."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from heldout.errors import Problem

__all__ = ["Topic", "find_sgml_topics", "find_xml_topics", "looks_like_sgml"]

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
    """Whether topics are in the `<top>` dialect."""
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
        name: _flat(_unescape(label.sub("", fields.get(name, ""), count=1)))
        for name, label in _LABELS.items()
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
    return Problem(
        code="bad-topics",
        path=path,
        line=line,
        found=found,
        expected="topics in XML, without DOCTYPE or entities",
        hint="queries may also be written as query id, tab, text",
    )


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


def _unescape(text: str) -> str:
    # The ampersand last, so that "&amp;lt;" becomes "&lt;".
    return text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def _flat(text: str) -> str:
    return " ".join(text.split())
