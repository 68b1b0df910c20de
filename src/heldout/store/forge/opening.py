"""From `[forge]` to a forge that can be asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

import heldout
from heldout.board.rules.forge import ForgeSpec, api_root
from heldout.envelope.bundle import Form
from heldout.errors import StoreError
from heldout.store.forge.access import TOKEN, git_environment, read_token
from heldout.store.forge.api import Api
from heldout.store.forge.hosted import (
    Forgejo,
    GitHub,
    GitLab,
    HostedForge,
    forgejo_headers,
    github_headers,
    gitlab_headers,
)
from heldout.store.forge.local import FolderForge, GitForge
from heldout.store.forge.protocol import Forge
from heldout.store.forge.rest import Rest
from heldout.store.git import Git

__all__ = ["Surroundings", "new_client", "open_forge"]

_SECONDS = 30.0

_HEADERS: Mapping[str, Callable[[str], Mapping[str, str]]] = {
    "github": github_headers,
    "gitlab": gitlab_headers,
    "forgejo": forgejo_headers,
}
_APIS: Mapping[str, Callable[[Rest, str], Api]] = {
    "github": GitHub,
    "gitlab": GitLab,
    "forgejo": Forgejo,
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

    client: httpx.Client
    environ: Mapping[str, str] = field(repr=False)
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    token_host: str = ""


def new_client() -> httpx.Client:
    """An HTTP client for forges: names itself, waits half a minute, follows no redirect."""
    name = {"User-Agent": f"heldout/{heldout.__version__}"}
    return httpx.Client(headers=name, timeout=_SECONDS, follow_redirects=False)


def open_forge(spec: ForgeSpec, git: Git, form: Form, *, main: str, world: Surroundings) -> Forge:
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
    token = read_token(world.environ)
    if token and spec.host != world.token_host:
        known = world.token_host or "no host yet"
        raise StoreError(
            f"{TOKEN} is for {known} and was not sent to {spec.host}, which [forge] of board.toml "
            f"names; if that is right: heldout inbox --token-host {spec.host}"
        )
    rest = Rest(
        client=world.client,
        root=api_root(spec),
        headers=_HEADERS[spec.kind](token),
        token=token,
        clock=world.clock,
        sleep=world.sleep,
    )
    return HostedForge(
        api=_APIS[spec.kind](rest, spec.project),
        git=Git(git.root, environment=git_environment(token, spec.clone_url)),
        clone_url=spec.clone_url,
        form=form,
        main=main,
    )
