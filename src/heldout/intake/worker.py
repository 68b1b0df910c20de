"""Hands uploads over, sends notices and clears up, beside a server that answers.

Each process has a worker, and a lock lets one work at a time; the system frees it where a process
is killed. What is not done stays in the database, and the next look finds it: an upload that is
complete, a notice that waits.
"""

import logging
import threading
from collections.abc import Callable, Container
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

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
_AGAIN = timedelta(minutes=1)
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

    def work(self, *, waiting: Container[str] = ()) -> frozenset[str]:
        """Do what is due, unless another process is at it; return the names of what has to wait.

        Args:
            waiting: names of what is left for a later call, as an earlier one returned them.
        """
        if not self.store.parts.is_dir():  # no upload was begun, or its disk is not mounted
            return frozenset(list_complete(self.store))
        with ExitStack() as held:
            try:
                held.enter_context(Folder(self.store.parts).lock(_LOCK))
            except StoreError:
                return frozenset()
            steps: dict[str, Callable[[], object]] = {
                name: partial(hand_over, self.store, name, now=self.clock())
                for name in list_complete(self.store)
            }
            if self.send is not None:
                send = partial(send_notices, self.store.database, self.send, now=self.clock())
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
            sweep(self.store, now=now)
            # Mail addresses are in them. Teams and uploads stay: quota and states need them.
            for remove in (remove_notices, remove_ended):
                self.store.database.write(partial(remove, before=now - KEPT_FOR))

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
