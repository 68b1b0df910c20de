"""`heldout prefer labels`: labels from preferences, and every run scored again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import click
import msgspec
from numpy.random import PCG64, Generator

from heldout.cli.console import progress
from heldout.cli.options import level_option, one_argument
from heldout.cli.prefer.judged import (
    Judged,
    JudgedSource,
    judged_options,
    load_judged,
    name_runs,
    read_first,
)
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.measures.spec import parse_measure
from heldout.preferences.contests import PERFECT, stand_for
from heldout.preferences.label_noise import redraw_labels
from heldout.preferences.label_scores import ScoredLabels, grade, perfect_places
from heldout.preferences.labels import count_pairings
from heldout.preferences.leave_out import leave_each_out
from heldout.preferences.ordering import fold_places, order_agreement
from heldout.preferences.rescoring import rescore
from heldout.preferences.versions import (
    ALGORITHMS,
    Algorithm,
    LabelVersion,
    Made,
    differences,
    make_version,
    rules_of,
)
from heldout.report import label_chart
from heldout.report import labels as label_report
from heldout.report.labels import Relabelled
from heldout.store.label_files import newest_version, read_version, write_version
from heldout.trec.places import Places, read_places
from heldout.trec.reading.streams import open_input

__all__ = ["labels"]

KNOWN, BEFORE, AFTER = "known answers", "labels before", "preference labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How runs are scored again.

    Attributes:
        measure: on the preference labels, and on the labels before if nothing else is said.
        measure_before: on the labels before.
        level: of intervals.
        trials: draws of queries.
        redraws: labels of judgments drawn anew, for each query; 0 for none.
        seed: of every draw.
    """

    measure: str = "RR@10"
    measure_before: str | None = None
    level: float = 0.95
    trials: int = 2000
    redraws: int = 100
    seed: int = 0


scoring_options = one_argument(
    "scoring",
    Scoring,
    click.option(
        "-m", "--measure", default="RR@10", show_default=True, metavar="MEASURE", help="Of runs."
    ),
    click.option(
        "--measure-before",
        metavar="MEASURE",
        help="On the labels before [as --measure]: RR(rel=2)@10 for graded ones.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(min=1),
        default=2000,
        show_default=True,
        help="Draws of queries for intervals.",
    ),
    click.option(
        "--redraws",
        type=click.IntRange(min=0),
        default=100,
        show_default=True,
        help="Labels of judgments drawn anew, for each query.",
    ),
    level_option,
    seed_option,
)
"""The options of scoring again, as one `scoring` argument."""


@click.command
@judged_options
@click.option(
    "--mode",
    "algorithm",
    type=click.Choice(get_args(Algorithm)),
    default="tournament",
    show_default=True,
    help="How the best passages of a pool are found.",
)
@click.option("--name", metavar="NAME", help="Of the version [v1, v2, … in turn].")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where versions lie [labels/ of the campaign; nowhere without one].",
)
@click.option("--rebuild", metavar="NAME", help="Make a version again and compare the bytes.")
@scoring_options
@output_options
@click.pass_context
@reports_errors
def labels(
    context: click.Context,
    *,
    source: JudgedSource,
    algorithm: Algorithm,
    name: str | None,
    out: Path | None,
    rebuild: str | None,
    scoring: Scoring,
    output: Output,
) -> None:
    """Make labels from preferences, as a new version, and score every run on them.

    Each query's passages play a tournament; the best are its labels. A version says what it is
    made of and can be made again byte for byte; judgments that came later change nothing. With
    --runs every run is scored on the labels before and on these, and without what each run alone
    contributed.

    \b
    Examples:
      heldout prefer labels campaign --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer labels campaign --until 2026-11-01 --name november
      heldout prefer labels campaign --rebuild v1
    """
    tops = read_first(source) if source.judgments is not None else {}
    judged = load_judged(source, tops=tops)
    folder = out or (judged.folder.labels if judged.folder else None)
    if rebuild is not None:
        if not _rebuild(_folder(folder), rebuild, judged, as_json=output.as_json):
            context.exit(1)
        return
    made = _make(judged, algorithm, name, folder)
    written = folder is not None and write_version(folder, made)
    print_answer(_answer(source, judged, made, scoring), output)
    if folder is not None and not output.as_json:
        place = folder / f"{made.version.name}.qrels"
        print_facts(answers(), [("written" if written else "as before", str(place))])


def _folder(folder: Path | None) -> Path:
    if folder is None:
        raise click.UsageError("where do versions lie? name a campaign, or --out DIR")
    return folder


def _make(judged: Judged, algorithm: Algorithm, name: str | None, folder: Path | None) -> Made:
    """The labels; the newest version again where nothing is new and no other name is asked for."""
    newest = None if folder is None else newest_version(folder)
    rules = replace(judged.rules, algorithm=algorithm)
    made = make_version(
        name or _next_name(folder),
        judged.pools,
        judged.judgments,
        rules,
        parent=None if newest is None else newest.name,
    )
    if newest is not None and name in (None, newest.name):
        again = replace(made, version=_renamed(made.version, newest))
        if again.version == newest:
            return again
    return made


