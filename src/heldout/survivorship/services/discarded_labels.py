"""Labels for discarded queries on disk: of people, and, where they are asked for, pseudo-labels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import digest_bytes
from heldout.judging.campaign.rows import format_rows
from heldout.options import Opt, OptionError
from heldout.progress import SILENT, Progress
from heldout.scoring.run_files import run_name
from heldout.survivorship.discarded.folder import PoolRecord, QuestionFolder
from heldout.survivorship.discarded.judging import Judged, judged_passages
from heldout.survivorship.discarded.labels import (
    PSEUDO,
    LabelSource,
    MadeLabels,
    PseudoSource,
    human_labels,
)
from heldout.survivorship.discarded.pseudo_labels import mixed_labels, pseudo_labels
from heldout.survivorship.discarded.questions import CANNOT, Answer, Question
from heldout.survivorship.reading.source import AnnotationSource
from heldout.survivorship.services.discarded import digest_file, read_discarded
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Tops, read_tops

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """What labels are written."""

    labels: Annotated[
        str | None,
        Opt("Name of labels of what people judged: FOLDER/labels/NAME.qrels.", metavar="NAME"),
    ] = None
    pseudo: Annotated[
        Path | None,
        Opt(
            "Run whose first documents become pseudo-labels of queries nobody judged: "
            "NAME.pseudo.qrels.",
            metavar="RUN",
            path="file",
        ),
    ] = None
    pseudo_depth: Annotated[
        int, Opt("Number of first documents of that run.", least=1, most=100)
    ] = 1
    with_pseudo: Annotated[
        bool, Opt("A file with both, each line marked: NAME.with-pseudo.qrels.")
    ] = False


def write_discarded_labels(
    folder: QuestionFolder,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    options: LabelOptions,
    source: AnnotationSource,
    *,
    progress: Progress = SILENT,
) -> None:
    """Write labels of what annotators answered, if so asked, and report what was written.

    Pseudo-labels are for the discarded queries of the annotations where these are named, else for
    those of the folder.

    Raises:
        InputError: code `no-judgments`: nobody judged; a file has errors.
        StoreError: there are other labels of this name; nothing was written.
    """
    if options.labels is None:
        return
    judged = judged_passages(questions, answers)
    _check_judged(folder, judged)
    own = _source(folder.pool(), questions, answers)
    made = [human_labels(judged, own, name=options.labels)]
    if options.pseudo is not None:
        system = PseudoSource(
            system=run_name(str(options.pseudo)),
            run_sha256=digest_file(options.pseudo),
            depth=options.pseudo_depth,
        )
        tops, open_ = (
            _read(options.pseudo, options.pseudo_depth),
            _unjudged(questions, judged, source, progress),
        )
        made.append(pseudo_labels(tops, open_, system, name=options.labels))
        if options.with_pseudo:
            made.append(mixed_labels(judged, own, tops, open_, system, name=options.labels))
    for place, one in zip(folder.write_labels(made), made, strict=True):
        _report(place, one, progress)


def check_label_options(options: LabelOptions) -> None:
    """Refuse what cannot be written before anything is read.

    Raises:
        OptionError: pseudo-labels without a name, or both without a run.
        InputError: code `label-name`: the name is a path, or looks like that of pseudo-labels.
    """
    if options.labels is None:
        if options.pseudo is not None:
            raise OptionError("--labels NAME: what the files are to be called")
        return
    if options.with_pseudo and options.pseudo is None:
        raise OptionError("--with-pseudo needs --pseudo RUN")
    _check_name(options.labels)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or PSEUDO in name.casefold():
        raise InputError(
            Problem(
                code="label-name",
                path="--labels",
                found=quote(name),
                expected=f"up to 64 letters, digits, hyphens or underscores, without {PSEUDO!r}",
            )
        )


def _check_judged(folder: QuestionFolder, judged: Mapping[str, Judged]) -> None:
    if not judged:
        raise InputError(
            Problem(
                code="no-judgments",
                path=str(folder.answered),
                found="no query that somebody judged",
                expected="at least one",
                hint=f"`heldout survive answerable {folder.path} --serve` asks people",
            )
        )


def _source(
    pool: PoolRecord, questions: Sequence[Question], answers: Sequence[Answer]
) -> LabelSource:
    # Of the rows as they were read: people may go on answering
    return LabelSource(
        annotators=tuple(sorted({one.annotator for one in answers if one.choice != CANNOT})),
        depth=pool.depth,
        systems=tuple(pool.runs_sha256),
        questions_sha256=digest_bytes(format_rows(questions)),
        answers_sha256=digest_bytes(format_rows(answers)),
    )


def _unjudged(
    questions: Sequence[Question],
    judged: Mapping[str, Judged],
    source: AnnotationSource,
    progress: Progress,
) -> list[str]:
    if not source.named:
        names = [one.query for one in questions]
    else:
        names = [str(one.query) for one in read_discarded(source, progress=progress)]
    return [name for name in names if name not in judged]


def _read(path: Path, depth: int) -> Tops:
    with open_input(path) as file:
        return read_tops(file, path=str(path), depth=depth, limits=OWN_FILES)


def _report(path: Path, made: MadeLabels, progress: Progress) -> None:
    record = made.record
    lines = f"{plural(record.human, 'judgment')} by people"
    if record.pseudo:
        lines += f", {plural(record.pseudo, 'pseudo-label')} that nobody judged"
    queries = plural(record.queries, "query", "queries")
    progress.note("labels", f"{path}: {queries}, {record.answered:,} with an answer")
    progress.note("", lines)
    if record.disputed:
        documents = plural(record.disputed, "document")
        progress.note("disputed", f"{documents}, ticked by just half of their annotators: no line")
