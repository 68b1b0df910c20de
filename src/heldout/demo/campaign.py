"""The second story of `heldout demo`: better labels for the dev queries, judged on the real pages.

The first documents of every run are pooled with the known answers, a sample of queries becomes
tasks, and `heldout serve`'s pages are served on this machine to judges that are made up: they read
the pages and fill in the forms as people would, one of them without looking, one stops early. What
they prefer says nothing of retrieval; how a campaign goes, everything.
"""

import asyncio
import bz2
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import httpx2
import numpy as np

from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.scores.session import Session
from heldout.board.standings.standings import Standings
from heldout.collections.collection import QuerySplit
from heldout.demo.page_judge import Decide, Ending, PageJudge, Question
from heldout.errors import SetupError
from heldout.ids import digest_bytes
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import count_votes, counted
from heldout.judging.campaign.pools import Pool, PoolSizes, sizes, stand_for
from heldout.judging.campaign.rows import Task
from heldout.judging.labels.labels import PreferenceLabels, make_labels
from heldout.judging.labels.maintenance import LeadRule
from heldout.judging.platforms.links import personal_link
from heldout.judging.services.label_versions import Change, compare_version, score_versions
from heldout.judging.services.maintaining import RoundOptions, read_campaign
from heldout.judging.services.maintaining import publish_version as publish_labels
from heldout.judging.services.pools import Pooled, PoolOptions, create_campaign
from heldout.judging.services.tasks import draw_next
from heldout.judging.studies.simulation import SimulatedJudge
from heldout.trec.tops import Tops, read_tops

if TYPE_CHECKING:
    from heldout.database.database import Database


QUERIES = 40
_TESTS = 30
_WORKERS = 6
_EARLY = 2
_BETTER = 3.0
"""How much better the known answer is, in units of the judges' logit: .95 of them prefer it to a
passage that is as good as most."""
_SPREAD = 0.8
_OFF_TOPIC = -30.0
"""So far below any answer that nobody who looks fails a test."""
_PATIENCE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStory:
    """What became of the campaign.

    Attributes:
        folder: the campaign's directory.
        sizes: of the pools that were sampled.
        endings: of all visits to the pages.
        judgments: answers recorded, and `counted` of them.
        counted: answers that count.
        labels: what the judgments make the labels.
        changed: queries whose label is another passage than the known answer.
    """

    folder: Path
    sizes: PoolSizes
    endings: tuple[Ending, ...]
    judgments: int
    counted: int
    labels: PreferenceLabels
    changed: int


def play_campaign(
    folder: Path,
    split: QuerySplit,
    *,
    now: datetime,
    seed: int,
    say: Callable[[str, str], None],
) -> CampaignStory:
    """Play the whole campaign, from pools to labels.

    Args:
        folder: of the demo, with `runs`; gets `campaign`.
        split: documents and dev queries.
        now: the end of the story, UTC; people judge in the hour before.
        seed: of the sample, the tasks and what the judges think.
        say: gets each step, as a heading and a sentence.

    Raises:
        SetupError: the extra `web` is missing.
    """
    tops = _read_tops(folder / "runs")
    known = _answers(split)
    folder_of = CampaignFolder(folder / "campaign")
    queries = {str(query): text for query, text in split.dev.queries.items()}
    chosen = create_campaign(
        folder_of,
        Pooled(tops=tops, known=known, queries=queries),
        PoolOptions(sample=QUERIES, seed=seed),
        name="Docstrings of the standard library",
        documents={str(doc): text for doc, text in split.dev.documents.items()},
        tests=_TESTS,
    ).pools
    drawn = draw_next(folder_of, method=None, seed=seed)
    found = sizes(chosen)
    say("pools", f"{found.pairs:,} pairs of passages for {found.queries} of the dev queries")
    good = _make_minds(chosen, drawn.tasks, np.random.Generator(np.random.PCG64([seed, 1])))
    endings = _judge(folder_of, good, seed, now - timedelta(hours=1), say)
    judged = folder_of.judgments()
    votes = counted(judged)
    labels = make_labels(chosen, count_votes(votes, same=stand_for(chosen)))
    return CampaignStory(
        folder=folder_of.path,
        sizes=found,
        endings=endings,
        judgments=len(judged),
        counted=len(votes),
        labels=labels,
        changed=sum(
            not set(best) & set(known[query])
            for query, best in labels.labels.items()
            if query not in labels.kept
        ),
    )


def publish_version(session: Session, folder: Path) -> tuple[Change | None, Standings]:
    """Make a version of the board's dev labels of what was judged; score every run on it.

    Args:
        session: of the board; its lock is held.
        folder: the campaign's directory.

    Returns:
        What the version changed in the ranking, and the standings.
    """
    campaign = read_campaign(CampaignFolder(folder))
    options = RoundOptions(public=True)
    version = publish_labels(session, campaign, "dev", LeadRule(), options)
    score_versions(session, why="scored on labels that made-up judges preferred")
    standings = bring_up_to_date(session).standings
    return None if version is None else compare_version(session, version), standings


