"""`heldout prefer pool`, `price`, `tasks` and `maintain`: a campaign from its pools on."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import click
import msgspec

from heldout.answers.answer import to_document
from heldout.cli.context import OrganiserPlace, at_board
from heldout.cli.options import with_options
from heldout.cli.printing import (
    TERMINAL,
    TableOutput,
    answers,
    print_answer,
    print_facts,
    print_json,
)
from heldout.errors import plural
from heldout.judging.campaign.drawing import Method
from heldout.judging.campaign.files import CampaignFolder, CampaignPath
from heldout.judging.campaign.pools import Pool, sizes
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import price as price_of
from heldout.judging.services.maintaining import RoundOptions
from heldout.judging.services.maintaining import maintain as maintain_labels
from heldout.judging.services.pools import (
    PoolOptions,
    PoolSource,
    create_campaign,
    draw_next,
    load_pooled,
    price_document,
    price_facts,
    read_documents,
    refuse_pools,
    size_facts,
)
from heldout.options import Json, Opt, Seed


@click.command
@with_options
def pool(
    *,
    source: PoolSource,
    options: PoolOptions,
    out: Annotated[
        Path, Opt("Directory of the campaign; it has no pools yet.", path="folder")
    ] = Path("campaign"),
    as_json: Json = False,
) -> None:
    """Create a campaign: pool the tops of runs and the known answer of each query.

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
    refuse_pools(folder)
    depth = max(options.depth, 2) if options.split else options.depth
    pooled = load_pooled(source, depth=depth, now=datetime.now(UTC), progress=TERMINAL)
    texts = None if options.documents is None else read_documents(options.documents)
    created = create_campaign(folder, pooled, options, name=out.resolve().name, documents=texts)
    found, settings = sizes(created.pools), folder.settings()
    cost = price_of(found.pairs, settings)
    if as_json:
        print_json(
            {
                "campaign": str(folder.path),
                "sizes": to_document(found),
                "price": price_document(cost, settings),
                "tests": created.tests,
            }
        )
        return
    proposed = f"{created.tests} proposed in tests.jsonl: read them before people do"
    facts = [
        *size_facts(found),
        *price_facts(cost, settings),
        ("tests", proposed if created.tests else _why_no_tests(created.pools)),
        ("campaign", f"{folder.path}; set pay and consent in campaign.toml"),
        ("next", f"heldout prefer tasks {folder.path}"),
    ]
    print_facts(answers(), facts)


def _why_no_tests(pools: Sequence[Pool]) -> str:
    if not any(one.text for each in pools for one in each.candidates):
        return "none: without --documents write your own"
    if not any(each.known for each in pools):
        return "none: no query has a known answer; write your own"
    return "none: every other passage shares a word with the query or its answer; write your own"


@click.command
@with_options
def price(
    *,
    campaign: CampaignPath = Path(),
    pairs: Annotated[
        int | None, Opt("Number of pairs [those of the pools].", least=1, metavar="N")
    ] = None,
    judges: Annotated[
        int | None, Opt("Number of judges of a pair [that of campaign.toml].", least=1, metavar="N")
    ] = None,
    as_json: Json = False,
) -> None:
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
        print_json({"sizes": to_document(found), "price": price_document(cost, settings)})
    else:
        print_facts(answers(), [*size_facts(found), *price_facts(cost, settings)])


@click.command
@with_options
def tasks(
    *,
    campaign: CampaignPath = Path(),
    method: Annotated[
        Method | None,
        Opt("Way to choose pairs in mode sequential; pruning is for large pools [duels]."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
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
    found = draw_next(CampaignFolder(campaign), method=method, seed=seed)
    drawn, cost = found.tasks, found.price
    if as_json:
        batch = drawn[0].batch if drawn else None
        cost_value = price_document(cost, found.settings)
        print_json({"batch": batch, "tasks": len(drawn), "price": cost_value})
        return
    earlier = len(found.earlier)
    before = f"{plural(earlier, 'task')} were there" if earlier else "none were there"
    facts = [("drawn", f"{_name_batches(drawn)}; {before}")]
    if found.settings.mode == "sequential":
        facts.append(("next", _next(found.waiting, drawn)))
    elif not drawn:
        facts.append(("next", "nothing: each pair is in as many tasks as it has judges"))
    print_facts(answers(), [*facts, *price_facts(cost, found.settings)])


def _name_batches(drawn: Sequence[Task]) -> str:
    batches = sorted({task.batch for task in drawn})
    if not batches:
        return "nothing"
    last = f" to {batches[-1]}" if len(batches) > 1 else ""
    return f"{plural(len(drawn), 'task')} as batch {batches[0]}{last}"


def _next(waiting: int, drawn: Sequence[Task]) -> str:
    if drawn:
        return "collect and export the answers, then draw again"
    if waiting:
        return f"{plural(waiting, 'pair')} in tasks still wait for answers"
    return "nothing: every query has its best passage"


@click.command
@at_board
def maintain(
    *, campaign: CampaignPath = Path(), options: RoundOptions, place: OrganiserPlace
) -> None:
    """Update a board's preference labels: challenges, new versions, what these changed.

    Unjudged first documents of published runs challenge the best known answers.
    Tasks are drawn for the judgments that are missing. A challenger that leads takes the answer's
    place: the more challengers a query has met, the larger the lead, so that equally good ones
    replace its first answer in no more than --budget of queries. --publish-labels makes a version
    of the labels, which is a view of the board, and scores every published run on it. A version is
    never edited.

    \b
    Examples:
      heldout prefer maintain campaign --documents documents.tsv
      heldout prefer maintain campaign --publish-labels
    """
    with place.session() as session:
        answer = maintain_labels(session, CampaignFolder(campaign), options, progress=TERMINAL)
    print_answer(answer, TableOutput(as_json=place.as_json))
