"""Labels from preferences as a new version, what they change, and the report on a campaign."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from heldout.errors import OptionError, StoreError, plural
from heldout.files.durable import Folder
from heldout.files.executors import open_executor
from heldout.judging.campaign.judgments import pooled_tops
from heldout.judging.labels.labels import (
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
from heldout.judging.labels.rescoring import ScoredLabels
from heldout.judging.labels.source import Judged, JudgedSource, count_valid, load_judged, read_first
from heldout.judging.labels.strengths import PASSAGE_PRIOR
from heldout.judging.services.boards import PublishedSource, ScoredRuns, open_set
from heldout.judging.services.relabelling import (
    BEFORE,
    Scoring,
    documents_to_find,
    read_runs,
    relabel,
)
from heldout.judging.studies.labels import Relabelled
from heldout.options import Opt
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.names import read_own_measure

if TYPE_CHECKING:
    from heldout.judging.studies.report import Section

_PRIVATE = 0o600


_Mode = Annotated[
    Algorithm | None,
    Opt(
        "Way to find the best of a pool [tournament, or what the campaign's mode needs].",
        names=("--mode",),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """How labels are made, and where versions of them lie."""

    algorithm: _Mode = None
    prior: Annotated[
        float | None,
        Opt(
            f"Precision of the prior of --mode bradley-terry [{PASSAGE_PRIOR:g}].",
            above=0,
            metavar="P",
        ),
    ] = None
    name: Annotated[str | None, Opt("Name of the version [v1, v2, … in turn].", metavar="NAME")] = (
        None
    )
    out: Annotated[
        Path | None,
        Opt(
            "Folder of versions [labels/ of the campaign; nowhere without one].",
            metavar="DIR",
            path="folder",
        ),
    ] = None
    rebuild: Annotated[
        str | None, Opt("Version to make again and compare byte by byte.", metavar="NAME")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the report on a campaign shows."""

    out: Annotated[
        Path | None,
        Opt(
            "New folder for the report [report/ of the campaign].", metavar="FOLDER", path="folder"
        ),
    ] = None
    split: Annotated[
        str | None,
        Opt("Run to compare with the labels [the best on the labels before].", metavar="RUN"),
    ] = None
    examples: Annotated[
        int, Opt("Number of judged pairs to show, drawn by --seed.", least=0, most=100)
    ] = 3
    algorithm: _Mode = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLabels:
    """Labels that were made.

    Attributes:
        found: what they change.
        path: of the version; `None` where there is no folder for it.
        written: whether it is new.
    """

    found: Relabelled
    path: Path | None
    written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A version that was made again.

    Attributes:
        name: of the version.
        changed: what differs from the files; nothing where it is the same.
        recorded: judgments that it is made of.
    """

    name: str
    changed: tuple[str, ...]
    recorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """A report that was written.

    Attributes:
        folder: where.
        sections: of it.
        files: names in the folder, sorted.
    """

    folder: Path
    sections: "tuple[Section, ...]"
    files: tuple[str, ...]


def make_labels(
    source: JudgedSource,
    published: PublishedSource,
    options: LabelOptions,
    scoring: Scoring,
    *,
    now: datetime,
    progress: Progress = SILENT,
) -> NewLabels:
    """Make a version of the labels, and score every run on them.

    Args:
        source: judgments and runs.
        published: a board, instead of run files.
        options: how labels are made.
        scoring: how runs are scored.
        now: the time, UTC.
        progress: counts runs and queries.

    Raises:
        OptionError: options that contradict each other.
        InputError: a file has errors, or code `no-judgments`.
        StoreError: no board, vault or campaign there.
        TrustError: a published run does not open.
    """
    if published.board is None:
        judged = _load(source, progress)
        count_valid(judged)
        runs = read_runs(source, judged, progress=progress)
    else:
        judged, scored = _load_board(source, published, now=now, progress=progress)
        count_valid(judged)
        runs = scored.places
    folder = _versions(judged, options.out)
    made = _make(judged, choose_rules(judged.rules, options), options.name, folder)
    return NewLabels(
        written=folder is not None and write_version(folder, made),
        found=relabel(judged, made, scoring, runs, progress=progress),
        path=None if folder is None else folder / f"{made.version.name}.qrels",
    )


@open_executor(jobs=1)
def rebuild_labels(
    source: JudgedSource, options: LabelOptions, name: str, *, progress: Progress = SILENT
) -> Rebuilt:
    """Make a version again, of the judgments that it names.

    Raises:
        OptionError: nothing says where versions lie.
        StoreError: there is no such version.
        InputError: a file has errors.
    """
    judged = _load(source, progress)
    folder = _versions(judged, options.out)
    if folder is None:
        raise OptionError("where do versions lie? name a campaign, or --out DIR")
    before = read_version(folder, name)
    made = make_version(
        name, judged.pools, judged.judgments, rules_of(before), parent=before.parent
    )
    return Rebuilt(
        name=name,
        changed=tuple(differences(before, made.version)),
        recorded=made.version.recorded,
    )


def write_report(
    source: JudgedSource,
    published: PublishedSource,
    options: ReportOptions,
    scoring: Scoring,
    *,
    now: datetime,
    progress: Progress = SILENT,
) -> WrittenReport:
    """Write all that is known of a campaign into a folder; arguments as of `make_labels`.

    Raises:
        OptionError, InputError, StoreError, TrustError: as `make_labels`; the folder holds files.
    """
    from heldout.judging.studies import page, report  # noqa: PLC0415 - only the report needs them

    out = _choose_folder(source, options.out)
    if published.board is None:
        tops = read_first(source, depth=2, progress=progress)
        judged = load_judged(source, tops=report.first_tops(tops), progress=progress)
        runs = ScoredRuns(tops=tops, places=read_runs(source, judged, progress=progress))
    else:
        judged, runs = _load_board(source, published, now=now, progress=progress)
    sections = _sections(judged, runs, options=options, scoring=scoring, progress=progress)
    name, language = _describe(source, judged)
    until = f" up to {judged.rules.until}" if judged.rules.until else ""
    size = f"{plural(len(judged.judgments), 'judgment')}{until}"
    queries = f"{plural(len(judged.pools), 'query', 'queries')}; seed {scoring.seed}"
    private = "Private: it holds judgments, texts and scores."
    top = page.Top(name=name, words=f"{size}, {queries}. {private}", language=language)
    files = page.render_judging_report(top, sections)
    for path, data in sorted(files.items()):
        Folder(out).write_whole(path, data, mode=_PRIVATE)
    return WrittenReport(folder=out, sections=sections, files=tuple(sorted(files)))


def _load(source: JudgedSource, progress: Progress) -> Judged:
    tops = read_first(source, progress=progress) if source.judgments is not None else {}
    return load_judged(source, tops=tops, progress=progress)


def _load_board(
    source: JudgedSource, published: PublishedSource, *, now: datetime, progress: Progress
) -> tuple[Judged, ScoredRuns]:
    """A campaign with a board's own labels, and the board's published runs."""
    if source.runs or source.qrels or source.judgments:
        raise OptionError(
            "--board has runs and labels, and needs a campaign: name no --runs, --qrels or "
            "--judgments with it"
        )
    board = open_set(published, now=now)
    judged = load_judged(source, labels=board.data.judgments(None), progress=progress)
    return judged, board.read_runs(documents_to_find(judged), progress=progress)


def choose_rules(rules: Rules, options: LabelOptions) -> Rules:
    """The rules that were asked for.

    Args:
        rules: of the campaign, or those that hold without one.
        options: name an algorithm, and its prior.

    Raises:
        OptionError: a prior of an algorithm that has none.
    """
    chosen = rules if options.algorithm is None else replace(rules, algorithm=options.algorithm)
    if chosen.algorithm == "bradley-terry":
        return replace(chosen, prior=PASSAGE_PRIOR if options.prior is None else options.prior)
    if options.prior is not None:
        raise OptionError(f"--prior belongs to --mode bradley-terry; {chosen.algorithm} has none")
    return chosen


def _versions(judged: Judged, out: Path | None) -> Path | None:
    """Where versions lie."""
    return out or (None if judged.folder is None else judged.folder.labels)


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


def _choose_folder(source: JudgedSource, out: Path | None) -> Path:
    """Where the report goes.

    Raises:
        OptionError: neither a folder nor a campaign was named.
        StoreError: the folder holds files.
    """
    if out is None and source.judgments is not None and source.campaign is None:
        raise OptionError("where does the report go? name a folder with --out")
    chosen = out or (source.campaign or Path()) / "report"
    if chosen.is_dir() and any(chosen.iterdir()):
        raise StoreError(f"{chosen} holds files already; name a new folder with --out")
    return chosen


def _sections(
    judged: Judged,
    runs: ScoredRuns,
    *,
    options: ReportOptions,
    scoring: Scoring,
    progress: Progress,
) -> "tuple[Section, ...]":
    rules = judged.rules
    if options.algorithm is not None:
        rules = replace(rules, algorithm=options.algorithm)
    made = make_version("report", judged.pools, judged.judgments, rules)
    measure = read_own_measure(scoring.measure_before or scoring.measure, path="--measure-before")
    from heldout.judging.studies.report import Given, write_sections  # noqa: PLC0415 - large

    given = Given(
        judged=replace(judged, rules=rules),
        tops=runs.tops or ({} if judged.folder is None else pooled_tops(judged.pools)),
        places={} if judged.labels is None else runs.places,
        before=None
        if judged.labels is None
        else ScoredLabels(name=BEFORE, labels=judged.labels, measure=measure),
        relabelled=relabel(judged, made, scoring, runs.places, progress=progress),
        split=options.split,
        count=options.examples,
        seed=scoring.seed,
        level=scoring.level,
    )
    return tuple(write_sections(given))


def _describe(source: JudgedSource, judged: Judged) -> tuple[str, str]:
    """Name of what is reported, and the language of its texts."""
    if judged.folder is not None:
        settings = judged.folder.settings()
        return settings.name, settings.language
    return ("judgments" if source.judgments is None else source.judgments.name), "en"
