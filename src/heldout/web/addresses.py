"""Where an assignment's pages are."""

from dataclasses import dataclass
from urllib.parse import quote

__all__ = ["Addresses"]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The pages of one assignment.

    Attributes:
        token: of the assignment.
    """

    token: str

    def item(self, position: int) -> str:
        """The page of an item."""
        return f"{self._root}/item/{position}"

    def keep(self, position: int) -> str:
        """Where the wish for more time is sent."""
        return f"{self.item(position)}/keep"

    @property
    def exit(self) -> str:
        """The page that stops."""
        return f"{self._root}/exit"

    @property
    def done(self) -> str:
        """The page of the end."""
        return f"{self._root}/done"

    @property
    def _root(self) -> str:
        return f"/a/{quote(self.token, safe='')}"
