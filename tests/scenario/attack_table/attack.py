"""One attack of the table, and groups of attacks that one module tests."""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SAME", "Attack", "Group"]

SAME = "; unchanged"
"""The result where a test compares vault and board, byte for byte, with what they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack.

    Attributes:
        name: what it is; no other attack has the same.
        family: what kind of bad input it is, a heading of the page.
        tries: what the attacker tries, a verb without "to".
        becomes: the result.
        test: the test that shows it, `MODULE::FUNCTION` below tests/.
        case: its parameter there, "" where the test has none for it.
    """

    name: str
    family: str
    tries: str
    becomes: str
    test: str
    case: str = ""

    @property
    def module(self) -> str:
        """Path of the test's module below tests/."""
        return self.test.partition("::")[0]

    @property
    def function(self) -> str:
        """Name of the test."""
        return self.test.partition("::")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Attacks that one module's tests show: a test with its cases, or one test for each name."""

    family: str
    module: str

    def cases(
        self, test: str, *names: str, tries: str, becomes: str, prefix: str = ""
    ) -> Iterator[Attack]:
        """Attacks that are parameters of one test."""
        for name in names:
            yield self.one(prefix + name, test, tries=tries, becomes=becomes, case=name)

    def one(self, name: str, test: str, *, tries: str, becomes: str, case: str = "") -> Attack:
        """An attack with a test of its own."""
        where = f"{self.module}::{test}"
        return Attack(
            name=name, family=self.family, tries=tries, becomes=becomes, test=where, case=case
        )
