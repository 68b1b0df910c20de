"""A campaign begun and continued: pools and proposed tests, the next tasks, and what they cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.answers.answer import to_document
from heldout.collections import named, tables
from heldout.errors import InputError, OptionError, StoreError, plural
from heldout.judging.campaign import drawing, files, rows
from heldout.judging.campaign.pools import Pool, PoolSizes, build_pools, sample_pools
from heldout.judging.campaign.settings import (
    Price,
    Settings,
    describe_hourly,
    format_money,
    hourly_pay,
    price_tasks,
)
from heldout.judging.labels.source import known_answers
from heldout.judging.platforms.links import first_tasks
from heldout.judging.services.boards import PublishedSource, open_set
from heldout.judging.studies.categories import split_queries
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.options import RunOrder
from heldout.scoring.run_files import name_paths, read_each
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
    folder: files.CampaignFolder,
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
    proposed = () if documents is None else drawing.propose_tests(pools, count=tests, rng=rng)
    folder.create(name)
    folder.write_tests(proposed)
    folder.write_pools(pools)
    return Begun(pools=tuple(pools), tests=len(proposed))


def refuse_pools(folder: files.CampaignFolder) -> None:
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
    known = known_answers(named.load_qrels(source.qrels).judgments)
    texts = named.load_queries(source.queries).texts
    tops = read_each(name_paths(source.runs), depth=depth, order=source.order, progress=progress)
    return Pooled(tops=tops, known=known, queries=texts)


def read_documents(path: str) -> Mapping[str, str]:
    """Read the texts of documents by id; raises as `collections.tables.read_documents`."""
    return tables.read_file(Path(path))


def _cut_to_split(
    tops: Mapping[str, Tops], known: Mapping[str, Sequence[str]], queries: Mapping[str, str]
) -> tuple[Mapping[str, Tops], Mapping[str, Sequence[str]]]:
    """The run's one document that each query's known answer is compared with."""
    if len(tops) > 1:
        expected = "one run, whose first documents are compared with the labels"
        raise InputError.of("one-run", "--split", plural(len(tops), "run"), expected)
    ((run, answered),) = tops.items()
    pairs = split_queries(answered, known, queries=queries)
    return {run: {one.query: (one.other,) for one in pairs}}, {
        one.query: (one.known,) for one in pairs
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Tasks that were drawn.

    Attributes:
        settings: of the campaign.
        earlier: those that were there.
        tasks: the new ones.
        waiting: in mode sequential, pairs in earlier tasks that still wait for answers; 0 where
            tasks were drawn.
    """

    settings: Settings
    earlier: tuple[rows.Task, ...]
    tasks: tuple[rows.Task, ...]
    waiting: int

    @property
    def price(self) -> Price:
        """Of the new tasks."""
        planned = drawing.count_planned(self.tasks)
        judgments = sum(planned.values())
        return price_tasks(len(self.tasks), self.settings, pairs=len(planned), judgments=judgments)


def draw_next(folder: files.CampaignFolder, *, seed: int) -> Drawn:
    """Draw the next tasks of a campaign and write them.

    Args:
        folder: the campaign.
        seed: one seed always draws the same tasks.

    Raises:
        StoreError: the campaign has no settings or pools.
    """
    settings, earlier = folder.settings(kind=None), folder.tasks()
    drawn = _draw(folder, settings, earlier, seed=seed)
    if drawn:
        folder.write_tasks([*earlier, *drawn])
    waiting = 0
    if settings.mode == "sequential" and not drawn:
        given = drawing.count_answers(folder.judgments(), settings)
        waiting = sum(
            count > given.get(pair, 0) for pair, count in drawing.count_planned(earlier).items()
        )
    return Drawn(settings=settings, earlier=earlier, tasks=drawn, waiting=waiting)


def _draw(
    folder: files.CampaignFolder, settings: Settings, earlier: Sequence[rows.Task], *, seed: int
) -> tuple[rows.Task, ...]:
    batch = max((task.batch for task in earlier), default=0) + 1
    if settings.mode == "sequential":
        planned = drawing.count_planned(earlier)
        wanted = drawing.plan_batch(folder.pools(), folder.judgments(), settings, planned=planned)
    else:
        planned = drawing.count_planned(first_tasks(earlier))
        listed = drawing.list_pairs if settings.kind == "preference" else drawing.list_queries
        wanted = drawing.missing_votes(listed(folder.pools()), settings.judges, planned=planned)
    tests = folder.tests() if settings.tests else ()
    return drawing.draw_batch(wanted, tests, settings, seed=seed, batch=batch)


# Sizes of pools and what judging them costs, in words and as JSON.

_BAR = 40


def size_facts(found: PoolSizes) -> list[tuple[str, str]]:
    """Sizes of pools in lines, with a histogram."""
    if found.mean is None:
        return [("pools", "none")]
    most = max(found.histogram.values())
    facts = [
        ("pools", plural(found.queries, "query", "queries")),
        ("passages", f"mean {found.mean:.2f}, median {found.median:g}"),
        ("single", f"{found.single:,} with one passage: nothing to judge"),
        ("pairs", f"{found.pairs:,}"),
    ]
    return facts + [
        (f"size {size}", f"{'█' * max(1, round(count * _BAR / most))} {count:,}")
        for size, count in found.histogram.items()
    ]


def price_facts(found: Price, settings: Settings) -> list[tuple[str, str]]:
    """A price in lines, and what an hour pays where the settings say."""
    hourly = [("an hour", describe_hourly(settings))]
    asked = [("judgments", _judgments(found, settings)), ("tasks", f"{found.tasks:,}")]
    if found.tasks and not found.total:
        return [*asked, ("price", "none: reward and fee are 0 in campaign.toml")]
    return [
        *asked,
        ("rewards", format_money(found.rewards, found.currency)),
        ("fees", format_money(found.fees, found.currency)),
        ("price", f"{format_money(found.total, found.currency)}, repeated tasks not counted"),
        *(hourly if settings.minutes or settings.minimum_hourly else ()),
    ]


def price_document(found: Price, settings: Settings) -> dict[str, object]:
    """A price as JSON; money in hundredths of the currency."""
    return to_document(found, "total") | to_document({"hourly": hourly_pay(settings)})


def _judgments(found: Price, settings: Settings) -> str:
    pairs = plural(found.pairs, "pair" if settings.kind == "preference" else "question")
    if not found.pairs or found.judgments % found.pairs:
        return f"{found.judgments:,} on {pairs}"
    return f"{found.judgments:,}: {pairs} by {plural(found.judgments // found.pairs, 'judge')} each"
