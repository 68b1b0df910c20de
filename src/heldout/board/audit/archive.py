"""Closes a board for good, and writes all that its results follow from into one archive.

A board is closed once it is sure that all of it can be opened and checked.

What may be opened when a board has ended (docs/how-to/close-a-board.md gives the reasons):

- of the log: what the public log shows on the day, the digests of the held-out labels and of the
  baselines' runs. All else stays sealed: metadata before publication, identities under an embargo
  that still runs, everything of a submission that was rejected or withdrawn;
- labels of every view that released scores, as they are and as they ever were; a set that only
  private views use stays closed;
- the scores by query, in these views, of everything published, under an embargo too; what each was
  told for, and what it was held against; on the final view those of the finalists alone;
- under `clear` which run each score was held against, which no public log ever says;
- runs as the rules and the teams have it (`rules.days`): the closing event names them in public,
  and none is opened before the end of its embargo.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from heldout.board.audit import archive_audit, audit
from heldout.board.log import events, reading
from heldout.board.log.history import History, read_history
from heldout.board.log.submission import Submission
from heldout.board.rules import changes, days, spec_file, template
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores import stored
from heldout.board.scores.rescoring import open_published_runs
from heldout.board.scores.session import Session
from heldout.board.standings import overdue, standings
from heldout.errors import InputError, StoreError
from heldout.files.zipped import write_zip
from heldout.ids import Digest, digest_bytes, query_set_of

_README = "README.md"
_File = tuple[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBoard:
    """A board as its archive shows it.

    Attributes:
        session: of the organiser who opens it.
        log: with the fields open that may be.
    """

    session: Session
    log: tuple[events.Entry, ...]

    @property
    def history(self) -> History:
        """What that log says."""
        return read_history(self.log)

    @property
    def spec(self) -> BoardSpec:
        """The rules at the end."""
        return spec_file.parse_spec(self.history.rules[-1][1].encode())

    @property
    def entries(self) -> tuple[Submission, ...]:
        """Published entries and baselines, by id."""
        return tuple(sorted(archive_audit.published(self.history), key=lambda s: s.id))

    def shows_runs(self, submission: Submission) -> bool:
        """Check whether its runs are opened: so the closing event says, and no embargo hides it."""
        return submission.identity is not None and submission.id in archive_audit.closing_field(
            self.log, archive_audit.OPEN_RUNS
        )


def open_log(session: Session) -> tuple[events.Entry, ...]:
    """The log as the archive shows it."""
    whole = session.vault.entries()
    public = standings.project(whole, now=session.now)
    return tuple(
        events.redact(entry, {*shown.opened, *_NEVER_PUBLIC.get(entry.event.kind, ())})
        for entry, shown in zip(whole, public, strict=True)
    )


_NEVER_PUBLIC = {
    "opened-board": ("labels",),
    "changed-rules": ("labels",),
    "baseline": ("runs", "evidence"),
    "published": ("evidence", "compared", "bars"),
    "corrected": ("evidence", "compared", "bars"),
    "ran": ("runs",),
    "reviewed": ("evidence",),
    "measured": ("table",),
    "opened-final": ("evidence",),
}
"""The fields that the public log keeps sealed and an archive opens, by the kind of event."""


def list_members(opened: OpenedBoard) -> Iterator[_File]:
    """Every file of the archive but the one that lists the others: name and content."""
    specs = archive_audit.open_specs(opened.history)
    every = (archive_audit.open_part(opened.spec), *specs.values())
    yield from _list_texts(opened)
    yield from _list_held_out(opened, every)
    yield from _list_public_files(opened.session, every)
    for submission in opened.entries:
        yield from _list_scores(opened.session, submission, specs[submission.id])
    yield from _list_evidence(opened, specs)
    for submission in filter(opened.shows_runs, opened.entries):
        yield from _list_runs(opened.session, submission, specs[submission.id])


def _list_texts(opened: OpenedBoard) -> Iterator[_File]:
    spec, closed = opened.spec, opened.history.closed
    if closed is None:
        raise ValueError(spec.name)
    yield _README, template.fill_template("archive.md", spec=spec, closed=f"{closed:%d %b %Y}")
    yield reading.LOG, b"".join(map(events.format_entry, opened.log))


def _list_held_out(opened: OpenedBoard, specs: Sequence[BoardSpec]) -> Iterator[_File]:
    """The held-out files of every opened view: those of today, and all committed to before."""
    vault, history = opened.session.vault, opened.history
    names = frozenset[str]().union(*map(changes.names_of_board, specs))
    now = vault.held_out({*map(changes.stem_of, names)})
    for name in sorted(names & now.keys()):
        file = changes.held_out_file(name)
        yield f"labels/{file}", vault.files.read(f"labels/{file}")
    before = {
        digest
        for commitment in history.commitments
        for name, digest in (commitment.files or {}).items()
        if name in names and now.get(name) != digest and vault.has_sealed(digest)
    }
    for digest in sorted(before):
        yield f"{archive_audit.EARLIER}{digest}", vault.sealed(digest).read_bytes()


def _list_evidence(opened: OpenedBoard, specs: Mapping[str, BoardSpec]) -> Iterator[_File]:
    """Yield what every score of an opened view was told for, and what it was held against."""
    digests = {
        digest
        for entry in opened.log
        if (spec := specs.get(str(entry.event.submission))) is not None
        for field in ("evidence", "compared")
        for view, digest in (entry.get(field) or {}).items()
        if view in {view.name for view in spec.views}
    }
    finals = (entry for entry in opened.log if entry.event.kind == "opened-final")
    digests |= {digest for entry in finals for digest in entry.get("evidence").values()}
    for digest in sorted(digests):
        yield f"evidence/{digest}.json", opened.session.vault.sealed(digest).read_bytes()


def _list_public_files(session: Session, specs: Sequence[BoardSpec]) -> Iterator[_File]:
    """Queries, open labels, candidates, and what views name: what a run is scored with besides."""
    sets = [files for spec in specs for files in spec.sets.values()]
    named = {name for one in sets for name in (one.queries, one.qrels, one.candidates) if name}
    named |= {name for spec in specs for view in spec.views for name in view.files}
    named |= {
        changes.open_labels(view.labels)
        for spec in specs
        for view in spec.views
        if view.labels is not None and not spec.sets[view.set].held_out
    }
    for name in sorted(name for name in named if not name.startswith("labels/")):
        yield name, session.repository.file(name).read_bytes()


def _list_scores(session: Session, submission: Submission, spec: BoardSpec) -> Iterator[_File]:
    """The scores by query in the opened views; what the vault keeps besides is left out."""
    scores = stored.read_scores(session.vault, submission.id)
    if scores is None:
        raise StoreError(
            f"the vault has no scores of {submission.id}; restore them from the backup"
        )
    names = changes.names_of_board(spec)
    opened = stored.ScoreFile(  # by name, so that what the vault may keep one day stays there
        files=scores.files,
        code_version=scores.code_version,
        views={view.name: scores.views[view.name] for view in spec.views},
        labels={k: v for k, v in scores.labels.items() if k.partition("/")[0] in spec.sets},
        held_out={name: d for name, d in scores.held_out.items() if name in names},
    )
    data = msgspec.json.encode(opened, order="deterministic")
    yield f"scores/{submission.id}.json", data


def _list_runs(session: Session, submission: Submission, spec: BoardSpec) -> Iterator[_File]:
    """Run files as they were packed."""
    if not submission.baseline:
        yield from sorted(_unseal_runs(session, submission, spec))
        return
    for name in sorted(n for n in submission.runs if query_set_of(n) in spec.sets):
        data = session.vault.sealed(submission.runs[name]).read_bytes()
        yield f"runs/{submission.id}/{name}", data


def _unseal_runs(session: Session, submission: Submission, part: BoardSpec) -> Iterator[_File]:
    """The runs over the opened sets, out of the envelope: `runs/ID/RUN.suffix` and bytes."""
    sealed = session.history().submissions[submission.id]
    opened = open_published_runs(session, sealed, part.sets, lambda _, stream: stream.read())
    for run in opened.values():
        yield f"runs/{run.member}", run.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive holds.

    Attributes:
        bytes: its size.
        digest: its SHA-256.
        entries: published entries and baselines in it.
        runs: ids of those whose runs are in it.
        embargoed: ids of those whose identity is not, for their embargo still runs.
    """

    bytes: int
    digest: Digest
    entries: int
    runs: tuple[str, ...]
    embargoed: tuple[str, ...]


