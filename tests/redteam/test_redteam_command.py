"""`heldout redteam` as a program is called."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import calling
from heldout.board.organiser.creation import GivenSet, create_board
from heldout.board.organiser.decide import add_baseline
from heldout.board.rules.template import NewBoard
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.game import AttackLine, conclude
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import read_queries

call = partial(calling.call, "redteam")
refused = partial(calling.refused, "redteam")

QUERIES = 40
NOW = datetime(2026, 11, 20, tzinfo=UTC)
SMALL = ("--seeds", "3", "--submissions", "6")
RELEASES = ["rounded", "clear", "clear+feedback", "clear+noise"]
KEYS = {
    *("attack", "release", "submissions", "seeds", "mean_gain", "mean_gain_se"),
    *("false_release_share", "utility"),
}
ONE = ("--attack", "weighted vote", "--release", "clear")
TWO = ("--release", "rounded", "--release", "clear")


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


def play(*arguments: str) -> Result:
    """What is given takes the place of what every game needs."""
    needed = (("--runs", "a.tsv", "b.tsv"), ("--qrels", "dev.qrels"), ("-m", "RR@10"))
    rest = [word for option in needed if option[0] not in arguments for word in option]
    return call(*rest, *arguments)


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
    session = create_board(files / "board", files / "vault", plan, sets, now=NOW)
    for name in baselines:
        runs = {"dev": Path(f"{name}.tsv"), "eval": Path(f"{name}.tsv")}
        add_baseline(session, f"20261120-{name}", runs, description=name)


def write_run(name: str, place: int, *, last: int | None = None) -> None:
    """A run whose relevant documents all stand at one rank, or at `last` in half of the queries."""
    rows = []
    for query in range(QUERIES):
        at = last if last and query % 2 else place
        rows += [
            f"q{query}\t{'right' if rank == at else f'other{rank}'}\t{rank}\n"
            for rank in range(1, 6)
        ]
    Path(f"{name}.tsv").write_text("".join(rows))


def write_rules(files: Path, release: str, *, decimals: int = 3) -> None:
    """Another `[release]` in the board's rules."""
    rules = files / "board" / "board.toml"
    text = rules.read_text().replace("decimals = 3", f"decimals = {decimals}")
    text = re.sub(r"(?ms)^\[release\].*?(?=^\[|\Z)", "", text)
    rules.write_text(f"{text}\n[release]\n{release}\n")


@pytest.mark.usefixtures("files")
def test_the_json_has_the_keys_of_the_contract() -> None:
    value = json_of(play(*SMALL, "--thorough", "--json"))
    assert value["queries"] == QUERIES
    assert value["systems"] == ["a", "b"]
    assert value["measure"] == "RR@10"
    played = [row for row in value["attacks"] if not row["fresh"]]
    assert [(row["attack"], row["release"]) for row in played] == [
        (attack, release) for release in RELEASES for attack in ATTACKS
    ]
    again = [row for row in value["attacks"] if row["fresh"]]
    assert [row["release"] for row in again] == RELEASES
    for row in value["attacks"]:
        assert row.keys() >= KEYS
        assert (row["submissions"], row["seeds"]) == (6, 3)
        assert row["mean_gain"] == pytest.approx(row["mean_gain_se"] * value["se"])
    assert value["conclusion"].startswith(f"Of {len(RELEASES)} rules ")
    assert value["answer"] == value["conclusion"]


@pytest.mark.usefixtures("files")
def test_few_words_play_the_strongest_attacks_on_two_rules() -> None:
    """Without baselines that are known: at the usual gap, as far as there is room."""
    value = json_of(play("--submissions", "6", "--json"))
    first = [row for row in value["attacks"] if not row["fresh"]]
    strongest = ["weighted vote", "staircase", "staircase, last step free"]
    assert [(row["attack"], row["release"]) for row in first] == [
        (attack, release) for release in ("rounded", "clear") for attack in strongest
    ]
    (gap,) = {row["baseline"] for row in first}
    assert gap == f"{int(value['truth'] / value['se'])} u below"
    assert {row["seeds"] for row in value["attacks"]} == {40}


