"""Verifies both logs and what was made from them; changes nothing.

`hold_against` holds the result against what others have: a receipt, an older copy of the log.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from itertools import zip_longest
from pathlib import Path

import msgspec
from cryptography.x509 import Certificate

from heldout.board.audit.replay import Replay, replay_releases
from heldout.board.audit.timestamps import TimeStamp, check_stamps
from heldout.board.log.events import (
    Chain,
    Entry,
    Signers,
    name_of_key,
    parse_log,
    parse_time,
    signers_after,
)
from heldout.board.log.history import History, check_continues, read_history
from heldout.board.log.manifest import read_program
from heldout.board.log.submission import Submission
from heldout.board.participant import checks, receipts
from heldout.board.policy.registered import registration_faults, signature_faults
from heldout.board.rules import changes, template
from heldout.board.rules.days import list_early, list_early_finals, list_moved
from heldout.board.rules.spec import BoardSpec, QuerySet
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores import commitments, releasing, sets, stored
from heldout.board.scores.score import ViewScore, open_manifest
from heldout.board.site.exports import format_csv, format_json
from heldout.board.standings.overdue import list_due_ends, list_wrong_ends, say_season
from heldout.board.standings.standings import current_standings
from heldout.board.store import arrivals, sharing
from heldout.board.store.repository import KEYS, LEADERBOARD, SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.errors import HeldoutError, StoreError, TrustError, plural, quote
from heldout.ids import digest_bytes

FINAL_CHECKED = "the final, computed again: scores, who is clearly below the best, winner, luck"
ENDS_CHECKED = "the ends of seasons: the day, and whose exact scores were published"

# Pages of another version, or charts drawn on another machine, are other bytes of the same numbers.
_PAGES = (
    "the pages (HTML, feed): heldout rebuild, in a clone and without a vault, makes them again "
    "from the log, and git diff shows what was different"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        events: events in the public log.
        checked: what was verified, in words.
        faults: what does not hold.
        notes: what holds and is worth telling.
        unchecked: what it does not look at, in words.
        signers: who may sign the next event, by the public log.
        stamps: time stamps of the log that hold, by event.
    """

    events: int
    checked: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    signers: Signers = field(default_factory=dict)
    stamps: tuple[TimeStamp, ...] = ()


def audit_board(
    repository: Repository, vault: Path | Vault | None, *, roots: Sequence[Certificate] = ()
) -> Audit:
    """Verify a board's public log, and its vault where one is given.

    Args:
        repository: the board.
        vault: it or its folder, `None` without one; nothing is written to it.
        roots: certificates of authorities whose time stamps are believed.
    """
    checked = [
        "chain, order, times, openings and signatures of the public log",
        "board.toml, keys, sealed files and leaderboard.json and .csv against it",
    ]
    try:
        public = repository.log()
        if not public:
            return Audit(events=0, checked=(), faults=("log.jsonl is missing or empty",))
        history = read_history(public)
        faults = [*_check_files(repository, history), *_find_unlogged(repository, history, public)]
        faults += _check_leaderboard(repository, public)
        faults += [*list_moved(history), *list_early(history), *list_early_finals(history)]
        faults += list_wrong_ends(public, history)
        stamped = check_stamps(repository, public, roots)
        faults += stamped.faults
        checked += [ENDS_CHECKED] * bool(history.season_ends)
        if history.files:
            checked.append("queries, public labels and candidates against its digests")
        if history.teams or history.agreements:
            checked.append("registrations and the agreements' texts")
            faults += registration_faults(public)
        faults_of_rules, notes = _check_rules(repository, history)
        faults += [*faults_of_rules, *_check_public(repository, history)]
        notes += [*_note_signers(public), *stamped.notes]
        notes += _note_ends(history, public[-1].time.date())
        if vault is not None:
            checked += ["the vault's log, sealed files, labels and scores", "both logs alike"]
            if isinstance(vault, Path):
                vault = Vault.open(vault, board=repository.root, read_only=True)
            vault = replace(vault, read_only=True)
            entries = _read_entries(vault, public)
            removed = _list_removed(vault)
            faults += _check_vault(vault, entries, public, removed)
            replay = _check_releases(repository, vault, entries)
            faults += replay.faults
            notes += [*_note_held_out(vault, vault.history()), *replay.notes]
            if removed:
                runs = plural(len(removed), "sealed run")
                notes.append(f"{runs} of rejected or withdrawn submissions: removed from the vault")
            notes += _note_final(vault, vault.history())
            notes += map(stored.say_mixed, stored.find_mixed(vault, vault.history()))
            checked.append(f"{plural(replay.releases, 'release')} by the release rule of the day")
            if history.final is not None and history.final.opened is not None:
                checked.append(FINAL_CHECKED)
            later = len(entries) - len(public)
            notes += [f"{_events(later)} not public yet: heldout rebuild"] * (later > 0)
    except HeldoutError as error:
        return Audit(events=0, checked=(), faults=(str(error),))
    return Audit(
        events=len(public),
        checked=tuple(checked),
        faults=tuple(faults),
        notes=tuple(notes),
        signers=history.signers,
        stamps=stamped.stamps,
        unchecked=(
            *filter(None, [stamped.unchecked]),
            _PAGES,
        ),
    )


