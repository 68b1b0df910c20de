"""Agreement of judges and of runs: their laws, real labels, and what the command says."""

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

import calling
from drawings import boxes, texts
from heldout.analyses import agreement_of_judges as judge_report
from heldout.analyses.agreement_of_judges import (
    JudgeAgreement,
    JudgeOptions,
    judge_agreement,
    rate_documents,
    rate_preferences,
)
from heldout.analyses.agreement_of_runs import run_agreement
from heldout.errors import InputError
from heldout.stats.agreement import cohen_kappa, krippendorff_alpha
from heldout.trec.judgments import Preference

answer = partial(calling.answer, "analyse", "agreement")
call = partial(calling.call, "analyse", "agreement")
refused = partial(calling.refused, "analyse", "agreement")

Labels = dict[str, dict[str, dict[str, int]]]
LABELS = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]),
        st.dictionaries(st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 3), min_size=1),
        min_size=1,
    ),
    min_size=2,
)


def compare(labels: Labels, **options: Any) -> JudgeAgreement:
    relevant = options.pop("relevant", None)
    chosen = JudgeOptions(**{"trials": 50, **options})
    return judge_agreement(rate_documents(labels, relevant=relevant), Generator(PCG64(1)), chosen)


# judges


@given(LABELS)
def test_the_order_of_judges_queries_and_documents_changes_no_coefficient(labels: Labels) -> None:
    turned = {
        judge: {query: dict(reversed(grades.items())) for query, grades in reversed(one.items())}
        for judge, one in reversed(labels.items())
    }

    found, other = compare(labels), compare(turned)

    assert found.units == other.units
    assert found.alpha.value == pytest.approx(other.alpha.value, abs=1e-12)
    kappas = {frozenset((p.first, p.second)): p.kappa.value for p in other.pairs}
    for pair in found.pairs:
        wanted = kappas[frozenset((pair.first, pair.second))]
        assert pair.kappa.value == pytest.approx(wanted, abs=1e-12)


@given(LABELS)
def test_a_confusion_has_every_unit_once_and_its_diagonal_is_what_is_the_same(
    labels: Labels,
) -> None:
    for pair in compare(labels).pairs:
        table = np.array(pair.confusion)
        assert table.sum() == pair.units
        assert np.trace(table) / pair.units == pytest.approx(pair.same)


def test_coefficients_are_those_of_the_functions_on_what_both_judged() -> None:
    labels = {
        "a": {"q1": {"x": 0, "y": 2}, "q2": {"x": 1, "z": 3}},
        "b": {"q1": {"x": 0, "y": 1}, "q2": {"x": 1}, "q3": {"w": 2}},
    }

    found = compare(labels, scale="interval", weights="quadratic")

    (pair,) = found.pairs
    assert (pair.units, pair.queries, found.units, found.queries) == (3, 2, 5, 3)
    assert pair.kappa == cohen_kappa(
        [0, 2, 1], [0, 1, 1], weights="quadratic", categories=[0, 1, 2, 3]
    )
    nan = np.nan
    assert found.alpha.value == pytest.approx(
        krippendorff_alpha([[0, 2, 1, 3, nan], [0, 1, 1, nan, 2]], scale="interval").value
    )
    assert (found.fleiss_units, found.judged) == (3, (4, 4))
    assert pair.overlap == 1.0
    assert compare(labels, relevant=2).pairs[0].overlap == 0.0


def test_queries_are_drawn_and_not_documents() -> None:
    # Twenty documents of a query are all the same, so they tell as much as one
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, 2, (2, 40))
    alone, many = (
        {
            name: {f"q{n}": {f"d{d}": int(grade) for d in range(size)} for n, grade in grades}
            for name, grades in (("a", list(enumerate(one))), ("b", list(enumerate(other))))
        }
        for size in (1, 20)
    )

    few, repeated = compare(alone).pairs[0], compare(many).pairs[0]

    assert few.kappa.value == pytest.approx(repeated.kappa.value)
    assert few.interval == pytest.approx(repeated.interval)


