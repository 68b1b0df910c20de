"""One whole upload: packed, sent to a real server's page, taken in, reviewed, published."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from registering_town import asking_town, register
from town import Town, environment, found_town

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


@contextmanager
def upload_page(folder: Path) -> Iterator[httpx2.Client]:
    """`heldout serve --uploads`, without a campaign."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = ("--uploads", str(folder), "--port", str(port))
    command = [sys.executable, "-m", "heldout", "serve", *told]
    env = {**environment(folder.parent), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    log = folder.parent / "serve.log"
    with (
        log.open("w") as said,
        subprocess.Popen(command, stderr=said, cwd=folder.parent, env=env) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        try:
            _wait(client, server, log)
            yield client
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def _wait(client: httpx2.Client, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(600):
        try:
            if client.get("/alive").text == "alive":
                return
        except httpx2.TransportError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
    pytest.fail(log.read_text())


def pack(town: Town, name: str, *, now: str) -> tuple[str, list[Path]]:
    """Draft and pack; the id, and the three sealed files."""
    submission = town.draft(name, now=now)
    answer = town.participant("pack", submission, now=now)
    assert answer.code == 0, answer
    files = sorted(town.clone.rglob(f"{submission}*.age"))
    assert len(files) == 3
    return submission, files


def send(client: httpx2.Client, paths: list[Path]) -> httpx2.Response:
    """As the page's form does."""
    page = client.get("/upload")
    assert 'type="file" multiple' in page.text
    return client.post(
        "/upload", files=[("files", (path.name, path.read_bytes())) for path in paths]
    )


def take_in(town: Town, folder: Path, *, now: str) -> list[dict[str, str]]:
    answer = town.organiser("inbox", "--from", folder, "--json", now=now)
    assert answer.code == 0, answer
    received: list[dict[str, str]] = answer.json["received"]
    return received


def test_what_is_packed_and_uploaded_is_taken_in_reviewed_and_published(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    submission, files = pack(town, "one", now=DAY)
    folder = town.root / "uploads"
    with upload_page(folder) as client:
        answer = send(client, files)
        assert answer.status_code == 201, answer.text
        assert submission in answer.text
        assert send(client, files).status_code == 200
        taken = {path.name: path.read_bytes() for path in folder.glob("delivery-*/*.age")}
        assert taken == {path.name: path.read_bytes() for path in files}
        (receipt,) = take_in(town, folder, now=DAY)
    assert (receipt["kind"], receipt["id"]) == ("received", submission)
    review = town.organiser("review", submission, "--json", now=DAY)
    assert review.code == 0, review
    assert submission in review.out
    assert town.publish(submission, now=NEXT).code == 0
    (row,) = town.rows()
    assert row["id"] == submission
    assert town.audit()["ok"]
    assert list(folder.glob("delivery-*")) == []
    assert take_in(town, folder, now=NEXT) == []


def test_a_board_that_asks_for_registration_works_by_upload_alone(tmp_path: Path) -> None:
    """Registration and submission are both sent to the page; neither has a branch."""
    town = asking_town(tmp_path)
    letters, folder = town.root / "letters", town.root / "uploads"
    letters.mkdir()
    handle = register(town, to=letters)
    (letter,) = letters.iterdir()
    assert letter.name == f"{handle}.json"
    with upload_page(folder) as client:
        assert "heldout register --to FOLDER" in client.get("/upload").text
        answer = send(client, [letter])
        assert answer.status_code == 201, answer.text
        assert handle in answer.text
        assert send(client, [letter]).status_code == 200
        submission, files = pack(town, "one", now=DAY)
        assert send(client, [*files, letter]).status_code == 422
        assert send(client, files).status_code == 201
    received = take_in(town, folder, now=DAY)
    assert [one["kind"] for one in received] == ["registered", "received"], received
    assert town.publish(submission, now=NEXT).code == 0
    assert [row["id"] for row in town.rows()] == [submission]
    assert town.audit()["ok"]
    assert take_in(town, folder, now=NEXT) == []


def test_a_forged_registration_is_stored_and_refused_by_the_inbox(tmp_path: Path) -> None:
    """The server opens nothing; who claims a handle without its key gets no further."""
    town = asking_town(tmp_path)
    letters, folder = town.root / "letters", town.root / "uploads"
    letters.mkdir()
    register(town, to=letters)
    (letter,) = letters.iterdir()
    forged = letters / "team-0123456789abcdef.json"
    letter.rename(forged)
    with upload_page(folder) as client:
        assert send(client, [forged]).status_code == 201
    (receipt,) = take_in(town, folder, now=DAY)
    assert receipt["kind"] == "refused"
    assert town.rows() == []
