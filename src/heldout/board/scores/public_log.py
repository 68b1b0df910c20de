"""The public log of a board: what it has to show now, and how it is written.

Each line shows what `standings.project` opens of the vault's event at that moment. What is open
stays open. So where the vault remembers the log as it was written last, only three kinds of lines
are looked at again: new ones, those behind the remembered beginning, and those that wait for a day.
Where nothing is remembered, or rules have changed or names were joined since, all of them are.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path

import msgspec

from heldout.board.log.events import Chain, Entry, format_entry, redact
from heldout.board.log.history import Fold, History, list_renamed
from heldout.board.log.reading import (
    Log,
    Remembered,
    decode_memory,
    encode_memory,
    mark_line,
    read_log,
)
from heldout.board.log.submission import Submission, apply_event
from heldout.board.standings.standings import Projector
from heldout.board.store.logs import find_log, put_log
from heldout.board.store.repository import LOG, Repository
from heldout.board.store.vault import Vault
from heldout.errors import StoreError
from heldout.files.durable import Mark

_MEMORY = "public"
_COMMITTED = "committed"
_MANY = 1_000
_MOST_LOG = 1 << 30
_SHA1_DIGITS = 40
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

    log: Remembered
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

    before: Log
    whole: Log
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
        told: dict[str, Submission] = {}
        for entry in self._public_entries_of(again):
            name = str(entry.event.submission)
            told[name] = apply_event(told.get(name), entry, name)
        for name, submission in told.items():
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

    def lines(self) -> Iterator[bytes]:
        """Every line, newline included."""
        for number, line in enumerate(self.before.lines()):
            entry = self.changed.get(number)
            yield line if entry is None else format_entry(entry)
        yield from map(format_entry, self.new)

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
    """What the public log has to be at a moment.

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
    changed, still = {}, []
    numbers = [*waiting, *range(known, len(before))]
    for old, entry in zip(before.at(numbers), whole.at(numbers), strict=True):
        shown = redact(entry, today.fields(entry))
        if shown != old:
            changed[entry.event.seq] = shown
        if set(later.fields(entry)) & entry.opened.keys() > shown.opened.keys():
            still.append(entry.event.seq)
    new = []
    for entry in whole.entries(len(before)):
        shown = redact(entry, today.fields(entry))
        new.append(shown)
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
    repository: Repository, vault: Vault, before: Log, now: datetime
) -> tuple[int, tuple[int, ...]]:
    """How many lines are known to be as they have to be, and which of these wait for a day.

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


def list_hidden(shown: Log, repository: Repository, vault: Vault, *, now: datetime) -> list[str]:
    """What a log shows and would have to be sealed again: by a clock that is behind.

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
    found = repository.files.stat(LOG)
    whole = found is not None and found.st_size == public.before.length
    if whole and not public.changed and not public.new:
        keep_public_log(vault, public)
        return False
    digest, length, marks, fold = hashlib.sha256(), 0, [(0, 0)], public.fold

    def lines() -> Iterator[bytes]:
        nonlocal length
        for number, line in enumerate(public.lines(), 1):
            digest.update(line)
            length += len(line)
            mark_line(marks, number, length)
            yield line

    repository.files.write_parts(LOG, lines())
    chain = replace(public.whole.chain, signers=dict(public.whole.chain.signers))
    log = Log(partial(repository.files.open, LOG), chain, fold, length, digest, marks=marks)
    log.remembered, log.known = chain.count, digest.digest()
    put_log(repository.files, LOG, log)
    memory = _Memory(
        log=log.remember(),
        at=public.now,
        rules=len(public.whole.history.rules),
        joined=_count_joined(public.whole.history),
        waiting=public.waiting,
    )
    seen = public.before.remembered
    if chain.count > _MANY and (public.changed or chain.count - seen > _MANY):
        vault.remember(_MEMORY, encode_memory(memory))
    _KNOWN[repository.files.path(LOG)] = vault.mark_of_memory(_MEMORY), memory
    return True


def keep_public_log(vault: Vault, public: PublicLog) -> None:
    """Remember a log that needs no change, where many of its events were verified for that."""
    before = public.before
    if len(before) - before.remembered > _MANY and not public.changed and not public.new:
        memory = _Memory(
            log=before.remember(),
            at=public.now,
            rules=len(public.whole.history.rules),
            joined=_count_joined(public.whole.history),
            waiting=public.waiting,
        )
        vault.remember(_MEMORY, encode_memory(memory))
        before.remembered = len(before)


def list_revealed(committed: Log, public: PublicLog) -> tuple[str, ...]:
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


def empty_log() -> Log:
    """A log before its first event."""
    return read_log(BytesIO, path=LOG)


def find_public_log(repository: Repository, vault: Vault) -> Log:
    """The public log in the board's folder, verified.

    Raises:
        StoreError: it is damaged, or of another board than this clone has worked with.
    """

    def recall() -> Remembered | None:
        memory = _recall(repository, vault)
        return None if memory is None else memory.log

    log = find_log(repository.files, LOG, recall=recall)
    repository.check_pinned(log, path=LOG)
    return log


def _recall(repository: Repository, vault: Vault) -> _Memory | None:
    path, mark = repository.files.path(LOG), vault.mark_of_memory(_MEMORY)
    before, memory = _KNOWN.get(path, (None, None))
    if memory is None or before != mark:  # another process knows more
        memory = decode_memory(vault.recall(_MEMORY), _Memory)
        if memory is not None:
            _KNOWN[path] = mark, memory
    return memory


def find_committed_log(repository: Repository, vault: Vault) -> Log | None:
    """The public log as it was last committed; `None` where it is damaged there."""
    git = repository.git
    head = git.head() if git.is_repository() else None
    if head is None:
        return empty_log()
    blob = git.blob_of(head, LOG)
    try:
        here = find_public_log(repository, vault)
        if blob is not None and blob == _blob_of(here, vault, like=blob):
            return here
    except StoreError:
        pass  # what lies here is damaged: only git has it
    data = git.read_path(head, LOG, limit=_MOST_LOG) or b""
    try:
        return read_log(lambda: BytesIO(data), path=LOG)
    except StoreError:
        return None


def is_committed(repository: Repository, vault: Vault, log: Log) -> bool:
    """Whether the public log here is just what was committed last; so too where nothing ever was.

    Raises:
        StoreError: git fails.
    """
    git = repository.git
    head = git.head() if git.is_repository() else None
    if head is None:
        return True
    blob, found = git.blob_of(head, LOG), repository.files.stat(LOG)
    whole = found is not None and found.st_size == log.length
    return whole and blob is not None and blob == _blob_of(log, vault, like=blob)


def _blob_of(log: Log, vault: Vault, *, like: str) -> str:
    """The id that git gives to a log's bytes, by the kind of id that another one is of."""
    digest = log.digest.digest()
    told = vault.recall(_COMMITTED)
    if told is not None and told.startswith(digest):
        return told.removeprefix(digest).decode("ascii")
    algorithm = hashlib.sha1 if len(like) == _SHA1_DIGITS else hashlib.sha256
    made = algorithm(b"blob %d\0" % log.length, usedforsecurity=False)
    for line in log.lines():
        made.update(line)
    vault.remember(_COMMITTED, digest + made.hexdigest().encode("ascii"))
    return made.hexdigest()
