"""Finals: what cannot be in board.toml and in a log, who wins, how much is luck, and the page."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from random import Random
from statistics import median

import numpy as np
import pytest
from boardlog import RULES, BoardLog, find_problems, make_manifest, ranking, season, table
from certain import sure
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from page_documents import Document
from sample_boards import FINAL_SCORES, facts, final_spec, finals, spec, standings
from scipy.integrate import quad
from scipy.stats import norm

from heldout.board.log.final import OpenedFinal
from heldout.board.log.history import read_history
from heldout.board.rules.changes import list_changed_terms, list_moved_days
from heldout.board.rules.days import list_early_finals
from heldout.board.rules.release import decide_final, expected_maximum, share_of_wins
from heldout.board.rules.spec_file import parse_spec
from heldout.board.site.pages import render_board
from heldout.board.site.sections import make_final
from heldout.board.standings.standings import Standings, list_seasons
from heldout.errors import StoreError
from heldout.redteam.boards import Exchange, exchange, guess

SET = '[sets.last]\nqueries = "queries/last.tsv"\n'
VIEW = ranking("final", "last", public=False, final=True, finalists=2).rstrip("\n") + "\n"
FINAL = RULES.replace("[policy]", f"{SET}\n{VIEW}\n[policy]")
CLOSES = "closes = 2027-12-31"
OVER = datetime(2028, 1, 1, tzinfo=UTC)
A, B, C = "20261101-a", "20261102-b", "20261103-c"


def test_a_board_with_a_final_view() -> None:
    spec = parse_spec(FINAL.encode())
    assert spec.finalists_view == spec.view("final")
    assert spec.final_views == ()
    assert parse_spec(RULES.encode()).finalists_view is None


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("final = true\n", "", "views[2].finalists"),
        ("finalists = 2", "finalists = 0", "views[2].finalists"),
        ("finalists = 2", "finalists = 11", "views[2].finalists"),
        ("public = false\n", "", "views[2].final"),
        (f"{CLOSES}\n", "", "views[2].finalists"),
        ('set = "last"', 'set = "eval"', "views[2].set"),
        ('set = "last"', 'set = "dev"', "views[2].set"),
        ("queries/last.tsv", "queries/eval.tsv", "sets.last.queries"),
        ('last.tsv"', 'last.tsv"\nqrels = "qrels/last.qrels"', "views[2].set"),
        ('set = "last"', 'set = "last"\nlabels = "other"', "views[2].labels"),
        ('set = "last"', 'set = "last"\ntraining_at_most = 9', "views[2].training_at_most"),
        (
            'set = "last"',
            'set = "last"\nsummary = "worst"\nfacets = "labels/last.facets"',
            "views[2].summary",
        ),
        ('set = "last"\nmeasure = "RR@10"', 'set = "last"\nmeasure = "FirstRel"', "measure"),
        (VIEW, VIEW + VIEW.replace('"final"', '"second"'), "views[3].finalists"),
        (
            VIEW,
            VIEW + '[[views]]\nname = "peek"\nset = "last"\nmeasure = "P@5"\npublic = false\n',
            "views[2].set",
        ),
    ],
)
def test_what_is_no_final_view_is_told_at_its_key(before: str, after: str, key: str) -> None:
    assert before in FINAL
    problems = find_problems(FINAL.replace(before, after))
    assert {problem.code for problem in problems} == {"board-spec"}
    assert any(key in problem.found for problem in problems), problems


def test_seasons_may_end_in_one_final() -> None:
    seasons = season("one", "eval", date(2026, 11, 1), date(2027, 3, 1))
    spec = parse_spec(FINAL.replace("[policy]", f"{seasons}\n[policy]").encode())
    rules = spec.in_season(spec.seasons[0])
    assert rules.finalists_view == spec.finalists_view
    assert "last" in rules.sets


def test_finalists_of_two_seasons_stand_on_every_page() -> None:
    more = table("[sets.second]", queries="queries/second.tsv") + ranking("second")
    more += season("one", "eval", date(2026, 11, 1), date(2026, 11, 1))
    more += season("two", "second", date(2026, 11, 2))
    rules = FINAL.replace("[policy]", f"{more}[policy]")
    log = BoardLog().open(rules)
    log.submit(A, make_manifest(A), "0.4")
    log.wait(days=1)
    log.receive(B)
    log.review(B, make_manifest(B))
    scores = {"scores": {"dev": "0.5", "second": "0.5"}, "queries": {"dev": 9, "second": 9}}
    log.publish(B, make_manifest(B), "0.5", public=scores)
    named(log)
    seasons = list_seasons(log.entries, parse_spec(rules.encode()), now=log.now)
    assert [one.season.name for one in seasons] == ["two", "one"]
    for one in seasons:
        assert [row.id for row in one.standings.finalists] == [A, B]
        section = sure(make_final(one.standings, parse_spec(rules.encode()).in_season(one.season)))
        assert [finalist.row.id for finalist in section.rows] == [A, B]


def played(*, rules: str = FINAL) -> BoardLog:
    log = BoardLog().open(rules)
    log.baseline("20261101-bm25", "0.3")
    for name in (A, B, C):
        log.submit(name, make_manifest(name), "0.4")
        log.wait(days=1)
    log.receive("20261104-waits")
    return log


def named(log: BoardLog) -> BoardLog:
    log.name_finalists(A, B)
    return log


def test_of_one_second_the_log_decides_and_not_the_id() -> None:
    log = BoardLog().open(FINAL)
    for name in ("20261101-z", "20261101-a"):
        log.submit(name, make_manifest(name), "0.4")
    log.name_finalists("20261101-z", "20261101-a")
    assert sure(log.history.final).finalists == ("20261101-z", "20261101-a")


def over(log: BoardLog) -> BoardLog:
    log.now = OVER
    return log


def test_the_last_list_holds_and_the_scores_are_what_the_event_says() -> None:
    log = named(played())
    log.name_finalists(B, C, why="a withdrawn system")
    over(log).open_final({B: "0.5", C: "0.6"}, below=[B])
    final = sure(log.history.final)
    assert final.finalists == (B, C)
    opened = sure(final.opened)
    assert (opened.winner, opened.best, opened.below, opened.queries) == (C, C, (B,), 50)
    assert list(list_early_finals(log.history)) == []


WRONG: list[tuple[str, Callable[[BoardLog], object]]] = [
    ("no published entry", lambda log: log.name_finalists("20261104-waits")),
    ("no published entry", lambda log: log.name_finalists("20261101-bm25")),
    ("no published entry", lambda log: log.name_finalists("20261101-unknown")),
    ("nobody, or somebody twice", lambda log: log.name_finalists(A, A)),
    ("nobody, or somebody twice", lambda log: log.name_finalists()),
    ("order of receipt", lambda log: log.name_finalists(B, A)),
    ("without a reason", lambda log: named(log).name_finalists(A, C)),
    ("no finalists were named", lambda log: log.open_final({A: "0.5"})),
    ("just the finalists", lambda log: named(log).open_final({A: "0.5"})),
    ("just the finalists", lambda log: named(log).open_final({A: "0.5", C: "0.6"})),
    ("highest score", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, best=A)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, winner=B)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, below=[A], winner=A)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, below=[B])),
    ("states luck", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, luck="")),
    ("how many queries", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, queries={})),
    ("another view", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, view="eval")),
]


@pytest.mark.parametrize(("told", "step"), WRONG)
def test_a_log_that_contradicts_itself(told: str, step: Callable[[BoardLog], object]) -> None:
    log = played()
    step(log)
    with pytest.raises(StoreError, match=told):
        read_history(log.entries)


def test_a_final_is_opened_again_for_a_reason_alone_and_not_after_the_closing() -> None:
    log = over(named(played()))
    log.open_final({A: "0.5", B: "0.6"})
    log.name_finalists(A, C, why="late")
    with pytest.raises(StoreError, match="the final was opened before"):
        read_history(log.entries)
    log.entries.pop()
    log.open_final({A: "0.5", B: "0.7"})
    with pytest.raises(StoreError, match="again without a reason"):
        read_history(log.entries)
    log.entries.pop()
    log.add("closed-board", None, {"open_runs": []})
    log.open_final({A: "0.5", B: "0.7"}, why="two labels were wrong")
    assert [one.why for one in sure(log.history.final).openings] == ["", "two labels were wrong"]
    first = over(named(played()))
    first.add("closed-board", None, {"open_runs": []})
    first.open_final({A: "0.5", B: "0.6"})
    with pytest.raises(StoreError, match="the board was closed before"):
        read_history(first.entries)


def test_what_the_rules_of_the_day_did_not_allow() -> None:
    early = named(played())
    early.open_final({A: "0.5", B: "0.6"})
    assert ["before the last day" in one for one in list_early_finals(early.history)] == [True]
    many = played()
    many.name_finalists(A, B, C)
    assert "more than 2" in "".join(list_early_finals(many.history))
    none = named(played(rules=RULES))
    assert "did not have" in "".join(list_early_finals(none.history))
    late = over(played())
    late.submit("20280101-late", make_manifest("late"), "0.4")
    late.name_finalists("20280101-late")
    assert "received after the last day" in "".join(list_early_finals(late.history))


def changed(log: BoardLog, after: str) -> list[str]:
    return [key for key, *_ in list_changed_terms(log.history, parse_spec(after.encode()))]


def test_rules_that_would_use_the_queries_of_a_final_for_something_else() -> None:
    log = played()
    moved = FINAL.replace('set = "last"', 'set = "new"').replace("sets.last", "sets.new")
    plain = FINAL.replace("finalists = 2\n", "")
    for after in (RULES, moved, plain):
        assert "views" in changed(log, after), after
    assert changed(log, FINAL.replace("finalists = 2", "finalists = 5")) == []
    assert changed(log, FINAL.replace('last"\nmeasure = "RR@10', 'last"\nmeasure = "P@5')) == []
    named(log)
    assert changed(log, FINAL.replace("finalists = 2", "finalists = 5")) == ["views.finalists"]
    measured = FINAL.replace('last"\nmeasure = "RR@10', 'last"\nmeasure = "P@5')
    assert changed(log, measured) == ["views[2].measure"]


def test_a_final_is_not_made_of_queries_that_had_a_view() -> None:
    used = FINAL.replace("public = false\nfinal = true\nfinalists = 2\n", "")
    assert "views.set" in changed(played(rules=used), FINAL)
    assert changed(played(rules=RULES), FINAL) == []


def test_the_last_day_does_not_move_when_it_is_over() -> None:
    log = over(played())
    later = parse_spec(FINAL.replace("2027-12-31", "2028-12-31").encode())
    assert [key for key, *_ in list_moved_days(log.history, later, now=OVER)] == ["closes"]


Scores = list[list[float]]

grades = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 1.0])


@st.composite
def drawn_finals(draw: st.DrawFn) -> Scores:
    queries, count = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    row = st.lists(grades, min_size=queries, max_size=queries)
    return draw(st.lists(row, min_size=count, max_size=count))


def plain(scores: Scores) -> tuple[int, list[int], int, float | None]:
    """The same with plain lists, from the definition."""
    n = len(scores[0])

    def error(a: list[float], b: list[float]) -> float:
        d = [x - y for x, y in zip(a, b, strict=True)]
        mean = sum(d) / n
        return math.sqrt(sum((x - mean) ** 2 for x in d) / (n - 1) / n)

    means = [math.fsum(row) / n for row in scores]
    best = next(i for i, mean in enumerate(means) if mean >= max(means) - 1e-9)
    below = [
        i
        for i, row in enumerate(scores)
        if means[best] - means[i] > 1e-9
        and means[best] - means[i] > 2 * error(scores[best], row) * (1 + 1e-9)
    ]
    winner = min(i for i in range(len(scores)) if i not in below)
    errors = [error(a, b) for i, a in enumerate(scores) for b in scores[:i]]
    luck = expected_maximum(len(scores)) * median(errors) / math.sqrt(2) if errors else None
    return best, below, winner, luck


@given(drawn_finals())
def test_the_outcome_is_that_of_the_definition(scores: Scores) -> None:
    found = decide_final(scores)
    best, below, winner, luck = plain(scores)
    assert (found.best, [*found.below], found.winner) == (best, below, winner)
    if luck is None:
        assert found.luck is None
    else:
        assert found.luck == pytest.approx(luck, abs=1e-12)


@given(drawn_finals(), st.randoms(use_true_random=False), grades)
def test_what_holds_of_every_final(scores: Scores, random: Random, shift: float) -> None:
    found = decide_final(scores)
    assert found.best not in found.below
    assert found.winner not in found.below
    assert set(range(found.winner)) <= set(found.below)
    assert found.means[found.best] == pytest.approx(max(found.means), abs=1e-9)
    order = list(range(len(scores[0])))
    random.shuffle(order)
    shuffled = decide_final([[row[q] for q in order] for row in scores])
    assert (shuffled.best, shuffled.below) == (found.best, found.below)
    assert shuffled.winner == found.winner
    easier = decide_final([[value + shift for value in row] for row in scores])
    assert (easier.below, easier.winner) == (found.below, found.winner)
    assert decide_final([*scores, scores[found.winner]]).winner == found.winner


def test_of_two_means_that_differ_by_rounding_the_earlier_is_the_best() -> None:
    one, other = [0.0, 0.0, 0.0, 0.3], [0.0, 0.0, 0.1, 0.2]
    assert math.fsum(one) / 4 < math.fsum(other) / 4
    for order in ([one, other], [other, one]):
        assert decide_final(order).best == 0


@pytest.mark.parametrize(
    "scores", [[], [[0.1]], [[0.1, 0.2], [0.1]], [[0.1, math.nan]], [[[0.1, 0.2]]]]
)
def test_what_is_no_final(scores: Scores) -> None:
    with pytest.raises(ValueError, match="final"):
        decide_final(scores)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 60, 300])
def test_the_expected_maximum_is_the_integral(count: int) -> None:
    def weighted(x: float) -> float:
        return float(x * count * norm.pdf(x) * norm.cdf(x) ** (count - 1))

    assert expected_maximum(count) == pytest.approx(quad(weighted, -12, 12, limit=200)[0], abs=1e-8)


def test_the_expected_maximum_of_two_is_one_over_the_root_of_pi() -> None:
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-12)
    with pytest.raises(ValueError, match="0"):
        expected_maximum(0)


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_the_better_finalist_wins_more_often_than_its_share(count: int) -> None:
    assert share_of_wins(count, 0) == pytest.approx(1 / count, abs=1e-9)
    assert share_of_wins(count, 9) == pytest.approx(1, abs=1e-4)
    # The earlier of two wins if the best is at most 2 u above it.
    two = (norm.cdf(3 - 2) + norm.cdf(3 + 2)) / 2
    assert share_of_wins(2, 3) == pytest.approx(two, abs=1e-9)


GAMES = 600
QUERIES = 500


def systems() -> Exchange:
    """Two systems whose scores are reciprocal ranks and differ on three queries in ten."""
    rng = np.random.default_rng(7)
    scores = np.array([0, 0.1, 0.2, 1 / 3, 0.5, 1])
    a = rng.choice(scores, QUERIES)
    b = np.where(rng.random(QUERIES) < 0.3, rng.choice(scores, QUERIES), a)
    return exchange(a, b)


def play(pair: Exchange, count: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Scores by query of equally good finalists."""
    labels = pair.toss(rng)
    return [labels.score(guess(rng, pair.queries)) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 10])
