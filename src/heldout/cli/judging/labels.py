"""`heldout prefer labels`: labels from preferences, and every run scored again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import click
import msgspec

from heldout.answers.answer import Answer
from heldout.cli.judging.campaign import (
    Judged,
    JudgedSource,
    campaign_argument,
    count_valid,
    database_option,
    load_judged,
    opened_database,
    read_first,
)
from heldout.cli.judging.pool_source import PublishedSource, load_board_runs, published_options
from heldout.cli.judging.relabelling import Scoring, read_runs, relabel
from heldout.cli.options import add_options
from heldout.cli.printing import (
    TERMINAL,
    Output,
    answers,
    messages,
    output_options,
    print_answer,
    print_facts,
    print_json,
    reports_errors,
)
from heldout.errors import InputError, Problem, plural
from heldout.files.csv import defuse, format_csv
from heldout.files.durable import write_whole
from heldout.files.executors import open_executor
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.labels.strengths import PASSAGE_PRIOR
from heldout.judging.labels.versions import (
    Algorithm,
    LabelVersion,
    Made,
    Rules,
    differences,
    make_version,
    newest_version,
    read_version,
    rules_of,
    write_version,
)
from heldout.judging.platforms.links import personal_link
from heldout.judging.studies import labels as label_chart
from heldout.judging.studies import labels as label_report
from heldout.judging.studies.labels import Relabelled
from heldout.trec.problems import show
from heldout.trec.tops import Places


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


# `heldout prefer links`: a link of their own for each judge.

_PRIVATE = 0o600
_MOST = 100_000


def _check_root(_context: click.Context, _option: click.Parameter, root: str) -> str:
    parts = urlsplit(root)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise click.BadParameter("the address of the pages, as https://judging.example")
    return root


@click.command()
@campaign_argument
@click.option("--root", required=True, callback=_check_root, metavar="URL", help="Of the pages.")
@click.option(
    "--workers",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Ids by which people are paid, one a line.",
)
@click.option(
    "--count",
    type=click.IntRange(1, _MOST),
    metavar="N",
    help="Without a file: so many, for the ids w1, w2, …",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="CSV of ids and links [links.csv in the campaign's].",
)
@database_option
@reports_errors
def links(
    *,
    campaign: Path,
    root: str,
    workers: Path | None,
    count: int | None,
    out: Path | None,
    url: str | None,
) -> None:
    """Write a personal link for each judge, signed with the campaign's key.

    With `links = "personal"` in campaign.toml the judging pages let in nobody without one, so that
    no judge comes in the name of another, or as several. The same id has the same link at every
    call. Who has a link is that worker: send each to its own person.

    \b
    Example:
      heldout prefer links campaign --root https://judging.example --count 50
    """
    if (workers is None) == (count is None):
        raise click.UsageError("whose links? --workers FILE, or --count N")
    names = _read_ids(workers) if workers else [f"w{n}" for n in range(1, (count or 0) + 1)]
    from heldout.judging.database.campaigns import read_campaign  # noqa: PLC0415 - needs the extra

    folder = CampaignFolder(campaign)
    with opened_database(folder, url) as database:
        found = read_campaign(database)
    place = out or folder.path / "links.csv"
    rows = (
        [defuse(name), personal_link(root, found.code, key=found.key, worker=name)]
        for name in names
    )
    write_whole(place, format_csv(("worker", "link"), rows), mode=_PRIVATE)
    facts = [("written", f"{plural(len(names), 'link')} to {place}")]
    if not found.settings.signed:
        told = 'links without a signature are let in too: links = "personal" in campaign.toml'
        facts.append(("note", told))
    print_facts(answers(), facts)


def _read_ids(path: Path) -> list[str]:
    """Ids, one a line; those that stand there twice once.

    Raises:
        InputError: code `worker-id`: one cannot be seen whole or is too long, or there is none.
    """
    from heldout.judging.database.sittings import LONGEST_WORKER  # noqa: PLC0415 - needs the extra

    text = path.read_text("utf-8-sig", errors="replace")
    names, problems = dict[str, int](), []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if len(name) > LONGEST_WORKER or not name.isprintable():
            problems.append(
                Problem(
                    code="worker-id",
                    path=str(path),
                    line=number,
                    found=show(name),
                    expected=f"an id of at most {LONGEST_WORKER} visible characters",
                )
            )
        elif name:
            names[name] = number
    if problems or not names:
        raise InputError(problems or [_no_id(path)])
    return list(names)


def _no_id(path: Path) -> Problem:
    return Problem(code="worker-id", path=str(path), found="no id", expected="one a line")
