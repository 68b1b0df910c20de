"""An organiser's session: the one way to a vault that can be written.

`organiser_session` holds the locks of vault and board, and checks what protects both before it
gives a session: the clock, the board's remote, the rules that others put in force, and the keys
here. So it makes no difference who calls: the command line, the demo or another program. `look_at`
gives a session whose vault raises where it would be written. Only a board that is being created is
written without these checks.

What was shown cannot be hidden again, and no event is dated before another. So a clock that is
behind is refused, and so is one so far ahead that it is probably wrong: it would reveal a team
before its day, and every later command would have to wait for it.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log import event_fields, reading
from heldout.board.log.events import Draft, Entry, format_time, parse_time
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores import commitments, public_log, sets
from heldout.board.standings.overdue import list_due_ends, say_season
from heldout.board.store.repository import LEADERBOARD, SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import short_recipient
from heldout.errors import InputError, StoreError, plural, quote
from heldout.files.durable import Folder
from heldout.ids import digest_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
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
        """Return what the vault's log says."""
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
        raise InputError.of(
            "unknown-submission",
            "submission id",
            quote(submission) if found is None else f"{submission}, a baseline",
        )

    def find_published(self, submission: str) -> Submission:
        """Return an entry, or a baseline, whose score was released.

        Raises:
            InputError: it is not published.
        """
        known = self.history().submissions.get(submission)
        found = known if known is not None and known.baseline else self.find(submission)
        if found.status != "published":
            raise InputError.of("not-published", submission, f"a submission that is {found.status}")
        return found

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
        if closed is not None and not event_fields.EVENTS[kind].late:
            found = f"'{kind}' on a board that was closed on {closed:%d %b %Y}"
            raise InputError.of("board-closed", self.spec().name, found)

    def spec_at(self, moment: datetime, *, baseline: bool = False) -> BoardSpec:
        """The rules for what was submitted at a moment, by a team or as a baseline."""
        rules = parse_spec(self.history().rules_at(moment).encode(), path=SPEC)
        return rules.on(moment.date(), baseline=baseline)


