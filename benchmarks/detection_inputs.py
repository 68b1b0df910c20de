"""The real runs of the detection benchmark, and fusions of them."""

import csv
import gzip
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heldout.board.policy.similarity import DEPTH
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit, Run, fuse_reciprocal, fuse_scores
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Signature

__all__ = ["FUSIONS", "Campaign", "load", "read_run", "sign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Runs that teams submitted to one task."""

    name: str
    folder: Path
    runs: Mapping[str, Signature]
    teams: Mapping[str, str]

    def others(self, run: str) -> dict[str, Signature]:
        """All runs but this one."""
        return {name: signature for name, signature in self.runs.items() if name != run}

    def foreign(self, run: str) -> dict[str, Signature]:
        """The runs of other teams."""
        team = self.teams[run]
        return {name: s for name, s in self.runs.items() if self.teams[name] != team}


def load(data: Path) -> list[Campaign]:
    """The three campaigns, with the team of each run."""
    passages, covid = data / "trec-dl-2021-passage", data / "trec-covid-round1"
    one = data / "trec-dl-2020-doc-one-team"
    teams = {
        "TREC DL 2021 passages": (
            passages / "runs",
            read_teams(passages / "official-results.tsv", "participant", "\t"),
        ),
        "TREC-COVID round 1": (
            covid / "runs-depth100",
            read_teams(covid / "leaderboard.csv", "team", ","),
        ),
        "DL 2020 documents, BIT.UA": (one, {name(p): "BIT.UA" for p in one.glob("*.gz")}),
    }
    return [
        Campaign(
            name=title,
            folder=folder,
            runs={name(path): scan(path) for path in sorted(folder.glob("*.gz"))},
            teams=by_run,
        )
        for title, (folder, by_run) in teams.items()
    ]


def name(path: Path) -> str:
    """The run that a file holds."""
    return path.name.removesuffix(".gz")


def scan(path: Path) -> Signature:
    """The signature of a run file."""
    with path.open("rb") as file:
        return scan_run(file, path=path.name, order="trec9", signature_depth=DEPTH).signature


def read_teams(path: Path, column: str, delimiter: str) -> dict[str, str]:
    """Run -> team, from an official table."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["run"]: row[column] for row in csv.DictReader(file, delimiter=delimiter)}


def read_run(path: Path) -> Run:
    """A run with its scores, in the order of `trec.ranking`."""
    run: dict[QueryId, list[Hit]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            query, _, document, _, score, *_ = line.split()
            run.setdefault(QueryId(query), []).append(Hit(DocId(document), float(score)))
    for hits in run.values():
        hits.sort(key=lambda hit: (np.float32(hit.score), hit.document.encode()), reverse=True)
        del hits[DEPTH:]
    return run


def sign(run: Run) -> Signature:
    """The signature of a run that was made here."""
    queries = tuple(sorted(run))
    documents = np.zeros((len(queries), DEPTH), np.uint64)
    for row, query in zip(documents, queries, strict=True):
        row[: len(run[query])] = hash_documents([hit.document.encode() for hit in run[query]])
    return Signature(queries=queries, documents=documents)


def interleave(runs: Sequence[Run]) -> Run:
    """In turns, each time the next document that is not there yet."""
    woven: dict[QueryId, list[Hit]] = {}
    for query in sorted({query for run in runs for query in run}):
        turns = itertools.zip_longest(*(run.get(query, ()) for run in runs))
        documents = dict.fromkeys(hit.document for turn in turns for hit in turn if hit)
        woven[query] = [Hit(d, -float(place)) for place, d in enumerate(documents)][:DEPTH]
    return woven


FUSIONS: Mapping[str, Callable[[Sequence[Run]], Run]] = {
    "RRF, k = 60": lambda runs: fuse_reciprocal(runs, depth=DEPTH, k=60),
    "CombSUM of stretched scores": lambda runs: fuse_scores(runs, depth=DEPTH),
    "interleaving": interleave,
}
