"""Takes in what has arrived from branches, requests and folders, and lists what waits.

Sealed bytes go into the vault first, then the event is logged that fixes their time. Of two
arrivals that claim one id at once neither is taken in until an organiser has decided. An id can be
read on the branch that it is sent from. Whoever is quick can send files of their own under it, and
the server does not say whose commit came first: dates in commits are what their authors wrote, and
the order of refs is that of their names. So whichever was taken silently, the other team could lose
its submission to whoever sorts first.

Registrations arrive in the same ways. One that is refused is shown and leaves no event, as with
submissions. One that is taken in stands until an organiser revokes it, for a reason.
"""

import secrets
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import msgspec

from heldout.board.log import events, manifest, reading, registration
from heldout.board.log.history import History, is_signed
from heldout.board.log.submission import Submission
from heldout.board.organiser import answer, rebuild
from heldout.board.participant.team import (
    current_agreement,
    registration_closed,
    require_registration,
)
from heldout.board.policy import amending, checks
from heldout.board.policy.registered import check_registrant, revoked_before
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.public_log import find_public_log
from heldout.board.scores.score import check_id, open_manifest, open_own_key, signature_field
from heldout.board.scores.session import NotedRules, Session, note_held_out
from heldout.board.standings.overdue import Overdue, list_overdue_at
from heldout.board.store import arrivals, fetching
from heldout.board.store.arrivals import Arrival, Taken, blob_id, find_merged, list_metadata
from heldout.envelope.bundle import SealedMessage, file_names, open_message, open_metadata
from heldout.envelope.keys import Form
from heldout.errors import InputError, Problem, StoreError, TrustError, plural, quote
from heldout.ids import SubmissionId, digest_bytes

_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalReceipt:
    """What became of one arrival.

    Attributes:
        source: where it came from.
        id: the submission, `None` where not even that is clear.
        team: handle of a team that registered; "" for a submission.
        kind: the event's kind, `refused`, or `known` where it was taken in before.
        problems: why it was refused.
        mark: of a refusal: the same only for the same files and the same problems.
        printed_before: whether this refusal was printed in full before.
        notes: what the organisers should look at, though it was taken in.
    """

    source: str
    id: SubmissionId | None
    kind: str
    problems: tuple[Problem, ...] = ()
    mark: str = ""
    printed_before: bool = False
    team: str = ""
    notes: tuple[str, ...] = ()


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
    receipts: tuple[ArrivalReceipt, ...]
    silent: tuple[str, ...]
    unfetched: tuple[str, ...]
    rebuilt: rebuild.Rebuilt


def take_in(
    session: Session,
    forge: answer.ForgeAccess,
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
    registered = receive_registrations(session, registrations)
    submissions = [one for one in here if one.source not in sources]
    receipts = (*registered, *receive(session, submissions, accepted=accepted))
    rebuilt = rebuild.catch_up(session, news=False)
    answer.answer_all(session, forge, [str(r.id) for r in receipts if r.kind == "received"], {})
    # Where registered teams wait for an answer: a request may have had none.
    registered_at = {
        receipt.team: receipt.source
        for receipt in receipts
        if receipt.team
        and (receipt.kind == "registered" or receipt.source.startswith("pull request "))
    }
    answer.answer_registrations(session, forge, registered_at)
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
    session: Session, forge: answer.ForgeAccess, folders: Sequence[Path], *, ask_remote: bool
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
                taken=taken_in(session),
            )
            # What is open there, the forge says better: closed requests keep their refs.
            if hosted is None or arrival.source.startswith("branch ")
        ]
        requests = answer.fetch_requests(session, forge) if ask_remote else ()
        found += [*(requests or ()), *list_merged(session, main=head)]
        silent += ["the forge"] * (requests is None)
    for folder in folders:
        found += arrivals.find_in_folder(folder, form)
    return found, tuple(silent)


def _fetch(
    session: Session, forge: answer.ForgeAccess, *, requests: bool
) -> tuple[Mapping[str, str], list[str], tuple[str, ...]]:
    """Ask all remotes: ref -> why it was not fetched; refs that wait; and what did not answer.

    A remote that does not answer gets a note, and the others are asked.
    """
    registers = session.spec().registration is not None
    kinds = fetching.BRANCHES if registers else fetching.BRANCHES[:1]
    git = session.repository.git
    unread: dict[str, str] = {}
    waiting: list[str] = []
    silent: list[str] = []
    remotes = {remote: remote for remote in git.remotes()}
    form = session.spec().envelope
    done_at = fetching.fetch_arrivals(git, remotes, form, kinds=kinds, requests=requests)
    for remote, done in done_at.items():
        if isinstance(done, StoreError):
            forge.progress.note("note", f"remote {remote} was not asked: {done}")
            silent.append(f"remote {remote}")
            continue
        unread |= {**done.refused, **done.failed}
        waiting += done.waiting
        silent += [f"remote {remote}, of {plural(len(done.failed), 'ref')}"] * bool(done.failed)
    return unread, waiting, tuple(silent)


