"""The public log of a board: what it has to show now, and how it is written.

Each line shows what `standings.project` opens of the vault's event at that moment. What is open
stays open. So where the vault remembers the log as it was written last, only three kinds of lines
are looked at again: new ones, those behind the remembered beginning, and those that wait for a day.
Where nothing is remembered, or rules have changed or names were joined since, all of them are.
"""

import hashlib
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from io import BytesIO
from itertools import chain, islice, repeat
from pathlib import Path

import msgspec

from heldout.board.log import final, reading
from heldout.board.log.events import Chain, Entry, format_entry, redact
from heldout.board.log.history import Fold, History, list_renamed
from heldout.board.log.submission import Submission, apply_event
from heldout.board.standings.standings import Projector
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.errors import StoreError
from heldout.files.durable import File, Mark

_MEMORY = "public"
_MANY = 1_000
_SHA1_DIGITS = 40
_BLOCK = 1 << 20
_LATER = datetime.max.replace(tzinfo=UTC)


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What the vault remembers of the public log.

    Attributes:
        log: its beginning, as it was written.
        at: the moment of that.
        rules: how many times the rules had been logged.
        joined: how many names the entries with several names had: one that is joined under an
            embargo seals again what tells of it.
        waiting: numbers of its events that show less than they will on a later day.
    """

    log: reading.Remembered
    at: datetime
    rules: int
    joined: int
    waiting: tuple[int, ...]


_KNOWN: dict[Path, tuple[Mark | None, _Memory]] = {}
"""File -> mark of the vault's memory of it, and the public log as this process knows it since."""


@dataclass(frozen=True, kw_only=True)
class PublicLog:
    """What the public log has to be now, beside what it is.

    Attributes:
        before: as it lies there; an empty one where that is damaged.
        whole: the vault's.
        now: the moment.
        changed: number of an event -> the event as it has to be shown, where that is more.
        new: the events that the public log lacks.
        waiting: numbers of the events that show less than on a later day.
    """

    before: reading.Log
    whole: reading.Log
    now: datetime
    changed: Mapping[int, Entry]
    new: tuple[Entry, ...]
    waiting: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def chain(self) -> Chain:
        """That of the vault's log: what is opened is no part of it."""
        return self.whole.chain

    @cached_property
    def history(self) -> History:
        """What it says."""
        same = len(self.before) and not self.changed and not self.new
        return self.before.history if same else self.fold.now()

    @cached_property
    def fold(self) -> Fold:
        """The same, to go on with."""
        if len(self.changed) > _MANY or not len(self.before):
            return _fold(self.entries())
        fold = self.before.fold.copy()
        again = {str(entry.event.submission) for entry in self.changed.values()}
        found: dict[str, Submission] = {}
        own = [*self._public_entries_of(again)]
        if fold.season_ends:
            own += [e for e in self.before.about_board() if e.event.kind == "ended-season"]
            own.sort(key=lambda entry: entry.event.seq)
        for entry in own:
            if entry.event.submission is None:
                found |= final.apply_season_end(entry, found)
            else:
                name = entry.event.submission
                found[name] = apply_event(found.get(name), entry, name)
        for name, submission in found.items():
            digest = fold.submissions[name].sealed_again
            fold.submissions[name] = replace(submission, sealed_again=digest)
        for entry in self.new:
            fold.take(entry)
        return fold

    def _public_entries_of(self, names: Collection[str]) -> Iterator[Entry]:
        """All events about some submissions, but for new ones, as they have to be shown."""
        for entry in self.before.select_about(names):
            yield self.changed.get(entry.event.seq, entry)

    def entries(self) -> Iterator[Entry]:
        """Every event as it has to be shown."""
        for entry in self.before.entries():
            yield self.changed.get(entry.event.seq, entry)
        yield from self.new

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """The lines from an event on, newline included."""
        for number, line in enumerate(self.before.lines(start), start):
            entry = self.changed.get(number)
            yield line if entry is None else format_entry(entry)
        yield from map(format_entry, self.new[max(start - len(self.before), 0) :])

    def about_board(self) -> Iterator[Entry]:
        """The events about no submission, in order."""
        for entry in self.before.about_board():
            yield self.changed.get(entry.event.seq, entry)
        yield from (entry for entry in self.new if entry.event.submission is None)

    def heads(self) -> Iterator[tuple[str, str | None]]:
        """Kind and submission of every event, in order."""
        yield from self.before.heads()
        yield from ((entry.event.kind, entry.event.submission) for entry in self.new)


