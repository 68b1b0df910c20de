"""The copies of a board's public log that a clone can see, held against each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heldout.board.log.copies import goes_on, newest_copy
from heldout.board.log.events import Entry
from heldout.pipeline.participant.receipts import check_continues
from heldout.store.repository import Repository

__all__ = ["LogCopies", "read_copies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopies:
    """Copies of one public log, each verified by itself.

    Attributes:
        here: the one in the clone.
        remotes: remote -> its own.
    """

    here: Sequence[Entry]
    remotes: Mapping[str, Sequence[Entry]]

    @property
    def newest(self) -> Sequence[Entry]:
        """The one to go by."""
        return newest_copy(self.here, self.remotes.values())

    @property
    def board(self) -> str | None:
        """The remote that is the board: `upstream` where there is one, origin being a fork then."""
        return next((name for name in ("upstream", "origin") if name in self.remotes), None)

    def find_faults(self) -> Iterator[str]:
        """Where the board's copy is not each other one with events added.

        A fork may lack events. The board may not: what it lacks was cut off, for nobody but the
        organisers could have made it.
        """
        if self.board is None:
            return
        yield from check_continues(self.here, self.remotes[self.board])
        for remote in self.remotes.keys() - {self.board}:
            for fault in check_continues(self.remotes[remote], self.remotes[self.board]):
                yield f"{self.board} held against {remote}: {fault}"

    def say_behind(self) -> Iterator[str]:
        """Which copies are behind, and what to do where a fork is taken for the board."""
        if self.board is None:
            return
        log = self.remotes[self.board]
        for remote, copy in self.remotes.items():
            if goes_on(copy, log):
                yield f"{remote} is behind {self.board}: it has {len(copy)} of {len(log)} events"
        if goes_on(log, self.here) and self.board == "origin":
            yield (
                "origin lacks events that are here: if it is a fork of the board that is behind, "
                "the board has to be the remote upstream: git remote add upstream ADDRESS"
            )


def read_copies(repository: Repository) -> LogCopies:
    """The copies of a clone and of its remotes, which are asked.

    Raises:
        StoreError: one of them is damaged.
    """
    return LogCopies(remotes=repository.remote_logs(), here=repository.log())