def test_of_few_queries_there_is_a_coefficient_and_no_interval() -> None:
    rng = np.random.default_rng(4)
    labels = {
        judge: {
            f"q{n}": {f"d{k}": int(grade) for k, grade in enumerate(row)}
            for n, row in enumerate(rng.integers(0, 3, (10, 8)))
        }
        for judge in "ab"
    }
    enough = compare(labels)
    few = compare({judge: dict(list(one.items())[:9]) for judge, one in labels.items()})

    assert (few.interval, few.pairs[0].interval) == (None, None)
    assert None not in (few.alpha.value, few.pairs[0].kappa.value)
    assert None not in (enough.interval, enough.pairs[0].interval)


def test_undefined_stays_undefined_and_says_why() -> None:
    same = {"a": {"q1": {"x": 1}, "q2": {"x": 1}}, "b": {"q1": {"x": 1}, "q2": {"x": 1}}}
    found = compare(same)

    assert found.pairs[0].kappa.value is None
    assert found.pairs[0].interval is None
    assert (found.alpha.value, found.alpha.why) == (None, "all ratings are in one category")
    apart = compare({"a": {"q1": {"x": 1}}, "b": {"q1": {"y": 0}}})
    assert (apart.pairs, apart.fleiss, apart.fleiss_units) == ((), None, 0)
    assert apart.alpha.why == "no unit has two ratings"
    with pytest.raises(InputError, match="too-few-judges"):
        compare({"a": {"q1": {"x": 1}}})


def test_ids_in_the_place_of_grades_are_told_and_fill_no_memory() -> None:
    ids = {judge: {"q": {f"d{n}": n * 10**12 for n in range(5000)}} for judge in "ab"}

    with pytest.raises(InputError, match="too-many-grades"):
        compare(ids)


def preferences(*rows: str) -> list[Preference]:
    return [
        Preference(query=query, a=better, b=worse, preferred=better)
        for query, better, worse in (row.split() for row in rows)
    ]


def test_a_pair_is_the_same_whichever_item_stands_first_and_a_tied_vote_is_no_verdict() -> None:
    crowd = preferences("q1 a b", "q1 b a", "q1 b a", "q2 a b", "q2 b a", "q3 a c")
    model = preferences("q1 b a", "q2 a b", "q3 a c")

    ratings = rate_preferences({"crowd": crowd, "model": model})

    assert ratings.queries == ("q1", "q2", "q3")
    wanted = np.array([[1, np.nan, 0], [1, 0, 0]])
    assert np.array_equal(ratings.verdicts, wanted, equal_nan=True)
    assert (~np.isnan(ratings.ratings)).sum() == 9
    found = judge_agreement(ratings, Generator(PCG64(0)), JudgeOptions(trials=20))
    assert (found.pairs[0].units, found.pairs[0].overlap, found.kind) == (2, None, "pairs")
    alone = judge_agreement(
        rate_preferences({"crowd": crowd}), Generator(PCG64(0)), JudgeOptions(trials=20)
    )
    assert (alone.pairs, alone.fleiss, alone.alpha.units) == ((), None, 2)


# runs


def test_a_run_agrees_with_itself_and_with_a_stranger_in_nothing() -> None:
    run = {f"q{n}": tuple((f"d{(n + k) % 9}",) for k in range(6)) for n in range(4)}
    stranger = {query: tuple((f"x{k}",) for k in range(6)) for query in run}

    found = run_agreement({"a": run, "b": run, "c": stranger, "d": {}}, depth=6)

    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    same, none, empty = pairs["a", "b"], pairs["a", "c"], pairs["a", "d"]
    assert (same.rbo.value, same.tau.value, same.shared.value) == pytest.approx((1, 1, 1))
    assert (same.rbo.low, same.rbo.why) == (None, "the same on every query")
    assert (none.rbo.value, none.shared.value, none.tau.value) == (0, 0, None)
    assert (empty.queries, empty.rbo.value, empty.rbo.why) == (0, None, "no query that both answer")
    with pytest.raises(InputError, match="too-few-systems"):
        run_agreement({"a": run}, depth=6)


def test_runs_may_change_places() -> None:
    rng = np.random.default_rng(5)
    first, second = (
        {f"q{n}": tuple((f"d{k}",) for k in rng.permutation(12)[:8]) for n in range(5)}
        for _ in range(2)
    )

    there, back = (
        run_agreement(dict(both), depth=8)
        for both in ([("a", first), ("b", second)], [("b", second), ("a", first)])
    )
    (one,), (other,) = there.pairs, back.pairs
    assert there.digest == run_agreement({"a": first, "b": second}, depth=8).digest
    assert there.digest != back.digest

    for name in ("rbo", "shared", "tau", "tau_ap"):
        mean, turned = getattr(one, name), getattr(other, name)
        assert (mean.value, mean.low, mean.high) == pytest.approx(
            (turned.value, turned.low, turned.high), abs=1e-12
        )