def refuse_contested(
    arrivals: Iterable[Arrival], *, known: Collection[str], accepted: Collection[str] = ()
) -> list[Arrival]:
    """The arrivals, where those that claim one new id are refused, all of them.

    Args:
        arrivals: of one call.
        known: ids that are taken: those belong to whom they were received from.
        accepted: sources that an organiser decided for; of several arrivals with one id, the one
            that came from there is taken in and the others are refused.

    Raises:
        InputError: a source was named from which nothing came that is contested.
    """
    taken = {submission.lower(): submission for submission in known}
    arrivals = [_refuse_look_alike(arrival, taken) for arrival in arrivals]
    claims: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        # Metadata alone claim no new id: there is nothing yet that they could change.
        new = arrival.id is not None and arrival.core and arrival.id.lower() not in taken
        if arrival.id is not None and new and not arrival.problems:
            claims[arrival.id.lower()].append(arrival)
    contested = {id_: rivals for id_, rivals in claims.items() if _differ(rivals)}
    _check_accepted(accepted, contested.values())
    refused = {
        id(arrival): _contested(arrival, rivals)
        for rivals in contested.values()
        for arrival in rivals
        if [rival for rival in rivals if rival.source in accepted] != [arrival]
    }
    return [
        replace(arrival, problems=(refused[id(arrival)],)) if id(arrival) in refused else arrival
        for arrival in arrivals
    ]


def _refuse_look_alike(arrival: Arrival, taken: Mapping[str, str]) -> Arrival:
    """An id that differs from another in case alone would be the same file on some machines."""
    other = None if arrival.id is None else taken.get(arrival.id.lower())
    if other is None or other == arrival.id or arrival.problems:
        return arrival
    found, hint = f"an id that differs from {other} in case alone", "heldout draft makes a new id"
    problem = Problem("id-taken", str(arrival.id), found, "a new id", hint)
    return replace(arrival, problems=(problem,))


def _differ(rivals: list[Arrival]) -> bool:
    """Check whether they bring several runs or keys.

    A copy with other metadata is no rival: only whoever has the submission's key can seal metadata
    that open, and of those that do not the team's own take the place.
    """
    alike = rivals[0].core and all(rival.core == rivals[0].core for rival in rivals)
    return len(rivals) > 1 and not alike


def _contested(arrival: Arrival, rivals: Iterable[Arrival]) -> Problem:
    others = ", ".join(sorted(rival.source for rival in rivals if rival is not arrival))
    found = f"other files under this id, from {others}"
    hint = f"ask the teams whose it is, then: heldout inbox --accept {quote(arrival.source)}"
    return Problem("id-conflict", str(arrival.id), found, "one submission that claims an id", hint)


def _check_accepted(accepted: Collection[str], contested: Iterable[list[Arrival]]) -> None:
    sources = sorted({arrival.source for rivals in contested for arrival in rivals})
    for source in sorted(set(accepted) - set(sources)):
        found = f"{quote(source)}, from where nothing came that is contested"
        expected = "one of " + ", ".join(sources) if sources else "nothing, for none is"
        raise InputError.of("id-conflict", "--accept", found, expected)


_MERGED = "merged"
_MANY = 1_000
_METADATA = "-metadata.json."
_SMALL = 1 << 17
_LOOKED_AT = 1 << 14
_LOOKS = 16
_DENSE = 0.95


def receive(
    session: Session, arrivals: Iterable[Arrival], *, accepted: Collection[str] = ()
) -> tuple[ArrivalReceipt, ...]:
    """Log every arrival that is new; each is safe in the vault before its event is written.

    A refused arrival is told and leaves no event: it has no place in the board's history.

    Args:
        session: its lock is held.
        arrivals: what lies there.
        accepted: sources that an organiser decided for, where two claim one id.

    Raises:
        InputError: a source was named from which nothing came that is contested.
    """
    known = session.history().submissions
    fair = refuse_contested(arrivals, known=known, accepted=accepted)
    taken = set(taken_in(session)) if fair else set[Taken]()
    return _take_all(session, fair, partial(_log, taken=taken))


