"""`heldout prefer pool`: begin a campaign from the tops of runs and the known answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click
import msgspec
import numpy as np

from heldout.cli.files import json_option
from heldout.cli.judging.campaign import (
    campaign_argument,
    price_facts,
    price_value,
    size_facts,
    size_value,
)
from heldout.cli.judging.pool_source import PoolSource, load_pooled, pool_options, read_documents
from heldout.cli.printing import answers, print_facts, print_json, reports_errors
from heldout.errors import InputError, Problem, StoreError, plural
from heldout.judging.campaign.drawing import list_pairs, propose_tests
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.pools import Pool, build_pools, sample_pools, sizes
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import Price, Settings
from heldout.judging.campaign.settings import price as price_of
from heldout.judging.campaign.settings import price as pricing_price
from heldout.judging.labels.choosing import (
    Method,
    count_answers,
    count_planned,
    draw_batch,
    missing_votes,
    plan_batch,
)
from heldout.judging.platforms.links import first_tasks
from heldout.judging.studies.categories import split_queries
from heldout.trec.tops import Tops

_TESTS = 60


@click.command()
@pool_options
@click.option("--documents", metavar="FILE", help="Texts: id, tab, text. Without, only ids.")
@click.option(
    "--depth",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="First documents of each run that enter the pool.",
)
@click.option("--every-label", is_flag=True, help="All relevant documents, not the first alone.")
@click.option(
    "--split",
    is_flag=True,
    help="One run: the known answer against its first document, or, where that is the known "
    "answer, its second.",
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Queries, at random.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--out",
    default="campaign",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The campaign's directory; it has no pools yet.",
)
@json_option
@reports_errors
def pool(
    *,
    source: PoolSource,
    documents: str | None,
    depth: int,
    every_label: bool,
    split: bool,
    sample: int | None,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Begin a campaign: pool the tops of runs and the known answer of each query.

    Passages with the same text are pooled once. Writes campaign.toml (look at it: what judges are
    paid and agree to), pool.jsonl, and tests.jsonl: known answers against passages of other
    queries that share no word with them. Read the tests before people are judged by them.

    With --board the published runs of a board are pooled, which its vault opens.

    \b
    Examples:
      heldout prefer pool runs/*.gz --qrels dev.qrels --queries dev.tsv \\
      --documents documents.tsv --sample 500 --out campaign
      heldout prefer pool --board kb --vault kb-vault --documents documents.tsv
    """
    folder = CampaignFolder(out)
    if folder.has("pool.jsonl"):
        raise StoreError(f"{out / 'pool.jsonl'} is there already; name another --out")
    given = load_pooled(source, depth=max(depth, 2) if split else depth)
    tops, known, texts = given.tops, given.known, given.queries
    if split:
        tops, known = _cut_to_split(tops, known, texts)
    passages = None if documents is None else read_documents(documents)
    pools = build_pools(tops, known, queries=texts, documents=passages, every_label=every_label)
    rng = np.random.Generator(np.random.PCG64(seed))
    if sample is not None:
        pools = sample_pools(pools, count=sample, rng=rng)
    tests = propose_tests(pools, count=_TESTS, rng=rng) if documents else ()
    folder.begin(out.resolve().name)
    folder.write_tests(tests)
    folder.write_pools(pools)
    _tell(folder, pools, tests=len(tests), as_json=as_json)


