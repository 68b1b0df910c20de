"""Runs that differ only by seed as one submission, through the command line, to the archive."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from lab import LAST, NEXT, QUERIES, TEAM, Answer, Lab, Team, findings, fresh_lab
from trusting import Files, forge, read_files

from heldout.board.audit.archive_audit import audit_archive


def seed_text(query_set: str, seed: int, *, system: int = 1) -> str:
    """A run of depth 5: all seeds of a system have the same documents, in orders that differ.

    The relevant document stands first in all but some of the queries, which depend on the seed.
    """
    rng = random.Random(f"{system} {seed}")  # noqa: S311 - made-up runs, not keys
    lines = []
    for number in range(QUERIES):
        documents = [f"d{query_set}{number}", *(f"s{system}-{number}-{i}" for i in range(4))]
        if rng.random() < 0.4:
            documents[0], documents[1] = documents[1], documents[0]
        lines += [f"{query_set}{number}\t{d}\t{rank}" for rank, d in enumerate(documents, 1)]
    return "\n".join(lines) + "\n"


def reciprocal_ranks(text: str, query_set: str) -> list[float]:
    """RR@10 of each query, from the text of a run."""
    found = {}
    for line in text.splitlines():
        query, document, rank = line.split("\t")
        if document == f"d{query}":
            found[query] = 1 / int(rank)
    return [found[f"{query_set}{number}"] for number in range(QUERIES)]


def expected(texts: Sequence[str], query_set: str) -> tuple[str, str]:
    """Mean and spread as they are released, straight from the runs' texts."""
    means = [fmean(reciprocal_ranks(text, query_set)) for text in texts]
    return f"{fmean(means):.3f}", f"{stdev(means):.3f}"


def draft(lab: Lab, name: str, texts: Mapping[str, Sequence[str]], *, team: Team = TEAM) -> Answer:
    """`heldout draft` with an option for each text; a first draft is filled in."""
    args: list[str | Path] = []
    for query_set, several in texts.items():
        for number, text in enumerate(several):
            file = lab.root / f"{query_set}-{number}.run"
            file.write_text(text)
            args += [f"--{query_set}", file]
    answer = lab.participant("draft", name, *args, "--json")
    if answer.code == 0:
        lab.fill(answer.json["id"], **team)
    return answer


def send(lab: Lab, name: str, texts: Mapping[str, Sequence[str]], *, team: Team = TEAM) -> str:
    submission = str(draft(lab, name, texts, team=team).json["id"])
    lab.participant("submit", submission).done()
    lab.take_in()
    return submission


def both() -> dict[str, list[str]]:
    return {name: [seed_text(name, seed) for seed in (1, 2, 3)] for name in ("dev", "eval")}


lab = fresh_lab


def test_three_seeds_from_the_draft_to_the_page(lab: Lab) -> None:
    texts = both()
    name = draft(lab, "one", texts).json["id"]
    folder = lab.clone / ".git/heldout/drafts" / name
    assert {file.name for file in folder.iterdir()} == {
        *("dev.run", "dev~2.run", "dev~3.run", "eval.run", "eval~2.run", "eval~3.run"),
        "metadata.json",
    }
    dev, dev_spread = expected(texts["dev"], "dev")
    official, spread = expected(texts["eval"], "eval")
    lab.participant("check", name).done(f"RR@10 {dev} ± {dev_spread}, 3 seeds")
    assert lab.participant("submit", name).code == 0
    lab.take_in()
    lab.organiser("review", name, "--score", now=NEXT).done(
        f"eval RR@10 {official} ± {spread}, 3 seeds, n = 30", "findings  none"
    )
    said = lab.publish(name, now=NEXT)
    assert f"released  RR@10 {official} ± {spread}, 3 seeds, n = 30 (dev {dev} ± " in said.out
    event = lab.events()[-1]
    assert event["public"]["scores"] == {"eval": official, "dev": dev}
    assert event["public"]["seeds"] == {"runs": 3, "spreads": {"eval": spread, "dev": dev_spread}}
    (row,) = lab.rows()
    assert row["scores"] == {"eval": float(official), "dev": float(dev)}
    assert (row["seeds"], row["spreads"]["eval"]) == (3, float(spread))
    page = (lab.board / "leaderboard/index.html").read_text("utf-8")
    assert f"&nbsp;{spread}</span>" in page
    assert '<span class="tag">3 seeds</span>' in page
    assert "3 seeds" in (lab.board / f"leaderboard/entries/{name}.html").read_text("utf-8")
    assert f"{official} ± {spread}, 3 seeds" in (lab.board / "leaderboard/feed.xml").read_text()
    lab.share()
    status = lab.participant("status", name, now=NEXT)
    assert f"eval {official} ± {spread}, 3 seeds (n = 30)" in status.out
    assert lab.audit()["ok"]


def test_the_archive_opens_each_seed_and_is_scored_again(lab: Lab) -> None:
    team = {**TEAM, "open_runs": True}
    name = send(lab, "one", both(), team=team)
    assert lab.publish(name, now=NEXT).code == 0
    runs = [t for q in ("dev", "eval") for n in (1, 2, 3) for t in (f"--{q}", run_file(lab, q, n))]
    args = ("board", "baseline", "20261101-bm25", *runs, "--description", "BM25")
    assert lab.organiser(*args, now=NEXT).code == 0
    lab.push()
    archive = lab.archive()
    files = read_files(archive)
    for owner, suffix in ((name, ".run"), ("20261101-bm25", "")):
        opened = {file.removeprefix(f"runs/{owner}/") for file in files if owner in file}
        assert {f"eval{suffix}", f"eval~2{suffix}", f"dev~3{suffix}"} <= opened
    shown = lab.participant("audit", archive, now=LAST, clone=lab.root)
    assert "scores by query of 2 against their runs" in shown.out

    def spread(files: Files) -> None:
        scores = json.loads(files[f"scores/{name}.json"])
        seeds = scores["views"]["eval"]["seeds"]
        scores["views"]["eval"]["seeds"] = [seeds[0] - 0.1, seeds[1] + 0.1, seeds[2]]
        files[f"scores/{name}.json"] = json.dumps(scores).encode()

    def drop(files: Files) -> None:
        del files[f"runs/{name}/eval~2.run"]

    def swap(files: Files) -> None:
        files[f"runs/{name}/eval~2.run"] = seed_text("eval", 9).encode()

    for change, said in (
        (spread, "does not follow from its scores by query"),
        (drop, "are not those that are opened"),
        (swap, "give other scores in view eval"),
    ):
        found = audit_archive(forge(archive, change, lab.root / f"{change.__name__}.zip"))
        assert any(said in fault for fault in found.faults), (change.__name__, found.faults)


def run_file(lab: Lab, query_set: str, seed: int) -> Path:
    file = lab.root / f"baseline-{query_set}-{seed}.run"
    file.write_text(seed_text(query_set, seed, system=7))
    return file


def test_seeds_sealed_for_a_board_that_takes_none_are_refused(lab: Lab) -> None:
    name = str(draft(lab, "one", both()).json["id"])
    lab.send_unchecked(name)
    lab.edit(("seeds = 5\n", "seeds = 2\n"))
    assert lab.organiser("rebuild").code == 0
    lab.take_in()
    assert "3 seeds" in findings(lab, name)["metadata"]
    assert lab.publish(name, now=NEXT).code == 1
