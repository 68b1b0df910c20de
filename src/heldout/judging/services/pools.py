"""Begin a campaign: pools of the tops of runs and of the known answers, and proposed tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.collections.named import load_qrels, load_queries
from heldout.collections.tables import parse_documents
from heldout.errors import InputError, OptionError, StoreError, plural
from heldout.judging.campaign.drawing import propose_tests
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.pools import Pool, build_pools, sample_pools
from heldout.judging.campaign.rows import read_text
from heldout.judging.labels.source import known_answers
from heldout.judging.services.boards import PublishedSource, open_set
from heldout.judging.studies.categories import split_queries
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.options import RunOrder
from heldout.scoring.run_files import name_paths, read_each
from heldout.trec.reading.sources import open_input
from heldout.trec.tops import Tops

_TESTS = 60


Documents = Annotated[
    str | None, Opt("Texts of the documents: id, tab, text [ids alone].", metavar="FILE")
]
"""`--documents`; its default is `None`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSource:
    """What is pooled: run files with labels and queries, or the published runs of a board."""

    runs: Annotated[tuple[str, ...], Opt(argument=True, metavar="[RUN]...")] = ()
    qrels: Annotated[
        str | None, Opt("Labels; the best document of a query is its known answer.", metavar="Q")
    ] = None
    queries: Annotated[str | None, Opt("Texts of the queries.", metavar="FILE")] = None
    published: PublishedSource = field(default_factory=PublishedSource)
    order: RunOrder = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How pools are made."""

    documents: Documents = None
    depth: Annotated[
        int, Opt("Number of first documents of each run that enter the pool.", least=1, most=100)
    ] = 1
    split: Annotated[
        bool,
        Opt(
            "Pools of one run: the known answer and the run's first document, or, where that is "
            "the known answer, its second."
        ),
    ] = False
    sample: Annotated[
        int | None, Opt("Number of queries, at random [all].", least=1, metavar="N")
    ] = None
    seed: Seed = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A campaign that begins.

    Attributes:
        pools: that were written.
        tests: how many were proposed.
    """

    pools: tuple[Pool, ...]
    tests: int


def create_campaign(
    folder: CampaignFolder,
    pooled: Pooled,
    options: PoolOptions,
    *,
    name: str,
    documents: Mapping[str, str] | None,
    tests: int = _TESTS,
) -> Begun:
    """Write the settings, tests and pools of a campaign.

    Args:
        folder: its directory; it has no pools yet.
        pooled: runs, known answers and queries.
        options: how pools are made.
        name: of the campaign.
        documents: texts by id; `None` for ids alone, and no tests.
        tests: the most that are proposed.

    Raises:
        StoreError: there are pools already.
        InputError: code `one-run`, `too-few-queries`.
    """
    refuse_pools(folder)
    tops, known = pooled.tops, pooled.known
    if options.split:
        tops, known = _cut_to_split(tops, known, pooled.queries)
    pools = build_pools(
        tops,
        known,
        queries=pooled.queries,
        documents=documents,
    )
    rng = np.random.Generator(np.random.PCG64(options.seed))
    if options.sample is not None:
        pools = sample_pools(pools, count=options.sample, rng=rng)
    proposed = () if documents is None else propose_tests(pools, count=tests, rng=rng)
    folder.create(name)
    folder.write_tests(proposed)
    folder.write_pools(pools)
    return Begun(pools=tuple(pools), tests=len(proposed))


def refuse_pools(folder: CampaignFolder) -> None:
    """Raises `StoreError` where a campaign has pools already."""
    if folder.has("pool.jsonl"):
        raise StoreError(f"{folder.path / 'pool.jsonl'} is there already; name another folder")


def load_pooled(
    source: PoolSource, *, depth: int, now: datetime, progress: Progress = SILENT
) -> Pooled:
    """Runs, known answers and queries.

    Args:
        source: where they come from.
        depth: first documents of each run.
        now: the time, UTC.
        progress: counts the runs.

    Raises:
        InputError: a file has errors, or code `unknown-set`.
        StoreError: no board or vault there, or nothing is published.
        TrustError: a published run does not open.
        OptionError: neither files nor a board, or both.
    """
    if source.published.board is not None:
        if source.runs or source.qrels or source.queries:
            raise OptionError("--board has runs, labels and queries: name no files with it")
        board = open_set(source.published, now=now)
        return Pooled(
            tops=board.read_tops(depth=depth, progress=progress),
            known=known_answers(board.data.judgments(None) or {}),
            queries=board.data.queries.texts,
        )
    if not (source.runs and source.qrels and source.queries):
        raise OptionError("what is pooled? run files, --qrels and --queries; or --board")
    known = known_answers(load_qrels(source.qrels).judgments)
    texts = load_queries(source.queries).texts
    tops = read_each(name_paths(source.runs), depth=depth, order=source.order, progress=progress)
    return Pooled(tops=tops, known=known, queries=texts)


def read_documents(path: str) -> Mapping[str, str]:
    """Texts of documents by id; raises as `parse_documents`."""
    with open_input(Path(path)) as source:
        content = read_text(source, path=path)
    return parse_documents(content, path=path)


def _cut_to_split(
    tops: Mapping[str, Tops], known: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> tuple[Mapping[str, Tops], Mapping[str, Sequence[str]]]:
    """The run's one document that each query's known answer is compared with."""
    if len(tops) > 1:
        raise InputError.of(
            code="one-run",
            path="--split",
            found=plural(len(tops), "run"),
            expected="one run, whose first documents are compared with the labels",
        )
    ((run, answered),) = tops.items()
    pairs = split_queries(answered, known, queries=queries)
    return {run: {one.query: (one.other,) for one in pairs}}, {
        one.query: (one.known,) for one in pairs
    }