def _renamed(version: LabelVersion, like: LabelVersion) -> LabelVersion:
    return msgspec.structs.replace(version, name=like.name, parent=like.parent)


def _next_name(folder: Path | None) -> str:
    taken = {path.stem for path in folder.glob("*.json")} if folder is not None else set()
    return next(name for n in range(1, len(taken) + 2) if (name := f"v{n}") not in taken)


def _rebuild(folder: Path, name: str, judged: Judged, *, as_json: bool) -> bool:
    """Make a version again; whether it is the same."""
    before = read_version(folder, name)
    made = make_version(
        name, judged.pools, judged.judgments, rules_of(before), parent=before.parent
    )
    changed = differences(before, made.version)
    if as_json:
        print_json({"version": name, "same": not changed, "changed": list(changed)})
    elif changed:
        print_facts(answers(), [("differs", f"{name}: {', '.join(changed)}")])
    else:
        size = plural(made.version.recorded, "judgment")
        print_facts(answers(), [("same", f"{name}, byte for byte, of {size}")])
    return not changed


def _answer(source: JudgedSource, judged: Judged, made: Made, scoring: Scoring) -> Answer:
    found = _relabel(source, judged, made, scoring)
    rescored = found.rescored
    return Answer(
        facts=label_report.facts(found),
        tables=label_report.tables(found),
        value=label_report.value(found) | {"seed": scoring.seed},
        chart=None if rescored is None else lambda: label_chart.spec(rescored),
        title="" if rescored is None else label_chart.title(rescored),
    )


def _relabel(source: JudgedSource, judged: Judged, made: Made, scoring: Scoring) -> Relabelled:
    same = stand_for(judged.pools)
    before = _labels_before(judged)
    known = {query: docs for query, docs in judged.known.items() if query in before}
    relevant = {query: [d for d, g in grades.items() if g > 0] for query, grades in before.items()}
    pairings = {
        KNOWN: count_pairings(
            _stand({query: docs[:1] for query, docs in known.items()}, same), made.votes
        ),
        BEFORE: count_pairings(_stand(relevant, same), made.votes),
        AFTER: count_pairings(_stand(made.labels.labels, same), made.votes),
    }
    if not source.runs:
        return Relabelled(made=made, pairings=pairings, orderings={})
    runs = _read_runs(source, judged)
    measure = parse_measure(scoring.measure, path="--measure")
    after = ScoredLabels(name=AFTER, labels=grade(made.labels.labels), measure=measure)
    rng = Generator(PCG64(scoring.seed))
    redrawn = (
        redraw_labels(
            judged.pools,
            made.votes,
            draws=scoring.redraws,
            rng=rng,
            find=ALGORITHMS[made.version.algorithm],
        )
        if scoring.redraws
        else None
    )
    perfect = {PERFECT: perfect_places(known)} if known else {}
    rescored = rescore(
        runs | perfect,
        ScoredLabels(
            name=BEFORE,
            labels=before,
            measure=parse_measure(
                scoring.measure_before or scoring.measure, path="--measure-before"
            ),
        ),
        after,
        rng,
        pooled={run for pool in judged.pools for one in pool.candidates for run in one.runs},
        redrawn=redrawn,
        level=scoring.level,
        trials=scoring.trials,
    )
    with progress("leaving out runs", len(runs)) as done:
        left_out = leave_each_out(
            runs,
            judged.pools,
            made.votes,
            after,
            find=ALGORITHMS[made.version.algorithm],
            done=done,
        )
    return Relabelled(
        made=made,
        pairings=pairings,
        rescored=rescored,
        orderings={
            run: order_agreement(fold_places(places, same), made.votes, level=scoring.level)
            for run, places in runs.items()
        },
        left_out=left_out,
    )


def _labels_before(judged: Judged) -> Mapping[str, Mapping[str, int]]:
    """The labels of the pooled queries: those of the file, or the known answers of the pools."""
    pooled = {pool.query for pool in judged.pools}
    if judged.labels is None:
        return grade({query: docs for query, docs in judged.known.items() if query in pooled})
    return {query: grades for query, grades in judged.labels.items() if query in pooled}


def _stand(
    labels: Mapping[str, Sequence[str]], same: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Sequence[str]]:
    """Labels by the documents that stand for their texts."""
    return {
        query: sorted({same.get(query, {}).get(doc, doc) for doc in docs})
        for query, docs in labels.items()
    }


def _read_runs(source: JudgedSource, judged: Judged) -> dict[str, Places]:
    """Where each run has the passages of the pools and the labelled documents."""
    wanted = {
        pool.query: {doc for one in pool.candidates for doc in (one.doc, *one.same)}
        | set((judged.labels or {}).get(pool.query, ()))
        for pool in judged.pools
    }
    paths = name_runs(source.runs)
    runs: dict[str, Places] = {}
    with progress("reading runs", len(paths)) as done:
        for name, path in paths.items():
            with open_input(Path(path)) as file:
                runs[name] = read_places(file, path=path, documents=wanted, order=source.order)
            done()
    return runs
