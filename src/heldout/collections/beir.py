"""The form in which BEIR gives its collections: JSON lines, and qrels of three columns.

`corpus.jsonl` has `{"_id", "title", "text"}` in each line, `queries.jsonl` `{"_id", "text"}`, and
`qrels/test.tsv` the columns query, document and grade below a heading. Source: Thakur et al.,
NeurIPS Datasets and Benchmarks 2021.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from heldout.errors import InputError, Problem, quote
from heldout.trec.numbers import parse_integer

__all__ = ["is_beir_qrels", "parse_beir_qrels", "parse_beir_texts"]

_MOST_PROBLEMS = 20
_HEADING = ("query-id", "corpus-id", "score")


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a line; BEIR's `metadata` is left alone."""

    identity: str = msgspec.field(name="_id")
    text: str
    title: str | None = None


def parse_beir_texts(content: bytes, *, path: str) -> dict[str, str]:
    """Documents or queries in JSON lines.

    Args:
        content: one object per line; empty lines are skipped.
        path: the file's name, for errors.

    Returns:
        Text by id in the order of the file, on one line, a title before it.

    Raises:
        InputError: the first twenty of `collection-row`, `collection-id`; `collection-empty`.
    """
    decoder = msgspec.json.Decoder(_Line)
    texts: dict[str, str] = {}
    problems = list(islice(_read_lines(content, decoder, texts, path), _MOST_PROBLEMS))
    if problems:
        raise InputError(problems)
    if not texts:
        raise InputError(_problem("collection-empty", path, found="no line"))
    return texts


def is_beir_qrels(content: bytes) -> bool:
    """Whether judgments begin with BEIR's heading."""
    return tuple(content.split(b"\n", 1)[0].decode(errors="replace").split()) == _HEADING


def parse_beir_qrels(content: bytes, *, path: str) -> dict[str, dict[str, int]]:
    """Judgments below the heading `query-id corpus-id score`.

    Args:
        content: tab-separated rows, the heading first.
        path: the file's name, for errors.

    Returns:
        Grade by query and document, in the order of the file.

    Raises:
        InputError: the first twenty of `wrong-columns`, `grade-not-a-number`,
            `conflicting-judgment`; `collection-empty`.
    """
    judgments: dict[str, dict[str, int]] = {}
    problems = list(islice(_read_rows(content, judgments, path), _MOST_PROBLEMS))
    if problems:
        raise InputError(problems)
    if not judgments:
        raise InputError(_problem("collection-empty", path, found="no judgment"))
    return judgments


def _read_lines(
    content: bytes, decoder: "msgspec.json.Decoder[_Line]", texts: dict[str, str], path: str
) -> Iterator[Problem]:
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            read = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield _problem("collection-row", path, line=number, found=str(error))
            continue
        key = read.identity
        if key.split() != [key] or not key.isprintable():
            yield _problem("collection-id", path, line=number, found=f"the id {quote(key)}")
        elif key in texts:
            yield _problem("collection-id", path, line=number, found=f"{quote(key)} again")
        else:
            texts[key] = " ".join(f"{read.title or ''} {read.text}".split())


def _read_rows(
    content: bytes, judgments: dict[str, dict[str, int]], path: str
) -> Iterator[Problem]:
    for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
        row = line.split()
        if not row:
            continue
        if len(row) != len(_HEADING):
            columns = f"{len(row)} columns"
            yield _problem("wrong-columns", path, line=number, found=columns)
            continue
        query, document, written = row
        grade = parse_integer(written.encode())
        if grade is None:
            yield _problem("grade-not-a-number", path, line=number, found=quote(written))
            continue
        before = judgments.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            found = f"{quote(document)} for {quote(query)}: {grade} after {before}"
            yield _problem("conflicting-judgment", path, line=number, found=found)


_EXPECTED = {
    "collection-empty": "at least one line below any heading",
    "collection-id": "an id without white space, once in the file",
    "collection-row": 'an object such as {"_id": "d1", "title": "", "text": "…"}',
    "conflicting-judgment": "one judgment per query and document",
    "grade-not-a-number": "a whole number",
    "wrong-columns": "3 columns: query, document, grade",
}


def _problem(code: str, path: str, *, found: str, line: int | None = None) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected=_EXPECTED[code])