@pytest.mark.usefixtures("files")
def test_the_table_names_the_systems_the_unit_and_every_attack() -> None:
    done = play(*SMALL, *TWO, "--thorough", "--all", "--explain")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "systems   a and b: RR@10" in done.stdout
    assert "3 games of 6 submissions, seed 0" in done.stdout
    every, again = done.stdout.split("The worst attack for each rule and baseline")
    rows = [line.split("  ")[0] for line in every.splitlines()]
    assert [row for row in rows if row in ATTACKS] == [*ATTACKS, *ATTACKS]
    rows = [line.split("  ")[0] for line in again.splitlines()]
    assert sum(row in ATTACKS for row in rows) == 2
    assert "0 is right" in done.stdout


@pytest.mark.usefixtures("files")
def test_a_screen_has_the_worst_attacks_and_names_what_else_there_is() -> None:
    shown = play(*SMALL, *TWO).stdout
    assert "Every attack" not in shown
    assert "0 is right" not in shown
    assert "more      --thorough: every attack on every rule, more games" in shown
    assert "more      --all: all rows and tables; --explain: the method" in shown
    (title,) = (line for line in shown.splitlines() if line.startswith("The worst attack on each"))
    rows = shown.split(title)[1].split("\n\n")[1].splitlines()[1:]
    assert [row.split("  ")[0] in ATTACKS for row in rows] == [True, True]
    assert len(shown.splitlines()) <= 45


@pytest.mark.usefixtures("files")
def test_two_queries_are_enough_for_every_attack_and_rule() -> None:
    value = json_of(play(*SMALL, "--queries", "2", "--thorough", "--json"))
    assert len(value["attacks"]) == len(RELEASES) * (len(ATTACKS) + 1)
    assert np.isfinite([row["mean_gain"] + row["worth"] for row in value["attacks"]]).all()


# baselines


@pytest.mark.usefixtures("files")
def test_a_baseline_that_would_score_below_nothing_is_left_out_and_said() -> None:
    value = json_of(play(*SMALL, *ONE, "--gap", "2", "--gap", "50", "--json"))
    assert [row["baseline"] for row in value["attacks"]] == ["2 u below"] * 2
    shown = play(*SMALL, *ONE, "--gap", "2", "--gap", "50").stdout
    assert "left out  a baseline 50 u below: the systems do not score so high" in shown


@pytest.mark.usefixtures("files")
def test_where_no_baseline_can_be_made_that_is_an_error() -> None:
    truth, unit = (json_of(play(*SMALL, *ONE, "--json"))[key] for key in ("truth", "se"))
    done = play(*SMALL, *ONE, "--gap", "50", "--gap", "30")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "error  redteam-gap  --gap" in done.stderr
    assert f"30 u, where the systems score {truth:.4f}" in done.stderr
    assert f"at most {truth / unit:.1f} u" in done.stderr


@pytest.mark.usefixtures("files")
def test_named_baselines_are_played_beside_the_made_ones() -> None:
    write_run("weak", 5)
    write_run("weakest", 4, last=5)
    named = ("--baseline", "weakest.tsv", "--baseline", "weak.tsv")
    value = json_of(play(*SMALL, *ONE, *named, "--json"))
    assert value["baselines"] == {"weakest": pytest.approx(0.225), "weak": pytest.approx(0.2)}
    own = "the board's own"
    assert [row["baseline"] for row in value["attacks"]] == ["6 u below", own] * 2
    below = (value["truth"] - 0.225) / value["se"]
    shown = play(*SMALL, *ONE, *named).stdout
    assert f"the board's own best one lies {below:.1f} u below the systems" in shown
    fixed = json_of(play(*SMALL, *ONE, *named, "--gap", "1", "--json"))
    assert [row["baseline"] for row in fixed["attacks"]] == ["1 u below"] * 2


