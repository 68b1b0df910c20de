"""The public board, as the intake shows it: states and quotas by the public log, and the standings.

Nothing here reads the vault. Where the folder is a clone, its remote is asked once a minute; else
the files are read again when they have changed.
"""

import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log.events import Entry, parse_log
from heldout.board.log.history import History, read_history
from heldout.board.log.reading import LOG, read_public_log
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.store.repository import KEYS, LEADERBOARD, README, SPEC, Repository
from heldout.errors import StoreError
from heldout.ids import digest_bytes

_STANDINGS = f"{LEADERBOARD}/leaderboard.json"
_MOST_BYTES = 1 << 30
_ASK_AGAIN = timedelta(minutes=1)
_ZIP_DAY = (1980, 1, 1, 0, 0, 0)

STATES: Mapping[str, str] = {
    "received": "received",
    "reviewed": "in review",
    "asked": "the organiser has a question",
    "rejected": "refused",
    "withdrawn": "withdrawn",
    "published": "published",
    "imported": "published",
}
"""Status in the log -> the state that a team is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSubmission:
    """A submission of a team, as page and API show it.

    Attributes:
        id: the submission.
        state: how far it has come, in words.
        why: the organiser's public reason, or question; "" without.
        sent: when the whole upload came, UTC; `None` before.
        received: the official time; `None` before.
    """

    id: str
    state: str
    why: str = ""
    sent: datetime | None = None
    received: datetime | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """What is the same for everybody.

    Attributes:
        data: the bytes.
        etag: names them.
    """

    data: bytes
    etag: str

    @staticmethod
    def of(data: bytes) -> "Shared":
        """The bytes with their name."""
        return Shared(data, f'"{digest_bytes(data)[:32]}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardMoment:
    """The board at one moment.

    Attributes:
        history: the public log, folded.
        spec: the rules in force.
        head: the standings' document without its rows.
        rows: its rows, each as published, to the digit.
        read: gives a public file of the board as of that moment, `None` where there is none.
        archives: the archive of the public files, once somebody has asked for it.
    """

    history: History
    spec: BoardSpec
    head: Mapping[str, Any]
    rows: tuple[msgspec.Raw, ...]
    read: Callable[[str], bytes | None]
    archives: list[Shared] = field(default_factory=list)

    @property
    def closed(self) -> datetime | None:
        """When the board was closed for good."""
        return self.history.closed

    def standings(self, *, offset: int, limit: int) -> Shared:
        """Some rows; the same bytes for everybody, until the board changes."""
        rows = self.rows[offset : offset + limit]
        after = offset + len(rows)
        document = {
            **self.head,
            "total": len(self.rows),
            "offset": offset,
            "next": after if rows and after < len(self.rows) else None,
            "rows": rows,
        }
        return Shared.of(msgspec.json.encode(document))

    def archive(self) -> Shared:
        """Return what a team needs to seal a submission, as a zip; the same bytes each time.

        Raises:
            StoreError: a public file is missing.
        """
        if not self.archives:
            self.archives.append(Shared.of(self._make_archive()))
        return self.archives[0]

    def _make_archive(self) -> bytes:
        agreement = self.spec.registration and self.spec.registration.agreement
        named = [SPEC, README, LOG, KEYS, *self.history.files, *[agreement or LOG]]
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(set(named)):
                data = read_public_log(self.read) if name == LOG else self.read(name)
                if data is None and name != README:
                    raise StoreError(f"{name} is missing in the board")
                archive.writestr(zipfile.ZipInfo(name, _ZIP_DAY), data or b"", zipfile.ZIP_DEFLATED)
        return packed.getvalue()

    def state_of(
        self, name: str, sent: datetime | None, digests: Mapping[str, str], *, waits: bool
    ) -> ShownSubmission:
        """Return how far a submission has come, by the public log alone.

        Args:
            name: its id.
            sent: when the whole upload came, UTC; `None` while it is under way.
            digests: name of each file -> SHA-256. It is the log's where a file of that came so.
            waits: whether it still lies in the folder that the organiser's inbox empties.
        """
        known, why, received = self.history.submissions.get(name), "", None
        if known is not None and (not digests or known.files.items() & digests.items()):
            state, received = STATES[known.status], known.received
            why = known.why if known.status in ("rejected", "asked", "withdrawn") else ""
        elif sent is None:
            state = "uploading"
        elif waits:
            state = "waiting for the organiser"
        elif known is not None:
            state, why = "not accepted", "the public log has other files under this id"
        else:
            state = "taken in by the organiser; not in the public log yet"
        return ShownSubmission(id=name, state=state, why=why, sent=sent, received=received)


@dataclass(slots=True)
class PublicBoard:
    """The board's folder, read again when it has changed.

    Attributes:
        root: the folder, or a clone of the board.
        clock: the time, UTC.
    """

    root: Path
    clock: Callable[[], datetime]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _view: BoardMoment | None = None
    _mark: object = None
    _asked: datetime | None = None
    _clone: bool | None = None

    def view(self) -> BoardMoment:
        """The board now.

        Raises:
            StoreError: it cannot be read, and never was.
        """
        known = self._view
        if known is not None and not self._is_due():
            return known
        if not self._lock.acquire(blocking=known is None) and known is not None:
            return known  # another thread reads it again
        try:
            self._view = self._read_again() or self._view
        except StoreError:
            if self._view is None:
                raise
        finally:
            self._lock.release()
        if self._view is None:
            raise StoreError(f"{self.root} has no board that can be read")
        return self._view

    def _is_due(self) -> bool:
        """Check whether something may have changed."""
        if self._is_clone():
            return self._asked is None or self.clock() - self._asked >= _ASK_AGAIN
        return self._mark != self._stamps()

    def _is_clone(self) -> bool:
        if self._clone is None:
            git = Repository(self.root).git
            self._clone = git.is_repository() and "origin" in git.remotes()
        return self._clone

    def _stamps(self) -> tuple[object, ...]:
        """Size and time of the files that count: they change when a file is replaced."""
        files = Repository(self.root).files
        found = (files.stat(name) for name in (LOG, _STANDINGS))
        return tuple(one and (one.st_ino, one.st_size, one.st_mtime_ns) for one in found)

    def _read_again(self) -> BoardMoment | None:
        """The board as it is now; `None` where it is as it was."""
        repository = Repository(self.root)
        self._asked = self.clock()
        if not self._is_clone():
            mark: object = self._stamps()
            if mark == self._mark:
                return None
            view = _make_view(repository.log(), repository.files.find)
            self._mark = mark
            return view
        git, branch = repository.git, repository.git.main_branch()
        ref = f"refs/remotes/origin/{branch}"
        with suppress(StoreError):  # it does not answer: what was last heard of it still holds
            git.fetch("origin", f"+refs/heads/{branch}:{ref}")
        commit = git.refs(ref).get(ref)
        if commit is None or commit == self._mark:
            return None
        read = partial(git.read_path, commit, limit=_MOST_BYTES)
        view = _make_view(parse_log(repository.log_at(commit) or b"", path=LOG), read)
        self._mark = commit
        return view


def _make_view(log: tuple[Entry, ...], read: Callable[[str], bytes | None]) -> BoardMoment:
    """The board of a log and its leaderboard.json.

    Raises:
        StoreError: there is no log yet, or the document is damaged.
    """
    if not log:
        raise StoreError("the board has no log yet")
    history = read_history(log)
    spec = parse_spec(history.rules[-1][1].encode())
    document: dict[str, msgspec.Raw] = {"board": msgspec.Raw(msgspec.json.encode(spec.name))}
    rows: list[msgspec.Raw] = []
    standings = read(_STANDINGS)
    try:
        if standings is not None:
            document = msgspec.json.decode(standings, type=dict[str, msgspec.Raw])
            rows = msgspec.json.decode(document.pop("rows", b"[]"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(f"{_STANDINGS} is damaged: heldout rebuild writes it again") from None
    return BoardMoment(history=history, spec=spec, head=document, rows=tuple(rows), read=read)
