"""The second story of `heldout demo`: better labels for the dev queries, by a judging campaign.

The first documents of every run are pooled with the known answers, a sample of queries becomes
tasks, and judges that are made up take them as people do at `heldout serve`, one of them without
looking; one stops early. What they prefer says nothing of retrieval; how a campaign goes,
everything.
"""

import bz2
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.scores.session import Session
from heldout.board.standings.standings import Standings
from heldout.collections.collection import QuerySplit
from heldout.errors import SetupError
from heldout.ids import digest_bytes
from heldout.judging.campaign import files, rows
from heldout.judging.campaign.judgments import Choice, count_votes, counted
from heldout.judging.campaign.pools import Pool, PoolSizes, sizes, stand_for
from heldout.judging.labels.labels import PreferenceLabels, make_labels
from heldout.judging.labels.maintenance import LeadRule
from heldout.judging.services.label_versions import RankingChange, compare_version, score_versions
from heldout.judging.services.maintaining import RoundOptions, read_campaign
from heldout.judging.services.maintaining import publish_version as publish_labels
from heldout.judging.services.pools import Pooled, PoolOptions, create_campaign, draw_next
from heldout.judging.studies.judges import SimulatedJudge
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
_PACE = timedelta(seconds=30)

Decide = Callable[[str, str, str], Literal["left", "right"]]
"""Which of two passages answers a query better, by their texts: query, left, right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStory:
    """What became of the campaign.

    Attributes:
        folder: the campaign's directory.
        sizes: of the pools that were sampled.
        visits: the answers that each visit of a judge gave.
        judgments: answers recorded, and `counted` of them.
        counted: answers that count.
        labels: what the judgments make the labels.
        changed: queries whose label is another passage than the known answer.
    """

    folder: Path
    sizes: PoolSizes
    visits: tuple[int, ...]
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
    known = {str(q): [str(doc) for doc in grades] for q, grades in split.dev.qrels.items()}
    folder_of = files.CampaignFolder(folder / "campaign")
    queries = {str(query): text for query, text in split.dev.queries.items()}
    chosen = create_campaign(
        folder_of,
        Pooled(tops=tops, known=known, queries=queries),
        PoolOptions(sample=QUERIES, seed=seed),
        name="Docstrings of the standard library",
        documents={str(doc): text for doc, text in split.dev.documents.items()},
        tests=_TESTS,
    ).pools
    drawn = draw_next(folder_of, seed=seed)
    found = sizes(chosen)
    say("pools", f"{found.pairs:,} pairs of passages for {found.queries} of the dev queries")
    good = _make_minds(chosen, drawn.tasks, np.random.Generator(np.random.PCG64([seed, 1])))
    visits = _judge(folder_of, good, seed, now - timedelta(hours=1), say)
    judged = folder_of.judgments()
    votes = counted(judged)
    labels = make_labels(chosen, count_votes(votes, same=stand_for(chosen)))
    return CampaignStory(
        folder=folder_of.path,
        sizes=found,
        visits=visits,
        judgments=len(judged),
        counted=len(votes),
        labels=labels,
        changed=sum(
            not set(best) & set(known[query])
            for query, best in labels.labels.items()
            if query not in labels.unvoted
        ),
    )


def publish_version(session: Session, folder: Path) -> tuple[RankingChange | None, Standings]:
    """Make a version of the board's dev labels of what was judged; score every run on it.

    Args:
        session: of the board; its lock is held.
        folder: the campaign's directory.

    Returns:
        What the version changed in the ranking, and the standings.
    """
    campaign = read_campaign(files.CampaignFolder(folder))
    options = RoundOptions(public=True)
    version = publish_labels(session, campaign, "dev", LeadRule(), options)
    score_versions(session, why="scored on labels that made-up judges preferred")
    standings = bring_up_to_date(session).standings
    return None if version is None else compare_version(session, version), standings


def _read_tops(folder: Path) -> Mapping[str, Tops]:
    """The first documents of every run on the dev queries."""
    tops: dict[str, Tops] = {}
    for file in sorted(folder.glob("*/dev.tsv.bz2")):
        text = BytesIO(bz2.decompress(file.read_bytes()))
        tops[file.parent.name] = read_tops(text, path=str(file), depth=1)
    return tops


def _make_minds(
    pools: Sequence[Pool], tasks: Sequence[rows.Task], rng: np.random.Generator
) -> Mapping[tuple[str, str], float]:
    """Make up how good a passage is for a query, by their texts, the same for all judges."""
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
    folder: files.CampaignFolder,
    good: Mapping[tuple[str, str], float],
    seed: int,
    start: datetime,
    say: Callable[[str, str], None],
) -> tuple[int, ...]:
    """Let the judges come until nothing is left; write what they judged."""
    try:
        from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra
        from heldout.judging.database.campaigns import load_campaign  # noqa: PLC0415 - needs the extra
        from heldout.judging.database.organiser import judgments  # noqa: PLC0415 - needs an extra
        from heldout.judging.database.tables import open_database  # noqa: PLC0415 - needs the extra
    except ImportError as error:
        raise SetupError("judging needs the extra web: pip install 'heldout[web]'") from error
    database = open_database(sqlite_url(folder.database.absolute()))
    attentive, visits, coming = _attentive(seed, good), list[int](), [*range(1, _WORKERS + 1)]
    try:
        load_campaign(database, folder.settings(), folder.pools(), folder.tasks(), now=start)
        say("judges", f"{_WORKERS} made-up judges take the tasks ...")
        while coming:
            worker, decide = coming[0], _careless if coming[0] == 1 else attentive
            most = 5 if worker == _EARLY else None
            answered = _visit(database, worker, decide, now=start + _PACE * len(visits), most=most)
            # The first comes until they are barred, the others by turns; the second only once.
            coming = coming if worker == 1 and answered else coming[1:]
            if answered:
                visits.append(answered)
                coming += [worker] * (worker not in (1, _EARLY))
        folder.write_judgments(judgments(database))
    finally:
        database.close()
    return tuple(visits)


def _visit(
    database: "Database", worker: int, decide: Decide, *, now: datetime, most: int | None
) -> int:
    """Take a task and answer it, or stop after so many answers; return their number, 0 for none."""
    from heldout.judging.database import assignments, claims  # noqa: PLC0415 - needs the extra

    who = assignments.Worker(platform_id=f"w{worker}", signed=True)
    found = claims.claim(database, who, batch=1, now=now)
    if isinstance(found, claims.NoTask):
        return 0
    answered = min(found.items, most or found.items)
    for position in range(1, answered + 1):
        shown = assignments.item(database, found.id, position)
        if shown is None:
            raise ValueError(position)
        left, right = (passage.text for passage in shown.passages)
        choice = Choice(side=decide(shown.query, left, right), by="key", active_ms=4_000)
        assignments.answer(database, found.id, position, choice, replaces=0, shown_at=now, now=now)
    end = assignments.exit_assignment if most else assignments.submit
    end(database, found.id, now=now)
    return answered


def _careless(_query: str, left: str, right: str) -> Literal["left", "right"]:
    """The longer one, whatever is asked: fails a test sooner or later."""
    return "left" if len(left) > len(right) else "right"


def _attentive(seed: int, good: Mapping[tuple[str, str], float]) -> Decide:
    """A judge who prefers what is better, and errs the more the less it is better.

    What is chosen depends on the question alone, so that the story ends the same whoever is first
    to be given a task.
    """

    def decide(query: str, left: str, right: str) -> Literal["left", "right"]:
        first, second = sorted((left, right))
        text = f"{seed}\n{query}\n{first}\n{second}".encode()
        rng = np.random.default_rng(int(digest_bytes(text), 16))
        judge = SimulatedJudge(strengths=good, rng=rng)
        return "left" if judge.choose(query, first, second) == left else "right"

    return decide