def check_same(repository: Repository, vault: Vault) -> None:
    """Refuse a vault that lacks events of the board's public log: they would be lost.

    Raises:
        StoreError: it is another board's, or was restored from an old backup.
    """
    try:
        public = public_log.find_public_log(repository, vault)
    except StoreError:
        return  # damaged; rebuild writes it again and audit says more
    if not vault.log().begins_with(public):
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
        files: names of held-out files that are committed to again.
        public: paths of public files that decide scores, where the log had others.
    """

    event: int
    keys: tuple[str, ...]
    files: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


def accept_rules(session: Session, *, why: str = "") -> NotedRules | None:
    """Log the board.toml in the folder, so that it holds from now on and not before.

    With it go the digests of the public files that decide scores. Only where a person said yes to
    all that, or a command wrote it: whoever may push to the board can write these files. In the
    same event stands the commitment to held-out files that are new. An agreement whose text is new
    or was edited has an event of its own.

    Args:
        session: its lock is held.
        why: the reason, where held-out files are new; it is public.

    Returns:
        What was logged of board.toml and held-out files, `None` where the log has them.

    Raises:
        InputError: the new text is wrong, does not fit what was released, or changes the
            organisers' keys, or the agreement is no text or too long; nothing is logged then.
        StoreError: a file that the new text names is missing, or labels that were committed to.
    """
    commitments.check_new_rules(session.repository, session.vault, now=session.now)
    public = sets.digest_public(session.repository, session.repository.tree_spec())
    noted = _note_rules(session, session.repository.tree_rules(), why, public=public)
    _note_agreement(session)
    return noted


def note_held_out(session: Session) -> NotedRules | None:
    """Commit to held-out files that are new, under the rules in force.

    What was committed to and is another file now waits for a reason (`commit_held_out`), once a
    score was released.

    Args:
        session: its lock is held.

    Returns:
        What was logged, `None` where nothing is new.

    Raises:
        StoreError: a file that the rules name is missing, or labels that were committed to.
    """
    return _note_rules(session, session.rules(), "")


def _note_agreement(session: Session) -> None:
    registration, history = session.spec().registration, session.history()
    if registration is None or registration.agreement is None or history.closed is not None:
        return
    path = registration.agreement
    digest, text = commitments.read_agreement_text(session.repository, path)
    if not history.agreements or history.agreements[-1].digest != digest:
        public = {"path": path, "sha256": digest, "text": text}
        session.log("changed-agreement", None, public=public)


def _note_rules(
    session: Session, text: str, why: str, *, public: Mapping[str, str] | None = None
) -> NotedRules | None:
    spec, history = parse_spec(text.encode(), path=SPEC), session.history()
    before, known = history.rules[-1][1], history.files
    with commitments.new_keys(session.vault, history, spec):
        held = commitments.compare_held_out(session.vault, history, spec)
        commitments.check_keys(held)
        files = held.grown if _has_published(history) else held.files
        if files != held.before:
            sets.check_excluded(session.repository, spec, vault=session.vault)
        commitments.store_versions(session.vault, files)
        now = known if public is None else public
        if before == text and files == held.before and now == known:
            return None
        entry = _log_rules(session, text, held, files, why=why, public=public)
    old, new = tomllib.loads(before), tomllib.loads(text)
    return NotedRules(
        event=entry.event.seq,
        keys=tuple(key for key in {**old, **new} if old.get(key) != new.get(key)),
        files=() if files == held.before else (*held.new, *held.changed),
        public=tuple(sorted(p for p in {**now, **known} if now.get(p) != known.get(p))),
    )


def commit_held_out(session: Session, *, why: str = "") -> bool:
    """Commit to every held-out file, so that scores can be published by it and an audit knows it.

    Args:
        session: its lock is held.
        why: the reason, where a file was changed after scores had been published; it is public.

    Returns:
        Whether an event was logged.

    Raises:
        StoreError: such a file was changed without a reason, labels are missing, or a key is not
            the one that was committed to.
    """
    history = session.history()
    held = commitments.compare_held_out(session.vault, history, session.spec())
    commitments.check_keys(held)
    if not why and _has_published(history):
        commitments.check_unchanged(held)
    commitments.store_versions(session.vault, held.files)
    if held.files == held.before:
        return False
    _log_rules(session, history.rules[-1][1], held, held.files, why=why)
    return True


def list_unlogged(session: Session) -> tuple[str, ...]:
    """The held-out files that were changed after scores had been told, which wait for a reason.

    Raises:
        StoreError: labels that were committed to are missing.
    """
    history = session.history()
    if not _has_published(history):
        return ()
    return commitments.compare_held_out(session.vault, history, session.spec()).changed


def _has_published(history: History) -> bool:
    return any(submission.status == "published" for submission in history.submissions.values())


def _log_rules(
    session: Session,
    text: str,
    held: commitments.HeldOut,
    files: Mapping[str, str],
    *,
    why: str,
    public: Mapping[str, str] | None = None,
) -> Entry:
    """One event for the rules in force and, where they changed, the held-out files.

    The public files stand in it where somebody said yes to them as they lie there.
    """
    fields: dict[str, Any] = {"board.toml": text}
    if public is not None:
        fields["files"] = dict(public)
    if files == held.before:
        return session.log("changed-rules", None, public=fields)
    first = "changed before any score was published" if held.changed else commitments.FIRST_TIME
    fields["why"] = why or first
    return session.log("changed-rules", None, public=fields, sealed={"labels": dict(files)})


def is_behind(session: Session) -> bool:
    """Check whether the public log lacks events, was not committed, or is damaged.

    `rebuild` writes the log after the page and then commits, so the log tells for all of it.
    """
    try:
        public = public_log.find_public_log(session.repository, session.vault)
    except StoreError:
        return True
    behind = len(public) != len(session.vault.log())
    return behind or not public_log.is_committed(session.repository, public)


_LONGEST_PAUSE = timedelta(days=366)
_LATEST_REVEAL = timedelta(days=60)


def check_clock(session: Session, *, sure: bool = False) -> None:
    """Refuse to work by a clock that is behind, or far ahead.

    Args:
        session: of the organiser.
        sure: a person says that it is as late as the clock says.

    Raises:
        StoreError: it is before the last event, or before what the committed log shows; or it is a
            year after all that the board knows of, or two months after the last embargo that it
            would end. Nothing was done.
    """
    session.vault.check_clock(session.now)
    shown = (
        public_log.find_committed_log(session.repository, session.vault) or public_log.empty_log()
    )
    hidden = public_log.list_hidden(shown, session.repository, session.vault, now=session.now)
    if hidden:
        raise StoreError(
            f"the clock here says {format_time(session.now)}, and the committed {reading.LOG} "
            f"shows what is sealed until later: {'; '.join(hidden[:3])}; nothing was done: set "
            "the clock, or see docs/how-to/wrong-clock.md"
        )
    if not sure:
        _check_ahead(session, shown)


def _check_ahead(session: Session, shown: reading.Log) -> None:
    history = session.history()
    known = max(session.vault.log().last.time, _page_time(session.repository))
    due, today = dict(_list_due(history, shown, session.now.date())), session.now.date()
    ended = list_due_ends(history, session.spec(), today)
    due |= {f"the exact scores of {say_season(one.season)}": one.last for one in ended}
    ends = [_midnight(day) for day in due.values()]
    if due and session.now - max(known, *ends) > _LATEST_REVEAL:
        names = ", ".join(sorted(due)[:3])
        raise StoreError(
            f"{_say_ahead(session.now, max(known, *ends))}, and would reveal {names}{_YES}"
        )
    spec = session.spec()
    days = [spec.closes, *(season.closes for season in spec.seasons)]
    days += [submission.embargo_until for submission in history.submissions.values()]
    horizon = max([known, *(_midnight(day) for day in days if day is not None)])
    if session.now - horizon > _LONGEST_PAUSE:
        raise StoreError(f"{_say_ahead(session.now, horizon)}{_YES}")


_YES = "; nothing was done: set the clock, or, if it is right, heldout rebuild --yes"


def _say_ahead(now: datetime, known: datetime) -> str:
    days = plural((now - known).days, "day")
    return f"the clock here says {format_time(now)}, {days} after all that this board knows of"


class _Page(msgspec.Struct):
    """The one field of leaderboard.json that is asked for here."""

    as_of: str


def _page_time(repository: Repository) -> datetime:
    """Return when the page was made last; the first of all moments where there is none."""
    try:
        data = repository.files.read(f"{LEADERBOARD}/leaderboard.json")
        return parse_time(msgspec.json.decode(data, type=_Page).as_of)
    except (OSError, msgspec.MsgspecError, ValueError):
        return datetime.min.replace(tzinfo=UTC)


def _list_due(history: History, shown: reading.Log, today: date) -> Iterator[tuple[str, date]]:
    """The entries that a rebuild would reveal now, and since when they might be."""
    for public in shown.history.submissions.values():
        if public.status == "published" and not public.baseline and public.identity is None:
            until = history.submissions[public.id].embargo_until
            if until is not None and until <= today:
                yield public.id, until


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


Report = Callable[[str], None]


def refuse_rules(change: commitments.RuleChange) -> None:
    """Accept no rules that the log does not have.

    Raises:
        StoreError: always.
    """
    said = [str(one) for one in change.files]
    if change.texts:
        keys = ", ".join(one.key for one in change.differences) or "comments or layout only"
        said.insert(0, f"board.toml is not what the log has ({keys})")
    raise StoreError(f"{'; '.join(said)}; nobody accepted it, and nothing was done")


@contextmanager
def organiser_session(
    repository: Repository,
    vault_root: Path,
    *,
    clock: Callable[[], datetime],
    report: Report = lambda _: None,
    accept: Callable[[commitments.RuleChange], None] = refuse_rules,
    sure: bool = False,
    restore: bool = False,
) -> Iterator[Session]:
    """The organiser's session, with vault and board locked while it is used.

    A shared vault is brought up to its remote first.

    Args:
        repository: the board.
        vault_root: the vault's folder.
        clock: the time, UTC; read once the lock is held.
        report: gets what a person should know, in sentences.
        accept: gets rules in the board's folder that the log does not have; it raises unless
            somebody says yes to them, and then they are logged.
        sure: a person says that it is as late as the clock says.
        restore: whether edited rules are replaced by those of the log.

    Raises:
        StoreError: no vault, another heldout holds the lock, the remote of a shared vault cannot be
            followed, the clock is behind or far ahead, or board.toml was edited and names a missing
            file.
        InputError: board.toml was edited in a way that cannot hold; nothing was done.
    """
    vault = Vault.open(vault_root, board=repository.root)
    with vault.locked() as news, repository.locked():
        for one in news:
            report(one)
        # The clock after the fetch: what came with it happened before.
        session = begin_session(repository, vault, now=clock())
        if vault.is_shared():
            _check_pulled(repository)
            _check_let_in(session)
        if restore:
            _restore_rules(session, report)
        _take_over_rules(repository, vault, report)
        check_clock(session, sure=sure)
        yield _settle_rules(session, accept)
        vault.remove_unneeded()  # also what a killed call left
        vault.remember_log()


def look_at(repository: Repository, vault_root: Path, *, now: datetime) -> Session:
    """The organiser's session, to read at: no lock is held, and nothing can be written.

    Raises:
        StoreError: no vault there, it has no key, or lacks events of the board's public log.
    """
    vault = Vault.open(vault_root, board=repository.root, read_only=True)
    return begin_session(repository, vault, now=now)


def begin_session(repository: Repository, vault: Vault, *, now: datetime) -> Session:
    """The session of whoever holds the vault's keys, by the name that they sign events with.

    Raises:
        StoreError: the vault has no key, or lacks events of the board's public log.
    """
    check_same(repository, vault)
    named = organiser_name(repository, vault)
    own = vault.own_signer(vault.log().chain.signers)
    by = named if own is None else own.name
    return Session(repository=repository, vault=vault, now=now, by=by)


def organiser_name(repository: Repository, vault: Vault) -> str:
    """Return how this organiser is named in the log: the vault's first key, cut short."""
    rules = vault.history().rules[-1][1] if len(vault.log()) else repository.tree_rules()
    spec = parse_spec(rules.encode(), path=SPEC)
    if not vault.identities():
        raise StoreError(
            "the vault has no key; restore identities/ from the backup, "
            "or make a new one: heldout board rekey"
        )
    own = next(commitments.own_recipients(spec.envelope, vault), None)
    if own is None:  # the envelope was changed to a form that the vault has no key of
        commitments.check_recipients(spec, rules, vault)
        raise StoreError(f'the vault has no key of the form envelope = "{spec.envelope}"')
    return short_recipient(spec.envelope, own)


