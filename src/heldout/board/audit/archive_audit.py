"""Checks an archive of a board: what anybody can do who has nothing but the file.

Whoever made the archive may be an enemy: nothing in it is believed before it is checked, and what
cannot be checked is said.

It is unpacked into a folder of its own: its files are those listed, its log is whole. It is laid
out as a board and its vault are, so that both are read from it as from the real ones. No file is
used before it was held against the list, and no id from the log names a file that is not on it.

Holds the labels of an archive, and all else that was held out, against what its log commits to. The
first event commits; what changes later is an event `changed-rules`, and nothing else is. A score
has to be made with the versions that were in force when it was published last.

Computes again, from an archive, what a board published of its ranking beside the scores.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from heldout.board.audit.audit import ENDS_CHECKED, FINAL_CHECKED, Audit
from heldout.board.audit.replay import replay_releases
from heldout.board.log import event_fields, reading
from heldout.board.log.events import Entry, parse_log
from heldout.board.log.final import Figures, Measured
from heldout.board.log.history import History, read_history
from heldout.board.log.submission import Submission
from heldout.board.rules import changes, days, spec_file
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores import analyses_source, measuring, releasing, score, stored
from heldout.board.scores.commitments import list_broken_keys
from heldout.board.scores.sets import SetData, load_sets, scan_for_board
from heldout.board.standings.overdue import list_wrong_ends
from heldout.board.store.repository import Repository, refuse_private
from heldout.board.store.vault import Vault
from heldout.errors import HeldoutError, InputError, StoreError, plural, quote
from heldout.files.zipped import unpack_zip
from heldout.ids import Digest, digest_bytes, run_name

_COMMITTING = ("opened-board", "changed-rules")
_SCORING = ("published", "corrected", "baseline", "reviewed")


AGREED = "agreed"
"""Field of `closed-board`: ids of entries whose teams agreed otherwise than by their metadata."""

EARLIER = "labels/earlier/"
"""Where an archive has earlier versions of held-out files, each by its SHA-256."""

OPEN_RUNS = "open_runs"
"""Field of `closed-board`: ids of the entries and baselines whose runs are opened."""

MANIFEST = "MANIFEST.json"


class ArchiveMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of an archive: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`MANIFEST.json`: what an archive holds.

    Attributes:
        board: name of the board.
        events: number of events in the log.
        head: hash of the last of them: whoever knows it from elsewhere knows the whole log.
        files: every other file of the archive.
        schema: version of this format.
    """

    board: str
    events: int
    head: str
    files: dict[str, ArchiveMember]
    schema: int = 1


def closing_field(entries: Sequence[Entry], field: str) -> tuple[str, ...]:
    """Return what the event says that closed a board: `OPEN_RUNS` or `AGREED`; none before it."""
    closing = [entry for entry in entries if entry.event.kind == "closed-board"]
    return tuple(closing[-1].get(field) or ()) if closing else ()


