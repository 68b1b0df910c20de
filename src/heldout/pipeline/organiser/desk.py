"""The organiser's desk: a board, its vault, the time, and who sits there."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from heldout.board.log.events import AFTER_CLOSING, Draft, Entry
from heldout.board.log.history import History, Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError, Problem, StoreError, quote
from heldout.pipeline.organiser.commitments import (
    FIRST_TIME,
    HeldOut,
    check_keys,
    check_unchanged,
    compare_held_out,
    keep_versions,
    new_keys,
)
from heldout.pipeline.organiser.new_rules import check_new_rules, read_agreement_text
from heldout.pipeline.query_sets.public_files import digest_public
from heldout.pipeline.query_sets.sets import check_excluded
from heldout.store.repository import LOG, SPEC, Repository
from heldout.store.vault import Vault

__all__ = [
    "Desk",
    "NotedRules",
    "accept_rules",
    "check_same",
    "commit_held_out",
    "is_behind",
    "list_unlogged",
    "note_held_out",
    "note_labels",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What every step of an organiser needs.

    Attributes:
        repository: the board.
        vault: its vault; the caller holds its lock while anything is written.
        now: the moment of the call, UTC.
        by: how the organiser is named in the log.
        accepted: the edited board.toml that this call has logged, if it did.
    """

    repository: Repository
    vault: Vault
    now: datetime
    by: str
    accepted: "NotedRules | None" = None

    def history(self) -> History:
        """What the vault's log says."""
        return self.vault.history()

    def rules(self) -> str:
        """The text of the rules in force: the last ones in the vault's log."""
        return self.history().rules[-1][1]

    def spec(self) -> BoardSpec:
        """The rules in force: an edit of board.toml changes none of them until it is accepted."""
        return parse_spec(self.rules().encode(), path=SPEC)

    def find(self, submission: str) -> Submission:
        """A submission of the log; a baseline is none.

        Raises:
            InputError: the log knows none of this id.
        """
        found = self.history().submissions.get(submission)
        if found is not None and not found.baseline:
            return found
        raise InputError(
            Problem(
                code="unknown-submission",
                path="submission id",
                found=quote(submission) if found is None else f"{submission}, a baseline",
                expected="the id of a submission that has been received",
                hint="heldout inbox",
            )
        )

    def log(
        self,
        kind: str,
        submission: str | None,
        *,
        public: Mapping[str, Any] | None = None,
        sealed: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Append an event to the vault's log; when this returns, it has happened.

        Raises:
            InputError: the board is closed, and takes nothing of this kind any more.
        """
        self.check_open(kind)
        draft = Draft(
            kind=kind, by=self.by, submission=submission, public=public or {}, sealed=sealed or {}
        )
        return self.vault.append(draft, now=self.now)

    def check_open(self, kind: str) -> None:
        """Refuse an event of a kind that a closed board does not take.

        Raises:
            InputError: the board is closed.
        """
        closed = self.history().closed
        if closed is not None and kind not in AFTER_CLOSING:
            raise InputError(
                Problem(
                    code="board-closed",
                    path=self.spec().name,
                    found=f"'{kind}' on a board that was closed on {closed:%d %b %Y}",
                    expected="an erratum, or nothing: its labels are opened",
                )
            )

    def spec_at(self, moment: datetime) -> BoardSpec:
        """The rules for what was submitted at a moment."""
        rules = parse_spec(self.history().rules_at(moment).encode(), path=SPEC)
        return rules.on(moment.date())


def check_same(repository: Repository, vault: Vault) -> None:
    """Refuse a vault that lacks events of the board's public log: they would be lost.

    Raises:
        StoreError: it is another board's, or was restored from an old backup.
    """
    try:
        public = repository.log()
    except StoreError:
        return  # damaged; rebuild writes it anew and audit tells
    ours = [entry.hash for entry in vault.entries()[: len(public)]]
    if ours != [entry.hash for entry in public]:
        raise StoreError(
            "the board's log.jsonl has events that this vault lacks: it is another board's vault, "
            "or an old copy; heldout audit says more, nothing was done"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedRules:
    """What was logged because it had been edited: board.toml, or what the vault holds out.

    Attributes:
        event: number of the event.
        keys: the top-level keys that changed; none where only comments or layout did.
        files: names of held-out files that are committed to anew.
        public: paths of public files that decide scores, where the log had others.
    """

    event: int
    keys: tuple[str, ...]
    files: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


def accept_rules(desk: Desk, *, why: str = "") -> NotedRules | None:
    """Log the board.toml in the folder, so that it holds from now on and not before.

    With it go the digests of the public files that decide scores. Only where a person said yes to
    all that, or a command wrote it: whoever may push to the board can write these files. In the
    same event stands the commitment to held-out files that are new. An agreement whose text is new
    or was edited has an event of its own.

    Args:
        desk: its lock is held.
        why: the reason, where held-out files are new; it is public.

    Returns:
        What was logged of board.toml and held-out files, `None` where the log has them.

    Raises:
        InputError: the new text is wrong, does not fit what was released, or changes the
            organisers' keys, or the agreement is no text or too long; nothing is logged then.
        StoreError: a file that the new text names is missing, or labels that were committed to.
    """
    check_new_rules(desk.repository, desk.vault, now=desk.now)
    public = digest_public(desk.repository, desk.repository.tree_spec())
    noted = _note_rules(desk, desk.repository.tree_rules(), why, public=public)
    _note_agreement(desk)
    return noted


def note_held_out(desk: Desk) -> NotedRules | None:
    """Commit to held-out files that are new, under the rules in force.

    What was committed to and is another file now waits for a reason (`note_labels`), once a score
    was released.

    Args:
        desk: its lock is held.

    Returns:
        What was logged, `None` where nothing is new.

    Raises:
        StoreError: a file that the rules name is missing, or labels that were committed to.
    """
    return _note_rules(desk, desk.rules(), "")


def _note_agreement(desk: Desk) -> None:
    registration, history = desk.spec().registration, desk.history()
    if registration is None or registration.agreement is None or history.closed is not None:
        return
    path = registration.agreement
    digest, text = read_agreement_text(desk.repository, path)
    if not history.agreements or history.agreements[-1].digest != digest:
        public = {"path": path, "sha256": digest, "text": text}
        desk.log("changed-agreement", None, public=public)


def _note_rules(
    desk: Desk, text: str, why: str, *, public: Mapping[str, str] | None = None
) -> NotedRules | None:
    spec = parse_spec(text.encode(), path=SPEC)
    with new_keys(desk.vault, desk.history(), spec):
        return _note_held_out(desk, spec, text, why, public=public)


def _note_held_out(
    desk: Desk, spec: BoardSpec, text: str, why: str, *, public: Mapping[str, str] | None
) -> NotedRules | None:
    history = desk.history()
    before = history.rules[-1][1]
    held = compare_held_out(desk.vault, history, spec)
    check_keys(held)
    files = held.grown if _has_told(history) else held.files
    if files != held.before:
        check_excluded(desk.repository, spec, vault=desk.vault)
    keep_versions(desk.vault, files)
    known = history.files
    # A log of before has no digests: they come with the next event that a person says yes to.
    edited = public is not None and known is not None and public != known
    if before == text and files == held.before and not edited:
        return None
    entry = _log_rules(desk, text, held, files, why=why or _say_why(held), public=public)
    names = () if files == held.before else (*held.new, *held.changed)
    now, then = public or {}, known or {}
    paths = sorted(p for p in now.keys() | then.keys() if edited and now.get(p) != then.get(p))
    return NotedRules(
        event=entry.event.seq,
        keys=_changed_keys(before, text),
        files=names,
        public=tuple(paths),
    )


def commit_held_out(desk: Desk) -> None:
    """Commit to every held-out file that a score is about to be told by.

    Raises:
        StoreError: one was changed after scores had been told by it.
    """
    history = desk.history()
    held = compare_held_out(desk.vault, history, desk.spec())
    check_keys(held)
    if _has_told(history):
        check_unchanged(held)
    keep_versions(desk.vault, held.files)
    if held.files != held.before:
        _log_rules(desk, history.rules[-1][1], held, held.files, why=_say_why(held))


def list_unlogged(desk: Desk) -> tuple[str, ...]:
    """The held-out files that were changed after scores had been told, which wait for a reason.

    Raises:
        StoreError: labels that were committed to are missing.
    """
    history = desk.history()
    if not _has_told(history):
        return ()
    return compare_held_out(desk.vault, history, desk.spec()).changed


def _has_told(history: History) -> bool:
    return any(submission.status == "published" for submission in history.submissions.values())


def _say_why(held: HeldOut) -> str:
    return "changed before any score was told" if held.changed else FIRST_TIME


def _log_rules(
    desk: Desk,
    text: str,
    held: HeldOut,
    files: Mapping[str, str],
    *,
    why: str,
    public: Mapping[str, str] | None = None,
) -> Entry:
    """One event for the rules in force and, where they changed, the held-out files.

    The public files stand in it where somebody said yes to them as they lie there.
    """
    told: dict[str, Any] = {"board.toml": text}
    if public is not None:
        told["files"] = dict(public)
    if files == held.before:
        return desk.log("changed-rules", None, public=told)
    told["why"] = why
    return desk.log("changed-rules", None, public=told, sealed={"labels": dict(files)})


def _changed_keys(before: str, after: str) -> tuple[str, ...]:
    old, new = tomllib.loads(before), tomllib.loads(after)
    return tuple(key for key in {**old, **new} if old.get(key) != new.get(key))


def note_labels(desk: Desk, *, why: str) -> bool:
    """Log held-out files that were changed, so that an audit knows them; their digests are sealed.

    Raises:
        StoreError: labels are missing, or a key is not the one that was committed to.
    """
    history = desk.history()
    held = compare_held_out(desk.vault, history, desk.spec())
    check_keys(held)
    keep_versions(desk.vault, held.files)
    if held.files == held.before:
        return False
    _log_rules(desk, history.rules[-1][1], held, held.files, why=why)
    return True


def is_behind(desk: Desk) -> bool:
    """Whether the public log lacks events, was not committed (both after a crash), or is damaged.

    `rebuild` writes the log after the page and then commits, so the log tells for all of it.
    """
    repository = desk.repository
    try:
        behind = len(repository.log()) != len(desk.vault.entries())
    except StoreError:
        return True
    head = repository.git.head() if repository.git.is_repository() else None
    return behind or (head is not None and repository.is_uncommitted(LOG, head))
