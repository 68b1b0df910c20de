"""What an organiser should know of the files that views name, before a score depends on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import quote
from heldout.pipeline.query_sets.sets import SetData

__all__ = ["ViewFacts", "describe_views", "list_view_notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFacts:
    """A view of fairness or of small data.

    Attributes:
        name: of the view.
        set: its query set.
        queries: how many queries it is scored on: judged, not excluded, and of its part.
        unknown: ids in its files of queries that the set does not have.
        facets: group of queries -> how many of them count.
        too_small: those with fewer than `min_group`, which are left out.
        documents: how many documents have a group.
        shares: group of documents -> share of these documents.
        target: group of documents -> exposure that is fair.
    """

    name: str
    set: str
    queries: int
    unknown: int
    facets: Mapping[str, int] = field(default_factory=dict)
    too_small: tuple[str, ...] = ()
    documents: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, float] = field(default_factory=dict)


def describe_views(spec: BoardSpec, sets: Mapping[str, SetData]) -> tuple[ViewFacts, ...]:
    """The views that name files or a part, as far as these, labels and key are at hand."""
    return tuple(
        _describe(view, sets[view.set])
        for view in spec.views
        if (view.files or view.part is not None) and sets[view.set].can_score(view)
    )


def list_view_notes(views: tuple[ViewFacts, ...]) -> tuple[str, ...]:
    """A sentence for each thing that is worth knowing."""
    return tuple(note for view in views for note in _note(view))


def _describe(view: View, data: SetData) -> ViewFacts:
    judged = {query for query, grades in data.judgments_of(view).items() if grades}
    counted = judged - data.excluded
    facets = data.files.facets[view.facets] if view.facets is not None else {}
    sizes = {name: len(queries & counted) for name, queries in facets.items()}
    named = set().union(*facets.values())
    if view.queries is not None:
        named |= data.files.queries[view.queries]
    groups = data.files.groups[view.groups] if view.groups is not None else None
    shares = {} if groups is None else groups.shares()
    return ViewFacts(
        name=view.name,
        set=view.set,
        queries=len(counted),
        unknown=len(named - data.queries.texts.keys()),
        facets=sizes,
        too_small=tuple(name for name, size in sizes.items() if size < view.min_group),
        documents=0 if groups is None else sum(groups.documents),
        shares=shares,
        target=view.target or shares,
    )


def _note(view: ViewFacts) -> Iterator[str]:
    yield f"view {view.name} is scored on {view.queries:,} {view.set} queries"
    if view.unknown:
        yield f"its files name {view.unknown:,} queries that {view.set} does not have"
    if view.facets:
        sizes = ", ".join(f"{quote(name)} {size:,}" for name, size in view.facets.items())
        yield f"its groups of queries: {sizes}"
    if view.too_small:
        yield f"too small, and left out: {', '.join(map(quote, view.too_small))}"
    if view.shares:
        shares = ", ".join(
            f"{quote(name)} {share:.3f} (target {view.target[name]:.3f})"
            for name, share in view.shares.items()
        )
        yield f"its {view.documents:,} documents with a group: {shares}"
