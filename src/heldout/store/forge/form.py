"""The form of pull requests, from a clone that has them as refs: what CI can know of one."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from heldout.envelope.bundle import Form
from heldout.errors import StoreError, quote
from heldout.store.arrivals import Arrival, find_in_git
from heldout.store.git import Git
from heldout.store.registrations import find_registrations_in_git

__all__ = ["find_registration", "find_request", "find_requests"]


@dataclass(frozen=True)
class _Selected(Git):
    """A repository of which some refs are seen, so that no branch stands for a request."""

    heads: frozenset[str] = frozenset()

    def refs(self, *patterns: str, commits: bool = True) -> Mapping[str, str]:
        """As of any repository, but of these refs only."""
        found = super().refs(*patterns, commits=commits)
        return {ref: commit for ref, commit in found.items() if ref in self.heads}


def find_request(git: Git, form: Form, *, base: str, head: str) -> Arrival | None:
    """What a pull request brings: paths, modes, sizes and id are checked, contents are sealed.

    Args:
        git: a clone of the board.
        form: the board's envelope.
        base: the commit that it is compared with.
        head: `refs/pull/N/head` or `refs/merge-requests/N/head`, fetched before.

    Returns:
        `None` where it changes nothing.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    _number(git, head)
    return next(find_requests(git, form, base=base, heads=[head]), None)


def find_registration(git: Git, *, base: str, head: str) -> Arrival | None:
    """The registration that a pull request brings: one file, its name, mode and size are checked.

    Args:
        git: a clone of the board.
        base: the commit that it is compared with.
        head: as for `find_request`.

    Returns:
        `None` where it touches no registration.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    requests = [f"pull request {_number(git, head)}"]
    selected = _Selected(git.root, heads=frozenset([head]))
    return next(find_registrations_in_git(selected, main=base, requests=requests), None)


def find_requests(
    git: Git,
    form: Form,
    *,
    base: str,
    heads: Iterable[str],
    unread: Mapping[str, str] | None = None,
) -> Iterator[Arrival]:
    """What pull requests bring; of two with the same files the first, by their refs.

    Args:
        git: the board's repository.
        form: the board's envelope.
        base: the commit that they are compared with.
        heads: their refs; those that are not there are left out.
        unread: ref -> why it was not fetched.
    """
    selected = _Selected(git.root, heads=frozenset(heads))
    return find_in_git(selected, form, main=base, unread=unread or {})


def _number(git: Git, head: str) -> str:
    known = re.fullmatch(r"refs/(?:pull|merge-requests)/([1-9]\d{0,17})/head", head, re.ASCII)
    if known is None or head not in git.refs(head):
        raise StoreError(f"no pull request at {quote(head)}; fetch refs/pull/N/head first")
    return known[1]