def test_the_vault_s_baselines_are_the_board_s_own(files: Path) -> None:
    found(files, baselines=("a", "b", "c"))
    small = ("--board", "board", "--vault", "vault", "--seeds", "5", "--submissions", "6", *ONE)
    value = json_of(call(*small, "--json"))
    means = {f"20261120-{name}": mean_rr(seed) for name, seed in (("a", 1), ("b", 2), ("c", 3))}
    nearest = min(combinations(means, 2), key=lambda pair: abs(means[pair[0]] - means[pair[1]]))
    assert value["systems"] == list(nearest)
    assert value["truth"] == pytest.approx(sum(means[name] for name in nearest) / 2)
    assert value["queries"] == QUERIES
    assert value["baselines"] == {name: pytest.approx(mean) for name, mean in means.items()}
    assert "the board's own" in {row["baseline"] for row in value["attacks"]}


# the board


def test_a_board_is_attacked_through_its_own_rules(files: Path) -> None:
    found(files)
    write_rules(files, 'rule = "clear"\nsubmissions = 7', decimals=2)
    small = ("--board", "board", "--runs", "a.tsv", "b.tsv", "--seeds", "10", "--thorough")
    few = (*small, "--attack", "best of n")
    value = json_of(call(*few, "--json"))
    assert value["own_release"] == "clear"
    assert {row["submissions"] for row in value["attacks"]} == {7}
    first = [row for row in value["attacks"] if not row["fresh"]]
    own = "clear"
    others = [name for name in RELEASES if name != own]
    assert [row["release"] for row in first] == [own, *others]
    assert [row["seeds"] for row in first] == [10] * 4
    again = [(row["release"], row["seeds"]) for row in value["attacks"] if row["fresh"]]
    assert again == [(name, 10) for name in (own, *others)]
    shown = call(*few).stdout
    assert "release   the board's own: clear" in shown
    assert "7 submissions at 2 in 30 days take one team 0.3 years" in shown
    assert "runs.complete" not in shown


@pytest.mark.parametrize("declared", [1, 2])
def test_a_board_that_declares_a_run_or_two_is_attacked_with_three(
    files: Path, declared: int
) -> None:
    found(files)
    write_rules(files, f'rule = "clear"\nsubmissions = {declared}')
    done = call("--board", "board", "--runs", "a.tsv", "b.tsv", "--seeds", "1", "--json")
    assert {row["submissions"] for row in json_of(done)["attacks"]} == {3}


def test_a_board_that_takes_partial_runs_is_warned(files: Path) -> None:
    found(files)
    rules = files / "board" / "board.toml"
    text = rules.read_text()
    assert "complete = true" in text
    rules.write_text(text.replace("complete = true", "complete = false"))
    shown = call("--board", "board", "--runs", "a.tsv", "b.tsv", *SMALL, *ONE).stdout
    assert "a run that answers one query" in shown


@pytest.mark.usefixtures("files")
def test_two_systems_that_are_not_about_equally_good_are_warned_of() -> None:
    write_run("best", 1)
    write_run("worst", 4)
    assert "warning" not in play(*SMALL, *ONE).stdout
    runs = ("--runs", "best.tsv", "worst.tsv", "--qrels", "dev.qrels", "-m", "RR@10")
    shown = call(*runs, *SMALL, *ONE)
    assert shown.exit_code == 0
    assert f"the systems differ by {QUERIES**0.5:.1f} u; take two" in shown.stdout


@pytest.mark.parametrize(
    ("baselines", "more"), [((), ()), (("a",), ()), (("a", "b"), ("-m", "nDCG@10"))]
)
def test_a_vault_without_dev_scores_by_the_measure_says_what_to_do(
    files: Path, baselines: tuple[str, ...], more: tuple[str, ...]
) -> None:
    found(files, baselines=baselines)
    assert "no dev scores of two baselines or published entries" in refused(
        "--board", "board", "--vault", "vault", *more, *SMALL
    )


# the first line


def test_the_first_line_says_the_strongest_attack_and_the_rule_to_set(files: Path) -> None:
    found(files, baselines=("a", "b"))
    few = (*SMALL, "--attack", "best of n", "--attack", "weighted vote")
    first = call("--board", "board", "--vault", "vault", *few).stdout.splitlines()[0]
    own = json_of(call("--board", "board", "--vault", "vault", *few, "--json"))
    assert first == own["conclusion"]
    assert first.startswith(f"Your rule, {own['own_release']}: the strongest of 2 attacks gains ")


