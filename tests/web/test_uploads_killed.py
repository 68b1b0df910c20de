"""The server of uploads killed while files come in: what has a name is whole."""

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from team_stage import make_board, send

from heldout.intake.app import intake_database
from heldout.intake.teams import accept_invitation, create_invitation, replace_tokens
from ports import free_port

pytestmark = pytest.mark.night

KILLS = 3
NAME = "-metadata.json.age"
SERVER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
import uvicorn
from heldout.intake.app import intake_database, make_intake, make_intake_app, start_worker
from heldout.intake.uploads import IntakeLimits
uploads = Path(sys.argv[1])
intake = make_intake(
    intake_database(uploads, ""), board=Path(sys.argv[3]), uploads=uploads,
    endings=(".tar.age", "-metadata.json.age", ".key.age"), is_team=lambda _: False,
    root="", key=b"k" * 32, clock=lambda: datetime.now(UTC),
    most=IntakeLimits(of_team=99, of_team_a_day=10**9, free_bytes=0),
)
start_worker(intake)
uvicorn.run(make_intake_app(intake), host="127.0.0.1", port=int(sys.argv[2]), log_level="critical")
"""


def files_of(name: str) -> dict[str, bytes]:
    """An update: it uses no quota, so that one team may send many."""
    return {f"{name}{NAME}": name.encode() * 9000}


def upload(url: str, token: str, name: str) -> int:
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=10) as client:
        return send(client, files_of(name)).status_code


class Sender(threading.Thread):
    """Sends one submission after the other, until the server is gone."""

    def __init__(self, url: str, token: str, prefix: str) -> None:
        super().__init__()
        self.url, self.token, self.prefix = url, token, prefix
        self.sent: list[str] = []
        self.taken: list[str] = []

    def run(self) -> None:
        try:
            for number in range(10_000):
                name = f"20261121-{self.prefix}-{number}"
                self.sent.append(name)
                assert upload(self.url, self.token, name) == 200
                self.taken.append(name)
        except httpx2.HTTPError:
            return


def invited(folder: Path) -> str:
    """The token of a team that joined."""
    now, database = datetime.now(UTC), intake_database(folder, "")
    _, secret = create_invitation(database, note="", now=now)
    team = accept_invitation(database, secret, name="A team", mail="", now=now)
    token = replace_tokens(database, team.id, now=now)
    database.close()
    return token


def delivered(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("delivery-*/*")}


def start(folder: Path, board: Path) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(folder), str(port), str(board)])
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + 120
    while True:
        try:
            httpx2.get(f"{url}/health")
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
    board, folder = make_board(tmp_path), tmp_path / "uploads"
    folder.mkdir()
    token = invited(folder)
    sent: list[str] = []
    taken: list[str] = []
    for kill in range(KILLS):
        server, url = start(folder, board)
        senders = [Sender(url, token, f"k{kill}-s{number}") for number in range(4)]
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
    wanted = {name: data for one in sent for name, data in files_of(one).items()}
    named = delivered(folder)
    assert {name: wanted[name] for name in named} == named  # whole, whatever has a name
    assert taken
    lost = set(sent) - set(taken)
    assert lost
    server, url = start(folder, board)
    try:
        assert {upload(url, token, name) for name in lost} <= {200}
        end = time.monotonic() + 60
        while set(delivered(folder)) != set(wanted):  # what was complete is handed over now
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        server.kill()
        server.wait()
    assert delivered(folder) == wanted
