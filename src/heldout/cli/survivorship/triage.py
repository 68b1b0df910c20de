"""`heldout survive triage`: why were queries discarded?"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.options import refuse_other_options, with_options
from heldout.cli.printing import (
    TERMINAL,
    TableOutput,
    messages,
    print_answer,
    print_facts,
    print_json,
    print_problems,
)
from heldout.cli.printing import answers as answers_console
from heldout.cli.survivorship.answerable import ServeOptions, serve_questions
from heldout.errors import plural, quote
from heldout.options import Level, Opt, Seed
from heldout.survivorship.discarded import triage as report
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import TRIAGE, note_long_passages
from heldout.survivorship.discarded.triage import count_labels, draw_discarded, triage_agreement
from heldout.survivorship.reading.source import AnnotationSource, read_source

_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOTAL = "all"
_SOURCE = {one.name for one in fields(AnnotationSource)}
_SERVE = {one.name for one in fields(ServeOptions)}


def _check_split(name: str) -> None:
    """Refuse a name that nobody reads well in a table, or that is that of the total."""
    if name and (not _SPLIT.fullmatch(name) or name.casefold() == _TOTAL):
        raise ValueError(
            f"{quote(name)}: up to 64 letters, digits, dots, hyphens or underscores, and not "
            f"{_TOTAL!r}, which is all splits together"
        )


@click.command
@with_options
@reports_disk
def triage(
    *,
    folder: Annotated[Path, Opt(argument=True, path="folder")],
    source: AnnotationSource,
    sample: Annotated[int, Opt("Number of discarded queries to draw.", least=1)] = 100,
    split: Annotated[
        str, Opt("Name of their split, such as dev or train.", metavar="NAME", check=_check_split)
    ] = "",
    seed: Seed = 0,
    pages: ServeOptions,
    level: Level = 0.95,
    output: TableOutput,
) -> None:
    """Why were queries discarded? Draw some, let people look, count what they say.

    With --annotations, or --shown and --qrels, discarded queries are drawn into FOLDER; called
    again, more of them, of the same --split or another. With --serve people see each query with
    what was shown, and give one of four labels: no_ans, partial_ans, wrong_lab, ill_form. Otherwise
    what they said is counted, by split and with intervals, and how far they agree.

    \b
    Examples:
      heldout survive triage triage --annotations dev.json.gz --split dev --sample 100
      heldout survive triage triage --serve
      heldout survive triage triage
    """
    place = QuestionFolder(folder, TRIAGE)
    drawing = source.named
    _check_given(drawing=drawing, serving=pages.serve)
    if drawing:
        _draw(place, source, sample=sample, split=split, seed=seed, output=output)
    if pages.serve:
        serve_questions(place, pages)
    elif not drawing:
        _report(place, seed=seed, level=level, output=output)


def _check_given(*, drawing: bool, serving: bool) -> None:
    """Refuse options that would be left aside.

    Raises:
        click.UsageError: an option does not belong to what is done.
    """
    allowed = {"folder", "seed", *(_SERVE if serving else ())}
    if drawing:
        allowed |= {*_SOURCE, "sample", "split", "as_json"}
        refuse_other_options(allowed, why="queries are drawn, and counted by a call of its own")
    elif serving:
        refuse_other_options(allowed - {"seed"}, why="pages are served")
    else:
        allowed |= {"level", "as_json", "markdown", "latex"}
        refuse_other_options(allowed, why="answers are counted; --annotations would draw queries")


def _draw(
    folder: QuestionFolder,
    source: AnnotationSource,
    *,
    sample: int,
    split: str,
    seed: int,
    output: TableOutput,
) -> None:
    annotations = read_source(source, texts=True, progress=TERMINAL)
    before = folder.questions() if folder.exists() else ()
    drawn = draw_discarded(
        annotations,
        count=sample,
        rng=np.random.default_rng(seed),
        split=split,
        known={one.query for one in before if one.split == split},
    )
    total = folder.add(drawn)
    print_problems(messages(), note_long_passages(drawn, path=str(folder.place)))
    if output.as_json:
        print_json(
            {
                "folder": str(folder.path),
                "drawn": len(drawn),
                "discarded": annotations.discarded,
                "split": split,
                "seed": seed,
                "questions": len(total),
            }
        )
        return
    of = f"of {annotations.discarded:,} discarded" if annotations.discarded else ""
    facts = [
        ("drawn", f"{plural(len(drawn), 'query', 'queries')} {of}, seed {seed}"),
        ("folder", f"{folder.place}: {plural(len(total), 'question')}"),
        ("next", f"heldout survive triage {folder.path} --serve"),
    ]
    print_facts(answers_console(), facts)


def _report(folder: QuestionFolder, *, seed: int, level: float, output: TableOutput) -> None:
    questions = folder.questions()
    given = folder.answers()
    found = count_labels(questions, given, level=level)
    agreement = triage_agreement(given, np.random.default_rng(seed), level=level)
    print_answer(
        Answer(
            facts=report.facts(found, agreement),
            tables=report.tables(found, agreement, level=level),
            value=report.value(found, agreement, level=level),
        ),
        output,
    )
