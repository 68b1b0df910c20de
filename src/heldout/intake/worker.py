"""Hands complete uploads over, sends notices and clears up, beside a server that answers.

Each process has a worker, and a lock lets one work at a time; the system frees it where a process
is killed. What is not done stays in the database, and the next look finds it: an upload that is
complete, a notice that waits.

An upload is checked and handed over to the folder that `heldout inbox --from` reads. That can be
begun again at any point, by any process: the delivery is named by what is in it and appears in one
step (`board.store.uploads`), so a second attempt finds it there.
"""

import fcntl
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from heldout.database.database import exclude_others
from heldout.errors import InputError, StoreError
from heldout.files.durable import Folder
from heldout.intake import mail, teams, uploads
from heldout.intake.board import STATES, BoardMoment, PublicBoard

RETENTION = timedelta(days=30)
"""How long notices are stored, and invitations and tokens that have ended."""

_LOCK = "worker.lock"
_SWEEP_EVERY = timedelta(minutes=10)
_AGAIN = timedelta(minutes=1)
_OLDEST = timedelta(days=7)
_REPORTED = ("received", "published", "rejected", "asked")
_LOG = logging.getLogger("heldout.intake")


@dataclass(slots=True, kw_only=True)
class DueWorker:
    """Does what is due, in a thread of a server.

    Attributes:
        store: where uploads are.
        clock: the time, UTC.
        board: the public board, whose log says what became of submissions; `None` for none.
        send: sends a notice; `None` where no mail is sent.
    """

    store: uploads.UploadStore
    clock: Callable[[], datetime]
    board: PublicBoard | None = None
    send: Callable[[mail.Notice], None] | None = None
    _seen: BoardMoment | None = None
    _swept: datetime | None = None

    def work(self, *, waiting: Container[str] = ()) -> frozenset[str]:
        """Do what is due, unless another process is at it; return the names of what has to wait.

        Args:
            waiting: names of what is left for a later call, as an earlier one returned them.
        """
        if not self.store.parts.is_dir():  # no upload was begun, or its disk is not mounted
            return frozenset(uploads.list_complete(self.store))
        with ExitStack() as held:
            try:
                held.enter_context(Folder(self.store.parts).lock(_LOCK))
            except StoreError:
                return frozenset()
            steps: dict[str, Callable[[], object]] = {
                name: partial(hand_over, self.store, name, now=self.clock())
                for name in uploads.list_complete(self.store)
            }
            if self.send is not None:
                send = partial(mail.send_notices, self.store.database, self.send, now=self.clock())
                steps |= {"report": self._report, "send": send}
            steps["clear"] = self._clear
            due = [(name, step) for name, step in steps.items() if name not in waiting]
            return frozenset(name for name, step in due if not self._try(step))

    def run(self, stop: threading.Event, *, pause: float = 1.0) -> None:
        """Look again and again until it is stopped; what has to wait is tried once a minute.

        Nothing that waits, such as mail to a server that is away, holds up the rest.

        Args:
            stop: set to end it.
            pause: seconds between two looks.
        """
        waiting, again = frozenset[str](), self.clock()
        while not stop.wait(pause):
            if self.clock() >= again:
                waiting, again = frozenset(), self.clock() + _AGAIN
            try:
                waiting |= self.work(waiting=waiting)
            except Exception as error:  # noqa: BLE001 - a database that is gone comes back
                self._note(error)
                stop.wait(_AGAIN.total_seconds())

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            return step() is not False
        except Exception as error:  # noqa: BLE001 - what one step meets must not end the worker
            self._note(error)
            return False

    def _note(self, error: Exception) -> None:
        _LOG.warning("work waits: %s", error, exc_info=not isinstance(error, StoreError))

    def _clear(self) -> None:
        now = self.clock()
        if self._swept is None or now - self._swept >= _SWEEP_EVERY:
            self._swept = now
            uploads.sweep(self.store, now=now)
            # Mail addresses are in them. Teams and uploads stay: quota and states need them.
            for remove in (mail.remove_notices, teams.remove_ended):
                self.store.database.write(partial(remove, before=now - RETENTION))

    def _report(self) -> None:
        """Write a notice for every submission of a team that the log says something new of."""
        if self.board is None or (view := self.board.view()) is self._seen:
            return
        now = self.clock()
        for team in teams.list_teams(self.store.database):
            for owner in {one.owner for one in uploads.list_uploads(self.store, team.id)}:
                known = view.history.submissions.get(owner)
                if known is None or known.status not in _REPORTED or not known.events:
                    continue
                if now - known.events[-1][0] > _OLDEST:
                    continue
                report = partial(
                    mail.add_notice,
                    team=team.id,
                    kind=known.status,
                    key=owner,
                    owner=owner,
                    outcome=STATES[known.status],
                    now=now,
                )
                self.store.database.write(report)
        self._seen = view


