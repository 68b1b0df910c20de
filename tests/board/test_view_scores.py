"""Scores of views over groups of queries and over a part of them, for one run and for seeds."""

import io
from collections.abc import Mapping
from datetime import date
from statistics import fmean
from typing import Any

import msgspec
import numpy as np
import pytest
from sample_boards import spec

from heldout.board.rules.release import Part, ReleaseRule
from heldout.board.rules.spec import BoardSpec, QuerySet, Season, View
from heldout.board.scores.score import ViewScore, score_views
from heldout.board.scores.sets import SetData, ViewFiles, check_sets
from heldout.errors import InputError
from heldout.ids import digest_bytes
from heldout.trec.qrels import parse_qrels
from heldout.trec.queries import parse_queries
from heldout.trec.runs import scan_run
from heldout.trec.scans import Scan

QUERIES = [f"q{number}" for number in range(6)]
FACETS = {"A": frozenset(QUERIES[:3]), "B": frozenset(QUERIES[3:])}
PLACES = ([1, 1, 2, 1, 4, 4], [4, 4, 4, 1, 2, 2])
"""Place of the relevant document of each query, by seed."""
QRELS = "".join(f"{query} 0 good 1\n" for query in QUERIES)


def view(**keys: object) -> View:
    given = {"name": "v", "set": "eval", "measure": "RR@10", "facets": "labels/f.facets", **keys}
    return msgspec.convert({"min_group": 2, **given}, View)


def scan(places: list[int]) -> Scan:
    lines = []
    for query, place in zip(QUERIES, places, strict=True):
        documents = ["w", "x", "y", "z"]
        documents.insert(place - 1, "good")
        lines += [f"{query}\t{name}\t{rank}\n" for rank, name in enumerate(documents, 1)]
    qrels = parse_qrels(QRELS.encode(), path="qrels").judgments
    return scan_run(io.BytesIO("".join(lines).encode()), path="r", order="msmarco", qrels=qrels)


def make_spec(*views: View, **keys: Any) -> BoardSpec:
    return spec(primary="v", sets={"eval": QuerySet(queries="q.tsv")}, views=views, **keys)


def split(feedback: str, *seasons: str) -> Mapping[Part, frozenset[str]]:
    """The parts of the set, of which the feedback part and the season parts are given."""
    informs = frozenset(feedback.split())
    parts: dict[Part, frozenset[str]] = {"feedback": informs}
    parts["deciding"] = frozenset(QUERIES) - informs
    parts.update((number, frozenset(part.split())) for number, part in enumerate(seasons, 1))
    return parts


def make_data(*, excluded: str = "", parts: Mapping[Part, frozenset[str]] | None = None) -> SetData:
    digest = digest_bytes(b"f")
    return SetData(
        queries=parse_queries("".join(f"{q}\ttext\n" for q in QUERIES).encode(), path="q"),
        qrels=parse_qrels(QRELS.encode(), path="qrels"),
        digest=digest,
        excluded=frozenset(excluded.split()),
        candidates=None,
        files=ViewFiles(
            facets={"labels/f.facets": FACETS},
            queries={"labels/f.tail": frozenset({"q0", "q4", "elsewhere"})},
            digests={"labels/f.facets": digest, "labels/f.tail": digest},
        ),
        parts=parts,
    )


def score(one: View, scans: Mapping[str, Scan], *, excluded: str = "") -> ViewScore:
    return score_views(make_spec(one), {"eval": make_data(excluded=excluded)}, scans)["v"]


def mean_of(group: str, seed: int) -> float:
    return fmean(1 / PLACES[seed][QUERIES.index(query)] for query in FACETS[group])


def test_the_worst_group_of_one_run() -> None:
    found = score(view(summary="worst"), {"eval": scan(PLACES[0])})
    assert found.groups == ("B",)
    assert found.mean == pytest.approx(mean_of("B", 0))
    assert (found.n, set(found.per_query)) == (3, set(FACETS["B"]))


def test_the_worst_group_of_two_seeds_is_that_of_their_mean() -> None:
    """Each seed has another worst group; the submission has one."""
    found = score(view(summary="worst"), {"eval": scan(PLACES[0]), "eval~2": scan(PLACES[1])})
    means = {group: fmean(mean_of(group, seed) for seed in range(2)) for group in FACETS}
    worst = min(means, key=means.__getitem__)
    assert found.groups == (worst,)
    assert found.mean == pytest.approx(means[worst])
    assert found.seeds == pytest.approx([mean_of(worst, seed) for seed in range(2)])


def test_the_gap_of_two_seeds_is_that_of_their_mean() -> None:
    found = score(view(summary="gap"), {"eval": scan(PLACES[0]), "eval~2": scan(PLACES[1])})
    means = {group: fmean(mean_of(group, seed) for seed in range(2)) for group in FACETS}
    assert found.mean == pytest.approx(max(means.values()) - min(means.values()))
    assert found.n == 6
    assert fmean(found.seeds) == pytest.approx(found.mean)


def test_queries_that_do_not_count_are_in_no_group() -> None:
    assert score(view(summary="worst"), {"eval": scan(PLACES[0])}, excluded="q4 q0").n == 2
    with pytest.raises(InputError) as caught:
        score(view(summary="gap"), {"eval": scan(PLACES[0])}, excluded="q4 q5")
    assert caught.value.problems[0].code == "undefined-score"
    assert caught.value.problems[0].found == "not two groups of 2 queries that count"


