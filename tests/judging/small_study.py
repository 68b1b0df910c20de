"""Three runs on twelve queries, and the campaign of their first documents; d1 is known."""

import json
from collections.abc import Callable
from pathlib import Path

import calling
from heldout.judging.campaign.judgments import Judgment, format_judgments

RUNS = {"A": ["d1", "d2", "d3"], "B": ["d2", "d1", "d3"], "C": ["d3", "d2", "d1"]}
QUERIES = [f"q{n}" for n in range(12)]


def judge(query: str, one: str, other: str, answered_at: str = "") -> Judgment:
    """Prefer the first passage, which stands on the right."""
    return Judgment(query=query, left=other, right=one, preferred=one, answered_at=answered_at)


def make_study(
    folder: Path, *options: object, upside_down: str = "", judged: Callable[[int], str]
) -> Path:
    """Pool the runs and judge every pair, by the order of passages that a query's number has."""
    (folder / "queries.tsv").write_text("".join(f"{one}\twhat is {one}\n" for one in QUERIES))
    (folder / "known.qrels").write_text("".join(f"{query} 0 d1 1\n" for query in QUERIES))
    for run, docs in RUNS.items():
        rows = [
            f"{query} Q0 {doc} {n} {9 - n} {run}\n"
            for query in QUERIES
            for n, doc in enumerate(docs if query != upside_down else docs[::-1], 1)
        ]
        (folder / f"{run}.run").write_text("".join(rows))
    files = ("--qrels", folder / "known.qrels", "--queries", folder / "queries.tsv")
    runs = (folder / f"{run}.run" for run in RUNS)
    done = calling.call("prefer", "pool", *runs, *files, *options, "--out", folder / "campaign")
    assert done.exit_code == 0, done.output
    pools = (folder / "campaign" / "pool.jsonl").read_text().splitlines()
    judgments = []
    for number, query in enumerate(json.loads(row)["query"] for row in pools):
        docs = [f"d{n}" for n in judged(number)]
        at = f"2026-11-{number + 1:02}T12:00:00.000Z"
        for one, other in ((0, 1), (0, 2), (1, 2)):
            judgments.append(judge(query, docs[one], docs[other], at))
    (folder / "campaign" / "judgments.jsonl").write_bytes(format_judgments(judgments))
    return folder
