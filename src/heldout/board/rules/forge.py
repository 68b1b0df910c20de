"""Where a board's submissions are opened: `[forge]` of board.toml, or what its address tells.

Pure: nothing here asks a network or looks at a disk.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

__all__ = ["ForgeKind", "ForgeSpec", "api_root", "check_forge", "parse_forge"]

ForgeKind = Literal["github", "gitlab", "forgejo", "folder", "git"]

_HOSTED = ("github", "gitlab", "forgejo")
_KNOWN: Mapping[str, ForgeKind] = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "codeberg.org": "forgejo",
}
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_PROJECTS: Mapping[str, str] = {
    "github": f"{_NAME}/{_NAME}",
    "gitlab": f"{_NAME}(/{_NAME}){{1,20}}",  # groups nest
    "forgejo": f"{_NAME}/{_NAME}",
}


class ForgeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[forge]`: where submissions are opened as pull requests, or left.

    Attributes:
        kind: `github`, `gitlab`, `forgejo` (Gitea too), `folder`, or `git` (a bare repository).
        url: root of the forge, `https://codeberg.org`; of a folder or a repository its path.
        project: `owner/name` on the forge, on GitLab with all its groups; empty for the others.
    """

    kind: ForgeKind
    url: str
    project: str = ""

    @property
    def hosted(self) -> bool:
        """Whether it is asked over HTTP."""
        return self.kind in _HOSTED

    @property
    def host(self) -> str:
        """Scheme, host and port of a hosted forge, `https://codeberg.org`: what a token is for."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def clone_url(self) -> str:
        """Address that git fetches from."""
        return f"{self.url.rstrip('/')}/{self.project}.git" if self.hosted else self.url


def parse_forge(address: str) -> ForgeSpec | None:
    """The forge behind a board's `repository`, where its host tells which it is.

    Args:
        address: `https://github.com/owner/name`, with or without `.git`; gitlab.com and
            codeberg.org are known too. Others are named in `[forge]`.

    Returns:
        `None` for anything else, and for an address that carries a name or a password.
    """
    try:
        parts = urlsplit(address)
        host = parts.netloc
    except ValueError:
        return None
    kind = _KNOWN.get(host.lower())
    plain = address.isprintable() and not parts.query and not parts.fragment
    if kind is None or parts.scheme != "https" or not plain:
        return None
    project = parts.path.strip("/").removesuffix(".git")
    spec = ForgeSpec(kind=kind, url=f"https://{host.lower()}", project=project)
    return None if list(check_forge(spec)) else spec


def check_forge(spec: ForgeSpec) -> Iterator[tuple[str, object, str, str]]:
    """What is wrong with a `[forge]` table: key path, value, what was expected, a hint."""
    if not spec.hosted:
        if not spec.url or not spec.url.isprintable() or spec.url.startswith("-"):
            yield ("forge.url", spec.url, f"path of the {spec.kind}", "relative to the board")
        if spec.project:
            yield ("forge.project", spec.project, 'nothing, or ""', "a path has no project")
        return
    if not _is_root(spec.url):
        hint = "http only for this machine: a token would be readable on the way"
        yield ("forge.url", spec.url, "the root of the forge, https://codeberg.org", hint)
    if not re.fullmatch(_PROJECTS[spec.kind], spec.project, re.ASCII) or ".." in spec.project:
        yield ("forge.project", spec.project, "owner/name, as in the address of its page", "")


def api_root(spec: ForgeSpec) -> str:
    """Address that the REST calls of a hosted forge begin with, without a slash at its end.

    Source: docs.github.com "Getting started with the REST API" (and its Enterprise Server
    edition, `/api/v3`), docs.gitlab.com "REST API" (`/api/v4`), Forgejo "API Usage" (`/api/v1`).
    """
    root = spec.url.rstrip("/")
    if spec.kind == "github":
        return "https://api.github.com" if root == "https://github.com" else f"{root}/api/v3"
    return f"{root}/api/v4" if spec.kind == "gitlab" else f"{root}/api/v1"


def _is_root(url: str) -> bool:
    """Whether it is a host, perhaps with a path, over https, or over http on this machine."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    plain = parts.scheme == "http" and host in ("127.0.0.1", "localhost", "::1")
    tidy = re.fullmatch(r"[A-Za-z0-9:/\[\]._~-]+", url) and ".." not in url
    bare = not parts.query and not parts.fragment and parts.username is None
    return bool(host and tidy and bare and (parts.scheme == "https" or plain))
