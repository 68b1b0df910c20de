"""Takes in what has arrived from branches, requests and folders, and lists what waits."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from heldout.board.log.submission import Submission
from heldout.board.organiser import receive
from heldout.board.organiser.answer import (
    ForgeAccess,
    answer_all,
    answer_registrations,
    fetch_requests,
)
from heldout.board.organiser.rebuild import Rebuilt, catch_up
from heldout.board.scores.public_log import find_public_log
from heldout.board.scores.session import NotedRules, Session, note_held_out
from heldout.board.standings.overdue import Overdue, list_overdue_at
from heldout.board.store import arrivals
from heldout.board.store.fetching import BRANCHES, fetch_arrivals
from heldout.errors import StoreError, plural

_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """Arrivals that a call took in.

    Attributes:
        rules: the held-out files that this call committed to, `None` for none.
        receipts: what became of each arrival; registrations first.
        silent: the remotes, or the forge, that did not answer: what waits there is not known.
        unfetched: sources that take long to fetch; the next call goes on with them.
        rebuilt: what was made public again.
    """

    rules: NotedRules | None
    receipts: tuple[receive.ArrivalReceipt, ...]
    silent: tuple[str, ...]
    unfetched: tuple[str, ...]
    rebuilt: Rebuilt


def take_in(
    session: Session,
    forge: ForgeAccess,
    *,
    folders: Sequence[Path] = (),
    accepted: Sequence[str] = (),
    ask_remote: bool = True,
) -> TakenIn:
    """Take in what has arrived: branches, pull requests, what was merged, folders.

    Registrations first: who registers and submits at once is registered then.

    Args:
        session: of the organiser.
        forge: is asked, and answered.
        folders: where files were left.
        accepted: the sources that win where two use the same id.
        ask_remote: whether remotes and forge are asked.
    """
    rules = note_held_out(session)
    listed, silent = _list_arrivals(session, forge, folders, ask_remote=ask_remote)
    unfetched = tuple(dict.fromkeys(arrival.source for arrival in listed if arrival.waits))
    here = [arrival for arrival in listed if not arrival.waits]
    requests = {arrival.source for arrival in here}  # those that are open, as the forge says
    registrations, sources = find_registrations(session, folders, requests)
    registered = receive.receive_registrations(session, registrations)
    submissions = [one for one in here if one.source not in sources]
    receipts = (*registered, *receive.receive(session, submissions, accepted=accepted))
    rebuilt = catch_up(session, news=False)
    answer_all(session, forge, [str(r.id) for r in receipts if r.kind == "received"], {})
    # Where registered teams wait for an answer: a request may have had none.
    registered_at = {
        receipt.team: receipt.source
        for receipt in receipts
        if receipt.team
        and (receipt.kind == "registered" or receipt.source.startswith("pull request "))
    }
    answer_registrations(session, forge, registered_at)
    return TakenIn(
        rules=rules, receipts=receipts, silent=silent, unfetched=unfetched, rebuilt=rebuilt
    )


def find_registrations(
    session: Session, folders: Sequence[Path], requests: Container[str]
) -> tuple[list[arrivals.Arrival], frozenset[str]]:
    """Find registrations that wait, and the branches and requests that bring nothing else.

    None where the board has no registration.

    Args:
        session: its lock is held; its remotes were asked.
        folders: where files were left.
        requests: `pull request N` of those that are open.
    """
    git = session.repository.git
    head = git.head() if git.is_repository() else None
    found: list[arrivals.Arrival] = []
    if session.spec().registration is None:
        return [], frozenset()
    if head is not None:
        found += arrivals.find_registrations_in_git(git, main=head, requests=requests)
    sources = frozenset(arrival.source for arrival in found)
    if head is not None:
        found += arrivals.find_merged_registrations(git, main=head)
    forge = session.spec().forge
    if forge is not None and forge.kind == "folder":
        folders = [*folders, git.root / Path(forge.url).expanduser()]
    for folder in folders:
        found += arrivals.find_registrations_in_folder(folder)
    return found, sources


def list_waiting(session: Session) -> list[Submission]:
    """List what waits for a decision or an answer, the longest first."""
    since = {s.id: s.waits_since for s in session.history().submissions.values()}
    waiting = sorted((when, name) for name, when in since.items() if when is not None)
    return [session.find(name) for _, name in waiting]


def list_reveals(session: Session) -> list[tuple[str, date]]:
    """List the embargoes that end within a week."""
    return sorted(
        (s.id, s.embargo_until)
        for s in session.history().submissions.values()
        if s.status == "published"
        and s.embargo_until is not None
        and 0 <= (s.embargo_until - session.now.date()).days <= _WEEK
    )


def list_public_overdue(session: Session) -> tuple[Overdue, ...]:
    """List what the public log still withholds although its day has come: a rebuild is due."""
    return list_overdue_at(find_public_log(session.repository, session.vault), now=session.now)


def _list_arrivals(
    session: Session, forge: ForgeAccess, folders: Sequence[Path], *, ask_remote: bool
) -> tuple[list[arrivals.Arrival], tuple[str, ...]]:
    """List what lies there, and which remotes, or the forge, did not answer."""
    git = session.repository.git
    form = session.spec().envelope
    found: list[arrivals.Arrival] = []
    silent: list[str] = []
    head = git.head() if git.is_repository() else None
    if head is not None:
        hosted = session.spec().forge
        unread, waiting, unknown = (
            _fetch(session, forge, requests=hosted is None) if ask_remote else ({}, (), ())
        )
        silent += unknown
        found += [
            arrival
            for arrival in arrivals.find_in_git(
                git,
                form,
                main=head,
                unread=unread,
                waiting=waiting,
                taken=receive.taken_in(session),
            )
            # What is open there, the forge says better: closed requests keep their refs.
            if hosted is None or arrival.source.startswith("branch ")
        ]
        requests = fetch_requests(session, forge) if ask_remote else ()
        found += [*(requests or ()), *receive.list_merged(session, main=head)]
        silent += ["the forge"] * (requests is None)
    for folder in folders:
        found += arrivals.find_in_folder(folder, form)
    return found, tuple(silent)


def _fetch(
    session: Session, forge: ForgeAccess, *, requests: bool
) -> tuple[Mapping[str, str], list[str], tuple[str, ...]]:
    """Ask all remotes: ref -> why it was not fetched; refs that wait; and what did not answer.

    A remote that does not answer gets a note, and the others are asked.
    """
    registers = session.spec().registration is not None
    kinds = BRANCHES if registers else BRANCHES[:1]
    git = session.repository.git
    unread: dict[str, str] = {}
    waiting: list[str] = []
    silent: list[str] = []
    remotes = {remote: remote for remote in git.remotes()}
    form = session.spec().envelope
    done_at = fetch_arrivals(git, remotes, form, kinds=kinds, requests=requests)
    for remote, done in done_at.items():
        if isinstance(done, StoreError):
            forge.progress.note("note", f"remote {remote} was not asked: {done}")
            silent.append(f"remote {remote}")
            continue
        unread |= {**done.refused, **done.failed}
        waiting += done.waiting
        silent += [f"remote {remote}, of {plural(len(done.failed), 'ref')}"] * bool(done.failed)
    return unread, waiting, tuple(silent)
