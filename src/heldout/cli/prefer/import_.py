"""`heldout prefer import`: a platform's results into judgments."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import click

from heldout.cli.prefer.campaign import campaign_argument
from heldout.cli.printing import answers, plural, print_facts, reports_errors
from heldout.errors import StoreError
from heldout.preferences.crowds.mturk_results import (
    Taken,
    WorkerResult,
    format_review,
    read_results,
    take_results,
)
from heldout.preferences.merging import merge_judgments
from heldout.preferences.pool_texts import gather_texts
from heldout.preferences.settings import Settings
from heldout.store.campaign_files import CampaignFolder
from heldout.store.files import write_whole

__all__ = ["import_"]

Form = Literal["mturk"]

_PRIVATE = 0o600
_KEY = "workers.key"
_KEY_BYTES = 32


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@campaign_argument
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
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
def import_(*, file: Path, campaign: Path, form: Form, review: Path | None) -> None:
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