def hand_over(store: uploads.UploadStore, name: str, *, now: datetime) -> uploads.Upload:
    """Check a complete upload and hand it over; where another process does so, do nothing.

    Args:
        store: where it is.
        name: its id.
        now: the time, UTC.

    Returns:
        The upload, `accepted` or `failed`; `complete` where another process is at it.

    Raises:
        StoreError: a disk does not work; it stays complete, and is to be tried again.
        DatabaseError: see `ErrorCode`; as above.
    """
    with _hold(store, name) as held:
        upload = uploads.read_upload(store, name)
        if not held or upload.state != "complete":
            return upload
        problem: InputError | None = None
        # After a restored backup it may lie there, and its parts may be gone.
        if not store.folder.has_delivery(upload.digests):
            try:
                for file in upload.files:
                    _check_file(store, upload, file)
                store.folder.deliver(store.parts / name, upload.digests)
            except InputError as error:
                problem = error

        def end(connection: Connection) -> None:
            _end(connection, store, upload, problem, now=now)

        store.database.write(end)
        uploads.remove_parts(store, name)
    return uploads.read_upload(store, name)


@contextmanager
def _hold(store: uploads.UploadStore, name: str) -> Iterator[bool]:
    """Keep other processes from an upload; `False` where one is at it."""
    if not store.parts.is_dir():  # a disk that is not mounted has lost nothing
        raise StoreError(f"{store.parts} is not a folder")
    try:
        (store.parts / name).mkdir(mode=0o700, exist_ok=True)
        handle = os.open(store.parts / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{store.parts} cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


def _end(
    connection: Connection,
    store: uploads.UploadStore,
    upload: uploads.Upload,
    problem: InputError | None,
    *,
    now: datetime,
) -> None:
    """Write how it ended, and drop what it replaces."""
    exclude_others(connection)
    if problem is None:
        uploads.end_upload(connection, upload.id, "accepted", now=now)
        for replaced in uploads.replaced_uploads(connection, upload):
            store.folder.drop_delivery(replaced.digests)
    else:
        uploads.end_upload(
            connection, upload.id, "failed", now=now, code=problem.code, why=str(problem)
        )
    if store.notifies:
        mail.add_notice(
            connection,
            upload.team,
            kind="failed" if problem else "accepted",
            key=upload.id,
            owner=upload.owner,
            outcome="not accepted" if problem else "here, and waits for the organiser",
            now=now,
        )


def _check_file(
    store: uploads.UploadStore, upload: uploads.Upload, file: uploads.UploadFile
) -> None:
    """Compare a file with what was declared of it.

    Raises:
        InputError: codes `upload-digest`, `upload-lost`.
        StoreError: the disk does not work.
    """
    try:
        with store.part(upload.id, file.name).open("rb") as part:
            digest = hashlib.file_digest(part, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError.of("upload-lost", file.name, size=file.size) from None
    except OSError as error:
        raise StoreError(f"{file.name} cannot be read: {error.strerror}") from error
    if digest != file.digest:
        raise InputError.of("upload-digest", file.name, f"SHA-256 {digest}", digest=file.digest)
