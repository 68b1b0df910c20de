"""Challenges by later runs: who takes whose place, what is asked for, and that it ends."""

import math
from collections.abc import Sequence
from itertools import product
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.judging.campaign.judgments import Judgment, counted
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.maintenance import (
    Challenge,
    LeadRule,
    chance_of_lead,
    first_best,
    follow_challenges,
    list_challenges,
    pool_challengers,
    seen_documents,
    spread_labels,
)

SETTINGS = Settings(name="study")
VOTES = st.lists(
    st.permutations(["a", "b", "c", "d"]).map(lambda docs: (docs[0], docs[1])), max_size=40
)


def vote(winner: str, loser: str, number: int = 0, **more: str) -> Judgment:
    """By a worker of their own, in a task of its own."""
    return Judgment(
        query="q",
        left=min(winner, loser),
        right=max(winner, loser),
        preferred=winner,
        worker=f"w{number}",
        task=f"t{number}",
        position=1,
        answered_at=f"2026-11-01T{number // 60:02}:{number % 60:02}:00Z",
        **more,  # type: ignore[arg-type]  # fields that are text
    )


def votes(pairs: Sequence[tuple[str, str]], *, start: int = 0) -> list[Judgment]:
    return [vote(winner, loser, number) for number, (winner, loser) in enumerate(pairs, start)]


def pool(*docs: str, known: str | None = "a", texts: bool = False) -> Pool:
    return Pool(
        query="q",
        text="what",
        candidates=tuple(
            Candidate(doc=doc, known=doc == known, text=f"text {doc}" if texts else "")
            for doc in docs
        ),
    )


def challengers(*docs: str) -> tuple[Pool, ...]:
    return (Pool(query="q", candidates=tuple(Candidate(doc=doc) for doc in docs)),)


def listed(
    judgments: Sequence[Judgment],
    *,
    tasks: Sequence[Task] = (),
    pools: Sequence[Pool] | None = None,
    rows: Sequence[Pool] | None = None,
    rule: LeadRule | None = None,
) -> tuple[Challenge, ...]:
    """Challenges of b, or of others, to the best known answer a, with the votes on them."""
    rule, pools = rule or LeadRule(), pools or [pool("a")]
    found = follow_challenges(first_best(pools, counted(judgments)), counted(judgments), rule)
    return list_challenges(
        found,
        pools,
        challengers("b") if rows is None else rows,
        judgments=judgments,
        tasks=tasks,
        settings=SETTINGS,
        rule=rule,
    )


def test_one_vote_less_than_the_lead_exchanges_nothing() -> None:
    rule = LeadRule(lead=3)
    best = {"q": ("a",)}
    assert follow_challenges(best, votes([("b", "a")] * 2), rule).replaced == ()
    (one,) = follow_challenges(best, votes([("b", "a")] * 3), rule).replaced
    assert (one.before, one.after, one.at) == (("a",), "b", "2026-11-01T00:02:00.000Z")


def test_of_several_best_answers_a_challenger_has_to_beat_each() -> None:
    best = {"q": ("a", "c")}
    cast = votes([("b", "a")] * 3)
    assert follow_challenges(best, cast, LeadRule()).best == best
    cast = votes([("b", "a")] * 3 + [("b", "c")] * 3)
    assert follow_challenges(best, cast, LeadRule()).best == {"q": ("b",)}


def test_after_the_cap_no_vote_says_anything() -> None:
    even = [("b", "a"), ("a", "b")] * 3 + [("a", "b")]
    cast = votes([*even, *[("b", "a")] * 9])
    assert follow_challenges({"q": ("a",)}, cast, LeadRule(lead=3, cap=7)).replaced == ()


@given(VOTES, st.integers(1, 3))
def test_each_replacement_follows_on_the_last_and_was_won_by_the_lead(
    pairs: list[tuple[str, str]], lead: int
) -> None:
    cast = votes(pairs)
    found = follow_challenges({"q": ("a",)}, cast, LeadRule(lead=lead, cap=100))
    now: tuple[str, ...] = ("a",)
    for one in found.replaced:
        assert one.before == now
        now = (one.after,)
        until = [v for v in cast if v.answered_at <= one.at]
        ahead = sum(v.preferred == one.after and v.other in one.before for v in until)
        behind = sum(v.other == one.after and v.preferred in one.before for v in until)
        assert ahead - behind >= lead
    assert found.best == {"q": now}