def check_closable(session: Session) -> None:
    """Refuse to close a board on which something is still to be done.

    Raises:
        StoreError: a submission waits, a deadline is to come, the board is not sound, its entries
            are scored with different labels, or it is the record of an old one.
    """
    history = session.history()
    if not archive_audit.published(history) and any(
        s.status == "imported" for s in history.submissions.values()
    ):
        raise StoreError(
            "this is the record of an old board: there are no labels and no scores by query to "
            "open, and its log is public as it is; nothing was closed"
        )
    waiting = [s.id for s in history.submissions.values() if s.waits_since is not None]
    if waiting:
        raise StoreError(
            f"{', '.join(waiting[:3])} {'wait' if len(waiting) > 1 else 'waits'} for a decision "
            f"({len(waiting)} in all); nothing was closed: decide first, heldout inbox lists them"
        )
    final = history.final
    if final is not None and final.opened is None:
        raise StoreError(
            f"finalists are named, and the final ({final.view}) is not opened; nothing was closed: "
            "heldout board final"
        )
    if due := overdue.list_due_ends(history, session.spec(), session.now.date()):
        raise StoreError(
            f"{overdue.say_season(due[0].season)} is over, and its exact scores are not published; "
            "nothing was closed: heldout rebuild"
        )
    last = max(_days_to_wait_for(history), default=session.now.date() - timedelta(1))
    if session.now.date() <= last:
        raise StoreError(f"scores are still sealed until {last} is over; nothing was closed")
    faults = audit.audit_board(session.repository, session.vault).faults
    if faults:
        raise StoreError(
            f"the board is not sound, so nothing was archived: {'; '.join(faults[:3])}"
        )
    mixed = stored.find_mixed(session.vault, history)
    if mixed:
        found = "; ".join(map(stored.say_mixed, mixed))
        every = {n for one in mixed for n in one.earlier}
        raise StoreError(
            f"{found}; nothing was archived: heldout correct {' '.join(sorted(every))} --why "
            '"…", or put the earlier labels back and correct the others'
        )


