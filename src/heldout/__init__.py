"""heldout: leaderboards for ranking and retrieval that stay valid.

    import heldout as ho

    found = ho.evaluate("runs/*.gz", "dev.qrels", ["nDCG@10", "RR@10"])
    found.to_pandas()
    ho.stability(found, measure="nDCG@10")
    ho.compare("bm25.run", "dense.run", "dev.qrels", "nDCG@10")

Nothing here prints, reads the environment or a home directory, or starts a process unless asked.
A name is imported when it is used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "heldout.api.analyses": ("compare", "failures"),
    "heldout.api.board": ("Board",),
    "heldout.api.evaluation": ("EvaluationResult", "Validation", "evaluate", "validate"),
    "heldout.api.runs": ("read_qrels", "read_run"),
    "heldout.analyses.outcomes.failures": ("Failures",),
    "heldout.answers.answer": ("Answer",),
    "heldout.errors": ("HeldoutError", "InputError", "Problem", "SetupError"),
    "heldout.scoring.given_runs": ("Run",),
    "heldout.trec.qrels": ("Qrels",),
}
"""Public names by the module that has them."""

_ANALYSES = (
    *("stability", "reliability", "outcomes", "power", "facets", "scales", "views"),
    *("progress", "drift", "teams", "agreement"),
)
"""A function for each of `heldout.analyses.registry.ANALYSES`."""

_ROOMS = ("judging", "survivorship")
"""Packages that have functions of their own."""

__all__ = [  # noqa: PLE0604 - names of the tables above, all of them strings
    "__version__",
    *sorted(name for names in _HOMES.values() for name in names),
    *_ANALYSES,
    *_ROOMS,
]


def __getattr__(name: str) -> Any:
    if name in _ANALYSES:
        found: Any = import_module("heldout.api.analyses").function_of(name)
    elif name in _ROOMS:
        return import_module(f"heldout.{name}")
    else:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'heldout' has no attribute {name!r}")
        found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