def open_part(spec: BoardSpec, released: Collection[str] = ()) -> BoardSpec:
    """The rules without what an archive does not open: private views, sets that only they use.

    Args:
        spec: the rules.
        released: private views whose scores were released after the last day.
    """
    views = tuple(view for view in spec.views if view.public or view.name in released)
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
            changes.rules_of_scores(history, submission, submission.evidence),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """An unpacked archive.

    Attributes:
        folder: where.
        names: its files.
        log: verified.
        history: what the log says.
        specs: id of everything published -> the opened part of the rules of its day.
    """

    folder: Path
    names: frozenset[str]
    log: tuple[Entry, ...]
    history: History
    specs: Mapping[str, BoardSpec]
    _loaded: dict[bytes, Mapping[str, SetData]] = field(default_factory=dict)

    @property
    def published(self) -> list[Submission]:
        """Published entries and baselines."""
        return published(self.history)

    @property
    def labels(self) -> frozenset[str]:
        """Names of the held-out files that an opened view depends on, if they are there."""
        return frozenset[str]().union(*map(changes.names_of_board, self.specs.values()))

    def digest(self, name: str) -> Digest:
        """SHA-256 of a file."""
        return digest_bytes((self.folder / name).read_bytes())

    def sets_of(self, spec: BoardSpec, scores: stored.ScoreFile) -> Mapping[str, SetData] | None:
        """The opened query sets with the labels that scores were made with, by a day's rules.

        Returns:
            `None` where these labels are not here.
        """
        files = {name: self._version(name, digest) for name, digest in scores.held_out.items()}
        found = {name: file for name, file in files.items() if file is not None}
        if len(found) < len(files):
            return None
        key = digest_bytes(msgspec.json.encode(scores.held_out, order="deterministic"))
        vault = self.folder.with_name("versions") / key
        if not vault.is_dir():
            (vault / "labels").mkdir(parents=True)
            for name, file in found.items():
                shutil.copyfile(file, vault / "labels" / changes.held_out_file(name))
        return self._load(vault, spec)

    def _version(self, name: str, digest: str) -> Path | None:
        """The file of a committed version, if it is here."""
        if not changes.is_commitment({name: digest}):
            return None
        for member in (f"labels/{changes.held_out_file(name)}", f"{EARLIER}{digest}"):
            if member in self.names and self.digest(member) == digest:
                return self.folder / member
        return None

    def _load(self, vault: Path, spec: BoardSpec) -> Mapping[str, SetData]:
        """Each is read once."""
        key = msgspec.json.encode([vault.name, spec.sets, spec.views, spec.release.feedback])
        if key not in self._loaded:
            self._loaded[key] = load_sets(Repository(self.folder), spec, vault=Vault(vault))
        return self._loaded[key]

    def evidence(self, digest: str) -> stored.Evidence:
        """Return what a score was told for.

        Raises:
            StoreError: it is not here, or is none.
        """
        name = f"evidence/{digest}.json"
        if name not in self.names or self.digest(name) != digest:
            raise StoreError(f"{name} is missing, or not what the log names")
        return stored.parse_evidence((self.folder / name).read_bytes(), path=name)

    def key(self, name: str, digest: str) -> bytes:
        """The secret key of a query set.

        Args:
            name: as a commitment names it, `eval.key`.
            digest: as the log has it.

        Raises:
            StoreError: it is not here, or is none.
        """
        file = self._version(name, digest)
        if file is None:
            raise StoreError(f"labels/{name} is missing, or not the key that the log names")
        return changes.parse_key(file.read_bytes(), path=f"labels/{name}")

    def query_ids(self, path: str) -> frozenset[str]:
        """The ids of a query set by its path in board.toml.

        Raises:
            StoreError: it is not here.
            InputError: it is no file of queries.
        """
        return frozenset(Repository(self.folder).queries(path).texts)

    def has_scores(self, submission: Submission) -> bool:
        """Check whether its scores by query are here."""
        return f"scores/{submission.id}.json" in self.names

    def scores(self, submission: Submission) -> stored.ScoreFile:
        """Its scores by query.

        Raises:
            StoreError: they are not here, or damaged.
        """
        scores = (
            stored.read_scores(Vault(self.folder), submission.id)
            if self.has_scores(submission)
            else None
        )
        if scores is None:
            raise StoreError(f"the scores by query of {quote(submission.id)} are missing")
        return scores

    def runs(self, submission: Submission) -> Mapping[str, str]:
        """Run -> its file, as far as they are here."""
        folder = f"runs/{submission.id}/"
        names = [name for name in self.names if name.startswith(folder)]
        return {name.removeprefix(folder).partition(".")[0]: name for name in names}

    def shows_runs(self, submission: Submission) -> bool:
        """Check whether its runs should be here."""
        return submission.identity is not None and submission.id in closing_field(
            self.log, OPEN_RUNS
        )


