"""`heldout survive depths`: scores on the labels of a shallower annotation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.console import progress
from heldout.cli.context import reports_disk
from heldout.cli.files import order_option
from heldout.cli.options import level_option, one_argument
from heldout.cli.printing import messages, print_facts
from heldout.cli.reporting import Output, output_options, print_answer, seed_option
from heldout.cli.survive.annotation_source import (
    AnnotationSource,
    annotation_options,
    keep_inputs,
)
from heldout.cli.survive.common_documents import no_common_document
from heldout.errors import InputError, Problem, plural
from heldout.ids import QueryId
from heldout.measures.spec import parse_measure
from heldout.rankers.run import Hit
from heldout.rankers.runfile import write_run
from heldout.report.depth_chart import spec, title
from heldout.report.depth_json import value
from heldout.report.depths import facts, tables
from heldout.scoring.run_files import name_runs
from heldout.stats.student import Variances
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.depth_study import DepthQuestion, study_depths
from heldout.survivorship.depths.depth_tests import Family
from heldout.survivorship.depths.extrapolation import FARTHEST
from heldout.survivorship.depths.shown import SHOWN, shown_documents
from heldout.trec.places import Places, read_places
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import OWN_FILES, open_input

__all__ = ["depths"]

_FAMILIES: Mapping[str, Family] = {
    "systems": "systems",
    "depths": "depths",
    "all": "all",
    "none": "none",
}
_DIGITS = 9
_TRIALS = 1000


def _check_family(context: click.Context, option: click.Parameter, given: str) -> Family:
    """One of the named families, or a number of tests."""
    del context, option
    if given in _FAMILIES:
        return _FAMILIES[given]
    if given.isdecimal() and len(given) <= _DIGITS and int(given):
        return int(given)
    raise click.BadParameter(f"one of {', '.join(_FAMILIES)}, or a number of tests from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command was asked beside its annotations.

    Attributes:
        runs: patterns or paths of run files; none for the order shown.
        measure: of the runs.
        order: of documents in a run; `None` for what fits its columns.
        depth: those that are told; none for all.
        first_only: whether the first label of a query alone counts.
        family: what p is corrected over.
        variances: of the paper's test.
        to: deepest depth of the extrapolation; `None` for twice the last, 0 for none.
        write_shown: where the order shown is written as a run.
        level: of intervals.
        trials: draws of queries.
        seed: of the draws.
    """

    runs: tuple[str, ...]
    measure: str
    order: Order | None
    depth: tuple[int, ...]
    first_only: bool
    family: Family
    variances: Variances
    to: int | None
    write_shown: Path | None
    level: float
    trials: int
    seed: int


_asked_options = one_argument(
    "asked",
    _Asked,
    click.option(
        "--runs",
        multiple=True,
        metavar="'GLOB'",
        help="Run files; a pattern in quotes, or a path [the order that annotators saw].",
    ),
    click.option("-m", "--measure", default="RR@10", show_default=True, metavar="MEASURE"),
    order_option,
    click.option(
        "--depth",
        type=click.IntRange(min=1),
        multiple=True,
        metavar="K",
        help="A depth to tell, tested as if all were; repeat the option for more [all].",
    ),
    click.option("--first-only", is_flag=True, help="The first label of each query alone."),
    click.option(
        "--family",
        callback=_check_family,
        default="systems",
        show_default=True,
        metavar="systems|depths|all|none|N",
        help="Bonferroni over the depths of a system, the systems of a depth, or all; or N tests.",
    ),
    click.option(
        "--variances",
        type=click.Choice(["student", "welch"]),
        default="student",
        show_default=True,
        help="Of the paper's test: pooled, or free to differ.",
    ),
    click.option(
        "--to",
        type=click.IntRange(min=0),
        metavar="K",
        help=f"Extrapolate to this depth, at most {FARTHEST} times the last; 0 for none [twice].",
    ),
    click.option(
        "--write-shown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="RUN",
        help="Write the order that annotators saw as a run file.",
    ),
    level_option,
    click.option(
        "--trials",
        type=click.IntRange(min=100),
        default=_TRIALS,
        show_default=True,
        help="Draws of queries for the extrapolation.",
    ),
    seed_option,
)


