"""What took long to work out, kept until what it comes from changes."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["LastResult"]

Result = TypeVar("Result")


class LastResult(Generic[Result]):
    """The last result and its state; threads may share it, and wait while one works it out."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self._lock = threading.Lock()
        self._kept: tuple[Hashable, Result] | None = None

    def has(self, state: Hashable) -> bool:
        """Whether the result for a state is kept; does not wait."""
        kept = self._kept
        return kept is not None and kept[0] == state

    def get(self, state: Hashable, work: Callable[[], Result]) -> Result:
        """The result for a state.

        Args:
            state: of all that the result comes from; read before `work` reads it.
            work: works it out; called where another state, or none, is kept.
        """
        with self._lock:
            if self._kept is None or self._kept[0] != state:
                self._kept = (state, work())
            return self._kept[1]