def unpack_archive(path: Path, folder: Path) -> Unpacked:
    """Unpack an archive below an empty folder and check its files and its log.

    Raises:
        InputError: it is no zip file of ours; code `private-path`.
        StoreError: it is no archive of a board, or its log is broken.
    """
    folder = folder / "archive"
    folder.mkdir()
    names = frozenset(unpack_zip(path, folder))
    refuse_private(names, path.name)
    contents = _check_contents(folder, names)
    log = parse_log((folder / reading.LOG).read_bytes(), path=reading.LOG)
    if not log:
        raise StoreError(f"{reading.LOG} is empty")
    if (contents.head, contents.events) != (log[-1].hash, len(log)):
        raise StoreError(f"{MANIFEST} names another last event than {reading.LOG} has")
    history = read_history(log)
    specs = open_specs(history)
    return Unpacked(folder=folder, names=names, log=log, history=history, specs=specs)


def _check_contents(folder: Path, names: frozenset[str]) -> Contents:
    """Hold the files against the list of them.

    Raises:
        StoreError: one is missing, too many, or another.
    """
    if not {MANIFEST, reading.LOG} <= names:
        raise StoreError(f"no archive of a board: {MANIFEST} or {reading.LOG} is not in it")
    try:
        contents = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Contents)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise StoreError(f"{MANIFEST} is not the list of an archive's files") from None
    different = names - {MANIFEST} ^ contents.files.keys()
    if different:
        raise StoreError(f"{quote(min(different))} is listed or here, but not both")
    for name, member in contents.files.items():
        if digest_bytes((folder / name).read_bytes()) != member.sha256:
            raise StoreError(f"{name} is not the file that {MANIFEST} lists")
    return contents


def check_labels(unpacked: Unpacked) -> Iterator[str]:
    """Yield what is wrong with the commitments, or with the files that they are to."""
    faults = [*_check_events(unpacked), *_check_dropped(unpacked)]
    faults += list_broken_keys(unpacked.history)
    yield from faults or _check_files(unpacked)


def _check_events(unpacked: Unpacked) -> Iterator[str]:
    for entry in unpacked.log:
        event = f"event {entry.event.seq}"
        if "labels" not in entry.event.sealed:
            continue
        if entry.event.kind not in _COMMITTING:
            yield f"{event}, {entry.event.kind}, names labels, which only changed rules can"
        elif not changes.is_commitment(entry.get("labels")):
            yield f"the labels' digests in {event} are not opened, or are none"


def _check_dropped(unpacked: Unpacked) -> Iterator[str]:
    """Labels that were committed to once are in every later commitment; all are from the start."""
    first = spec_file.parse_spec(unpacked.history.rules[0][1].encode())
    held_out = {name for name, files in first.sets.items() if files.held_out} & unpacked.labels
    known = [(one.event, one.files or {}) for one in unpacked.history.commitments]
    if not known or known[0][0]:
        known = [(0, {}), *known]
    for (_, before), (event, after) in pairwise([(0, dict.fromkeys(held_out, "")), *known]):
        for name in sorted(name for name in before.keys() - after.keys() if "." not in name):
            yield f"event {event} does not commit to labels/{changes.held_out_file(name)}"


def _check_files(unpacked: Unpacked) -> Iterator[str]:
    known, ever = unpacked.history.labels, _list_ever(unpacked)
    for name in sorted(unpacked.labels):
        file = f"labels/{changes.held_out_file(name)}"
        if file not in unpacked.names:
            if "." not in name or name in known:
                yield f"{file} is missing"
        elif name in ever and unpacked.digest(file) != known.get(name):
            yield f"{file} is not what the organisers committed to"
    digests = frozenset[str]().union(*ever.values())
    for file in sorted(name for name in unpacked.names if name.startswith(EARLIER)):
        digest = file.removeprefix(EARLIER)
        if digest not in digests or unpacked.digest(file) != digest:
            yield f"{quote(file)} is nothing that the organisers committed to"


def _list_ever(unpacked: Unpacked) -> Mapping[str, frozenset[str]]:
    """Name -> every digest that was ever committed to under it."""
    ever: dict[str, frozenset[str]] = {}
    for commitment in unpacked.history.commitments:
        for name, digest in (commitment.files or {}).items():
            ever[name] = ever.get(name, frozenset()) | {digest}
    return ever


