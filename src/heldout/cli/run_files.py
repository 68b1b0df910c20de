"""Which run files patterns name."""

from collections.abc import Sequence
from glob import glob
from pathlib import Path

from heldout.errors import InputError, Problem, quote

__all__ = ["find_runs"]


def find_runs(patterns: Sequence[str], *, place: str = "--runs") -> list[str]:
    """The files that paths and patterns name, each once, sorted within a pattern.

    Args:
        patterns: paths, or patterns as a shell has them.
        place: the option or argument they were given as, for messages.

    Raises:
        InputError: code `no-run`: a pattern names nothing.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = [pattern] if Path(pattern).is_file() else sorted(glob(pattern))  # noqa: PTH207 - a whole path may be a pattern
        if not paths:
            raise InputError(
                Problem(
                    code="no-run",
                    path=place,
                    found=f"no file for {quote(pattern)}",
                    expected="a run file, or a pattern such as 'runs/*.gz'",
                    hint="quote the pattern, and look at the folder you stand in",
                )
            )
        found |= dict.fromkeys(paths)
    return list(found)
