"""What a long call reports while it works. The caller decides where that is shown."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from heldout.errors import Problem


class Progress:
    """Reports nothing; `heldout.cli.printing` has the one that writes to a terminal."""

    def note(self, name: str, text: str) -> None:
        """Report something worth knowing, such as what was left out.

        Args:
            name: one or two words, as `left out`.
            text: one sentence.
        """

    def problems(self, found: Sequence[Problem]) -> None:
        """Report problems that do not stop the work."""

    def steps(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Report the share that is done.

        Args:
            what: the work, as `reading runs`.
            total: number of steps.

        Returns:
            A context whose value is called after each step.
        """
        del what, total
        return nullcontext(lambda: None)

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Report that a step of unknown length is at work.

        Args:
            what: the work, as `reading annotations`.
        """
        del what
        return nullcontext()


SILENT = Progress()
"""Reports nothing."""
