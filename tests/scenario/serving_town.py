"""A town whose board `heldout serve` shows, in a process of its own, and teams that join there."""

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
from town import Town, call, environment


@contextmanager
def team_pages(town: Town) -> Iterator[httpx2.Client]:
    """`heldout serve` for the organiser's folder of the board, without a campaign."""
    uploads = town.root / "uploads"
    uploads.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = ("--board", str(town.board), "--uploads", str(uploads), "--port", str(port))
    command = [sys.executable, "-m", "heldout", "serve", *told]
    env = {**environment(town.root), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    log = town.root / "serve.log"
    with (
        log.open("w") as said,
        subprocess.Popen(command, stderr=said, cwd=town.root, env=env) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
    ):
        try:
            _wait(client, server, log)
            yield client
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def _wait(client: httpx2.Client, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(1200):
        try:
            if client.get("/health").text == "alive":
                return
        except httpx2.TransportError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
    pytest.fail(log.read_text())


def join(town: Town, client: httpx2.Client, name: str) -> str:
    """Invite a team by the command, join by the page; the token."""
    told = ("--uploads", town.root / "uploads", "--root", str(client.base_url))
    link = call(town.root, "invite", *told, "--json").json["link"]
    page = client.get(link)
    assert page.status_code == 200, page.text
    secret = page.text.partition('name="form_token" value="')[2].partition('"')[0]
    joined = client.post(link, data={"form_token": secret, "team": name, "mail": ""})
    return joined.text.partition('id="team-token">')[2].partition("<")[0]
