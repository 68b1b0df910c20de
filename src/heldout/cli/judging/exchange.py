"""`heldout prefer links`, `export` and `import`: what goes to platforms, and comes back."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import click

from heldout.cli.options import with_options
from heldout.cli.printing import answers, print_facts
from heldout.judging.campaign.files import CampaignFolder, CampaignPath
from heldout.judging.services import exchange
from heldout.judging.services.exchange import DatabaseUrl
from heldout.options import Opt, Seed

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


@click.command
@with_options
def links(
    *,
    campaign: CampaignPath = Path(),
    root: Annotated[str, Opt("Address of the pages.", metavar="URL", check=_check_root)],
    workers: Annotated[
        Path | None,
        Opt(
            "File of the ids by which people are paid, one a line.",
            metavar="FILE",
            path="file",
            exists=True,
        ),
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
        Opt("CSV of ids and links [links.csv in the campaign's].", metavar="FILE", path="file"),
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
    print_facts(answers(), facts)


@click.command
@with_options
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
    print_facts(answers(), facts)


@click.command("import")
@with_options
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
    print_facts(answers(), exchange.import_results(CampaignFolder(campaign), file))
