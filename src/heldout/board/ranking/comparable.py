"""Which entries of a board may be compared with which: with all but those that they are near to.

Counts between two entries that differ in one query give that query's label away, so two that are
nearly the same are never compared with each other. Each is compared with all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from heldout.board.log.figures import LeftOut

__all__ = ["FEWEST_DIFFERENT", "Comparable", "choose_comparable", "count_step", "read_pairs"]

FEWEST_DIFFERENT = 10
"""Fewest queries with different scores between two entries that are compared, and fewest of which
one alone finds a relevant document between two whose outcomes are."""

_BINS = 50


def count_step(queries: int) -> int:
    """How many queries one step of a published count is worth: a fiftieth, and at least ten.

    Two entries that differ in fewer found queries than `FEWEST_DIFFERENT` then have one count.
    """
    return max(FEWEST_DIFFERENT, -(-queries // _BINS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """Entries that may be compared.

    Attributes:
        entries: ids in the order they came; each may be compared with some other.
        alike: id -> those of them that it is nearly the same as, for all entries, both ways.
        left_out: id of every other -> why.
    """

    entries: tuple[str, ...]
    alike: Mapping[str, frozenset[str]]
    left_out: Mapping[str, LeftOut]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs that are not compared, the earlier entry first."""
        place = {name: at for at, name in enumerate(self.entries)}
        return tuple(
            (one, other)
            for one in self.entries
            for other in sorted(self.alike[one], key=place.__getitem__)
            if place[one] < place[other]
        )


def choose_comparable(
    entries: Sequence[str],
    alike: Mapping[str, AbstractSet[str]],
    hidden: AbstractSet[str] = frozenset(),
) -> Comparable:
    """Choose the entries that are compared.

    An entry behind an embargo that is near to another one waits until the embargo is over: the
    pair that is left out would say who it is.

    Args:
        entries: ids in the order they came.
        alike: id -> ids of others that it is nearly the same as; read both ways.
        hidden: those behind an embargo.
    """
    every = read_pairs(((one, other) for one, others in alike.items() for other in others), entries)
    withheld = {name for name in entries if name in hidden and every[name]}
    shown = [name for name in entries if name not in withheld]
    near = {name for name in shown if len(every[name] - withheld) == len(shown) - 1}
    kept = tuple(name for name in shown if name not in near)
    left_out: dict[str, LeftOut] = {
        name: "withheld" if name in withheld else "near"
        for name in entries
        if name in withheld or name in near
    }
    return Comparable(
        entries=kept,
        alike={name: every[name] & frozenset(kept) for name in kept},
        left_out=left_out,
    )


def read_pairs(
    pairs: Iterable[tuple[str, str]], entries: Iterable[str]
) -> Mapping[str, frozenset[str]]:
    """Id -> those that it is paired with, both ways, for all of some entries.

    Args:
        pairs: of ids; those with an id that is not among the entries are ignored.
        entries: ids.
    """
    found: dict[str, set[str]] = {name: set() for name in entries}
    for one, other in pairs:
        if one != other and one in found and other in found:
            found[one].add(other)
            found[other].add(one)
    return {name: frozenset(others) for name, others in found.items()}