def test_the_printed_luck_is_that_of_equally_good_finalists(count: int) -> None:
    pair, rng = systems(), np.random.default_rng(count)
    outcomes = [decide_final(play(pair, count, rng)) for _ in range(GAMES)]
    excess = [max(one.means) - pair.truth for one in outcomes]
    printed = [one.luck for one in outcomes if one.luck is not None]
    error = np.std(excess, ddof=1) / math.sqrt(GAMES)
    assert np.mean(printed) == pytest.approx(np.mean(excess), abs=float(3 * error))
    assert np.mean(printed) == pytest.approx(0.5 * expected_maximum(count) * pair.unit, rel=0.05)
    assert 3 * error < np.mean(printed) / 2, "too few games to tell the luck from none"


def test_nobody_carries_a_gain_onto_queries_that_were_never_used() -> None:
    """The finalists know all labels of the season; on the final's own labels they are guesses."""
    pair, rng = systems(), np.random.default_rng(3)
    season, gains, fresh = [], [], []
    for _ in range(GAMES):
        seen = pair.toss(rng)
        fitted = np.where(seen.first >= seen.second, np.int8(1), np.int8(-1))
        season.append(seen.score(fitted).mean() - pair.truth)
        final, runs = pair.toss(rng), [fitted, *(guess(rng, pair.queries) for _ in range(4))]
        gains.append(final.score(fitted).mean() - pair.truth)
        winner = runs[decide_final([final.score(run) for run in runs]).winner]
        fresh.append(pair.toss(rng).score(winner).mean() - pair.truth)
    assert np.mean(season) > 4 * pair.unit
    for found in (gains, fresh):
        error = np.std(found, ddof=1) / math.sqrt(GAMES)
        assert abs(np.mean(found)) < 3 * error
        assert error < 0.05 * pair.unit