def _days_to_wait_for(history: History) -> Iterator[date]:
    """The days after which scores are released that are sealed until then."""
    deadline = days.one_shot_deadline(history)
    if deadline is not None:
        yield deadline
    rules = spec_file.parse_spec(history.rules[-1][1].encode())
    for submission in archive_audit.published(history) if rules.final_views else ():
        last = rules.last_day(submission.received.date())
        if last is not None:
            yield last


def write_archive(session: Session, path: Path) -> Archived:
    """Write the archive of a closed board; equal input gives equal bytes.

    Args:
        session: its lock is held.
        path: a new file; one with just these bytes is left as it is.

    Raises:
        StoreError: the board is not closed or not sound, or the file holds something else.
    """
    check_closable(session)
    opened = OpenedBoard(session=session, log=open_log(session))
    if opened.history.closed is None:
        raise StoreError("the board is not closed yet, so nothing can be opened")
    write_zip(path, list_files(opened))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    shown = opened.entries
    return Archived(
        bytes=path.stat().st_size,
        digest=Digest(digest),
        entries=len(shown),
        runs=tuple(s.id for s in shown if opened.shows_runs(s)),
        embargoed=tuple(s.id for s in shown if s.identity is None),
    )


def list_files(opened: OpenedBoard) -> Iterator[tuple[str, bytes]]:
    """Every file of an archive, name and content; the one that lists the others comes last.

    Raises:
        StoreError: one is missing or damaged, or two would have one name.
    """
    listed: dict[str, archive_audit.ArchiveMember] = {}
    for name, data in list_members(opened):
        if name in listed:
            raise StoreError(f"two files of the archive would be called {name}; rename the board's")
        listed[name] = archive_audit.ArchiveMember(bytes=len(data), sha256=digest_bytes(data))
        yield name, data
    head = opened.log[-1].hash
    contents = archive_audit.Contents(
        board=opened.spec.name, events=len(opened.log), head=head, files=listed
    )
    data = msgspec.json.encode(contents, order="deterministic")
    yield archive_audit.MANIFEST, msgspec.json.format(data, indent=1) + b"\n"


