"""A campaign that asks about discarded queries: what is asked, and what people answered."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from heldout.errors import InputError, StoreError
from heldout.ids import Digest
from heldout.judging.campaign import files, judgments
from heldout.judging.campaign.pools import Pool, pool_check
from heldout.judging.campaign.questions import QuestionForm, find_answer_fault
from heldout.judging.campaign.rows import format_rows, parse_rows
from heldout.survivorship.discarded import answerable, judging
from heldout.trec.text import show

_PRIVATE = 0o600


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


@dataclass(frozen=True, slots=True)
class QuestionFolder(files.CampaignFolder):
    """The files of such a campaign.

    Attributes:
        path: the directory.
        form: what is asked.
    """

    form: QuestionForm

    def exists(self) -> bool:
        """Return whether it has questions."""
        return self.has("pool.jsonl")

    def questions(self) -> tuple[Pool, ...]:
        """Return all questions, in the order in which they were drawn.

        Raises:
            StoreError: there are none, or something else is asked.
            InputError: as `pools`.
        """
        kind = self.form.kind
        if not self.exists():
            raise StoreError(
                f"{self.path} has no questions; `heldout survive {kind}` draws questions"
            )
        self.settings(kind=kind)
        return self.pools()

    def answers(self) -> tuple[judgments.Judgment, ...]:
        """Return all answers that were exported, in the order in which they came.

        Raises:
            StoreError: there are no questions.
            InputError: as `judgments`; code `bad-answer`: one fits no question or no choice.
        """
        shown = {one.query: {doc.doc for doc in one.candidates} for one in self.questions()}
        found = self.judgments()
        for number, one in enumerate(found, 1):
            if fault := self._find_fault(one, shown.get(one.query)):
                wrong = f"{show(one.query)} by {show(one.worker)}: {fault}"
                path, kind = str(self.path / "judgments.jsonl"), self.form.kind
                raise InputError.of("bad-answer", path, wrong, kind=kind, line=number)
        return found

    def _find_fault(self, given: judgments.Judgment, docs: Collection[str] | None) -> str:
        if docs is None or given.left:
            return "no question of this campaign"
        if not set(given.ticked) <= set(docs):
            return "passages that it was not shown with"
        if given.choice is None:
            return ""
        return find_answer_fault(self.form, given.choice, given.ticked)

    def add(self, questions: Sequence[Pool]) -> tuple[Pool, ...]:
        """Add questions behind those that are there; return all of them.

        Raises:
            StoreError: something else is asked.
            InputError: code `repeated-query`: one is there already.
        """
        before = self.questions() if self.exists() else ()
        known = {one.query for one in before}
        twice = [one.query for one in questions if one.query in known]
        if twice:
            raise InputError.of(
                "repeated-query",
                str(self.path / "pool.jsonl"),
                found=f"{twice[0]} is there already",
                expected="queries that the campaign does not have",
                hint="name another folder, or the --split that it was drawn for",
            )
        both = (*before, *questions)
        # What could not be read again is not written
        parse_rows(format_rows(both), Pool, path=str(self.path / "pool.jsonl"), check=pool_check())
        self.path.mkdir(parents=True, exist_ok=True)
        self.create(self.path.resolve().name, self.form.kind)
        self.write_pools(both)
        return both

    def write_pool(self, tops: Sequence[answerable.SystemTop], record: PoolRecord) -> None:
        """Write what systems showed, which annotators do not see, and what was pooled."""
        self.files.write_whole("systems.jsonl", format_rows(tops), mode=_PRIVATE)
        self.files.write_whole("pool.json", _format(record), mode=_PRIVATE)

    def tops(self) -> tuple[answerable.SystemTop, ...]:
        """Return what systems showed.

        Raises:
            InputError: code `bad-row`.
            StoreError: it is missing.
        """
        return self._read("systems.jsonl", answerable.SystemTop)

    def pool(self) -> PoolRecord:
        """Return what was pooled.

        Raises:
            StoreError: it is missing or broken.
        """
        data = self._need("pool.json")
        try:
            return msgspec.json.decode(data, type=PoolRecord)
        except msgspec.MsgspecError as error:
            path = self.path / "pool.json"
            raise StoreError(f"{path} is no record of a pool: {error}") from error

    def write_labels(self, made: judging.MadeLabels) -> Path:
        """Write labels and their record to `labels/`; return where the labels lie.

        Raises:
            StoreError: there are others of the name.
        """
        folder, name = self.files.below("labels"), made.record["name"]
        record = _format(made.record)
        if folder.find(f"{name}.json") not in (None, record):
            raise StoreError(
                f"{folder.path(name)}.json is there already, of other labels; nothing was "
                "written: give --labels another name"
            )
        folder.write_whole(f"{name}.qrels", made.qrels, mode=_PRIVATE)
        folder.write_whole(f"{name}.json", record, mode=_PRIVATE)
        return folder.path(f"{name}.qrels")


def _format(record: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