@given(VOTES, st.integers(0, 40))
def test_what_comes_later_changes_nothing_of_a_day(pairs: list[tuple[str, str]], day: int) -> None:
    cast = votes(pairs)
    early = follow_challenges({"q": ("a",)}, cast[:day], LeadRule(lead=1))
    whole = follow_challenges({"q": ("a",)}, cast, LeadRule(lead=1))
    assert whole.replaced[: len(early.replaced)] == early.replaced


@given(VOTES, st.randoms())
def test_the_order_of_lines_in_a_file_makes_no_difference(
    pairs: list[tuple[str, str]], chance: Random
) -> None:
    cast = votes(pairs)
    mixed = list(cast)
    chance.shuffle(mixed)
    rule, best = LeadRule(lead=2), {"q": ("a",)}
    assert follow_challenges(best, mixed, rule) == follow_challenges(best, cast, rule)


@given(
    st.lists(st.sampled_from(["challenger", "incumbent", "neither"]), min_size=7, max_size=7),
    st.integers(1, 3),
    st.integers(3, 7),
)
def test_a_challenge_ends_and_no_more_is_asked_than_may_decide_it(
    answers: list[str], lead: int, cap: int
) -> None:
    rule = LeadRule(lead=lead, cap=cap)
    pools = [pool("a", "c")]
    judgments: list[Judgment] = []
    tasks: list[Task] = []
    for _ in range(cap + 1):
        votes_now = counted(judgments)
        now = follow_challenges(first_best(pools, votes_now), votes_now, rule)
        found = listed(judgments, tasks=tasks, pools=pools, rule=rule)
        wanted = sum(one.wanted for one in found)
        if not wanted:
            break
        for _ in range(wanted):
            number = len(judgments)
            said = answers[number]
            preferred = {"challenger": "b", "incumbent": "a"}.get(said)
            tasks.append(Task(task=f"t{number}", items=(Item(query="q", left="a", right="b"),)))
            judgments.append(msgspec.structs.replace(vote("b", "a", number), preferred=preferred))
    assert wanted == 0
    assert len(judgments) <= cap
    margin = answers[: len(judgments)].count("challenger") - answers[: len(judgments)].count(
        "incumbent"
    )
    assert (now.best["q"] == ("b",)) == (margin >= lead)
    assert abs(margin) >= lead or margin + cap - len(judgments) < lead


def test_judgments_that_were_drawn_are_not_asked_for_again() -> None:
    item = Item(query="q", left="a", right="b")
    tasks = [Task(task=f"t{number}", items=(item,)) for number in range(2)]
    (one,) = listed([vote("b", "a", 0)], tasks=tasks)
    assert (one.ahead, one.behind, one.drawn, one.wanted) == (1, 0, 1, 1)


def test_a_worker_who_failed_a_test_is_asked_for_again() -> None:
    failed = Judgment(
        query="q",
        left="a",
        right="x",
        preferred="x",
        answer="a",
        worker="w0",
        task="t0",
        position=2,
    )
    (one,) = listed([vote("b", "a", 0), failed])
    assert (one.ahead, one.answers, one.wanted) == (0, 0, 3)


def test_votes_on_pairs_of_the_pool_are_the_tournaments_and_no_challenges() -> None:
    cast = votes([("c", "a")] * 9)
    assert first_best([pool("a", "c")], cast) == {"q": ("c",)}
    outside = votes([("z", "a")] * 9)
    assert first_best([pool("a", "c")], outside) == {"q": ("a",)}
    assert first_best([pool("a", "c", known=None)], outside) == {}


def test_a_challenger_of_a_known_text_is_none_and_its_id_gets_the_label_too() -> None:
    pools = [pool("a", "c", texts=True)]
    tops = {"new": {"q": ("z",)}, "other": {"q": ("y",)}, "old": {"q": ("c",)}}
    documents = {"z": "TEXT  a", "y": "something else"}
    rows = pool_challengers(tops, pools, (), documents=documents)
    found = {one.doc: one for one in rows[0].candidates}
    assert found.keys() == {"a", "y"}
    assert found["a"].same == ("z",)
    assert found["y"].runs == ("other",)
    assert [one.challenger for one in listed([], pools=pools, rows=rows)] == ["y"]
    assert spread_labels({"q": ("a",)}, pools, rows) == {"q": ("a", "z")}
    assert seen_documents(pools, rows) == {"q": {"a", "c", "y", "z"}}


