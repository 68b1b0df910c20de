"""Where pools come from: run files with labels and queries, or the published runs of a board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from heldout.cli.analyses.board_source import BoardSource, open_desk
from heldout.cli.context import now_option
from heldout.cli.files import order_option
from heldout.cli.judging.campaign import Judged, JudgedSource, known_answers, load_judged
from heldout.cli.judging.relabelling import documents_to_find
from heldout.cli.options import one_argument
from heldout.cli.printing import TERMINAL, progress
from heldout.collections.tables import parse_documents
from heldout.judging.campaign.rows import read_text
from heldout.scoring.run_files import name_paths, read_each
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.ranking import Order
from heldout.trec.reading.sources import open_input
from heldout.trec.tops import Places, Tops, read_places, read_tops

# The published runs of a board, read once for all that labels and reports say of them.

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
    from heldout.board.scores.published import (  # noqa: PLC0415 - heavy
        check_set,
        list_published,
        read_published,
    )
    from heldout.board.scores.sets import load_sets  # noqa: PLC0415 - heavy

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSource:
    """What a command was told to pool.

    Attributes:
        runs: paths of run files; none with a board.
        qrels: path of labels.
        queries: path of their texts.
        order: how documents are ordered; `None` for what fits a run's columns.
        board: a folder in a board whose published runs are pooled.
        vault: of that board.
        query_set: of it; `None` for the set that ranks.
        now: the moment; says which season's set ranks.
    """

    runs: tuple[str, ...]
    qrels: str | None
    queries: str | None
    order: Order | None
    board: Path | None
    vault: Path | None
    query_set: str | None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """What pools are made of, but for the documents' texts.

    Attributes:
        tops: run -> query -> first documents.
        known: query -> relevant documents, the known answer first.
        queries: id -> text.
    """

    tops: Mapping[str, Tops]
    known: Mapping[str, Sequence[str]]
    queries: Mapping[str, str]


pool_options = one_argument(
    "source",
    PoolSource,
    click.argument("runs", nargs=-1, metavar="[RUN]..."),
    click.option("--qrels", metavar="Q", help="Labels: the best is known."),
    click.option("--queries", metavar="FILE", help="Texts of the queries."),
    click.option(
        "--board",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Instead of files: the published runs of a board, its queries and labels.",
    ),
    click.option(
        "--vault",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="HELDOUT_VAULT",
        metavar="DIR",
        help="The board's vault [or HELDOUT_VAULT].",
    ),
    click.option("--set", "query_set", metavar="NAME", help="Of the board [the set that ranks]."),
    order_option,
    now_option,
)
"""What is pooled, as one `source` argument."""


def load_pooled(source: PoolSource, *, depth: int) -> Pooled:
    """What a command was told of.

    Args:
        source: what it was told.
        depth: first documents of each run.

    Raises:
        InputError: a file has errors, or code `unknown-set`.
        StoreError: no board or vault there, or nothing is published.
        TrustError: a published run does not open.
        click.UsageError: neither files nor a board, or both.
    """
    if source.board is not None:
        if source.runs or source.qrels or source.queries:
            raise click.UsageError("--board has runs, labels and queries: name no files with it")
        return _load_board(source, depth)
    if not (source.runs and source.qrels and source.queries):
        raise click.UsageError("what is pooled? run files, --qrels and --queries; or --board")
    with open_input(Path(source.qrels)) as file:
        known = known_answers(read_qrels(file, path=source.qrels).judgments)
    with open_input(Path(source.queries)) as file:
        texts = read_queries(file, path=source.queries).texts
    tops = read_each(name_paths(source.runs), depth=depth, order=source.order, progress=TERMINAL)
    return Pooled(tops=tops, known=known, queries=texts)


def read_documents(path: str) -> Mapping[str, str]:
    """Texts of documents by id; raises as `parse_documents`."""
    with open_input(Path(path)) as source:
        content = read_text(source, path=path)
    return {str(doc): text for doc, text in parse_documents(content, path=path).items()}


def _load_board(source: PoolSource, depth: int) -> Pooled:
    from heldout.board.scores.published import check_set, list_published, read_published_tops  # noqa: PLC0415 - heavy, --help is not
    from heldout.board.scores.sets import load_sets  # noqa: PLC0415 - the same

    desk = open_desk(
        BoardSource(
            folder=source.board,
            vault=source.vault,
            view=None,
            unpublished=False,
            now=source.now,
        )
    )
    spec = desk.spec()
    name = source.query_set or spec.view(spec.on(desk.now.date()).primary).set
    check_set(spec, name)
    entries = list_published(desk)
    with progress("opening runs", len(entries)) as done:
        tops = read_published_tops(desk, name, depth=depth, entries=entries, done=done)
    data = load_sets(desk.repository, spec, vault=desk.vault)[name]
    return Pooled(
        tops=tops, known=known_answers(data.judgments(None) or {}), queries=data.queries.texts
    )
