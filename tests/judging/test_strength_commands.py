"""`heldout prefer strengths` and `bias`: what they say, in every form."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import calling
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.studies.judges import SimulatedJudge

value_of = partial(calling.answer, "prefer")


def call(*arguments: object, code: int = 0) -> str:
    found = calling.call("prefer", *arguments)
    assert found.exit_code == code, found.output
    return found.output


def write_runs(folder: Path, queries: int) -> None:
    for run, doc in (("good", "x"), ("bad", "y"), ("alike", "y")):
        lines = [f"q{n} Q0 {doc} 1 1.0 {run}" for n in range(queries)]
        (folder / f"{run}.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    write_runs(tmp_path, 40)
    lines = [f"q{n} x y {'x' if n % 4 else 'y'}" for n in range(40)]
    (tmp_path / "pairs.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_strengths_are_the_same_for_the_same_seed_and_in_every_form(judged: Path) -> None:
    wanted = ["strengths", "--judgments", judged / "pairs.txt", "--runs", judged / "*.txt"]
    wanted = [*wanted[:-1], judged / "[abg]*.txt", "--draws", 50]
    assert value_of(*wanted) == value_of(*wanted)
    words = call(*wanted)
    assert words.startswith("good is strongest; 0 of 2 other runs may be as strong as good")
    assert "1 of 2 others cannot be told" not in words
    assert "| good |" in call(*wanted, "--markdown")
    assert r"\begin" in call(*wanted, "--latex")
    chart = judged / "strengths.svg"
    call(*wanted, "--chart", chart)
    assert "<svg" in chart.read_text()


def test_strengths_without_a_prior_are_refused_where_they_have_no_bound(judged: Path) -> None:
    (judged / "pairs.txt").write_text("".join(f"q{n} x y x\n" for n in range(9)))
    wanted = ("strengths", "--judgments", judged / "pairs.txt", "--runs", judged / "*d.txt")
    assert "no-finite-strengths" in call(*wanted, "--prior", 0, code=2)
    assert "without the prior" in call(*wanted, "--draws", 20)


def make_campaign(folder: CampaignFolder) -> None:
    rng = np.random.default_rng(0)
    folder.create("habits")
    pools = [
        Pool(
            query=f"q{n}",
            candidates=tuple(
                Candidate(doc=f"q{n}d{m}", text="word " * int(rng.integers(5, 60)))
                for m in range(4)
            ),
        )
        for n in range(40)
    ]
    folder.write_pools(pools)
    strengths = {
        (pool.query, one.doc): float(rng.normal(0, 0.8))
        for pool in pools
        for one in pool.candidates
    }
    judge = SimulatedJudge(strengths=strengths, rng=rng, left=0.8)
    judged: list[Judgment] = []
    for pool in pools:
        names = [one.doc for one in pool.candidates]
        for place, left in enumerate(names):
            for right in names[:place]:
                one, other = rng.permutation([left, right]).tolist()
                judged.append(
                    Judgment(
                        query=pool.query,
                        left=one,
                        right=other,
                        preferred=judge.choose(pool.query, one, other),
                        worker=f"w{len(judged) % 7}",
                        task=f"t{len(judged) // 10}",
                        position=len(judged) % 10 + 1,
                    )
                )
    folder.write_judgments(judged)


def test_bias_finds_the_habit_of_a_campaigns_judges(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path)
    make_campaign(folder)
    value = value_of("bias", tmp_path)
    assert value["judgments"] == 240
    assert value["p"] < 0.001
    assert value["position"]["low"] < 0.8 < value["position"]["high"]
    assert value["length"]["low"] < 0 < value["length"]["high"]
    assert len(value["judges"]["judges"]) == value["workers"] == 7
    words = call("bias", tmp_path)
    assert "Judges chose the left passage in" in words
    assert "twice as long" in words


def test_strengths_of_ties_alone_name_nobody_and_have_no_interval(judged: Path) -> None:
    (judged / "pairs.txt").write_text("".join(f"q{n} x y x\nq{n} x y y\n" for n in range(9)))
    wanted = ("strengths", "--judgments", judged / "pairs.txt", "--runs", judged / "*d.txt")
    words = call(*wanted, "--draws", 20)
    assert words.startswith("No run is strongest: all are as strong as each other.")
    (one,) = value_of(*wanted, "--draws", 20)["differences"]
    assert (one["sandwich"], one["bootstrap"]) == (None, None)
    assert one["why"] == "queries do not differ in what they say"


def test_a_run_that_won_everything_has_a_reason_for_every_interval_it_lacks(judged: Path) -> None:
    (judged / "pairs.txt").write_text("".join(f"q{n} x y x\n" for n in range(9)))
    wanted = ("strengths", "--judgments", judged / "pairs.txt", "--runs", judged / "*d.txt")
    (one,) = value_of(*wanted, "--draws", 20)["differences"]
    assert (one["sandwich"], one["bootstrap"]) == (None, None)
    assert "without the prior" in one["why"]
    words = call(*wanted, "--draws", 20)
    assert "cannot be told from it" not in words
    assert words.startswith("good is strongest; the difference to 1 other run has no interval.")


def test_strengths_of_runs_that_no_judged_pair_compares_name_nobody(judged: Path) -> None:
    (judged / "pairs.txt").write_text("q0 other another other\n")
    words = call("strengths", "--judgments", judged / "pairs.txt", "--runs", judged / "*d.txt")
    assert words.startswith("No run is strongest: no judged pair compares two of the runs.")
