"""What a server and a worker do all day, for processes that are killed in the midst of it."""

from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

from intake_stage import declared, files_of, make_stage

from heldout.database.database import open_database
from heldout.intake.tables import INTAKE
from heldout.intake.uploads import IntakeLimits, begin_upload, complete_upload, open_part
from heldout.intake.worker import DueWorker

PIECE = 4000
SIZE = 10_000


def utc_now() -> datetime:
    return datetime.now(UTC)


def receive(url: str, folder: Path, told: Connection, names: list[str]) -> None:
    """Take uploads; say what was acknowledged: ("part", id, bytes) and ("complete", id, name)."""
    limits = IntakeLimits(free_bytes=0, of_team=99)
    store = make_stage(open_database(url, INTAKE), folder, limits=limits).store
    for name in names:
        files = files_of(name, size=SIZE)
        upload = begin_upload(store, 1, declared(files), address="", quota=None, now=utc_now())
        for file in upload.files if upload.state == "open" else ():
            data, offset = files[file.name], file.received
            while offset < len(data):
                opened = open_part(store, 1, upload.id, file.name, offset=offset, clock=utc_now)
                with opened as part:
                    part.write(data[offset : offset + PIECE])
                offset += len(data[offset : offset + PIECE])
                told.send(("part", f"{upload.id}/{file.name}", offset))
        complete_upload(store, 1, upload.id, quota=None, now=utc_now())
        told.send(("complete", upload.id, f"20261123-{name}"))
    told.close()
    Event().wait()  # until it is killed


def work(url: str, folder: Path, wanted: int) -> None:
    """Hand uploads over until so many are accepted."""
    store = make_stage(open_database(url, INTAKE), folder).store
    worker = DueWorker(store=store, clock=utc_now)
    stop = Event()
    while not stop.wait(0.002):
        worker.work()
        if wanted and len(list(store.folder.path.glob("delivery-*"))) >= wanted:
            worker.work()
            return