def labels_in_force(unpacked: Unpacked, submission: Submission) -> Mapping[str, str]:
    """Return what was committed to when an entry was published or scored for the last time."""
    *_, last = (
        entry.event.seq
        for entry in unpacked.log
        if entry.event.submission == submission.id and entry.event.kind in _SCORING
    )
    before = [one.files for one in unpacked.history.commitments if one.event < last]
    return (before[-1] if before else None) or {}


def uses_labels_in_force(
    unpacked: Unpacked, submission: Submission, view: View, scores: stored.ScoreFile
) -> bool:
    """Check whether scores were made with just those versions, as far as they say with which.

    Args:
        unpacked: the archive; its commitments are sound.
        submission: whose scores.
        view: which of them.
        scores: as the archive has them.
    """
    force, ever = labels_in_force(unpacked, submission), _list_ever(unpacked)
    name = view.labels or view.set
    claimed = scores.labels.get(f"{view.set}/{view.labels}" if view.labels else view.set)
    if claimed is not None and force.get(name, claimed) != claimed:
        return False
    names = changes.names_of_view(view) & unpacked.labels
    given = stored.make_evidence(submission.id, view, scores).labels
    needed = {name: digest for name, digest in force.items() if name in names}
    return needed == {name: digest for name, digest in given.items() if name in ever}


def note_labels(unpacked: Unpacked) -> Iterator[str]:
    """Every later commitment, and the files that nobody committed to."""
    ever = _list_ever(unpacked)
    for file in sorted(changes.held_out_file(name) for name in unpacked.labels - ever.keys()):
        if f"labels/{file}" in unpacked.names:
            yield f"the organisers never committed to labels/{file}"
    for before, after in pairwise(unpacked.history.commitments):
        old, new = before.files or {}, after.files or {}
        names = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
        listed = ", ".join(map(changes.held_out_file, names)) or "none is another one"
        yield f"labels were changed on {after.at:%d %b %Y}, for: {quote(after.why)} ({listed})"


def say_labels(unpacked: Unpacked) -> tuple[str, ...]:
    """Return what was checked of them, in words; nothing where nobody committed to anything."""
    commitments = unpacked.history.commitments
    files = unpacked.labels & unpacked.history.labels.keys()
    held = [name for name in files if f"labels/{changes.held_out_file(name)}" in unpacked.names]
    if not held:
        return ()
    later = len(commitments) - 1
    since = f", as changed by {plural(later, 'later event')}" if later else ""
    first = f"the commitment of {commitments[0].at:%d %b %Y}"
    return (f"{plural(len(held), 'held-out file')} against {first}{since}",)


_CHANGES = ("corrected", "reviewed", "changed-rules")
"""Kinds of events after which scores by query may be others than before."""

_MORE = frozenset(("progress", "why"))
"""What rests on more than the scores that an event commits to: baselines."""


def check_measured(unpacked: Unpacked) -> tuple[list[str], list[str]]:
    """Check what was measured against the scores by query.

    Args:
        unpacked: whose scores were checked.

    Returns:
        What was told too early, or does not follow from the scores; and what cannot be computed
        again, because scores were changed since.
    """
    faults, notes = [*days.list_early(unpacked.history)], []
    for one in unpacked.history.measured:
        compared = _compare(unpacked, one)
        event = f"event {one.event} ('measured')"
        later = unpacked.log[one.event + 1 :]
        changed = any(entry.event.kind in _CHANGES for entry in later)
        same = unpacked.log[one.event].get("table") == str(compared and compared.table.digest)
        if compared is None or not same:
            if changed:
                why = "scores by query or labels were changed since"
                notes.append(f"{event} cannot be computed again: {why}")
            else:
                faults.append(f"{event} was not made from the scores by query that are here")
            continue
        near, apart = measuring.find_near_scores(compared.table), compared.apart
        if any(near[name] - apart[name] for name in compared.table.systems):
            faults.append(f"{event} compares entries whose scores differ for a few queries only")
        different = _list_different(unpacked, one, compared)
        excused = different & _MORE if changed else frozenset[str]()
        if different - excused:
            faults.append(f"{event} has figures that the per-query scores do not give")
        if excused:
            why = "cannot be computed again: baselines or scores were changed since"
            notes.append(f"{event}: {', '.join(sorted(excused))} {why}")
    return faults, notes


