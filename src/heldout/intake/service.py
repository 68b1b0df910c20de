"""What the pages and the API of the intake both do: who is there, what came, what may come next.

Pages and API read requests and write answers; everything between is here, over the intake's
database, its two folders and the public board. Nothing here has a key of the envelope.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from heldout.board.policy.checks import QuotaState
from heldout.board.store.uploads import Delivery, Received, UploadReceipt
from heldout.errors import InputError, StoreError
from heldout.intake.board import PublicBoard, Sent, State, View
from heldout.intake.form import Pace, cut_off, read_form, read_length, read_pieces
from heldout.intake.jobs import Worker
from heldout.intake.quota import Quota, quota_of
from heldout.intake.sign_in import Provider
from heldout.intake.teams import (
    Invitation,
    Team,
    accept_invitation,
    check_token,
    find_invitation,
    get_team,
    link_identity,
    list_identities,
    open_session,
    replace_tokens,
    revoke_token,
)
from heldout.intake.uploads import (
    HAND_OVER,
    DeclaredFile,
    Part,
    Upload,
    UploadStore,
    adopt_files,
    begin_upload,
    cancel_upload,
    complete_upload,
    get_upload,
    list_uploads,
    open_part,
    read_quota,
)
from heldout.web.forms import network_of
from heldout.web.pages import Study
from heldout.web.sessions import SESSION, Attempts

_STATUSES: Mapping[str, int] = {
    "board-closed": 403,
    "invitation-expired": 410,
    "invitation-unknown": 404,
    "invitation-used": 410,
    "team-token": 401,
    "too-many-tries": 429,
    "upload-busy": 503,
    "upload-cut": 400,
    "upload-ended": 409,
    "upload-form": 400,
    "upload-full": 507,
    "upload-incomplete": 409,
    "upload-limit": 429,
    "upload-offset": 409,
    "upload-quota": 429,
    "upload-taken": 409,
    "upload-too-large": 413,
    "upload-unknown": 404,
}
_WAIT = {"Retry-After": "120"}
_OVERHEAD = 1 << 16
_SHOWN = 10_000
_STEPS = 8


def status_of(code: str) -> tuple[int, Mapping[str, str]]:
    """The status of HTTP that a problem is answered with, and headers beside it."""
    status = _STATUSES.get(code, 422)
    if status == 401:  # noqa: PLR2004 - HTTP's
        return status, {"WWW-Authenticate": "Bearer"}
    return status, _WAIT if code in ("upload-busy", "upload-limit", "too-many-tries") else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A submission of a team, as page and API show it.

    Attributes:
        id: the submission.
        state: how far it has come, in words.
        why: the reason of a refusal, or the organiser's question; "" without.
        sent: when the whole upload came, UTC; `None` before.
        received: the official time; `None` before.
    """

    id: str
    state: str
    why: str
    sent: datetime | None
    received: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All that a team is shown of itself.

    Attributes:
        quota: what it has used, and when its next submission may come.
        submissions: the newest first.
        closed: when the board was closed for good, `None` before.
    """

    quota: QuotaState
    submissions: tuple[Shown, ...]
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
    """

    store: UploadStore
    board: PublicBoard
    worker: Worker
    clock: Callable[[], datetime]
    root: str
    key: bytes
    study: Study
    providers: tuple[Provider, ...] = ()
    pace: Pace = field(default_factory=Pace)
    attempts: Attempts = field(default_factory=Attempts)

    # Who is there

    def find_invitation(self, secret: str) -> Invitation:
        """An invitation that is open; raises as `teams.find_invitation`."""
        return find_invitation(self.store.database, secret, now=self.clock())

    def team_name(self, team: int | None) -> str:
        """The name of a team; "" for none."""
        return "" if team is None else get_team(self.store.database, team).name

    def join(self, secret: str, *, name: str, mail: str) -> tuple[Team, str]:
        """Use an invitation: the team, and its token; raises as `teams.accept_invitation`."""
        now = self.clock()
        team = accept_invitation(self.store.database, secret, name=name, mail=mail, now=now)
        return team, self.new_token(team)

    def new_token(self, team: Team, session: str | None = None) -> str:
        """A new token, which ends all that was before; raises as `teams.replace_tokens`."""
        return replace_tokens(self.store.database, team.id, now=self.clock(), session=session)

    def team_of_token(self, secret: str) -> Team | None:
        """Whose token it is; `None` where it opens nothing."""
        found = check_token(self.store.database, secret, now=self.clock(), kind="api")
        return None if found is None else found[0]

    def open_session(self, by: str | tuple[str, str]) -> str | None:
        """A session by a token, or by provider and person, as the text of a cookie; or `None`."""
        found = open_session(self.store.database, by, now=self.clock(), valid=SESSION)
        return None if found is None else found[1]

    def team_of_session(self, cookie: str) -> Team | None:
        """Whose session it is; `None` where it is over."""
        found = check_token(self.store.database, cookie, now=self.clock(), kind="session")
        return None if found is None else found[0]

    def close_session(self, cookie: str) -> None:
        """End a session."""
        now, database = self.clock(), self.store.database
        found = check_token(database, cookie, now=now, kind="session")
        if found is not None:
            revoke_token(database, found[0].id, found[1].id, now=now)

    def tie(self, team: Team, provider: str, person: str, *, session: str) -> None:
        """Let a person sign in as a team; raises as `teams.link_identity`."""
        link_identity(
            self.store.database,
            team.id,
            provider,
            person,
            name=person,
            now=self.clock(),
            session=session,
        )

    def tied(self, team: Team) -> frozenset[str]:
        """The providers by which somebody of the team may sign in."""
        return frozenset(one.provider for one in list_identities(self.store.database, team.id))

    # What came, and what may come next

    def overview(self, team: Team) -> Overview:
        """All that a team is shown of itself."""
        view = self.board.view()
        return Overview(
            quota=read_quota(self.store, team.id, self._quota(view, team), now=self.clock()),
            submissions=tuple(self._show(view, group) for group in self._by_owner(team)),
            closed=view.closed,
        )

    def _by_owner(self, team: Team) -> Sequence[Sequence[Upload]]:
        """A team's uploads of each submission, the newest first; what was cancelled is left out."""
        groups: dict[str, list[Upload]] = {}
        for one in list_uploads(self.store, team.id, most=_SHOWN):
            if one.kind != "registration" and one.state != "cancelled":
                groups.setdefault(one.owner, []).append(one)
        return tuple(groups.values())

    def _show(self, view: View, group: Sequence[Upload]) -> Shown:
        newest, first = group[0], group[-1]
        digests = {file.name: file.digest for one in group for file in one.files}
        sent = Sent(
            id=newest.owner,
            at=next((one.completed for one in group if one.completed), None),
            digests=digests,
            waits=any(self._waits(one) for one in group),
        )
        state = view.state_of(sent)
        if state.received is None and newest.state == "failed":
            state = State(state="not accepted", why=newest.why, counts=False)
        return Shown(
            id=newest.owner,
            state=state.state,
            why=state.why,
            sent=first.completed or sent.at,
            received=state.received,
        )

    def _waits(self, upload: Upload) -> bool:
        """Whether the inbox has not taken it yet."""
        if upload.state == "complete":
            return True
        return upload.state == "accepted" and self.store.folder.has_delivery(
            {file.name: file.digest for file in upload.files}
        )

    def _quota(self, view: View, team: Team) -> Quota:
        return quota_of(view.history, team.name, view.spec, now=self.clock())

    def _open_board(self) -> View:
        """The board, where it takes submissions.

        Raises:
            InputError: code `board-closed`.
        """
        view = self.board.view()
        if view.closed is not None:
            raise InputError.of(
                "board-closed",
                "board",
                f"a board that was closed for good on {view.closed:%d %b %Y}",
                "one that takes submissions",
            )
        return view

    # Uploads

    def begin(self, team: Team, files: Sequence[DeclaredFile], address: str) -> tuple[bool, Upload]:
        """Begin an upload, or find the one of the same files; says whether nothing of it is here.

        Raises:
            InputError: as `uploads.begin_upload`; code `board-closed`.
        """
        now, quota = self.clock(), self._quota(self._open_board(), team)
        upload = begin_upload(self.store, team.id, files, address=address, quota=quota, now=now)
        begun = any(file.received for file in upload.files)
        return upload.state == "open" and not begun, upload

    def find_upload(self, team: Team, upload: str) -> Upload:
        """An upload of a team; raises as `uploads.get_upload`."""
        return get_upload(self.store, team.id, upload)

    async def append(
        self, team: Team, upload: str, name: str, offset: int, request: Request
    ) -> int:
        """Go on with a file; gives how many bytes of it are here.

        Raises:
            InputError: as `uploads.open_part`; code `upload-cut`.
        """
        read_length(request, most=self.store.folder.limits.file_bytes)
        manager = open_part(self.store, team.id, upload, name, offset=offset, clock=self.clock)
        part: Part = await run_in_threadpool(manager.__enter__)
        try:
            with anyio.fail_after(self.pace.longest):
                async for piece in read_pieces(request, self.pace):
                    await run_in_threadpool(part.write, piece)
        except (ClientDisconnect, TimeoutError):
            hint = f"go on at byte {part.received:,}"
            raise cut_off("the connection broke or took too long", hint=hint) from None
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(manager.__exit__, None, None, None)
        return part.received

    def finish(self, team: Team, upload: str) -> Upload:
        """Say that all is here, and hand it over.

        Raises:
            InputError: as `uploads.complete_upload`; code `board-closed`.
        """
        quota = self._quota(self._open_board(), team)
        done = complete_upload(self.store, team.id, upload, quota=quota, now=self.clock())
        for _ in range(_STEPS):
            if done.state != "complete" or not self.worker.run_one(HAND_OVER):
                break
            done = get_upload(self.store, team.id, upload)
        return done

    def drop(self, team: Team, upload: str) -> None:
        """Give an upload up; raises as `uploads.cancel_upload`."""
        cancel_upload(self.store, team.id, upload, now=self.clock())

    async def take_form(self, team: Team, request: Request) -> UploadReceipt:
        """Take the files of a form, all of them or none.

        Raises:
            InputError: they were not taken; what had come by then is gone again.
        """
        folder = self.store.folder
        most = len(folder.endings) * folder.limits.file_bytes + _OVERHEAD
        size = read_length(request, most=most)
        await run_in_threadpool(self._open_board)
        address = network_of(request)
        manager = folder.deliver(size=size, sender=f"team {team.id}")
        delivery = await run_in_threadpool(manager.__enter__)
        try:
            with anyio.fail_after(self.pace.longest):
                await read_form(request, delivery, self.pace, most=most)
            new, upload = await run_in_threadpool(self._adopt, team, delivery, address)
        except (ClientDisconnect, TimeoutError):
            raise cut_off("the connection broke or took too long") from None
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(manager.__exit__, None, None, None)
        done = await run_in_threadpool(self.finish, team, upload.id)
        return receipt_of(done, known=not new)

    def _adopt(self, team: Team, delivery: Delivery, address: str) -> tuple[bool, Upload]:
        """Make an upload of what a form brought; says whether it is new."""
        declared = [
            DeclaredFile(name=one.name, size=one.size, digest=one.digest)
            for one in delivery.files()
        ]
        new, upload = self.begin(team, declared, address)
        if upload.state == "open":
            adopt_files(self.store, upload, delivery.path, now=self.clock())
        return new, upload


def receipt_of(upload: Upload, *, known: bool = False) -> UploadReceipt:
    """What somebody is told whose files are here.

    Raises:
        InputError: the upload failed; the code is its.
    """
    if upload.state == "failed":
        raise InputError.of(
            upload.code, "upload", upload.why, "the files as declared", "send them again"
        )
    if upload.completed is None:
        raise StoreError(f"upload {upload.id} is not complete")
    files = tuple(Received(name=f.name, size=f.size, digest=f.digest) for f in upload.files)
    return UploadReceipt(
        owner=upload.owner,
        kind="registration" if upload.kind == "registration" else "submission",
        files=files,
        received=upload.completed,
        known=known,
    )


def receipt_document(receipt: UploadReceipt) -> dict[str, Any]:
    """A receipt as a JSON document."""
    return {
        "id": receipt.owner,
        "kind": receipt.kind,
        "received": receipt.received.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "known": receipt.known,
        "files": [
            {"name": one.name, "bytes": one.size, "sha256": one.digest} for one in receipt.files
        ],
        "digest": receipt.digest,
    }
