"""What the pages and the API of the intake both do: who is there, what came, what may come next.

Pages and API read requests and write answers; everything between is here, over the intake's
database, its two folders and the public board. Nothing here has a key of the envelope.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import anyio
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile as FormFile
from starlette.requests import ClientDisconnect

from heldout.board.policy.checks import QuotaState
from heldout.errors import InputError, StoreError
from heldout.ids import Digest
from heldout.intake import sign_in, teams, uploads
from heldout.intake.board import BoardMoment, PublicBoard, ShownSubmission
from heldout.intake.form import Pace, cut_off, list_files, read_form, read_length, read_pieces
from heldout.intake.quota import Quota, quota_of
from heldout.intake.worker import DueWorker, hand_over
from heldout.web import pages, sessions
from heldout.web.forms import network_of

_STATUSES: Mapping[str, int] = {
    code: status
    for status, codes in {
        400: "upload-cut upload-form",
        401: "team-token",
        403: "board-closed",
        404: "invitation-unknown upload-unknown",
        409: "upload-ended upload-incomplete upload-offset upload-taken",
        410: "invitation-expired invitation-used",
        413: "upload-too-large",
        429: "too-many-tries upload-limit upload-quota",
        503: "upload-busy",
        507: "upload-full",
    }.items()
    for code in codes.split()
}
_WAIT = {"Retry-After": "120"}
_OVERHEAD = 1 << 16
_SHOWN = 10_000
_PIECE = 1 << 20
_FORMS = 32
_FORMS_OF_TEAM = 4
_LOG = logging.getLogger("heldout.intake")


def status_of(code: str) -> tuple[int, Mapping[str, str]]:
    """The status of HTTP that a problem is answered with, and headers beside it."""
    status = _STATUSES.get(code, 422)
    if status == 401:  # noqa: PLR2004 - HTTP's
        return status, {"WWW-Authenticate": "Bearer"}
    return status, _WAIT if code in ("upload-busy", "upload-limit", "too-many-tries") else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All that a team is shown of itself.

    Attributes:
        quota: what it has used, and when its next submission may come.
        submissions: the newest first.
        closed: when the board was closed for good, `None` before.
    """

    quota: QuotaState
    submissions: tuple[ShownSubmission, ...]
    closed: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The intake of one board.

    Attributes:
        store: where uploads go, and the database.
        board: the public board.
        worker: hands over what is complete.
        clock: the time, UTC.
        root: address of the pages, without a slash at its end.
        key: secret that signs what a browser brings back.
        study: what every page says.
        providers: by which people may sign in.
        pace: how slow a sender may be.
        attempts: wrong tokens, by address.
        forms: forms under way in this process, by team.
    """

    store: uploads.UploadStore
    board: PublicBoard
    worker: DueWorker
    clock: Callable[[], datetime]
    root: str
    key: bytes
    study: pages.Study
    providers: tuple[sign_in.Provider, ...] = ()
    pace: Pace = field(default_factory=Pace)
    attempts: sessions.Attempts = field(default_factory=sessions.Attempts)
    forms: Counter[int] = field(default_factory=Counter)

    # Who is there

    def join(self, secret: str, *, name: str, mail: str) -> tuple[teams.Team, str]:
        """Use an invitation: the team, and its token; raises as `teams.accept_invitation`."""
        now = self.clock()
        team = teams.accept_invitation(self.store.database, secret, name=name, mail=mail, now=now)
        return team, self.new_token(team)

    def new_token(self, team: teams.Team, session: str | None = None) -> str:
        """A new token, which ends all that was before; raises as `teams.replace_tokens`."""
        return teams.replace_tokens(self.store.database, team.id, now=self.clock(), session=session)

    def team_of_token(self, secret: str) -> teams.Team | None:
        """Return whose token it is; `None` where it opens nothing."""
        return teams.find_team(self.store.database, secret, now=self.clock(), kind="api")

    def open_session(self, by: str | tuple[str, str]) -> str | None:
        """Open a session by a token, or by provider and person, as a cookie's text; or `None`."""
        return teams.open_session(self.store.database, by, now=self.clock(), valid=sessions.SESSION)

    def team_of_session(self, cookie: str) -> teams.Team | None:
        """Return whose session it is; `None` where it is over."""
        return teams.find_team(self.store.database, cookie, now=self.clock(), kind="session")

    # What came, and what may come next

    def overview(self, team: teams.Team) -> Overview:
        """All that a team is shown of itself."""
        view = self.board.view()
        return Overview(
            quota=uploads.read_quota(
                self.store, team.id, self._quota(view, team), now=self.clock()
            ),
            submissions=tuple(self._show(view, group) for group in self._by_owner(team)),
            closed=view.closed,
        )

    def _by_owner(self, team: teams.Team) -> Sequence[Sequence[uploads.Upload]]:
        """A team's uploads of each submission, the newest first; what was cancelled is left out."""
        groups: dict[str, list[uploads.Upload]] = {}
        for one in uploads.list_uploads(self.store, team.id, most=_SHOWN):
            if one.kind != "registration" and one.state != "cancelled":
                groups.setdefault(one.owner, []).append(one)
        return tuple(groups.values())

    def _show(self, view: BoardMoment, group: Sequence[uploads.Upload]) -> ShownSubmission:
        newest, first = group[0], group[-1]
        digests = {file.name: file.digest for one in group for file in one.files}
        sent = next((one.completed for one in group if one.completed), None)
        waits = any(map(self._waits, group))
        shown = view.state_of(newest.owner, sent, digests, waits=waits)
        if shown.received is None and newest.state == "failed":
            shown = replace(shown, state="not accepted", why=newest.why)
        return replace(shown, sent=first.completed or sent)

    def _waits(self, upload: uploads.Upload) -> bool:
        """Check whether the inbox has not taken it yet."""
        if upload.state == "complete":
            return True
        return upload.state == "accepted" and self.store.folder.has_delivery(upload.digests)

    def _quota(self, view: BoardMoment, team: teams.Team) -> Quota:
        return quota_of(view.history, team.name, view.spec, now=self.clock())

    def _open_board(self) -> BoardMoment:
        """The board, where it takes submissions.

        Raises:
            InputError: code `board-closed`.
        """
        view = self.board.view()
        if view.closed is not None:
            found = f"a board that was closed for good on {view.closed:%d %b %Y}"
            raise InputError.of("board-closed", "board", found, "one that takes submissions")
        return view

    # Uploads

    def begin(
        self, team: teams.Team, files: Sequence[uploads.UploadFile], address: str
    ) -> tuple[bool, uploads.Upload]:
        """Begin an upload, or find the one of the same files; says whether nothing of it is here.

        Raises:
            InputError: as `uploads.begin_upload`; code `board-closed`.
        """
        now, quota = self.clock(), self._quota(self._open_board(), team)
        upload = uploads.begin_upload(
            self.store, team.id, files, address=address, quota=quota, now=now
        )
        begun = any(file.received for file in upload.files)
        return upload.state == "open" and not begun, upload

    async def append(
        self, team: teams.Team, upload: str, name: str, offset: int, request: Request
    ) -> int:
        """Go on with a file; gives how many bytes of it are here.

        Raises:
            InputError: as `uploads.open_part`; code `upload-cut`.
        """
        read_length(request, most=self.store.folder.limits.file_bytes)
        manager = uploads.open_part(
            self.store, team.id, upload, name, offset=offset, clock=self.clock
        )
        part: uploads.Part = await run_in_threadpool(manager.__enter__)
        try:
            async for piece in read_pieces(request, self.pace):
                await run_in_threadpool(part.write, piece)
        except (ClientDisconnect, TimeoutError):
            hint = f"go on at byte {part.received:,}"
            raise cut_off("the connection broke or took too long", hint=hint) from None
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(manager.__exit__, None, None, None)
        return part.received

    def finish(self, team: teams.Team, upload: str) -> uploads.Upload:
        """Say that all is here, and hand it over.

        Raises:
            InputError: as `uploads.complete_upload`; code `board-closed`; those of `hand_over`.
        """
        quota = self._quota(self._open_board(), team)
        done = uploads.complete_upload(self.store, team.id, upload, quota=quota, now=self.clock())
        if done.state == "complete":
            try:
                done = hand_over(self.store, upload, now=self.clock())
            except StoreError as error:  # the worker tries again
                _LOG.warning("an upload waits: %s", error)
        return check_accepted(done)

    async def take_form(self, team: teams.Team, request: Request) -> tuple[bool, uploads.Upload]:
        """Take the files of a form, all of them or none; says whether they are new.

        Raises:
            InputError: they were not taken; what had come by then is gone again.
        """
        folder = self.store.folder
        most = len(folder.endings) * folder.limits.file_bytes + _OVERHEAD
        size = read_length(request, most=most) or 0
        await run_in_threadpool(self._open_board)
        await run_in_threadpool(uploads.find_room, self.store, team.id, coming=size)
        if self.forms[team.id] >= _FORMS_OF_TEAM or self.forms.total() >= _FORMS:
            raise InputError.of(
                "upload-busy",
                "upload",
                f"{self.forms.total()} forms under way, {self.forms[team.id]} of them yours",
                forms=_FORMS,
                forms_of_team=_FORMS_OF_TEAM,
            )
        self.forms[team.id] += 1
        try:
            form = await read_form(request, self.pace, most=most)
            try:
                files, address = list_files(form), network_of(request)
                return await run_in_threadpool(self._store_form, team, files, address)
            finally:
                await form.close()
        except (ClientDisconnect, TimeoutError):
            raise cut_off("the connection broke or took too long") from None
        finally:
            self.forms[team.id] -= 1

    def _store_form(
        self, team: teams.Team, files: Sequence[FormFile], address: str
    ) -> tuple[bool, uploads.Upload]:
        """Make an upload of the files of a form; says whether it is new."""
        sources = {str(one.filename): one.file for one in files}
        declared = [
            uploads.UploadFile(
                name=str(one.filename),
                size=one.size or 0,
                digest=Digest(hashlib.file_digest(one.file, "sha256").hexdigest()),  # type: ignore[arg-type]  # it has all that is used
            )
            for one in files
        ]
        new, upload = self.begin(team, declared, address)
        for file in upload.files if upload.state == "open" else ():
            where = (self.store, team.id, upload.id, file.name)
            sources[file.name].seek(file.received)
            with uploads.open_part(*where, offset=file.received, clock=self.clock) as part:
                while data := sources[file.name].read(_PIECE):
                    part.write(data)
        return new, self.finish(team, upload.id)


def check_accepted(upload: uploads.Upload) -> uploads.Upload:
    """Return an upload whose files are here.

    Raises:
        InputError: it failed; the code is its.
    """
    if upload.state == "failed":
        raise InputError.of(
            upload.code, "upload", upload.why, "the files as declared", "send them again"
        )
    if upload.completed is None:
        raise StoreError(f"upload {upload.id} is not complete")
    return upload