# the command


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    path = tmp_path / "labels.txt"
    rows = []
    for query in range(12):
        for document in range(5):
            truth = int(rng.integers(0, 3))
            for judge in ("ann", "bob", "eve"):
                grade = truth if rng.random() < 0.7 else int(rng.integers(0, 3))
                rows.append(f"q{query} {judge} d{document} {grade}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_one_file_of_several_judges_and_a_file_for_each_say_the_same(
    labels: Path, tmp_path: Path
) -> None:
    files = []
    for judge in ("ann", "bob", "eve"):
        path = tmp_path / f"{judge}.qrels"
        rows = [line for line in labels.read_text().splitlines() if f" {judge} " in line]
        path.write_text("\n".join(rows) + "\n")
        files += ["--qrels", path]

    together, apart = answer("--ratings", labels), answer(*files)

    for found in (together, apart):
        del found["digest"], found["judges"]
        for pair in found["pairs"]:
            del pair["first"], pair["second"]
    assert together == apart
    low, _ = together["interval"]
    assert 0.3 < low < together["alpha"]["value"] < 0.8


def test_the_picture_has_a_cell_for_each_two_that_agree(labels: Path, tmp_path: Path) -> None:
    found = compare(
        {
            "<script>": {"q1": {"x": 1, "y": 0}, "q2": {"x": 1}},
            "b": {"q1": {"x": 1, "y": 0}, "q2": {"x": 1}},
            "c": {"q9": {"x": 1}},
        }
    )
    assert len(boxes(judge_report.chart(found))) == 1
    shades = [text for text in texts(judge_report.chart(found)) if "from" in text]
    assert shades == ["from 0.8", "from 0.6", "from 0.4", "from 0.2"]

    for name in ("one.svg", "two.svg"):
        assert call("--ratings", labels, "--chart", tmp_path / name).exit_code == 0
    drawn = (tmp_path / "one.svg").read_text()
    assert ">ann · 1</text>" in drawn
    assert drawn == (tmp_path / "two.svg").read_text()


def test_runs_of_both_forms_are_compared(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("".join(f"q Q0 d{n} {n} {9 - n} x\n" for n in range(6)))
    (tmp_path / "b.tsv").write_text("".join(f"q\td{n}\t{n + 1}\n" for n in range(6)))

    found = answer("--runs", tmp_path / "*.*", "-p", 0.8, "--level", 0.9)
    assert (found["p"], found["level"]) == (0.8, 0.9)

    assert found["pairs"][0]["rbo"]["value"] == pytest.approx(1)
    assert found["pairs"][0]["tau"]["why"] == "one query"
    text = call("--runs", tmp_path / "*.*", "--chart", tmp_path / "r.svg").output
    assert "alike     a and b, RBO 1.000, on 1 query" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--qrels A --qrels B"),
        (["--runs", "a", "--qrels", "b"], "--qrels A --qrels B"),
        (["--runs", "nothing-*"], "no-run"),
        (["--ratings", "absent"], "absent"),
        (["--preferences", "p.pref", "--relevant", "1"], "preferences have none"),
        (["--qrels", "one.qrels"], "too-few-judges"),
        (["--qrels", "one.qrels", "--qrels", "one.qrels"], "repeated-system"),
        (["--runs", "one.qrels"], "error"),
    ],
)
def test_what_cannot_be_compared_is_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.qrels").write_text("q 0 d 1\n")
    assert told in refused(*arguments)