def _list_different(
    unpacked: Unpacked, one: Measured, compared: measuring.Compared
) -> frozenset[str]:
    """The fields of the figures that the scores do not give."""
    trust = spec_file.parse_spec(unpacked.history.rules_at(one.at).encode()).trust
    if trust is None:
        return frozenset()  # `list_early` says so
    show = [part for part in trust.show if part in one.figures.published]
    found = measuring.measure_ranking(compared, show, seed=one.seed)
    fields = (field.name for field in msgspec.structs.fields(Figures))
    return frozenset(f for f in fields if getattr(found, f) != getattr(one.figures, f))


def _compare(unpacked: Unpacked, one: Measured) -> measuring.Compared | None:
    """The entries that were compared, with the scores that are here; `None` where some lack."""
    history = unpacked.history
    spec = spec_file.parse_spec(history.rules_at(one.at).encode(), path="the rules in the log")
    season = next((s for s in spec.seasons if s.name == one.season), None)
    here = spec if season is None else spec.in_season(season)
    before = [
        s
        for s in unpacked.published
        if s.published is not None and s.published <= one.at and unpacked.has_scores(s)
    ]
    before.sort(key=lambda submission: (submission.received, submission.id))
    known = {s.id: unpacked.scores(s).views for s in before}
    if one.view not in {view.name for view in here.views} or not set(one.entries) <= known.keys():
        return None
    board = analyses_source.assemble_scores(here, before, known, primary=one.view)
    compared = [s for s in before if s.id in one.entries and one.view in s.scores]
    compared.sort(key=lambda s: -Decimal(s.scores[one.view]))  # equal ones as they came
    ranked, released = [s.id for s in compared], measuring.read_released(before, one.view)
    found = measuring.choose_compared(board, ranked, released=released, bar=here.baselines.bar)
    if found is None:
        return None
    return replace(found, alike=one.figures.alike)


_CHECKED = ("files against the manifest", "chain, order, times and openings of the log")
_FOLLOWS = "released scores against the scores by query"
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def audit_archive(path: Path, *, public: Sequence[Entry] = ()) -> Audit:
    """Check that an archive is whole and that everything released follows from what is in it.

    Args:
        path: the archive.
        public: the board's public log, if it is at hand: the archive's must be the same.
    """
    with TemporaryDirectory(prefix="heldout-archive-") as name:
        try:
            return _audit(path, Path(name), public)
        except InputError as error:
            return Audit(events=0, checked=(), faults=tuple(map(str, error.problems)))
        except HeldoutError as error:
            return Audit(events=0, checked=(), faults=(str(error),))
        except _NONSENSE as error:  # an enemy's file has no end of ways to make no sense
            fault = f"the archive cannot be gone over: {type(error).__name__} {quote(str(error))}"
            return Audit(events=0, checked=(), faults=(fault,))


def _audit(path: Path, folder: Path, public: Sequence[Entry]) -> Audit:
    unpacked = unpack_archive(path, folder)
    measured, notes = check_measured(unpacked)
    faults = [*_check_public(unpacked.log, public), *_check(unpacked, measured)]
    replay = replay_releases(
        unpacked.log, unpacked.evidence, unpacked.key, cache(unpacked.query_ids)
    )
    runs = [s for s in unpacked.published if unpacked.runs(s)]
    checked = [*_CHECKED, *say_labels(unpacked), _FOLLOWS]
    checked.append(f"{plural(replay.releases, 'release')} by the release rule of the day")
    final = unpacked.history.final
    checked += [ENDS_CHECKED] * bool(unpacked.history.season_ends)
    checked += [FINAL_CHECKED] * (final is not None and final.opened is not None)
    checked += ["published trust statistics, computed again"] * bool(unpacked.history.measured)
    checked += [f"scores by query of {len(runs)} against their runs"] * bool(runs)
    checked += ["the log against the board's public one"] * bool(public)
    hidden = (
        f"{quote(s.id)} is under an embargo until {s.embargo_until}"
        for s in unpacked.published
        if s.identity is None and unpacked.has_scores(s)
    )
    return Audit(
        events=len(unpacked.log),
        checked=tuple(checked),
        faults=(*faults, *replay.faults),
        notes=(*note_labels(unpacked), *notes, *hidden, *replay.notes),
    )