def list_merged(session: Session, *, main: str) -> tuple[Arrival, ...]:
    """Return what was merged into the board's main branch before it was taken in.

    Args:
        session: its lock is held.
        main: the commit of the main branch.
    """
    git, form = session.repository.git, session.spec().envelope
    known = reading.decode_memory(session.vault.recall(_MERGED), _Merged) or _Merged()
    tree = git.blob_of(main, "submissions") or ""
    if tree == known.tree:
        return ()
    files = git.files(main, "submissions")
    here = list_metadata(files, form)
    blobs = known.blobs & here.keys()
    if new := here.keys() - blobs:  # mostly the metadata of the submissions that they name
        owners = {here[blob] for blob in new}
        blobs |= _blobs_of(session, session.vault.log().select_about(owners), like=main)
    if not here.keys() <= blobs:
        blobs |= _blobs_of(session, session.vault.log().holding("files"), like=main)
    every = session.history().submissions.values()
    published = {s.id for s in every if s.status == "published"}
    found = tuple(find_merged(git, form, files, known=blobs, published=published))
    if not found and len(here) >= _MANY:
        memory = _Merged(tree=tree, blobs=blobs & here.keys())
        session.vault.remember(_MERGED, reading.encode_memory(memory))
    return found


class _Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What the vault remembers of the folder `submissions` on the board's main branch.

    Attributes:
        tree: the folder, as git names it, when nothing in it was new; "" for none.
        blobs: metadata files in it that the log names, as git names them.
    """

    tree: str = ""
    blobs: frozenset[str] = frozenset()


def _blobs_of(session: Session, entries: Iterable[events.Entry], *, like: str) -> frozenset[str]:
    """The sealed metadata that events name, as git names it; the bytes of each are read."""
    digests = {
        digest
        for entry in entries
        for name, digest in (entry.get("files") or {}).items()
        if _METADATA in name
    }
    found = set()
    for digest in digests:
        with suppress(StoreError):  # the audit tells of those that are missing or damaged
            found.add(blob_id(session.vault.sealed(digest).read_bytes(), like=like))
    return frozenset(found)


def note_printed(session: Session, receipts: Iterable[ArrivalReceipt]) -> None:
    """Remember the refusals among these, so that later calls say them in one line."""
    printed = session.vault.printed_refusals()
    marks = {receipt.mark for receipt in receipts if receipt.mark}
    if not marks <= printed:
        session.vault.store_printed(printed | marks)


def _take_all(
    session: Session, arrivals: Iterable[Arrival], log: Callable[[Session, Arrival], ArrivalReceipt]
) -> tuple[ArrivalReceipt, ...]:
    """Return what becomes of each; refusals that were printed in full before are marked so."""
    printed = session.vault.printed_refusals()
    receipts = [_take(session, arrival, log) for arrival in arrivals]
    return tuple(replace(r, printed_before=True) if r.mark in printed else r for r in receipts)


def _take(
    session: Session, arrival: Arrival, log: Callable[[Session, Arrival], ArrivalReceipt]
) -> ArrivalReceipt:
    problems = arrival.problems
    try:
        if not problems:
            return log(session, arrival)
    except InputError as error:
        problems = error.problems
    except TrustError as error:
        problems = (Problem.of("untrusted", str(arrival.id), str(error)),)
    lines = [arrival.fingerprint, *(f"{p.code} {p.path} {p.found}" for p in problems)]
    mark = digest_bytes("\n".join(lines).encode())
    return ArrivalReceipt(
        source=arrival.source, id=arrival.id, kind="refused", problems=problems, mark=mark
    )


def taken_in(session: Session) -> frozenset[Taken]:
    """Return id and fingerprint of all that was taken in, as the log has them."""
    found = session.vault.log().public_texts("fingerprint")
    return frozenset((name, text) for name, text in found if name is not None and text)


def _log(session: Session, arrival: Arrival, *, taken: set[Taken]) -> ArrivalReceipt:
    if arrival.id is None:
        raise InputError(arrival.problems)
    mark = (str(arrival.id), arrival.fingerprint)
    kind = "known" if mark in taken else _log_submission(session, arrival, arrival.id)
    taken.add(mark)
    return ArrivalReceipt(source=arrival.source, id=arrival.id, kind=kind)


def _log_submission(session: Session, arrival: Arrival, submission: SubmissionId) -> str:
    session.check_open("received")
    spec = session.spec()
    names = file_names(spec.envelope, submission)
    files = arrival.read()
    before = session.history().in_any_case(submission)
    if before is not None and before.id == submission and _repeats(files, before, names.metadata):
        return _update(session, arrival, spec, files[names.metadata], before)
    if before is not None:
        raise InputError(_taken(submission, before))
    if names.key not in files:
        raise InputError(_nothing_to_update(arrival, None))
    _check_sealed(spec.envelope, files)
    session.vault.check_room(sum(map(len, files.values())))
    digests = {name: str(session.vault.store_sealed(data)) for name, data in files.items()}
    public = {"files": digests, "fingerprint": arrival.fingerprint, "source": arrival.source}
    session.log("received", submission, public=public)
    return "received"


def _check_sealed(form: Form, files: Mapping[str, bytes]) -> None:
    """Refuse large files that nobody sealed: a push of a few bytes could fill the vault with them.

    What is sealed begins as its program writes it, and cannot be compressed. Where it is looked at
    is drawn, so that no file can be made to pass.
    """
    magic = b"age-encryption.org/v1\n" if form == "age" else b"Salted__"
    for name, data in files.items():
        if len(data) <= _SMALL:
            continue
        starts = [secrets.randbelow(len(data) - _LOOKED_AT) for _ in range(_LOOKS)]
        looked = [data[start : start + _LOOKED_AT] for start in starts]
        dense = all(len(zlib.compress(part, 1)) > _DENSE * _LOOKED_AT for part in looked)
        if not data.startswith(magic) or not dense:
            found = "bytes that can be compressed" if not dense else "another beginning"
            raise InputError.of("not-sealed", name, found, form=form)


def _repeats(files: Mapping[str, bytes], before: Submission, metadata: str) -> bool:
    """Check whether nothing but the metadata may be new; runs and key stay as they were received.

    Else anybody could take the open files of a submission and put a broken run beside them.
    """
    return not before.baseline and all(
        digest_bytes(data) == before.files[name] for name, data in files.items() if name != metadata
    )


def _update(
    session: Session, arrival: Arrival, spec: BoardSpec, sealed: bytes, before: Submission
) -> str:
    """New metadata under the same key: opens under it, has the same id, a higher revision."""
    # What never opened may have been spoiled by somebody else, before the team's own was read.
    spoiled = before.status == "rejected" and before.identity is None
    if before.status in ("withdrawn", "rejected") and not spoiled:
        raise InputError(_nothing_to_update(arrival, before))
    names = file_names(spec.envelope, SubmissionId(before.id))
    if _was_sent(session, before.id, names.metadata, digest_bytes(sealed)):
        raise InputError(_stale("the very file that was sent before", "a file of its own"))
    key = open_own_key(session.vault, session.spec_at(before.received), before)
    metadata, signature = manifest.split_signature(open_metadata(spec.envelope, sealed, key=key))
    new = manifest.parse_manifest(metadata)
    check_id(spec, new, before.id)
    old = _metadata_in_force(session, before)
    if old is not None:
        _check_revision(spec, old, new, before)
    if before.status == "published":
        amending.refuse_closed_runs(session.spec_at(before.received), new)
        _check_metadata(session, before, new)
    _check_signer(session, before, new, signature)
    if spoiled:
        _restore_runs(session, arrival, before)
    digest = str(session.vault.store_sealed(sealed))
    if spoiled:
        public = {"files": {**before.files, names.metadata: digest}, "source": arrival.source}
        session.log("received", before.id, public={**public, "fingerprint": arrival.fingerprint})
        return "received"
    known = before.identity
    renames = known is not None and (new.team, new.institution) != (known.team, known.institution)
    # A published entry's new name is for an organiser to decide.
    proposed = renames and before.status == "published"
    kind = "proposed" if proposed else "withdrawn" if new.withdrawn else "updated"
    public = {"files": {names.metadata: digest}, "fingerprint": arrival.fingerprint}
    public |= {"source": arrival.source} if kind == "proposed" else {}
    fields = {"identity": manifest.identity_fields(new), "revision": new.revision}
    fields |= signature_field(session.spec_at(before.received), signature)
    session.log(kind, before.id, public=public, sealed=fields)
    return kind


def _restore_runs(session: Session, arrival: Arrival, before: Submission) -> None:
    """Store the runs once more that were removed when a spoiled copy was rejected."""
    files = arrival.read()
    for name, digest in before.files.items():
        if session.vault.has_sealed(digest):
            continue
        if name not in files:
            raise InputError(_nothing_to_update(arrival, None))
        session.vault.check_room(len(files[name]))
        session.vault.store_sealed(files[name])


def _check_metadata(session: Session, before: Submission, new: manifest.Manifest) -> None:
    """Check what metadata have to say at the start, and an entry's for good."""
    case = checks.Case(
        spec=session.spec_at(before.received),
        history=session.history(),
        id=SubmissionId(before.id),
        received=before.received,
        manifest=new,
        problems={},
        reader="organiser",
    )
    expected = "what the board asks of every submission (docs/reference/policy.md)"
    hint = "the entry stays as it is; fix it and call heldout amend"
    problems = [
        Problem(finding.rule, "metadata.json", finding.evidence, expected, hint)
        for finding in checks.judge(case, again="amended")
    ]
    if problems:
        raise InputError(problems)


