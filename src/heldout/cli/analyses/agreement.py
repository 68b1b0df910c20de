"""`heldout analyse agreement`: how far do judges agree, and how alike do runs rank?"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar, get_args

import click
from numpy.random import PCG64, Generator

from heldout.analyses.agreement import judges as judge_report
from heldout.analyses.agreement import runs as run_report
from heldout.analyses.agreement.judges import (
    Ratings,
    judge_agreement,
    rate_documents,
    rate_preferences,
)
from heldout.analyses.agreement.runs import run_agreement
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.facet_source import facet_options
from heldout.cli.files import order_option
from heldout.cli.options import SHARE, level_option, trials_option
from heldout.cli.printing import (
    Output,
    messages,
    output_options,
    print_problems,
    progress,
    reports_errors,
    seed_option,
)
from heldout.errors import InputError, Problem
from heldout.ids import find_near
from heldout.scoring.query_facets import FacetSource
from heldout.scoring.run_files import describe_orders, find_runs, run_name, scan_file
from heldout.scoring.score import other_spelling
from heldout.stats.agreement import KappaWeights, Scale
from heldout.stats.rank_correlation import RboTies
from heldout.trec.judgments import read_preferences, read_ratings
from heldout.trec.qrels import read_qrels
from heldout.trec.ranking import Order
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import TiedTops, read_tied_tops

Read = TypeVar("Read")
_WHICH = "who? --qrels A --qrels B, --ratings FILE, --preferences FILE, or --runs 'GLOB'"
_FILES = click.Path(path_type=Path, dir_okay=False)


@click.command
@click.option(
    "--qrels",
    multiple=True,
    metavar="Q",
    type=_FILES,
    help="Judgments, a file for each judge; at least two.",
)
@click.option(
    "--ratings",
    type=_FILES,
    metavar="FILE",
    help="Judgments of several judges in one file: query, judge, document, grade.",
)
@click.option(
    "--preferences",
    multiple=True,
    type=_FILES,
    metavar="FILE",
    help="Query, item, item, the preferred one; a pair may be judged many times.",
)
@click.option(
    "--runs", multiple=True, metavar="'GLOB'", help="Run files instead; no judgments are needed."
)
@click.option(
    "--relevant",
    type=click.IntRange(min=1),
    metavar="GRADE",
    help="Count grades from here on as 1 and others as 0 [grades as they are].",
)
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default="nominal",
    show_default=True,
    help="What grades mean to alpha.",
)
@click.option(
    "--weights",
    type=click.Choice(get_args(KappaWeights)),
    default="none",
    show_default=True,
    help="What Cohen's kappa takes from judges who are several grades apart.",
)
@trials_option(1000, "Samples of the queries.")
@level_option
@click.option(
    "-p",
    "--persistence",
    type=SHARE,
    default=0.9,
    show_default=True,
    help="Of rank-biased overlap: 0.9 is about the first ten documents.",
)
@click.option(
    "--ties",
    type=click.Choice(get_args(RboTies)),
    default="a",
    show_default=True,
    help="Documents with equal scores: w equally good, a order unknown, b as a but corrected.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Documents of each query that are compared, and those that tie with the last of them.",
)
@order_option
@facet_options
@seed_option
@output_options
@reports_errors
def agreement(
    *,
    qrels: tuple[Path, ...],
    ratings: Path | None,
    preferences: tuple[Path, ...],
    runs: tuple[str, ...],
    relevant: int | None,
    scale: Scale,
    weights: KappaWeights,
    trials: int,
    level: float,
    persistence: float,
    ties: RboTies,
    depth: int,
    order: Order | None,
    facets: FacetSource,
    seed: int,
    output: Output,
) -> None:
    """How far do judges agree beyond chance, and how alike do runs rank?

    Judges: Cohen's kappa of each two, Fleiss' kappa where all judged, Krippendorff's alpha of all,
    with intervals over queries. Runs: rank-biased overlap and tau of each two, query by query.

    \b
    Examples:
      heldout analyse agreement --qrels nist.qrels --qrels crowd.qrels --relevant 2
      heldout analyse agreement --ratings labels.tsv --scale ordinal --chart kappa.svg
      heldout analyse agreement --runs 'runs/*.gz' -p 0.9 --chart rbo.svg
    """
    if sum(map(bool, (qrels, ratings, preferences, runs))) != 1:
        raise click.UsageError(_WHICH)

    def compare_runs(tops: _Tops) -> Answer:
        alike = run_agreement(tops.runs, depth=depth, p=persistence, ties=ties, level=level)
        return Answer(
            facts=(*run_report.facts(alike), *describe_orders(tops.orders, given=order)),
            tables=run_report.tables(alike),
            value=run_report.value(alike) | {"orders": list(tops.orders)},
            chart=lambda: run_report.spec(alike),
            title=run_report.title(alike),
        )

    def compare_judges(judges: Ratings) -> Answer:
        found = judge_agreement(
            judges,
            Generator(PCG64(seed)),
            scale=scale,
            weights=weights,
            trials=trials,
            level=level,
        )
        return Answer(
            facts=judge_report.facts(found),
            tables=judge_report.tables(found),
            value=judge_report.value(found) | {"seed": seed},
            chart=(lambda: judge_report.spec(found)) if found.pairs else None,
            title=judge_report.title(found),
        )

    if runs:
        print_each(facets, output, _read_runs(find_runs(runs), order, depth), compare_runs)
    else:
        judges = _read_judges(qrels, ratings, preferences, relevant)
        print_each(facets, output, judges, compare_judges)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tops:
    """The first documents of runs, by query, and how they are ordered."""

    runs: Mapping[str, TiedTops]
    orders: tuple[Order, ...]

    @property
    def size(self) -> int:
        """Queries that some run answers."""
        return len(set().union(*self.runs.values()))

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        kept = {
            name: {query: top for query, top in tops.items() if query in queries}
            for name, tops in self.runs.items()
        }
        return replace(self, runs=kept)


def _read_judges(
    qrels: Sequence[Path], ratings: Path | None, preferences: Sequence[Path], relevant: int | None
) -> Ratings:
    if preferences:
        if relevant is not None:
            raise click.UsageError("--relevant is for grades: preferences have none")
        return rate_preferences(_read_all(preferences, read_preferences))
    if ratings is not None:
        (judges,) = _read_all([ratings], read_ratings).values()
        return rate_documents(judges, relevant=relevant)
    files = _read_all(qrels, read_qrels)
    _tell_spelling({name: file.judgments.keys() for name, file in files.items()})
    return rate_documents({name: file.judgments for name, file in files.items()}, relevant=relevant)


def _tell_spelling(queries: Mapping[str, AbstractSet[str]]) -> None:
    """Say which queries of a judge the first one has too, if both wrote their ids alike."""
    (_, first), *others = queries.items()
    notes = [
        other_spelling(name, "queries", near)
        for name, own in others
        if (near := find_near(own - first, first - own))
    ]
    print_problems(messages(), notes)


def _read_all(paths: Sequence[Path], read: Callable[..., Read]) -> Mapping[str, Read]:
    """The files by name."""
    found: dict[str, Read] = {}
    for path in paths:
        name = _new_name(str(path), found)
        with open_input(path) as file:
            found[name] = read(file, path=str(path))
    return found


def _read_runs(paths: Sequence[str], order: Order | None, depth: int) -> _Tops:
    """The tops of each run; one with errors is refused with all of them."""
    found: dict[str, TiedTops] = {}
    orders: dict[Order, None] = {}
    with progress("reading runs", len(paths)) as done:
        for path in paths:
            name = _new_name(path, found)
            scan = scan_file(path, order=order)
            if scan.form is None or not scan.ok:
                raise InputError([one for one in scan.problems if one.severity == "error"])
            with open_input(Path(path)) as file:
                found[name] = read_tied_tops(
                    file,
                    path=path,
                    form=scan.form,
                    order=scan.order,
                    depth=depth,
                    limits=OWN_FILES,
                )
            orders[scan.order] = None
            done()
    return _Tops(runs=found, orders=tuple(orders))


def _new_name(path: str, known: Mapping[str, object]) -> str:
    name = run_name(path)
    if name not in known:
        return name
    raise InputError(
        Problem(
            code="repeated-system",
            path=path,
            found=f"the name {name!r} again",
            expected="a different file name for each judge and each run",
        )
    )
