"""What may be opened when a board has ended, and the files that an archive of it holds.

The rule (docs/trust.md gives the reasons):

- of the log: what the public log shows on the day, the digests of the held-out labels and of the
  baselines' runs. All else stays sealed: metadata before publication, identities under an embargo
  that still runs, everything of a submission that was rejected or withdrawn;
- labels of every view that released scores, as they are and as they ever were; a set that only
  private views use stays closed;
- the scores by query, in these views, of everything published, under an embargo too; what each was
  told for, and what it was held against; on the final view those of the finalists alone;
- under a Ladder the former names of a team that is named: what it had been told goes by them;
- under the ratchet which run each score was held against, which no public log ever says;
- runs as the rules and the teams have it (`board.consent`): the closing event names them in public,
  and none is opened before the end of its embargo.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import msgspec

from heldout.board.log.events import Entry, format_entry, redact
from heldout.board.log.history import History, read_history
from heldout.board.log.manifest import team_key
from heldout.board.log.submission import Submission
from heldout.board.rules.changes import (
    held_out_file,
    names_of_board,
    open_labels,
    release_rule_at,
    rules_told_by,
    stem_of,
)
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.kept import ScoreFile, read_scores
from heldout.board.scores.published import open_published_runs
from heldout.board.scores.session import Session
from heldout.board.standings.standings import project
from heldout.board.store.repository import LOG
from heldout.ids import query_set_of

AGREED = "agreed"
"""Field of `closed-board`: ids of entries whose teams agreed otherwise than by their metadata."""

EARLIER = "labels/earlier/"
"""Where an archive has earlier versions of held-out files, each by its SHA-256."""

OPEN_RUNS = "open_runs"
"""Field of `closed-board`: ids of the entries and baselines whose runs are opened."""

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
    log: tuple[Entry, ...]

    @property
    def history(self) -> History:
        """What that log says."""
        return read_history(self.log)

    @property
    def spec(self) -> BoardSpec:
        """The rules at the end."""
        return parse_spec(self.history.rules[-1][1].encode())

    @property
    def entries(self) -> tuple[Submission, ...]:
        """Published entries and baselines, by id."""
        return tuple(sorted(published(self.history), key=lambda s: s.id))

    def shows_runs(self, submission: Submission) -> bool:
        """Whether its runs are opened: so the closing event says, and no embargo hides it."""
        return submission.identity is not None and submission.id in list_open_runs(self.log)


def list_open_runs(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The ids whose runs a log says are opened; none before the board was closed."""
    closing = [entry for entry in entries if entry.event.kind == "closed-board"]
    return tuple(closing[-1].get(OPEN_RUNS) or ()) if closing else ()


