"""The folder of a training experiment: a record of what was asked, and a folder for each cell.

    FOLDER/experiment.json            what was asked last
    FOLDER/learning-curve.json        the first curve, where one was asked for
    FOLDER/first/TEST.run.gz          the run that is re-ranked
    FOLDER/cells/CELL/state.pt        a training that is not over
    FOLDER/cells/CELL/cell.json       what became of it, and of which runs
    FOLDER/cells/CELL/TEST.run.gz     the test set re-ranked
    FOLDER/cells/CELL/model/          the trained model, where it is kept

Several processes may work on the same folder: each takes a cell that nobody else is at.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from heldout.errors import StoreError
from heldout.ids import Digest, digest_bytes
from heldout.rankers.fine_tuning import CURVE_FILE, LearningCurve
from heldout.rankers.run import Run
from heldout.rankers.runfile import write_run
from heldout.store.files import ASIDE, File, Folder
from heldout.survivorship.training.experiment import CellRecord, RunRecord

__all__ = ["CellFolder", "TrainingFolder"]


@dataclass(frozen=True, slots=True)
class CellFolder:
    """The files of one cell.

    Attributes:
        path: its folder.
    """

    path: Path

    @property
    def state(self) -> Path:
        """Where the state of its training is kept."""
        return self.path / "state.pt"

    @property
    def model(self) -> Path:
        """Where the trained model is kept, if it is."""
        return self.path / "model"

    def run(self, test: str) -> Path:
        """The run file of a test set."""
        return self.path / f"{test}.run.gz"

    def record(self) -> CellRecord | None:
        """What became of it; `None` where it is not trained.

        Raises:
            StoreError: the record cannot be read.
        """
        file = Folder(self.path).file("cell.json")
        try:
            data = file.find()
            return None if data is None else msgspec.json.decode(data, type=CellRecord)
        except (msgspec.DecodeError, OSError) as error:
            raise StoreError(f"{file} cannot be read: {error}; remove its folder") from error

    def write_record(self, record: CellRecord) -> None:
        """Store what became of it.

        Raises:
            StoreError: it cannot be written.
        """
        data = msgspec.json.format(msgspec.json.encode(record), indent=2)
        _write_whole(Folder(self.path).file("cell.json"), data + b"\n")

    def write_run(self, test: str, run: Run, record: CellRecord, *, inputs: Digest) -> CellRecord:
        """Write the run of a test set, then say so in the record.

        Args:
            test: name of the test set.
            run: to write.
            record: of the cell.
            inputs: what the run was made of, `input_digest`.

        Returns:
            The record with it.
        """
        path = self.run(test)
        _write_run(run, path, tag=self.path.name)
        written = RunRecord(file=digest_bytes(path.read_bytes()), inputs=inputs)
        changed = msgspec.structs.replace(record, runs=record.runs | {test: written})
        self.write_record(changed)
        return changed

    def has_run(self, test: str, record: CellRecord, *, inputs: Digest) -> bool:
        """Whether the run of a test set is done.

        Args:
            test: name of the test set.
            record: of the cell.
            inputs: what the run is to be made of, `input_digest`.

        Raises:
            StoreError: it was made of something else.
        """
        found = record.runs.get(test)
        if found is not None and found.inputs != inputs:
            raise StoreError(
                f"{self.run(test)} was computed with another first run, depth or passage, or other "
                f"texts; take another folder, or remove {self.path}"
            )
        return found is not None

    def check_run(self, test: str, record: CellRecord, *, inputs: Digest) -> Path:
        """The run file of a test set, as it was written.

        Args:
            test: name of the test set.
            record: of the cell.
            inputs: what the run is to be made of, `input_digest`.

        Raises:
            StoreError: it is missing or changed, or was made of something else.
        """
        known = self.has_run(test, record, inputs=inputs)
        path = self.run(test)
        there = known and path.is_file()
        if not there or digest_bytes(path.read_bytes()) != record.runs[test].file:
            raise StoreError(f"{path} is not as it was written; remove {self.path}, and call again")
        return path

    def keep_model(self, save: Callable[[Path], None]) -> None:
        """Keep the trained model; a folder of this name is whole.

        Args:
            save: writes the model into a folder.

        Raises:
            StoreError: it cannot be written.
        """
        aside = Path(tempfile.mkdtemp(dir=self.path, prefix=ASIDE))
        try:
            save(aside)
            aside.chmod(0o755)
            aside.replace(self.model)
        # Each library that writes weights has its own exception for a full disk.
        except Exception as error:
            raise StoreError(f"{self.model} cannot be written: {error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Work on the cell, where nobody else does.

        Yields:
            Whether it is ours; if not, another process is at it.
        """
        try:
            lock = Folder(self.path).lock(".lock")
            lock.__enter__()
        except StoreError:
            yield False
            return
        try:
            yield True
        finally:
            lock.__exit__(None, None, None)


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of an experiment.

    Attributes:
        root: where it is.
    """

    root: Path

    def cell(self, name: str) -> CellFolder:
        """The folder of a cell, which may not be there yet."""
        return CellFolder(self.root / "cells" / name)

    def first(self, test: str) -> Path:
        """The run of a test set before re-ranking."""
        return self.root / "first" / f"{test}.run.gz"

    def write_first(self, test: str, run: Run) -> None:
        """Keep the run that is re-ranked, for whoever looks later."""
        _write_run(run, self.first(test), tag="first")

    def describe(self, value: Mapping[str, Any]) -> None:
        """Write down what was asked."""
        text = json.dumps(value, indent=2, allow_nan=False) + "\n"
        _write_whole(Folder(self.root).file("experiment.json"), text.encode())

    def keep_curve(self, curve: LearningCurve) -> None:
        """Keep a learning curve where `heldout rank` reads it."""
        data = msgspec.json.format(msgspec.json.encode(curve), indent=2)
        _write_whole(Folder(self.root).file(CURVE_FILE), data + b"\n")


def _write_whole(file: File, data: bytes) -> None:
    try:
        file.write_whole(data)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}") from error


def _write_run(run: Run, path: Path, *, tag: str) -> None:
    try:
        write_run(run, path, form="trec", tag=tag)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
