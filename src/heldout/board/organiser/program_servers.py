"""Asks a program that answers `GET /search/?q=…&k=…`, in a network that it shares with nobody.

A container without a network still has a loopback of its own. Nothing reaches it from outside, and
the image need not hold a program that could ask from inside. So a small process of ours enters the
container's network, and nothing else of it (`nsenter --net`): it opens connections there and hands
them over, and this process asks. A socket stays in the network in which it was made.

    [{"id": "d7", "score": 12.5}, {"id": "d3", "score": 11.0}]

is an answer: at most `k` documents, the best first.

Sources: network_namespaces(7), nsenter(1), unix(7) (SCM_RIGHTS).
"""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from heldout.board.organiser.containers import Running
from heldout.errors import InputError, quote

Connect = Callable[[], socket.socket | None]
"""A new connection to the program, `None` while it accepts none."""

MOST_SECONDS = 60.0
"""How long one answer may take."""

_LONGEST_ID = 200
_BYTES_EACH = 1000
_PAUSE = 0.05
_MOMENTS = 40
_PATIENCE = 10.0
_OK = 200
_LOADING = 503
_SILENT, _BROKEN = 0, -1
_TOO_LATE = "no answer within {:g} s"
_CONNECTOR = """
import socket, sys
link, port = socket.socket(fileno=0), int(sys.argv[1])
while link.recv(1):
    try:
        made = socket.create_connection(("127.0.0.1", port), timeout=5)
    except OSError:
        link.sendall(b"-")
    else:
        socket.send_fds(link, [b"+"], [made.fileno()])
        made.close()
"""


class Hit(msgspec.Struct, frozen=True):
    """A document of an answer."""

    id: str
    score: float


