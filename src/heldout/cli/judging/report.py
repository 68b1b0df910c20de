"""`heldout prefer report`: the study's tables and figures, of any campaign."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click

from heldout.cli.files import json_option
from heldout.cli.judging.campaign import Judged, JudgedSource, load_judged, read_first
from heldout.cli.judging.pool_source import (
    PublishedSource,
    ScoredRuns,
    load_board_runs,
    published_options,
)
from heldout.cli.judging.relabelling import BEFORE, Scoring, read_runs, relabel
from heldout.cli.options import add_options, one_argument
from heldout.cli.printing import TERMINAL, answers, print_facts, print_json, reports_errors
from heldout.errors import StoreError, plural
from heldout.files.durable import Folder
from heldout.judging.campaign.judgments import pooled_tops
from heldout.judging.labels.rescoring import ScoredLabels
from heldout.judging.labels.versions import Algorithm, Rules, make_version
from heldout.judging.studies.page import Top, render_judging_report
from heldout.judging.studies.report import Given, Section, first_tops, write_sections
from heldout.scoring.spec import parse_measure
from heldout.trec.tops import Tops

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is asked of the report.

    Attributes:
        out: its folder.
        split: the run that is compared with the labels.
        examples: how many.
        algorithm: how the best of a pool are found.
    """

    out: Path | None
    split: str | None = None
    examples: int = 3
    algorithm: Algorithm | None = None


_wanted_options = one_argument(
    "wanted",
    _Wanted,
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="A new folder [report/ of the campaign].",
    ),
    click.option(
        "--split",
        metavar="RUN",
        help="The run that is compared with the labels [the best on the labels before].",
    ),
    click.option(
        "--examples",
        type=click.IntRange(0, 100),
        default=3,
        show_default=True,
        help="Judged pairs that are shown, drawn by --seed.",
    ),
    click.option(
        "--mode",
        "algorithm",
        type=click.Choice(get_args(Algorithm)),
        help="How the best of a pool are found [as `heldout prefer labels`].",
    ),
)


@click.command
@add_options("source", JudgedSource)
@published_options
@_wanted_options
@add_options("scoring", Scoring)
@json_option
@reports_errors
def report(
    *,
    source: JudgedSource,
    board: PublishedSource,
    wanted: _Wanted,
    scoring: Scoring,
    as_json: bool,
) -> None:
    """Write all that a campaign tells into a folder: tables, pictures, and judged pairs.

    A page (index.html), the same as report.md and report.json, every table as CSV and LaTeX, and
    every picture as SVG. Pairs are drawn by --seed, without a look at what people said of them.
    With --runs every run is scored on the labels before and on the preference labels; with --board
    every published run of a board, out of its vault, and by its labels. The folder holds judgments,
    texts and scores: it is as private as the campaign and the vault.

    \b
    Examples:
      heldout prefer report campaign --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer report campaign --board kb --vault kb-vault
      heldout prefer report --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels --out report
    """
    out = _choose_folder(source, wanted.out)
    if board.folder is None:
        tops = read_first(source, depth=2, progress=TERMINAL)
        judged = load_judged(source, tops=first_tops(tops), progress=TERMINAL)
        runs = ScoredRuns(tops=tops, places=read_runs(source, judged, progress=TERMINAL))
    else:
        judged, runs = load_board_runs(source, board)
    sections = _write(judged, runs, wanted=wanted, scoring=scoring)
    name, language = _describe(source, judged)
    files = render_judging_report(
        Top(name=name, words=_words(judged, scoring), language=language), sections
    )
    for path, data in sorted(files.items()):
        Folder(out).write_whole(path, data, mode=_PRIVATE)
    _tell(out, sections, sorted(files), as_json=as_json)


def _choose_folder(source: JudgedSource, out: Path | None) -> Path:
    """Where the report goes.

    Raises:
        click.UsageError: neither a folder nor a campaign was named.
        StoreError: the folder holds files.
    """
    if out is None and source.judgments is not None and source.campaign is None:
        raise click.UsageError("where does the report go? name a folder with --out")
    chosen = out or (source.campaign or Path()) / "report"
    if chosen.is_dir() and any(chosen.iterdir()):
        raise StoreError(f"{chosen} holds files already; name a new folder with --out")
    return chosen


def _write(
    judged: Judged,
    runs: ScoredRuns,
    *,
    wanted: _Wanted,
    scoring: Scoring,
) -> tuple[Section, ...]:
    rules = judged.rules
    if wanted.algorithm is not None:
        rules = Rules(
            algorithm=wanted.algorithm,
            exclusion=rules.exclusion,
            failures=rules.failures,
            until=rules.until,
        )
    made = make_version("report", judged.pools, judged.judgments, rules)
    measure = parse_measure(scoring.measure_before or scoring.measure, path="--measure-before")
    given = Given(
        pools=judged.pools,
        judgments=judged.judgments,
        rules=rules,
        known=judged.known,
        tops=runs.tops or _pooled(judged),
        places={} if judged.labels is None else runs.places,
        before=None
        if judged.labels is None
        else ScoredLabels(name=BEFORE, labels=judged.labels, measure=measure),
        relabelled=relabel(judged, made, scoring, runs.places, progress=TERMINAL),
        split=wanted.split,
        count=wanted.examples,
        seed=scoring.seed,
        level=scoring.level,
    )
    return tuple(write_sections(given))


def _pooled(judged: Judged) -> Mapping[str, Tops]:
    """First documents as the campaign's pools have them; none without a campaign."""
    return {} if judged.folder is None else pooled_tops(judged.pools)


def _describe(source: JudgedSource, judged: Judged) -> tuple[str, str]:
    """Name of what is reported, and the language of its texts."""
    if judged.folder is not None:
        settings = judged.folder.settings()
        return settings.name, settings.language
    return ("judgments" if source.judgments is None else source.judgments.name), "en"


def _words(judged: Judged, scoring: Scoring) -> str:
    until = f" up to {judged.rules.until}" if judged.rules.until else ""
    return (
        f"{plural(len(judged.judgments), 'judgment')}{until}, "
        f"{plural(len(judged.pools), 'query', 'queries')}; seed {scoring.seed}. Private: it holds "
        "judgments, texts and scores."
    )


def _tell(out: Path, sections: tuple[Section, ...], files: list[str], *, as_json: bool) -> None:
    missing = {one.name: one.why_not for one in sections if one.why_not}
    if as_json:
        print_json({"folder": str(out), "files": files, "not_made": missing})
        return
    facts = [("report", str(out / "index.html")), ("files", f"{len(files):,}")]
    facts += [("not made", f"{name}: {why}") for name, why in missing.items()]
    print_facts(answers(), facts)
