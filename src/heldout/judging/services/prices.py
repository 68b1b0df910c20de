"""Sizes of pools and what judging them costs, in words and as JSON."""

from pathlib import Path
from typing import Annotated

from heldout.answers.answer import to_document
from heldout.errors import plural
from heldout.judging.campaign.pools import PoolSizes
from heldout.judging.campaign.settings import (
    Price,
    Settings,
    describe_hourly,
    format_money,
    hourly_pay,
)
from heldout.options import Opt

CampaignPath = Annotated[Path, Opt(argument=True, path="folder", metavar="[CAMPAIGN]")]
"""Directory of a campaign; its default is the current one, `Path()`."""

_BAR = 40


def size_facts(found: PoolSizes) -> list[tuple[str, str]]:
    """Sizes of pools in lines, with a histogram."""
    if found.mean is None:
        return [("pools", "none")]
    most = max(found.histogram.values())
    facts = [
        ("pools", plural(found.queries, "query", "queries")),
        ("passages", f"mean {found.mean:.2f}, median {found.median:g}"),
        ("single", f"{found.single:,} with one passage: nothing to judge"),
        ("pairs", f"{found.pairs:,}"),
    ]
    return facts + [
        (f"size {size}", f"{'█' * max(1, round(count * _BAR / most))} {count:,}")
        for size, count in found.histogram.items()
    ]


def price_facts(found: Price, settings: Settings) -> list[tuple[str, str]]:
    """A price in lines, and what an hour pays where the settings say."""
    hourly = [("an hour", describe_hourly(settings))]
    asked = [("judgments", _judgments(found)), ("tasks", f"{found.tasks:,}")]
    if found.tasks and not found.total:
        return [*asked, ("price", "none: reward and fee are 0 in campaign.toml")]
    return [
        *asked,
        ("rewards", format_money(found.rewards, found.currency)),
        ("fees", format_money(found.fees, found.currency)),
        ("price", f"{format_money(found.total, found.currency)}, repeated tasks not counted"),
        *(hourly if settings.minutes or settings.minimum_hourly else ()),
    ]


def price_document(found: Price, settings: Settings) -> dict[str, object]:
    """A price as JSON; money in hundredths of the currency."""
    return to_document(found, "total") | to_document({"hourly": hourly_pay(settings)})


def _judgments(found: Price) -> str:
    pairs = plural(found.pairs, "pair")
    if not found.pairs or found.judgments % found.pairs:
        return f"{found.judgments:,} on {pairs}"
    return f"{found.judgments:,}: {pairs} by {plural(found.judgments // found.pairs, 'judge')} each"
