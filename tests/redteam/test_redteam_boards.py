"""What attackers play against is what leaves the vault: names, answers, the second number."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.release import (
    NOISE,
    ReleaseRule,
    RuleName,
    add_noise,
    draw_jitter,
    draw_noise,
    is_clear,
    raise_number,
    release_mean,
    split_queries,
)
from heldout.board.rules.spec import BoardSpec, QuerySet, View
from heldout.errors import InputError
from heldout.redteam import boards

RULE = ReleaseRule(submissions=300)
KEY = bytes(range(32))
RULES: tuple[RuleName, ...] = ("rounded", "clear")
seeds = st.integers(0, 2**32)


def parse(text: str, rule: ReleaseRule = RULE) -> boards.NamedRule:
    return boards.parse_rule(text, rule, decimals=3, path="--release")


def board_of(text: str, *, queries: int = 40, rule: ReleaseRule = RULE) -> boards.GameBoard:
    rng = np.random.default_rng(queries)
    return boards.GameBoard(named=parse(text, rule), baseline=rng.random(queries) / 2, key=KEY)


def runs_of(seed: int, *, queries: int, count: int) -> list[boards.Scores]:
    """Runs that are better and better, for the most part."""
    rng = np.random.default_rng(seed)
    return [rng.random(queries) * (0.4 + rng.random() * n / count) for n in range(count)]


# names


def test_a_rule_is_named_with_what_is_sent_beside() -> None:
    assert [parse(text).name for text in boards.COMPARED] == [*boards.COMPARED]
    assert parse("rounded+noise").name == "rounded+noise"


def test_what_the_name_leaves_open_is_that_of_the_board() -> None:
    rule = parse("clear+feedback", ReleaseRule(feedback=0.4, submissions=90)).rule
    assert rule == ReleaseRule(rule="clear", feedback=0.4, submissions=90)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Ratchet", "rounded=2", "clear=2", "ladder", "exact", "clear 1"),
        *("clear+", "clear+noise+noise", "clear+feedback+noise", "clear+Noise", "+noise"),
        *("clear+noise=2", "\x1b[2Jclear", "z" * 10_000),
    ],
)
def test_a_name_of_no_rule(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    assert problem.code == "redteam-release"
    assert problem.path == "--release"
    assert problem.found.isprintable()
    assert len(problem.found) < 200


# the score that ranks


def submit_by_hand(
    board: boards.GameBoard, runs: list[boards.Scores], rule: RuleName
) -> list[float | None]:
    """The scores that the rule publishes, with what it remembers in the hands of this test."""
    found: list[float | None] = []
    sent, number = [board.baseline], release_mean(board.baseline, decimals=3)
    for values in runs:
        best = max(sent, key=lambda one: float(one.mean()))
        jitter = draw_jitter(board.key, "redteam", values, board.baseline)
        text: str | None = release_mean(values, decimals=3)
        if rule == "clear":
            drawn = draw_noise(board.key, "redteam ranks", values)
            noisy = add_noise(values, board.baseline, errors=NOISE, drawn=drawn, decimals=3)
            published = is_clear(values, best, jitter=jitter)
            text = raise_number(noisy, [number], decimals=3) if published else None
            number = text or number
        found.append(None if text is None else float(text))
        sent.append(values)
    return found


@pytest.mark.parametrize("rule", RULES)
@given(seeds)
def test_a_board_answers_as_the_vault_does(rule: RuleName, seed: int) -> None:
    board = board_of(rule, queries=12)
    runs = runs_of(seed, queries=12, count=8)
    expected = submit_by_hand(board, runs, rule)
    assert [board.submit(run) for run in runs] == [boards.GameAnswer(score) for score in expected]


def test_the_jitter_of_the_clear_rule_is_the_board_s_and_asks_for_more() -> None:
    """Without it a rise of a little more than two standard errors has a score."""
    board = board_of("clear", queries=100)
    signs = np.resize([1.0, -1.0], 100)
    error = 0.1 * signs.std(ddof=1) / 10
    published = [
        board.would_publish(board.baseline + 0.1 * signs + error * (2 + above / 10))
        for above in range(1, 60)
    ]
    assert not all(published)
    assert all(published[40:])


@pytest.mark.parametrize("text", boards.COMPARED)
@given(seeds)
def test_to_ask_what_would_be_published_changes_nothing(text: str, seed: int) -> None:
    asked, plain = board_of(text), board_of(text)
    for run in runs_of(seed, queries=40, count=8):
        would = [asked.would_publish(run + 0.3), asked.would_publish(run)]
        answer = asked.submit(run)
        assert answer == plain.submit(run)
        assert would[1] == (answer.score is not None)
    assert repr(asked.best) == repr(plain.best)


def test_the_best_is_the_first_with_the_highest_published_score() -> None:
    board = board_of("rounded", queries=4)
    assert board.best is None
    runs = [np.full(4, score) for score in (0.2, 0.7001, 0.7004, 0.1)]
    for run in runs:
        board.submit(run)
    assert board.best is not None
    assert (board.best[0], board.best[1].tolist()) == (0.7, runs[1].tolist())


def test_as_many_runs_are_published_as_the_chance_says() -> None:
    """Of runs that lie so far above the one before, whose luck is normal with that error."""
    rng = np.random.default_rng(5)
    published, chances = list[bool](), list[float]()
    for number in range(400):
        baseline = rng.random(200) / 4
        board = boards.GameBoard(named=parse("clear"), baseline=baseline, key=number.to_bytes(32))
        luck = rng.choice([-0.3, 0.3], 200)
        error = spread = 0.3 / 200**0.5
        chances.append(float(board.chance(np.array(luck.mean() + 2.5 * error), error, spread)))
        published.append(board.would_publish(baseline + luck + 2.5 * error))
    assert np.mean(published) == pytest.approx(np.mean(chances), abs=0.1)
    assert 0.2 < np.mean(chances) < 0.8


# the second number


@pytest.mark.parametrize(("queries", "share", "size"), [(40, 0.25, 10), (37, 0.4, 15), (9, 0.5, 4)])
def test_the_feedback_part_has_its_share_and_the_rest_ranks(
    queries: int, share: float, size: int
) -> None:
    board = board_of("clear+feedback", queries=queries, rule=ReleaseRule(feedback=share))
    numbers = np.arange(queries, dtype=np.float64)
    rank = {int(number) for number in board.ranking(numbers)}
    part = split_queries(KEY, map(str, range(queries)), ReleaseRule(feedback=share))["feedback"]
    assert len(part) == size
    assert rank == set(range(queries)) - set(map(int, part))


def test_the_feedback_is_the_rounded_score_of_its_part_and_the_other_part_ranks() -> None:
    board = board_of("clear+feedback")
    run = np.random.default_rng(1).random(40) / 2 + 0.5
    part = [
        int(query) for query in split_queries(KEY, map(str, range(40)), ReleaseRule())["feedback"]
    ]
    answer = board.submit(run)
    assert answer.other == float(f"{run[part].mean():.3f}")
    assert answer.score is not None
    assert repr(board.best) == repr((answer.score, np.delete(run, part)))
    again = board.submit(run)
    assert again == boards.GameAnswer(score=None, other=answer.other)


@pytest.mark.parametrize(("name", "rank"), [("clear", 10), ("clear+feedback", 8), ("rounded", 40)])
def test_a_quarter_of_the_queries_that_decide_ranks_in_one_of_four_seasons(
    name: str, rank: int
) -> None:
    board = board_of(name, queries=40, rule=ReleaseRule(seasons=4, feedback=0.2))
    ranking = board.ranking(np.arange(40.0))
    assert len(ranking) == rank == 40 * board.named.ranking_share
    run = np.random.default_rng(1).random(40) / 2 + 0.5
    published = board.submit(run).score
    assert published is not None
    assert repr(board.best) == repr((published, run[ranking.astype(int)]))


@given(seeds)
def test_what_a_run_scores_on_the_feedback_part_does_not_move_its_score(seed: int) -> None:
    one, other = board_of("clear+feedback"), board_of("clear+feedback")
    part = [
        int(query) for query in split_queries(KEY, map(str, range(40)), ReleaseRule())["feedback"]
    ]
    for run in runs_of(seed, queries=40, count=6):
        changed = run.copy()
        changed[part] = 1 - changed[part]
        found, expected = other.submit(changed), one.submit(run)
        assert found.score == expected.score
        assert found.other == pytest.approx(1 - (expected.other or 0), abs=0.0011)


@given(seeds)
def test_noise_is_the_same_each_time(seed: int) -> None:
    board, again = board_of("clear+noise"), board_of("clear+noise")
    for run in runs_of(seed, queries=40, count=6):
        number = board.submit(run).other
        assert number is not None
        assert board.submit(run).other == number  # to send it again averages nothing out
        assert again.submit(run).other == number


def test_noise_has_the_size_that_the_rule_says_and_is_never_none() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.random(50)
    named = boards.NamedRule(rule=ReleaseRule(rule="clear"), decimals=6, beside="noise", noise=4)
    board = boards.GameBoard(named=named, baseline=baseline, key=KEY)
    runs = [rng.random(50) for _ in range(800)]
    errors = [
        4 * max(row.std(ddof=1), baseline.std(ddof=1)) / 50**0.5
        for row in runs  # the larger of the two is the unit
    ]
    found = [board.submit(run).other for run in runs]
    drawn = [
        ((number or 0) - run.mean()) / error
        for number, run, error in zip(found, runs, errors, strict=True)
    ]
    assert min(map(abs, drawn)) > 0  # with six digits the true score is never among them
    assert np.mean(drawn) == pytest.approx(0, abs=4 / 800**0.5)
    assert np.std(drawn) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("text", "queries"), [("clear+feedback", 2), ("clear+noise", 6), ("clear", 6)]
)
def test_where_there_is_no_second_number_none_is_sent(text: str, queries: int) -> None:
    """A quarter of two queries is none; a baseline that finds nothing gives no noise."""
    board = boards.GameBoard(named=parse(text), baseline=np.zeros(queries), key=KEY)
    run = np.linspace(0.8, 0.9, queries)
    assert board.submit(run) == boards.GameAnswer(score=0.85, other=None)


def test_what_is_known_of_the_noise_is_its_size_and_that_of_a_number_on_other_queries_none() -> (
    None
):
    board = board_of("clear+noise", queries=50)
    assert board.noise == pytest.approx(10 * board.baseline.std(ddof=1) / 50**0.5)
    assert board_of("clear+feedback").noise == np.inf
    assert board_of("rounded").noise == np.inf


# the board's own rule


def spec_of(*views: View, rule: ReleaseRule) -> BoardSpec:
    files = {
        "dev": QuerySet(queries="q/dev.tsv", qrels="qrels/dev.qrels"),
        "eval": QuerySet(queries="q/eval.tsv"),
    }
    return BoardSpec(
        name="kb",
        title="KB",
        task="Find it.",
        opens=date(2026, 11, 1),
        primary="eval",
        decimals=4,
        recipients=(),
        sets=files,
        views=views,
        release=rule,
    )


def own(*views: View, rule: ReleaseRule) -> tuple[str, boards.NamedRule]:
    found = boards.own_rule(spec_of(*views, rule=rule))
    return found.name, found


DECIDING = View(name="eval", set="eval", measure="RR@10", part="deciding")
PLAIN = View(name="eval", set="eval", measure="RR@10")
DEV = View(name="dev", set="dev", measure="RR@10")


def beside(**keys: object) -> View:
    return View(name="beside", set="eval", measure="RR@10", **keys)  # type: ignore[arg-type] # by hand


@pytest.mark.parametrize(
    ("views", "expected", "noise"),
    [
        ((DEV, PLAIN), "", 10.0),
        ((DEV, DECIDING, beside(part="feedback")), "feedback", 10.0),
        ((DEV, PLAIN, beside(noise=7.5)), "noise", 7.5),
        ((DEV, PLAIN, beside(noise=7.5, public=False)), "", 10.0),
    ],
)
def test_the_board_s_own_rule_has_what_its_views_send_beside(
    views: tuple[View, ...], expected: boards.Beside, noise: float
) -> None:
    name, found = own(*views, rule=ReleaseRule(rule="clear", submissions=90, feedback=0.3))
    assert name == ("clear" + (f"+{expected}" if expected else ""))
    assert (found.beside, found.noise, found.decimals) == (expected, noise, 4)
    assert (found.rule.submissions, found.rule.feedback) == (90, 0.3)


def test_each_season_ranks_by_queries_of_its_own() -> None:
    board = board_of("clear+feedback", queries=40, rule=ReleaseRule(seasons=4, feedback=0.2))
    parts = [replace(board, season=season).ranking(np.arange(40.0)) for season in (1, 2, 3, 4)]
    assert len({*np.concatenate(parts).tolist()}) == 32