def _check_pulled(repository: Repository) -> None:
    """Refuse a board that lacks what another organiser made public: both would make it again.

    Raises:
        StoreError: its remote has commits that the folder lacks.
    """
    git = repository.git
    ref = git.tracked() if git.is_repository() else None
    if ref is None:
        return
    _, _, remote, branch = ref.split("/", 3)
    with suppress(StoreError):  # offline: the vault's remote has answered, that is what counts
        git.fetch(remote, f"+refs/heads/{branch}:{ref}")
    if count := git.unpulled():
        raise StoreError(
            f"the board here lacks {plural(count, 'commit')} of {remote}: git pull --ff-only, then "
            "call again; where that fails, docs/how-to/organisers.md says how to go on"
        )


def _take_over_rules(repository: Repository, vault: Vault, report: Report) -> None:
    """Write the rules that the vault has and the board's folder lacks; an edit is left alone.

    Another organiser put them in force, or a change of keys was stopped on its way.
    """
    try:
        log = public_log.find_public_log(repository, vault)
        public = log.history if len(log) else None
    except StoreError:
        public = None  # damaged; rebuild writes it again
    whole = vault.history()
    rules = newer_rules(repository.tree_rules(), public=public, whole=whole)
    if rules is not None:
        repository.write_file(SPEC, rules.encode())
        report(f"{SPEC} taken over: the vault has newer rules")
    if public is None:
        return
    _check_newer_files(repository, public, vault)
    agreement = newer_agreement(repository.files, public=public, whole=whole)
    if agreement is not None:
        path, text = agreement
        repository.write_file(path, text.encode())
        report(f"{path} taken over: the vault has a newer text")