def line(
    attack: str,
    release: str,
    gain: float,
    *,
    worth: float = 0.0,
    utility: float = 1.0,
    baseline: str = "8 u below",
) -> AttackLine:
    return AttackLine(
        attack=attack,
        release=release,
        baseline=baseline,
        submissions=300,
        seeds=100,
        mean_gain=gain / 40,
        mean_gain_se=gain,
        gain_sd=1.0,
        worth=worth,
        worth_sd=2.0,
        false_release_share=0,
        record_share=1,
        records=1,
        utility=utility,
        utility_6=1,
        fresh=True,
    )


WORST = [
    line("names at the edge", "rounded", 4.25, baseline="equal"),
    line("weighted vote", "rounded", 4.5),
    line("weighted vote", "clear+noise", 1.5),
    line("staircase", "clear", 0.1, worth=0.35, utility=0.8),
    line("best of n", "clear", 0.0, baseline="equal", utility=0.9),
    line("best of n", "clear+feedback", 0.0, utility=0.1),
]


def say(lines: list[AttackLine], *, own: str = "", attacks: int = 21) -> str:
    return conclude(lines, own=own, unit=1 / 40, attacks=attacks)


def test_the_conclusion_names_a_rule_under_which_better_systems_get_a_score() -> None:
    assert say(WORST, own="rounded") == (
        "Your rule, rounded: the strongest of 21 attacks gains 0.1125 (4.5 standard errors). "
        'With clear: 0.0087. Set rule = "clear" in [release].'
    )


def test_the_conclusion_keeps_a_rule_that_leaves_least_of_those_played() -> None:
    assert say(WORST, own="clear", attacks=1) == (
        "Your rule, clear: the only attack played gains 0.0087 (0.3 standard errors). None of "
        "the 3 other rules leaves less: keep it."
    )


def test_without_a_board_the_conclusion_says_which_rule_leaves_least() -> None:
    assert say(WORST).startswith(
        "Of 4 rules clear leaves least: the strongest of 21 attacks gains 0.0087 "
    )
    assert say(WORST[:3]).endswith('Set rule = "clear", with a noise view, in [release].')
    usable = [*WORST[:1], replace(WORST[5], utility=1.0)]
    assert say(usable).endswith('Set rule = "clear", with a feedback view, in [release].')
    assert say([]) == ""


@pytest.mark.parametrize(("own", "start"), [("", "rounded: "), ("rounded", "Your rule, rounded: ")])
def test_where_one_rule_was_played_the_command_for_all_is_named(own: str, start: str) -> None:
    said = say(WORST[:2], own=own)
    assert said.startswith(start)
    assert said.endswith(" No other rule was played: heldout redteam --thorough plays all.")


# errors


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--release", "none"), "redteam-release"),
        (("--release", "clear+nothing"), "redteam-release"),
        (("-m", "FirstRel"), "redteam-measure"),
        (("--runs", "a.tsv", "a.tsv"), "redteam-runs"),
        (("--runs", "a.tsv", "absent.tsv"), "unreadable-file"),
        (("--baseline", "absent.tsv"), "unreadable-file"),
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
        (
            ("--baseline", "c.tsv", "--qrels", "dev.qrels", "-m", "RR@10"),
            "--baseline goes with --runs A B",
        ),
        (("--submissions", "2"), "--submissions"),
        (("--seeds", "0"), "--seeds"),
        (("--gap", "-1"), "--gap"),
        (("--runs", "a.tsv", "--seeds", "3"), "two runs are needed, --runs A B; found a.tsv --se"),
        (("--attack", "bribery"), "--attack"),
    ],
)
def test_what_is_not_said_is_asked_for(arguments: tuple[str, ...], asked: str) -> None:
    assert asked in refused(*arguments)


@pytest.mark.usefixtures("files")
def test_a_board_without_open_labels_says_so(files: Path) -> None:
    found(files)
    rules = files / "board" / "board.toml"
    rules.write_text(rules.read_text().replace('qrels = "qrels/dev.qrels"', ""))
    assert "no labels in the open" in refused(
        "--board", "board", "--runs", "a.tsv", "b.tsv", *SMALL
    )
