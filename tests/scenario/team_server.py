"""A lab whose board `heldout serve` shows, in a process of its own, and teams that join there."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
from lab import Lab, environment

from ports import await_server, free_port


@contextmanager
def answering(
    status: int,
    body: Callable[[], bytes] = bytes,
    *,
    heard: list[str] | None = None,
    **headers: str,
) -> Iterator[str]:
    """A server that answers every request alike: its address; notes the headers that it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Quiet."""

        def do_GET(self) -> None:
            if heard is not None:
                heard.extend(f"{name}: {value}" for name, value in self.headers.items())
            data = body()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            with suppress(OSError):  # who has read enough hangs up
                self.wfile.write(data)

        do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - their names there

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def team_pages(lab: Lab) -> Iterator[httpx2.Client]:
    """`heldout serve` for the organiser's folder of the board, without a campaign."""
    uploads = lab.root / "uploads"
    uploads.mkdir(exist_ok=True)
    port = free_port()
    found = ("--board", str(lab.board), "--uploads", str(uploads), "--port", str(port))
    command = [sys.executable, "-m", "heldout", "serve", *found]
    env = {**environment(lab.root), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with (
        subprocess.Popen(command, cwd=lab.root, env=env) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client,
    ):
        try:
            await_server(client, server)
            yield client
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def join(lab: Lab, client: httpx2.Client, name: str) -> str:
    """Invite a team by the command, join by the page; the token."""
    args = ("--uploads", lab.root / "uploads", "--root", str(client.base_url))
    link = lab.call("invite", *args, "--json").json["link"]
    page = client.get(link)
    assert page.status_code == 200, page.text
    secret = page.text.partition('name="form_token" value="')[2].partition('"')[0]
    joined = client.post(link, data={"form_token": secret, "team": name, "mail": ""})
    return joined.text.partition('id="team-token">')[2].partition("<")[0]