def _note_signers(public: Sequence[Entry]) -> Iterator[str]:
    """List the events that name another organiser than their signer."""
    signers: Signers = {}
    for entry in public:
        before = signers
        signers = signers_after(before, entry.event.kind, entry.event.public)
        if entry.signature is None:
            continue
        name = name_of_key(entry.signature.key, before or signers)
        if name != entry.event.by:
            by = quote(entry.event.by)
            yield f"event {entry.event.seq} says that it is by {by}, and {quote(name)} signed it"


def _check_files(repository: Repository, history: History) -> Iterator[str]:
    """Every published submission's sealed files are there, as they were received."""
    for submission in history.submissions.values():
        for name, digest in submission.files.items() if submission.status == "published" else ():
            data = repository.files.find(f"submissions/{name}")
            if data is None:
                yield f"submissions/{name} is missing"
            elif digest_bytes(data) != digest:
                yield f"submissions/{name} is not the file that was received"


def _find_unlogged(
    repository: Repository, history: History, public: Sequence[Entry]
) -> Iterator[str]:
    """Sealed files that lie among the published ones, and of which the log says nothing.

    Such as those of a pull request that was merged before it was taken in.
    """
    form = parse_spec(history.rules[-1][1].encode(), path="the rules in the log").envelope
    every = history.submissions.values()
    published = {name for s in every if s.status == "published" for name in s.files}
    logged = {pair for entry in public for pair in (entry.get("files") or {}).items()}
    files = repository.files.below("submissions")
    plain = {name for name, is_plain in files.walk() if is_plain}
    for name in files.names():
        if name in published or arrivals.sealed_owner(name, form) is None:
            continue
        if name not in plain or (name, digest_bytes(files.read(name))) not in logged:
            yield (
                f"submissions/{name} is in no event: heldout inbox takes it in, or refuses it "
                "and says why; then remove it"
            )


def _check_leaderboard(repository: Repository, public: Sequence[Entry]) -> Iterator[str]:
    """The leaderboard's data are what the log gives at the time that they name."""
    folder = repository.files.below(LEADERBOARD)
    try:
        table, rows = folder.read("leaderboard.json"), folder.read("leaderboard.csv")
        as_of = parse_time(msgspec.json.decode(table)["as_of"])
    except (OSError, msgspec.MsgspecError, ValueError, TypeError, KeyError):
        yield "leaderboard.json or leaderboard.csv is missing or unreadable: heldout rebuild"
        return
    spec = parse_spec(read_history(public).rules[-1][1].encode(), path="the rules in the log")
    standings, spec = current_standings(public, spec, now=as_of)
    for name, found, expected in (
        ("leaderboard.json", table, format_json(standings, spec)),
        ("leaderboard.csv", rows, format_csv(standings, spec)),
    ):
        if found != expected:
            yield f"{name} is not what the log gives as of {as_of:%d %b %Y %H:%M:%S} UTC"


