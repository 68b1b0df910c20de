"""What every analysis is, and the one table of them; a module is imported when it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from heldout.answers.answer import Answer
from heldout.options import check_bounds

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.random import Generator


Given = TypeVar("Given")
Options = TypeVar("Options")

Source = Literal[
    "scores", "kinds", "measure", "views", "dates", "dates-dev", "dates-reserve", "judges"
]
"""What an analysis is computed from.

`scores`: a table of scores. `kinds`: the same with the kind of each query. `measure`: a measure
alone. `views`: several tables of the same systems. `dates`: entries with their days, on one view;
`dates-dev` and `dates-reserve` on a second view too. `judges`: labels of several judges, or runs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How an analysis draws, and where it is computed.

    Attributes:
        seed: of every analysis, so that each alone gives what it gives among others.
        executor: where to compute; `None` for here.
    """

    seed: int = 0
    executor: "Executor | None" = None

    def rng(self) -> "Generator":
        """A generator at its start."""
        from numpy.random import PCG64, Generator  # noqa: PLC0415 - the table of analyses needs no numpy

        return Generator(PCG64(self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Generic[Given, Options]):
    """An analysis. The command, the chapter of the private report and the tests come from it.

    Attributes:
        name: as in `heldout analyse NAME`.
        help: of the command: the question first, an example last.
        source: what it is computed from.
        options: class of its options, each with a default.
        analyse: from what is given to the answer.
        chapter: heading in the private report; "" where it has no chapter.
        seeded: whether anything is drawn, so that it takes a seed.
        parallel: whether it computes on an executor.
        measure: what runs are scored by where no measure is named; "" where one must be.
        report_options: for the private report, from what is given; `None` for the defaults.
    """

    name: str
    help: str
    source: Source
    options: type[Options]
    analyse: Callable[[Given, Options, Draws], Answer]
    chapter: str = ""
    seeded: bool = True
    parallel: bool = True
    measure: str = ""
    report_options: Callable[[Given], Options] | None = None

    def answer(self, given: Given, options: Options, draws: Draws) -> Answer:
        """The answer, with the seed of what was drawn.

        Raises:
            ValueError: an option lies outside of its bounds.
        """
        check_bounds(options)
        answer = self.analyse(given, options, draws)
        seed = {"seed": draws.seed} if self.seeded else {}
        return replace(answer, document={**answer.document, **seed})


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

`heldout.analyses.NAME` has the value, called `ANALYSIS`, that of outcomes in its folder.
"""


def load_analysis(name: str) -> "Analysis[Any, Any]":
    """The analysis of this name.

    Raises:
        KeyError: there is none.
    """
    if name not in ANALYSES:
        raise KeyError(name)
    module = f"heldout.analyses.{name}" + ".analysis" * (name == "outcomes")
    analysis: Analysis[Any, Any] = import_module(module).ANALYSIS
    return analysis
