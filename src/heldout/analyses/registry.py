"""The one table of analyses: names and questions. A module is imported when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from heldout.analyses.analysis import Analysis

ANALYSES: Mapping[str, str] = {
    "stability": "which ranks a system may have, and has on resampled queries",
}
"""Every analysis with its question, in the order of the help and of the private report.

`heldout.analyses.NAME` has the value, called `ANALYSIS`.
"""


def load_analysis(name: str) -> Analysis[Any, Any]:
    """The analysis of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in ANALYSES:
        raise KeyError(name)
    analysis: Analysis[Any, Any] = import_module(f"heldout.analyses.{name}").ANALYSIS
    return analysis
