"""Links to papers and code, brought to one form so that the same work is seen to be the same."""

import re
from urllib.parse import parse_qs, urlsplit

from heldout.board.log.manifest import is_link

__all__ = ["link_key"]

_ARXIV = re.compile(r"/(?:abs|pdf|html)/([a-z-]+/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?", re.ASCII)
_DOI = re.compile(r"10\.\d{4,9}/[^\s?#]+", re.ASCII)
_FORGES = frozenset(("github.com", "gitlab.com", "codeberg.org", "bitbucket.org"))
_OWNER_AND_NAME = 2


def link_key(link: str) -> str:
    """What a link points to, the same for every form of its address.

    arXiv papers lose form and version, DOIs their resolver, repositories all after their name.

    Args:
        link: an http or https address.

    Returns:
        "" for what is no link, and for a bare site or account, which many teams may share.
    """
    if not is_link(link):
        return ""
    parts = urlsplit(link)
    host = (parts.hostname or "").removeprefix("www.")
    path = re.sub(r"(\.git|\.pdf)?/*$", "", parts.path)
    if host.endswith("arxiv.org") and (paper := _ARXIV.match(path)):
        return f"arxiv:{paper[1]}"
    if doi := _DOI.search(path):
        return f"doi:{doi[0].lower()}"
    if host in _FORGES:
        names = path.lower().split("/")[1 : 1 + _OWNER_AND_NAME]
        return "/".join((host, *names)).removesuffix(".git") if len(names) > 1 else ""
    if host == "openreview.net":
        return "/".join((host, *parse_qs(parts.query).get("id", [])))
    return f"{host}{path}{'?' + parts.query if parts.query else ''}" if path else ""