def says(board: Standings) -> list[str]:
    page = render_board(board, final_spec(), facts())["leaderboard/index.html"].decode()
    found = re.findall(r'<p class="final-says">(.*?)</p>', page, re.DOTALL)
    return [" ".join(Document(one.encode()).text.split()) for one in found]


def opened(board: Standings) -> OpenedFinal:
    assert board.final is not None
    return sure(board.final.opened)


def with_opened(board: Standings, **changes: object) -> Standings:
    again = replace(opened(board), **changes)  # type: ignore[arg-type]
    return replace(board, final=replace(sure(board.final), openings=(again,)))


def test_a_board_without_finalists_has_no_section() -> None:
    assert make_final(standings([]), spec()) is None
    assert make_final(replace(finals(), final=None), final_spec()) is None
    files = render_board(standings([]), spec(), facts())
    assert b'id="final"' not in files["leaderboard/index.html"]


def test_the_finalists_stand_in_the_order_of_receipt_before_the_opening() -> None:
    board = finals(opened=False)
    section = sure(make_final(board, final_spec()))
    assert [one.row.id for one in section.rows] == [row.id for row in board.finalists]
    assert {(one.score, one.mark) for one in section.rows} == {("", "")}
    (sentence,) = says(board)
    assert sentence.startswith("6 finalists are named. After 31 Mar 2027 their scores on queries")