def close_board(session: Session, *, agreed: Sequence[str] = (), why: str = "") -> bool:
    """Close a board for good; the event says whose runs will be opened.

    Args:
        session: its lock is held.
        agreed: ids of published entries whose teams agreed to that otherwise than by their
            metadata, which says nothing; the event names them.
        why: how the organisers know; needed where there are any, and public.

    Returns:
        Whether it was closed now; a board that was closed before stays as it was.

    Raises:
        InputError: one of these ids is no published entry, or its runs may not be opened.
        StoreError: something is still to be done, its archive would not be sound, or it was closed
            with other runs to be opened.
    """
    history = session.history()
    for name in agreed:
        session.find_published(name)
        _check_agreed(history, name)
    if history.closed is not None:
        before = archive_audit.closing_field(session.vault.entries(), archive_audit.OPEN_RUNS)
        if not set(agreed) <= set(before):
            raise StoreError(
                "the runs that are opened were named when the board was closed, and that stays "
                f"so: {', '.join(before) or 'none'}"
            )
        return False
    check_closable(session)
    opened = [
        submission.id
        for submission in archive_audit.published(history)
        if days.may_open_runs(history, submission, agreed=agreed)
    ]
    public: dict[str, object] = {archive_audit.OPEN_RUNS: sorted(opened)}
    if agreed:
        public |= {archive_audit.AGREED: sorted(set(agreed)), "why": why}
    closing = events.Draft(kind="closed-board", by=session.by, public=public, sealed={})
    rehearse(session, closing)
    session.log(closing.kind, None, public=public)
    return True


def rehearse(session: Session, closing: events.Draft) -> None:
    """Make and check the archive as if the board were closed: the event is for good.

    Args:
        session: its lock is held.
        closing: the event that would be logged.

    Raises:
        StoreError: something that belongs into the archive is missing, or not sound.
        InputError: something cannot be read.
    """
    event = session.vault.make_entry(closing, now=session.now)
    opened = OpenedBoard(session=session, log=(*open_log(session), event))
    with TemporaryDirectory(prefix="heldout-closing-") as folder:
        file = Path(folder) / "archive.zip"
        write_zip(file, list_files(opened))
        faults = archive_audit.audit_archive(file).faults
    if faults:
        first = "; ".join(faults[:3])
        raise StoreError(f"the archive would not be sound, so nothing was closed: {first}")


def _check_agreed(history: History, name: str) -> None:
    """Refuse an organiser's word against that of the rules or of the team."""
    submission = history.submissions[name]
    if days.may_open_runs(history, submission, agreed=(name,)):
        return
    never = days.rule_for_runs(history, submission) == "never"
    found = 'archive.runs = "never"' if never else "open_runs: false, the team's own word"
    expected = "a board that opens runs, and a team that has not said no"
    hint = "" if never else "the team can change it until the closing: heldout amend"
    raise InputError.of("no-consent", name, found, expected, hint)
