"""Files of the form of MS MARCO QnA v2.1, with queries of our own."""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["COLUMNS", "as_columns", "pack", "query"]

COLUMNS = ("answers", "passages", "query", "query_id", "query_type")
"""As the published files have them."""


def query(
    query_id: object,
    selected: Sequence[int],
    *,
    texts: Sequence[str] | None = None,
    answers: Sequence[str] = ("yes",),
) -> dict[str, Any]:
    """A query that was shown passages with these marks."""
    own = texts or [f"passage {place} of {query_id}" for place in range(1, len(selected) + 1)]
    return {
        "answers": list(answers) if any(selected) else ["No Answer Present."],
        "passages": [
            {"is_selected": mark, "passage_text": text, "url": f"http://a.example/{place}"}
            for place, (mark, text) in enumerate(zip(selected, own, strict=True))
        ],
        "query": f"what is {query_id}",
        "query_id": query_id,
        "query_type": "DESCRIPTION",
    }


def as_columns(
    queries: Sequence[Mapping[str, Any]], columns: Sequence[str] = COLUMNS
) -> dict[str, dict[str, Any]]:
    """One object of columns, as pandas writes a table."""
    return {
        column: {str(row): one[column] for row, one in enumerate(queries)} for column in columns
    }


def pack(value: object, *, compressed: bool = False) -> bytes:
    """The bytes of a JSON file."""
    plain = json.dumps(value, ensure_ascii=False).encode()
    return gzip.compress(plain, 1) if compressed else plain
