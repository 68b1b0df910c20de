"""The organiser's desk: a board, its vault, the time, and who sits there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from heldout.board.events import Draft, Entry
from heldout.board.history import History, Submission, read_history
from heldout.board.spec import BoardSpec, parse_spec
from heldout.errors import InputError, Problem
from heldout.store.repository import SPEC, Repository
from heldout.store.vault import Vault

__all__ = ["Desk", "note_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What every step of an organiser needs.

    Attributes:
        repository: the board.
        vault: its vault; the caller holds its lock while anything is written.
        now: the moment of the call, UTC.
        by: how the organiser is named in the log.
    """

    repository: Repository
    vault: Vault
    now: datetime
    by: str

    def history(self) -> History:
        """What the vault's log says."""
        return read_history(self.vault.entries())

    def find(self, submission: str) -> Submission:
        """A submission of the log.

        Raises:
            InputError: the log knows none of this id.
        """
        found = self.history().submissions.get(submission)
        if found is None:
            raise InputError(
                Problem(
                    code="unknown-submission",
                    path="submission id",
                    found=submission,
                    expected="an id that has been received",
                    hint="heldout inbox",
                )
            )
        return found

    def log(
        self,
        kind: str,
        submission: str | None,
        *,
        public: Mapping[str, Any] | None = None,
        sealed: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Append an event to the vault's log; when this returns, it has happened."""
        draft = Draft(
            kind=kind, by=self.by, submission=submission, public=public or {}, sealed=sealed or {}
        )
        return self.vault.append(draft, now=self.now)

    def spec_at(self, moment: datetime) -> BoardSpec:
        """The rules of a day."""
        return parse_spec(self.history().rules_at(moment).encode(), path=SPEC)


def note_rules(desk: Desk) -> bool:
    """Log a board.toml that was edited, so that it holds from now on and not before.

    Raises:
        InputError: the new text is wrong; nothing is logged.
    """
    text = desk.repository.rules()
    desk.repository.spec()
    if desk.history().rules[-1][1] == text:
        return False
    desk.log("changed-rules", None, public={"board.toml": text})
    return True
