"""`heldout prefer tasks`: draw tasks from the pools."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
import numpy as np

from heldout.cli.files import json_option
from heldout.cli.prefer.campaign import campaign_argument, price_facts, price_value
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.preferences.crowds.repeats import first_tasks
from heldout.preferences.drawing import list_pairs
from heldout.preferences.next_batch import (
    Method,
    count_planned,
    draw_batch,
    missing_votes,
    plan_batch,
)
from heldout.preferences.pricing import Price
from heldout.preferences.sequential import count_answers
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Task
from heldout.store.campaign_files import CampaignFolder

__all__ = ["tasks"]


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
