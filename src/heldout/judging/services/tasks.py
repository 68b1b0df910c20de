"""The next tasks of a campaign: drawn from its pools, and what judging them costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from heldout.answers.answer import to_document
from heldout.errors import OptionError, plural
from heldout.judging.campaign.drawing import list_pairs, list_queries
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.pools import PoolSizes
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import (
    Price,
    Settings,
    describe_hourly,
    format_money,
    hourly_pay,
    price_tasks,
)
from heldout.judging.labels.choosing import (
    Method,
    count_answers,
    count_planned,
    draw_batch,
    missing_votes,
    plan_batch,
)
from heldout.judging.platforms.links import first_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Tasks that were drawn.

    Attributes:
        settings: of the campaign.
        earlier: those that were there.
        tasks: the new ones.
        waiting: in mode sequential, pairs in earlier tasks that still wait for answers; 0 where
            tasks were drawn.
    """

    settings: Settings
    earlier: tuple[Task, ...]
    tasks: tuple[Task, ...]
    waiting: int

    @property
    def price(self) -> Price:
        """Of the new tasks."""
        planned = count_planned(self.tasks)
        judgments = sum(planned.values())
        return price_tasks(len(self.tasks), self.settings, pairs=len(planned), judgments=judgments)


def draw_next(folder: CampaignFolder, *, method: Method | None, seed: int) -> Drawn:
    """Draw the next tasks of a campaign and write them.

    Args:
        folder: the campaign.
        method: in mode sequential, how pairs are chosen; `None` for duels.
        seed: one seed always draws the same tasks.

    Raises:
        OptionError: a method in another mode.
        StoreError: the campaign has no settings or pools.
    """
    settings, earlier = folder.settings(kind=None), folder.tasks()
    if method and settings.mode != "sequential":
        raise OptionError('--method needs mode = "sequential" in campaign.toml')
    drawn = _draw(folder, settings, earlier, method=method or "duels", seed=seed)
    if drawn:
        folder.write_tasks([*earlier, *drawn])
    waiting = 0
    if settings.mode == "sequential" and not drawn:
        given = count_answers(folder.judgments(), settings)
        waiting = sum(count > given.get(pair, 0) for pair, count in count_planned(earlier).items())
    return Drawn(settings=settings, earlier=earlier, tasks=drawn, waiting=waiting)


def _draw(
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
            method=method,
        )
    else:
        planned = count_planned(first_tasks(earlier))
        listed = list_pairs if settings.kind == "preference" else list_queries
        wanted = missing_votes(listed(folder.pools()), settings.judges, planned=planned)
    tests = folder.tests() if settings.tests else ()
    return draw_batch(wanted, tests, settings, seed=seed, batch=batch)


# Sizes of pools and what judging them costs, in words and as JSON.

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
    asked = [("judgments", _judgments(found, settings)), ("tasks", f"{found.tasks:,}")]
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


def _judgments(found: Price, settings: Settings) -> str:
    pairs = plural(found.pairs, "pair" if settings.kind == "preference" else "question")
    if not found.pairs or found.judgments % found.pairs:
        return f"{found.judgments:,} on {pairs}"
    return f"{found.judgments:,}: {pairs} by {plural(found.judgments // found.pairs, 'judge')} each"