@pytest.mark.real
def test_the_crowd_and_a_model_agree_on_as_many_pairs_as_was_counted_elsewhere(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = data("preferences/dl21-dueling-bandits")
    rows = gzip.decompress((folder / "gpt4o-on-the-same-pairs.txt.gz").read_bytes()).decode()
    model = tmp_path / "model.pref"
    clear = [line.split() for line in rows.splitlines() if line.endswith(" !")]
    model.write_text("".join(f"{q} {a} {b} {a}\n" for _, q, a, b, _ in clear))

    found = answer(
        "--preferences", folder / "judgments.txt.gz", "--preferences", model, "--trials", 99
    )

    # the data's README: 3,217 agree and 1,812 disagree where the crowd's votes are not tied
    table = np.array(found["pairs"][0]["confusion"])
    assert (np.trace(table), table.sum() - np.trace(table)) == (3217, 1812)


def test_a_depth_cuts_no_tie_and_the_help_and_the_page_say_so(tmp_path: Path) -> None:
    scores = {"a": [9, 8, 8, 8, 5], "b": [9, 8, 7, 6, 5]}
    for name, row in scores.items():
        lines = [f"q1 Q0 d{n} {n + 1} {score} x\n" for n, score in enumerate(row)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    runs = ("--runs", tmp_path / "*.run", "--order", "trec")
    cut, deeper = (answer(*runs, "--depth", depth)["pairs"][0] for depth in (2, 4))
    # a keeps four documents at depth 2, of which b's two are two
    assert cut["shared"]["value"] == 1
    assert deeper["tau"]["value"] is not None
    assert answer(*runs, "--depth", 2)["tied"] == [0.75, 0.0]
    assert "ties with the last one are added" in " ".join(call("--help").output.split())
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "analyses.md"
    assert "The depth cuts no tie" in " ".join(page.read_text("utf-8").split())


def test_no_interval_of_an_agreement_lies_beyond_its_scale() -> None:
    """Three queries, on one of which the runs part: by t alone tau's interval reaches 2.1."""
    order = ["d1", "d2", "d3", "d4"]
    tops = {
        name: {f"q{n}": tuple((d,) for d in (last if n == 2 else order)) for n in range(3)}
        for name, last in (("a", order), ("b", order[::-1]))
    }
    (pair,) = run_agreement(tops, depth=4).pairs
    assert (pair.tau.low, pair.tau.high) == (-1.0, 1.0)
    assert pair.rbo.high == 1.0


def test_runs_are_compared_on_each_kind_of_query_apart(tmp_path: Path) -> None:
    for name, turn in (("a", 1), ("b", -1)):
        rows = [
            f"q{n} Q0 d{m} {m} {m * (turn if n % 2 else 1)} x\n"
            for n in range(8)
            for m in range(1, 6)
        ]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("".join(f"q{n}\t{'alike' if n % 2 == 0 else 'other'}\n" for n in range(8)))
    told = ("--runs", tmp_path / "*.run", "--facet", kinds, "--least", 2)

    found = answer(*told)["values"]

    assert found["alike"]["answer"]["pairs"][0]["tau"]["value"] == 1
    assert found["other"]["answer"]["pairs"][0]["tau"]["value"] == -1
    assert found["alike"]["answer"]["orders"] == ["trec"]


def test_decimal_grades_are_grades_as_they_are_written(tmp_path: Path) -> None:
    rows = [("q1", "d1", "0.25", "0.5"), ("q1", "d2", "1", "1.0"), ("q2", "d1", "0", "1e-1")]
    for name, column in (("a", 2), ("b", 3)):
        lines = (f"{row[0]} 0 {row[1]} {row[column]}\n" for row in rows)
        (tmp_path / name).write_text("".join(lines))
    found = answer("--qrels", tmp_path / "a", "--qrels", tmp_path / "b")
    assert found["categories"] == [0, 0.1, 0.25, 0.5, 1]
    assert found["pairs"][0]["same"] == pytest.approx(1 / 3)
    binary = answer("--qrels", tmp_path / "a", "--qrels", tmp_path / "b", "--relevant", 1)
    assert (binary["categories"], binary["pairs"][0]["same"]) == ([0, 1], 1)


@pytest.mark.slow
@pytest.mark.real
def test_single_runs_of_one_team_are_the_most_alike_of_dl_2021(
    data: Callable[[str], Path],
) -> None:
    runs = data("trec-dl-2021-passage/runs")
    found = answer("--runs", runs / "p_*.gz", "--runs", runs / "NLE*.gz", "--order", "trec9")

    best = max(found["pairs"], key=lambda pair: pair["rbo"]["value"])
    assert {best["first"], best["second"]} == {"p_fusion00", "p_fusion10"}
    assert best["rbo"]["low"] < best["rbo"]["value"] < best["rbo"]["high"]
