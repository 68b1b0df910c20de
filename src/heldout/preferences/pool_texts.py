"""The texts of queries and passages, as pools give them: one for each id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heldout.errors import InputError, Problem, quote
from heldout.preferences.pools import Pool

__all__ = ["Texts", "changed_text", "gather_texts"]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts by id.

    Attributes:
        queries: of queries.
        docs: of passages.
    """

    queries: Mapping[str, str]
    docs: Mapping[str, str]


def gather_texts(pools: Iterable[Pool]) -> Texts:
    """The texts of pools, without empty ones; a NUL, which no database takes, becomes U+FFFD.

    Raises:
        InputError: code `changed-text`: two pools give one id two texts.
    """
    asked: dict[str, str] = {}
    docs: dict[str, str] = {}
    problems = []
    for number, pool in enumerate(pools, 1):
        texts = [(asked, pool.query, pool.text)]
        texts += [(docs, candidate.doc, candidate.text) for candidate in pool.candidates]
        for known, name, raw in texts:
            text = raw.replace("\0", "\ufffd")
            if text and known.setdefault(name, text) != text:
                problems.append(changed_text(name, number))
    if problems:
        raise InputError(problems[:_SHOWN], counts={"changed-text": len(problems)})
    return Texts(queries=asked, docs=docs)


def changed_text(name: str, line: int | None = None) -> Problem:
    """The problem of an id with a second text.

    Args:
        name: the id, of a query or passage.
        line: of the pools, where it is known.
    """
    return Problem(
        code="changed-text",
        path="pool.jsonl",
        line=line,
        found=f"another text of {quote(name)} than before",
        expected="one text for each query and passage",
        hint="judgments are of the text that was shown; give another text another id",
    )
