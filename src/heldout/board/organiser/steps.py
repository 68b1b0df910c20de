"""What an organiser does with submissions, each step in one call.

A step decides, makes everything public again and answers on the forge. The session's lock is held.
`score_part` alone decides nothing and needs no lock.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from heldout.board.log.submission import Submission
from heldout.board.organiser import decide
from heldout.board.organiser.answer import (
    ForgeAccess,
    answer_all,
    answer_registrations,
    fetch_requests,
)
from heldout.board.organiser.decide import Decision
from heldout.board.organiser.finals import has_other_scores
from heldout.board.organiser.rebuild import Rebuilt, catch_up
from heldout.board.organiser.receive import (
    Receipt,
    list_merged,
    receive,
    receive_registrations,
    taken_in,
)
from heldout.board.organiser.review import Review, review
from heldout.board.scores.commitments import find_rule_change
from heldout.board.scores.precomputed import Precomputed, Taken
from heldout.board.scores.public_log import find_public_log
from heldout.board.scores.rescoring import (
    ScoredAhead,
    list_earlier,
    rescore_each,
    score_ahead,
    size_of,
)
from heldout.board.scores.session import (
    NotedRules,
    Session,
    commit_held_out,
    note_held_out,
    refuse_rules,
)
from heldout.board.scores.sets import SetData, load_sets
from heldout.board.standings.overdue import Overdue, list_overdue_at
from heldout.board.store.arrivals import (
    Arrival,
    find_in_folder,
    find_in_git,
    find_merged_registrations,
    find_registrations_in_folder,
    find_registrations_in_git,
)
from heldout.board.store.fetching import BRANCHES, fetch_arrivals
from heldout.errors import StoreError, plural
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.shards import Shard

_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of submissions.

    Attributes:
        decisions: one for each submission.
        rebuilt: what was made public again.
        earlier: entries that are still scored with earlier labels.
        reopens_final: whether the final has to be opened again, since its scores changed.
        ahead: what became of scores that parts of a correction had stored.
    """

    decisions: tuple[Decision, ...]
    rebuilt: Rebuilt
    earlier: tuple[str, ...] = ()
    reopens_final: bool = False
    ahead: Taken | None = None

    @property
    def done(self) -> tuple[str, ...]:
        """The submissions that are as was asked for."""
        return tuple(decision.id for decision in self.decisions if decision.done)


def publish_all(
    session: Session,
    forge: ForgeAccess,
    sets: Mapping[str, SetData],
    reviews: Sequence[Review],
    *,
    why: str,
) -> Outcome:
    """Release the scores of reviewed submissions, or approve what is proposed for an entry.

    Args:
        session: of the organiser.
        forge: answers the submissions.
        sets: the board's query sets.
        reviews: what was shown to whoever decides.
        why: the reason, where a finding asks for one.
    """
    events, decisions = len(session.vault.log()), []
    for one in reviews:
        # What was shown still holds unless an event came since: of another of these, mostly.
        same = len(session.vault.log()) == events
        now = one if same else review(session, sets, one.submission.id)
        decisions.append(decide.publish(session, now, why=why))
    return _conclude(session, forge, decisions, {one.submission.id: one for one in reviews})


def reject_all(
    session: Session, forge: ForgeAccess, ids: Sequence[str], *, why: str, anyway: bool = False
) -> Outcome:
    """Refuse submissions, or a change of name; nothing is refused where one of them cannot be.

    Args:
        session: of the organiser.
        forge: answers the submissions.
        ids: the submissions.
        why: the reason, which is public.
        anyway: a person says that the reason names no team under embargo.
    """
    for submission in ids:
        decide.check_rejectable(session, submission)
    decide.check_text(session, why, *ids, anyway=anyway)
    return _conclude(session, forge, [decide.reject(session, name, why=why) for name in ids])


def ask_team(
    session: Session, forge: ForgeAccess, submission: str, *, text: str, anyway: bool = False
) -> Outcome:
    """Put a public question to the team; arguments as in `reject_all`."""
    decide.check_text(session, text, submission, anyway=anyway)
    return _conclude(session, forge, [decide.ask(session, submission, text=text)])