def test_challengers_that_were_found_stay_and_later_ids_of_their_text_join_them() -> None:
    pools, documents = [pool("a", texts=True)], {"y": "another one", "x": "Another One"}
    first = pool_challengers({"r1": {"q": ("y",)}}, pools, (), documents=documents)
    second = pool_challengers({"r2": {"q": ("x",)}}, pools, first, documents=documents)
    (one,) = second[0].candidates
    assert (one.doc, one.same, one.runs) == ("y", ("x",), ("r1", "r2"))
    assert pool_challengers({"r2": {"q": ("x",)}}, pools, second, documents={}) == second


def test_a_challenger_without_a_text_is_an_error_where_texts_are_given() -> None:
    with pytest.raises(InputError, match="no-text"):
        pool_challengers({"r": {"q": ("z",)}}, [pool("a", texts=True)], (), documents={"z": ""})


def test_queries_that_were_not_pooled_have_no_challengers() -> None:
    assert pool_challengers({"r": {"elsewhere": ("z",)}}, [pool("a")], ()) == ()


@pytest.mark.parametrize(("lead", "cap"), [(0, 7), (8, 7), (-1, 1)])
def test_a_lead_that_nobody_could_have_is_refused(lead: int, cap: int) -> None:
    with pytest.raises(InputError, match="bad-lead"):
        LeadRule(lead=lead, cap=cap)


def fight(rule: LeadRule, challengers: int, p: float, rng: np.random.Generator) -> str:
    """The answer of a query after so many challengers, each preferred to what it meets with p."""
    best = "a"
    cast: list[Judgment] = []
    for number in range(challengers):
        new = f"n{number}"
        tosses = (rng.random(rule.cap) < p).tolist()
        cast += votes([(new, best) if won else (best, new) for won in tosses], start=len(cast))
        best = follow_challenges({"q": ("a",)}, cast, rule).best["q"][0]
    return best


def test_equally_good_challengers_seldom_replace_the_first_answer_however_many_come() -> None:
    rng, trials = np.random.default_rng(3), 60
    kept = sum(fight(LeadRule(cap=21, budget=0.1), 10, 0.5, rng) == "a" for _ in range(trials))
    assert kept / trials >= 0.9 - 3 * math.sqrt(0.09 / trials)
    loose = sum(fight(LeadRule(), 10, 0.5, rng) == "a" for _ in range(trials))
    assert loose / trials < 0.15  # what a lead of 3 within 7 votes leaves of it


def test_a_much_better_challenger_still_wins() -> None:
    rng, trials = np.random.default_rng(4), 100
    won = sum(fight(LeadRule(cap=21, budget=0.1), 1, 0.9, rng) == "n0" for _ in range(trials))
    assert won >= 90


@given(st.integers(1, 40), st.integers(1, 12), st.floats(0.01, 0.5))
def test_the_needed_leads_spend_no_more_than_the_budget(
    cap: int, challenges: int, budget: float
) -> None:
    try:
        rule = LeadRule(lead=1, cap=cap, budget=budget)
    except InputError:
        assert chance_of_lead(cap, cap) > budget / 2
        return
    leads = [rule.needed(number) for number in range(1, challenges + 1)]
    assert leads == sorted(leads)
    assert sum(chance_of_lead(lead, cap) for lead in leads if lead <= cap) <= budget + 1e-12


@pytest.mark.parametrize(("lead", "cap"), [(1, 1), (3, 7), (2, 4), (5, 8)])
def test_the_chance_of_a_lead_is_that_of_all_orders_of_votes(lead: int, cap: int) -> None:
    led = sum(
        any(margin >= lead for margin in np.cumsum(tosses).tolist())
        for tosses in product((1, -1), repeat=cap)
    )
    assert chance_of_lead(lead, cap) == led / 2**cap


def test_a_hopeless_challenge_asks_for_no_more_votes() -> None:
    rule = LeadRule(cap=21, budget=0.1)
    assert rule.needed(1) == 10
    cast = votes([("a", "b")] * 6)
    for number, outcome, wanted in ((0, "open", 6), (1, "open", 5), (6, "stays", 0)):
        (one,) = listed(cast[:number], rule=rule)
        assert (one.outcome, one.wanted, one.lead) == (outcome, wanted, 10)


def test_a_budget_that_no_number_of_votes_could_meet_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        LeadRule(cap=3, budget=0.1)
    assert caught.value.problems[0].path == "--budget"
