"""`heldout prefer labels`: labels from preferences, and every run scored again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click
import msgspec

from heldout.answers.answer import Answer
from heldout.cli.options import add_options
from heldout.cli.prefer.board_runs import PublishedSource, load_board_runs, published_options
from heldout.cli.prefer.judged import (
    Judged,
    JudgedSource,
    count_valid,
    load_judged,
    read_first,
)
from heldout.cli.prefer.relabelling import (
    Scoring,
    read_runs,
    relabel,
)
from heldout.cli.printing import (
    TERMINAL,
    answers,
    messages,
    plural,
    print_facts,
    print_json,
    reports_errors,
)
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.preferences.strengths import PASSAGE_PRIOR
from heldout.preferences.versions import (
    Algorithm,
    LabelVersion,
    Made,
    Rules,
    differences,
    make_version,
    rules_of,
)
from heldout.report import label_chart
from heldout.report import labels as label_report
from heldout.report.labels import Relabelled
from heldout.store.compute import open_executor
from heldout.store.label_files import newest_version, read_version, write_version
from heldout.trec.places import Places


@click.command
@add_options("source", JudgedSource)
@published_options
@click.option(
    "--mode",
    "algorithm",
    type=click.Choice(get_args(Algorithm)),
    help="How the best of a pool are found [tournament, or what the campaign's mode needs].",
)
@click.option(
    "--prior",
    type=click.FloatRange(min=0, min_open=True),
    metavar="P",
    help=f"Precision of the prior of --mode bradley-terry [{PASSAGE_PRIOR:g}].",
)
@click.option("--name", metavar="NAME", help="Of the version [v1, v2, … in turn].")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where versions lie [labels/ of the campaign; nowhere without one].",
)
@click.option("--rebuild", metavar="NAME", help="Make a version again and compare the bytes.")
@add_options("scoring", Scoring)
@output_options
@click.pass_context
@reports_errors
def labels(
    context: click.Context,
    *,
    source: JudgedSource,
    board: PublishedSource,
    algorithm: Algorithm | None,
    prior: float | None,
    name: str | None,
    out: Path | None,
    rebuild: str | None,
    scoring: Scoring,
    output: Output,
) -> None:
    """Make labels from preferences, as a new version, and score every run on them.

    The best passages of each query, by a tournament or as --mode says, are its labels. A version
    says what it is made of and can be made again byte for byte; judgments that came later change
    nothing. With --runs every run is scored on the labels before and on these, and without what
    each run alone contributed; with --board every published run of a board, out of its vault, and
    by its labels. What is printed is then as private as the vault.

    \b
    Examples:
      heldout prefer labels campaign --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer labels campaign --board kb --vault kb-vault
      heldout prefer labels campaign --until 2026-11-01 --name november
      heldout prefer labels campaign --rebuild v1
    """
    if rebuild is not None:
        judged = _load(source)
        if not _rebuild(_folder(_versions(judged, out)), rebuild, judged, as_json=output.as_json):
            context.exit(1)
        return
    judged, runs = _load_runs(source, board)
    folder = _versions(judged, out)
    made = _make(judged, _choose_rules(judged.rules, algorithm, prior), name, folder)
    written = folder is not None and write_version(folder, made)
    print_answer(_answer(relabel(judged, made, scoring, runs, progress=TERMINAL), scoring), output)
    if folder is not None:
        place = folder / f"{made.version.name}.qrels"
        print_facts(messages(), [("written" if written else "as before", str(place))])


def _load(source: JudgedSource) -> Judged:
    return load_judged(
        source,
        tops=read_first(source, progress=TERMINAL) if source.judgments is not None else {},
        progress=TERMINAL,
    )


def _load_runs(source: JudgedSource, board: PublishedSource) -> tuple[Judged, Mapping[str, Places]]:
    """Judgments that count, and where each run has what scores depend on."""
    if board.folder is None:
        judged = _load(source)
        count_valid(judged)
        return judged, read_runs(source, judged, progress=TERMINAL)
    judged, runs = load_board_runs(source, board)
    count_valid(judged)
    return judged, runs.places


def _choose_rules(rules: Rules, algorithm: Algorithm | None, prior: float | None) -> Rules:
    """The rules that were asked for.

    Raises:
        click.UsageError: a prior of an algorithm that has none.
    """
    chosen = rules if algorithm is None else replace(rules, algorithm=algorithm)
    if chosen.algorithm == "bradley-terry":
        return replace(chosen, prior=PASSAGE_PRIOR if prior is None else prior)
    if prior is not None:
        raise click.UsageError(f"--prior is of --mode bradley-terry; {chosen.algorithm} has none")
    return chosen


def _versions(judged: Judged, out: Path | None) -> Path | None:
    """Where versions lie."""
    return out or (None if judged.folder is None else judged.folder.labels)


def _folder(folder: Path | None) -> Path:
    if folder is None:
        raise click.UsageError("where do versions lie? name a campaign, or --out DIR")
    return folder


@open_executor(jobs=1)
def _make(judged: Judged, rules: Rules, name: str | None, folder: Path | None) -> Made:
    """The labels; the newest version again where nothing is new and no other name is asked for."""
    newest = None if folder is None else newest_version(folder)
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
    """The same under another's name; one of before the prior was recorded has the usual one."""
    same = like.prior is None and version.prior == PASSAGE_PRIOR
    prior = None if same else version.prior
    return msgspec.structs.replace(version, name=like.name, parent=like.parent, prior=prior)


def _next_name(folder: Path | None) -> str:
    taken = {path.stem for path in folder.glob("*.json")} if folder is not None else set()
    return next(name for n in range(1, len(taken) + 2) if (name := f"v{n}") not in taken)


@open_executor(jobs=1)
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


def _answer(found: Relabelled, scoring: Scoring) -> Answer:
    rescored = found.rescored
    return Answer(
        facts=label_report.facts(found),
        tables=label_report.tables(found),
        value=label_report.value(found) | {"seed": scoring.seed},
        chart=None if rescored is None else lambda: label_chart.spec(rescored),
        title="" if rescored is None else label_chart.title(rescored),
    )
