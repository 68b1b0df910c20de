"""What is declared before outcomes are looked at: the rules of verdicts, and their options."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from heldout.options import Level, Opt
from heldout.scoring.options import JUDGMENTS, FacetSource, RunOrder

By = Literal["esl", "rr"]
Decide = Literal["signed-rank", "t"]
Correction = Literal["holm", "bonferroni", "none"]
Harm = Literal["margin", "plain"]

Band = Literal["simultaneous", "pointwise"]
"""Whether all intervals hold at once, or each by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The largest harm that still counts as none.

    A share of 0.01 is the smallest that table 2 of the paper shows; half a position is less than
    the 0.7 from which it argues that one run is the better.
    """

    found: Annotated[
        float,
        Opt("Share of queries that may be lost.", names=("--margin-found",), above=0, below=1),
    ] = 0.01
    esl: Annotated[
        float,
        Opt(
            "Number of positions by which the mean search length may grow.",
            names=("--margin-esl",),
            above=0,
        ),
    ] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRules:
    """What is declared before looking.

    Groups of seeds are always compared across seeds, whatever test decides. Do no harm is defined
    by search length, so it is not asked where case (3) goes by reciprocal rank. `plain` is the
    paper's rule, to which no significant harm is enough; `margin` asks for evidence that there is
    none, and a strict verdict by search length needs that evidence too.
    """

    decide: Annotated[Decide, Opt("Test of case (3) that decides.")] = "signed-rank"
    by: Annotated[By, Opt("Criterion of case (3): search length or reciprocal rank.")] = "esl"
    correction: Annotated[
        Correction,
        Opt("Correction of tests over pairs × outcomes, and of verdicts over pairs."),
    ] = "holm"
    alpha: Annotated[float, Opt("Chance of a wrong verdict over all pairs.", above=0, below=1)] = (
        0.05
    )
    harm: Annotated[
        Harm,
        Opt("Condition of no harm: worse by less than a margin, or not significantly worse."),
    ] = "margin"
    margins: Margins = field(default_factory=Margins)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesOptions:
    """Options of `heldout analyse outcomes`."""

    baseline: Annotated[
        str | None, Opt("Run to compare with all others [all pairs].", metavar="RUN")
    ] = None
    k: Annotated[
        int | None,
        Opt(
            "Depth to which lists are looked at [as the measure; 100 of a table].",
            names=("-k",),
            least=1,
        ),
    ] = None
    rules: DeclaredRules = field(default_factory=DeclaredRules)
    level: Level = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """The page of `heldout compare --html`.

    Raises:
        ValueError: what is for the page alone is given, and no page.
    """

    html: Annotated[
        Path | None,
        Opt(
            "Page of the queries on which A and B differ, with both rankings. Its data go into a "
            "folder beside it.",
            metavar="FILE",
            path="file",
        ),
    ] = None
    documents: Annotated[
        tuple[str, ...],
        Opt(
            "Document texts for --html: id, tab, text; JSON lines; TREC; a folder; irds:NAME. Can "
            "be given many times.",
            metavar="FILE",
        ),
    ] = ()
    depth: Annotated[
        int | None,
        Opt(
            "Documents of each ranking on the page [10; fewer if the measure looks at fewer].",
            least=1,
            most=100,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.html is None and (self.documents or self.depth is not None):
            raise ValueError("--documents and --depth are for the page: name it with --html FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Arguments and options of `heldout compare`."""

    a: Annotated[str, Opt(argument=True)]
    b: Annotated[str, Opt(argument=True)]
    qrels: Annotated[str, Opt(JUDGMENTS, metavar="Q")]
    measures: Annotated[
        tuple[str, ...],
        Opt(
            "Measure whose means are compared; leads the answer. Such as nDCG@10; can be given "
            "many times.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ] = ()
    k: Annotated[
        int, Opt("Documents of each list that are looked at.", names=("-k",), least=1, most=1000)
    ] = 100
    rel: Annotated[int, Opt("Lowest grade that is relevant.", least=1)] = 1
    order: RunOrder = None
    page: PageOptions = field(default_factory=PageOptions)
    facets: FacetSource = field(default_factory=FacetSource)
    rules: DeclaredRules = field(default_factory=DeclaredRules)
    intervals: Annotated[
        Band, Opt("Intervals of Success@j: all depths at once, or each by itself.")
    ] = "simultaneous"
    level: Level = 0.95
