"""A folder of questions on disk: what is asked, what people answered, and a key for its pages.

Questions only grow and answers are only added, each on disk before the next page is shown. Several
processes may write: each looks at what is there while it holds the folder's lock.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec

from heldout.errors import InputError, StoreError
from heldout.files.durable import File, Folder
from heldout.ids import Digest
from heldout.judging.campaign.rows import format_rows, parse_rows
from heldout.survivorship.discarded.answerable import SystemTop
from heldout.survivorship.discarded.labels import MadeLabels
from heldout.survivorship.discarded.questions import (
    Answer,
    Form,
    Question,
    parse_answers,
    parse_questions,
)

_PRIVATE = 0o600
_ANSWERS = "answers.jsonl"
_KEY_BYTES = 32
_KEY = re.compile(rb"[0-9a-f]{64}")

Outcome = Literal["saved", "known", "stale"]
"""Of an answer: it was written; the same stands there already; another one came in between."""


class PoolRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a folder's questions were made of.

    Attributes:
        schema: of this record.
        depth: first documents of each system that were pooled.
        seed: of the sample and of the order.
        runs_sha256: system -> digest of its run, as it was read.
    """

    schema: Literal[1] = 1
    depth: int
    seed: int
    runs_sha256: dict[str, Digest]


@dataclass(slots=True)
class QuestionFolder:
    """The files of a folder of questions.

    Attributes:
        path: the folder.
        form: what is asked.
    """

    path: Path
    form: Form
    _writing: Lock = field(default_factory=Lock)
    _asked: tuple[tuple[int, ...], tuple[Question, ...]] | None = None
    _said: tuple[tuple[int, ...], tuple[Answer, ...]] | None = None
    _longest: int = 0  # bytes of whole lines of answers that were there once

    @property
    def files(self) -> Folder:
        """Its files, of which none is reached by a symlink."""
        return Folder(self.path)

    @property
    def place(self) -> File:
        """The file of questions."""
        return self.files.file(f"{self.form.kind}.jsonl")

    @property
    def answered(self) -> File:
        """The file of answers."""
        return self.files.file(_ANSWERS)

    def exists(self) -> bool:
        """Whether it has questions."""
        return self.place.is_file()

    def questions(self) -> tuple[Question, ...]:
        """All questions, in the order in which people see them; read again where the file changed.

        Raises:
            StoreError: there are none.
            InputError: as `parse_questions`.
        """
        if not self.exists():
            raise StoreError(
                f"{self.place} is missing; `heldout survive {self.form.kind}` draws questions"
            )
        version, stored = _version(self.place), self._asked
        if stored is None or stored[0] != version:
            data = self.place.read_bytes()
            stored = self._asked = (version, parse_questions(data, path=str(self.place)))
        return stored[1]

    def answers(self) -> tuple[Answer, ...]:
        """All answers, in the order in which they came; read again where there are others.

        Raises:
            StoreError: there are no questions, or answers that were there are gone.
            InputError: as `parse_questions` and `parse_answers`.
        """
        version, stored = _version(self.answered), self._said
        if stored is None or stored[0] != version:
            # Answers first: one to a question that is added meanwhile is then no stranger's
            longest = self._longest  # before reading: another thread may see more meanwhile
            data = self.files.read_lines(_ANSWERS)
            if len(data) < longest:
                raise StoreError(
                    f"{self.answered} has {len(data):,} bytes and had {longest:,}: answers "
                    "are gone; restore it, or begin another folder if that was meant"
                )
            found = parse_answers(data, self.questions(), self.form, path=str(self.answered))
            stored = self._said = (version, found)
            self._longest = max(self._longest, len(data))
        return stored[1]

    def add(self, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Add questions behind those that are there; all of them.

        Raises:
            InputError: code `repeated-query`: one is there already; and as `parse_questions`.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self._locked():
            before = self.questions() if self.exists() else ()
            known = {one.query for one in before}
            twice = [one.query for one in questions if one.query in known]
            if twice:
                raise InputError.of(
                    "repeated-query",
                    str(self.place),
                    found=f"{twice[0]} is there already",
                    expected="queries that the folder does not have",
                    hint="name another folder, or the --split that it was drawn for",
                )
            data = format_rows((*before, *questions))
            # What could not be read again is not written
            both = parse_questions(data, path=str(self.place))
            self.place.write_whole(data, mode=_PRIVATE)
        return both

    def append(self, answer: Answer) -> Outcome:
        """Write an answer, unless it is there or another one came first.

        A form that is sent twice is written once.

        Args:
            answer: `replaces` says what its annotator had seen.

        Raises:
            StoreError: it could not be written; nothing was.
            InputError: as `answers`.
        """
        try:
            with self._locked():
                return self._append(answer)
        except OSError as error:
            raise StoreError(f"{self.answered}: {error.strerror}") from error

    def key(self) -> bytes:
        """The folder's secret, made at the first call; it signs the addresses of its pages.

        Raises:
            StoreError: what is there is no such secret. Signed with one that is empty or cut,
                addresses could be made by anybody.
        """
        with self._locked():
            if not self.files.exists("key"):
                made = secrets.token_hex(_KEY_BYTES).encode()
                self.files.write_whole("key", made, mode=_PRIVATE)
            key = self.files.find("key")
            if key is None or not _KEY.fullmatch(key):
                place = self.path / "key"
                raise StoreError(f"{place} is no key; remove it, and new addresses are given out")
            return key

    def write_pool(self, tops: Sequence[SystemTop], record: PoolRecord) -> None:
        """Write what systems showed, which annotators do not see, and what was pooled."""
        self.files.write_whole("systems.jsonl", format_rows(tops), mode=_PRIVATE)
        self.files.write_whole("pool.json", _format(record), mode=_PRIVATE)

    def tops(self) -> tuple[SystemTop, ...]:
        """What systems showed.

        Raises:
            InputError: code `bad-row`.
            StoreError: it is missing.
        """
        place = self._need("systems.jsonl")
        return parse_rows(place.read_bytes(), SystemTop, path=str(place))

    def pool(self) -> PoolRecord:
        """What was pooled.

        Raises:
            StoreError: it is missing or broken.
        """
        place = self._need("pool.json")
        try:
            return msgspec.json.decode(place.read_bytes(), type=PoolRecord)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{place} is no record of a pool: {error}") from error

    def write_labels(self, made: Sequence[MadeLabels]) -> tuple[Path, ...]:
        """Write labels and their records to `labels/`, all or none; where the labels lie.

        Raises:
            StoreError: there are others of a name.
        """
        folder = self.files.below("labels")
        records = {f"{one.record.name}.json": _format(one.record) for one in made}
        for name, data in records.items():
            if folder.find(name) not in (None, data):
                raise StoreError(
                    f"{folder.path(name)} is there already, of other labels; nothing was written: "
                    "give --labels another name"
                )
        for one in made:
            folder.write_whole(f"{one.record.name}.qrels", one.qrels, mode=_PRIVATE)
        for name, data in records.items():
            folder.write_whole(name, data, mode=_PRIVATE)
        return tuple(folder.path(f"{one.record.name}.qrels") for one in made)

    def _append(self, answer: Answer) -> Outcome:
        own = [
            one
            for one in self.answers()
            if (one.query, one.annotator) == (answer.query, answer.annotator)
        ]
        if own and _content(own[-1]) == _content(answer):
            return "known"
        if answer.replaces != len(own):
            return "stale"
        self.files.append_line(_ANSWERS, format_rows((answer,)), mode=_PRIVATE)
        return "saved"

    def _need(self, name: str) -> File:
        place = self.files.file(name)
        if not place.is_file():
            raise StoreError(f"{place} is missing; `heldout survive {self.form.kind}` writes it")
        return place

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, of threads and of processes; others wait."""
        with self._writing, self.files.lock("lock", wait=True):
            yield


def _version(file: File) -> tuple[int, ...]:
    """What changes where a file does; nothing where there is none."""
    found = file.folder.stat(file.path)
    if found is None:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _format(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def _content(answer: Answer) -> tuple[str, tuple[str, ...], str]:
    return (answer.choice, answer.passages, answer.note)
