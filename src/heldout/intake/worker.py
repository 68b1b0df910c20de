"""What a server does beside answering: it hands uploads over, sends notices and clears up.

Each process has a worker, and a lock lets one work at a time; the system frees it where a process
is killed. What is not done stays in the database, and the next look finds it: an upload that is
complete, a notice that waits.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from heldout.errors import StoreError
from heldout.files.durable import Folder
from heldout.intake.board import STATES, PublicBoard, View
from heldout.intake.hand_over import hand_over
from heldout.intake.notices import Notice, add_notice, remove_notices, send_notices
from heldout.intake.teams import list_teams, remove_ended
from heldout.intake.uploads import UploadStore, list_complete, list_uploads, sweep

KEPT_FOR = timedelta(days=30)
"""How long notices are stored, and invitations and tokens that have ended."""

_LOCK = "worker.lock"
_SWEEP_EVERY = timedelta(minutes=10)
_AGAIN_SECONDS = 60.0
_OLDEST = timedelta(days=7)
_REPORTED = ("received", "published", "rejected", "asked")
_LOG = logging.getLogger("heldout.intake")


@dataclass(slots=True, kw_only=True)
class Worker:
    """Does what is due, in a thread of a server.

    Attributes:
        store: where uploads are.
        clock: the time, UTC.
        board: the public board, whose log says what became of submissions; `None` for none.
        send: sends a notice; `None` where no mail is sent.
    """

    store: UploadStore
    clock: Callable[[], datetime]
    board: PublicBoard | None = None
    send: Callable[[Notice], None] | None = None
    _seen: View | None = None
    _swept: datetime | None = None

    def work(self) -> bool:
        """Do all that is due, unless another process is at it; `False` where something waits."""
        if not self.store.parts.is_dir():  # no upload was begun, or its disk is not mounted
            return not list_complete(self.store)
        with ExitStack() as held:
            try:
                held.enter_context(Folder(self.store.parts).lock(_LOCK))
            except StoreError:
                return True
            steps: list[Callable[[], object]] = [
                partial(hand_over, self.store, name, now=self.clock())
                for name in list_complete(self.store)
            ]
            if self.send is not None:
                steps += [
                    self._report,
                    partial(send_notices, self.store.database, self.send, now=self.clock()),
                ]
            steps.append(self._clear)
            return all([self._try(step) for step in steps])  # noqa: C419 - each of them is done

    def run(self, stop: threading.Event, *, pause: float = 1.0) -> None:
        """Look again and again until it is stopped.

        Args:
            stop: set to end it.
            pause: seconds between two looks; a minute where something has to wait.
        """
        while not stop.is_set():
            stop.wait(pause if self._try(self.work) else _AGAIN_SECONDS)

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            return step() is not False
        except Exception as error:  # noqa: BLE001 - what one step meets must not end the worker
            _LOG.warning("work waits: %s", error, exc_info=not isinstance(error, StoreError))
            return False

    def _clear(self) -> None:
        now = self.clock()
        if self._swept is None or now - self._swept >= _SWEEP_EVERY:
            self._swept = now
            sweep(self.store, now=now)
            remove_old(self.store, before=now - KEPT_FOR)

    def _report(self) -> None:
        """Write a notice for every submission of a team that the log says something new of."""
        if self.board is None or (view := self.board.view()) is self._seen:
            return
        now = self.clock()
        for team in list_teams(self.store.database):
            for owner in {one.owner for one in list_uploads(self.store, team.id)}:
                known = view.history.submissions.get(owner)
                if known is None or known.status not in _REPORTED or not known.events:
                    continue
                if now - known.events[-1][0] > _OLDEST:
                    continue
                report = partial(
                    add_notice,
                    team=team.id,
                    kind=known.status,
                    key=owner,
                    owner=owner,
                    outcome=STATES[known.status],
                    now=now,
                )
                self.store.database.write(report)
        self._seen = view


def remove_old(store: UploadStore, *, before: datetime) -> int:
    """Remove what ended before some time and nobody needs: mail addresses are in it.

    Teams and their uploads stay: the quota and the states of submissions need them.

    Args:
        store: with the database.
        before: the time, UTC.

    Returns:
        How many rows are gone.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def remove(connection: Connection) -> int:
        notices = remove_notices(connection, before=before)
        return notices + remove_ended(connection, before=before)

    return store.database.write(remove)
