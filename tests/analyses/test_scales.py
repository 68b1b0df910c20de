"""Scales: Table 3 of the paper, all lists against what is enumerated, and scores as ranks."""

import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import calling
from drawings import root_of
from heldout.analyses import scales as report
from heldout.analyses.scales import describe_scale
from heldout.answers.answer import to_document

# CMD scales command
from heldout.cli.analyses.sources import Source, load_measures, load_scores
from heldout.cli.program import analyse
from heldout.errors import InputError
from heldout.scoring.measures import Hits, parse_measure, summarise
from heldout.scoring.table import table_of
from heldout.scoring.transforms import Universe, find_values, to_interval, universe_of

answer = partial(calling.answer, "analyse", "scales")
call = partial(calling.call, "analyse", "scales")
refused = partial(calling.refused, "analyse", "scales")


def universe(name: str, length: int, judged: dict[int, int] | None = None) -> Universe:
    return universe_of(parse_measure(name), length=length, judged=judged or {1: length})


def test_table_3_of_the_paper_and_its_violation() -> None:
    """MRR on lists of three documents with binary grades."""
    scale: Any = describe_scale(universe("RR@3", 3))

    published = {
        (1, 1, 1): 1.0, (1, 1, 0): 1.0, (1, 0, 1): 1.0, (1, 0, 0): 1.0,
        (0, 1, 1): 0.5, (0, 1, 0): 0.5, (0, 0, 1): 0.33, (0, 0, 0): 0.0,
    }  # fmt: skip
    assert {grades: round(value, 2) for grades, value in scale.listed} == published
    assert scale.fractions == (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(0))
    assert not scale.equally_spaced
    smallest = scale.violations[0]
    assert (round(smallest.low, 2), smallest.high) == (0.33, 0.5)
    assert [round(value, 2) for value in smallest.missing] == [0.17, 0.83]


@pytest.mark.parametrize(
    "name",
    [
        "RR@4", "RR(rel=2)@4", "P@4", "R@4", "Success@4", "AP@4", "nDCG@4",
        "nDCG(dcg='exp-log2')@3", "RBP(p=0.5)@4", "RBP(p=0.7,rel=2)@4", "ERR@4", "FirstRel@4",
        "nDCG", "AP",
    ],
)  # fmt: skip
@given(judged=st.dictionaries(st.integers(1, 3), st.integers(0, 5), max_size=3))
@settings(max_examples=12)
def test_values_are_those_of_all_lists_one_by_one(name: str, judged: dict[int, int]) -> None:
    measure = parse_measure(name)
    grades = sorted(Counter(judged).elements())
    judgments = summarise(grades, measure.kind, measure.params)
    brute = set()
    for one in product((0, 1, 2, 3), repeat=4):
        if all(one.count(grade) <= judged.get(grade, 0) for grade in (1, 2, 3)):
            value = measure.kind.function(Hits((1, 2, 3, 4), one, 4), judgments, measure.params)
            brute |= set() if value is None else {round(value, 10)}

    found = find_values(universe_of(measure, length=4, judged=judged))

    assert set(np.round(found, 10).tolist()) == brute
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("name", ["P@7", "Success@7", "RBP(p=0.5,rel=1)@7"])
def test_equally_spaced_measures_violate_nothing(name: str) -> None:
    scale = describe_scale(universe(name, 7))

    assert scale.equally_spaced
    assert scale.violations == ()


@given(st.sampled_from(["RR@6", "AP@5", "nDCG@4", "P@6", "RBP(p=0.6)@4", "ERR@4"]))
def test_a_violation_is_found_exactly_where_gaps_differ(name: str) -> None:
    scale = describe_scale(universe(name, 4))

    assert scale.equally_spaced == (scale.violations == ())
    assert len(scale.gaps) == len(scale.values) - 1
    assert sum(scale.gaps) == pytest.approx(scale.values[0] - scale.values[-1])


def test_long_lists_are_not_written_down() -> None:
    assert len(describe_scale(universe("RR@1000", 1000)).values) == 1001
    scale = describe_scale(universe("nDCG@10", 10, {1: 7, 2: 4, 3: 3}))
    assert len(scale.values) > 100_000
    assert scale.violations is None
    assert scale.listed == ()
    json.dumps(to_document(scale))


def test_without_a_relevant_document_there_is_one_value() -> None:
    scale = describe_scale(universe("nDCG@5", 5, {0: 9, -1: 2}))

    assert scale.values == (0.0,)
    assert scale.equally_spaced
    assert report.summary(scale)[-1][1].startswith("1 distinct")


