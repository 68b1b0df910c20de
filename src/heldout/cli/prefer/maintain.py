"""`heldout prefer maintain`: a board's preference labels, as new runs come."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, get_args

import click

from heldout.cli.console import progress
from heldout.cli.context import Place, at_board
from heldout.cli.options import one_argument
from heldout.cli.prefer.campaign import campaign_argument
from heldout.cli.prefer.maintained import (
    Maintenance,
    ToldVersion,
    maintained_facts,
    maintained_value,
)
from heldout.cli.prefer.pool_source import read_documents
from heldout.cli.printing import answers, print_facts, print_json, reports_errors
from heldout.pipeline.deciding.rebuild import catch_up
from heldout.pipeline.labels.label_changes import compare_version
from heldout.pipeline.labels.label_versions import (
    list_versions,
    publish_labels,
    score_versions,
)
from heldout.pipeline.labels.maintaining import (
    Campaign,
    check_judged,
    count_unseen,
    draw_challenges,
    find_challengers,
    is_made_again,
    label,
    make_record,
    weigh_challenges,
)
from heldout.pipeline.labels.published_tops import check_set, list_published
from heldout.pipeline.organiser.desk import Desk
from heldout.preferences.judgments import format_time
from heldout.preferences.maintenance import BUDGET, CAP, LEAD, LeadRule
from heldout.preferences.settings import Mode
from heldout.preferences.versions import Algorithm
from heldout.store.campaign_files import CampaignFolder

__all__ = ["maintain"]


_MODES: Mapping[Mode, Algorithm] = {"paper": "tournament", "sequential": "sequential"}


class Asked(NamedTuple):
    """What was asked for of the rule; `None` where nothing was."""

    lead: int | None
    cap: int | None
    budget: float | None
    algorithm: Algorithm | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for of new labels.

    Attributes:
        publish: make a version if the labels are new.
        public: its scores are told.
        measure: of its view; `None` for that of the version before, or of the set.
        until: only answers up to this time.
    """

    publish: bool = False
    public: bool = False
    measure: str | None = None
    until: datetime | None = None


_wish = one_argument(
    "wish",
    Wish,
    click.option("--publish-labels", "publish", is_flag=True, help="Make the next version."),
    click.option("--public", is_flag=True, help="Its scores are told [a reserve]."),
    click.option("-m", "--measure", metavar="MEASURE", help="Of its view [as before]."),
    click.option(
        "--until",
        type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]),
        metavar="TIME",
        help="Labels of answers up to this time alone, in UTC.",
    ),
)


