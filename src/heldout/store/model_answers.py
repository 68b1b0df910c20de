"""The rows of model judges on disk, and the work of getting more: many calls at once.

A row is on disk before it counts. Whatever stops the work, the rows so far stay, and the next call
goes on from them.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import get_args

from heldout.errors import StoreError
from heldout.preferences.model_judges import Ask, Call, Fault, ModelJudge, row_of
from heldout.preferences.model_judgments import CallFailure, ModelJudgment, parse_model_judgments
from heldout.preferences.rows import format_rows
from heldout.store.files import Folder

__all__ = ["ROWS", "ask_model", "open_rows", "read_rows"]

ROWS = "model-judgments.jsonl"
"""The file in the campaign's directory; it only grows."""

_PRIVATE = 0o600
_IN_A_ROW = 20
_Answered = tuple[ModelJudgment, bool]


def read_rows(folder: Path) -> tuple[ModelJudgment, ...]:
    """The rows of a campaign; none before the first. A row that a crash cut off is left out.

    Raises:
        InputError: as `parse_model_judgments`.
    """
    return parse_model_judgments(Folder(folder).read_lines(ROWS), path=str(folder / ROWS))


@contextmanager
def open_rows(folder: Path) -> Iterator[Callable[[ModelJudgment], None]]:
    """Append rows, each on disk when the call returns; one process at a time.

    Yields:
        To be called with each row.

    Raises:
        StoreError: another process appends; or the disk does not take it.
    """
    path, files = folder / ROWS, Folder(folder)
    with files.lock(f".{ROWS}.lock"), files.change(ROWS, mode=_PRIVATE) as file:
        handle = file.fileno()
        os.ftruncate(handle, len(files.read_lines(ROWS)))

        def append(row: ModelJudgment) -> None:
            before = os.lseek(handle, 0, os.SEEK_END)
            try:
                _write(handle, format_rows([row]))
            except OSError as error:
                os.ftruncate(handle, before)
                raise StoreError(f"{path} cannot be written: {error.strerror}") from error

        yield append


def ask_model(
    calls: Sequence[Call],
    judge: ModelJudge,
    ask: Ask,
    *,
    concurrency: int,
    record: Callable[[ModelJudgment], None],
) -> Generator[ModelJudgment]:
    """Ask about each call, several at once, and record each row as it comes.

    Args:
        calls: what to ask.
        judge: who is asked.
        ask: asks; called from several threads.
        concurrency: calls at once, >= 1.
        record: stores a row, as `open_rows` gives it; called from the caller's thread alone.

    Yields:
        Each row, when it is recorded.

    Raises:
        StoreError: every other call would fail as one did, or twenty in a row failed. Their rows
            are recorded.
    """
    rest, waiting = iter(calls), set[Future[_Answered]]()
    failed, reason = 0, ""
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        try:
            while True:
                room = 0 if reason else concurrency - len(waiting)
                waiting |= {pool.submit(_answer, call, judge, ask) for call in islice(rest, room)}
                if not waiting:
                    break
                one = next(iter(wait(waiting, return_when=FIRST_COMPLETED).done))
                waiting.remove(one)
                row, for_all = one.result()
                record(row)
                failed = failed + 1 if row.failure in get_args(CallFailure) else 0
                reason = row.detail if for_all or failed >= _IN_A_ROW else reason
                yield row
        finally:
            for one in waiting:  # they are asked already, whatever stops the work
                record(one.result()[0])
    if reason:
        raise StoreError(
            f"the endpoint fails: {reason}; what was answered is kept, "
            "and the same command goes on from there"
        )


def _answer(call: Call, judge: ModelJudge, ask: Ask) -> _Answered:
    """The row, and whether every other call would fail alike."""
    asked = ask(call.messages(judge.instruction))
    for_all = isinstance(asked.outcome, Fault) and asked.outcome.for_all
    return row_of(call, judge, asked), for_all


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)