def list_agreed(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The ids of entries for which an organiser vouched when the board was closed."""
    closing = [entry for entry in entries if entry.event.kind == "closed-board"]
    return tuple(closing[-1].get(AGREED) or ()) if closing else ()


def open_part(spec: BoardSpec, told: Collection[str] = ()) -> BoardSpec:
    """The rules without what an archive does not open: private views, sets that only they use.

    Args:
        spec: the rules.
        told: private views whose scores were released after the last day.
    """
    views = tuple(view for view in spec.views if view.public or view.name in told)
    sets = {view.set for view in views}
    return msgspec.structs.replace(
        spec,
        views=views,
        sets={name: files for name, files in spec.sets.items() if name in sets},
    )


def open_specs(history: History) -> Mapping[str, BoardSpec]:
    """Id of everything published -> what is opened of the rules that it was scored by."""
    return {
        submission.id: open_part(
            rules_told_by(history, submission, submission.evidence),
            {*submission.final, *_final_views(history, submission)},
        )
        for submission in published(history)
    }


def _final_views(history: History, submission: Submission) -> tuple[str, ...]:
    """The view on which finalists are scored, of a finalist, once that was opened."""
    final = history.final
    opened = final is not None and final.opened is not None and submission.id in final.finalists
    return (final.view,) if final is not None and opened else ()


def published(history: History) -> list[Submission]:
    """Published entries and baselines; what an old board published has no scores of ours."""
    return [s for s in history.submissions.values() if s.status == "published"]


def open_log(session: Session) -> tuple[Entry, ...]:
    """The log as the archive shows it."""
    whole = session.vault.entries()
    public = project(whole, now=session.now)
    named = {s.id for s in published(read_history(public)) if s.identity is not None}
    history = read_history(whole)
    renamed = _list_renamed(history) & named
    return tuple(
        redact(entry, _may_open(entry, shown, renamed, history))
        for entry, shown in zip(whole, public, strict=True)
    )


_NEVER_PUBLIC = {
    "opened-board": ("labels",),
    "changed-rules": ("labels",),
    "baseline": ("runs", "evidence"),
    "published": ("evidence", "compared"),
    "corrected": ("evidence", "compared"),
    "reviewed": ("evidence",),
    "measured": ("table",),
    "opened-final": ("evidence",),
}
"""The fields that the public log keeps sealed and an archive opens, by the kind of event."""


def _list_renamed(history: History) -> frozenset[str]:
    """The entries whose team had another name before, where scores depend on what it was told.

    Without that name it would look as if they had been held against somebody else's score.
    """
    rules = [parse_spec(text.encode()).release.rule for _, text in history.rules]
    if set(rules) <= {"rounded", "ratchet"}:
        return frozenset()
    return frozenset(s.id for s in published(history) if len(set(map(team_key, s.teams))) > 1)


def _may_open(entry: Entry, shown: Entry, renamed: Collection[str], history: History) -> set[str]:
    """The fields of an event that an archive opens."""
    names = {*shown.opened, *_NEVER_PUBLIC.get(entry.event.kind, ())}
    if entry.event.kind in ("reviewed", "updated") and entry.event.submission in renamed:
        names.add("identity")
    if "bars" not in entry.event.sealed or "bars" in shown.opened:
        return names
    received = history.submissions[str(entry.event.submission)].received
    if release_rule_at(history, received) == "ratchet":
        return names | {"bars"}  # the best run of a whole board says nothing of a team
    # Of whom an entry was held against one of its team's, an embargo of either hides.
    return names - {"compared"}


def list_members(opened: OpenedBoard) -> Iterator[_File]:
    """Every file of the archive but the one that lists the others: name and content."""
    specs = open_specs(opened.history)
    every = (open_part(opened.spec), *specs.values())
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
    text = files("heldout.board.rules").joinpath("templates", "archive.md").read_text("utf-8")
    words = {"title": spec.title, "name": spec.name, "closed": f"{closed:%d %b %Y}"}
    yield _README, Template(text).substitute(words).encode()
    yield LOG, b"".join(map(format_entry, opened.log))


def _list_held_out(opened: OpenedBoard, specs: Sequence[BoardSpec]) -> Iterator[_File]:
    """The held-out files of every opened view: those of today, and all committed to before."""
    vault, history = opened.session.vault, opened.history
    names = frozenset[str]().union(*map(names_of_board, specs))
    now = vault.held_out({*map(stem_of, names)})
    for name in sorted(names & now.keys()):
        file = held_out_file(name)
        yield f"labels/{file}", vault.files.read(f"labels/{file}")
    before = {
        digest
        for commitment in history.commitments
        for name, digest in (commitment.files or {}).items()
        if name in names and now.get(name) != digest and vault.has_sealed(digest)
    }
    for digest in sorted(before):
        yield f"{EARLIER}{digest}", vault.sealed(digest).read_bytes()


def _list_evidence(opened: OpenedBoard, specs: Mapping[str, BoardSpec]) -> Iterator[_File]:
    """What every score of an opened view was told for, and what it was held against."""
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
        open_labels(view.labels)
        for spec in specs
        for view in spec.views
        if view.labels is not None and not spec.sets[view.set].held_out
    }
    for name in sorted(name for name in named if not name.startswith("labels/")):
        yield name, session.repository.file(name).read_bytes()


def _list_scores(session: Session, submission: Submission, spec: BoardSpec) -> Iterator[_File]:
    """The scores by query in the opened views; what the vault keeps besides is left out."""
    scores = read_scores(session.vault, submission.id)
    if scores is None:  # a baseline of before runs were kept
        return
    names = names_of_board(spec)
    opened = ScoreFile(  # by name, so that what the vault may keep one day stays there
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