@click.command
@campaign_argument
@click.option("--set", "query_set", metavar="NAME", help="Of the pools [the set that ranks].")
@click.option("--documents", metavar="FILE", help="Texts: id, tab, text. Without, only ids.")
@click.option(
    "--lead",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Votes that a challenger has to lead by at least [as before, or {LEAD}].",
)
@click.option(
    "--cap",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Most votes on a challenge [as before, or {CAP}].",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, max=1, max_open=True),
    metavar="P",
    help="Chance that equally good challengers ever replace a query's first answer; 0 for no "
    f"control [as before, or {BUDGET}].",
)
@click.option(
    "--mode",
    "algorithm",
    type=click.Choice(get_args(Algorithm)),
    help="How the best of a pool was found before any challenge [as campaign.toml has it].",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@_wish
@at_board
@reports_errors
def maintain(
    *,
    campaign: Path,
    query_set: str | None,
    documents: str | None,
    lead: int | None,
    cap: int | None,
    budget: float | None,
    algorithm: Algorithm | None,
    seed: int,
    wish: Wish,
    place: Place,
) -> None:
    """Keep a board's preference labels alive: challenges, new versions, what these changed.

    The first documents of published runs that nobody has judged challenge the best known answers.
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
    folder = CampaignFolder(campaign)
    texts = None if documents is None else read_documents(documents)
    with place.desk(page=wish.publish) as desk:
        spec = desk.spec()
        name = query_set or spec.view(spec.on(desk.now.date()).primary).set
        check_set(spec, name)
        held = _read(folder)
        rule = _choose_rule(desk, held, name, Asked(lead, cap, budget, algorithm))
        held = _take_challengers(desk, folder, held, name, texts)
        challenges = weigh_challenges(held, rule)
        drawn = draw_challenges(held, challenges, seed=seed)
        if drawn:
            folder.write_tasks([*held.tasks, *drawn])
        published, scored = _label(desk, held, name, rule, wish)
        outcome = Maintenance(
            query_set=name,
            rule=rule,
            challengers=sum(len(row.candidates) for row in held.challengers),
            waiting=count_unseen(desk, name, held),
            challenges=challenges,
            drawn=drawn,
            price=len(drawn) * (held.settings.reward + held.settings.fee),
            currency=held.settings.currency,
            replaced=label(held, rule).replaced,
            published=published,
            scored=scored,
            versions=_list_versions(desk, held, name),
        )
    if place.as_json:
        print_json(maintained_value(outcome))
    else:
        print_facts(answers(), maintained_facts(outcome))


def _choose_rule(desk: Desk, held: Campaign, query_set: str, asked: Asked) -> LeadRule:
    """The rule that was asked for; what was not is as in the version before."""
    before = list_versions(desk).get(query_set, ())
    record = before[-1].record if before else None
    lead = asked.lead or (LEAD if record is None else record.lead)
    cap = asked.cap or (CAP if record is None else record.cap)
    kept = BUDGET if record is None else record.budget
    return LeadRule(
        lead=lead,
        cap=cap if asked.cap else max(lead, cap),
        algorithm=asked.algorithm or _MODES[held.settings.mode],
        budget=kept if asked.budget is None else asked.budget,
    )


def _read(folder: CampaignFolder) -> Campaign:
    return Campaign(
        settings=folder.settings(),
        pools=folder.pools(),
        challengers=folder.challengers(),
        tests=folder.tests(),
        tasks=folder.tasks(),
        judgments=folder.judgments(),
    )


def _take_challengers(
    desk: Desk,
    folder: CampaignFolder,
    held: Campaign,
    query_set: str,
    documents: Mapping[str, str] | None,
) -> Campaign:
    """The campaign with what is new; where it has texts nothing enters without one."""
    if documents is None and any(one.text for pool in held.pools for one in pool.candidates):
        return held
    with progress("opening runs", len(list_published(desk))) as done:
        found = find_challengers(desk, query_set, held, documents=documents, done=done)
    if found != held.challengers:
        folder.write_challengers(found)
    return replace(held, challengers=found)


def _label(
    desk: Desk, held: Campaign, query_set: str, rule: LeadRule, wish: Wish
) -> tuple[str | None, tuple[str, ...]]:
    """Make a version if that was asked for; score what is not scored on all versions."""
    made = None
    if wish.publish:
        until = None if wish.until is None else format_time(wish.until.replace(tzinfo=UTC))
        check_judged(held, until=until)
        labels, record = make_record(held, query_set, rule, until=until)
        made = publish_labels(desk, labels, record, measure=wish.measure, public=wish.public)
    versions = list_versions(desk).get(query_set, ())
    scored: tuple[str, ...] = ()
    if versions:
        with progress("scoring", len(list_published(desk))) as done:
            why = f"scored on preference labels {versions[-1].name}"
            decisions = score_versions(desk, why=why, done=done)
        scored = tuple(decision.id for decision in decisions)
    catch_up(desk, news=made is not None or bool(scored))
    return (None if made is None else made.name), scored


def _list_versions(desk: Desk, held: Campaign, query_set: str) -> tuple[ToldVersion, ...]:
    return tuple(
        ToldVersion(labels=one, same=is_made_again(held, one), change=compare_version(desk, one))
        for one in list_versions(desk).get(query_set, ())
    )
