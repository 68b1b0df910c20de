"""The first sentence of an answer says what was found, and where nothing was found it says that."""

from dataclasses import replace

import numpy as np
import pytest
from simulated_boards import board_of, entries_of, means_of, rng, table, view_of

from heldout.analyses import agreement_of_judges as judges
from heldout.analyses import agreement_of_runs as runs
from heldout.analyses import facets, power, progress, scales, stability, teams
from heldout.analyses.agreement_of_judges import JudgeOptions, judge_agreement, rate_documents
from heldout.analyses.agreement_of_runs import run_agreement
from heldout.analyses.entries import BoardScores, Dated
from heldout.analyses.facets import FacetsOptions, compare_facets
from heldout.analyses.outcomes.analysis import headline as outcomes_headline
from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes, pairs_with
from heldout.analyses.outcomes.words import misfit_headline, verdict_headline
from heldout.analyses.power import PowerOptions, plan_power
from heldout.analyses.progress import trace_progress
from heldout.analyses.stability import rank_ranges
from heldout.analyses.teams import TeamsOptions, look_at_teams
from heldout.analyses.views import compare_rankings, transfer_headline
from heldout.answers.sentence import name_one, name_some, say_p
from heldout.scoring.first_ranks import FirstRanks, first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.table import table_of
from heldout.scoring.transforms import universe_of

Rows = dict[str, list[float]]


def noise(seed: int, size: int = 60) -> list[float]:
    return [round(score, 3) for score in map(float, rng(seed).random(size))]


def lead(rows: Rows) -> str:
    return stability.headline(rank_ranges(table(rows), rng(), flips=199))


def shifted(row: list[float], by: float) -> list[float]:
    return [score + by for score in row]


def test_names_are_cut_counted_and_on_one_line() -> None:
    assert name_some(["a"]) == "a"
    assert name_some(["a", "b"]) == "a and b"
    assert name_some(["a", "b", "c"]) == "a, b and c"
    assert name_some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert name_one("x" * 28) == "x" * 28
    assert name_one("my-long-system-name-with-a-seed-of-17") == "my-long-syste…h-a-seed-of-17"
    assert name_one("/home/me/study/runs/bm25/dev.tsv.bz2") == "…study/runs/bm25/dev.tsv.bz2"
    assert name_one("two\nlines") == "two lines"


@pytest.mark.parametrize(
    ("p", "said"), [(0.5, "p = .50"), (0.0421, "p = .042"), (1e-9, "p < .0001"), (1.0, "p = 1.00")]
)
def test_a_p_value_in_a_sentence_is_never_0(p: float, said: str) -> None:
    assert say_p(p) == said


def test_who_leads_and_who_may_be_first_too() -> None:
    first = noise(1)
    alone = {"a": shifted(first, 0.5), "b": first, "c": shifted(first, -0.1)}
    sure = "with 95% confidence"
    assert lead(alone) == f"a leads, and is separated from all other systems {sure}."
    near = {"a": shifted(first, 1e-3), "b": noise(2), "c": shifted(first, -0.4)}
    first_of_two = max("ab", key=lambda name: float(np.mean(near[name])))
    assert lead(near).startswith(f"{first_of_two} leads, but {sure} any of 2 systems may be first:")
    two = {"a": first, "b": noise(2)}
    assert lead(two).endswith(f" leads, but {sure} any of the 2 systems may be first.")


def test_nobody_leads_among_equals() -> None:
    row = noise(1)
    same = {"a": row, "b": row, "c": row}
    assert lead(same) == "The 3 systems have equal scores on every query: none leads."
    swapped = {"a": [0.0, 1.0] * 30, "b": [1.0, 0.0] * 30}
    assert lead(swapped).startswith("a and b share the best mean, but ")


def test_what_queries_detect_and_what_a_difference_takes() -> None:
    pilot = table({name: noise(seed) for seed, name in enumerate("abcd")})
    asked = PowerOptions(trials=20)
    found = plan_power(pilot, rng(), asked)
    said = power.headline(found, measure="RR@10")
    assert said.startswith("With 60 queries a true difference below 0.")
    assert said.endswith(" RR@10 is not reliably detected (power 0.8).")
    both = replace(asked, differences=(0.1,), queries=(100,))
    taken = power.headline(plan_power(pilot, rng(), both), measure="RR@10")
    assert taken.startswith("A true difference of 0.1 RR@10 takes ")
    none = plan_power(pilot, rng(), replace(asked, queries=(2,)), largest=0.5)
    assert power.headline(none).startswith("2 queries detect no difference with power 0.8: ")


