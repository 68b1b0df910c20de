"""A campaign of preference judging as a directory: its settings, pools, tests, tasks, judgments.

Files are whole or absent; tasks and judgments only grow. The directory is the organiser's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from heldout.errors import InputError, StoreError
from heldout.files.durable import Folder
from heldout.judging.campaign.judgments import Judgment, format_judgments, parse_judgments
from heldout.judging.campaign.pools import Pool, pool_check
from heldout.judging.campaign.rows import Check, Item, Task, format_rows, parse_rows, task_check
from heldout.judging.campaign.settings import Kind, Settings, new_campaign, parse_campaign
from heldout.options import Opt

_PRIVATE = 0o600
_DATABASE = "campaign.sqlite"
Row = TypeVar("Row", bound=msgspec.Struct)

CampaignPath = Annotated[Path, Opt(argument=True, path="folder", metavar="[CAMPAIGN]")]
"""Directory of a campaign; its default is the current one, `Path()`."""


@dataclass(frozen=True, slots=True)
class CampaignFolder:
    """The files of a campaign.

    Attributes:
        path: the directory.
    """

    path: Path

    @property
    def files(self) -> Folder:
        """Its files, of which none is reached by a symlink."""
        return Folder(self.path)

    @property
    def database(self) -> Path:
        """Where its database lies if no other is named.

        Raises:
            StoreError: it is a symlink.
        """
        self.files.exists(_DATABASE)  # SQLite opens it by its path, and would follow one
        return self.path / _DATABASE

    @property
    def labels(self) -> Path:
        """Where its label versions lie."""
        return self.path / "labels"

    def settings(self, *, kind: Kind | None = "preference") -> Settings:
        """Return the settings.

        Args:
            kind: what has to be asked; `None` for any.

        Raises:
            StoreError: there is no campaign.toml, or something else is asked.
            InputError: as `parse_campaign`.
        """
        path = self.path / "campaign.toml"
        found = parse_campaign(self._need("campaign.toml"), path=str(path))
        if kind not in (None, found.kind):
            raise StoreError(f"{path} has kind = {found.kind!r}; this is for campaigns of {kind!r}")
        return found

    def create(self, name: str, kind: Kind = "preference") -> bool:
        """Write the settings of a new campaign unless there are some; whether any was written."""
        if self.files.exists("campaign.toml"):
            return False
        return self.files.write_whole("campaign.toml", new_campaign(name, kind), mode=_PRIVATE)

    def pools(self) -> tuple[Pool, ...]:
        """The pools; raises as `parse_rows` and `pool_check`, `StoreError` where it is missing."""
        return self._read("pool.jsonl", Pool, pool_check())

    def challengers(self) -> tuple[Pool, ...]:
        """The documents of later runs that the pools lack; none before `heldout prefer maintain`.

        Raises:
            InputError: as `parse_rows` and `pool_check`.
        """
        if not self.has("challengers.jsonl"):
            return ()
        return self._read("challengers.jsonl", Pool, pool_check())

    def tests(self) -> tuple[Item, ...]:
        """The tests; a row without an answer, or with another than its passages, is an error.

        Raises:
            InputError: code `bad-test`; and as `parse_rows`.
        """
        tests = self._read("tests.jsonl", Item)
        for number, test in enumerate(tests, 1):
            if test.left == test.right or test.answer not in (test.left, test.right):
                path = str(self.path / "tests.jsonl")
                found = f"{test.left} against {test.right}, answer {test.answer}"
                raise InputError.of("bad-test", path, found, line=number)
        return tests

    def tasks(self) -> tuple[Task, ...]:
        """The tasks of all batches; none before they are drawn.

        Raises:
            InputError: as `parse_rows` and `task_check`.
        """
        return self._read("tasks.jsonl", Task, task_check()) if self.has("tasks.jsonl") else ()

    def judgments(self) -> tuple[Judgment, ...]:
        """Return what was exported or taken in; none before that."""
        data = self.files.find("judgments.jsonl")
        return parse_judgments(data, path=str(self.path / "judgments.jsonl")) if data else ()

    def has(self, name: str) -> bool:
        """Check whether a file of this name is there."""
        return self.files.is_file(name)

    def write_pools(self, pools: Sequence[Pool]) -> None:
        """Write the pools."""
        self._write("pool.jsonl", pools)

    def write_challengers(self, challengers: Sequence[Pool]) -> None:
        """Write the documents of later runs."""
        self._write("challengers.jsonl", challengers)

    def write_tests(self, tests: Sequence[Item]) -> None:
        """Write the tests."""
        self._write("tests.jsonl", tests)

    def write_tasks(self, tasks: Sequence[Task]) -> None:
        """Write the tasks of all batches."""
        self._write("tasks.jsonl", tasks)

    def write_judgments(self, judgments: Sequence[Judgment]) -> None:
        """Write all judgments."""
        self.files.write_whole("judgments.jsonl", format_judgments(judgments), mode=_PRIVATE)

    def _read(self, name: str, kind: type[Row], check: Check[Row] | None = None) -> tuple[Row, ...]:
        return parse_rows(self._need(name), kind, path=str(self.path / name), check=check)

    def _need(self, name: str) -> bytes:
        data = self.files.find(name)
        if data is None:
            path = self.path / name
            raise StoreError(f"{path} is missing; `heldout prefer pool` makes a campaign")
        return data

    def _write(self, name: str, rows: Sequence[msgspec.Struct]) -> None:
        self.files.write_whole(name, format_rows(rows), mode=_PRIVATE)
