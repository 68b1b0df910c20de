"""How far do judges agree beyond chance, how alike do runs rank? Their files, and the analysis."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from heldout.analyses import agreement_of_judges as judges
from heldout.analyses import agreement_of_runs as runs
from heldout.analyses import analysis
from heldout.analyses.agreement_of_judges import (
    JudgeOptions,
    Ratings,
    judge_agreement,
    rate_documents,
    rate_preferences,
)
from heldout.analyses.agreement_of_runs import Tops, run_agreement
from heldout.answers.answer import Answer, to_document
from heldout.collections import named, source
from heldout.errors import InputError, Problem
from heldout.ids import find_near
from heldout.options import Opt
from heldout.progress_bar import SILENT, Progress
from heldout.scoring import run_files, score
from heldout.stats.rank_correlation import RboTies
from heldout.trec import judgments, tops
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, unscale
from heldout.trec.reading.sources import open_input


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOptions:
    """Options of `heldout analyse agreement`."""

    judges: JudgeOptions = field(default_factory=JudgeOptions)
    persistence: Annotated[
        float,
        Opt(
            "Persistence of rank-biased overlap: 0.9 is about the first ten documents.",
            names=("-p", "--persistence"),
            above=0,
            below=1,
        ),
    ] = 0.9
    ties: Annotated[
        RboTies,
        Opt("Documents with equal scores: w equally good, a order unknown, b as a but corrected."),
    ] = "a"


def _analyse(given: Ratings | Tops, options: AgreementOptions, draws: analysis.Draws) -> Answer:
    if isinstance(given, Tops):
        alike = run_agreement(
            given.runs,
            depth=given.depth,
            p=options.persistence,
            ties=options.ties,
            level=options.judges.level,
        )
        return Answer(
            answer=runs.headline(alike),
            summary=(*runs.summary(alike), *given.facts),
            tables=runs.tables(alike),
            document=to_document(alike) | {"orders": list(given.orders)},
            chart=lambda: runs.chart(alike),
            title=runs.title(alike),
        )
    found = judge_agreement(given, draws.rng(), options.judges)
    return Answer(
        answer=judges.headline(found),
        summary=judges.summary(found),
        tables=judges.tables(found),
        document=to_document(found),
        chart=(lambda: judges.chart(found)) if found.pairs else None,
        title=judges.title(found),
    )


ANALYSIS = analysis.Analysis(
    name="agreement",
    help="""How far do judges agree beyond chance, and how alike do runs rank?

    Judges: Cohen's kappa of each two, Fleiss' kappa where all judged, Krippendorff's alpha of all,
    with intervals over queries. Runs: rank-biased overlap and tau of each two, query by query.

    \b
    Examples:
      heldout analyse agreement --qrels nist.qrels --qrels crowd.qrels --relevant 2
      heldout analyse agreement --ratings labels.tsv --scale ordinal --chart kappa.svg
      heldout analyse agreement --runs 'runs/*.gz' -p 0.9 --chart rbo.svg
    """,
    source="judges",
    options=AgreementOptions,
    analyse=_analyse,
    parallel=False,
)


Read = TypeVar("Read")


def read_judges(
    *,
    qrels: Sequence[Path] = (),
    ratings: Path | None = None,
    preferences: Sequence[Path] = (),
    relevant: int | None = None,
    progress: Progress = SILENT,
) -> Ratings:
    """Return what several judges said of the same things.

    Args:
        qrels: judgments, a file for each judge.
        ratings: those of several judges in one file.
        preferences: of pairs, a file for each judge.
        relevant: grades from here on count as 1 and others as 0; `None` for grades as they are.
        progress: shows which ids are spelled alike.

    Raises:
        InputError: a file has errors, or two have one name; fewer than two judges.
    """
    if preferences:
        return rate_preferences(_read_all(preferences, judgments.read_preferences))
    if ratings is not None:
        (judges,) = _read_all([ratings], judgments.read_ratings).values()
        return rate_documents(judges, relevant=relevant)
    files: dict[str, Qrels] = {}
    for path in qrels:
        name = _new_name(str(path), files)
        files[name] = named.load_qrels(path, whole_for=None)
    progress.problems(
        _find_spellings({name: file.judgments.keys() for name, file in files.items()})
    )
    return rate_documents({name: unscale(file) for name, file in files.items()}, relevant=relevant)


def _find_spellings(queries: Mapping[str, AbstractSet[str]]) -> Sequence[Problem]:
    """Return which queries of a judge the first one has too, if both wrote their ids alike."""
    (_, first), *others = queries.items()
    return [
        score.other_spelling(name, "queries", near)
        for name, own in others
        if (near := find_near(own - first, first - own))
    ]


def _read_all(paths: Sequence[Path], read: Callable[..., Read]) -> Mapping[str, Read]:
    """The files by name."""
    found: dict[str, Read] = {}
    for path in paths:
        name = _new_name(str(path), found)
        with open_input(path) as file:
            found[name] = read(file, path=str(path))
    return found


def read_tops(
    paths: Sequence[str],
    *,
    order: Order | None = None,
    depth: int = 100,
    progress: Progress = SILENT,
) -> Tops:
    """The first documents of each run; one with errors is refused with all of them.

    Args:
        paths: of run files.
        order: how documents are ordered; `None` for what fits a run's columns.
        depth: documents of each query.
        progress: shows how many are read.

    Raises:
        InputError: a run has errors, or two have one name.
    """
    found: dict[str, tops.TiedTops] = {}
    orders: dict[Order, None] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for path in paths:
            name = _new_name(path, found)
            scan = run_files.scan_file(path, order=order, listed=depth)
            found[name] = tops.tie_tops(scan)
            orders[scan.order] = None
            done()
    return Tops(
        runs=found,
        depth=depth,
        orders=tuple(orders),
        facts=tuple(run_files.describe_orders(tuple(orders), given=order)),
    )


def _new_name(path: str, known: Mapping[str, object]) -> str:
    name = path if path.startswith(source.PREFIX) else run_files.run_name(path)
    if name not in known:
        return name
    raise InputError.of("repeated-system", path, f"the name {name!r} again")
