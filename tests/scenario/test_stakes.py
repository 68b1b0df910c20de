"""Boards that `board new` makes for each stake: the next steps work, to page and audit."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from statistics import stdev
from typing import Any

import lab as labs
import pytest
from lab import OTHER_TEAM, TEAM, Lab, Patch, call, founding, new_lab, write_inputs

from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec

DAY, NEXT = "2026-11-02T10:00:00Z", "2026-11-03T10:00:00Z"

PLACES: dict[int, Callable[[int], int]] = {
    1: lambda number: 4 if number % 3 == 0 else 5,
    2: lambda number: 2 if number % 7 == 0 else 1,
    3: lambda number: 2 if number % 7 == 3 else 1,
}
"""Seed of a run -> query -> rank of its answer: a baseline, two equal runs far above it."""


def placed(query_set: str, seed: int) -> str:
    lines = []
    for number in range(labs.QUERIES):
        documents = [f"n{number}-{4 * seed - 4 + i}" for i in range(4)]
        documents.insert(PLACES[seed](number) - 1, f"d{query_set}{number}")
        lines += [f"{query_set}{number}\t{d}\t{rank}" for rank, d in enumerate(documents, 1)]
    return "\n".join(lines) + "\n"


def rules_of(folder: Path) -> BoardSpec:
    return parse_spec((folder / "board" / "board.toml").read_bytes())


def row_of(lab: Lab, submission: str) -> dict[str, Any]:
    return next(row for row in lab.rows() if row["id"] == submission)


def show_baseline(folder: Path, said: str, *more: str) -> None:
    """Call the command that `board new` printed, with a run in place of each FILE."""
    (line,) = re.findall(r"clear` begins: heldout (board baseline .*)", said)
    files = []
    for name in ("dev", "eval", *more):
        files.append(folder / f"bm25-{name}")
        files[-1].write_text(placed(name, 1))
    words = shlex.split(line)
    for file in files:
        at = next(i for i, word in enumerate(words) if word.endswith("FILE"))
        words[at] = words[at].removesuffix("FILE") + str(file)
    call(folder, *words, "--now", labs.FOUNDED).done()


@pytest.mark.parametrize(
    ("queries", "informing"),
    [pytest.param(1200, "feedback", marks=pytest.mark.night), (70, "check")],
)
def test_an_open_board_takes_a_baseline_and_entries_and_is_audited(
    tmp_path: Path, monkeypatch: Patch, queries: int, informing: str
) -> None:
    monkeypatch.setattr(labs, "QUERIES", queries)
    monkeypatch.setattr(labs, "run_text", placed)
    lab = Lab(tmp_path / "lab")
    said = new_lab(lab.root, "--stake", "open").out
    assert f"view {informing} publishes every score" in said
    spec = rules_of(lab.root)
    views = ["eval-1", "eval-2", "eval-3"] if queries > 1000 else ["eval"]
    ranks = views[0]
    assert (spec.release.rule, spec.primary) == ("clear", ranks)
    assert [view.name for view in spec.views] == ["dev", *views, informing]

    show_baseline(lab.root, said)
    lab.share()

    args = ("--why", "known people", "--yes")
    first = lab.receive("first", now=DAY, seed=2, team=TEAM)
    assert lab.organiser("publish", first, *args, now=DAY).code == 0
    second = lab.receive("second", now=NEXT, seed=3, team=OTHER_TEAM)
    assert lab.organiser("publish", second, *args, now=NEXT).code == 0

    counted = {ranks: 300, "feedback": 300} if queries > 1000 else {ranks: 70, "check": 70}
    events = [event["public"] for event in lab.events() if event["kind"] == "published"]
    assert events[0]["queries"] == {"dev": queries, **counted}
    assert events[1]["queries"] == {"dev": queries, informing: counted[informing]}
    better, equal = row_of(lab, first), row_of(lab, second)
    assert better["rank"] == 1
    five_errors = 5 * stdev([1.0] * 6 + [0.5]) / counted[ranks] ** 0.5  # the number has noise
    assert better["scores"][ranks] == pytest.approx(13 / 14, abs=five_errors)
    assert equal["scores"].get(ranks) is None
    assert informing in equal["scores"]
    assert all(row["rank"] is None for row in lab.rows() if row["id"] != first)
    assert lab.audit()["faults"] == []


def prize(folder: Path) -> list[str | Path]:
    """The option that gives the queries of a final, which are written to a folder."""
    numbers = range(labs.QUERIES)
    texts = "".join(f"final{i}\tquestion {i * 7919} of the final\n" for i in numbers)
    (folder / "final.tsv").write_text(texts)
    labels = "".join(f"final{i} 0 dfinal{i} 1\n" for i in numbers)
    (folder / "final.qrels").write_text(labels)
    return ["--final", folder / "final.tsv", folder / "final.qrels"]


def test_a_prize_is_decided_by_a_final_on_a_set_of_its_own(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    known = [tmp_path / f"{name}.tsv" for name in ("good", "weak")]
    for seed, file in zip((2, 1), known, strict=True):
        file.write_text(placed("dev", seed))
    closes = ("--closes", "2027-03-31")
    given = [word for file in known for word in ("--known-run", file)]
    answer = call(tmp_path, *founding(tmp_path), *prize(tmp_path), *closes, *given).done(
        "weak as your best baseline lies",
        "for a prize:",
        "after 2027-03-31, publish their scores (heldout board final)",
    )
    spec = rules_of(tmp_path)
    assert spec.release.rule == "clear"
    assert spec.finalists_view is not None
    assert (spec.finalists_view.set, spec.finalists_view.finalists) == ("final", 10)
    assert [view.name for view in spec.views] == ["dev", "eval", "check", "final"]
    assert (tmp_path / "vault" / "labels" / "final.qrels").is_file()
    assert not (tmp_path / "board" / "qrels" / "final.qrels").exists()
    assert "(done before)" in call(tmp_path, *founding(tmp_path), *prize(tmp_path), *closes).out
    show_baseline(tmp_path, answer.out, "final")

    places = ("--board", tmp_path / "board", "--vault", tmp_path / "vault", *given[:2])
    described = call(tmp_path, "board", "describe", *places)
    assert "wins 14%, 30%, 65% or 98% of finals" in described.out
    assert "-bm25, lies" in described.out
    assert "u below good" in described.out
    gap = call(tmp_path, "board", "describe", *places, "--json").json["gap"]
    assert (gap["best"], gap["queries"]) == ("good", labs.QUERIES)


def test_known_runs_are_at_least_two_and_for_a_board_under_clear(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    one = ("--known-run", tmp_path / "dev.tsv")
    for wrong in (("--stake", "open", *one), ("--stake", "known", *one, *one)):
        call(tmp_path, *founding(tmp_path), *wrong).refused("given at least twice")
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--stake", "open", "--closes", "2027-03-31"), "--final goes with --stake prize"),
        ((), "--final needs a last day: --closes 2027-03-31"),
    ],
)
def test_a_final_that_cannot_be_is_refused(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    write_inputs(tmp_path)
    call(tmp_path, *founding(tmp_path), *prize(tmp_path), *options).refused(said)
    assert not (tmp_path / "board").exists()
