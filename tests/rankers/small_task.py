"""A small collection for the rankers' tests, and random ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.ids import DocId, QueryId, digest_bytes
from heldout.rankers.run import Hit, RankingTask, Run

WORDS = ("open", "file", "read", "close", "the", "buffer", "path", "walk")

TEXTS = {
    "d1": "Open the file at this path and return it, or raise OSError.",
    "d2": "Close the file. A closed file cannot be read or written.",
    "d3": "Read up to size bytes from the buffer and return them; readInto_buffer is faster.",
    "d4": "Walk a directory tree and yield the path of each file.",
    "d5": "...",
    "d6": "Return the sum of the numbers.",
    "é7": "Files, files, files: open, read, close.",
}
ASKED = {"007": "open a file", "7": "read into the buffer", "8": "xylophone", "9": ""}


def small_task(depth: int = 5) -> RankingTask:
    return RankingTask(
        documents={DocId(key): text for key, text in TEXTS.items()},
        queries={QueryId(key): text for key, text in ASKED.items()},
        depth=depth,
    )


def write_collection(folder: Path) -> Path:
    """The texts as a folder; a query without words has no line."""
    for name, texts in (("documents", TEXTS), ("queries", ASKED)):
        rows = "".join(f"{key}\t{text}\n" for key, text in texts.items() if text)
        (folder / f"{name}.tsv").write_text(rows)
    return folder


_text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@st.composite
def tasks(draw: st.DrawFn) -> RankingTask:
    """Tasks of a few words, so that ties are common."""
    documents = draw(st.lists(_text, min_size=1, max_size=8))
    queries = draw(st.lists(_text, min_size=1, max_size=3))
    return RankingTask(
        documents={DocId(f"d{number}"): text for number, text in enumerate(documents)},
        queries={QueryId(f"q{number}"): text for number, text in enumerate(queries)},
        depth=draw(st.integers(1, 10)),
    )


def run_of(rankings: dict[str, list[tuple[str, float]]]) -> Run:
    return {
        QueryId(query): [Hit(DocId(document), score) for document, score in hits]
        for query, hits in rankings.items()
    }


class LetterEncoder:
    """An encoder: which of a, b and c a text has; vectors of length one."""

    digest = digest_bytes(b"letters")

    def __init__(self) -> None:
        self.encoded = 0

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)
        lengths = np.linalg.norm(counts, axis=1, keepdims=True)
        return np.asarray(counts / np.where(lengths > 0, lengths, 1), np.float32)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += len(texts)
        return self.encode_queries(texts)
