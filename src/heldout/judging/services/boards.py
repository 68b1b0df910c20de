"""The published runs of a board, as judging needs them: to pool, to label, to report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TypeVar

from heldout.errors import StoreError
from heldout.options import Opt
from heldout.progress_bar import SILENT, Progress
from heldout.trec.orders import Order
from heldout.trec.tops import RunPositions, Tops, read_positions, read_tops

if TYPE_CHECKING:
    from heldout.board.scores.session import Session
    from heldout.board.scores.sets import SetData

_DEPTH = 2
_Made = TypeVar("_Made")


QuerySet = Annotated[
    str | None,
    Opt("Query set of the board [the set that ranks].", names=("--set",), metavar="NAME"),
]
"""`--set`; its default is `None`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSource:
    """The published runs of a board, instead of files."""

    board: Annotated[
        Path | None,
        Opt(
            "Board whose published runs, queries and labels are read instead of files.",
            metavar="DIR",
            path="folder",
        ),
    ] = None
    vault: Annotated[
        Path | None,
        Opt(
            "Vault of the board [or HELDOUT_VAULT].",
            env="HELDOUT_VAULT",
            metavar="DIR",
            path="folder",
        ),
    ] = None
    query_set: QuerySet = None
    now: Annotated[
        datetime | None, Opt("Pretend that it is this time (UTC).", metavar="ISO8601")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSet:
    """A query set of a board that is only looked at.

    Attributes:
        session: at the board.
        name: of the set.
        data: its queries and labels.
    """

    session: "Session"
    name: str
    data: "SetData"

    def read_tops(self, *, depth: int, progress: Progress = SILENT) -> Mapping[str, Tops]:
        """The first documents of every published run, by its name."""
        return self._read(
            lambda run, path, order: read_tops(run, path=path, depth=depth, order=order), progress
        )

    def read_runs(
        self, documents: Mapping[str, set[str]], *, progress: Progress = SILENT
    ) -> "ScoredRuns":
        """Return what labels and reports need of every published run.

        Args:
            documents: query -> those that scores depend on.
            progress: counts the entries.
        """

        def read(run: BinaryIO, path: str, order: Order) -> tuple[Tops, RunPositions]:
            tops = read_tops(run, path=path, depth=_DEPTH, order=order)
            run.seek(0)
            return tops, read_positions(run, path=path, documents=documents, order=order)

        found = self._read(read, progress)
        return ScoredRuns(
            tops={run: tops for run, (tops, _) in found.items()},
            ranks={run: ranks for run, (_, ranks) in found.items()},
        )

    def _read(
        self, read: Callable[[BinaryIO, str, Order], _Made], progress: Progress
    ) -> Mapping[str, _Made]:
        from heldout.board.scores.rescoring import (  # noqa: PLC0415 - the board is heavy
            list_published,
            read_published,
        )

        entries = list_published(self.session)
        with progress.steps("opening runs", len(entries)) as done:
            return read_published(self.session, self.name, entries, read, done=done)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRuns:
    """Runs as labels and reports need them.

    Attributes:
        tops: run -> query -> its first two documents.
        ranks: run -> where it has the documents that scores depend on.
    """

    tops: Mapping[str, Tops]
    ranks: Mapping[str, RunPositions]


def open_set(source: PublishedSource, *, now: datetime) -> PublishedSet:
    """Look at a board's query set; nothing is written.

    Args:
        source: names the board.
        now: the time, UTC, unless the source names another; says which season's set ranks.

    Raises:
        StoreError: no board or vault there.
        InputError: code `unknown-set`.
    """
    from heldout.board.scores.rescoring import check_set  # noqa: PLC0415 - the board is heavy
    from heldout.board.scores.session import look_at  # noqa: PLC0415 - the same
    from heldout.board.scores.sets import load_sets  # noqa: PLC0415 - the same
    from heldout.board.store.repository import find_board  # noqa: PLC0415 - the same

    repository = find_board(source.board or Path())
    if source.vault is None:
        raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
    session = look_at(repository, source.vault.absolute(), now=source.now or now)
    spec = session.spec()
    name = source.query_set or spec.view(spec.on(session.now.date()).primary).set
    check_set(spec, name)
    data = load_sets(session.repository, spec, vault=session.vault)[name]
    return PublishedSet(session=session, name=name, data=data)
