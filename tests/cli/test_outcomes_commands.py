"""`heldout compare` and `heldout analyse outcomes`: what they print, and what they refuse."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from calling import answer, call, refused
from heldout.answers.table import format_p

QUERIES = 60
FIXED = {"k", "queries", "neither", "a_only", "b_only", "both", "esl", "rr", "tests", "corrected"}
FIXED |= {"rules", "verdict", "success", "means"}
DECLARED = ("binomial", "esl_signed_rank")
LINES = {"binomial", "esl_signed_rank", "esl_t", "rr_signed_rank", "rr_t"}


def _write(path: Path, ranks: list[int]) -> str:
    """A run that has the one relevant document of each query at a rank, or nowhere (0)."""
    lines = []
    for query, rank in enumerate(ranks):
        for place in range(1, 31):
            document = f"relevant{query}" if place == rank else f"other{place}"
            lines.append(f"q{query} Q0 {document} {place} {100 - place} tag")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    base = np.random.default_rng(3).integers(5, 25, QUERIES)
    rows = {"a1": base, "a2": base + 1, "b1": base - 4, "b2": base - 3}
    for name, row in rows.items():
        ranks = row.copy()
        ranks[: 20 if name.startswith("a") else 2] = 0
        _write(tmp_path / f"{name}.run", ranks.tolist())
    qrels = [f"q{query} 0 relevant{query} 1" for query in range(QUERIES)]
    (tmp_path / "qrels").write_text("\n".join([*qrels, "q0 0 second 1"]) + "\n")
    return tmp_path


def _compare(files: Path, *arguments: str) -> Result:
    names = [",".join(str(files / part) for part in word.split(",")) for word in arguments[:2]]
    return call("compare", *names, "--qrels", files / "qrels", *arguments[2:])


def _outcomes(files: Path, *arguments: str) -> Result:
    source = ("--runs", files / "*.run", "--qrels", files / "qrels")
    return call("analyse", "outcomes", *source, *arguments)


def test_compare_prints_the_verdict_first_then_the_evidence(files: Path) -> None:
    result = _compare(files, "a1.run", "b1.run", "--harm", "plain", "--explain")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "b1 (B) is better than a1 (A): it answers significantly more queries, and answers them "
        "higher."
    )
    assert "verdict   B is better, strict: b1" in lines
    for words in ("(2) by B alone", "B more", "ESL", "lower", "Success@j", "simultaneous at 95%"):
        assert words in result.stdout
    assert "Holm over 2 hypotheses, 1 pair × 2 outcomes" in result.stdout
    assert "1 query has several relevant documents" in result.stdout


def _write_pair(folder: Path, a: list[int], b: list[int]) -> None:
    _write(folder / "a.run", a)
    _write(folder / "b.run", b)
    (folder / "qrels").write_text("".join(f"q{q} 0 relevant{q} 1\n" for q in range(len(a))))


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ([4] * 8 + [6], "p is at most 0.05 and yet the interval holds 0"),  # +1 and -1 are tied
        ([4, 3, 2, 1, 5, 5, 5, 5, 5], None),
        ([4, 3, 2, 1, 6, 7, 8, 9, 9], None),
    ],
)
def test_where_p_and_interval_contradict_each_other_it_is_said(
    tmp_path: Path, b: list[int], said: str | None
) -> None:
    _write_pair(tmp_path, [5] * 9, b)
    text = _compare(tmp_path, "a.run", "b.run", "--explain").stdout
    value = json.loads(_compare(tmp_path, "a.run", "b.run", "--json").stdout)
    test = value["tests"]["esl_signed_rank"]
    assert ("and yet the interval" in text) == (said is not None)
    if said:
        assert test["p"] <= 0.05
        assert test["low"] <= 0 <= test["high"]
        assert f"signed-rank on ESL: {said}: p counts equal differences as tied" in text


def test_a_verdict_stands_beside_the_p_that_decided_it(tmp_path: Path) -> None:
    """Both tests at .035 and .039: strict, although the column of corrected p has .070 twice."""
    _write_pair(tmp_path, [0] * 12 + [2] * 3 + [5] * 9, [1] * 12 + [0] * 3 + [4] * 8 + [6])
    plain = ("a.run", "b.run", "--harm", "plain")
    value = json.loads(_compare(tmp_path, *plain, "--json").stdout)
    strict = value["verdict"]["p_strict"]
    raw = [value["tests"][line]["p"] for line in DECLARED]
    assert strict == max(raw) < 0.05 < min(value["corrected"][line] for line in DECLARED)
    lines = _compare(tmp_path, *plain).stdout.splitlines()
    assert lines[0].startswith("b (B) is better than a (A): ")
    (said,) = (line for line in lines if line.startswith("p  "))
    assert said.startswith(f"p         strict test: p {format_p(strict)}, the largest p that")
    assert said.endswith("no-harm test: not applicable")


def test_strict_needs_queries_enough_to_have_seen_rare_harm(files: Path) -> None:
    """40 queries that both find, B 4 positions earlier on each: one in 200 could come 99 later."""
    value = json.loads(_compare(files, "a1.run", "b1.run", "--json").stdout)
    assert value["verdict"]["p_strict"] == pytest.approx((98.5 / 103) ** 40)
    assert (value["verdict"]["word"], value["verdict"]["better"]) == ("do no harm", "B")
    lines = _compare(files, "a1.run", "b1.run").stdout.splitlines()
    assert lines[0] == (
        "b1 (B) is better than a1 (A) and does no harm: one outcome is significantly better, the "
        "other not worse by a margin."
    )
    assert "verdict   B is better, do no harm: b1" in lines
    harm = value["verdict"]["p_no_harm"]
    assert f"no-harm test: p {format_p(harm)}, twice the smaller p of its two ways" in "\n".join(
        lines
    )


def test_case_2_has_its_difference_and_interval_before_its_p(files: Path) -> None:
    for side, other, line in (("a1.run", "b1.run", "binomial"), ("a*", "b*", "found_crossed_t")):
        test = json.loads(_compare(files, side, other, "--json").stdout)["tests"][line]
        lines = _compare(files, side, other).stdout.splitlines()
        (row,) = (row.split() for row in lines if row.startswith("(2) by B alone"))
        ends = [f"{test[name]:+.4f}" for name in ("difference", "low", "high")]
        assert row[row.index("more") + 1 : -2] == ends


def test_of_many_pairs_each_verdict_has_its_p(files: Path) -> None:
    arguments = ("--correction", "none", "-m", "RR@100", "--harm", "plain")
    text = _outcomes(files, *arguments).stdout
    pairs = json.loads(_outcomes(files, *arguments, "--json").stdout)["pairs"]
    strict = [one for one in pairs if one["verdict"]["word"] == "strict"]
    assert strict
    for one in strict:
        (row, *_) = (
            row
            for row in text.splitlines()
            if row.split()[:2] == [one["a"]["name"], one["b"]["name"]]
        )
        assert row.split()[-2:] == ["strict", format_p(one["verdict"]["p_strict"])]


def test_verdicts_in_a_circle_are_called_a_circle(tmp_path: Path) -> None:
    """a ranks above b where both find, b above c, c above a; each finds 40 of 60."""
    rows = {"a": [1] * 20 + [0] * 20 + [5] * 20, "b": [5] * 20 + [1] * 20 + [0] * 20}
    rows["c"] = [0] * 20 + [5] * 20 + [1] * 20
    rows["d"] = [0] * 60
    for name, ranks in rows.items():
        _write(tmp_path / f"{name}.run", ranks)
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 relevant{q} 1\n" for q in range(60)))
    lines = _outcomes(tmp_path, "--harm", "plain").stdout.splitlines()
    assert "circles   a > b > c > a: no line can show these verdicts" in lines
    line = lines[lines.index("A line by verdict") + 3 :]
    assert [row.split(maxsplit=2)[1:] for row in line[:4]] == [
        ["a"],
        ["b", "in a circle with it"],
        ["c", "in a circle with it"],
        ["d", "by verdict"],
    ]
    order = json.loads(_outcomes(tmp_path, "--harm", "plain", "--json").stdout)["order"]
    assert order["circles"] == order["cycles"] == [["a", "b", "c"]]


def test_compare_gives_the_fixed_json(files: Path) -> None:
    asked = ("a1.run", "b1.run", "--harm", "plain", "--json")
    value = json.loads(_compare(files, *asked).stdout)
    assert value.keys() >= FIXED
    assert value["tests"].keys() == value["corrected"].keys() == LINES
    assert (value["neither"], value["a_only"], value["b_only"], value["both"]) == (2, 0, 18, 40)
    assert value["neither"] + value["a_only"] + value["b_only"] + value["both"] == QUERIES
    assert value["esl"]["b"] == pytest.approx(value["esl"]["a"] - 4)
    assert (value["verdict"]["word"], value["verdict"]["better"]) == ("strict", "B")
    assert value["rules"]["correction"] == "holm"
    assert (value["k"], value["several_relevant"]) == (100, 1)
    assert len(value["success"]["success_a"]) == 100
    assert value["tests"]["esl_t"]["p"] is None  # every difference is 4
    assert "no standard error" in value["tests"]["esl_t"]["why"]


def test_groups_of_seeds_are_compared_across_seeds(files: Path) -> None:
    for side in ("a1.run,a2.run", "a*.run"):
        value = json.loads(_compare(files, side, "b1.run,b2.run", "--json").stdout)
        assert value["a"]["runs"] == ["a1", "a2"]
        assert value["tests"].keys() == {"found_crossed_t", "esl_crossed_t", "rr_crossed_t"}
        assert value["tests"]["found_crossed_t"]["p"] is not None
    text = _compare(files, "a*.run", "b*.run", "--explain").stdout
    assert "a*.run (2 seeds)" in text
    assert "means over all pairs of a seed of A and one of B" in text
    assert "found 0.01 of the queries (crossed t), mean ESL 0.5 (crossed t" in text
    runs = _compare(files, "a1.run", "b1.run", "--explain").stdout
    assert "found 0.01 of the queries (score test), mean ESL 0.5 (t" in runs


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("a1.run", "a1.run"), "same-run"),
        (("a*.run", "a1.run,b1.run"), "same-run"),
        (("a1.run", "none*.run"), "no-run"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(
    files: Path, arguments: tuple[str, ...], code: str
) -> None:
    result = _compare(files, *arguments)
    assert result.exit_code == 2
    assert code in result.stderr


@pytest.mark.parametrize("words", ["", ","])
def test_a_side_without_a_run_is_named(files: Path, words: str) -> None:
    said = refused("compare", words, files / "b1.run", "--qrels", files / "qrels")
    assert "no-run  A" in said


def test_what_counts_0_for_another_reason_is_told(files: Path) -> None:
    (files / "qrels").write_text((files / "qrels").read_text() + "q1 0 poor 0\nq99 0 poor 0\n")
    ids = (files / "a1.run").read_text().replace(" Q0 ", " Q0 msmarco_")
    (files / "ids.run").write_text(ids)

    result = _compare(files, "ids.run", "b1.run")
    assert "2 runs did not answer all; unanswered ones count 0" in result.stdout
    assert "1 without a relevant document count 0" in result.stdout
    assert f"no-common-document  {files / 'ids.run'}" in result.stderr


@pytest.mark.slow
def test_judgments_may_come_through_a_pipe(files: Path) -> None:
    program = [sys.executable, "-m", "heldout", "compare", "a1.run", "b1.run", "--json"]
    given = (files / "qrels").read_bytes()
    piped = subprocess.check_output([*program, "--qrels", "/dev/stdin"], cwd=files, input=given)
    assert json.loads(piped) == json.loads(_compare(files, "a1.run", "b1.run", "--json").stdout)


def test_a_run_that_finds_nothing_leaves_case_3_undefined(files: Path) -> None:
    _write(files / "nothing.run", [0] * QUERIES)
    value = json.loads(_compare(files, "nothing.run", "b1.run", "--json").stdout)
    assert value["esl"] == {"a": None, "b": None}
    assert (value["tests"]["rr_t"]["p"], value["tests"]["rr_t"]["why"]) == (None, "no query")
    assert _compare(files, "nothing.run", "b1.run").exit_code == 0


@pytest.mark.parametrize("extra", [(), ("--baseline", "a1")])
def test_all_pairs_or_a_baseline_against_all(files: Path, extra: tuple[str, ...]) -> None:
    value = json.loads(_outcomes(files, "--json", *extra).stdout)
    pairs = 3 if extra else 6
    assert len(value["pairs"]) == pairs
    assert value["hypotheses"] == 2 * pairs
    assert value["order"]["systems"][0] == "b1"
    text = _outcomes(files, *extra, "--explain").stdout
    assert f"{pairs} pairs × 2 outcomes" in text
    assert "A line by verdict" in text


def test_of_many_pairs_the_terminal_shows_some_and_paper_and_programs_all(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    random = np.random.default_rng(2)
    drawn = (1 / random.integers(1, 9, (20, 11))).tolist()
    rows = [",".join([f"q{at}", *map(repr, row)]) for at, row in enumerate(drawn)]
    table.write_text("\n".join([f"query,{','.join(f's{at}' for at in range(11))}", *rows]) + "\n")

    def run(*arguments: str) -> str:
        result = call("analyse", "outcomes", "--scores", table, *arguments)
        assert result.exit_code == 0
        return result.stdout

    assert run().count("no verdict") + run().count("strict") < 55
    assert "42 more rows are left out here" in run()
    for extra in ("--all", "--markdown", "--latex"):
        assert "left out" not in run(extra)
    assert len(json.loads(run("--json"))["pairs"]) == 55


def test_outcomes_takes_a_table_of_reciprocal_ranks_and_no_other(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text(f"query,a,b\nx,1,0.5\ny,0,{1 / 3!r}\nz,0.25,1\n")
    asked = ("analyse", "outcomes", "--scores", table)
    assert answer(*asked)["pairs"][0]["both"] == 2
    table.write_text("query,a,b\nx,1,0.5\ny,0,0.33\n")
    assert "not-reciprocal-ranks" in refused(*asked)


def test_outcomes_refuses_a_measure_that_has_no_ranks_and_a_depth_beyond_it(files: Path) -> None:
    assert (
        "a reciprocal rank, from which outcomes are counted"
        in _outcomes(files, "-m", "nDCG@10").stderr
    )
    assert "20, deeper than RR@10 looks" in _outcomes(files, "-m", "RR@10", "-k", "20").stderr
    assert "no-run" in _outcomes(files, "--baseline", "c").stderr


def test_charts_are_drawn(files: Path) -> None:
    for chart in (files / "curves.svg", files / "bars.svg"):
        run = _compare(files, "a1.run", "b1.run", "--chart", str(chart))
        if chart.name == "bars.svg":
            run = _outcomes(files, "--chart", str(chart))
        assert run.exit_code == 0
        text = chart.read_text()
        assert text.startswith("<svg")
        assert "a1" in text
