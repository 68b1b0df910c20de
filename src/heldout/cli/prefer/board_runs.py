"""The published runs of a board, read once for all that labels and reports say of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from heldout.cli.board_source import BoardSource, open_desk
from heldout.cli.console import progress
from heldout.cli.context import now_option
from heldout.cli.options import one_argument
from heldout.cli.prefer.judged import Judged, JudgedSource, load_judged
from heldout.cli.prefer.relabelling import documents_to_find
from heldout.cli.printing import TERMINAL
from heldout.trec.places import Places, read_places
from heldout.trec.ranking import Order
from heldout.trec.tops import Tops, read_tops

__all__ = ["PublishedSource", "ScoredRuns", "load_board_runs", "published_options"]

_DEPTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSource:
    """What a command was told of a board.

    Attributes:
        folder: a folder in the board; `None` where run files are read.
        vault: of that board.
        query_set: of it; `None` for the set that ranks.
        now: the moment, UTC; says which season's set ranks.
    """

    folder: Path | None
    vault: Path | None
    query_set: str | None
    now: datetime


published_options = one_argument(
    "board",
    PublishedSource,
    click.option(
        "--board",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Instead of --runs and --qrels: the published runs of a board, and its labels.",
    ),
    click.option(
        "--vault",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="HELDOUT_VAULT",
        metavar="DIR",
        help="The board's vault [or HELDOUT_VAULT].",
    ),
    click.option("--set", "query_set", metavar="NAME", help="Of the board [the set that ranks]."),
    now_option,
)
"""`--board`, `--vault`, `--set` and `--now`, as one `board` argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRuns:
    """Runs as labels and reports need them.

    Attributes:
        tops: run -> query -> its first two documents.
        places: run -> where it has the documents that scores depend on.
    """

    tops: Mapping[str, Tops]
    places: Mapping[str, Places]


def load_board_runs(source: JudgedSource, board: PublishedSource) -> tuple[Judged, ScoredRuns]:
    """A campaign with a board's own labels, and the board's published runs.

    Args:
        source: names the campaign.
        board: names the board.

    Raises:
        InputError: code `unknown-set`, a file or a run has errors; and as `load_judged`.
        StoreError: no board, vault or campaign there.
        TrustError: a published run does not open.
        click.UsageError: run files, labels or judgments were named too.
    """
    if source.runs or source.qrels or source.judgments:
        raise click.UsageError(
            "--board has runs and labels, and needs a campaign: name no --runs, --qrels or "
            "--judgments with it"
        )
    from heldout.pipeline.labels.published_readings import read_published  # noqa: PLC0415 - heavy
    from heldout.pipeline.labels.published_tops import check_set, list_published  # noqa: PLC0415 - heavy
    from heldout.pipeline.query_sets.sets import load_sets  # noqa: PLC0415 - heavy

    desk = open_desk(
        BoardSource(
            folder=board.folder, vault=board.vault, view=None, unpublished=False, now=board.now
        )
    )
    spec = desk.spec()
    name = board.query_set or spec.view(spec.on(desk.now.date()).primary).set
    check_set(spec, name)
    data = load_sets(desk.repository, spec, vault=desk.vault)[name]
    judged = load_judged(source, labels=data.judgments(None), progress=TERMINAL)
    wanted = documents_to_find(judged)

    def read(run: BinaryIO, path: str, order: Order) -> tuple[Tops, Places]:
        tops = read_tops(run, path=path, depth=_DEPTH, order=order)
        run.seek(0)
        return tops, read_places(run, path=path, documents=wanted, order=order)

    entries = list_published(desk)
    with progress("opening runs", len(entries)) as done:
        found = read_published(desk, name, entries, read, done=done)
    return judged, ScoredRuns(
        tops={run: tops for run, (tops, _) in found.items()},
        places={run: places for run, (_, places) in found.items()},
    )
