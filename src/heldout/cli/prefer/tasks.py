"""`heldout prefer tasks`: draw tasks from the pools."""

from pathlib import Path

import click
import numpy as np

from heldout.cli.files import json_option
from heldout.cli.prefer.campaign import campaign_argument, price_facts, price_value
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.preferences.drawing import Pair, draw_tasks, list_pairs
from heldout.preferences.pricing import price
from heldout.preferences.tasks import Task
from heldout.store.campaign_files import CampaignFolder

__all__ = ["tasks"]


@click.command()
@campaign_argument
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@json_option
@reports_errors
def tasks(*, campaign: Path, seed: int, as_json: bool) -> None:
    """Draw tasks for the pairs that no task has yet, and add them to tasks.jsonl.

    Each task has the pairs and tests that campaign.toml asks for, in an order and on sides drawn
    for it alone; the same seed draws the same tasks. Tasks that are there stay as they are.

    \b
    Example:
      heldout prefer tasks campaign --seed 1
    """
    folder = CampaignFolder(campaign)
    settings, earlier = folder.settings(), folder.tasks()
    batch = max((task.batch for task in earlier), default=0) + 1
    pairs = _new_pairs(list_pairs(folder.pools()), earlier)
    rng = np.random.Generator(np.random.PCG64([seed, batch]))
    drawn = draw_tasks(pairs, folder.tests(), settings, rng=rng, batch=batch)
    if drawn:
        folder.write_tasks([*earlier, *drawn])
    cost = price(len(pairs), settings)
    if as_json:
        print_json({"batch": batch, "tasks": len(drawn), "price": price_value(cost)})
        return
    there = f"{plural(len(earlier), 'task')} were there" if earlier else "none were there"
    print_facts(
        answers(),
        [("drawn", f"{plural(len(drawn), 'task')} as batch {batch}; {there}"), *price_facts(cost)],
    )


def _new_pairs(pairs: tuple[Pair, ...], earlier: tuple[Task, ...]) -> list[Pair]:
    there = {item.pair for task in earlier for item in task.items if item.answer is None}
    return [pair for pair in pairs if pair not in there]
