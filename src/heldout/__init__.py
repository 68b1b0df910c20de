"""heldout: leaderboards for ranking and retrieval whose results you can believe.

    import heldout as ho

    results = ho.evaluate("runs/*.gz", "dev.qrels", ["nDCG@10", "RR@10"])
    results.to_pandas()
    results.against("bm25")
    ho.stability(results, measure="nDCG@10")
    ho.compare("bm25.run", "dense.run", "dev.qrels", "nDCG@10")

What there is; help(ho.evaluate) and so on say more:

    read_run, read_qrels  runs and judgments: a path, a mapping, a data frame
    validate              what is wrong with a run?
    evaluate              scores of runs, and every run against a baseline
    compare               is one of two runs better, and how?
    failures              on which queries does a run fail? a page of both rankings
    stability             which ranks may a system have?
    reliability           do two halves of the queries lead to the same conclusion?
    outcomes              what does each of two runs find, and how high?
    power                 how many queries does a difference need?
    facets                does the ranking hold for every kind of query?
    views                 do measures, or labels, agree on the ranking?
    scales                which values can a measure take?
    progress, drift, teams      how a leaderboard went over time
    agreement             how far do judges agree?
    judging               preference judging, from pools to labels
    survivorship          what shallow annotation leaves out
    Board                 the leaderboard and the history of a board

Nothing here prints, reads the environment or a home directory, or starts a process unless asked.
A name is imported when it is used.
"""

from importlib import import_module
from typing import Any

from heldout.lazy import import_name

__version__ = "0.1.0"

_HOMES = {
    "heldout.api.analyses": ("compare", "failures"),
    "heldout.api.board": ("Board",),
    "heldout.api.evaluation": (
        *("EvaluationResult", "Validation", "evaluate", "read_qrels", "read_run", "validate"),
    ),
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
"""A function for each of `heldout.analyses.analysis.ANALYSES`."""

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
        found = import_name(__name__, _HOMES, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
