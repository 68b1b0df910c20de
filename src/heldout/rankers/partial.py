"""Scores of a run that is being made, query by query on disk: a killed run goes on."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from heldout.errors import InputError, Problem, StoreError
from heldout.ids import Digest, QueryId
from heldout.rankers.run import Run, Task

__all__ = ["PartialScores", "digest_reranking", "open_partial"]


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """First line of the file."""

    reranking: str


_HEAD_START = b'{"reranking":"'


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A query that is done."""

    query: str
    scores: tuple[float, ...]


class PartialScores:
    """The file of a run that is being made; made by `open_partial`."""

    def __init__(self, path: Path, found: dict[str, tuple[float, ...]]) -> None:
        self.path = path
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def find(self, query: QueryId) -> Sequence[float] | None:
        """Scores of a query that an earlier run has done."""
        return self._found.get(query)

    def add(self, query: QueryId, scores: Sequence[float]) -> None:
        """Append a query, and wait until it is on disk.

        Raises:
            StoreError: it cannot be written.
        """
        line = msgspec.json.encode(_Line(query=query, scores=tuple(scores)))
        _append(self.path, line + b"\n")

    def remove(self) -> None:
        """Remove the file, once the run itself is written."""
        self.path.unlink(missing_ok=True)


def open_partial(path: Path, digest: Digest, *, fresh: bool = False) -> PartialScores:
    """Go on with the file of a killed run, or begin one.

    A last line that was not finished is cut off: its query is scored again. A file of other
    settings in which no query is finished is begun anew: there is nothing in it to lose.

    Args:
        path: the file.
        digest: of the settings and inputs, from `digest_reranking`.
        fresh: begin anew, whatever is there.

    Raises:
        InputError: code `rerank-partial`: the file is of other settings or inputs, or is no such
            file.
        StoreError: it cannot be read or written.
    """
    try:
        content = b"" if fresh or not path.exists() else path.read_bytes()
        whole, found = _read(content, path, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate(whole)
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror or error}") from error
    if not whole:
        _append(path, msgspec.json.encode(_Head(reranking=digest)) + b"\n")
    return PartialScores(path, found)


def digest_reranking(task: Task, first: Run, *, depth: int, scorer: str) -> Digest:
    """SHA-256 of all that the scores of a re-ranking depend on.

    Args:
        task: the texts.
        first: the run of the first stage.
        depth: documents per query that are scored.
        scorer: what says which scorer it is: its digest, and how passages are cut.
    """
    total = hashlib.sha256(msgspec.json.encode([scorer, depth]))
    for query, text in task.queries.items():
        hits = first.get(query, ())[:depth]
        texts = [task.documents.get(hit.document, "") for hit in hits]
        total.update(msgspec.json.encode([query, text, [hit.document for hit in hits], texts]))
    return Digest(total.hexdigest())


def _read(content: bytes, path: Path, digest: Digest) -> tuple[int, dict[str, tuple[float, ...]]]:
    """How many bytes are whole, and the scores in them."""
    head, newline, rest = content.partition(b"\n")
    if not newline and _HEAD_START.startswith(head[: len(_HEAD_START)]):
        return 0, {}
    if not newline or head != msgspec.json.encode(_Head(reranking=digest)):
        if _is_head(head) and b"\n" not in rest:
            return 0, {}
        raise _refusal(path)
    whole, found = len(head) + 1, {}
    for line in rest.split(b"\n")[:-1]:
        try:
            done = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            break
        found[done.query] = done.scores
        whole += len(line) + 1
    return whole, found


def _is_head(line: bytes) -> bool:
    """Whether a line is the head of such a file, of whatever settings."""
    try:
        return msgspec.json.encode(msgspec.json.decode(line, type=_Head)) == line
    except msgspec.DecodeError:
        return False


def _refusal(path: Path) -> InputError:
    return InputError(
        Problem(
            code="rerank-partial",
            path=str(path),
            line=1,
            found="scores of other settings, texts or weights, or another file",
            expected="scores that this very command has begun",
            hint="give --fresh to begin anew, or another --out",
        )
    )


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
