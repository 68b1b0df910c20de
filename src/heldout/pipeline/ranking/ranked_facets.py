"""The facets of the queries that a board ranks on, as its other views name their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heldout.board.rules.spec import BoardSpec
from heldout.pipeline.query_sets.view_files import load_view_files
from heldout.store.repository import Repository
from heldout.store.vault import Vault

__all__ = ["FEWEST_IN_FACET", "QueryFacet", "read_query_facets"]

FEWEST_IN_FACET = 50
"""Fewest queries with scores of a facet of which a board tells anything; the `min_group` of a view
may ask for more, of all facets. Fewer tell hardly two entries apart, and each rank on them says
more of every label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacet:
    """A kind of query.

    Attributes:
        of: name of the view whose file has it.
        name: its name there.
        queries: which.
        least: fewest of them that must have scores.
    """

    of: str
    name: str
    queries: frozenset[str]
    least: int


def read_query_facets(
    repository: Repository, vault: Vault, spec: BoardSpec, *, view: str
) -> Sequence[QueryFacet]:
    """The facets in the order of the views and of their names; a file that two views name, once.

    Private views are not looked at: what they name is nobody's business.

    Args:
        repository: the board.
        vault: of it, for a file that is held out.
        spec: the rules.
        view: the view that ranks.

    Raises:
        StoreError: a file is missing.
        InputError: a file is wrong.
    """
    ranked = next(one for one in spec.views if one.name == view)
    named = [
        one
        for one in spec.public_views
        if one.set == ranked.set and one.facets is not None and not one.ranks_nobody
    ]
    files: Mapping[str, Mapping[str, frozenset[str]]]
    files = load_view_files(repository, named, vault=vault).facets if named else {}
    first = {one.facets: one for one in reversed(named)}
    least = max([FEWEST_IN_FACET, *(one.min_group for one in named)])
    return [
        QueryFacet(of=first[path].name, name=name, queries=queries, least=least)
        for path, groups in files.items()
        for name, queries in groups.items()
    ]
