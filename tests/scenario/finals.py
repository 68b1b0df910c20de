"""A town with a final: a last day, and a view with finalists on queries of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from town import QUERIES, TEAM, Town, call, founding, git, run_text, write_inputs

DAY = "2026-11-02T10:00:00Z"
FINAL = """
[sets.final]
queries = "queries/final.tsv"

[[views]]
name = "final"
set = "final"
measure = "RR@10"
public = false
final = true
finalists = 3
"""


def add_final(town: Town) -> None:
    """A last day, and a view with finalists on a query set of its own, in force and public."""
    add_final_files(town)
    town.organiser("rebuild", now=DAY).done()
    town.share()


def add_final_files(town: Town) -> None:
    """The files of that."""
    numbers = range(QUERIES)
    queries = "".join(f"final{i}\twhat is thing {i} of final\n" for i in numbers)
    (town.board / "queries/final.tsv").write_text(queries)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (town.vault / "labels/final.qrels").write_text(labels)
    rules = town.board / "board.toml"
    text = rules.read_text().replace("# closes = 2027-03-31", "closes = 2026-11-30")
    assert "closes = 2026-11-30" in text
    rules.write_text(text + FINAL)


def found_prize(folder: Path) -> Town:
    """A town whose board `board new --stake prize --final` made, with a baseline."""
    town = Town(folder / "town")
    town.root.mkdir()
    (town.root / ".gitconfig").write_text("[user]\n\tname = Someone\n\temail = someone@here\n")
    write_inputs(town.root)
    numbers = range(QUERIES)
    queries = "".join(f"final{i}\twhat is thing {i} of final\n" for i in numbers)
    (town.root / "final.tsv").write_text(queries)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (town.root / "final.qrels").write_text(labels)
    final = ("--final", town.root / "final.tsv", town.root / "final.qrels")
    told = ("--stake", "prize", *final, "--closes", "2026-11-30")
    call(town.root, *founding(town.root), *told).done()
    git(town.root, "init", "-q", "--bare", "--template=", "-b", "main", "forge")
    git(town.board, "remote", "add", "origin", str(town.forge))
    files = write_runs(town, 9)
    baseline = ("board", "baseline", "20261101-bm25", *files, "--description", "BM25")
    town.organiser(*baseline, now=DAY).done()
    git(town.board, "push", "-q", "origin", "main")
    git(town.root, "clone", "-q", "--template=", str(town.forge), "clone")
    return town


def write_runs(town: Town, seed: int) -> list[str]:
    """Options that name a run for each of the three sets."""
    files: list[str] = []
    for query_set in ("dev", "eval", "final"):
        path = town.root / f"{query_set}.run"
        path.write_text(run_text(query_set, seed + 20 * (query_set == "final")))
        files += ["--run", f"{query_set}={path}"]
    return files


def send_final(
    town: Town,
    name: str,
    *,
    seed: int,
    team: Mapping[str, Any] = TEAM,
    now: str = DAY,
    embargo: str | None = None,
) -> str:
    """Submit a run for each of the three sets."""
    files = write_runs(town, seed)
    told = ("--embargo", embargo) if embargo else ()
    answer = town.participant("draft", name, *files, *told, "--json", now=now).done()
    submission = str(answer.json["id"])
    town.fill(submission, **team)
    assert town.participant("submit", submission, now=now).code == 0
    return submission
