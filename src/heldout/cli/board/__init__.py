"""Commands of organisers and participants."""

from collections.abc import Callable
from typing import Any

from heldout.cli.context import persistent
from heldout.cli.options import with_options


def at_board(command: Callable[..., None]) -> Callable[..., Any]:
    """As `with_options`, of a command that opens the organiser's session.

    Where another organiser was first it is called again: what it did before it finds done.
    """
    return with_options(persistent(command))