def _check_public(log: Sequence[Entry], public: Sequence[Entry]) -> Iterator[str]:
    if not public:
        return
    if log[0].hash != public[0].hash:
        yield "this is the archive of another board than the one that you stand in"
        return
    for ours, theirs in zip(log, public, strict=False):
        if ours.hash != theirs.hash:
            yield f"event {ours.event.seq} is another one than in the board's public log"
            return
    if len(log) < len(public):
        later = {entry.event.kind for entry in public[len(log) :]}
        if not all(event_fields.EVENTS[kind].late for kind in later):
            yield f"the board's public log has {len(public) - len(log)} events that this log lacks"


def _check(unpacked: Unpacked, measured: Sequence[str]) -> Iterator[str]:
    yield from days.list_moved(unpacked.history)
    yield from days.list_early_finals(unpacked.history)
    yield from list_wrong_ends(unpacked.log, unpacked.history)
    public = unpacked.history.files
    for name in sorted(public.keys() & unpacked.names):
        if unpacked.digest(name) != public[name]:
            yield f"{quote(name)} is not the file that the log has"
    wrong_labels = [*check_labels(unpacked)]
    if not any(entry.event.kind == "closed-board" for entry in unpacked.log):
        wrong_labels.insert(0, "the log does not say that the board was closed")
    yield from wrong_labels
    if wrong_labels:
        return
    for submission in unpacked.published:
        faults = [*_check_scores(unpacked, submission)]
        yield from faults or _check_runs(unpacked, submission)
    yield from _check_mixed(unpacked)
    yield from _check_final(unpacked)
    yield from measured
    named = {s.id for s in unpacked.published}
    for name in sorted(unpacked.names):
        top, _, rest = name.partition("/")
        owner = rest.removesuffix(".json") if top == "scores" else rest.partition("/")[0]
        if top in ("scores", "runs") and owner not in named:
            yield f"{quote(name)} belongs to nothing that was published"


def _check_mixed(unpacked: Unpacked) -> Iterator[str]:
    """All scores of a view were made with the same labels."""
    scored = [s for s in unpacked.published if unpacked.has_scores(s)]
    mixed = stored.list_mixed(
        one
        for s in scored
        for one in stored.scored_with(unpacked.history, s, unpacked.specs[s.id], unpacked.scores(s))
    )
    yield from map(stored.say_mixed, mixed)


def _check_final(unpacked: Unpacked) -> Iterator[str]:
    """The finalists' scores by query are those that the final was opened with."""
    final = unpacked.history.final
    if final is None or final.opened is None:
        return
    for name, digest in final.opened.evidence.items():
        submission, spec = unpacked.history.submissions[name], unpacked.specs[name]
        view = next((view for view in spec.views if view.name == final.view), None)
        if view is None or not unpacked.has_scores(submission):
            yield f"the scores by query of {quote(name)} on the final view are missing"
            continue
        now = stored.make_evidence(name, view, unpacked.scores(submission))
        if not stored.follows_on(
            unpacked.evidence(digest), now, labels_in_force(unpacked, submission)
        ):
            yield f"the final was not opened with the scores of {quote(name)} that are here"


