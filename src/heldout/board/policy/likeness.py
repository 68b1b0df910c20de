"""What earlier runs are like a new one: the evidence that the policy shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heldout.board.policy.ensembles import Ensemble, Sampled
from heldout.board.policy.similarity import HEAD, Neighbour, list_alike
from heldout.trec.scans import Signature

__all__ = ["RunLikeness", "find_likeness", "say_ensemble", "say_neighbour"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLikeness:
    """What a run is like.

    Attributes:
        neighbours: all earlier runs that are identical or variants, nearest first.
        ensemble: the few earlier runs that explain it together, `None` where none do.
    """

    neighbours: tuple[Neighbour, ...]
    ensemble: Ensemble | None


def find_likeness(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> RunLikeness:
    """Compare a run with every earlier one.

    Args:
        new: the run.
        earlier: id and signature of each; read once, one held at a time.
    """
    sampled = Sampled(new)
    neighbours = list_alike(new, sampled.passing(earlier))
    return RunLikeness(neighbours=neighbours, ensemble=sampled.explain())


def say_neighbour(others: Mapping[str, Neighbour], *, baseline: bool = False) -> str:
    """How alike two runs are, in a sentence.

    Args:
        others: query set -> the earlier run, the same in all.
        baseline: whether that one is an organiser's.
    """
    (name,) = {other.id for other in others.values()}
    name = f"the baseline {name}" if baseline else name
    if all(other.verdict == "identical" for other in others.values()):
        depth = next(iter(others.values())).likeness.deep.depth
        queries = " and ".join(f"{o.likeness.queries:,} of {s}" for s, o in others.items())
        same = f"the same first {depth} documents as {name} in the same order"
        return f"{same}, in all queries: {queries}"
    return f"near {name}: " + "; ".join(_figures(s, other) for s, other in others.items())


def _figures(query_set: str, other: Neighbour) -> str:
    top, deep = other.likeness.top, other.likeness.deep
    return (
        f"{query_set}: rank-biased overlap {top.rbo.mean:.2f} of the top {top.depth}, "
        f"{deep.rbo.mean:.2f} of the top {deep.depth}; of {other.likeness.queries:,} queries "
        f"{top.same:.0%} have the same top {top.depth}, {other.likeness.heads:.0%} the same first "
        f"{HEAD} in any order"
    )


def say_ensemble(query_set: str, found: Ensemble) -> str:
    """Which runs explain another, in a sentence."""
    parts = ", ".join(f"{part.id} ({part.weight:.0%})" for part in found.parts)
    return (
        f"{query_set}: explained by {parts}: their fusion has rank-biased overlap "
        f"{found.agreement:.2f} with it, the nearest of them alone {found.alone:.2f}"
    )
