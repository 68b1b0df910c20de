"""Real submissions with the official figures of their day: TREC-COVID round 1, TREC DL 2021."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from heldout.board.organiser.creation import GivenSet
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.reading.sources import open_input

__all__ = ["COLLECTIONS", "Collection", "Entry", "statistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run that somebody submitted.

    Attributes:
        run: its name in the official table.
        team: who submitted it.
        type: kind of run, as the track names them.
        path: the run file.
        scores: view -> official figure as printed, 4 decimals.
    """

    run: str
    team: str
    type: str
    path: Path
    scores: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Runs, topics and judgments of one evaluation campaign, and the board made of them.

    Attributes:
        name: of the board.
        title: of the page.
        queries, qrels, runs, statistics: where they lie below the data folder.
        views: view -> measure; the first one ranks.
        depth: most documents per query.
        types: kinds of runs.
    """

    name: str
    title: str
    queries: str
    qrels: str
    runs: str
    statistics: str
    views: Mapping[str, str]
    depth: int
    types: tuple[str, ...]

    @property
    def primary(self) -> str:
        """The view that ranks."""
        return next(iter(self.views))

    def given(self, data: Path) -> GivenSet:
        """Topics and judgments, as an organiser hands them in."""
        with open_input(data / self.queries) as source:
            queries = read_queries(source, path=self.queries)
        with open_input(data / self.qrels) as source:
            qrels = read_qrels(source, path=self.qrels)
        return GivenSet(queries=queries, qrels=qrels, public=False)

    def entries(self, data: Path) -> tuple[Entry, ...]:
        """Every run whose file is there, by the order of the official table."""
        read = _deep_entries if self.name == "trec-dl-2021-passage" else _covid_entries
        return tuple(entry for entry in read(self, data) if entry.path.is_file())


COLLECTIONS = {
    collection.name: collection
    for collection in (
        Collection(
            name="trec-covid-round1",
            title="TREC-COVID round 1, 100 best documents",
            queries="trec-covid-round1/topics-round1.xml",
            qrels="trec-covid-round1/qrels-round1.txt.gz",
            runs="trec-covid-round1/runs-depth100",
            statistics="trec-covid-round1/run-statistics.tsv",
            views={"ndcg": "nDCG@10", "p5": "P@5", "rbp": "RBP(p=0.5,max_rel=2)"},
            depth=100,
            types=("automatic", "manual"),
        ),
        Collection(
            name="trec-covid-round1-full",
            title="TREC-COVID round 1, whole runs",
            queries="trec-covid-round1/topics-round1.xml",
            qrels="trec-covid-round1/qrels-round1.txt.gz",
            runs="trec-covid-round1/runs-full",
            statistics="trec-covid-round1/run-statistics.tsv",
            views={"ap": "AP", "bpref": "Bpref"},
            depth=1000,
            types=("automatic", "manual"),
        ),
        Collection(
            name="trec-dl-2021-passage",
            title="TREC 2021 Deep Learning, passages",
            queries="trec-dl-2021-passage/topics.tsv",
            qrels="trec-dl-2021-passage/qrels.dl21-passage.txt.gz",
            runs="trec-dl-2021-passage/runs",
            statistics="trec-dl-2021-passage/run-statistics.tsv",
            views={"ndcg": "nDCG@10", "ap": "AP(rel=2)", "rr": "RR(rel=2)"},
            depth=100,
            types=("auto",),
        ),
    )
}
"""The boards, by name; the whole runs are 24 of the 143 of round 1."""

_COVID_COLUMNS = {
    "ndcg": "ndcg@10",
    "p5": "p@5",
    "rbp": "RBP(p=.5)",
    "ap": "MAP",
    "bpref": "bpref",
}


def statistics(collection: Collection, data: Path) -> Mapping[str, Mapping[str, str]]:
    """Run -> what was counted in its file by other means."""
    with (data / collection.statistics).open(encoding="utf-8", newline="") as file:
        return {row["run"]: row for row in csv.DictReader(file, delimiter="\t")}


def _covid_entries(collection: Collection, data: Path) -> Iterator[Entry]:
    table = (data / collection.runs).parent / "leaderboard.csv"
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield Entry(
                run=row["run"],
                team=row["team"],
                type=row["runtype"],
                path=data / collection.runs / f"{row['run']}.gz",
                scores={view: row[_COVID_COLUMNS[view]] for view in collection.views},
            )


def _deep_entries(collection: Collection, data: Path) -> Iterator[Entry]:
    """nDCG of the rows on graded judgments, AP and RR of those on binary ones."""
    table = (data / collection.runs).parent / "official-results.tsv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    binary = {row["run"]: row for row in rows if row["summary_kind"] == "trec_eval"}
    graded = [row for row in rows if row["summary_kind"] == "passages-eval"]
    for row in sorted(graded, key=lambda row: (-float(row["ndcg_cut_10"]), row["run"])):
        other = binary[row["run"]]
        yield Entry(
            run=row["run"],
            team=row["participant"],
            type=row["type"],
            path=data / collection.runs / f"{row['run']}.gz",
            scores={
                "ndcg": row["ndcg_cut_10"],
                "ap": other["map"],
                "rr": other["recip_rank"],
            },
        )