def test_some_of_the_queries() -> None:
    tail = view(facets=None, queries="labels/f.tail")
    found = score(tail, {"eval": scan(PLACES[0])})
    assert set(found.per_query) == {"q0", "q4"}
    assert found.mean == pytest.approx((1 + 1 / 4) / 2)
    with pytest.raises(InputError, match="undefined-score"):
        score(tail, {"eval": scan(PLACES[0])}, excluded="q0 q4")


DECIDING = view(facets=None, part="deciding")
FEEDBACK = view(facets=None, part="feedback", name="f")
SCANS = {"eval": scan(PLACES[0])}
SEEDS = {"eval": scan(PLACES[0]), "eval~2": scan(PLACES[1])}


@pytest.mark.parametrize("denominator", ["counted", "all"])
@pytest.mark.parametrize("excluded", ["", "q1 q3"])
@pytest.mark.parametrize("scans", [{"eval": scan(PLACES[0])}, SEEDS])
def test_the_parts_of_a_set_are_the_whole_for_all_seeds_and_denominators(
    denominator: str, excluded: str, scans: Mapping[str, Scan]
) -> None:
    whole = view(facets=None, name="w")
    spec = make_spec(DECIDING, FEEDBACK, whole, denominator=denominator)
    data = make_data(excluded=excluded, parts=split("q1 q2"))
    found = score_views(spec, {"eval": data}, scans)
    assert set(found["f"].per_query) == {"q1", "q2"} - set(excluded.split())
    assert {**found["v"].per_query, **found["f"].per_query} == found["w"].per_query
    assert found["v"].n + found["f"].n == found["w"].n
    for one in ("mean", "seeds"):
        sums = {n: np.multiply(getattr(found[n], one), found[n].n) for n in ("v", "f", "w")}
        assert sums["v"] + sums["f"] == pytest.approx(sums["w"])


def test_a_part_and_a_list_of_queries_are_what_they_have_in_common() -> None:
    one = view(facets=None, part="feedback", queries="labels/f.tail")
    data = {"eval": make_data(parts=split("q1 q4"))}
    assert set(score_views(make_spec(one), data, SEEDS)["v"].per_query) == {"q4"}


def test_groups_of_queries_are_those_within_the_part() -> None:
    one = view(summary="worst", part="deciding")
    found = score_views(make_spec(one), {"eval": make_data(parts=split("q4"))}, SCANS)["v"]
    assert found.groups == ("B",)
    assert found.per_query.keys() == {"q3", "q5"}


def test_a_season_is_scored_on_its_part_of_a_set_that_it_shares() -> None:
    views = [view(facets=None, part=1), view(facets=None, name="second", part=2), FEEDBACK]
    seasons = [
        Season(name="one", view="v", opens=date(2026, 11, 1), closes=date(2026, 12, 31)),
        Season(name="two", view="second", opens=date(2027, 1, 1)),
    ]
    rule = ReleaseRule(rule="clear", seasons=2)
    spec = make_spec(*views, seasons=tuple(seasons), release=rule)
    data = {"eval": make_data(parts=split("q1", "q0 q2 q3", "q4 q5"))}
    for day, name, queries in (
        (date(2026, 12, 31), "v", {"q0", "q2", "q3"}),
        (date(2027, 1, 1), "second", {"q4", "q5"}),
    ):
        rules = spec.on(day)
        found = score_views(rules, data, SEEDS)
        assert rules.primary == name
        assert rules.sets == spec.sets
        assert found.keys() == {name, "f"}
        assert found[name].per_query.keys() == queries


def test_who_has_no_key_has_no_score_on_a_part() -> None:
    whole = view(facets=None, name="w")
    found = score_views(make_spec(DECIDING, FEEDBACK, whole), {"eval": make_data()}, SEEDS)
    assert found.keys() == {"w"}


def test_a_split_that_leaves_too_few_queries_is_refused() -> None:
    spec = make_spec(DECIDING, FEEDBACK)
    for data, sizes in (
        (make_data(), [4, 2]),  # without a key a quarter of 6 is 2, rounded
        (make_data(parts=split("q1 q2 q3"), excluded="q5"), [2, 3]),
    ):
        with pytest.raises(InputError) as caught:
            check_sets(spec, {"eval": data})
        problems = caught.value.problems
        assert {problem.code for problem in problems} == {"small-part"}
        assert [int(problem.found.split()[0]) for problem in problems] == sizes
        assert [problem.expected for problem in problems] == ["at least 300", "at least 100"]


def test_season_parts_that_are_too_small_are_refused() -> None:
    season = Season(name="one", view="v", opens=date(2026, 11, 1))
    release = ReleaseRule(rule="clear", seasons=2, feedback=0)
    spec = make_spec(view(facets=None, part=2), seasons=(season,), release=release)
    for data, size in ((make_data(), 3), (make_data(parts=split("", "q1 q2", "q3 q4 q5")), 3)):
        with pytest.raises(InputError) as caught:
            check_sets(spec, {"eval": data})
        (problem,) = caught.value.problems
        assert (problem.code, problem.expected) == ("small-part", "at least 200")
        assert problem.found.startswith(f"{size} queries that count in season part 2")