def _check_rules(repository: Repository, history: History) -> tuple[list[str], list[str]]:
    """List what board.toml and keys/ say that the log does not: faults, and notes.

    A clone's board.toml is read by people, and keys/organisers.txt by `age -R`: both must be what
    the log has, whoever changed them.
    """
    text = history.rules[-1][1]
    before = parse_spec(text.encode(), path="the rules in the log")
    faults, notes = [], []
    try:
        differences = changes.list_differences(before, repository.tree_spec())
    except HeldoutError as error:
        return [f"board.toml is not what the log has, and wrong: {error}"], []
    decisive = [str(one) for one in differences if one.decides]
    if decisive:
        faults.append(
            f"board.toml is not what the log has: {'; '.join(decisive)} (the log counts; an "
            "organiser accepts such an edit with heldout rebuild --accept-rules, or puts the log's "
            "back with --restore-rules)"
        )
    if repository.tree_rules() != text and not decisive:
        keys = ", ".join(one.key for one in differences) or "comments or layout only"
        notes.append(f"board.toml was edited since the last event, and decides nothing: {keys}")
    if repository.files.find(KEYS) not in (None, template.format_recipients(before.recipients)):
        faults.append(f"{KEYS} does not hold the recipients that the log has")
    return faults, notes


def _check_public(repository: Repository, history: History) -> Iterator[str]:
    """The public files that decide scores are those that an organiser has logged."""
    spec = parse_spec(history.rules[-1][1].encode(), path="the rules in the log")
    for edited in sets.find_edited(repository, history, spec):
        yield (
            f"{edited} (no score is made with it; an organiser accepts such an edit with heldout "
            "rebuild --accept-rules, or puts the log's file back with --restore-rules)"
        )


def _events(count: int) -> str:
    return "1 event is" if count == 1 else f"{count:,} events are"


def _read_entries(vault: Vault, public: Sequence[Entry]) -> tuple[Entry, ...]:
    """The vault's log, every line verified now.

    What the public log has of an event is the same object in both: of a large board two copies are
    half a gigabyte more.
    """
    chain, found = Chain(), list[Entry]()
    with vault.files.open(sharing.EVENTS) as lines:
        for line, known in zip_longest(lines, public):
            if line is None or not line.endswith(b"\n"):  # one that was never finished is none
                break
            entry = chain.take(line.removesuffix(b"\n"), where=f"{sharing.EVENTS}:{len(found) + 1}")
            found.append(entry if known is None else _share(entry, known))
    return tuple(found)


def _share(entry: Entry, known: Entry) -> Entry:
    """An event with the parts of another copy of it that are the same."""
    if entry.raw != known.raw:
        return entry
    opened = {
        name: theirs if (theirs := known.opened.get(name)) == opening else opening
        for name, opening in entry.opened.items()
    }
    return replace(entry, event=known.event, hash=known.hash, raw=known.raw, opened=opened)


def _check_vault(
    vault: Vault, entries: Sequence[Entry], public: Sequence[Entry], removed: frozenset[str]
) -> Iterator[str]:
    for ours, theirs in zip(entries, public, strict=False):
        if ours.hash != theirs.hash:
            yield f"event {ours.event.seq} differs between the two logs"
            return
    if len(entries) < len(public):
        hint = "; another organiser may have logged them: heldout rebuild takes them over"
        missing = f"{_events(len(public) - len(entries))} missing in the vault's log"
        yield missing + (hint if vault.is_shared() else "")
    history = read_history(entries)
    for submission in history.submissions.values():
        files = (*submission.files.values(), *submission.runs.values())
        yield from _check_sealed(vault, (one for one in files if one not in removed))
    held_out = {one for made in history.commitments for one in (made.files or {}).values()}
    yield from _check_sealed(vault, filter(vault.has_sealed, sorted(held_out)))
    yield from registration_faults(entries)
    yield from _check_signatures(history)
    yield from _check_scores(vault, history)
    yield from _check_final(vault, history)
    yield from _check_stored(vault, history)
    yield from _check_held_out(vault, history)
    yield from _check_programs(vault, entries, history)


def _check_sealed(vault: Vault, digests: Iterable[str]) -> Iterator[str]:
    for digest in digests:
        try:
            vault.sealed(digest)
        except HeldoutError as error:
            yield str(error)


def _check_programs(vault: Vault, entries: Sequence[Entry], history: History) -> Iterator[str]:
    """Each program that was run is the one that its team sealed."""
    for entry in entries:
        if entry.event.kind != "ran":
            continue
        submission = history.submissions[str(entry.event.submission)]
        rules = history.rules_at(submission.received).encode()
        try:
            sealed = open_manifest(vault, parse_spec(rules, path=SPEC), submission)[1].program
        except (TrustError, StoreError):  # for another organiser's key, or told above
            continue
        if read_program(entry.get("program")) != sealed:
            yield f"the program that was run for {submission.id} is not the one that was sealed"


