"""The board's server, as a participant's clone speaks to it: sealed files go up, states come down.

An upload goes on where it stopped: the server says how many bytes of each file it has, and only the
rest is sent, also after either side was started again. No redirect is followed, for the token would
go along.
"""

import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from urllib.parse import quote as quote_path
from urllib.parse import urlsplit

import msgspec

from heldout.board.store.repository import Repository
from heldout.board.store.uploads import TEAM_TOKEN
from heldout.errors import InputError, Problem, PushError, SetupError, StoreError, quote
from heldout.files.executors import work_within
from heldout.ids import digest_bytes

if TYPE_CHECKING:
    import httpx2

_TOKENS = "tokens"  # a folder, no secret
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}", re.ASCII)
_HERE = ("127.0.0.1", "::1", "localhost")
_PIECE = 1 << 23
_MOST_ANSWER = 1 << 20
_SECONDS = 60.0
_MOST_SECONDS = 600.0  # of one call, which sends 8 MiB at most
_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_BUSY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an upload: how many bytes it has, and how many of them the server has."""

    name: str
    bytes: int
    sha256: str
    received: int = 0


class ServerUpload(msgspec.Struct, frozen=True, kw_only=True):
    """An upload as the server knows it."""

    id: str
    state: str
    files: tuple[FilePart, ...]


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """What the server says of a submission.

    Attributes:
        id: the submission.
        state: in words.
        why: the reason of a refusal; "" without.
        sent: when the whole upload came, UTC; `None` before.
    """

    id: str
    state: str
    why: str = ""
    sent: datetime | None = None


class _Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """What the server answers where it does not do what was asked."""

    code: str
    found: str
    expected: str
    hint: str = ""


Shape = TypeVar("Shape")


def read_address(text: str) -> str | None:
    """The address of a server, without a slash at its end; `None` where the text is none.

    Raises:
        SetupError: it is one, and a token must not go there.
    """
    if not text.lower().startswith(("http://", "https://")):
        return None
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise SetupError(f"{quote(text)} is no address of a server, as https://board.example")
    if parts.scheme.lower() == "http" and host not in _HERE:
        raise SetupError("the token would be readable on its way: use https://, not http://")
    return f"{parts.scheme.lower()}://{parts.netloc}{parts.path.rstrip('/')}"


def find_token(repository: Repository, address: str, environ: Mapping[str, str]) -> str | None:
    """The team's token for a server: of the environment, else the clone's; `None` without.

    Raises:
        SetupError: it is no token, or others on this machine can read its file.
    """
    if given := environ.get(TEAM_TOKEN, "").strip():
        return _check_token(given, TEAM_TOKEN)
    name = _token_file(address)
    found = repository.state.stat(name)
    if found is None:
        return None
    path = repository.state.path(name)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SetupError(f"others can read {path}: chmod 600 it, and ask for another token")
    return _check_token(
        repository.state.read(name, limit=_MOST_ANSWER).decode("ascii", "replace"), str(path)
    )


def store_token(repository: Repository, address: str, token: str) -> Path:
    """Store the team's token for a server, mode 0600; gives the file.

    Raises:
        SetupError: it is no token.
    """
    name = _token_file(address)
    data = f"{_check_token(token.strip(), 'it')}\n".encode()
    repository.state.write_whole(name, data, mode=0o600)
    path = repository.state.path(name)
    path.chmod(0o600)  # one that lay there with another mode
    return path


def _check_token(text: str, where: str) -> str:
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise SetupError(f"{where} has no token of a team: it is on the page that the team joined")
    return token


def _token_file(address: str) -> str:
    parts = urlsplit(address)
    host = re.sub(r"[^a-z0-9.-]", "_", (parts.netloc + parts.path).lower())
    return f"{_TOKENS}/{host}"


Open = Callable[[], BinaryIO]
"""Opens a file that is to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A board's server.

    Attributes:
        address: from `read_address`.
        token: the team's.
        connect: gives a client, which is closed after use.
        sleep: waits so many seconds.
    """

    address: str
    token: str
    connect: "Callable[[], httpx2.Client]"
    sleep: Callable[[float], None]

    def upload(self, files: Mapping[str, Open]) -> bool:
        """Send the files of one submission, or a registration; goes on with one that was cut.

        Args:
            files: name -> what opens it.

        Returns:
            Whether the server had all of them already.

        Raises:
            InputError: the server refuses them; the codes are the server's.
            PushError: it cannot be reached; what came so far stays there.
        """
        described = [_describe(name, opened) for name, opened in files.items()]
        with self.connect() as client:
            calls = _Calls(self, client)
            upload = calls.patiently(partial(calls.begin, described))
            if upload.state != "open":
                return True
            path = f"/uploads/{quote_path(upload.id, safe='')}"
            for name, opened in files.items():
                calls.send(path, name, opened)
            calls.patiently(partial(calls.call, "POST", f"{path}/finish", dict[str, Any]))
        return False

    def describe(self, submission: str) -> ServerState | None:
        """Return what the server says of a submission; `None` where it has none of this id.

        Raises:
            InputError: it refuses to answer.
            PushError: it cannot be reached.
        """
        path = f"/submissions/{quote_path(submission, safe='')}"
        with self.connect() as client:
            try:
                return _Calls(self, client).call("GET", path, ServerState)
            except InputError as error:
                if error.code == "upload-unknown":
                    return None
                raise


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of a server, over one client."""

    server: Server
    client: "httpx2.Client"

    def begin(self, files: list[dict[str, object]]) -> ServerUpload:
        return self.call("POST", "/uploads", ServerUpload, json={"files": files})

    def send(self, path: str, name: str, opened: Open) -> None:
        """Send what the server lacks of a file, piece by piece."""
        with opened() as file:
            while self.patiently(partial(self._send_piece, path, name, file)):
                pass

    def _send_piece(self, path: str, name: str, file: BinaryIO) -> bool:
        """Ask what the server has, and send the next piece; says whether there was one."""
        known = self.call("GET", path, ServerUpload)
        part = next(one for one in known.files if one.name == name)
        if known.state != "open" or part.received >= part.bytes:
            return False
        file.seek(part.received)
        self.call(
            "PATCH",
            f"{path}/files/{quote_path(name, safe='')}",
            dict[str, Any],
            params={"offset": str(part.received)},
            content=file.read(_PIECE),
            headers={"Content-Type": "application/octet-stream"},
        )
        return True

    def patiently(self, work: Callable[[], Shape]) -> Shape:
        """Do it again after a cut, a little later each time.

        Raises:
            PushError: it was cut again and again.
        """
        for seconds in _WAITS:
            try:
                return work()
            except PushError:
                self.server.sleep(seconds)
            except InputError as error:
                if error.code != "upload-offset":  # the server has more, or less, than it had
                    raise
        return work()

    def call(self, method: str, path: str, kind: type[Shape], **options: Any) -> Shape:
        import httpx2  # noqa: PLC0415 - heavy, and most commands call no server

        headers = {
            "Authorization": f"Bearer {self.server.token}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **options.pop("headers", {}),
        }
        address = f"{self.server.address}/api/v1{path}"

        def ask() -> "tuple[httpx2.Response, bytes]":
            with self.client.stream(
                method, address, headers=headers, follow_redirects=False, **options
            ) as answer:
                return answer, b"".join(_read(answer))

        try:
            answer, body = work_within(_MOST_SECONDS, ask)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise self._cut(type(error).__name__) from None
        if answer.status_code in _BUSY:
            raise self._cut(f"it answers {answer.status_code}")
        if not answer.is_success:
            raise self._refusal(answer.status_code, body)
        try:
            return msgspec.json.decode(body or b"{}", type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise StoreError(
                f"{self.server.address} does not speak heldout's API, version 1"
            ) from None

    def _refusal(self, status: int, body: bytes) -> Exception:
        try:
            said = msgspec.json.decode(body, type=_Refusal)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return StoreError(
                f"{self.server.address} answered {status} and nothing that heldout knows: is it "
                "the address of a board's server?"
            )
        hint = said.hint.replace(self.server.token, "…")
        return InputError(Problem(said.code, self.server.address, said.found, said.expected, hint))

    def _cut(self, what: str) -> PushError:
        return PushError(
            f"{self.server.address} cannot be reached ({what}); what was sent stays there: call "
            "this again, and it goes on from there"
        )


def new_client() -> "httpx2.Client":
    """A client with patience for large files; a file goes up in as long as it takes."""
    import httpx2  # noqa: PLC0415 - heavy, and most commands call no server

    return httpx2.Client(timeout=httpx2.Timeout(_SECONDS), follow_redirects=False)


def _describe(name: str, opened: Open) -> dict[str, object]:
    with opened() as file:
        data = file.read()
    return {"name": name, "bytes": len(data), "sha256": digest_bytes(data)}


def _read(answer: "httpx2.Response") -> Iterator[bytes]:
    size = 0
    for piece in answer.iter_raw():
        size += len(piece)
        if size > _MOST_ANSWER:
            raise StoreError("the server's answer is too long")
        yield piece
