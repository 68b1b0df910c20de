"""A campaign of `heldout prefer`: pools, price, tasks, links, platforms, the labels of a board."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import click
import msgspec

from heldout.answers.answer import to_document
from heldout.cli import context, printing
from heldout.cli.options import command
from heldout.errors import plural
from heldout.judging.campaign.files import CampaignFolder, CampaignPath
from heldout.judging.campaign.pools import Pool, sizes
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import price as price_of
from heldout.judging.services import exchange
from heldout.judging.services.exchange import DatabaseUrl
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


@command
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
    pooled = load_pooled(source, depth=depth, now=datetime.now(UTC), progress=printing.TERMINAL)
    texts = None if options.documents is None else read_documents(options.documents)
    created = create_campaign(folder, pooled, options, name=out.resolve().name, documents=texts)
    found, settings = sizes(created.pools), folder.settings()
    cost = price_of(found.pairs, settings)
    if as_json:
        printing.print_json(
            {
                "campaign": str(folder.path),
                "sizes": to_document(found),
                "price": price_document(cost, settings),
                "tests": created.tests,
            }
        )
        return
    why_none = _say_no_tests(created.pools)
    facts = printing.fill_facts("pooled", created=created, folder=folder.path, why_none=why_none)
    printing.print_facts(
        printing.answers(), [*size_facts(found), *price_facts(cost, settings), *facts]
    )


def _say_no_tests(pools: Sequence[Pool]) -> str:
    if not any(one.text for each in pools for one in each.candidates):
        return "none: without --documents write your own"
    if not any(each.known for each in pools):
        return "none: no query has a known answer; write your own"
    return "none: every other passage shares a word with the query or its answer; write your own"


@command
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
        printing.print_json({"sizes": to_document(found), "price": price_document(cost, settings)})
    else:
        printing.print_facts(printing.answers(), [*size_facts(found), *price_facts(cost, settings)])


@command
def tasks(
    *,
    campaign: CampaignPath = Path(),
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
    found = draw_next(CampaignFolder(campaign), seed=seed)
    drawn, cost = found.tasks, found.price
    if as_json:
        batch = drawn[0].batch if drawn else None
        cost_value = price_document(cost, found.settings)
        printing.print_json({"batch": batch, "tasks": len(drawn), "price": cost_value})
        return
    earlier = len(found.earlier)
    before = f"{plural(earlier, 'task')} were there" if earlier else "none were there"
    facts = [("drawn", f"{_name_batches(drawn)}; {before}")]
    if found.settings.mode == "sequential":
        facts.append(("next", _next(found.waiting, drawn)))
    elif not drawn:
        facts.append(("next", "nothing: each pair is in as many tasks as it has judges"))
    printing.print_facts(printing.answers(), [*facts, *price_facts(cost, found.settings)])


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


@command
def maintain(
    *, campaign: CampaignPath = Path(), options: RoundOptions, call: context.OrganiserCall
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
    with call.session() as session:
        answer = maintain_labels(
            session, CampaignFolder(campaign), options, progress=printing.TERMINAL
        )
    printing.print_answer(answer, printing.TableOutput(as_json=call.as_json))


_MOST = 100_000
_WRITERS = {
    "jsonl": exchange.write_judgments,
    "prolific-bonus": exchange.write_bonuses,
    "payments": exchange.write_payments,
}


def _check_root(root: str) -> None:
    parts = urlsplit(root)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError("the address of the pages, as https://judging.example")


@command
def links(
    *,
    campaign: CampaignPath = Path(),
    root: Annotated[str, Opt("Address of the pages.", metavar="URL", check=_check_root)],
    workers: Annotated[
        Path | None,
        Opt("File of the ids by which people are paid, one a line.", path="file", exists=True),
    ] = None,
    count: Annotated[
        int | None,
        Opt(
            "Number of links, in place of a file of ids; the ids are w1, w2 and so on.",
            least=1,
            most=_MOST,
            metavar="N",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Opt("CSV of ids and links [links.csv in the campaign's].", path="file"),
    ] = None,
    url: DatabaseUrl = None,
) -> None:
    """Write a personal link for each judge, signed with the campaign's key.

    With `links = "personal"` in campaign.toml the judging pages refuse everybody without one, so
    that no judge comes in the name of another, or as several. The same id has the same link at
    every call. Who has a link is that worker: send each to its own person.

    \b
    Example:
      heldout prefer links campaign --root https://judging.example --count 50
    """
    if (workers is None) == (count is None):
        raise click.UsageError("whose links? --workers FILE, or --count N")
    names = exchange.read_ids(workers) if workers else [f"w{n}" for n in range(1, (count or 0) + 1)]
    facts = exchange.write_links(CampaignFolder(campaign), root, names, out, url)
    printing.print_facts(printing.answers(), facts)


@command
def export(
    *,
    campaign: CampaignPath = Path(),
    form: Annotated[
        Literal["jsonl", "mturk", "prolific-bonus", "payments"],
        Opt("Format: judgments (jsonl), tasks (mturk), or what is due (the others)."),
    ] = "jsonl",
    out: Annotated[
        Path | None, Opt("File (jsonl, payments) or directory [in the campaign's].")
    ] = None,
    batch: Annotated[int | None, Opt("Batch of the tasks, for mturk [newest].", least=1)] = None,
    repeat: Annotated[bool, Opt("Tasks that do not count drawn again first, for mturk.")] = False,
    seed: Seed = 0,
    url: DatabaseUrl = None,
) -> None:
    """Take judgments out of a campaign's database, or tasks and payments to a platform.

    jsonl brings judgments.jsonl up to date: every answer with the order shown, the times, and a
    random name for the worker. Judgments are only added, so that the file's beginning stays.

    mturk writes a CSV file and an HTML template for tasks in which nothing was judged yet; they
    need no server. With --repeat tasks that were judged and do not count are drawn again, for
    another worker, as a new batch.

    prolific-bonus writes, for each study, whom to approve, whom to ask for a return, and the bulk
    bonus payments. payments is the list of all payments, made and due, each with its key.

    \b
    Example:
      heldout prefer export campaign
      heldout prefer export campaign --form mturk --out hits
    """
    folder = CampaignFolder(campaign)
    if form == "mturk":
        facts = exchange.write_tasks(folder, out, batch=batch, seed=seed if repeat else None)
    else:
        facts = _WRITERS[form](folder, out, url)
    printing.print_facts(printing.answers(), facts)


@command
def import_(
    *,
    file: Annotated[Path, Opt(argument=True, path="file", exists=True)],
    campaign: CampaignPath = Path(),
) -> None:
    """Take a file of Mechanical Turk's results into judgments.jsonl, and write the approvals.

    FILE is what the platform gives out, or Turkle: HITId, AssignmentId, WorkerId, Input.*,
    Answer.*. Judgments are known by the task's id, and texts are compared, so that the results of
    another campaign are refused. Taking a file in again changes nothing.

    Workers get random names: only workers.key says whose they are, which is written
    beside campaign.toml and belongs to nobody else. Failed tests are stored and do not count; whom
    they bar is printed, and written to FILE-barred.txt, to be blocked on the platform.

    Approvals (FILE-reviewed.csv) have an x for each task, unless campaign.toml says that failed
    tests are not paid. What is owed beyond the column Reward is written to FILE-bonuses.csv.

    \b
    Example:
      heldout prefer import Batch_17_results.csv campaign
    """
    printing.print_facts(
        printing.answers(), exchange.import_results(CampaignFolder(campaign), file)
    )
