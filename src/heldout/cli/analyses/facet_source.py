"""The options of query subsets, as one `facets` argument of a command."""

from heldout.cli.options import add_options
from heldout.scoring.query_facets import FacetSource

facet_options = add_options("facets", FacetSource)
"""`--facet`, `--only`, `--queries` and `--least`, as one `facets` argument."""