def test_the_winner_is_the_earliest_that_is_not_clearly_below_the_best() -> None:
    board = finals()
    section = sure(make_final(board, final_spec()))
    assert [one.score for one in section.rows] == sorted(FINAL_SCORES, reverse=True)
    marks = {one.row.id: one.mark for one in section.rows}
    ids = [row.id for row in board.finalists]
    assert marks[ids[0]] == "winner"
    assert [name for name in ids if marks[name] == "clearly below the best"] == ids[3:5]
    won, luck = says(board)
    assert "wins with 0.402 RR@10: it is the earliest finalist that is not clearly below" in won
    assert "with 0.423. The scores came once, on 19 Nov 2026, from 1,000 queries never used" in won
    assert "of 6 equally good finalists the highest score lies 0.0068 RR@10 above its worth" in luck
    assert "where they come in clusters" in luck


def test_a_final_that_was_scored_again_says_who_had_won_and_why() -> None:
    files = render_board(finals(again=True), final_spec(), facts())
    text = " ".join(Document(files["leaderboard/index.html"]).text.split())
    assert "won with 0.402. Scored again on 20 Nov 2026: Two labels were wrong." in text
    assert "wins with 0.417" in text
    assert "came first on 19 Nov 2026, from 1,000 queries never used before, and again on" in text