def _check_signer(
    session: Session,
    before: Submission,
    new: manifest.Manifest,
    signature: manifest.SubmissionSignature | None,
) -> None:
    """Check that nobody changes what another team has signed."""
    if before.signature is None:
        return
    history = session.history()
    updated = replace(before, revision=new.revision, signature=signature)
    same = signature is not None and signature.team == before.signature.team
    if not same or not is_signed(history, updated):
        found = "new metadata without the signature of the team that sent the submission"
        expected = f"one by {before.signature.team}"
        hint = "amend in the clone that submitted it"
        raise InputError.of("bad-signature", "metadata.json", found, expected, hint)


def _metadata_in_force(session: Session, before: Submission) -> manifest.Manifest | None:
    """The metadata that an update replaces; `None` where it is so wrong that it says nothing."""
    try:
        return open_manifest(session.vault, session.spec_at(before.received), before)[1]
    except (InputError, TrustError):
        # Anybody can send a copy of the open files with metadata of nonsense before the team's own.
        return None


def _was_sent(session: Session, submission: str, name: str, digest: str) -> bool:
    """Check whether an event has this very metadata file."""
    return any(
        (entry.get("files") or {}).get(name) == digest
        for entry in session.vault.log().select_about([submission])
    )


def _stale(found: str, expected: str) -> Problem:
    hint = "an old file sent again is refused; heldout amend counts up by itself"
    return Problem("stale-revision", "metadata.json:revision", found, expected, hint)