def _answers(split: QuerySplit) -> Mapping[str, list[str]]:
    return {str(query): [str(doc) for doc in grades] for query, grades in split.dev.qrels.items()}


def _read_tops(folder: Path) -> Mapping[str, Tops]:
    """The first documents of every run on the dev queries."""
    tops: dict[str, Tops] = {}
    for file in sorted(folder.glob("*/dev.tsv.bz2")):
        text = BytesIO(bz2.decompress(file.read_bytes()))
        tops[file.parent.name] = read_tops(text, path=str(file), depth=1)
    return tops


def _make_minds(
    pools: Sequence[Pool], tasks: Sequence[Task], rng: np.random.Generator
) -> Mapping[tuple[str, str], float]:
    """How good a passage is for a query, by their texts: made up, the same for all judges."""
    queries = {pool.query: pool.text for pool in pools}
    texts = {one.doc: one.text for pool in pools for one in pool.candidates}
    pooled = {(pool.query, one.doc): one for pool in pools for one in pool.candidates}
    shown = sorted(
        {(item.query, doc) for task in tasks for item in task.items for doc in item.pair[1:]}
    )
    good = {}
    for query, doc in shown:
        one = pooled.get((query, doc))
        strength = _OFF_TOPIC if one is None else _BETTER * one.known + rng.normal(scale=_SPREAD)
        good[queries[query], texts[doc]] = float(strength)
    return good


def _judge(
    folder: CampaignFolder,
    good: Mapping[tuple[str, str], float],
    seed: int,
    start: datetime,
    say: Callable[[str, str], None],
) -> tuple[Ending, ...]:
    """Serve the pages and let the judges come until nothing is left; write what they judged."""
    try:
        from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra
        from heldout.judging.database.campaigns import load_campaign, read_campaign  # noqa: PLC0415 - needs the extra
        from heldout.judging.database.database import open_database  # noqa: PLC0415 - needs the extra
        from heldout.judging.database.overviews import judgments  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise SetupError("judging needs the extra web: pip install 'heldout[web]'") from error
    database = open_database(sqlite_url(folder.database.absolute()))
    try:
        load_campaign(database, folder.settings(), folder.pools(), folder.tasks(), now=start)
        found = read_campaign(database)
        links = [
            personal_link("", found.code, key=found.key, worker=f"w{number}")
            for number in range(1, _WORKERS + 1)
        ]
        with _served(database, start) as address:
            say("pages", f"{address}/j/{found.code} is served to made-up judges")
            endings = asyncio.run(_visits(address, links, good, seed))
        folder.write_judgments(judgments(database))
    finally:
        database.close()
    return endings


@contextmanager
def _served(database: "Database", start: datetime) -> Iterator[str]:
    """The judging pages on a free port of this machine; their address.

    Args:
        database: the campaign's.
        start: what the pages' clock shows at first.
    """
    import uvicorn  # noqa: PLC0415 - needs the extra

    from heldout.judging.pages.app import make_app  # noqa: PLC0415 - needs the extra

    begun = time.monotonic()

    def clock() -> datetime:
        return start + timedelta(seconds=time.monotonic() - begun)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = make_app(database, clock=clock)
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_PATIENCE)


async def _visits(
    address: str, links: Sequence[str], good: Mapping[tuple[str, str], float], seed: int
) -> tuple[Ending, ...]:
    """Workers come until no task is left; the first does not look, the second stops early."""
    endings: list[Ending] = []
    attentive = _attentive(seed, good)
    async with httpx2.AsyncClient(base_url=address, timeout=_PATIENCE) as client:

        async def work(number: int) -> None:
            judge = PageJudge(
                client=client,
                link=links[number - 1],
                decide=_careless if number == 1 else attentive,
            )
            ending = await judge.visit(stop_after=5 if number == _EARLY else None)
            while ending.token:
                endings.append(ending)
                if number == _EARLY:
                    return
                ending = await judge.visit()

        await work(1)
        await asyncio.gather(*(work(number) for number in range(2, _WORKERS + 1)))
    return tuple(endings)


def _careless(question: Question) -> Literal["a", "b"]:
    """The longer one, whatever is asked: fails a test sooner or later."""
    return "a" if len(question.a) > len(question.b) else "b"


def _attentive(seed: int, good: Mapping[tuple[str, str], float]) -> Decide:
    """A judge who prefers what is better, and errs the more the less it is better.

    What is chosen depends on the question alone, so that the story ends the same whoever is first
    to be given a task.
    """

    def decide(question: Question) -> Literal["a", "b"]:
        first, second = sorted((question.a, question.b))
        text = f"{seed}\n{question.query}\n{first}\n{second}".encode()
        rng = np.random.default_rng(int(digest_bytes(text), 16))
        judge = SimulatedJudge(strengths=good, rng=rng)
        return "a" if judge.choose(question.query, first, second) == question.a else "b"

    return decide
