"""`heldout prefer export`: judgments, tasks and payments, in the forms that platforms take."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, get_args

import click
import numpy as np

from heldout.cli.judging.campaign import campaign_argument, database_option, opened_database
from heldout.cli.printing import answers, print_facts, reports_errors
from heldout.errors import StoreError, plural
from heldout.files.durable import write_whole
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import format_judgments, merge_judgments
from heldout.judging.campaign.payments import Payment, format_payments, totals
from heldout.judging.campaign.pools import gather_texts
from heldout.judging.campaign.settings import Settings, format_money
from heldout.judging.platforms.links import prolific_files, repeat_tasks, unjudged_tasks
from heldout.judging.platforms.mturk import (
    Taken,
    WorkerResult,
    format_review,
    hit_files,
    read_results,
    take_results,
)

Form = Literal["jsonl", "mturk", "prolific-bonus", "payments"]
Facts = list[tuple[str, str]]

_PRIVATE = 0o600


@click.command()
@campaign_argument
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
    default="jsonl",
    show_default=True,
    help="jsonl: judgments; mturk: tasks; prolific-bonus and payments: what is due.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File (jsonl, payments) or directory [in the campaign's].",
)
@click.option("--batch", type=click.IntRange(min=1), help="mturk: tasks of this batch [newest].")
@click.option("--repeat", is_flag=True, help="mturk: first draw again what does not count.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@database_option
@reports_errors
def export(
    *,
    campaign: Path,
    form: Form,
    out: Path | None,
    batch: int | None,
    repeat: bool,
    seed: int,
    url: str | None,
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
        facts = _write_tasks(folder, out, batch=batch, seed=seed if repeat else None)
    else:
        facts = _WRITERS[form](folder, out, url)
    print_facts(answers(), facts)


def _write_judgments(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    from heldout.judging.database.overviews import judgments  # noqa: PLC0415 - needs the extra

    with opened_database(folder, url) as database:
        found = judgments(database)
    if out is not None:
        write_whole(out, format_judgments(found), mode=_PRIVATE)
        return [("written", f"{plural(len(found), 'judgment')} to {out}")]
    before = folder.judgments()
    merged = merge_judgments(before, found)
    folder.write_judgments(merged)
    new, place = len(merged) - len(before), folder.path / "judgments.jsonl"
    return [("written", f"{plural(len(merged), 'judgment')} to {place}, {new:,} of them new")]


def _write_payments(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    payments, currency = _read_payments(folder, url)
    place = out or folder.path / "payments.csv"
    write_whole(place, format_payments(payments), mode=_PRIVATE)
    found = totals(payments)
    return [
        ("due", format_money(found.due, currency)),
        ("paid", format_money(found.paid, currency)),
        ("written", str(place)),
    ]


def _write_bonuses(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    payments, currency = _read_payments(folder, url)
    studies, left_out = prolific_files(payments)
    place, facts = out or folder.path / "prolific", []
    for one in studies:
        write_whole(place / f"{one.study}-approve.txt", one.approve, mode=_PRIVATE)
        write_whole(place / f"{one.study}-return.txt", one.returns, mode=_PRIVATE)
        write_whole(place / f"{one.study}-bonus.csv", one.bonuses, mode=_PRIVATE)
        approve, returns = (found.count(b"\n") for found in (one.approve, one.returns))
        base, bonus = (format_money(sum_, currency) for sum_ in (one.base, one.bonus))
        told = f"approve {approve:,} ({base}), ask {returns:,} for a return, bonuses of {bonus}"
        facts.append(("study", f"{one.study}: {told}"))
    if left_out:
        amount = format_money(totals(left_out).due, currency)
        told = f"{amount} in {plural(len(left_out), 'payment')} without an id of Prolific's"
        told += ": see --form payments"
        facts.append(("left out", told))
    facts.append(("written", str(place) if studies else "nothing"))
    facts.append(("note", "a bonus is paid again whenever it is pasted: mark payments as paid"))
    return facts


def _read_payments(folder: CampaignFolder, url: str | None) -> tuple[tuple[Payment, ...], str]:
    from heldout.judging.database.campaigns import read_campaign  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.organiser import list_payments  # noqa: PLC0415 - the same

    with opened_database(folder, url) as database:
        currency = read_campaign(database).settings.currency
        return list_payments(database, currency=currency), currency


def _write_tasks(
    folder: CampaignFolder, out: Path | None, *, batch: int | None, seed: int | None
) -> Facts:
    """Write tasks for Mechanical Turk; with a seed, first those that have to be done again."""
    settings, tasks, judged = folder.settings(), folder.tasks(), folder.judgments()
    facts: Facts = []
    if seed is not None:
        newest = max((task.batch for task in tasks), default=0)
        rng = np.random.Generator(np.random.PCG64([seed, newest]))
        copies = repeat_tasks(tasks, judged, settings, rng)
        facts.append(("drawn", f"{plural(len(copies), 'task')} again"))
        if copies:
            tasks = (*tasks, *copies)
            folder.write_tasks(tasks)
    number = batch or max((task.batch for task in tasks), default=0)
    wanted = unjudged_tasks((task for task in tasks if task.batch == number), judged)
    place = out or folder.path / "mturk"
    for files in hit_files(
        wanted, gather_texts((*folder.pools(), *folder.challengers())), settings
    ):
        name = f"batch{number}-{files.items}"
        write_whole(place / f"{name}.csv", files.rows, mode=_PRIVATE)
        write_whole(place / f"{name}.html", files.template, mode=_PRIVATE)
        told = f"{plural(files.tasks, 'task')} of {files.items} questions: {name}.csv, {name}.html"
        facts.append(("project", told))
    facts.append(("written", str(place) if wanted else f"nothing: batch {number} is judged"))
    return facts


_WRITERS: Mapping[str, Callable[[CampaignFolder, Path | None, str | None], Facts]] = {
    "jsonl": _write_judgments,
    "prolific-bonus": _write_bonuses,
    "payments": _write_payments,
}


# `heldout prefer import`: a platform's results into judgments.

ImportForm = Literal["mturk"]

_KEY = "workers.key"
_KEY_BYTES = 32


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@campaign_argument
@click.option(
    "--form",
    type=click.Choice(get_args(ImportForm)),
    default="mturk",
    show_default=True,
    help="Its form.",
)
@click.option(
    "--review",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Approvals, to be uploaded [FILE with -reviewed in its name].",
)
@reports_errors
def import_(*, file: Path, campaign: Path, form: ImportForm, review: Path | None) -> None:
    """Take a file of Mechanical Turk's results into judgments.jsonl, and write the approvals.

    FILE is what the platform gives out, or Turkle: HITId, AssignmentId, WorkerId, Input.*,
    Answer.*. Judgments are told by the task's id, and texts are compared, so that the results of
    another campaign are refused. Taking a file in again changes nothing.

    Workers get random names: whose they are can only be told with workers.key, which is written
    beside campaign.toml and belongs to nobody else. Failed tests are kept and do not count; whom
    they bar is told, and written to FILE-barred.txt, to be blocked on the platform.

    Approvals have an x for each task, unless campaign.toml says that failed tests are not paid.

    \b
    Example:
      heldout prefer import Batch_17_results.csv campaign
    """
    del form
    folder = CampaignFolder(campaign)
    settings, earlier = folder.settings(), folder.judgments()
    results = read_results(
        file.read_bytes(),
        path=str(file),
        tasks={task.task: task for task in folder.tasks()},
        texts=gather_texts((*folder.pools(), *folder.challengers())),
        pseudonym=_pseudonyms(folder),
    )
    taken = take_results(results, earlier, settings)
    folder.write_judgments(merge_judgments(earlier, taken.judgments))
    review = review or file.with_name(f"{file.stem}-reviewed.csv")
    write_whole(review, format_review(results, settings), mode=_PRIVATE)
    print_facts(answers(), _tell(taken, results, settings, file, review))


def _tell(
    taken: Taken, results: tuple[WorkerResult, ...], settings: Settings, file: Path, review: Path
) -> list[tuple[str, str]]:
    """What there is to say; who is barred is written."""
    failed = sum(one.failed >= settings.failures for one in taken.results)
    new = f"{plural(len(taken.results), 'task')}, {plural(len(taken.judgments), 'judgment')}"
    facts = [("taken in", new)]
    if taken.there:
        facts.append(("before", f"{plural(taken.there, 'task')} taken in already"))
    if failed:
        facts.append(("failed", f"{plural(failed, 'task')}: kept, and not counted"))
    open_ends = sum(not one.complete for one in taken.results)
    if open_ends:
        facts.append(("partial", f"{plural(open_ends, 'task')} without every answer: not counted"))
    if taken.repeated:
        told = (
            f"{plural(len(taken.repeated), 'task')} left out: the worker had judged a pair before"
        )
        facts.append(("repeated", told))
    if taken.surplus:
        told = (
            f"{plural(len(taken.surplus), 'task')} left out: judged by somebody else, and counted"
        )
        facts.append(("surplus", told))
    barred = sorted({one.worker for one in results if one.failed >= settings.failures})
    if barred:
        place = file.with_name(f"{file.stem}-barred.txt")
        write_whole(place, "".join(f"{worker}\n" for worker in barred).encode(), mode=_PRIVATE)
        facts.append(("barred", f"{plural(len(barred), 'worker')}: {place}"))
    facts.append(("review", str(review)))
    return facts


def _pseudonyms(folder: CampaignFolder) -> Callable[[str], str]:
    """Names that nobody can tell without the campaign's key, the same for the same worker."""
    place = folder.path / _KEY
    if not place.is_file():
        write_whole(place, secrets.token_hex(_KEY_BYTES).encode() + b"\n", mode=_PRIVATE)
    key = place.read_bytes().strip()
    if len(key) != 2 * _KEY_BYTES:
        raise StoreError(f"{place} is no key; restore it, or workers would have other names")

    def name(worker: str) -> str:
        return hmac.new(key, worker.encode(), hashlib.sha256).hexdigest()[:16]

    return name
