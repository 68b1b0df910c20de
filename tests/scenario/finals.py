"""A lab with a final: a last day, and a view with finalists on queries of its own."""

from pathlib import Path

from lab import DAY, QUERIES, TEAM, Lab, Team, founding, git, run_text, write_inputs

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


def add_final(lab: Lab) -> None:
    """A last day, and a view with finalists on a query set of its own, in force and public."""
    add_final_files(lab)
    lab.organiser("rebuild").done()
    lab.share()


def add_final_files(lab: Lab) -> None:
    """The files of that."""
    numbers = range(QUERIES)
    queries = "".join(f"final{i}\twhat is thing {i} of final\n" for i in numbers)
    (lab.board / "queries/final.tsv").write_text(queries)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (lab.vault / "labels/final.qrels").write_text(labels)
    lab.edit(("# closes = 2027-03-31", "closes = 2026-11-30"), more=FINAL)


def found_prize(folder: Path) -> Lab:
    """A lab whose board `board new --stake prize --final` made, with a baseline."""
    lab = Lab(folder / "lab")
    lab.root.mkdir()
    (lab.root / ".gitconfig").write_text("[user]\n\tname = Someone\n\temail = someone@here\n")
    write_inputs(lab.root)
    numbers = range(QUERIES)
    queries = "".join(f"final{i}\twhat is thing {i} of final\n" for i in numbers)
    (lab.root / "final.tsv").write_text(queries)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (lab.root / "final.qrels").write_text(labels)
    final = ("--final", lab.root / "final.tsv", lab.root / "final.qrels")
    args = ("--stake", "prize", *final, "--closes", "2026-11-30")
    lab.call(*founding(lab.root), *args).done()
    git(lab.root, "init", "-q", "--bare", "--template=", "-b", "main", "forge")
    git(lab.board, "remote", "add", "origin", str(lab.forge))
    files = write_runs(lab, 9)
    baseline = ("board", "baseline", "20261101-bm25", *files, "--description", "BM25")
    lab.organiser(*baseline).done()
    git(lab.board, "push", "-q", "origin", "main")
    git(lab.root, "clone", "-q", "--template=", str(lab.forge), "clone")
    return lab


def write_runs(lab: Lab, seed: int) -> list[str]:
    """Options that name a run for each of the three sets."""
    files: list[str] = []
    for query_set in ("dev", "eval", "final"):
        path = lab.root / f"{query_set}.run"
        path.write_text(run_text(query_set, seed + 20 * (query_set == "final")))
        files += ["--run", f"{query_set}={path}"]
    return files


def send_final(
    lab: Lab, name: str, *, seed: int, team: Team = TEAM, now: str = DAY, embargo: str | None = None
) -> str:
    """Submit a run for each of the three sets."""
    files = write_runs(lab, seed)
    args = ("--embargo", embargo) if embargo else ()
    answer = lab.participant("draft", name, *files, *args, "--json", now=now).done()
    submission = str(answer.json["id"])
    lab.fill(submission, **team)
    assert lab.participant("submit", submission, now=now).code == 0
    return submission