def _check_newer_files(repository: Repository, before: History, vault: Vault) -> None:
    """Refuse public files that another organiser has replaced: the log has only their digests.

    Raises:
        StoreError: the folder has those of its own log, and the vault's log names others.
    """
    spec, history = parse_spec(vault.history().rules[-1][1].encode(), path=SPEC), vault.history()
    newer = [
        one.path
        for one in sets.find_edited(repository, history, spec)
        if one.found == before.files.get(one.path)
    ]
    if newer:
        raise StoreError(
            f"{', '.join(newer)}: another organiser logged another version, which this folder "
            "lacks; get it from them (git pull --ff-only), then call again"
        )


def _restore_rules(session: Session, report: Report) -> None:
    """Write the log's rules, agreement and public files over what lies in the board's folder.

    Raises:
        StoreError: the board's git has no version of a public file with the digest in the log.
    """
    history, registration = session.history(), session.spec().registration
    files = {SPEC: session.rules()}
    if registration is not None and registration.agreement is not None and history.agreements:
        files[registration.agreement] = history.agreements[-1].text
    for path, text in files.items():
        if session.repository.write_file(path, text.encode()):
            report(f"{path} is again as the log has it")
    for path, commit in sets.restore_public(session.repository, history, session.spec()):
        report(f"{path} is again as the log has it, from commit {commit[:12]}")


