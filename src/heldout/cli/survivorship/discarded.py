"""`heldout survive triage` and `answerable`: people look at discarded queries."""

import os
import re
import secrets
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from heldout.answers.answer import Answer
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
from heldout.cli.serving import check_port
from heldout.errors import SetupError, plural, printable, quote
from heldout.options import Level, Opt, Seed
from heldout.survivorship.discarded import answerable as reach_report
from heldout.survivorship.discarded import triage as triage_report
from heldout.survivorship.discarded.answerable import (
    FirstRanks,
    compare_reach,
    deepest_rank,
    first_ranks,
    reach,
    read_first_ranks,
)
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.judging import judge_agreement, judged_passages
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE, note_long_passages
from heldout.survivorship.discarded.triage import count_labels, draw_discarded, triage_agreement
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.services.discarded import PoolOptions, pool_discarded
from heldout.survivorship.services.discarded_labels import (
    LabelOptions,
    check_label_options,
    write_discarded_labels,
)
from heldout.trec.reading.sources import open_input

_TOKEN = "HELDOUT_ANNOTATOR_TOKEN"  # noqa: S105 - the variable's name
_GRACE_SECONDS = 10


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
    try:
        import uvicorn  # noqa: PLC0415 - only for this

        from heldout.judging.pages.app import utc_now  # noqa: PLC0415 - the same
        from heldout.survivorship.pages.annotating import (  # noqa: PLC0415 - the same
            Annotating,
            make_annotating_app,
        )
        from heldout.web.guard import check_token, server_options  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        raise SetupError(
            f"the pages need {error.name}, which is not installed; pip install 'heldout[web]'"
        ) from error
    given = os.environ.get(_TOKEN, "")
    token = check_token(given) if given else secrets.token_urlsafe(24)
    questions = folder.questions()
    answers = folder.answers()
    check_port(pages.host, pages.port)
    annotating = Annotating(folder=folder, key=folder.key(), token=token, clock=utc_now)
    facts = [
        ("questions", f"{len(questions):,}, with {plural(len(answers), 'answer')}"),
        ("pages", f"http://{pages.host}:{pages.port}/"),
    ]
    if not given:  # one that was given is known, and logs are read by others
        facts.append(("token", token))
    facts.append(("stop", "Ctrl+C"))
    print_facts(messages(), facts)
    uvicorn.run(
        make_annotating_app(annotating),
        host=pages.host,
        port=pages.port,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        **server_options(),
    )


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
        _draw(place, source, sample=sample, split=split, seed=seed, output=output)
    if pages.serve:
        serve_questions(place, pages)
    elif not drawing:
        _report(place, seed=seed, level=level, output=output)


def _check_triage(*, drawing: bool, serving: bool) -> None:
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
            summary=triage_report.facts(found, agreement),
            tables=triage_report.tables(found, agreement, level=level),
            document=triage_report.value(found, agreement, level=level),
        ),
        output,
    )


_ALSO = (3,)
_FORMS = {"as_json", "markdown", "latex"}


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

    What lies below the pool nobody judged: every count is a lower bound.

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
        with open_input(ranks or Path()) as file:
            table = read_first_ranks(file, path=str(ranks))
        note = reach_report.unseen_note(pool.depth, deepest_rank(table), path=printable(str(ranks)))
        print_answer(_answer(table, depth=pool.depth, level=level, note=note), output)
        return
    place = QuestionFolder(folder, ANSWERABLE)
    if pool.runs:
        _pool(place, pool, source, output)
    if pages.serve:
        serve_questions(place, pages)
    elif not pool.runs:
        _count(place, source, labels, seed=pool.seed, level=level, output=output)


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


def _names(made_of: type[Any]) -> set[str]:
    return {one.name for one in fields(made_of)}


def _pool(
    folder: QuestionFolder, pool: PoolOptions, source: AnnotationSource, output: TableOutput
) -> None:
    questions = pool_discarded(folder, pool, source, TERMINAL)
    print_problems(messages(), note_long_passages(questions, path=str(folder.place)))
    passages = sum(len(one.passages) for one in questions)
    if output.as_json:
        print_json(
            {
                "folder": str(folder.path),
                "queries": len(questions),
                "passages": passages,
                "depth": pool.depth,
                "seed": pool.seed,
            }
        )
        return
    mean = passages / len(questions)
    facts = [
        ("pooled", f"{plural(len(questions), 'query', 'queries')}, {passages:,} passages"),
        ("", f"{mean:.1f} a query on average, each text once, in random order"),
        ("folder", str(folder.place)),
        ("next", f"heldout survive answerable {folder.path} --serve"),
    ]
    print_facts(answers_console(), facts)


def _count(
    folder: QuestionFolder,
    source: AnnotationSource,
    labels: LabelOptions,
    *,
    seed: int,
    level: float,
    output: TableOutput,
) -> None:
    questions = folder.questions()
    given = folder.answers()
    judged = judged_passages(questions, given)
    write_discarded_labels(folder, questions, given, labels, source, progress=TERMINAL)
    judging = judge_agreement(questions, given, np.random.default_rng(seed), level=level)
    ranks = first_ranks(judged, folder.tops())
    found = _answer(ranks, depth=folder.pool().depth, level=level)
    facts = (*reach_report.judging_facts(judging), *found.summary)
    value = {**found.document, "judging": reach_report.judging_value(judging)}
    print_answer(replace(found, summary=facts, document=value), output)


def _answer(ranks: FirstRanks, *, depth: int, level: float, note: str = "") -> Answer:
    found = reach(ranks, depth=depth, also=_ALSO, level=level)
    pairs = compare_reach(ranks, depth=depth, also=_ALSO)
    return Answer(
        summary=reach_report.facts(found, pairs, note=note),
        tables=reach_report.tables(found, pairs, level=level, note=note),
        document=reach_report.value(found, pairs, level=level, note=note),
    )
