"""`heldout survive depths`: scores on the labels of a shallower annotation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL, Output, messages, print_answer, print_facts, progress
from heldout.errors import InputError, Problem, plural
from heldout.ids import QueryId
from heldout.options import Level, Opt, Seed
from heldout.rankers.run import Hit, write_run
from heldout.scoring.run_files import RunOrder, name_runs
from heldout.scoring.spec import parse_measure
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.chart import spec, title
from heldout.survivorship.depths.extrapolation import FARTHEST
from heldout.survivorship.depths.scores import SHOWN, shown_documents
from heldout.survivorship.depths.study import DepthQuestion, study_depths
from heldout.survivorship.depths.tests import Family
from heldout.survivorship.depths.words import facts, tables, value
from heldout.survivorship.discarded.query_types import compare_types, count_types
from heldout.survivorship.discarded.query_types import facts as query_types_facts
from heldout.survivorship.discarded.query_types import spec as query_type_chart_spec
from heldout.survivorship.discarded.query_types import tables as query_types_tables
from heldout.survivorship.discarded.query_types import title as query_type_chart_title
from heldout.survivorship.discarded.query_types import value as query_types_value
from heldout.survivorship.reading.common_documents import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, keep_inputs, read_source
from heldout.trec.ranking import Order
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Places, read_places

_FAMILIES: Mapping[str, Family] = {
    "systems": "systems",
    "depths": "depths",
    "all": "all",
    "none": "none",
}
_DIGITS = 9


def _family(given: str) -> Family:
    """One of the named families, or a number of tests."""
    if given in _FAMILIES:
        return _FAMILIES[given]
    if given.isdecimal() and len(given) <= _DIGITS and int(given):
        return int(given)
    raise ValueError(f"one of {', '.join(_FAMILIES)}, or a number of tests from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command is asked beside its annotations."""

    runs: Annotated[
        tuple[str, ...],
        Opt(
            "Run files: a path, or a pattern in quotes [the order that annotators saw].",
            metavar="'GLOB'",
        ),
    ] = ()
    measure: Annotated[
        str, Opt("Measure of the runs.", names=("-m", "--measure"), metavar="MEASURE")
    ] = "RR@10"
    order: RunOrder = None
    depth: Annotated[
        tuple[int, ...],
        Opt("Depth to show, tested as if all were. Repeatable [all].", least=1, metavar="K"),
    ] = ()
    first_only: Annotated[bool, Opt("The first label of each query alone.")] = False
    family: Annotated[
        str,
        Opt(
            "Tests that Bonferroni corrects together: over the depths of a system, the systems of "
            "a depth, or all; or their number.",
            metavar="systems|depths|all|none|N",
            check=_family,
        ),
    ] = "systems"
    variances: Annotated[
        Literal["student", "welch"],
        Opt("Variances of the unpaired t test: pooled, or free to differ."),
    ] = "student"
    to: Annotated[
        int | None,
        Opt(
            f"Depth to extrapolate to, at most {FARTHEST} times the last; 0 for none [twice].",
            least=0,
            metavar="K",
        ),
    ] = None
    write_shown: Annotated[
        Path | None,
        Opt("Run file for the order that annotators saw.", metavar="RUN", path="file"),
    ] = None
    level: Level = 0.95
    trials: Annotated[int, Opt("Number of bootstrap samples for the extrapolation.", least=100)] = (
        1000
    )
    seed: Seed = 0


@click.command
@with_options
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
    annotations = read_source(source, progress=TERMINAL)
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
        family=_family(asked.family),
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


# `heldout survive types`: which types of queries were discarded?


@click.command
@with_options
@reports_disk
def types(*, source: AnnotationSource, level: Level = 0.95, output: Output) -> None:
    """Tell which types of queries annotators could not answer, and left out.

    Each type has its share with an interval and is compared with all other queries; all types
    together have a chi-squared test and Cramer's V.

    \b
    Examples:
      heldout survive types --annotations dev_v2.1.json.gz
      heldout survive types --annotations depth-qrels/ --types categories.tsv
    """
    found = compare_types(count_types(read_source(source, progress=TERMINAL)), level=level)
    print_answer(
        Answer(
            facts=query_types_facts(found),
            tables=query_types_tables(found),
            value=query_types_value(found),
            chart=lambda: query_type_chart_spec(found),
            title=query_type_chart_title(found),
        ),
        output,
    )