def test_an_embargoed_finalist_is_anonymous_in_every_file() -> None:
    board = finals()
    (hidden,) = (row.id for row in board.finalists if row.embargoed)
    board = with_opened(board, winner=hidden, best=hidden)
    files = render_board(board, final_spec(), facts())
    text = " ".join(Document(files["leaderboard/index.html"]).text.split())
    assert "An anonymous entry wins with " in text


def test_exports_and_entry_pages_have_the_scores_of_finalists_alone() -> None:
    board = finals()
    files = render_board(board, final_spec(), facts())
    told = json.loads(files["leaderboard/leaderboard.json"])["final"]
    ids = [row.id for row in board.finalists]
    assert told["scores"] == dict(zip(ids, map(float, FINAL_SCORES), strict=True))
    assert (told["winner"], told["luck"], told["clearly_below"]) == (ids[0], 0.0068, ids[3:5])
    table = list(csv.DictReader(io.StringIO(files["leaderboard/leaderboard.csv"].decode())))
    scored = {row["id"]: row["final"] for row in table if row["final"]}
    assert scored == dict(zip(ids, FINAL_SCORES, strict=True))
    page = Document(files[f"leaderboard/entries/{ids[0]}.html"]).text
    assert "mean over 1,000 queries; the winner of the final" in page
    before = render_board(finals(opened=False), final_spec(), facts())
    assert "scores" not in json.loads(before["leaderboard/leaderboard.json"])["final"]
    assert b"final RR@10" not in before[f"leaderboard/entries/{ids[0]}.html"]
    assert not any(score.encode() in before["leaderboard/index.html"] for score in ("0.0068",))


def test_the_feed_has_the_winner_and_no_name_under_embargo() -> None:
    board = finals(again=True)
    feed = render_board(board, final_spec(), facts())["leaderboard/feed.xml"].decode()
    assert feed.count("Winner of the final: duoT5 over Lantern v2 top 50") == 2
    assert "top 50, 0.402</title>" in feed
    assert "top 50, tuned, 0.417</title>" in feed
    assert "Two labels were wrong." in feed
    hidden = next(row.id for row in board.finalists if row.embargoed)
    board = with_opened(finals(), winner=hidden)
    feed = render_board(board, final_spec(), facts())["leaderboard/feed.xml"].decode()
    assert "Winner of the final: an anonymous entry, 0." in feed


@pytest.mark.parametrize("words", ["<script>alert(1)</script>", "\u202egnp.exe"])
def test_a_reason_is_text(words: str) -> None:
    board = finals(again=True)
    assert board.final is not None
    first, second = board.final.openings
    board = replace(board, final=replace(board.final, openings=(first, replace(second, why=words))))
    page = render_board(board, final_spec(), facts())["leaderboard/index.html"].decode()
    assert words not in page
