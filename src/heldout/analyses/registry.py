"""The one table of analyses: names and questions. A module is imported when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heldout.analyses.analysis import Analysis

ANALYSES: Mapping[str, str] = {
    "stability": "which ranks a system may have, and has on resampled queries",
    "reliability": "how often two halves of the queries lead to the same conclusion",
    "outcomes": "what each of two runs finds, how high, and which is the better",
    "power": "how many queries a difference takes, from pilot runs",
    "facets": "whether a ranking holds for every kind of query; cuts out a domain",
    "scales": "which values a measure can take, and whether they are an interval scale",
    "views": "whether the ranking holds on other measures, queries, labels, collections",
    "progress": "how the best score rose, and which steps are more than luck",
    "drift": "whether official scores fall behind dev scores, and whether a ratio explains it",
    "teams": "who submits often, and whether they climb on the public view alone",
    "agreement": "how far judges agree beyond chance, and how alike runs rank",
}
"""Every analysis with its question, in the order of the help and of the private report.

`heldout.analyses.NAME` has the value, called `ANALYSIS`, or `analysis` in the folder NAME.
"""

_FOLDERS = frozenset(("agreement", "outcomes", "views"))


def load_analysis(name: str) -> "Analysis[Any, Any]":
    """The analysis of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in ANALYSES:
        raise KeyError(name)
    module = f"heldout.analyses.{name}" + (".analysis" if name in _FOLDERS else "")
    analysis: Analysis[Any, Any] = import_module(module).ANALYSIS
    return analysis
