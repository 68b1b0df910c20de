"""What is made of judgments: labels, contests, strengths, a report; a model that judges too."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click

from heldout.cli.options import command
from heldout.cli.printing import (
    TERMINAL,
    Output,
    answers,
    messages,
    print_answer,
    print_facts,
    print_json,
)
from heldout.errors import InputError, OptionError, plural
from heldout.judging.campaign import judgments, pools
from heldout.judging.campaign.files import CampaignFolder, CampaignPath
from heldout.judging.labels.source import Judged, JudgedSource, count_valid, load_judged, read_first
from heldout.judging.models.asking import ModelOptions, judge_by_model
from heldout.judging.services.boards import PublishedSource
from heldout.judging.services.labels import (
    LabelOptions,
    ReportOptions,
    Scoring,
    make_labels,
    rebuild_labels,
    write_report,
)
from heldout.judging.studies import categories, judges
from heldout.judging.studies.contests import compare_by_contests, compare_strengths
from heldout.options import Json, Level, Opt, Seed
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops


@command
@click.pass_context
def labels(
    context: click.Context,
    *,
    source: JudgedSource,
    published: PublishedSource,
    options: LabelOptions,
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
    if options.rebuild is not None:
        again, changed = rebuild_labels(source, options, options.rebuild, progress=TERMINAL)
        size = plural(again.recorded, "judgment")
        if output.as_json:
            print_json({"version": again.name, "same": not changed, "changed": list(changed)})
        elif changed:
            print_facts(answers(), [("differs", f"{again.name}: {', '.join(changed)}")])
        else:
            print_facts(answers(), [("same", f"{again.name}, byte for byte, of {size}")])
        if changed:
            context.exit(1)
        return
    answer, path, written = make_labels(
        source, published, options, scoring, now=datetime.now(UTC), progress=TERMINAL
    )
    print_answer(answer, output)
    if path is not None:
        print_facts(messages(), [("written" if written else "as before", str(path))])


@command
def report(
    *,
    source: JudgedSource,
    published: PublishedSource,
    options: ReportOptions,
    scoring: Scoring,
    as_json: Json = False,
) -> None:
    """Write all that a campaign shows into a folder: tables, pictures, and judged pairs.

    A page (index.html), the same as report.json, every table as CSV and LaTeX, and every picture
    as SVG. Pairs are drawn by --seed, without a look at what people said of them.
    With --runs every run is scored on the labels before and on the preference labels; with --board
    every published run of a board, out of its vault, and by its labels. The folder holds judgments,
    texts and scores: it is as private as the campaign and the vault.

    \b
    Examples:
      heldout prefer report campaign --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer report campaign --board kb --vault kb-vault
      heldout prefer report --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels --out report
    """
    out, sections, files = write_report(
        source, published, options, scoring, now=datetime.now(UTC), progress=TERMINAL
    )
    missing = {one.name: one.why_not for one in sections if one.why_not}
    if as_json:
        print_json({"folder": str(out), "files": [*files], "not_made": missing})
        return
    facts = [("report", str(out / "index.html")), ("files", f"{len(files):,}")]
    facts += [("not made", f"{name}: {reason}") for name, reason in missing.items()]
    print_facts(answers(), facts)


@command
def judge(*, campaign: CampaignPath = Path(), options: ModelOptions, output: Output) -> None:
    """Ask a language model about the pairs of a campaign, each in both orders.

    Where its two answers differ it has no preference. Answers and failures are rows of
    model-judgments.jsonl, which only grows; nothing that was answered is asked again. The file is
    not read by what makes labels: a model can say which pairs people should see next, and be
    compared with them.

    With --calibrate it is asked about pairs that people judged, at random and each lead of votes by
    its share, 300 of them unless --limit says otherwise; else about all pairs. Without --endpoint
    nobody is asked.

    \b
    Examples:
      heldout prefer judge campaign --endpoint https://models.example/v1 --model m \\
      --key-env MODEL_KEY --calibrate
      heldout prefer judge campaign --model m --next 50
    """
    answer = judge_by_model(
        CampaignFolder(campaign), options, variables=os.environ, progress=TERMINAL
    )
    print_answer(answer, output)


@command
def contests(
    *,
    source: JudgedSource,
    split: Annotated[
        bool,
        Opt(
            "Comparison of one run with the labels, split by whether it shows the known "
            "answer first."
        ),
    ] = False,
    level: Level = 0.95,
    output: Output,
) -> None:
    """Compare runs by their first documents: on how many queries do people prefer each?

    Of a campaign, or of judgments with run files and labels. A run that always shows the known
    answer takes part: runs that beat it are better than the labels can show. Exact binomial tests,
    corrected over all contests; queries are counted, never votes.

    \b
    Examples:
      heldout prefer contests campaign
      heldout prefer contests --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer contests campaign --split --runs bert.gz --qrels dev.qrels
    """
    judged = load_judged(source, progress=TERMINAL)
    if not split:
        tops = _read_tops(source, judged)
        print_answer(compare_by_contests(judged, tops, level=level), output)
        return
    votes = judgments.count_votes(count_valid(judged), same=pools.stand_for(judged.pools))
    found = read_first(source, depth=2, progress=TERMINAL)
    if len(found) != 1:
        raise InputError.of(
            code="one-run",
            path="--split",
            found=f"{len(found):,} runs",
            expected="one run, whose first documents are compared with the labels",
            hint="--runs FILE",
        )
    ((run, top),) = found.items()
    print_answer(categories.split_answer(run, top, judged, votes, level=level), output)


@command
def strengths(
    *,
    source: JudgedSource,
    prior: Annotated[
        float, Opt("Precision of the prior on strengths; 0 for none.", least=0)
    ] = PRIOR,
    draws: Annotated[
        int, Opt("Number of bootstrap samples of the queries.", least=20, most=100_000)
    ] = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    output: Output,
) -> None:
    """Strengths of runs from the preferences for their first documents, all runs at once.

    Bradley and Terry's model over queries. Intervals are for differences between runs and take a
    query as one observation, by the sandwich and by samples of queries. A run that always shows the
    known answer takes part.

    \b
    Example:
      heldout prefer strengths --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
    """
    judged = load_judged(source, progress=TERMINAL)
    answer = compare_strengths(
        judged,
        _read_tops(source, judged),
        prior=prior,
        draws=draws,
        level=level,
        seed=seed,
    )
    print_answer(answer, output)


def _read_tops(source: JudgedSource, judged: Judged) -> Mapping[str, Tops] | None:
    """The first documents of each run named; `None` for those that the campaign's pools have."""
    if not source.runs and judged.folder is None:
        raise OptionError("which runs? --runs 'GLOB'")
    return read_first(source, progress=TERMINAL) if source.runs else None


@command
def bias(*, source: JudgedSource, level: Level = 0.95, output: Output) -> None:
    """Do judges prefer the left passage, or the longer one? How attentive is each of them?

    Of judgments whose sides are known: those of the judging pages and of Mechanical Turk, and not
    four columns. Lengths are of the texts in the campaign's pools.

    \b
    Example:
      heldout prefer bias campaign
    """
    print_answer(judges.bias_answer(load_judged(source, progress=TERMINAL), level=level), output)
