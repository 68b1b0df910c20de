"""Where pools come from: run files with labels and queries, or the published runs of a board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from heldout.cli.board_source import BoardSource, open_desk
from heldout.cli.console import progress
from heldout.cli.context import now_option
from heldout.cli.files import order_option
from heldout.cli.options import one_argument
from heldout.cli.prefer.judged import known_answers
from heldout.cli.printing import TERMINAL
from heldout.collections.tables import parse_documents
from heldout.preferences.rows import read_text
from heldout.scoring.run_files import name_paths, read_each
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import open_input
from heldout.trec.tops import Tops

__all__ = ["PoolSource", "Pooled", "load_pooled", "pool_options", "read_documents"]


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
    from heldout.pipeline.labels.published_tops import (  # noqa: PLC0415 - heavy, --help is not
        check_set,
        list_published,
        read_published_tops,
    )
    from heldout.pipeline.query_sets.sets import load_sets  # noqa: PLC0415 - the same

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