def plan_public_log(repository: Repository, vault: Vault, *, now: datetime) -> PublicLog:
    """Return what the public log has to be at a moment.

    Args:
        repository: has it as it was; what is damaged there is made again.
        vault: has the whole log.
        now: the moment, UTC.
    """
    whole = vault.log()
    try:
        before = find_public_log(repository, vault)
    except StoreError:
        before = empty_log()
    if not whole.begins_with(before):
        before = empty_log()
    known, waiting = _list_known(repository, vault, before, now)
    today, later = (Projector(whole.history, moment) for moment in (now, _LATER))
    changed, new, still = {}, [], []
    numbers = [*waiting, *range(known, len(before))]
    there = zip(before.at(numbers), whole.at(numbers), strict=True)
    for old, entry in chain(there, zip(repeat(None), whole.entries(len(before)))):
        shown = redact(entry, today.fields(entry))
        if old is None:
            new.append(shown)
        elif shown != old:
            changed[entry.event.seq] = shown
        if set(later.fields(entry)) & entry.opened.keys() > shown.opened.keys():
            still.append(entry.event.seq)
    return PublicLog(
        before=before,
        whole=whole,
        now=now,
        changed=changed,
        new=tuple(new),
        waiting=tuple(still),
    )


def _list_known(
    repository: Repository, vault: Vault, before: reading.Log, now: datetime
) -> tuple[int, tuple[int, ...]]:
    """Return how many lines are known to be as they have to be, and which of these wait for a day.

    None are where nothing is remembered of them, where the clock is behind that moment, and where
    rules or joined names came since: they decide what opens when.
    """
    memory = _recall(repository, vault)
    if memory is None or memory.log.sha256 != before.known:
        return 0, ()
    history = vault.history()
    if now < memory.at or memory.rules != len(history.rules):
        return 0, ()
    if memory.joined != _count_joined(history):
        return 0, ()
    return memory.log.chain.count, memory.waiting


def _count_joined(history: History) -> int:
    return sum(len(submission.counts_for) for submission in list_renamed(history))


def list_hidden(
    shown: reading.Log, repository: Repository, vault: Vault, *, now: datetime
) -> list[str]:
    """Return what a log shows and would have to be sealed again: by a clock that is behind.

    Args:
        shown: the public log as it was committed.
        repository: the board.
        vault: of it.
        now: the moment.
    """
    whole = vault.log()
    known, _ = _list_known(repository, vault, shown, now)
    today, later = (Projector(whole.history, moment) for moment in (now, _LATER))
    numbers = range(known, min(len(shown), len(whole)))
    return [
        f"{', '.join(lost)} of {old.event.submission or f'event {old.event.seq}'}"
        for old, entry in zip(shown.at(numbers), whole.at(numbers), strict=True)
        if (
            lost := sorted(
                (old.opened.keys() & entry.opened.keys() & {*later.fields(entry)})
                - {*today.fields(entry)}
            )
        )
    ]


def write_public_log(repository: Repository, vault: Vault, public: PublicLog) -> bool:
    """Write it, and remember it; whether anything was different.

    Args:
        repository: the board.
        vault: remembers.
        public: what has to be there.
    """
    files = _plan_files(public.whole)
    same = {file.name for file in _list_same(repository, public, files)}
    if len(same) == len(files):
        remember_public_log(vault, public)
        return False
    log = _write_files(repository, public, [file for file in files if file.name not in same])
    reading.put_log(repository.files, [file.name for file in files], log)
    memory = _make_memory(log, public)
    seen = public.before.remembered
    if len(log) > _MANY and (public.changed or len(log) - seen > _MANY):
        vault.remember(_MEMORY, reading.encode_memory(memory))
    _KNOWN[repository.files.path(reading.LOG)] = vault.mark_of_memory(_MEMORY), memory
    return True


def _make_memory(log: reading.Log, public: PublicLog) -> _Memory:
    history = public.whole.history
    return _Memory(
        log=log.remember(),
        at=public.now,
        rules=len(history.rules),
        joined=_count_joined(history),
        waiting=public.waiting,
    )


def _plan_files(log: reading.Log) -> Sequence[reading.LogFile]:
    return reading.plan_log_files(len(log), log.history.measured)


def _list_same(
    repository: Repository, public: PublicLog, files: Sequence[reading.LogFile]
) -> Iterator[reading.LogFile]:
    """The files that have just the events that they have to have, as these have to be shown."""
    before = public.before
    found = set(reading.list_log_files(repository.files)) if len(before) else set()
    changed = sorted(public.changed)
    start = 0
    for file in files:
        there = repository.files.stat(file.name) if file.name in found else None
        # The files are read one behind the other: one may begin elsewhere than it should.
        if there is None or file.end > len(before) or start != before.find(file.first):
            return
        start += there.st_size
        if start != before.find(file.end):
            return
        if bisect_left(changed, file.first) == bisect_left(changed, file.end):
            yield file


