"""`heldout prefer price`: what judging the pools costs."""

from dataclasses import replace
from pathlib import Path

import click
import msgspec

from heldout.cli.files import json_option
from heldout.cli.prefer.campaign import (
    campaign_argument,
    price_facts,
    price_value,
    size_facts,
    size_value,
)
from heldout.cli.printing import answers, print_facts, print_json, reports_errors
from heldout.preferences.pools import sizes
from heldout.preferences.pricing import price as price_of
from heldout.store.campaign_files import CampaignFolder

__all__ = ["price"]


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