def extend_embargo(
    session: Session,
    forge: ForgeAccess,
    submission: str,
    *,
    until: date,
    why: str,
    anyway: bool = False,
) -> Outcome:
    """Move the end of an embargo; arguments as in `reject_all`."""
    decide.check_text(session, why, submission, anyway=anyway)
    return _conclude(session, forge, [decide.extend(session, submission, until=until, why=why)])


def correct_all(
    session: Session,
    forge: ForgeAccess,
    ids: Sequence[str],
    *,
    why: str,
    unchanged: bool = False,
    anyway: bool = False,
) -> Outcome:
    """Score entries or baselines again with today's labels, and publish what changed.

    Scores that `score_part` stored are taken where they hold today.

    Args:
        session: of the organiser.
        forge: answers the entries.
        ids: published entries, or baselines.
        why: what was wrong; public.
        unchanged: whether the reason is logged where no score changes, too.
        anyway: as in `reject_all`.
    """
    entries = [decide.check_published(session, name) for name in ids]
    decide.check_text(session, why, *ids, anyway=anyway)
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    ahead = Precomputed(session, sets)
    scores = dict(rescore_each(session, sets, list(dict.fromkeys(ids)), ahead=ahead))
    for entry in entries:
        decide.check_scored(entry, scores[entry.id])
    # Only now is it sure that the labels can be read and give scores: an event is for good.
    noted = commit_held_out(session, why=why)
    decisions = [
        decide.correct(session, name, found, why=why, anyway=unchanged)
        for name, found in scores.items()
    ]
    rebuilt = catch_up(session, news=noted or _is_news(decisions))
    entered = {entry.id for entry in entries if not entry.baseline}
    answer_all(session, forge, [d.id for d in decisions if d.kind and d.id in entered], {})
    ahead.forget(scores)
    return Outcome(
        decisions=tuple(decisions),
        rebuilt=rebuilt,
        earlier=tuple(list_earlier(session, sets)),
        reopens_final=has_other_scores(session),
        ahead=ahead.taken(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfCorrection:
    """A part of the entries of a correction, whose scores were computed ahead of it.

    Attributes:
        shard: which part.
        entries: how many entries all parts have.
        outcome: of the entries of this part.
        stored_in: the folder of the scores.
    """

    shard: Shard
    entries: int
    outcome: ScoredAhead
    stored_in: Path

    def document(self) -> dict[str, Any]:
        """All of it but the scores, as a JSON document."""
        return {
            "shard": self.shard.number,
            "of": self.shard.of,
            "stored_in": str(self.stored_in),
            "entries": self.entries,
            "scored": len(self.outcome.scored) + len(self.outcome.before),
            "stored_before": len(self.outcome.before),
            "left": self.outcome.left,
            "failed": [
                {"id": name, "problems": [asdict(one) for one in problems]}
                for name, problems in self.outcome.failed.items()
            ],
        }


def score_part(
    session: Session, ids: Sequence[str], shard: Shard, *, progress: Progress = SILENT
) -> PartOfCorrection:
    """Score a part of the entries of a correction ahead of it, where there is room.

    Nothing is decided, logged or published, no lock is held, and nothing leaves the vault. Where
    the vault lies in a folder that several machines see, each can score a part at the same time.

    Args:
        session: of the organiser; it may be opened to be read alone.
        ids: all entries of the correction.
        shard: which part of them.
        progress: of the entries of this part.

    Raises:
        InputError: one of them is not published, or cannot be scored again.
        StoreError: the board's folder has rules or files that nobody accepted.
    """
    change = find_rule_change(session.repository, session.vault)
    if change is not None:
        refuse_rules(change)
    entries = {name: decide.check_published(session, name) for name in ids}
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    ahead = Precomputed(session, sets)
    own = shard.deal(entries, size=lambda name: size_of(session, entries[name]))
    with progress.steps("scoring", len(own)) as done:
        outcome = score_ahead(ahead, own, done=done)
    return PartOfCorrection(
        shard=shard, entries=len(entries), outcome=outcome, stored_in=ahead.folder
    )


def _conclude(
    session: Session,
    forge: ForgeAccess,
    decisions: Sequence[Decision],
    reviews: Mapping[str, Review] | None = None,
) -> Outcome:
    outcome = Outcome(
        decisions=tuple(decisions), rebuilt=catch_up(session, news=_is_news(decisions))
    )
    answer_all(session, forge, outcome.done, reviews or {})
    return outcome


def _is_news(decisions: Iterable[Decision]) -> bool:
    return any(decision.event is not None for decision in decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """What has arrived.

    Attributes:
        rules: the held-out files that this call committed to, `None` for none.
        receipts: what became of each arrival; registrations first.
        silent: the remotes, or the forge, that did not answer: what waits there is not known.
        unfetched: sources that take long to fetch; the next call goes on with them.
        rebuilt: what was made public again.
    """

    rules: NotedRules | None
    receipts: tuple[Receipt, ...]
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
    arrivals = [arrival for arrival in listed if not arrival.waits]
    requests = {arrival.source for arrival in arrivals}  # those that are open, as the forge says
    registrations, sources = find_registrations(session, folders, requests)
    registered = receive_registrations(session, registrations)
    submissions = (one for one in arrivals if one.source not in sources)
    receipts = (*registered, *receive(session, submissions, accepted=accepted))
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
) -> tuple[list[Arrival], frozenset[str]]:
    """Registrations that wait, and the branches and requests that bring nothing else.

    None where the board has no registration.

    Args:
        session: its lock is held; its remotes were asked.
        folders: where files were left.
        requests: `pull request N` of those that are open.
    """
    git = session.repository.git
    head = git.head() if git.is_repository() else None
    found: list[Arrival] = []
    if session.spec().registration is None:
        return [], frozenset()
    if head is not None:
        found += find_registrations_in_git(git, main=head, requests=requests)
    sources = frozenset(arrival.source for arrival in found)
    if head is not None:
        found += find_merged_registrations(git, main=head)
    forge = session.spec().forge
    if forge is not None and forge.kind == "folder":
        folders = [*folders, git.root / Path(forge.url).expanduser()]
    for folder in folders:
        found += find_registrations_in_folder(folder)
    return found, sources


def list_waiting(session: Session) -> list[Submission]:
    """What waits for a decision or an answer, the longest first."""
    since = {s.id: s.waits_since for s in session.history().submissions.values()}
    waiting = sorted((when, name) for name, when in since.items() if when is not None)
    return [session.find(name) for _, name in waiting]


def list_reveals(session: Session) -> list[tuple[str, date]]:
    """Embargoes that end within a week."""
    return sorted(
        (s.id, s.embargo_until)
        for s in session.history().submissions.values()
        if s.status == "published"
        and s.embargo_until is not None
        and 0 <= (s.embargo_until - session.now.date()).days <= _WEEK
    )


def list_public_overdue(session: Session) -> tuple[Overdue, ...]:
    """What the public log still withholds although its day has come: nobody has rebuilt since."""
    return list_overdue_at(find_public_log(session.repository, session.vault), now=session.now)


def _list_arrivals(
    session: Session, forge: ForgeAccess, folders: Sequence[Path], *, ask_remote: bool
) -> tuple[list[Arrival], tuple[str, ...]]:
    """What lies there, and which remotes, or the forge, did not answer."""
    git = session.repository.git
    form = session.spec().envelope
    found: list[Arrival] = []
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
            for arrival in find_in_git(
                git, form, main=head, unread=unread, waiting=waiting, taken=taken_in(session)
            )
            # What is open there, the forge says better: closed requests keep their refs.
            if hosted is None or arrival.source.startswith("branch ")
        ]
        requests = fetch_requests(session, forge) if ask_remote else ()
        found += [*(requests or ()), *list_merged(session, main=head)]
        silent += ["the forge"] * (requests is None)
    for folder in folders:
        found += find_in_folder(folder, form)
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
