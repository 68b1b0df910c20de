"""Annotations as JSON lines, one query a line, whatever the form of a line is."""

from collections.abc import Callable
from typing import BinaryIO

import msgspec

from heldout.errors import Problem
from heldout.ids import QueryId
from heldout.survivorship.annotations import Annotation
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines

__all__ = ["LIMITS", "RecordLog", "id_fault", "read_record_lines", "shown_fault"]

LIMITS = Limits(compressed_bytes=1 << 35, bytes=1 << 37, line_bytes=1 << 26, ratio=1000)
"""For files of annotations, which are the reader's own: 128 GiB of text, a record of 64 MiB."""

Fault = tuple[str, str, str]
"""Code, what was found, what is expected."""


class RecordLog:
    """Collects records and what is wrong with them; a query is annotated once.

    Attributes:
        records: in the order added.
        problems: of all that were refused.
    """

    def __init__(self) -> None:
        self.records: list[Annotation] = []
        self.problems = ProblemLog(LIMITS.problems)
        self._queries: set[QueryId] = set()

    def add(self, record: Annotation, *, path: str, line: int | None = None) -> None:
        """Add a record unless its query was added before, or cannot be an id.

        Args:
            record: to be added.
            path: the file, and the field where it has no lines.
            line: of the file.
        """
        fault = id_fault(record.query)
        if record.query in self._queries:
            fault = ("repeated-query", f"query {show(record.query)} again", "each query once")
        self._queries.add(record.query)
        if fault is None:
            self.records.append(record)
        else:
            self.refuse(fault, path=path, line=line)

    def refuse(self, fault: Fault, *, path: str, line: int | None = None, hint: str = "") -> None:
        """Add a problem."""
        code, found, expected = fault
        self.problems.add(
            Problem(code=code, path=path, line=line, found=found, expected=expected, hint=hint)
        )


def read_record_lines(
    source: BinaryIO,
    *,
    path: str,
    make: Callable[[bytes], Annotation | Fault | None],
    expected: str,
) -> RecordLog:
    """Read a file to its end: plain, gzip, bzip2 or zstd; empty lines are skipped.

    Args:
        source: its bytes.
        path: its name for messages.
        make: the record of a line, or what is wrong with it; `None` for a line that has none. May
            raise what msgspec raises.
        expected: what a line has, for messages.

    Raises:
        InputError: code `bad-annotation`: lines that msgspec refuses; `no-query-id`,
            `repeated-query`, what `make` finds, and those of `TextReader`.
    """
    log = RecordLog()
    with TextReader(source, path=path, limits=LIMITS) as reader:
        for number, line in read_lines(reader):
            if not line.strip():
                continue
            try:
                made = make(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                fault = ("bad-annotation", show(line), expected)
                log.refuse(fault, path=path, line=number, hint=str(error))
                continue
            if isinstance(made, Annotation):
                log.add(made, path=path, line=number)
            elif made is not None:
                log.refuse(made, path=path, line=number)
    log.problems.extend(reader.notes)
    if not log.records and not log.problems.errors:
        log.refuse(("empty-file", "no annotation", "at least one"), path=path)
    log.problems.raise_errors()
    return log


def id_fault(name: str) -> Fault | None:
    """Why an id cannot stand in qrels; `None` where it can."""
    if name.isprintable() and name.split() == [name]:
        return None
    return "no-query-id", f"id {show(name)}", "an id of visible characters, without blanks"


def shown_fault(record: Annotation, *, depth: int, open_ended: bool = False) -> Fault | None:
    """Why a record contradicts itself; `None` where it does not.

    Args:
        record: of one query.
        depth: deepest place of the annotations.
        open_ended: whether `depth` stands for all places below it too.

    Returns:
        Code `repeated-document`: shown twice; `not-shown`: selected, and not among those shown;
        `bad-place`: selected before the first place, below the last, or above where it was shown.
    """
    shown = {doc: place for place, doc in enumerate(record.shown, 1)}
    if len(shown) < len(record.shown):
        twice = next(doc for at, doc in enumerate(record.shown, 1) if shown[doc] != at)
        return "repeated-document", f"{show(twice)} twice", "each document shown once"
    for doc, place in record.selected.items():
        if shown and doc not in shown:
            expected = f"one of the {len(shown)} that were shown"
            return "not-shown", f"{show(doc)} selected", expected
        at = shown.get(doc, 1)
        least = min(at, depth) if open_ended else at
        if not least <= place <= depth:
            found = f"{show(doc)} selected at place {place}"
            if at > depth and not open_ended:
                return "bad-place", f"{found}, shown at {at}", f"a place down to depth {depth}"
            return "bad-place", found, f"a place from {least} to {depth}"
    return None
