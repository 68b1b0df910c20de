"""The copies of a board's public log that a clone can see, and the rules that they give.

Rules hold by the log alone. board.toml of a clone is what git brought: whoever may push to the
board can change it, and no event says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from heldout.board.log.copies import check_continues, goes_on, newest_copy
from heldout.board.log.events import Entry
from heldout.board.log.history import read_history
from heldout.board.rules.fixed_rules import (
    Difference,
    list_changed_keys,
    list_changed_terms,
    list_differences,
)
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec, refuse_spec
from heldout.errors import InputError, Problem, StoreError
from heldout.pipeline.query_sets.public_files import check_unedited
from heldout.store.repository import LOG, SPEC, Repository

__all__ = [
    "LogCopies",
    "check_public_files",
    "check_tree_rules",
    "read_copies",
    "rules_to_seal_by",
]

_NO_LOG = (
    f"{LOG} is missing or empty, so nothing says which rules hold; "
    f"fetch it again: git checkout {LOG}"
)


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


def check_tree_rules(repository: Repository, log: Sequence[Entry]) -> tuple[Difference, ...]:
    """How board.toml of a clone differs from the rules in force; none where it is merely older.

    Args:
        repository: the clone.
        log: a verified public log.

    Raises:
        InputError: board.toml is wrong, or changes what published scores fix: no event can ever
            bring such rules, so who works by them works for nothing.
        StoreError: the log has no event.
    """
    if not log:
        raise StoreError(_NO_LOG)
    history, text = read_history(log), repository.tree_rules()
    if text in {rules for _, rules in history.rules}:
        return ()
    before, after = parse_spec(history.rules[-1][1].encode(), path=SPEC), repository.tree_spec()
    refuse_spec(list_changed_terms(history, after), text, path=SPEC)
    return list_differences(before, after)


def rules_to_seal_by(repository: Repository) -> BoardSpec:
    """The rules by which a participant seals: the last ones in the newest public log.

    Raises:
        InputError: board.toml of the clone names other keys or another envelope, or contradicts
            what the log fixes.
        StoreError: a log is missing or damaged, or the remote's is not this clone's with events
            added.
    """
    copies = read_copies(repository)
    for old, new in zip(copies.here, copies.newest, strict=False):
        if old.hash != new.hash:
            raise StoreError(
                f"event {old.event.seq} of the board's log is another one at its remote than in "
                "this clone: history was rewritten, so nothing was sealed; ask the organisers"
            )
    if not copies.newest:
        raise StoreError(_NO_LOG)
    text = read_history(copies.newest).rules[-1][1]
    spec = parse_spec(text.encode(), path=SPEC)
    if check_tree_rules(repository, copies.newest):
        _refuse_other_keys(repository, spec)
    return spec


def check_public_files(repository: Repository) -> None:
    """Refuse public files of a clone that are not those of its own log; a clone may be behind.

    Raises:
        InputError: code `edited-file`: no organiser has accepted them.
        StoreError: the log is missing or damaged.
    """
    log = repository.log()
    if not log:
        raise StoreError(_NO_LOG)
    check_unedited(repository, read_history(log), repository.spec())


def _refuse_other_keys(repository: Repository, spec: BoardSpec) -> None:
    """Refuse to seal in a clone whose board.toml names other keys than the log."""
    wrong = list_changed_keys(spec, repository.tree_spec())
    problems = [
        Problem(
            code="other-keys",
            path=SPEC,
            found=f"{key} = {now}",
            expected=expected,
            hint="nothing was sealed: no event of the log brought this; ask the organisers",
        )
        for key, now, expected, _ in wrong
    ]
    if problems:
        raise InputError(problems)
