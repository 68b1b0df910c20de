"""Runs that differ only by seed as one submission, through the command line, to the archive."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from town import QUERIES, TEAM, Answer, Town, fresh_town
from trusting import Files, forge, read_files

from heldout.board.audit.archive_audit import audit_archive

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
LAST = "2026-12-02T10:00:00Z"


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


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    centre = mean(values)
    return math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))


def expected(texts: Sequence[str], query_set: str) -> tuple[str, str]:
    """Mean and spread as they are released, straight from the runs' texts."""
    means = [mean(reciprocal_ranks(text, query_set)) for text in texts]
    return f"{mean(means):.3f}", f"{deviation(means):.3f}"


def seed_texts(query_set: str, seeds: int = 3, *, system: int = 1) -> list[str]:
    return [seed_text(query_set, seed, system=system) for seed in range(1, seeds + 1)]


def draft(
    town: Town, name: str, texts: Mapping[str, Sequence[str]], *, team: Mapping[str, Any] = TEAM
) -> Answer:
    """`heldout draft` with an option for each text; a first draft is filled in."""
    told: list[str | Path] = []
    for query_set, several in texts.items():
        for number, text in enumerate(several):
            file = town.root / f"{query_set}-{number}.run"
            file.write_text(text)
            told += [f"--{query_set}", file]
    answer = town.participant("draft", name, *told, "--json", now=DAY)
    if answer.code == 0:
        town.fill(answer.json["id"], **team)
    return answer


def send(
    town: Town, name: str, texts: Mapping[str, Sequence[str]], *, team: Mapping[str, Any] = TEAM
) -> str:
    submission = str(draft(town, name, texts, team=team).json["id"])
    town.participant("submit", submission, now=DAY).done()
    town.take_in(now=DAY)
    return submission


def both(seeds: int = 3, *, system: int = 1) -> dict[str, list[str]]:
    return {name: seed_texts(name, seeds, system=system) for name in ("dev", "eval")}


def findings(town: Town, submission: str) -> dict[str, str]:
    (review,) = town.organiser("review", submission, "--json", now=NEXT).json["reviews"]
    return {finding["rule"]: finding["evidence"] for finding in review["findings"]}


town = fresh_town


def test_three_seeds_from_the_draft_to_the_page(town: Town) -> None:
    texts = both()
    answer = draft(town, "one", texts)
    name = answer.json["id"]
    folder = town.clone / ".git/heldout/drafts" / name
    assert {file.name for file in folder.iterdir()} == {
        *("dev.run", "dev~2.run", "dev~3.run", "eval.run", "eval~2.run", "eval~3.run"),
        "metadata.json",
    }
    dev, dev_spread = expected(texts["dev"], "dev")
    official, spread = expected(texts["eval"], "eval")
    checked = town.participant("check", name, now=DAY).done()
    assert f"RR@10 {dev} ± {dev_spread}, 3 seeds" in checked.out
    assert town.participant("submit", name, now=DAY).code == 0
    town.take_in(now=DAY)
    reviewed = town.organiser("review", name, "--score", now=NEXT).done()
    assert f"eval RR@10 {official} ± {spread}, 3 seeds, n = 30" in reviewed.out
    assert "findings  none" in reviewed.out
    told = town.publish(name, now=NEXT)
    assert f"released  RR@10 {official} ± {spread}, 3 seeds, n = 30 (dev {dev} ± " in told.out
    event = town.events()[-1]
    assert event["public"]["scores"] == {"eval": official, "dev": dev}
    assert event["public"]["seeds"] == {
        "runs": 3,
        "spreads": {"eval": spread, "dev": dev_spread},
    }
    (row,) = town.rows()
    assert row["scores"] == {"eval": float(official), "dev": float(dev)}
    assert (row["seeds"], row["spreads"]["eval"]) == (3, float(spread))
    page = (town.board / "leaderboard/index.html").read_text("utf-8")
    assert f"&nbsp;{spread}</span>" in page
    assert '<span class="tag">3 seeds</span>' in page
    assert "3 seeds" in (town.board / f"leaderboard/entries/{name}.html").read_text("utf-8")
    assert f"{official} ± {spread}, 3 seeds" in (town.board / "leaderboard/feed.xml").read_text()
    town.share()
    status = town.participant("status", name, now=NEXT)
    assert f"eval {official} ± {spread}, 3 seeds (n = 30)" in status.out
    assert town.audit()["ok"]


def test_the_archive_opens_each_seed_and_is_scored_again(town: Town) -> None:
    team = {**TEAM, "open_runs": True}
    name = send(town, "one", both(), team=team)
    assert town.publish(name, now=NEXT).code == 0
    runs = [t for q in ("dev", "eval") for n in (1, 2, 3) for t in (f"--{q}", run_file(town, q, n))]
    told = ("board", "baseline", "20261101-bm25", *runs, "--description", "BM25")
    assert town.organiser(*told, now=NEXT).code == 0
    town.push()
    archive = town.root / "kb.zip"
    town.organiser("archive", archive, "--yes", now=LAST).done()
    files = read_files(archive)
    for owner, suffix in ((name, ".run"), ("20261101-bm25", "")):
        opened = {file.removeprefix(f"runs/{owner}/") for file in files if owner in file}
        assert {f"eval{suffix}", f"eval~2{suffix}", f"dev~3{suffix}"} <= opened
    audited = town.participant("audit", archive, "--json", now=LAST, clone=town.root)
    assert (audited.code, audited.json["faults"]) == (0, []), audited
    shown = town.participant("audit", archive, now=LAST, clone=town.root)
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
        found = audit_archive(forge(archive, change, town.root / f"{change.__name__}.zip"))
        assert any(said in fault for fault in found.faults), (change.__name__, found.faults)


def run_file(town: Town, query_set: str, seed: int) -> Path:
    file = town.root / f"baseline-{query_set}-{seed}.run"
    file.write_text(seed_text(query_set, seed, system=7))
    return file


def test_a_copy_as_a_further_seed_is_refused(town: Town) -> None:
    texts = both()
    texts["eval"][2] = texts["eval"][1].replace("\n", "\r\n")  # other bytes, the same run
    answer = draft(town, "copy", texts)
    checked = town.participant("check", answer.json["id"], now=DAY)
    assert checked.code == 1
    assert "copied-seeds: eval~3 has the same documents in the same order as eval~2" in checked.out
    town.send_unchecked(answer.json["id"], now=DAY)
    town.take_in(now=DAY)
    assert "copied-seeds" in findings(town, answer.json["id"])
    assert town.publish(answer.json["id"], now=NEXT).code == 1


def test_seeds_sealed_for_a_board_that_takes_none_are_refused(town: Town) -> None:
    name = str(draft(town, "one", both()).json["id"])
    town.send_unchecked(name, now=DAY)
    town.edit(("seeds = 5\n", "seeds = 2\n"))
    assert town.organiser("rebuild", now=DAY).code == 0
    town.take_in(now=DAY)
    assert "3 seeds" in findings(town, name)["metadata"]
    assert town.publish(name, now=NEXT).code == 1