def _check_revision(
    spec: BoardSpec, old: manifest.Manifest, new: manifest.Manifest, before: Submission
) -> None:
    if (new.digests, new.program) != (old.digests, old.program):
        raise TrustError
    # The scripts of the MS MARCO boards write no revision: there it stays at 1.
    same = spec.envelope == "openssl" and new.revision == old.revision == 1
    last = max(old.revision, 0 if before.proposal is None else before.proposal.revision)
    if new.revision <= last and not same:
        expected = f"more than {last}, the last revision that was taken in"
        raise InputError(_stale(str(new.revision), expected))
    if before.status != "published":
        return
    if new.withdrawn:
        raise InputError.of("published-stays", "metadata.json:withdrawn")
    amending.refuse_changed_terms((old.type, old.embargo_until), new)


def _taken(submission: SubmissionId, before: Submission) -> Problem:
    same = "an id" if before.id == submission else f"the id of {before.id} in another case"
    found = f"other sealed files under {same}; it is {before.status} already"
    return Problem.of("id-taken", str(submission), found)


def _nothing_to_update(arrival: Arrival, before: Submission | None) -> Problem:
    found = "metadata alone" if before is None else f"a submission that was {before.status}"
    expected = "a submission that was received before and still stands"
    hint = "submit all three files first" if before is None else "heldout draft makes a new id"
    return Problem("nothing-to-update", str(arrival.id), found, expected, hint)


def receive_registrations(
    session: Session, arrivals: Iterable[Arrival]
) -> tuple[ArrivalReceipt, ...]:
    """Log every registration that is new and holds; the others are told and leave no event."""
    return _take_all(session, arrivals, _log_registration)


def revoke(session: Session, team: str, *, why: str) -> int | None:
    """End a registration, for a reason; both are public. What was published stays.

    Returns:
        Number of the event, `None` where it was revoked before.

    Raises:
        InputError: no such team has registered.
    """
    known = session.history().teams.get(team)
    if known is None:
        raise InputError.of("unknown-team", "TEAM", quote(team))
    if known.revoked is not None:
        return None
    public = {"team": team, "why": why}
    return session.log("revoked-registration", None, public=public).event.seq


