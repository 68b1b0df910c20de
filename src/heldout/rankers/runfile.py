"""Runs as files: the MS MARCO form and the TREC form, plain or compressed."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from heldout.rankers.files import write_whole
from heldout.rankers.run import Run

__all__ = ["RunForm", "format_run", "write_run"]

RunForm = Literal["msmarco", "trec"]

_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    # No time of day in the archive: equal runs give equal bytes.
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
}


def format_run(run: Run, *, form: RunForm, tag: str) -> bytes:
    """A run as text.

    Args:
        run: rankings, best first; ids without white space.
        form: `msmarco` (query, document, rank, divided by tabs) or `trec` (query, Q0,
            document, rank, score, tag, divided by spaces). Scores have nine significant
            digits, which is enough to read the same float32 again.
        tag: name of the run, without white space; only the TREC form holds it.

    Raises:
        ValueError: the tag is empty or has white space.
    """
    if tag.split() != [tag]:
        raise ValueError("the tag of a run is one word")
    rows = (
        (query, hit.document, rank, hit.score)
        for query, hits in run.items()
        for rank, hit in enumerate(hits, 1)
    )
    if form == "msmarco":
        lines = (f"{query}\t{document}\t{rank}\n" for query, document, rank, _ in rows)
    else:
        lines = (f"{query} Q0 {doc} {rank} {score:.9g} {tag}\n" for query, doc, rank, score in rows)
    return "".join(lines).encode()


def write_run(run: Run, path: Path, *, form: RunForm, tag: str) -> None:
    """Write a run file whole or not at all; `.gz` and `.bz2` in its name compress it.

    Args:
        run: what to write.
        path: replaced where it exists; its folder is made where it is missing.
        form: as in `format_run`.
        tag: as in `format_run`.

    Raises:
        OSError: the file cannot be written; one of this name that was there is kept.
        ValueError: as in `format_run`.
    """
    content = format_run(run, form=form, tag=tag)
    pack = _PACKERS.get(path.suffix)
    write_whole(path, pack(content) if pack else content)
