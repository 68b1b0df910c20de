"""Forges without a server, a folder and a bare git repository; and the forge that a board names.

`open_forge` makes one from `[forge]` of board.toml: one of these two, or a hosted one.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import heldout
from heldout.board.rules.spec import ForgeSpec, api_root
from heldout.board.store import arrivals
from heldout.board.store.fetching import fetch_arrivals
from heldout.board.store.forges import hosted
from heldout.board.store.git import Git
from heldout.envelope.keys import Form
from heldout.errors import StoreError
from heldout.files.durable import write_whole
from heldout.ids import Digest, parse_submission_id

if TYPE_CHECKING:
    import httpx2

_REMOTE = "forge"
_REPLY_LIMIT = 1 << 20


class _WithoutRequests:
    """A forge on which nothing is opened or closed: a submission is known by its id."""

    def copies(self, handle: hosted.Handle) -> tuple[hosted.Handle, ...]:
        """Itself alone."""
        return (handle,)

    def close(self, handle: hosted.Handle) -> hosted.Outcome:  # noqa: ARG002 - the protocol's
        """Nothing: files and branches are the team's, and known from now on."""
        return "nowhere"

    def label(self, handle: hosted.Handle, *names: str) -> hosted.Outcome:  # noqa: ARG002 - the protocol's
        """Nothing: files and branches have no labels."""
        return "nowhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderForge(_WithoutRequests):
    """A folder: files arrive in it, and answers are laid beside them as `ID.reply.txt`.

    Attributes:
        root: the folder.
        form: the board's envelope.
    """

    root: Path
    form: Form

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """The files, as they lie."""
        return tuple(arrivals.find_in_folder(self.root, self.form))

    def locate(self, source: str, name: str) -> hosted.Handle | None:
        """The name itself, if it came from a folder."""
        return hosted.Handle(name) if source == arrivals.IN_FOLDER else None

    def comment(self, handle: hosted.Handle, text: str, *, event: Digest) -> hosted.Outcome:
        """Add to `ID.reply.txt`, which is replaced whole; what is no plain file is replaced too.

        Raises:
            InputError: the handle is neither a submission's id nor a team's.
        """
        name = handle if arrivals.is_team(handle) else parse_submission_id(handle)
        path = self.root / f"{name}.reply.txt"
        marker = hosted.format_marker(event)
        before = _read_plain(path)
        if marker in before.splitlines():
            return "known"
        block = f"{text.rstrip()}\n\n{marker}\n"
        if not path.is_file():
            path.unlink(missing_ok=True)  # a pipe that a stranger left: a reply is no way to it
        write_whole(path, (f"{before}\n{block}" if before else block).encode())
        return "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitForge(_WithoutRequests):
    """A bare repository that participants push branches `submission/ID` to.

    Answers are in the board's own log and page; there is no other place for them.

    Attributes:
        git: the board's repository.
        url: path or address of the bare one.
        form: the board's envelope.
        main: the commit that branches are compared with.
    """

    git: Git
    url: str
    form: Form
    main: str

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """Return what lies on those branches, and on those of other remotes."""
        done = fetch_arrivals(self.git, {_REMOTE: self.url}, self.form, requests=False)[_REMOTE]
        if isinstance(done, StoreError):
            raise done
        unread = {**done.refused, **done.failed}
        return tuple(
            arrivals.find_in_git(
                self.git, self.form, main=self.main, unread=unread, waiting=done.waiting
            )
        )

    def locate(self, source: str, name: str) -> hosted.Handle | None:
        """The name itself, if it came on its own branch."""
        return hosted.Handle(name) if source == f"branch {arrivals.arrival_branch(name)}" else None

    def comment(self, handle: hosted.Handle, text: str, *, event: Digest) -> hosted.Outcome:  # noqa: ARG002 - the protocol's
        """Nothing: the public log says it."""
        return "nowhere"


def _read_plain(path: Path) -> str:
    """A small plain file's text; a link is not followed, for others may write to the folder."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(_REPLY_LIMIT).decode("utf-8", "replace")


_SECONDS = 30.0

_GITHUB = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_HEADERS: Mapping[str, Mapping[str, str]] = {"github": _GITHUB}
_TOKENS: Mapping[str, tuple[str, str]] = {
    "github": ("Authorization", "Bearer "),
    "gitlab": ("PRIVATE-TOKEN", ""),
    "forgejo": ("Authorization", "token "),
}
"""Header in which a token goes with every call, and what stands before it."""

_APIS: Mapping[str, Callable[[hosted.Rest, str], hosted.Api]] = {
    "github": hosted.GitHub,
    "gitlab": hosted.GitLab,
    "forgejo": hosted.Forgejo,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a forge needs of the world.

    Attributes:
        client: as `new_client` makes it.
        environ: where the token is.
        token_host: the one host that the token may be sent to, as `ForgeSpec.host` has it; "" for
            none.
        clock: Unix time in seconds.
        sleep: waits for so many seconds.
    """

    client: "httpx2.Client"
    environ: Mapping[str, str] = field(repr=False)
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    token_host: str = ""


def new_client() -> "httpx2.Client":
    """An HTTP client for forges: names itself, waits half a minute, follows no redirect."""
    import httpx2  # noqa: PLC0415 - heavy, and most boards have no forge that is asked

    name = {"User-Agent": f"heldout/{heldout.__version__}"}
    return httpx2.Client(headers=name, timeout=_SECONDS, follow_redirects=False)


def open_forge(
    spec: ForgeSpec, git: Git, form: Form, *, main: str, world: Surroundings
) -> hosted.Forge:
    """The forge that a board names.

    Args:
        spec: checked by `check_forge`.
        git: the board's repository.
        form: the board's envelope.
        main: the commit that requests are compared with.
        world: client, environment, clock.

    Raises:
        SetupError: the token is malformed.
        StoreError: the token is for another host: it is not sent, and nothing is asked.
    """
    if spec.kind == "folder":
        return FolderForge(root=git.root / Path(spec.url).expanduser(), form=form)
    if spec.kind == "git":
        return GitForge(git=git, url=spec.url, form=form, main=main)
    token = hosted.read_token(world.environ)
    if token and spec.host != world.token_host:
        known = world.token_host or "no host yet"
        raise StoreError(
            f"{hosted.TOKEN} is for {known} and was not sent to {spec.host}, which [forge] of "
            f"board.toml names; if that is right: heldout inbox --token-host {spec.host}"
        )
    header, scheme = _TOKENS[spec.kind]
    own = {header: f"{scheme}{token}"} if token else {}  # without one public boards can be read
    rest = hosted.Rest(
        client=world.client,
        root=api_root(spec),
        headers={**_HEADERS.get(spec.kind, {}), **own},
        token=token,
        clock=world.clock,
        sleep=world.sleep,
    )
    return hosted.HostedForge(
        api=_APIS[spec.kind](rest, spec.project),
        git=Git(git.root, environment=hosted.git_environment(token, spec.clone_url)),
        clone_url=spec.clone_url,
        form=form,
        main=main,
    )
