"""`heldout survive triage` and `answerable`: people look at discarded queries."""

import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from heldout.cli.options import refuse_other_options, with_options
from heldout.cli.printing import TERMINAL, TableOutput, messages, print_answer, print_facts
from heldout.cli.serving import check_port, find_token, needs_web, run_pages
from heldout.errors import plural, quote
from heldout.options import Level, Opt, Seed
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE
from heldout.survivorship.reading.source import AnnotationSource
from heldout.survivorship.services.discarded import (
    LabelOptions,
    PoolOptions,
    check_label_options,
    count_answerable,
    count_ranks,
    count_triage,
    draw_triage,
    pool_discarded,
)

_TOKEN = "HELDOUT_ANNOTATOR_TOKEN"  # noqa: S105 - the variable's name
_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOTAL = "all"
_FORMS = {"as_json", "markdown", "latex", "explain", "every"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Whether and where pages are served."""

    serve: Annotated[bool, Opt("Pages for annotators, served until interrupted.")] = False
    host: Annotated[str, Opt("Address to listen at, for --serve.")] = "127.0.0.1"
    port: Annotated[int, Opt("Port to listen at, for --serve.", least=1, most=65_535)] = 8000


def serve_questions(folder: QuestionFolder, pages: ServeOptions) -> None:
    """Serve a folder until interrupted.

    Raises:
        StoreError: it has no questions, or cannot be written to.
        InputError: its files contradict themselves.
        SetupError: the extra `web` is not installed, the token given is too short, or nobody can
            listen there.
    """
    with needs_web():
        from heldout.survivorship.pages.annotating import (
            Annotating,
            make_annotating_app,
        )

        token, token_line = find_token(_TOKEN)
    questions, answers = folder.questions(), folder.answers()
    check_port(pages.host, pages.port)
    clock = partial(datetime.now, UTC)
    annotating = Annotating(folder=folder, key=folder.key(), token=token, clock=clock)
    facts = [
        ("questions", f"{len(questions):,}, with {plural(len(answers), 'answer')}"),
        ("pages", f"http://{pages.host}:{pages.port}/"),
        *token_line,
        ("stop", "Ctrl+C"),
    ]
    print_facts(messages(), facts)
    run_pages(make_annotating_app(annotating), pages.host, pages.port)


def _names(made_of: type[Any]) -> set[str]:
    return {one.name for one in fields(made_of)}


def _check_split(name: str) -> None:
    """Refuse a name that nobody reads well in a table, or that is that of the total."""
    if name and (not _SPLIT.fullmatch(name) or name.casefold() == _TOTAL):
        raise ValueError(
            f"{quote(name)}: up to 64 letters, digits, dots, hyphens or underscores, and not "
            f"{_TOTAL!r}, which is all splits together"
        )


@click.command
@with_options
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
    _check_triage(drawing=drawing, serving=pages.serve)
    if drawing:
        drawn = draw_triage(place, source, sample=sample, split=split, seed=seed, progress=TERMINAL)
        print_answer(drawn, output)
    if pages.serve:
        serve_questions(place, pages)
    elif not drawing:
        print_answer(count_triage(place, seed=seed, level=level), output)


def _check_triage(*, drawing: bool, serving: bool) -> None:
    """Refuse options that would be left aside.

    Raises:
        click.UsageError: an option does not belong to what is done.
    """
    allowed = {"folder", *(_names(ServeOptions) if serving else ())}
    if drawing:
        allowed |= {*_names(AnnotationSource), "seed", "sample", "split", "as_json"}
        refuse_other_options(allowed, why="queries are drawn, and counted by a call of its own")
    elif serving:
        refuse_other_options(allowed, why="pages are served")
    else:
        allowed |= {"seed", "level", *_FORMS}
        refuse_other_options(allowed, why="answers are counted; --annotations would draw queries")


@click.command
@with_options
def answerable(
    *,
    folder: Annotated[Path | None, Opt(argument=True, path="folder")] = None,
    pool: PoolOptions,
    source: AnnotationSource,
    ranks: Annotated[
        Path | None,
        Opt(
            "Table instead of a folder: scorer, query_id, doc_id, rank of the first passage that "
            "answers.",
            metavar="FILE",
            path="file",
        ),
    ] = None,
    labels: LabelOptions,
    pages: ServeOptions,
    level: Level = 0.95,
    output: TableOutput,
) -> None:
    """Could other systems have answered discarded queries? Pool them, let people look, count.

    With --runs the first passages of these systems are pooled into FOLDER, each text once, in
    random order, for queries of --triage, of the annotations, or of --queries alone. With --serve
    people say which passages answer. Otherwise what they said is counted for each system: no
    answer in its top 10, an answer there, one in its top 3; and with --labels written as labels.

    Documents below the pool are not judged: every count is a lower bound.

    \b
    Examples:
      heldout survive answerable pool --runs 'runs/*.gz' --triage triage --documents docs.tsv
      heldout survive answerable pool --serve
      heldout survive answerable pool --labels discarded
      heldout survive answerable --ranks discarded_rankings_by_model.tsv
    """
    if (folder is None) == (ranks is None):
        raise click.UsageError("which judgments? a FOLDER, or --ranks FILE")
    _check_answerable(ranks, pool, labels, pages)
    if folder is None:
        print_answer(count_ranks(ranks or Path(), depth=pool.depth, level=level), output)
        return
    place = QuestionFolder(folder, ANSWERABLE)
    if pool.runs:
        print_answer(pool_discarded(place, pool, source, TERMINAL), output)
    if pages.serve:
        serve_questions(place, pages)
    elif not pool.runs:
        counted = count_answerable(
            place, source, labels, seed=pool.seed, level=level, progress=TERMINAL
        )
        print_answer(counted, output)


def _check_answerable(
    ranks: Path | None, pool: PoolOptions, labels: LabelOptions, pages: ServeOptions
) -> None:
    """Refuse options that would be left aside, before anything is read.

    Raises:
        click.UsageError: an option does not belong to what is done.
        InputError: code `label-name`.
    """
    serve = _names(ServeOptions) if pages.serve else set()
    if ranks is not None:
        refuse_other_options({"ranks", "depth", "level", *_FORMS}, why="--ranks is judged already")
    elif pool.runs:
        pooled = {"folder", "as_json", *_names(PoolOptions), *_names(AnnotationSource), *serve}
        refuse_other_options(pooled, why="systems are pooled, and counted by a call of its own")
    elif pages.serve:
        refuse_other_options({"folder", *serve}, why="pages are served")
    else:
        check_label_options(labels)
        own = _names(LabelOptions) if labels.pseudo else {"labels"}
        own |= _names(AnnotationSource) if labels.pseudo else set()
        refuse_other_options(
            {"folder", "seed", "level", *_FORMS, *own},
            why="answers are counted; --runs would pool systems",
        )