def first_found(rows: dict[str, list[int]]) -> FirstRanks:
    values = {name: [1 / rank if rank else 0.0 for rank in row] for name, row in rows.items()}
    return first_ranks(table(values), k=100)


STRONG, WEAK = [1] * 400, [0] * 60 + [5] * 340


def test_a_pair_has_a_verdict_a_reason_or_labels_that_do_not_fit() -> None:
    for rows, said in (
        ({"x": WEAK, "y": STRONG}, "y (B) is better than x (A): it answers significantly more "),
        ({"x": STRONG, "y": WEAK}, "x (A) is better than y (B): it answers significantly more "),
        ({"x": STRONG, "y": STRONG}, "No verdict between A and B: no significant difference in "),
    ):
        ranks = first_found(rows)
        found = analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules())
        assert verdict_headline(found).startswith(said)
        assert outcomes_headline(found, several=0) == verdict_headline(found)
        assert misfit_headline(found, several=80) == ""
        misfit = misfit_headline(found, several=81)
        assert misfit.startswith("81 of 400 queries have several relevant documents, and ")
        assert "-m nDCG@10" in misfit


def test_many_pairs_are_counted_and_the_first_is_named() -> None:
    ranks = first_found({"x": WEAK, "y": STRONG, "z": STRONG})
    every = analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules())
    assert outcomes_headline(every, several=None) == (
        "2 of 3 pairs of runs have a verdict on which is better; by them y stands first."
    )
    against = analyse_outcomes(ranks, pairs_with(ranks, "x"), DeclaredRules())
    assert outcomes_headline(against, several=None, baseline="x") == (
        "Against x: 2 of 2 runs better, 0 worse, 0 without a verdict."
    )
    alike = first_found(dict.fromkeys("xyz", STRONG))
    none = analyse_outcomes(alike, all_pairs(alike), DeclaredRules())
    assert outcomes_headline(none, several=None).startswith("No pair of runs has a verdict, of 3: ")
    assert outcomes_headline(every, several=400).startswith("400 of 400 queries have several ")


def by_kind(rows: Rows) -> str:
    kinds = {
        "first": frozenset(f"q{n}" for n in range(40)),
        "last": frozenset(f"q{n}" for n in range(40, 80)),
    }
    return facets.headline(compare_facets(table(rows), kinds, rng(), FacetsOptions(draws=199)))


def test_a_ranking_depends_on_the_kind_of_query_or_as_far_as_known_does_not() -> None:
    base = noise(3, 80)
    good = {"a": [x + 0.4 * (n < 40) + 0.01 * (n % 3) for n, x in enumerate(base)], "b": base}
    assert by_kind(good) == (
        "The ranking depends on the kind of query for 4 of 4 pairs of system and kind, most for a "
        "on first (better)."
    )
    assert by_kind({"a": noise(5, 80), "b": noise(6, 80)}) == (
        "No system is significantly better or worse on one of the 2 kinds of query than on the "
        "others."
    )
    assert by_kind({"a": base, "b": base}).startswith(
        "Whether the ranking holds for 2 kinds of query cannot be tested: scores less the mean"
    )


def test_a_scale_is_called_by_its_gaps() -> None:
    def said(measure: str, length: int) -> str:
        universe = universe_of(parse_measure(measure), length=length, judged={1: length})
        return scales.headline(scales.describe_scale(universe))

    assert said("P@3", 3) == (
        "P@3 takes 4 values, equally spaced, so it is an interval scale on these lists."
    )
    assert said("RR@3", 3) == (
        "RR@3 takes 4 values with unequal gaps, so it is not an interval scale on these lists."
    )


def test_views_are_compared_by_tau_or_not_at_all() -> None:
    def said(*columns: list[float]) -> str:
        names = "abc"[: len(columns)]
        systems = {
            f"s{n}": dict(zip(names, row, strict=True))
            for n, row in enumerate(zip(*columns, strict=True))
        }
        return transfer_headline(compare_rankings(table_of(systems, queries=list(names))))

    up, down = [1.0, 2, 3], [3.0, 2, 1]
    assert said(up, down) == "a and b rank 3 systems with Kendall's tau -1.000."
    assert said(up, up, down) == (
        "Of 3 views a and b rank most alike (Kendall's tau 1.000), a and c least (tau -1.000)."
    )
    assert said(up, [1.0, 1, 1]).startswith("No two views rank systems that both have")


