"""A complete upload is checked and handed over to the folder that `heldout inbox --from` reads.

The job can be begun again at any point. The delivery is named by what is in it and appears in one
step (`board.store.uploads`), so a second attempt finds it there; and that the upload was accepted
is written together with the job's end.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from heldout.board.store.uploads import Delivery
from heldout.database.database import Database, keep_others_out
from heldout.errors import InputError, StoreError
from heldout.intake.jobs import Done, Job, JobKind, JobLaterError, Worker, remove_jobs
from heldout.intake.notices import Notice, add_notice, notice_kind, remove_notices
from heldout.intake.tables import uploads
from heldout.intake.teams import remove_ended
from heldout.intake.uploads import (
    HAND_OVER,
    Upload,
    UploadFile,
    UploadStore,
    end_upload,
    read_upload,
    remove_parts,
    replaced_uploads,
    sweep,
)

_STEP = 1 << 20
_KEEP_EVERY = 1 << 23
_WAITS = ("upload-busy", "upload-full")
_PAUSE = timedelta(minutes=1)


_SWEEP_EVERY = timedelta(minutes=10)

KEPT_FOR = timedelta(days=30)
"""How long notices are stored, and jobs, invitations and tokens that have ended."""


def intake_worker(
    store: UploadStore,
    *,
    clock: Callable[[], datetime],
    send: Callable[[Notice], None] | None = None,
    others: Sequence[JobKind] = (),
) -> Worker:
    """The worker of a server: it hands uploads over, sends notices, and clears up.

    Args:
        store: where uploads are.
        clock: the time, UTC.
        send: sends a notice; `None` where no mail is sent, and then none is written.
        others: further kinds of jobs that it does.
    """
    swept: list[datetime] = []

    def idle() -> None:
        now = clock()
        if not swept or now - swept[-1] >= _SWEEP_EVERY:
            swept[:] = [now]
            sweep(store, now=now)
            remove_old(store.database, before=now - KEPT_FOR)

    kinds = [hand_over_kind(store, clock=clock, notices=send is not None), *others]
    if send is not None:
        kinds.append(notice_kind(store.database, send, clock=clock))
    return Worker(database=store.database, kinds=kinds, clock=clock, idle=idle)


def remove_old(database: Database, *, before: datetime) -> int:
    """Remove what ended before some time and nobody needs: mail addresses are in it.

    Teams and their uploads stay: the quota and the states of submissions are told by them.

    Args:
        database: open.
        before: the time, UTC.

    Returns:
        How many rows are gone, not counting the jobs of notices.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def remove(connection: Connection) -> int:
        notices = remove_notices(connection, before=before)
        return (
            notices
            + remove_jobs(connection, before=before)
            + remove_ended(connection, before=before)
        )

    return database.write(remove)


def hand_over_kind(
    store: UploadStore, *, clock: Callable[[], datetime], notices: bool = False
) -> JobKind:
    """How complete uploads are handed over.

    Args:
        store: where they are.
        clock: the time, UTC.
        notices: whether teams are told by mail how it ended.
    """

    def work(job: Job, keep: Callable[[], None]) -> Done:
        upload = read_upload(store, job.key)
        if upload.state != "complete":
            return Done()
        # After a restored backup it may lie there, and its parts may be gone.
        if not store.folder.has_delivery(_digests(upload)):
            _deliver(store, upload, keep, now=clock())

        def write(connection: Connection) -> None:
            keep_others_out(connection)
            end_upload(connection, upload.id, "accepted", now=clock())
            for replaced in replaced_uploads(connection, upload):
                store.folder.drop_delivery(_digests(replaced))
            if notices:
                add_notice(
                    connection, upload.team, "accepted", upload.id, _details(upload), now=clock()
                )

        return Done(write=write, after=lambda: remove_parts(store, upload.id))

    def give_up(connection: Connection, job: Job, code: str, why: str) -> None:
        row = connection.execute(select(uploads).where(uploads.c.id == job.key)).first()
        if row is None or row.state != "complete":
            return
        end_upload(connection, job.key, "failed", now=clock(), code=code, why=why)
        if notices:
            details = {"owner": row.owner, "kind": row.kind, "code": code, "why": why}
            add_notice(connection, row.team, "failed", job.key, details, now=clock())

    return JobKind(name=HAND_OVER, work=work, give_up=give_up)


def _digests(upload: Upload) -> dict[str, str]:
    return {file.name: file.digest for file in upload.files}


def _details(upload: Upload) -> dict[str, object]:
    files = [
        {"name": file.name, "bytes": file.size, "sha256": file.digest} for file in upload.files
    ]
    return {"owner": upload.owner, "kind": upload.kind, "files": files}


def _deliver(
    store: UploadStore, upload: Upload, keep: Callable[[], None], *, now: datetime
) -> None:
    """Copy the parts into a delivery, and check them on the way.

    Raises:
        InputError: codes `upload-digest`, `upload-content`, `upload-lost`.
        JobLaterError: the folder has no room just now, or a disk does not work.
    """
    size = sum(file.size for file in upload.files)
    try:
        with store.folder.deliver(size=size) as delivery:
            for file in upload.files:
                delivery.begin_file(file.name)
                _copy(store, upload, file, delivery, keep)
            keep()
            delivery.finish(now=now)
    except InputError as error:
        if error.code in _WAITS:
            raise JobLaterError(str(error), after=_PAUSE) from error
        raise
    except StoreError as error:
        raise JobLaterError(str(error), after=_PAUSE) from error


def _copy(
    store: UploadStore,
    upload: Upload,
    file: UploadFile,
    delivery: Delivery,
    keep: Callable[[], None],
) -> None:
    digest, copied = hashlib.sha256(), 0
    head = next((head for ending, head in store.heads if file.name.endswith(ending)), b"")
    try:
        with store.part(upload.id, file.name).open("rb") as part:
            while data := part.read(_STEP):
                if not copied and not data.startswith(head):
                    raise InputError.of(
                        code="upload-content",
                        path=file.name,
                        found="a file of another kind",
                        expected="a file that `heldout pack` has sealed",
                    )
                digest.update(data)
                delivery.write(data)
                copied += len(data)
                if copied % _KEEP_EVERY < _STEP:
                    keep()
    except FileNotFoundError:
        if not store.parts.is_dir():  # a disk that is not mounted has lost nothing
            raise StoreError(f"{store.parts} is not a folder") from None
        raise InputError.of(
            code="upload-lost",
            path=file.name,
            found="no bytes any more",
            expected=f"{file.size:,} bytes that were here",
            hint="a disk of the server was lost: send the upload again",
        ) from None
    except OSError as error:
        raise StoreError(f"{file.name} cannot be read: {error.strerror}") from error
    if digest.hexdigest() != file.digest:
        raise InputError.of(
            code="upload-digest",
            path=file.name,
            found=f"SHA-256 {digest.hexdigest()}",
            expected=file.digest,
            hint="the file changed while it was sent: send it again",
        )