@contextmanager
def connecting(running: Running, port: int, *, nsenter: str = "nsenter") -> Iterator[Connect]:
    """Connections to a port in a container's own network.

    Args:
        running: the container.
        port: on its loopback.
        nsenter: the program of util-linux.

    Raises:
        InputError: code `container-engine`: its network cannot be entered, or is that of this
            machine, where another service would be asked.
    """
    if _is_ours(running.pid):
        raise _closed("a container in the network of this machine")
    if os.geteuid() == 0:
        enter = [nsenter, f"--net=/proc/{running.pid}/ns/net"]
    else:  # the user who owns the container's user namespace is root in it
        enter = [nsenter, f"--target={running.pid}", "--user", "--preserve-credentials", "--net"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - this Python, our own script
                [*enter, "--", sys.executable, "-I", "-S", "-c", _CONNECTOR, str(port)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
            )
        except OSError as error:
            raise _closed(str(error)) from None
        theirs.close()
        ours.settimeout(_PATIENCE)

        def connect() -> socket.socket | None:
            try:
                ours.sendall(b"?")
                said, made, _, _ = socket.recv_fds(ours, 1, 1)
            except OSError as error:
                raise _lost(running, f"nsenter: {error}") from None
            if not said:
                raise _lost(running, f"nsenter ended with exit code {process.wait()}")
            return socket.socket(fileno=made[0]) if made else None

        try:
            yield connect
        finally:
            process.kill()
            process.wait()


def ask_all(
    running: Running, connect: Connect, queries: Mapping[str, str], *, k: int, tag: str
) -> Iterator[tuple[bytes, float]]:
    """Ask every query, one after the other.

    Args:
        running: the container, which is measured meanwhile and held to its time.
        connect: opens connections to it.
        queries: id -> text.
        k: most documents of an answer.
        tag: last column of the run.

    Yields:
        The lines of each query in the form of TREC, and the seconds that the answer took.

    Raises:
        InputError: code `program-answer`: an answer is none; as of `Running.wait` where it ended.
    """
    for query, text in queries.items():
        began = running.clock()
        hits = _ask(running, connect, text, k)
        spent = running.clock() - began
        running.look()
        ranked = enumerate(hits, 1)
        lines = [f"{query} Q0 {hit.id} {rank} {hit.score!r} {tag}" for rank, hit in ranked]
        yield "".join(f"{line}\n" for line in lines).encode(), spent


def wait_for(running: Running, connect: Connect) -> None:
    """Wait until a program answers otherwise than that it loads.

    Raises:
        InputError: as of `Running.wait`: it ended, or its time is over.
    """
    while True:
        _check_alive(running)
        running.look("a server without a first answer")
        made = connect()
        if made is not None:
            status, _ = _get(made, "", 1, within=min(MOST_SECONDS, running.left))
            if status not in (_SILENT, _LOADING):
                return
        time.sleep(_PAUSE)


def _ask(running: Running, connect: Connect, text: str, k: int) -> list[Hit]:
    made = connect()
    if made is None:
        _check_alive(running)
        raise _no_answer("a program that accepts no connection any more")
    status, body = _get(made, text, k, within=min(MOST_SECONDS, running.left))
    if status in (_SILENT, _BROKEN):
        _check_alive(running)
        running.look()
        raise _no_answer(body.decode())
    if status != _OK:
        raise _no_answer(f"status {status}")
    try:
        hits = msgspec.json.decode(body, type=list[Hit])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _no_answer(f"{quote(body[:80].decode(errors='replace'))} ({error})") from None
    if len(hits) > k:
        raise _no_answer(f"{len(hits):,} documents, where {k:,} were asked for")
    for hit in hits:
        # A blank would be another column of the run, a line end another document.
        if not 0 < len(hit.id) <= _LONGEST_ID or not hit.id.isprintable() or " " in hit.id:
            raise _no_answer(f"{quote(hit.id)} as the id of a document")
    return hits


def _get(made: socket.socket, text: str, k: int, *, within: float) -> tuple[int, bytes]:
    """Status and body of one answer; a status below 100 and the reason where there is none."""
    most = _BYTES_EACH * (k + 1)
    over = threading.Event()
    seconds = max(within, _PAUSE)
    late = threading.Timer(seconds, _shut, [made, over])
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = made
    made.settimeout(seconds)
    late.start()
    try:
        connection.request("GET", f"/search/?{urlencode({'q': text, 'k': k})}")
        answer = connection.getresponse()
        body = answer.read(most + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if over.is_set() or isinstance(error, TimeoutError):
            return _SILENT, _TOO_LATE.format(seconds).encode()
        status = _SILENT if isinstance(error, OSError) else _BROKEN
        return status, f"no answer ({type(error).__name__})".encode()
    finally:
        late.cancel()
        connection.close()
    if over.is_set():
        return _SILENT, _TOO_LATE.format(seconds).encode()
    if answer.length and len(body) <= most:
        return _BROKEN, b"half an answer"
    if len(body) > most:
        return _BROKEN, f"an answer of more than {most:,} bytes".encode()
    return answer.status, body


def _shut(made: socket.socket, over: threading.Event) -> None:
    over.set()
    with suppress(OSError):
        made.shutdown(socket.SHUT_RDWR)


def _is_ours(pid: int) -> bool:
    """Whether a process, perhaps of another machine's engine, is in this process's own network."""
    try:
        there, here = (Path(f"/proc/{one}/ns/net").stat() for one in (pid, "self"))
    except OSError:  # it ended, or may not be looked at: then it cannot be entered either
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _lost(running: Running, found: str) -> InputError:
    """The network cannot be entered: the right is missing, or the program has just ended.

    Raises:
        InputError: as of `Running.check_end`: it ended.
    """
    for _ in range(_MOMENTS):
        _check_alive(running)
        time.sleep(_PAUSE)
    return _closed(found)


def _check_alive(running: Running) -> None:
    if running.ended:
        running.check_end()
        raise _no_answer("a program that ended")


def _no_answer(found: str) -> InputError:
    return InputError.of(
        code="program-answer",
        path="GET /search/",
        found=found,
        expected='status 200 and [{"id": "d7", "score": 12.5}, …], at most k documents',
        hint="nothing was logged; ask the team, or reject the submission",
    )


def _closed(found: str) -> InputError:
    return InputError.of(
        code="container-engine",
        path="nsenter",
        found=found,
        expected="the right to enter a container's network: root, or the user who runs podman",
        hint="docs/how-to/code-submissions.md",
    )