def _list_removed(vault: Vault) -> frozenset[str]:
    """Return the runs that may be missing, and are."""
    return vault.unneeded_runs(lambda run: not vault.has_sealed(run))


def _check_stored(vault: Vault, history: History) -> Iterator[str]:
    """Yield where the vault's files of a submission are not those that the log names."""
    for submission in history.submissions.values():
        now = vault.result_digests(submission.id)
        for folder, digest in submission.stored.items():
            if now.get(folder) != digest:
                found = "is missing" if folder not in now else "is not the file that was logged"
                yield f"{sharing.result_path(folder, submission.id)} in the vault {found}"


def _check_held_out(vault: Vault, history: History) -> Iterator[str]:
    """Check that what decides scores was committed to last, and that no key changed."""
    yield from commitments.list_broken_keys(history)
    spec = parse_spec(history.rules[-1][1].encode(), path="the rules in the log")
    held = commitments.compare_held_out(vault, history, spec)
    for name in held.changed:
        file = f"labels/{changes.held_out_file(name)}"
        yield f"{file} in the vault is not the file that was committed to"


def _check_releases(repository: Repository, vault: Vault, entries: Sequence[Entry]) -> Replay:
    """Every release was what the rule of its day gives, by the scores that were kept for it."""

    def read_key(name: str, digest: str) -> bytes:
        return changes.parse_key(vault.sealed(digest).read_bytes(), path=f"labels/{name}")

    @cache
    def read_queries(path: str) -> frozenset[str]:
        files = QuerySet(queries=path)
        return frozenset(sets.load_queries(repository, files, vault=vault).texts)

    return replay_releases(
        entries, lambda digest: stored.read_evidence(vault, digest), read_key, read_queries
    )


def _note_held_out(vault: Vault, history: History) -> Iterator[str]:
    """Yield what cannot be gone over any more, or was not committed to yet."""
    spec = parse_spec(history.rules[-1][1].encode(), path="the rules in the log")
    for name in commitments.compare_held_out(vault, history, spec).new:
        file = f"labels/{changes.held_out_file(name)}"
        yield f"{file} in the vault is not committed to yet: heldout rebuild"
    lost = {
        (name, digest)
        for commitment in history.commitments
        for name, digest in (commitment.files or {}).items()
        if history.labels.get(name) != digest and not vault.has_sealed(digest)
    }
    for name, digest in sorted(lost):
        yield (
            f"labels/{changes.held_out_file(name)} of an earlier version, SHA-256 {digest[:12]}…, "
            f"is missing"
        )


def _check_signatures(history: History) -> Iterator[str]:
    """Every published submission is signed by a registered team, where its day asked for that."""
    for submission in history.submissions.values():
        if submission.status == "published":
            rules = parse_spec(history.rules_at(submission.received).encode(), path="board.toml")
            yield from signature_faults(rules, history, submission)


def _check_scores(vault: Vault, history: History) -> Iterator[str]:
    """Yield where a released score is not what the true scores give by the rules of the day."""
    for submission in history.submissions.values():
        if submission.status != "published":
            continue
        scores = stored.read_scores(vault, submission.id)
        spec = changes.rules_of_scores(history, submission, submission.evidence)
        if scores is None:
            yield f"the vault has no scores of {submission.id}; restore them from the backup"
        elif not scores.views or not releasing.follows_rules(spec, submission, scores.views):
            yield f"the released score of {submission.id} is not that of the vault"
        elif any(score.mean != _find_mean(score) for score in scores.views.values()):
            yield f"a mean of {submission.id} in the vault is not that of its per-query scores"
        elif not _follows_from(vault, history, spec, submission, scores):
            yield (
                f"{submission.id} has a logged score that does not belong to the per-query "
                f"scores in the vault"
            )


def _find_mean(score: ViewScore) -> float:
    return math.fsum(value for value in score.per_query.values() if value is not None) / score.n


