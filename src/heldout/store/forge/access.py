"""The token: read from the environment, sent in headers, written nowhere.

git gets it through its own environment, as configuration of that one call (`GIT_CONFIG_COUNT`,
git 2.31): neither the command line nor the repository's configuration ever holds it.
"""

import base64
from collections.abc import Mapping

from heldout.errors import SetupError

__all__ = ["TOKEN", "git_environment", "read_token"]

TOKEN = "HELDOUT_FORGE_TOKEN"  # noqa: S105 - the variable's name, no secret
"""Name of the environment variable that holds the token."""

_LONGEST = 4096


def read_token(environ: Mapping[str, str]) -> str:
    """The token, "" where none is set: then a public board can be read, and nothing changed.

    Raises:
        SetupError: it holds blanks, line ends or anything but ASCII; the text does not show it.
    """
    token = environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > _LONGEST:
        raise SetupError(f"{TOKEN} is no token: set it to the token alone, without blanks")
    return token


def git_environment(token: str, url: str) -> Mapping[str, str]:
    """What makes git send the token to one repository, and follow no redirect with it.

    Args:
        token: as `read_token` gives it; without one there is nothing to set.
        url: the repository's address, https.
    """
    if not token:
        return {}
    # All three forges take a token as the password, whatever the name before it.
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    pairs = (
        (f"http.{url}.extraHeader", f"Authorization: Basic {basic}"),
        (f"http.{url}.followRedirects", "false"),
        ("credential.helper", ""),
    )
    numbered = {f"GIT_CONFIG_KEY_{i}": key for i, (key, _) in enumerate(pairs)}
    values = {f"GIT_CONFIG_VALUE_{i}": value for i, (_, value) in enumerate(pairs)}
    return {"GIT_CONFIG_COUNT": str(len(pairs)), **numbered, **values}
