"""A complete upload is checked and handed over to the folder that `heldout inbox --from` reads.

It can be begun again at any point, by any process. The delivery is named by what is in it and
appears in one step (`board.store.uploads`), so a second attempt finds it there.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection

from heldout.database.database import keep_others_out
from heldout.errors import InputError, StoreError
from heldout.intake import uploads
from heldout.intake.notices import add_notice

_STEP = 1 << 20


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
    keep_others_out(connection)
    if problem is None:
        uploads.end_upload(connection, upload.id, "accepted", now=now)
        for replaced in uploads.replaced_uploads(connection, upload):
            store.folder.drop_delivery(replaced.digests)
    else:
        uploads.end_upload(
            connection, upload.id, "failed", now=now, code=problem.code, why=str(problem)
        )
    if store.notifies:
        add_notice(
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
        raise InputError.of(
            code="upload-lost",
            path=file.name,
            found="no bytes any more",
            expected=f"{file.size:,} bytes that were here",
            hint="a disk of the server was lost: send the upload again",
        ) from None
    except OSError as error:
        raise StoreError(f"{file.name} cannot be read: {error.strerror}") from error
    if digest != file.digest:
        raise InputError.of(
            code="upload-digest",
            path=file.name,
            found=f"SHA-256 {digest}",
            expected=file.digest,
            hint="the file changed while it was sent: send it again",
        )