def _check_final(vault: Vault, history: History) -> Iterator[str]:
    """The finalists' scores are those the final was opened with, or of labels repaired since."""
    view = parse_spec(history.rules[-1][1].encode()).finalists_view
    opened = None if history.final is None else history.final.opened
    if view is None or opened is None:
        return
    for name, digest in opened.evidence.items():
        scores = stored.read_scores(vault, name)
        published = stored.read_evidence(vault, digest)
        same = scores is not None and view.name in scores.views
        if scores is None or not same:
            yield f"the vault has no scores of {name} on the final view"
        elif not stored.follows_on(
            published, stored.make_evidence(name, view, scores), history.labels
        ):
            yield f"the final was not opened with the scores of {name} in the vault"


def _note_ends(history: History, today: date) -> Iterator[str]:
    """Seasons that were over when the last event was logged, and were not ended."""
    spec = parse_spec(history.rules[-1][1].encode())
    for one in list_due_ends(history, spec, today):
        yield (
            f"{say_season(one.season)} is over since {one.last:%d %b %Y}, and its exact scores "
            "are not published"
        )


def _note_final(vault: Vault, history: History) -> Iterator[str]:
    """That the labels of a final were corrected since it was opened."""
    opened = None if history.final is None else history.final.opened
    digests = () if opened is None else opened.evidence.values()
    labels = [stored.read_evidence(vault, digest).labels for digest in digests]
    names = {name for one in labels for name in one}
    if any(one.get(name) != history.labels.get(name) for one in labels for name in names):
        yield (
            "labels of the final were changed since it was opened: score every finalist again, "
            'then heldout board final --why "…"'
        )


def _follows_from(
    vault: Vault,
    history: History,
    spec: BoardSpec,
    submission: Submission,
    scores: stored.ScoreFile,
) -> bool:
    """Check whether the scores of today are those of the last event, or of repaired labels."""
    published = [view for view in spec.views if view.name in submission.evidence]
    return all(
        view.name in scores.views
        and stored.follows_on(
            stored.read_evidence(vault, submission.evidence[view.name]),
            stored.make_evidence(submission.id, view, scores),
            history.labels,
        )
        for view in published
    )


def hold_against(
    repository: Repository, found: Audit, files: Sequence[Path], earlier: Path | None
) -> tuple[Audit, tuple[receipts.ReceiptCheck, ...]]:
    """Compare receipts or an older log with the log of an audit.

    Args:
        repository: a clone of the board.
        found: the audit.
        files: files of receipts; of several it is also asked whether they agree.
        earlier: file of an older log, `None` for none.

    Raises:
        InputError: one of them is no receipt.
    """
    faults, notes, checked = [*found.faults], [*found.notes], [*found.checked]
    given = [receipts.read_receipt(receipt) for receipt in files]
    result: list[receipts.ReceiptCheck] = []
    try:
        copies = checks.read_copies(repository)
        older = [copies.here]
        if earlier is not None:
            older.append(parse_log(earlier.read_bytes(), path=earlier.name))
            checked.append(f"{earlier.name}, which it continues")
            faults += check_continues(older[-1], copies.newest)
        faults += copies.find_faults()
        faults += repository.find_cut(copies.newest, copies.remotes)
        notes += copies.say_behind()
        for copy in older:
            broken = [*check_continues(copy, copies.newest)]
            notes += [] if broken else receipts.list_changes(copy, copies.newest)
    except HeldoutError as error:
        copies, faults = None, [*faults, str(error)]
    faults += receipts.find_forks(given)
    if given and copies is not None and copies.newest:
        for receipt in given:
            result.append(receipts.check_receipt(receipt, copies.newest))
            whose = f"{receipt.id}: " if len(given) > 1 else ""
            faults += [whose + fault for fault in result[-1].faults]
            notes += _say_behind(copies, receipt)
        checked.append("the receipt" if len(given) == 1 else f"{len(given)} receipts")
    audit = replace(
        found,
        checked=tuple(checked),
        faults=tuple(dict.fromkeys(faults)),
        notes=tuple(dict.fromkeys(notes)),
    )
    return audit, tuple(result)


def _say_behind(copies: checks.LogCopies, receipt: receipts.Receipt) -> Iterator[str]:
    """That this clone is behind: no fault of the organisers."""
    if len(copies.newest) > len(copies.here):
        yield (
            f"the receipt was compared with {copies.board}'s newer log of "
            f"{plural(len(copies.newest), 'event')}; git pull {copies.board} brings it here"
        )
    elif receipt.seen.seq >= len(copies.newest):
        yield "if origin did not answer, this clone may only be behind: git pull, then call again"