def _log_registration(session: Session, arrival: Arrival) -> ArrivalReceipt:
    session.check_open("registered")
    spec, history = session.spec(), session.history()
    require_registration(spec)
    ((path, data),) = arrival.read().items()
    file, statement = registration.read_registration(data, path=path)
    team = registration.team_handle(statement.key)
    # By what was signed: the same under another name, or sealed by somebody else, is not new.
    if any(
        entry.get("team") == team and entry.get("statement") == file.statement
        for entry in session.vault.log().select("registered")
    ):
        return ArrivalReceipt(source=arrival.source, id=None, kind="known", team=team)
    if statement.board != history.board:
        raise registration.bad_signature(path, "a registration for another board")
    if team in history.teams and history.teams[team].key != statement.key:
        raise registration.bad_signature(path, "another key that has the same short digest")
    _check_current(session, spec, history, statement)
    registrant = _open(session, spec, path, file, statement)
    _check_names(spec, history, team, registrant)
    public = {
        "team": team,
        "statement": file.statement,
        "signature": file.signature,
        "source": arrival.source,
    }
    sealed = {"registrant": msgspec.to_builtins(registrant)}
    session.log("registered", None, public=public, sealed=sealed)
    teams = session.history().teams
    return ArrivalReceipt(
        source=arrival.source,
        id=None,
        kind="registered",
        team=team,
        notes=tuple(revoked_before(teams[team], teams.values())),
    )


def _check_current(
    session: Session, spec: BoardSpec, history: History, statement: registration.Statement
) -> None:
    """Refuse a registration that is late, old, revoked, or for another text."""
    rules = require_registration(spec)
    known = history.teams.get(registration.team_handle(statement.key))
    closes = rules.closes
    if known is None and closes is not None and session.now.date() > closes:
        raise InputError(registration_closed(rules, session.now))
    if known is not None:
        _check_newer(known, statement)
    agreement = current_agreement(spec, history)
    if statement.agreement != ("" if agreement is None else agreement.digest):
        text = "none, for this board has no agreement"
        if agreement is not None:
            text = f"{agreement.path} as it stands since {agreement.since:%d %b %Y}"
        found = "another text that was agreed to"
        hint = "git pull, then heldout register shows the text and asks again"
        raise InputError.of("other-agreement", "registration:agreement", found, text, hint)


def _check_newer(known: registration.RegisteredTeam, statement: registration.Statement) -> None:
    if known.revoked is not None:
        code, found = "registration-revoked", f"revoked on {known.revoked:%d %b %Y}: {known.why}"
        expected = "a registration that stands"
    elif events.parse_time(statement.at) <= known.signed:
        code, found = "stale-registration", f"signed at {statement.at}"
        expected = f"one signed after {known.signed:%d %b %Y %H:%M:%S} UTC, as the one in force"
    else:
        return
    raise InputError.of(code=code, path=known.handle, found=found, expected=expected)


def _open(
    session: Session,
    spec: BoardSpec,
    path: str,
    file: registration.RegistrationFile,
    statement: registration.Statement,
) -> registration.Registrant:
    """Return who registers; refused where it is not what was signed for."""
    message = SealedMessage(key=file.key, words=file.registrant)
    try:
        words = open_message(spec.envelope, message, session.vault.identities())
        registrant = msgspec.json.decode(words, type=registration.Registrant)
        if registration.registrant_digest(registrant) == statement.private:
            return registrant
    except (TrustError, msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    found = "sealed names that do not open, or are not those that were signed for"
    expected = "the file that heldout register writes, unchanged"
    hint = "if the organisers' keys changed since: git pull, then heldout register once more"
    raise InputError.of("untrusted", quote(path), found, expected, hint)


def _check_names(
    spec: BoardSpec, history: History, team: str, registrant: registration.Registrant
) -> None:
    """Refuse a name that does not do, is another team's, or is not the one of this key."""
    problems = [*check_registrant(registrant, spec)]
    for other in history.teams.values():
        if other.registrant is None or other.revoked is not None:
            continue
        same = manifest.team_key(other.registrant.team) == manifest.team_key(registrant.team)
        if same != (other.handle == team):
            problems.append(
                Problem.of(
                    "name-registered",
                    "registration:team",
                    f"{quote(registrant.team)}, of another key or name than before",
                    handle=other.handle,
                )
            )
    if problems:
        raise InputError(problems)