@pytest.mark.parametrize(
    ("name", "length", "judged", "code"),
    [
        ("AP@40", 40, {1: 40}, "no-scale"),
        ("nDCG@30", 30, {1: 30, 2: 30, 3: 30}, "no-scale"),
        ("Unjudged@5", 5, {1: 5}, "no-scale"),
        ("Bpref", 5, {1: 5}, "no-scale"),
        ("AWRF@5", 5, {1: 5}, "no-scale"),
        ("ERR@3", 3, {5: 1}, "grade-above-maximum"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(
    name: str, length: int, judged: dict[int, int], code: str
) -> None:
    with pytest.raises(InputError) as caught:
        describe_scale(universe(name, length, judged))
    assert caught.value.problems[0].code == code


def test_interval_ranks_use_each_querys_own_scale() -> None:
    judgments = {"one": {"d": 1}, "three": {"d": 1, "e": 1, "f": 1}, "none": {"d": 0}}
    table = table_of(
        {
            "a": {"one": 0.25, "three": 0.75, "none": 0.0},
            "b": {"one": 0.0, "three": None, "none": 0.0},
        }
    )
    ranked = to_interval(table, parse_measure("P@4"), judgments)

    assert ranked.values.tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    assert ranked.known.tolist() == table.known.tolist()
    assert ranked.queries == table.queries


@given(st.lists(st.integers(0, 10), min_size=2, max_size=12))
def test_ranks_keep_the_order_of_scores_and_are_equally_spaced(positions: list[int]) -> None:
    row = {f"q{n:02}": 1 / at if at else 0.0 for n, at in enumerate(positions)}
    judgments = {query: {"d": 1} for query in row}
    ranked = to_interval(table_of({"a": row}), parse_measure("RR@10"), judgments)

    # Of 11 values; position 1 is the highest.
    expected = [(11 - at) / 10 if at else 0.0 for at in positions]
    assert ranked.values[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "score", "code"),
    [("RR@10", 0.3, "not-attainable"), ("RR", 0.5, "no-scale"), ("RR@2", 1 / 3, "not-attainable")],
    ids=["no value of the measure", "no cutoff", "beyond the cutoff"],
)
def test_scores_of_another_measure_are_refused(name: str, score: float, code: str) -> None:
    with pytest.raises(InputError) as caught:
        to_interval(table_of({"a": {"q": score}}), parse_measure(name), {"q": {"d": 1}})
    assert caught.value.problems[0].code == code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-m", "RR"), "name the length: --length N"),
        (("-m", "RR@3", "--grades", "0,1"), "grades above 0"),
        (("-m", "RR@3", "--grades", "1,1"), "grades above 0"),
        (("-m", "RR@3", "--grades", "x"), "grades above 0"),
        (("-m", "AP@60"), "no-scale"),
        (("-m", "Wrong@3"), "measure-name"),
    ],
    ids=["no cutoff", "zero", "twice", "no number", "too many", "no measure"],
)
def test_bad_options_are_told(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(*arguments)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    rows = {"good": (1, 2), "bad": (3, 1)}
    for name, positions in rows.items():
        lines = [
            f"q{q}\t{'d1' if at == place else f'x{place}'}\t{place}"
            for q, at in enumerate(positions)
            for place in range(1, 5)
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels").write_text("q0 0 d1 1\nq1 0 d1 1\n")
    return Source(
        runs=(str(tmp_path / "*.tsv"),),
        qrels=str(tmp_path / "qrels"),
        measure="RR@4",
        transform="interval",
    )


def test_transformed_scores_reach_every_analysis(source: Source) -> None:
    scores = load_scores(source)

    assert scores.table.values.tolist() == [[0.5, 1.0], [1.0, 0.75]]
    assert "transform" in dict(scores.facts)
    done = CliRunner().invoke(
        analyse,
        ["stability", "--runs", source.runs[0], "--qrels", str(source.qrels), "-m", "RR@4",
         "--transform", "interval", "--flips", "99", "--json"],
    )  # fmt: skip
    assert json.loads(done.stdout)["means"] == [0.875, 0.75]


def test_where_positions_are_read_off_scores_a_transform_is_refused(source: Source) -> None:
    for load in (
        lambda: load_measures(source, ["RR"]),
        lambda: load_scores(source, measure="RR@10"),
        lambda: load_scores(Source(table="t.csv", transform="interval")),
    ):
        with pytest.raises(Exception, match="transform"):
            load()


@pytest.mark.real
def test_interval_ranks_of_real_runs_are_found_for_every_query(
    data: Callable[[str], Path],
) -> None:
    scores = load_scores(
        Source(
            runs=(str(data("trec-dl-2021-passage/runs") / "p_*.gz"),),
            qrels=str(data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz")),
            measure="nDCG@5",
            transform="interval",
        )
    )

    assert len(scores.table.queries) == 53
    assert 0 <= scores.table.values.min() < scores.table.values.max() <= 1


def test_values_that_would_cover_each_other_are_strokes_and_not_circles() -> None:
    few, many = (
        report.chart(describe_scale(universe_of(parse_measure(name), length=5, judged=judged)))
        for name, judged in (("RR@5", {1: 5}), ("nDCG@5", {1: 4, 2: 2, 3: 1}))
    )

    circles, strokes = (
        [one.tag for one in root_of(chart).iter() if one.find("title") is not None]
        for chart in (few, many)
    )
    assert {*circles} == {"circle"}
    assert {*strokes} == {"path"}