@click.command
@annotation_options
@_asked_options
@output_options
@reports_disk
def depths(*, source: AnnotationSource, asked: _Asked, output: Output) -> None:
    """Score runs on the labels that a shallower annotation would have left.

    At depth k only what annotators selected among the first k documents is a label; a query
    without one drops out. Each depth is compared with all labels by the unpaired t test of the
    study, and its queries with those that have a label only deeper, which is the test that fits.

    \b
    Examples:
      heldout survive depths --annotations depth-qrels/ --runs 'runs/*.gz' -m RR@10
      heldout survive depths --shown bm25.run.gz --qrels dev.qrels --runs 'runs/*.gz'
    """
    if asked.write_shown is not None:
        _check_target(source, asked, asked.write_shown)
    annotations = source.read()
    if asked.write_shown is not None:
        _write_shown(annotations, asked.write_shown)
    question = _question(annotations, asked)
    runs = _read_runs(annotations, asked)
    study = study_depths(annotations, runs, question, Generator(PCG64(asked.seed)))
    print_answer(
        Answer(
            facts=facts(study),
            tables=tables(study),
            value=value(study) | {"seed": asked.seed},
            chart=lambda: spec(study),
            title=title(study),
        ),
        output,
    )


def _check_target(source: AnnotationSource, asked: _Asked, target: Path) -> None:
    """Refuse to write the order shown over what is read, or what else is written."""
    runs = [] if not asked.runs else [Path(path) for path in name_runs(asked.runs).values()]
    keep_inputs(target, "--write-shown", (*source.inputs(), *runs))
    if source.save is not None and target.resolve() == source.save.resolve():
        raise click.UsageError("--save and --write-shown name the same file")


def _question(annotations: Annotations, asked: _Asked) -> DepthQuestion:
    last = annotations.depth
    most = FARTHEST * last
    if asked.to and not last < asked.to <= most:
        raise InputError(
            Problem(
                code="depth-beyond-list",
                path="--to",
                found=f"depth {asked.to:,}",
                expected=f"a depth beyond the last, {last}, and at most {FARTHEST} times as deep, "
                f"{most:,}; or 0 for no extrapolation",
            )
        )
    to = 2 * last if asked.to is None else asked.to
    return DepthQuestion(
        measure=parse_measure(asked.measure, path="--measure"),
        depths=asked.depth,
        first_only=asked.first_only,
        family=asked.family,
        variances=asked.variances,
        to=_steps(last, to) if to else (),
        level=asked.level,
        trials=asked.trials,
    )


def _steps(last: int, to: int) -> tuple[int, ...]:
    """Half way and all the way."""
    return tuple(sorted({last + (to - last + 1) // 2, to}))


def _read_runs(annotations: Annotations, asked: _Asked) -> Mapping[str, Places] | None:
    if not asked.runs:
        return None
    wanted: Mapping[str, Sequence[str]] = {
        one.query: tuple(one.selected) for one in annotations.records if one.selected
    }
    paths = name_runs(asked.runs)
    runs: dict[str, Places] = {}
    with progress("reading runs", len(paths)) as done:
        for name, path in paths.items():
            runs[name] = _read_run(path, wanted, asked.order)
            if wanted and not any(runs[name].found.values()):
                _check_ids(annotations, path, asked.order)
            done()
    return runs


def _read_run(path: str, wanted: Mapping[str, Sequence[str]], order: Order | None) -> Places:
    with open_input(Path(path)) as file:
        places = read_places(file, path=path, documents=wanted, order=order, limits=OWN_FILES)
    if wanted and not places.found:
        raise InputError(
            Problem(
                code="no-common-query",
                path=path,
                found=f"none of the {plural(len(wanted), 'query', 'queries')} with a label",
                expected="queries that were annotated",
                hint="are the ids of both files those of the same queries?",
            )
        )
    return places


def _check_ids(annotations: Annotations, path: str, order: Order | None) -> None:
    """A run without any selected document may be that bad if it lists some that were shown."""
    known: Mapping[str, Sequence[str]] = {
        one.query: (*one.shown, *one.selected) for one in annotations.records
    }
    with open_input(Path(path)) as file:
        places = read_places(file, path=path, documents=known, order=order, limits=OWN_FILES)
    if not any(places.found.values()):
        raise no_common_document(annotations, path)


def _write_shown(annotations: Annotations, path: Path) -> None:
    """The order shown as a run; scores count down, since annotators saw none."""
    run = {
        QueryId(query): [Hit(doc, float(len(docs) - at)) for at, doc in enumerate(docs)]
        for query, docs in shown_documents(annotations).items()
    }
    write_run(run, path, form="trec", tag=SHOWN)
    print_facts(messages(), [("wrote", str(path))])
