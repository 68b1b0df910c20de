"""Which of very many pairs a reader sees first."""

from collections.abc import Mapping
from itertools import pairwise

from heldout.validity.outcomes import Outcomes
from heldout.validity.verdicts import Judged

__all__ = ["telling_pairs"]


def telling_pairs(result: Outcomes, *, most: int) -> tuple[Judged, ...]:
    """The pairs to show where there is not room for all.

    Args:
        result: of many pairs.
        most: how many, at least 1.

    Returns:
        All pairs in their order, if they are no more. Else up to half of them are neighbours in
        the line by verdict, from its head. Then come pairs with a verdict, those first whose runs
        stand nearest in the line: they show how fine a difference is told. Then come the others,
        by the smallest p of any of their tests.
    """
    if len(result.pairs) <= most:
        return result.pairs
    neighbours = _neighbours(result)[: most // 2]
    taken = {id(one) for one in neighbours}
    line = () if result.order is None else result.order.systems
    places = {name: place for place, name in enumerate(line)}
    others = [one for one in result.pairs if id(one) not in taken]
    others.sort(key=lambda one: _tells(one, places))
    return (*neighbours, *others[: most - len(neighbours)])


def _neighbours(result: Outcomes) -> list[Judged]:
    """Pairs of runs that follow each other in the line, where they were compared."""
    if result.order is None:
        return []
    named = {frozenset((one.pair.a.name, one.pair.b.name)): one for one in result.pairs}
    pairs = (named.get(frozenset(pair)) for pair in pairwise(result.order.systems))
    return [one for one in pairs if one is not None]


def _tells(one: Judged, places: Mapping[str, int]) -> tuple[bool, int, float]:
    """A key that is smaller where a pair tells more."""
    least = min((test.p for test in one.pair.tests.values() if test.p is not None), default=1.0)
    if one.verdict.better is None:
        return True, 0, least
    return False, abs(places[one.pair.a.name] - places[one.pair.b.name]), least