def _settle_rules(session: Session, accept: Callable[[commitments.RuleChange], None]) -> Session:
    """Log rules that the log does not have where somebody says yes to them.

    Whoever may push to the board can edit its board.toml: an organiser who pulled has not read it.

    Raises:
        InputError: such rules cannot hold.
        StoreError: they changed while the question stood.
    """
    change = commitments.find_rule_change(session.repository, session.vault)
    if change is None:
        return session
    commitments.check_new_rules(session.repository, session.vault, now=session.now)
    accept(change)
    if commitments.find_rule_change(session.repository, session.vault) != change:
        raise StoreError("the rules changed while you read them; nothing was done, call again")
    return replace(session, accepted=accept_rules(session))


def _check_let_in(session: Session) -> None:
    """Refuse who cannot open submissions: what they review would be logged as broken, for all.

    Raises:
        StoreError: no key in this vault is one of the board's recipients.
    """
    if not commitments.can_open(session.spec(), session.vault):
        raise StoreError(
            f"your key {session.by} is none of the board's recipients, so nothing opens for you; "
            "another organiser lets you in (docs/how-to/organisers.md, Join)"
        )
    signers = session.vault.log().chain.signers
    if signers and session.vault.own_signer(signers) is None:
        raise StoreError(
            "no key in this vault is that of a signer of the board, so it can sign no event; "
            "heldout board signer prints yours, and another organiser adds it "
            "(docs/how-to/organisers.md, Join)"
        )


def newer_rules(text: str, *, public: History | None, whole: History) -> str | None:
    """The rules that a vault has, where a board's folder lacks them.

    Without this a board.toml that is merely old would look like an edit that takes theirs back.

    Args:
        text: board.toml as it stands in the folder.
        public: what the log of the same folder says; `None` where it is empty or damaged.
        whole: what the vault's log says.

    Returns:
        The text to write, `None` where the folder's is in force, or an edit of it.

    Raises:
        StoreError: it was edited without knowing them.
    """
    known = () if public is None else public.rules
    before, rules = known[-1][1] if known else "", whole.rules[-1][1]
    later = [moment for moment, newer in whole.rules[len(known) :] if newer != before]
    if text == rules or not later:
        return None
    if text == before:
        return rules
    raise StoreError(
        f"board.toml was edited here, and other rules came first ({later[-1]:%d %b %Y %H:%M}): "
        "put your edit aside (git stash in the board), call again, then edit once more"
    )


def newer_agreement(board: Folder, *, public: History, whole: History) -> tuple[str, str] | None:
    """Path and text of the agreement that a vault has, where a board's folder has the one before.

    Args:
        board: its folder.
        public: what the log of the same folder says.
        whole: what the vault's log says.
    """
    if len(public.agreements) == len(whole.agreements) or not public.agreements:
        return None
    older, newer = public.agreements[-1], whole.agreements[-1]
    data = board.find(newer.path)
    if older.path != newer.path or data is None:
        return None
    same = digest_bytes(data) == older.digest
    return (newer.path, newer.text) if same and older.digest != newer.digest else None
