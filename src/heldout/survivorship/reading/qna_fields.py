"""What MS MARCO QnA (v2.1) tells of a query, in both of its forms, and what becomes of it.

Source: the README of microsoft/MSMARCO-Question-Answering: `is_selected` is 1 where the passage was
used for an answer; a query without an answer has `No Answer Present.`; `wellFormedAnswers` is a
list, or the text `[]` where nobody wrote one.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from heldout.errors import Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation
from heldout.survivorship.reading.passage_ids import passage_id
from heldout.survivorship.reading.record_lines import Fault
from heldout.trec.problems import show

__all__ = ["FIELDS", "OPTIONAL", "Field", "QnaNotes", "QnaRow", "annotate"]

_NO_ANSWER = "No Answer Present."
_NOTHING: Mapping[DocId, int] = MappingProxyType({})
_NO_TEXT: Mapping[DocId, str] = MappingProxyType({})


class Passage(msgspec.Struct, frozen=True):
    """A passage as it was shown; its URL is not kept.

    Attributes:
        is_selected: 1 where it was used for an answer.
        passage_text: the passage.
    """

    is_selected: Literal[0, 1]
    passage_text: str


class QnaRow(msgspec.Struct, frozen=True, kw_only=True):
    """A query as one line has it.

    Attributes:
        query_id: its id.
        query: its words.
        query_type: its type.
        answers: what annotators wrote.
        passages: in the order shown.
        wellFormedAnswers: rewritten answers; the text `[]` stands for none.
    """

    query_id: int | str
    query: str
    query_type: str
    answers: list[str]
    passages: list[Passage]
    wellFormedAnswers: Literal["[]"] | list[str] = "[]"  # noqa: N815 - so it is called in the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a query.

    Attributes:
        type: of its values in the file.
        keep: value, and whether texts are kept -> what is kept of it.
        expected: the values in words.
    """

    type: Any
    keep: Callable[[Any, bool], Any]
    expected: str


class Seen(NamedTuple):
    """What annotators saw of one query.

    Attributes:
        shown: ids by the text, in order; a text that was shown twice is there once.
        selected: id -> place at which it was selected, the first of several.
        texts: id -> text, where texts are kept.
        places: how many passages were shown.
    """

    shown: tuple[DocId, ...]
    selected: Mapping[DocId, int]
    texts: Mapping[DocId, str]
    places: int


class Answers(NamedTuple):
    """What annotators wrote for one query.

    Attributes:
        answered: whether they found an answer.
        texts: the answers, where texts are kept.
    """

    answered: bool
    texts: tuple[str, ...]


def _see(passages: Sequence[Passage], texts: bool) -> Seen:  # noqa: FBT001 - one of `Field.keep`
    ids = [passage_id(one.passage_text) for one in passages]
    selected: dict[DocId, int] = {}
    kept: dict[DocId, str] = {}
    for place, (doc, one) in enumerate(zip(ids, passages, strict=True), 1):
        if one.is_selected:
            selected.setdefault(doc, place)
        if texts:
            kept.setdefault(doc, one.passage_text)
    return Seen(tuple(dict.fromkeys(ids)), selected or _NOTHING, kept or _NO_TEXT, len(ids))


def _answers(answers: Sequence[str], texts: bool) -> Answers:  # noqa: FBT001 - the same
    found = [answer for answer in answers if answer.strip() not in {"", _NO_ANSWER}]
    return Answers(bool(found), tuple(found) if texts else ())


def _well_formed(answers: Sequence[str], texts: bool) -> tuple[str, ...]:  # noqa: FBT001 - the same
    return tuple(answers) if texts and not isinstance(answers, str) else ()


FIELDS: Mapping[str, Field] = {
    "query_id": Field(type=int | str, keep=lambda value, _: str(value), expected="a query's id"),
    "query": Field(
        type=str, keep=lambda value, texts: value if texts else None, expected="a query's text"
    ),
    "query_type": Field(
        type=str, keep=lambda value, _: sys.intern(value), expected="a type, such as DESCRIPTION"
    ),
    "answers": Field(type=list[str], keep=_answers, expected="a list of texts"),
    "passages": Field(
        type=list[Passage],
        keep=_see,
        expected="a list of passages, each with is_selected, 0 or 1, and passage_text",
    ),
    "wellFormedAnswers": Field(
        type=Literal["[]"] | list[str], keep=_well_formed, expected="a list of texts, or []"
    ),
}
"""The fields that are read."""

OPTIONAL = frozenset({"wellFormedAnswers"})
"""Those that may be absent."""


def annotate(values: Mapping[str, Any], notes: "QnaNotes") -> Annotation | Fault:
    """The record of a query, or what is wrong with it.

    Args:
        values: of `FIELDS`, as they keep them.
        notes: counts it.

    Returns:
        Or code `no-passages`.
    """
    seen: Seen = values["passages"]
    answers: Answers = values["answers"]
    query = QueryId(values["query_id"])
    if not seen.places:
        return "no-passages", f"no passage for query {show(query)}", "what annotators were shown"
    notes.add(seen, answered=answers.answered)
    return Annotation(
        query=query,
        text=values["query"],
        kind=values["query_type"],
        shown=seen.shown,
        selected=seen.selected,
        texts=seen.texts,
        answers=tuple(dict.fromkeys((*values["wellFormedAnswers"], *answers.texts))),
    )


class QnaNotes:
    """Counts what is worth telling of a file, one query after another.

    Attributes:
        depth: most passages that a query was shown.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._counts: Counter[str] = Counter()

    def add(self, seen: Seen, *, answered: bool) -> None:
        """Count a query.

        Args:
            seen: what annotators saw.
            answered: whether they found an answer.
        """
        self.depth = max(self.depth, seen.places)
        self._counts["repeated-passage"] += len(seen.shown) < seen.places
        self._counts["answer-not-selected"] += answered and not seen.selected
        self._counts["selected-without-answer"] += bool(seen.selected) and not answered

    def notes(self, path: str) -> list[Problem]:
        """A note of each code that was counted."""
        return [
            Problem(
                code=code,
                path=path,
                found=f"{plural(count, 'query', 'queries')} {found}",
                expected=expected,
                hint=hint,
                severity="note",
            )
            for code, (found, expected, hint) in _NOTES.items()
            if (count := self._counts[code])
        ]


_NOTES: Mapping[str, tuple[str, str, str]] = {
    "repeated-passage": (
        "that were shown the same text twice",
        "each text once in a list",
        "it counts where it was shown first, or selected first",
    ),
    "answer-not-selected": (
        "with an answer, and no passage selected",
        "the passages that the answer was taken from",
        "for ranking these were discarded too",
    ),
    "selected-without-answer": (
        "with a passage selected, and no answer",
        "no passage selected where no answer is present",
        "these survived, since a passage is labelled",
    ),
}
