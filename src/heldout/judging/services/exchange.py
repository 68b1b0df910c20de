"""Judgments, tasks and payments in the formats of platforms, and their results as judgments.

Each function gives what it did as lines of a name and a sentence.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from heldout.errors import InputError, Problem, StoreError, plural
from heldout.files.csv import defuse, format_csv
from heldout.files.durable import write_whole
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import format_judgments, merge_judgments
from heldout.judging.campaign.pools import gather_texts
from heldout.judging.campaign.rows import amount_owed
from heldout.judging.campaign.settings import (
    Payment,
    format_money,
    format_payments,
    totals,
)
from heldout.judging.platforms import links, mturk
from heldout.options import Opt
from heldout.trec.text import show

if TYPE_CHECKING:
    from heldout.database.database import Database

Facts = list[tuple[str, str]]

_PRIVATE = 0o600
_KEY = "workers.key"
_KEY_BYTES = 32
_FAILED = ": stored, and not counted"
_PARTIAL = " without every answer: not counted"


DatabaseUrl = Annotated[
    str | None,
    Opt(
        "Database: sqlite:///FILE or postgresql://… [campaign.sqlite, or DATABASE_URL].",
        names=("--database",),
        env="DATABASE_URL",
        metavar="URL",
    ),
]
"""`--database`; its default is `None`."""


@contextmanager
def opened_database(folder: CampaignFolder, url: str | None) -> "Iterator[Database]":
    """The campaign's database, closed afterwards.

    Args:
        folder: the campaign.
        url: of another database than the one in it.

    Raises:
        StoreError: there is none.
        DatabaseError: see `ErrorCode`.
    """
    from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.tables import open_database  # noqa: PLC0415 - needs the extra

    if url is None and not folder.database.is_file():
        raise StoreError(f"{folder.database} is missing; `heldout serve` makes it")
    database = open_database(url or sqlite_url(folder.database.absolute()))
    try:
        yield database
    finally:
        database.close()


def write_judgments(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    """Bring judgments.jsonl up to date, or write all judgments to a file; what was written."""
    from heldout.judging.database.organiser import judgments  # noqa: PLC0415 - needs the extra

    with opened_database(folder, url) as database:
        found = judgments(database)
    if out is not None:
        write_whole(out, format_judgments(found), mode=_PRIVATE)
        return [("written", f"{plural(len(found), 'judgment')} to {out}")]
    before = folder.judgments()
    merged = merge_judgments(before, found)
    folder.write_judgments(merged)
    new, path = len(merged) - len(before), folder.path / "judgments.jsonl"
    return [("written", f"{plural(len(merged), 'judgment')} to {path}, {new:,} of them new")]


def write_payments(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    """Write the list of all payments, made and due; what was written."""
    payments, currency = _read_payments(folder, url)
    path = out or folder.path / "payments.csv"
    write_whole(path, format_payments(payments), mode=_PRIVATE)
    found = totals(payments)
    return [
        ("due", format_money(found.due, currency)),
        ("paid", format_money(found.paid, currency)),
        ("written", str(path)),
    ]


def write_bonuses(folder: CampaignFolder, out: Path | None, url: str | None) -> Facts:
    """Write what Prolific needs for each study: approvals, returns, bonuses."""
    payments, currency = _read_payments(folder, url)
    studies, left_out = links.prolific_files(payments)
    path, facts = out or folder.path / "prolific", []
    for one in studies:
        write_whole(path / f"{one.study}-approve.txt", one.approve, mode=_PRIVATE)
        write_whole(path / f"{one.study}-return.txt", one.returns, mode=_PRIVATE)
        write_whole(path / f"{one.study}-bonus.csv", one.bonuses, mode=_PRIVATE)
        approve, returns = (found.count(b"\n") for found in (one.approve, one.returns))
        base, bonus = (format_money(sum_, currency) for sum_ in (one.base, one.bonus))
        words = f"approve {approve:,} ({base}), ask {returns:,} for a return, bonuses of {bonus}"
        facts.append(("study", f"{one.study}: {words}"))
    if left_out:
        amount = format_money(totals(left_out).due, currency)
        words = f"{amount} in {plural(len(left_out), 'payment')} without an id of Prolific's"
        words += ": see --form payments"
        facts.append(("left out", words))
    facts.append(("written", str(path) if studies else "nothing"))
    facts.append(("note", "a bonus is paid again whenever it is pasted: mark payments as paid"))
    return facts


def _read_payments(folder: CampaignFolder, url: str | None) -> tuple[tuple[Payment, ...], str]:
    from heldout.judging.database.campaigns import read_campaign  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.organiser import list_payments  # noqa: PLC0415 - the same

    with opened_database(folder, url) as database:
        currency = read_campaign(database).settings.currency
        return list_payments(database), currency


def write_tasks(
    folder: CampaignFolder, out: Path | None, *, batch: int | None, seed: int | None
) -> Facts:
    """Write tasks for Mechanical Turk; with a seed, first those that have to be done again."""
    settings, tasks, judged = folder.settings(), folder.tasks(), folder.judgments()
    facts: Facts = []
    if seed is not None:
        newest = max((task.batch for task in tasks), default=0)
        rng = np.random.Generator(np.random.PCG64([seed, newest]))
        copies = links.repeat_tasks(tasks, judged, settings, rng)
        facts.append(("drawn", f"{plural(len(copies), 'task')} again"))
        if copies:
            tasks = (*tasks, *copies)
            folder.write_tasks(tasks)
    number = batch or max((task.batch for task in tasks), default=0)
    wanted = links.unjudged_tasks((task for task in tasks if task.batch == number), judged)
    path = out or folder.path / "mturk"
    for files in mturk.hit_files(
        wanted, gather_texts((*folder.pools(), *folder.challengers())), settings
    ):
        name = f"batch{number}-{files.items}"
        write_whole(path / f"{name}.csv", files.rows, mode=_PRIVATE)
        write_whole(path / f"{name}.html", files.template, mode=_PRIVATE)
        words = f"{plural(files.tasks, 'task')} of {files.items} questions: {name}.csv, {name}.html"
        facts.append(("project", words))
    if wanted and (required := mturk.qualifications(settings)):
        write_whole(path / "qualifications.json", required, mode=_PRIVATE)
        facts.append(("workers", f"{path / 'qualifications.json'}: who may see the tasks"))
    if wanted and settings.reward:
        items = max(len(task.items) for task in wanted)
        least = amount_owed(reward=settings.reward, answered=1, items=items)
        share, whole = (format_money(sum_, settings.currency) for sum_ in (least, settings.reward))
        words = (
            f"set {share}, the share of one answer, and import lists the rest as bonuses; or set"
        )
        facts.append(("reward", f"{words} {whole}, and who stops early has all of it"))
    facts.append(("written", str(path) if wanted else f"nothing: batch {number} is judged"))
    return facts


def import_results(folder: CampaignFolder, file: Path) -> Facts:
    """Take results of Mechanical Turk into judgments.jsonl, and write the approvals.

    Args:
        folder: the campaign.
        file: what the platform gives out.

    Raises:
        InputError: the file has errors, or is of another campaign.
        StoreError: workers.key is no key.
    """
    settings, earlier = folder.settings(), folder.judgments()
    results = mturk.read_results(
        file.read_bytes(),
        path=str(file),
        tasks={task.task: task for task in folder.tasks()},
        texts=gather_texts((*folder.pools(), *folder.challengers())),
        pseudonym=_pseudonyms(folder),
    )
    taken = mturk.take_results(results, earlier, settings)
    new = [one for result in taken["new"] for one in result.judgments]
    folder.write_judgments(merge_judgments(earlier, new))
    review = file.with_name(f"{file.stem}-reviewed.csv")
    write_whole(review, mturk.format_review(results, settings), mode=_PRIVATE)
    bonuses = mturk.format_bonuses(results, settings)
    path = file.with_name(f"{file.stem}-bonuses.csv")
    if bonuses:
        write_whole(path, bonuses, mode=_PRIVATE)
    failures = settings.failures
    facts = [("taken in", f"{plural(len(taken['new']), 'task')}, {plural(len(new), 'judgment')}")]
    for name, some, words in (
        ("before", taken["before"], " taken in already"),
        ("failed", [one for one in taken["new"] if one.failed >= failures], _FAILED),
        ("partial", [one for one in taken["new"] if not one.complete], _PARTIAL),
        ("repeated", taken["repeated"], " left out: the worker had judged a pair before"),
        ("surplus", taken["surplus"], " left out: judged by somebody else, and counted"),
    ):
        if some:
            facts.append((name, f"{plural(len(some), 'task')}{words}"))
    if barred := sorted({one.worker for one in results if one.failed >= failures}):
        names = file.with_name(f"{file.stem}-barred.txt")
        write_whole(names, "".join(f"{worker}\n" for worker in barred).encode(), mode=_PRIVATE)
        facts.append(("barred", f"{plural(len(barred), 'worker')}: {names}"))
    facts.append(("review", str(review)))
    return [*facts, ("bonuses", str(path))] if bonuses else facts


def write_links(
    folder: CampaignFolder, root: str, names: Sequence[str], out: Path | None, url: str | None
) -> Facts:
    """Write a personal link for each judge, signed with the campaign's key.

    Args:
        folder: the campaign.
        root: address of the pages.
        names: ids by which people are paid.
        out: CSV file of ids and links; `None` for links.csv of the campaign.
        url: of another database than the campaign's.

    Raises:
        StoreError: the campaign has no database.
    """
    from heldout.judging.database.campaigns import read_campaign  # noqa: PLC0415 - needs the extra

    with opened_database(folder, url) as database:
        found = read_campaign(database)
    path = out or folder.path / "links.csv"
    rows = (
        [defuse(name), links.personal_link(root, found.code, key=found.key, worker=name)]
        for name in names
    )
    write_whole(path, format_csv(("worker", "link"), rows), mode=_PRIVATE)
    facts = [("written", f"{plural(len(names), 'link')} to {path}")]
    if not found.settings.signed:
        words = 'links without a signature are let in too: links = "personal" in campaign.toml'
        facts.append(("note", words))
    return facts


def read_ids(path: Path) -> list[str]:
    """Ids, one a line; those that stand there twice once.

    Raises:
        InputError: code `worker-id`: one cannot be seen whole or is too long, or there is none.
    """
    from heldout.judging.database.assignments import LONGEST_WORKER  # noqa: PLC0415 - needs the extra

    text = path.read_text("utf-8-sig", errors="replace")
    names, problems = dict[str, int](), []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if len(name) > LONGEST_WORKER or not name.isprintable():
            found, most = show(name), LONGEST_WORKER
            problems.append(Problem.of("worker-id", str(path), found, line=number, most=most))
        elif name:
            names[name] = number
    if problems or not names:
        no_id = Problem.of("worker-id", str(path), "no id", "one a line")
        raise InputError(problems or no_id)
    return list(names)


def _pseudonyms(folder: CampaignFolder) -> Callable[[str], str]:
    """Names that nobody knows without the campaign's key, the same for the same worker."""
    path = folder.path / _KEY
    if not path.is_file():
        write_whole(path, secrets.token_hex(_KEY_BYTES).encode() + b"\n", mode=_PRIVATE)
    key = path.read_bytes().strip()
    if len(key) != 2 * _KEY_BYTES:
        raise StoreError(f"{path} is no key; restore it, or workers would have other names")

    def name(worker: str) -> str:
        return hmac.new(key, worker.encode(), hashlib.sha256).hexdigest()[:16]

    return name