def board(rows: Rows, *, teams_of: list[str] | None = None) -> BoardScores:
    arrays = {name: np.array(row) for name, row in rows.items()}
    return board_of(
        entries_of(list(rows), teams=teams_of or []),
        view_of("eval", arrays),
        view_of("reserve", arrays, public=False),
    )


def test_the_best_score_rises_stays_or_is_below_the_baseline() -> None:
    def said(known: BoardScores) -> str:
        return progress.headline(trace_progress(known, known.view()))

    first = noise(1)
    rising = board({"a": first, "b": shifted(first, 0.2), "c": shifted(first, 0.1)})
    assert said(rising).startswith("The best RR@10 rose in 2 steps from 0.")
    assert said(rising).endswith("; none of the steps were significant when made (corrected, 0.05 "
                                 "level).")  # fmt: skip
    sure = board({"a": first, "b": [x + 0.2 + 0.01 * (n % 2) for n, x in enumerate(first)]})
    assert "; 1 of the steps was significant when made" in said(sure)
    falling = board({"a": first, "b": shifted(first, -0.2)})
    assert said(falling).startswith("system a has the best RR@10 (0.")
    assert said(falling).endswith(": no entry was better.")
    means = replace(rising, views={"eval": means_of(rising.view())})
    assert said(means).endswith("; no step is tested, since means alone are known.")
    low = replace(falling, entries=tuple(
        replace(one, baseline=one.id == "a") for one in falling.entries))  # fmt: skip
    assert said(low) == "No entry is better than the best baseline yet."


def test_a_team_climbs_or_nobody_can_say() -> None:
    def said(known: BoardScores) -> str:
        given = Dated(board=known, views=()).beside(None, "reserve")
        return teams.headline(look_at_teams(given, rng(), TeamsOptions(trials=50)))

    rows = {f"s{n}": noise(n) for n in range(6)}
    few = board(rows, teams_of=["a", "b", "c"] * 2)
    assert said(few) == (
        "Whether any team climbs on eval faster than on reserve is unknown: none has the 3 "
        "submissions that a trend needs."
    )
    one = board(rows, teams_of=["a"] * 6)
    assert said(one).startswith("No team significantly climbs on eval faster than on reserve (95%")
    public, reserve = one.view(), one.reserve_view(one.view())
    assert public.table is not None
    steep = {name: public.table.values[n] + 0.1 * n for n, name in enumerate(public.table.systems)}
    climbing = board_of(one.entries, view_of("eval", steep), reserve)
    assert said(climbing).startswith("a climbs on eval faster than on reserve (95% confidence")
    means = board_of(one.entries, means_of(public), means_of(reserve))
    assert said(means).endswith("cannot be tested: means alone are known.")


def test_judges_agree_so_far_or_it_is_undefined() -> None:
    def said(*grades: list[int]) -> str:
        labels = {
            f"judge {j}": {f"q{n}": {"d": grade} for n, grade in enumerate(own)}
            for j, own in enumerate(grades)
        }
        found = judge_agreement(rate_documents(labels), rng(), JudgeOptions(trials=50))
        return judges.headline(found)

    assert said([0, 1] * 20, [0, 1] * 20).startswith(
        "Krippendorff's alpha of 2 judges on 40 documents of queries is 1.000"
    )
    assert said([1] * 40, [1] * 40).startswith("How far 2 judges agree is undefined: ")


def test_runs_rank_alike_or_answer_nothing_in_common() -> None:
    def said(**tops: dict[str, tuple[tuple[str, ...], ...]]) -> str:
        return runs.headline(run_agreement(tops, depth=10))

    one, other = (("x",), ("y",)), (("u",), ("v",))
    assert said(a={"q": one}, b={"q": one}).startswith("a and b rank with a rank-biased overlap of")
    assert said(a={"q": one}, b={"p": one}) == (
        "No two of the runs answer the same query, so nothing can be compared."
    )
    three = said(a={"q": one}, b={"q": one}, c={"q": other})
    assert three.startswith("Of 3 runs a and b rank most alike (RBO 1.000), ")
    assert three.endswith(" and c least (RBO 0.000).")