def _write_files(
    repository: Repository, public: PublicLog, files: Sequence[reading.LogFile]
) -> reading.Log:
    """Write files of the public log in one pass through it; the log that lies there then."""
    before, fold = public.before, public.fold
    again = bool(public.changed) or not len(before)
    digest = hashlib.sha256() if again else before.digest.copy()
    length, marks = (0, [(0, 0)]) if again else (before.length, [*before.marks])
    hashed = 0 if again else len(before)
    start = 0 if again else files[0].first

    def lines() -> Iterator[bytes]:
        nonlocal length
        for number, line in enumerate(public.lines(start), start):
            if number >= hashed:
                digest.update(line)
                length += len(line)
                reading.mark_line(marks, number + 1, length)
            yield line

    # One stream, opened before the first file is replaced: all lines come from the old ones.
    rest, at = lines(), start
    for file in files:
        deque(islice(rest, file.first - at), maxlen=0)
        with repository.files.replacing(file.name) as stream:
            stream.writelines(islice(rest, file.end - file.first))
        at = file.end
    deque(rest, maxlen=0)
    names = [file.name for file in _plan_files(public.whole)]
    chain = replace(public.whole.chain, signers=dict(public.whole.chain.signers))
    log = reading.Log(
        partial(reading.open_log, repository.files, names), chain, fold, length, digest, marks=marks
    )
    log.remembered, log.known = chain.count, digest.digest()
    return log


def remember_public_log(vault: Vault, public: PublicLog) -> None:
    """Remember a log that needs no change, where many of its events were verified for that."""
    before = public.before
    if len(before) - before.remembered > _MANY and not public.changed and not public.new:
        memory = _make_memory(before, public)
        vault.remember(_MEMORY, reading.encode_memory(memory))
        before.remembered = len(before)


def list_revealed(committed: reading.Log, public: PublicLog) -> tuple[str, ...]:
    """The entries whose names were sealed in the log that was committed last, and are open now."""
    same = committed.digest.digest() == public.before.digest.digest()
    now: Iterable[Entry] = public.changed.values() if same else public.entries()
    before = committed.at(public.changed) if same else committed.entries()
    return tuple(
        str(new.event.submission)
        for old, new in zip(before, now, strict=False)
        if new.event.kind == "published" and "identity" in new.opened.keys() - old.opened.keys()
    )


def _fold(entries: Iterable[Entry]) -> Fold:
    fold = Fold()
    for entry in entries:
        fold.take(entry)
    return fold


def empty_log() -> reading.Log:
    """A log before its first event."""
    return reading.read_log(BytesIO, path=reading.LOG)


def find_public_log(repository: Repository, vault: Vault) -> reading.Log:
    """The public log in the board's folder, verified.

    Raises:
        StoreError: it is damaged, or of another board than this clone has worked with.
    """
    memory, files = _recall(repository, vault), repository.files
    known = None if memory is None else memory.log
    log = reading.find_log(files, reading.list_log_files(files), path=reading.LOG, known=known)
    repository.check_pinned(log, path=reading.LOG)
    return log


def _recall(repository: Repository, vault: Vault) -> _Memory | None:
    path, mark = repository.files.path(reading.LOG), vault.mark_of_memory(_MEMORY)
    before, memory = _KNOWN.get(path, (None, None))
    if memory is None or before != mark:  # another process knows more
        memory = reading.decode_memory(vault.recall(_MEMORY), _Memory)
        if memory is not None:
            _KNOWN[path] = mark, memory
    return memory


def find_committed_log(repository: Repository, vault: Vault) -> reading.Log | None:
    """The public log as it was last committed; `None` where it is damaged there."""
    git = repository.git
    head = git.head() if git.is_repository() else None
    if head is None:
        return empty_log()
    try:
        here = find_public_log(repository, vault)
        if _has_just(repository, head, here):
            return here
    except StoreError:
        pass  # what lies here is damaged: only git has it
    data = repository.log_at(head) or b""
    try:
        return reading.read_log(lambda: BytesIO(data), path=reading.LOG)
    except StoreError:
        return None


def is_committed(repository: Repository, log: reading.Log) -> bool:
    """Check whether the public log here is just what was committed last, or nothing ever was.

    Raises:
        StoreError: git fails.
    """
    git = repository.git
    head = git.head() if git.is_repository() else None
    if head is None:
        return True
    sizes = [repository.files.stat(file.name) for file in _plan_files(log)]
    whole = sum(found.st_size for found in sizes if found is not None) == log.length
    return whole and _has_just(repository, head, log)


def _has_just(repository: Repository, commit: str, log: reading.Log) -> bool:
    """Check whether a commit has this log, in the files in which it has to lie."""
    git, folder, files = repository.git, repository.files, _plan_files(log)
    last = git.blob_of(commit, reading.LOG)
    if last is None:
        return False
    there = {reading.LOG: last}
    if len(files) > 1:
        there.update((file.path, file.blob) for file in git.files(commit, reading.CLOSED))
    return all(
        folder.is_file(name) and there.get(name) == _identify(folder.file(name), like=last)
        for name in (file.name for file in files)
    )


def _identify(file: File, *, like: str) -> str:
    """Return the id that git gives to the bytes of a file; `like` is an id of the kind."""
    algorithm = hashlib.sha1 if len(like) == _SHA1_DIGITS else hashlib.sha256
    made = algorithm(b"blob %d\0" % file.size(), usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            made.update(block)
    return made.hexdigest()
