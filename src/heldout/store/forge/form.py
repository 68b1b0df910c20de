"""The form of one pull request, from a clone that has it as a ref: what CI can know of it."""

import re

from heldout.envelope.bundle import Form
from heldout.errors import StoreError, quote
from heldout.store.arrivals import Arrival, find_in_git
from heldout.store.git import Git

__all__ = ["find_request"]


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
    number = re.fullmatch(r"refs/(?:pull|merge-requests)/([1-9]\d*)/head", head, re.ASCII)
    if number is None or head not in git.refs(head):
        raise StoreError(f"no pull request at {quote(head)}; fetch refs/pull/N/head first")
    source = f"pull request {number[1]}"
    found = find_in_git(git, form, main=base)
    return next((arrival for arrival in found if arrival.source == source), None)
