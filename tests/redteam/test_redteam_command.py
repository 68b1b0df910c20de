"""`heldout redteam` as a program is called."""

import json
import re
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner, Result

from heldout.board.rules.template import NewBoard
from heldout.cli.redteam import redteam
from heldout.pipeline.deciding.baseline import add_baseline
from heldout.pipeline.founding.found import GivenSet, found_board
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.report import Line, conclude
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import read_queries

QUERIES = 40
NOW = datetime(2026, 11, 20, tzinfo=UTC)
SMALL = ("--seeds", "3", "--submissions", "6")
RELEASES = ["exact", "rounded", "ladder z=2.39", "ladder z=1", "step 0.01"]
KEYS = {
    *("attack", "release", "submissions", "seeds", "mean_gain", "mean_gain_se"),
    *("false_release_share", "utility"),
}


def run_text(seed: int) -> str:
    """A run in MS MARCO form whose relevant document stands at some rank up to 5."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(QUERIES):
        names = [f"other{n}" for n in range(5)]
        names[rng.integers(5)] = "right"
        rows += [f"q{query}\t{name}\t{rank}\n" for rank, name in enumerate(names, 1)]
    return "".join(rows)


def mean_rr(seed: int) -> float:
    ranks = [int(line.split()[2]) for line in run_text(seed).splitlines() if "right" in line]
    return sum(1 / rank for rank in ranks) / QUERIES


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HELDOUT_VAULT", raising=False)
    Path("queries.tsv").write_text("".join(f"q{n}\ttext {n}\n" for n in range(QUERIES)))
    Path("dev.qrels").write_text("".join(f"q{n} 0 right 1\n" for n in range(QUERIES)))
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        Path(f"{name}.tsv").write_text(run_text(seed))
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(redteam, arguments)


def play(*arguments: str) -> Result:
    return call("--runs", "a.tsv", "b.tsv", "--qrels", "dev.qrels", "-m", "RR@10", *arguments)


def json_of(result: Result) -> Any:
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def judged(path: str) -> Qrels:
    with Path(path).open("rb") as source:
        return read_qrels(source, path=path)


def found(files: Path, *, baselines: tuple[str, ...] = ()) -> None:
    """A board in `board` with its vault in `vault`."""
    with Path("queries.tsv").open("rb") as source:
        queries = read_queries(source, path="queries.tsv")
    # Held-out labels have to hold something that the open ones do not.
    Path("eval.qrels").write_text(Path("dev.qrels").read_text() + "q0 0 elsewhere 1\n")
    plan = NewBoard(
        name="kb",
        title="KB",
        task="Find it.",
        opens=NOW.date(),
        envelope="age",
        recipients=(),
        measure="RR@10",
        order="msmarco",
        depth=10,
        sets={"dev": True, "eval": False},
        primary="eval",
    )
    sets = {
        name: GivenSet(queries=queries, qrels=judged(f"{name}.qrels"), public=public)
        for name, public in plan.sets.items()
    }
    desk = found_board(files / "board", files / "vault", plan, sets, now=NOW)
    for name in baselines:
        runs = {"dev": Path(f"{name}.tsv"), "eval": Path(f"{name}.tsv")}
        add_baseline(desk, f"20261120-{name}", runs, description=name)


@pytest.mark.usefixtures("files")
def test_the_json_has_the_keys_of_the_contract() -> None:
    value = json_of(play(*SMALL, "--json"))
    assert value["queries"] == QUERIES
    assert value["systems"] == ["a", "b"]
    assert value["measure"] == "RR@10"
    assert [(row["attack"], row["release"]) for row in value["attacks"]] == [
        (attack, release) for attack in ATTACKS for release in RELEASES
    ]
    for row in value["attacks"]:
        assert row.keys() >= KEYS
        assert (row["submissions"], row["seeds"]) == (6, 3)
        assert row["mean_gain"] == pytest.approx(row["mean_gain_se"] * value["se"])


@pytest.mark.usefixtures("files")
def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    one, again, other = (
        play(*SMALL, "--queries", "30", "--seed", seed, "--json").stdout for seed in "778"
    )
    assert one == again
    assert json.loads(one)["attacks"] != json.loads(other)["attacks"]


@pytest.mark.usefixtures("files")
def test_the_table_names_the_systems_the_unit_and_every_attack() -> None:
    done = play(*SMALL, "--release", "ladder", "--release", "exact")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "systems   a and b: RR@10" in done.stdout
    assert "3 games of 6 submissions, seed 0" in done.stdout
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert [row for row in rows if row in ATTACKS] == [name for name in ATTACKS for _ in "le"]
    assert "0 is right" in done.stdout


@pytest.mark.usefixtures("files")
def test_markdown_is_a_table_and_nothing_else() -> None:
    lines = play(*SMALL, "--attack", "boosting", "--markdown").stdout.splitlines()
    assert len(lines) == 2 + len(RELEASES)
    assert {line.count("|") for line in lines} == {10}


@pytest.mark.usefixtures("files")
def test_partial_runs_are_refused_unless_the_board_takes_them() -> None:
    small = (*SMALL, "--attack", "partial runs", "--release", "rounded")
    asked, taken = (json_of(play(*small, flag, "--json")) for flag in ("--complete", "--partial"))
    assert [value["complete"] for value in (asked, taken)] == [True, False]
    assert [value["attacks"][0]["refused"] for value in (asked, taken)] == [4, 0]
    assert "refused   partial runs: 4 of 6 runs that leave queries out" in play(*small).stdout


@pytest.mark.usefixtures("files")
def test_more_queries_than_there_are_come_more_than_once() -> None:
    small = (*SMALL, "--attack", "none", "--json", "--queries")
    assert json_of(play(*small, "500"))["queries"] == 500
    assert json_of(play(*small, "12"))["queries"] == 12


def test_a_board_is_attacked_through_its_own_rules(files: Path) -> None:
    found(files)
    rules = files / "board" / "board.toml"
    text = rules.read_text().replace("decimals = 3", "decimals = 2")
    text = re.sub(r"(?ms)^\[release\].*?(?=^\[|\Z)", "", text)
    rules.write_text(text + '\n[release]\nrule = "ladder"\nz = 2.5\nsubmissions = 7\n')
    small = ("--board", "board", "--runs", "a.tsv", "b.tsv", "--seeds", "2", "--attack", "none")
    value = json_of(call(*small, "--json"))
    assert value["own_release"] == "ladder z=2.5"
    assert value["attacks"][0]["submissions"] == 7
    assert [row["release"] for row in value["attacks"]] == [
        *("exact", "rounded", "ladder z=2.45", "ladder z=1", "step 0.01", "ladder z=2.5")
    ]
    shown = call(*small).stdout
    assert "release   the board's own: ladder z=2.5" in shown
    assert "7 submissions at 2 in 30 days take one team 0.3 years" in shown
    assert "runs.complete" not in shown


def test_a_board_that_takes_partial_runs_is_warned(files: Path) -> None:
    found(files)
    rules = files / "board" / "board.toml"
    text = rules.read_text()
    assert "complete = true" in text
    rules.write_text(text.replace("complete = true", "complete = false"))
    shown = call("--board", "board", "--runs", "a.tsv", "b.tsv", *SMALL, "--attack", "none").stdout
    assert "a run that answers one query" in shown


def test_the_two_nearest_baselines_of_the_vault_are_the_systems(files: Path) -> None:
    found(files, baselines=("a", "b", "c"))
    value = json_of(call("--board", "board", "--vault", "vault", *SMALL, "--json"))
    means = {f"20261120-{name}": mean_rr(seed) for name, seed in (("a", 1), ("b", 2), ("c", 3))}
    nearest = min(combinations(means, 2), key=lambda pair: abs(means[pair[0]] - means[pair[1]]))
    assert value["systems"] == list(nearest)
    assert value["truth"] == pytest.approx(sum(means[name] for name in nearest) / 2)
    assert value["queries"] == QUERIES


@pytest.mark.usefixtures("files")
def test_two_systems_that_are_not_about_equally_good_are_warned_of() -> None:
    for name, place in (("best", 1), ("worst", 4)):
        lists = [["right" if p == place else f"other{p}" for p in range(1, 6)]] * QUERIES
        rows = [f"q{q}\t{d}\t{p}\n" for q, one in enumerate(lists) for p, d in enumerate(one, 1)]
        Path(f"{name}.tsv").write_text("".join(rows))
    assert "warning" not in play(*SMALL).stdout
    told = call("--runs", "best.tsv", "worst.tsv", "--qrels", "dev.qrels", "-m", "RR@10", *SMALL)
    assert told.exit_code == 0
    assert f"the systems differ by {QUERIES**0.5:.1f} u; take two" in told.stdout


def test_a_vault_with_one_baseline_plays_it_against_its_scores_in_another_order(
    files: Path,
) -> None:
    found(files, baselines=("a",))
    value = json_of(call("--board", "board", "--vault", "vault", *SMALL, "--json"))
    assert value["systems"] == [
        "20261120-a",
        "20261120-a, its scores in another order of the queries",
    ]
    assert value["truth"] == pytest.approx(mean_rr(1))
    assert value["apart"] == pytest.approx(0, abs=1e-9)


def test_a_vault_without_dev_scores_says_what_to_do(files: Path) -> None:
    found(files)
    done = call("--board", "board", "--vault", "vault", *SMALL)
    assert done.exit_code == 2
    assert "no dev scores of a baseline or a published entry; name two runs" in done.stderr


def test_the_last_line_says_the_strongest_attack_and_the_rule_to_set(files: Path) -> None:
    found(files, baselines=("a", "b"))
    shown = call("--board", "board", "--vault", "vault", *SMALL).stdout
    assert shown.splitlines()[-1].startswith("Your rule, rounded: the strongest of ")


def line(attack: str, release: str, gain: float, *, told: float = 1.0) -> Line:
    return Line(
        attack=attack,
        release=release,
        submissions=300,
        seeds=2,
        mean_gain=gain,
        mean_gain_se=gain * 40,
        gain_sd=1.0,
        false_release_share=0,
        labels=0,
        refused=0,
        utility=told,
        planted_above=told,
    )


def test_the_conclusion_names_a_rule_under_which_better_systems_are_told() -> None:
    played = [
        *(line("none", r, 0.0) for r in ("exact", "rounded", "ladder z=3.59")),
        *(line("boosting", r, g) for r, g in (("exact", 0.05), ("rounded", 0.044))),
        line("boosting", "ladder z=3.59", 0.0001, told=0.6),
        line("none", "step 0.5", -0.1, told=0.1),
        line("boosting", "step 0.5", -0.1, told=0.1),
    ]
    assert conclude(played, "RR@10", own="rounded") == (
        "Your rule, rounded: the strongest of 2 attacks, boosting, gains 0.0440 RR@10 (1.8 u). "
        "With ladder z=3.59 the strongest, boosting, gains 0.0001 RR@10 (0.0 u), and a system that "
        'is really better gets its score in 80% of the games: set rule = "ladder" in '
        "[release]. This holds for one team and a baseline as good as its systems; with a weaker "
        "baseline or many names an attacker gains more (docs/redteam.md)."
    )
    assert conclude(played, "RR@10", own="ladder z=3.59").endswith(
        "No other rule that was played leaves less: keep it."
    )
    assert conclude(played, "RR@10", own="").startswith(
        "Of the rules played here, ladder z=3.59 leaves least: the strongest of 2 attacks"
    )
    assert conclude(played[:1], "RR@10", own="") == ""


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--release", "none"), "redteam-release"),
        (("-m", "FirstRel"), "redteam-measure"),
        (("--runs", "a.tsv", "a.tsv"), "redteam-runs"),
        (("--runs", "a.tsv", "absent.tsv"), "unreadable-file"),
        (("--qrels", "absent.qrels"), "unreadable-file"),
        (("--runs", "a.tsv", "queries.tsv"), "rank-zero"),
    ],
)
def test_what_cannot_be_played(arguments: tuple[str, ...], code: str) -> None:
    done = play(*SMALL, *arguments)
    assert done.exit_code == 2
    assert code in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("--qrels", "dev.qrels", "-m", "RR@10"), "which two systems?"),
        (("--qrels", "dev.qrels", "--runs", "a.tsv", "b.tsv"), "which measure?"),
        (("--runs", "a.tsv", "b.tsv", "-m", "RR@10"), "no board.toml"),
        (("--submissions", "1"), "--submissions"),
        (("--seeds", "0"), "--seeds"),
        (("--runs", "a.tsv", "--seeds", "3"), "two runs are needed, --runs A B; found a.tsv --se"),
        (("--attack", "bribery"), "--attack"),
    ],
)
def test_what_is_not_said_is_asked_for(arguments: tuple[str, ...], asked: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert asked in done.stderr


@pytest.mark.usefixtures("files")
def test_a_board_without_open_labels_says_so(files: Path) -> None:
    found(files)
    rules = files / "board" / "board.toml"
    rules.write_text(rules.read_text().replace('qrels = "qrels/dev.qrels"', ""))
    done = call("--board", "board", "--runs", "a.tsv", "b.tsv", *SMALL)
    assert done.exit_code == 2
    assert "no labels in the open" in done.stderr


@pytest.mark.usefixtures("files")
def test_the_chart_is_the_same_each_time_and_shows_every_attack() -> None:
    pytest.importorskip("vl_convert")
    for name in ("one.svg", "two.svg"):
        assert play(*SMALL, "--release", "exact", "--chart", name).exit_code == 0
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()
    texts = [e.text for e in ET.parse("one.svg").iter() if e.tag.endswith("text")]  # noqa: S314 - ours
    assert [text for text in texts if text in ATTACKS] == list(ATTACKS)
    assert "exact" in texts


@pytest.mark.usefixtures("files")
def test_a_chart_that_cannot_be_written_is_an_error() -> None:
    done = play(*SMALL, "--attack", "none", "--chart", "absent/one.svg")
    assert done.exit_code == 2
    assert "absent/one.svg" in done.stderr
