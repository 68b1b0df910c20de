"""The server of uploads killed while files come in: what has a name is whole."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from ports import free_port

KILLS = 3
ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")
SERVER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
import uvicorn
from heldout.board.store.uploads import Limits, UploadFolder
from heldout.board.site.intake import Intake, make_upload_app
endings = (".tar.age", "-metadata.json.age", ".key.age")
limits = Limits(free_bytes=0, at_once=99)
folder = UploadFolder(path=Path(sys.argv[1]), endings=endings, limits=limits)
app = make_upload_app(Intake(folder=folder, clock=lambda: datetime.now(UTC)))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
"""


def files_of(name: str) -> dict[str, bytes]:
    return {f"{name}{ending}": (name + ending).encode() * 9000 for ending in ENDINGS}


def upload(url: str, name: str) -> int:
    parts = [("files", item) for item in files_of(name).items()]
    return httpx2.post(f"{url}/upload", files=parts, timeout=10).status_code


class Sender(threading.Thread):
    """Sends one submission after the other, until the server is gone."""

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__()
        self.url, self.prefix = url, prefix
        self.sent: list[str] = []
        self.taken: list[str] = []

    def run(self) -> None:
        try:
            for number in range(10_000):
                name = f"20261121-{self.prefix}-{number}"
                self.sent.append(name)
                assert upload(self.url, name) == 201
                self.taken.append(name)
        except httpx2.HTTPError:
            return


def start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(folder), str(port)])
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + 120
    while True:
        try:
            httpx2.get(f"{url}/alive")
        except httpx2.HTTPError:
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return server, url


def until_one_is_taken(senders: list[Sender]) -> None:
    """However loaded the machine is: what is killed, is killed at work."""
    end = time.monotonic() + 60
    while not any(sender.taken for sender in senders):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
def test_what_was_receipted_is_there_and_what_was_not_can_be_sent_again(tmp_path: Path) -> None:
    sent: list[str] = []
    taken: list[str] = []
    for kill in range(KILLS):
        server, url = start(tmp_path)
        senders = [Sender(url, f"k{kill}-s{number}") for number in range(4)]
        for sender in senders:
            sender.start()
        until_one_is_taken(senders)
        time.sleep(0.1 + kill * 0.05)
        server.kill()
        server.wait()
        for sender in senders:
            sender.join(20)
            sent += sender.sent
            taken += sender.taken
    named = {path.name: path.read_bytes() for path in tmp_path.glob("delivery-*/*")}
    wanted = {name: data for one in sent for name, data in files_of(one).items()}
    assert {name: wanted[name] for name in named} == named  # whole, whatever has a name
    assert {name for one in taken for name in files_of(one)} <= set(named)
    assert taken
    lost = set(sent) - set(taken)
    assert lost
    server, url = start(tmp_path)
    try:
        assert {upload(url, name) for name in lost} <= {200, 201}
    finally:
        server.kill()
        server.wait()
    assert {path.name for path in tmp_path.glob("delivery-*/*")} == set(wanted)