def _check_scores(unpacked: Unpacked, submission: Submission) -> Iterator[str]:
    """Check that what was released follows from the scores by query, of judged queries."""
    name = quote(submission.id)
    if not unpacked.has_scores(submission):
        yield f"the scores by query of {name} are missing"
        return
    spec = unpacked.specs[submission.id]
    scores = unpacked.scores(submission)
    sets = unpacked.sets_of(spec, scores)
    views = {view.name: scores.views.get(view.name) for view in spec.views}
    wrong = [
        view.name
        for view in spec.views
        if not stored.is_score_of(view, views[view.name])
        or (sets is not None and _outside(sets[view.set], spec, view, scores))
    ]
    if wrong:
        yield f"the scores by query of {name} are not those of its queries: {', '.join(wrong)}"
        return
    if sets is None:
        yield f"the labels that {name} was scored with are not here, or what else was held out"
        return
    for view in spec.views:
        if fault := _differs(unpacked, submission, view, scores):
            yield f"{name} was {fault}, in view {view.name}"
    if not releasing.follows_rules(spec, submission, scores.views):
        yield f"the released score of {name} does not follow from its scores by query"


def _differs(
    unpacked: Unpacked, submission: Submission, view: View, scores: stored.ScoreFile
) -> str | None:
    """Say why scores by query cannot be what was published, "" where they can."""
    if not uses_labels_in_force(unpacked, submission, view, scores):
        return "scored with labels that nobody committed to, or that were not in force"
    logged = submission.evidence.get(view.name)
    if logged is None:
        return None
    now = stored.make_evidence(submission.id, view, scores)
    force = labels_in_force(unpacked, submission)
    same = stored.follows_on(unpacked.evidence(logged), now, force)
    return (
        None if same else "the logged score does not belong to the per-query scores of this archive"
    )


def _outside(data: SetData, spec: BoardSpec, view: View, scores: stored.ScoreFile) -> bool:
    """Check whether other queries were scored than those that count by its labels."""
    judged = {query for query, grades in data.judgments_of(view).items() if grades}
    counted = judged - data.excluded
    given = scores.views[view.name]
    if view.facets is not None:
        facets = data.files.facets[view.facets]
        counted &= {query for group in given.groups for query in facets.get(group, ())}
    n = judged if spec.denominator == "all" else counted
    defined = sum(value is not None for value in given.per_query.values())
    undefined = len(given.per_query) - defined
    return given.per_query.keys() != counted or given.n != len(n) - undefined


def _check_runs(unpacked: Unpacked, submission: Submission) -> Iterator[str]:
    """The scores by query follow from the runs, where these are here."""
    runs = unpacked.runs(submission)
    spec = unpacked.specs[submission.id]
    named = {run_name(n, s) for n in spec.sets for s in range(1, submission.seeds + 1)}
    if set(runs) != (named if unpacked.shows_runs(submission) else set()):
        yield f"the runs of {quote(submission.id)} in the archive are not those that are opened"
        return
    agreed = closing_field(unpacked.log, AGREED)
    if runs and not days.may_open_runs(unpacked.history, submission, agreed=agreed):
        yield f"the runs of {quote(submission.id)} are opened, though nobody agreed to that"
        return
    for name in runs if submission.baseline or submission.runs else ():
        if submission.runs.get(name) != unpacked.digest(runs[name]):
            yield f"{quote(runs[name])} is not the run that was logged"
            return
    if runs:
        yield from _rescore(unpacked, submission, spec, runs)


def _rescore(
    unpacked: Unpacked, submission: Submission, spec: BoardSpec, runs: Mapping[str, str]
) -> Iterator[str]:
    scores = unpacked.scores(submission)
    sets = unpacked.sets_of(spec, scores)
    if sets is None:
        return
    kind = "" if submission.baseline or submission.type is None else submission.type
    scans = {}
    for name, file in runs.items():
        with (unpacked.folder / file).open("rb") as stream:
            scans[name] = scan_for_board(spec, sets, kind, name, stream, path=file)
    now = score.score_views(spec, sets, scans)
    for view in spec.views:
        if view.name not in now or not stored.are_equal_scores(
            now[view.name], scores.views[view.name]
        ):
            yield f"the runs of {quote(submission.id)} give other scores in view {view.name}"