def _cut_to_split(
    tops: Mapping[str, Tops], known: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> tuple[Mapping[str, Tops], Mapping[str, Sequence[str]]]:
    """The run's one document that each query's known answer is compared with."""
    if len(tops) > 1:
        raise InputError(
            Problem(
                code="one-run",
                path="--split",
                found=plural(len(tops), "run"),
                expected="one run, whose first documents are compared with the labels",
            )
        )
    ((run, answered),) = tops.items()
    pairs = split_queries(answered, known, queries=queries)
    return {run: {one.query: (one.other,) for one in pairs}}, {
        one.query: (one.known,) for one in pairs
    }


def _why_no_tests(pools: Sequence[Pool]) -> str:
    if not any(one.text for each in pools for one in each.candidates):
        return "none: without --documents write your own"
    if not any(each.known for each in pools):
        return "none: no query has a known answer; write your own"
    return "none: every other passage shares a word with the query or its answer; write your own"


def _tell(folder: CampaignFolder, pools: Sequence[Pool], *, tests: int, as_json: bool) -> None:
    found = sizes(pools)
    settings = folder.settings()
    cost = pricing_price(found.pairs, settings)
    if as_json:
        print_json(
            {
                "campaign": str(folder.path),
                "sizes": size_value(found),
                "price": price_value(cost, settings),
                "tests": tests,
            }
        )
        return
    facts = [*size_facts(found), *price_facts(cost, settings)]
    proposed = f"{tests} proposed in tests.jsonl: read them before people do"
    facts += [("tests", proposed if tests else _why_no_tests(pools))]
    facts += [("campaign", f"{folder.path}; set pay and consent in campaign.toml")]
    print_facts(answers(), facts)


# `heldout prefer price`: what judging the pools costs.


@click.command()
@campaign_argument
@click.option("--pairs", type=click.IntRange(min=1), metavar="N", help="As if so many pairs.")
@click.option("--judges", type=click.IntRange(min=1), metavar="N", help="As if so many judges.")
@json_option
@reports_errors
def price(*, campaign: Path, pairs: int | None, judges: int | None, as_json: bool) -> None:
    """What judging the pools of a campaign costs: tasks x (reward + fee), tasks rounded up.

    Rewards, fees and the size of tasks are those of campaign.toml. Repeated tasks, after a failed
    test or where somebody stopped, come on top.

    \b
    Example:
      heldout prefer price campaign
    """
    folder = CampaignFolder(campaign)
    settings = folder.settings()
    if judges is not None:
        settings = msgspec.structs.replace(settings, judges=judges)
    found = sizes(folder.pools())
    if pairs is not None:
        found = replace(found, pairs=pairs)
    cost = price_of(found.pairs, settings)
    if as_json:
        print_json({"sizes": size_value(found), "price": price_value(cost, settings)})
    else:
        print_facts(answers(), [*size_facts(found), *price_facts(cost, settings)])


# `heldout prefer tasks`: draw tasks from the pools.


@click.command()
@campaign_argument
@click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    help="In mode sequential, how pairs are chosen; pruning and thompson are for large pools "
    "[duels].",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@json_option
@reports_errors
def tasks(*, campaign: Path, method: Method | None, seed: int, as_json: bool) -> None:
    """Draw the next tasks and add them to tasks.jsonl; tasks that are there stay as they are.

    In mode paper, tasks for all pairs until each is in as many as campaign.toml has judges; who
    raises the number gets the rest as another batch. In mode sequential, for the pairs that the
    judgments so far make worth asking; export the answers first, and call it again until nothing
    is left to ask. Each task has the pairs and tests that campaign.toml asks for, in an
    order and on sides drawn for it alone; the same seed draws the same tasks.

    \b
    Example:
      heldout prefer tasks campaign --seed 1
    """
    folder = CampaignFolder(campaign)
    settings, earlier = folder.settings(), folder.tasks()
    if method and settings.mode != "sequential":
        raise click.UsageError('--method needs mode = "sequential" in campaign.toml')
    drawn = _draw_next(folder, settings, earlier, method=method or "duels", seed=seed)
    if drawn:
        folder.write_tasks([*earlier, *drawn])
    cost = _price(drawn, settings)
    if as_json:
        batch = drawn[0].batch if drawn else None
        print_json({"batch": batch, "tasks": len(drawn), "price": price_value(cost, settings)})
        return
    before = f"{plural(len(earlier), 'task')} were there" if earlier else "none were there"
    facts = [("drawn", f"{_name_batches(drawn)}; {before}")]
    if settings.mode == "sequential":
        facts.append(("next", _tell_next(folder, earlier, drawn, settings)))
    elif not drawn:
        facts.append(("next", "nothing: each pair is in as many tasks as it has judges"))
    print_facts(answers(), [*facts, *price_facts(cost, settings)])


def _draw_next(
    folder: CampaignFolder,
    settings: Settings,
    earlier: Sequence[Task],
    *,
    method: Method,
    seed: int,
) -> tuple[Task, ...]:
    batch = max((task.batch for task in earlier), default=0) + 1
    if settings.mode == "sequential":
        wanted = plan_batch(
            folder.pools(),
            folder.judgments(),
            settings,
            planned=count_planned(earlier),
            rng=np.random.Generator(np.random.PCG64([seed, batch, 1])),
            method=method,
        )
    else:
        planned = count_planned(first_tasks(earlier))
        wanted = missing_votes(list_pairs(folder.pools()), settings.judges, planned=planned)
    return draw_batch(wanted, folder.tests(), settings, seed=seed, batch=batch)


def _name_batches(drawn: Sequence[Task]) -> str:
    batches = sorted({task.batch for task in drawn})
    if not batches:
        return "nothing"
    last = f" to {batches[-1]}" if len(batches) > 1 else ""
    return f"{plural(len(drawn), 'task')} as batch {batches[0]}{last}"


def _price(drawn: Sequence[Task], settings: Settings) -> Price:
    return Price(
        pairs=len(count_planned(drawn)),
        judgments=sum(count_planned(drawn).values()),
        tasks=len(drawn),
        rewards=len(drawn) * settings.reward,
        fees=len(drawn) * settings.fee,
        currency=settings.currency,
    )


def _tell_next(
    folder: CampaignFolder, earlier: Sequence[Task], drawn: Sequence[Task], settings: Settings
) -> str:
    if drawn:
        return "collect and export the answers, then draw again"
    given = count_answers(folder.judgments(), settings)
    waiting = sum(count > given.get(pair, 0) for pair, count in count_planned(earlier).items())
    if waiting:
        return f"{plural(waiting, 'pair')} in tasks still wait for answers"
    return "nothing: every query has its best passage"
