"""`heldout prefer links`: a link of their own for each judge."""

from pathlib import Path
from urllib.parse import urlsplit

import click

from heldout.cli.prefer.campaign import campaign_argument
from heldout.cli.prefer.database import database_option, opened_database
from heldout.cli.printing import answers, plural, print_facts, reports_errors
from heldout.errors import InputError, Problem
from heldout.preferences.crowds.codes import personal_link
from heldout.preferences.csv_files import defuse, format_csv
from heldout.store.campaign_files import CampaignFolder
from heldout.store.files import write_whole
from heldout.trec.problems import show

__all__ = ["links"]

_PRIVATE = 0o600
_MOST = 100_000


def _check_root(_context: click.Context, _option: click.Parameter, root: str) -> str:
    parts = urlsplit(root)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise click.BadParameter("the address of the pages, as https://judging.example")
    return root


@click.command()
@campaign_argument
@click.option("--root", required=True, callback=_check_root, metavar="URL", help="Of the pages.")
@click.option(
    "--workers",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Ids by which people are paid, one a line.",
)
@click.option(
    "--count",
    type=click.IntRange(1, _MOST),
    metavar="N",
    help="Without a file: so many, for the ids w1, w2, …",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="CSV of ids and links [links.csv in the campaign's].",
)
@database_option
@reports_errors
def links(
    *,
    campaign: Path,
    root: str,
    workers: Path | None,
    count: int | None,
    out: Path | None,
    url: str | None,
) -> None:
    """Write a personal link for each judge, signed with the campaign's key.

    With `links = "personal"` in campaign.toml the judging pages let in nobody without one, so that
    no judge comes in the name of another, or as several. The same id has the same link at every
    call. Who has a link is that worker: send each to its own person.

    \b
    Example:
      heldout prefer links campaign --root https://judging.example --count 50
    """
    if (workers is None) == (count is None):
        raise click.UsageError("whose links? --workers FILE, or --count N")
    names = _read_ids(workers) if workers else [f"w{n}" for n in range(1, (count or 0) + 1)]
    from heldout.store.judging.campaigns import read_campaign  # noqa: PLC0415 - needs the extra

    folder = CampaignFolder(campaign)
    with opened_database(folder, url) as database:
        found = read_campaign(database)
    place = out or folder.path / "links.csv"
    rows = (
        [defuse(name), personal_link(root, found.code, key=found.key, worker=name)]
        for name in names
    )
    write_whole(place, format_csv(("worker", "link"), rows), mode=_PRIVATE)
    facts = [("written", f"{plural(len(names), 'link')} to {place}")]
    if not found.settings.signed:
        told = 'links without a signature are let in too: links = "personal" in campaign.toml'
        facts.append(("note", told))
    print_facts(answers(), facts)


def _read_ids(path: Path) -> list[str]:
    """Ids, one a line; those that stand there twice once.

    Raises:
        InputError: code `worker-id`: one cannot be seen whole or is too long, or there is none.
    """
    from heldout.store.judging.sittings import LONGEST_WORKER  # noqa: PLC0415 - needs the extra

    text = path.read_text("utf-8-sig", errors="replace")
    names, problems = dict[str, int](), []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if len(name) > LONGEST_WORKER or not name.isprintable():
            problems.append(
                Problem(
                    code="worker-id",
                    path=str(path),
                    line=number,
                    found=show(name),
                    expected=f"an id of at most {LONGEST_WORKER} visible characters",
                )
            )
        elif name:
            names[name] = number
    if problems or not names:
        raise InputError(problems or [_no_id(path)])
    return list(names)


def _no_id(path: Path) -> Problem:
    return Problem(code="worker-id", path=str(path), found="no id", expected="one a line")
