"""`heldout compare -m`: the figures of `heldout evaluate` and scipy; runs of one file name."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import ttest_rel

import calling
from heldout.cli.program import analyse, main

answer = partial(calling.answer, "compare")
call = partial(calling.call, "compare")
refused = partial(calling.refused, "compare")

Data = Callable[[str], Path]
MEASURES = ("nDCG@10", "RR(rel=2)@10", "AP", "Unjudged@100")
QUERIES = 40


def means(*arguments: object) -> Any:
    return answer(*arguments)["means"]["differences"]


def ask(*measures: str) -> list[str]:
    return [word for measure in measures for word in ("-m", measure)]


def cut_run(path: Path, into: Path, *, queries: int) -> Path:
    """A real run that answers the first queries alone."""
    with gzip.open(path, "rt") as file:
        lines = file.readlines()
    kept = sorted({line.split()[0] for line in lines})[:queries]
    into.write_text("".join(line for line in lines if line.split()[0] in kept))
    return into


@pytest.fixture
def real(data: Data, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A run, one that leaves 19 of 53 queries out, and the judgments."""
    folder = data("trec-dl-2021-passage")
    runs = folder / "runs"
    short = cut_run(runs / "p_bm25.gz", tmp_path / "short.run", queries=34)
    return runs / "NLE_P_v1.gz", short, folder / "qrels.dl21-passage.txt.gz"


@pytest.mark.parametrize("order", ["trec", "trec9"])
def test_means_are_those_that_evaluate_prints_and_tests_those_of_scipy(
    real: tuple[Path, Path, Path], order: str
) -> None:
    a, b, qrels = real
    shared = ["--qrels", str(qrels), *ask(*MEASURES), "--order", order]
    found = {one["measure"]: one for one in means(a, b, *shared, "--level", 0.9)}
    told = CliRunner().invoke(main, ["evaluate", str(a), str(b), *shared, "--per-query", "--json"])
    runs = json.loads(told.stdout)["runs"]
    text = call(a, b, *shared).stdout

    assert list(found) == list(MEASURES)
    printed = {line.split()[0]: line.split() for line in text.splitlines() if line}
    for measure, one in found.items():
        assert [one["a"], one["b"]] == [run["scores"][measure] for run in runs]
        assert printed[measure][1:3] == [f"{run['scores'][measure]:.4f}" for run in runs]
        first, second = (
            np.array([scores[measure] for scores in run["per_query"].values()]) for run in runs
        )
        peer = ttest_rel(second, first)
        low, high = peer.confidence_interval(0.9)
        assert one["queries"] == len(first) == 53
        assert one["test"]["difference"] == pytest.approx((second - first).mean(), abs=1e-12)
        assert one["test"]["p"] == pytest.approx(peer.pvalue, rel=1e-8)
        assert (one["test"]["low"], one["test"]["high"]) == pytest.approx((low, high), abs=1e-12)
        won, lost = (int((sign * (second - first) > 1e-12).sum()) for sign in (1, -1))
        if measure == "Unjudged@100":
            won, lost = lost, won
        assert (one["wins"], one["losses"]) == (won, lost)


def test_a_measure_leaves_all_else_as_it_is(real: tuple[Path, Path, Path]) -> None:
    a, b, qrels = real
    plain = answer(a, b, "--qrels", qrels)
    asked = answer(a, b, "--qrels", qrels, *ask("nDCG@10"))
    assert plain.pop("answer") != asked.pop("answer")
    assert plain.pop("means")["differences"] == []
    assert len(asked.pop("means")["differences"]) == 1
    assert plain == asked


def test_the_measure_that_was_asked_for_leads(real: tuple[Path, Path, Path]) -> None:
    a, b, qrels = real
    lines = call(a, b, "--qrels", qrels, *ask("nDCG@10", "P@5"), "--all").stdout.splitlines()
    assert lines[0] == "NLE_P_v1 (A) is better than short (B) on nDCG@10 and P@5."
    assert lines[2].startswith("means     A is better on nDCG@10: B - A -")
    assert lines[3].startswith("          A is better on P@5: B - A -")
    first = [line for line in lines if line and not line.startswith(" ")]
    assert first.index("Means over all 53 queries") < first.index(
        "Queries with a relevant document among the first 100"
    )
    (said,) = (line for line in lines if "the verdict does not fit them" in line)
    assert "53 of 53 queries have several relevant documents" in said


def test_outcomes_that_do_not_fit_stand_behind_all(real: tuple[Path, Path, Path]) -> None:
    a, b, qrels = real
    shown = call(a, b, "--qrels", qrels, *ask("nDCG@10")).stdout
    assert "Means over all 53 queries" in shown
    assert "Queries with a relevant document" not in shown
    assert "--all: all rows and tables" in shown


@pytest.mark.slow
def test_of_all_runs_of_dl_2021_those_that_differ_from_bm25_on_ndcg_have_an_answer(
    data: Data,
) -> None:
    """30 of 44 differ at .05; the verdict on outcomes alone says `none` of all 44."""
    folder = data("trec-dl-2021-passage")
    runs = folder / "runs"
    said = {}
    for path in sorted(runs.glob("*.gz")):
        if path.name != "p_bm25.gz":
            asked = (runs / "p_bm25.gz", path, "--qrels", folder / "qrels.dl21-passage.txt.gz")
            said[path.name] = call(*asked, *ask("nDCG@10"), "-k", 10).stdout.split("\n", 1)[0]
    better = [name for name, line in said.items() if " is better than " in line]
    assert (len(said), len(better)) == (44, 30)
    assert said["NLE_P_v1.gz"] == (
        "NLE_P_v1 (B) is better than p_bm25 (A) on nDCG@10: B - A is +0.2888 (95% interval +0.2269 "
        "to +0.3508), p < .0001."
    )


@pytest.mark.parametrize("names", [["NLE_P_v1.gz"], ["p_unicoil0.gz", "p_tct0.gz"]])
def test_without_a_measure_labels_that_do_not_fit_are_named_first(
    data: Data, names: list[str]
) -> None:
    folder = data("trec-dl-2021-passage")
    runs, qrels = folder / "runs", folder / "qrels.dl21-passage.txt.gz"
    a = ",".join(str(runs / name) for name in names)
    lines = call(a, runs / "p_bm25.gz", "--qrels", qrels).stdout.splitlines()
    assert lines[0] == (
        "53 of 53 queries have several relevant documents, and a verdict sees the first one only: "
        "name a measure, such as -m nDCG@10, to see which run is better."
    )
    assert answer(a, runs / "p_bm25.gz", "--qrels", qrels)["fits_labels"] is False


def test_of_many_runs_too_labels_that_do_not_fit_are_named_first(data: Data) -> None:
    folder = data("trec-dl-2021-passage")
    asked = ["--runs", str(folder / "runs" / "p_*.gz"), "--baseline", "p_bm25", "--qrels"]
    result = CliRunner().invoke(
        analyse, ["outcomes", *asked, str(folder / "qrels.dl21-passage.txt.gz")]
    )
    lines = result.stdout.splitlines()
    assert lines[0].startswith("53 of 53 queries have several relevant documents, and a verdict ")
    assert "heldout compare -m nDCG@10" in lines[0]
    assert lines[2].startswith("pairs ")


@pytest.mark.usefixtures("files")
def test_labels_with_one_relevant_document_fit_the_verdict() -> None:
    assert call(*AB).stdout.startswith("No verdict between A and B: ")
    assert answer(*AB)["fits_labels"] is True
    text = call(*AB, *ask("nDCG@5")).stdout
    assert text.startswith("No significant difference between a/run.txt (A) and b/run.txt (B) on ")
    assert "not fit" not in text


def test_groups_of_real_runs_are_compared_across_them(data: Data) -> None:
    folder = data("trec-dl-2021-passage")
    runs = folder / "runs"
    group = f"{runs / 'p_unicoil0.gz'},{runs / 'p_tct0.gz'}"
    (one,) = means(
        group, runs / "p_bm25*.gz", "--qrels", folder / "qrels.dl21-passage.txt.gz", *ask("nDCG@10")
    )
    assert (one["flips_p"], one["test"]["test"]) == (None, "crossed-t")
    assert one["test"]["low"] < one["test"]["difference"] < one["test"]["high"]
    assert 0 < one["test"]["p"] == one["corrected"] < 1


def write_run(path: Path, ranks: list[int]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"q{query} Q0 {'good' if place == rank else f'other{place}'} {place} {9 - place} tag\n"
        for query, rank in enumerate(ranks)
        for place in range(1, 8)
    ]
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(7)
    for name in ("a/run.txt", "b/run.txt", "seeds/a0/run.txt", "seeds/a1/run.txt"):
        write_run(tmp_path / name, draw.integers(0, 8, QUERIES).tolist())
    for name in ("seeds/b0/run.txt", "seeds/b1/run.txt"):
        write_run(tmp_path / name, draw.integers(1, 3, QUERIES).tolist())
    (tmp_path / "qrels").write_text("".join(f"q{n} 0 good 1\n" for n in range(QUERIES)))
    (tmp_path / "kinds").write_text(
        "".join(f"q{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(QUERIES))
    )
    return tmp_path


AB = ("a/run.txt", "b/run.txt", "--qrels", "qrels")


def test_runs_of_one_file_name_are_compared_as_runs_of_two_are(files: Path) -> None:
    found = answer(*AB, *ask("nDCG@5"))
    assert (found["a"], found["b"]) == (
        {"name": "a/run.txt", "runs": ["a/run.txt"]},
        {"name": "b/run.txt", "runs": ["b/run.txt"]},
    )
    for name in ("a", "b"):
        (files / f"{name}.run").write_bytes((files / name / "run.txt").read_bytes())
    renamed = answer("a.run", "b.run", "--qrels", "qrels", *ask("nDCG@5"))
    for key in ("a", "b", "digest", "answer"):
        for part in ("success", "means"):
            found[part].pop(key, None)
            renamed[part].pop(key, None)
        assert found.pop(key) != renamed.pop(key)
    assert found == renamed
    assert "A         a/run.txt\nB         b/run.txt\n" in call(*AB).stdout


@pytest.mark.usefixtures("files")
def test_seeds_of_one_file_name_are_groups() -> None:
    found = answer("seeds/a*/run.txt", "seeds/b*/run.txt", "--qrels", "qrels", *ask("RR"))
    assert found["a"]["name"] == "seeds/a*/run.txt"
    assert found["a"]["runs"] == ["a0/run.txt", "a1/run.txt"]
    assert found["means"]["differences"][0]["test"]["p"] < 0.05
    assert found["means"]["differences"][0]["test"]["difference"] > 0


def test_groups_of_one_pattern_in_two_folders_are_told_apart(files: Path) -> None:
    for number, cell in enumerate(("seeds/a0", "seeds/a1", "seeds/b0", "seeds/b1")):
        folder = files / ("ours" if number < 2 else "theirs")
        folder.mkdir(exist_ok=True)
        (files / cell / "run.txt").rename(folder / f"x{number}.run")
    found = answer("ours/x*.run", "theirs/x*.run", "--qrels", "qrels")
    assert (found["a"]["name"], found["b"]["name"]) == ("ours/x*.run", "theirs/x*.run")
    assert found["a"]["runs"] == ["x0", "x1"]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("a/run.txt", "./a/../a/run.txt", "the same run as A and as B"),
        ("a/run.txt,b/run.txt", "seeds/b0/run.txt,b/run.txt", "the same run as A and as B"),
        ("a/run.txt,./a/run.txt", "b/run.txt", "the same run twice in A"),
        ("a/run.txt", "link.txt", "the same run as A and as B"),
    ],
    ids=["another spelling", "in both groups", "twice in one", "a link"],
)
def test_one_file_under_two_names_is_no_second_run(a: str, b: str, words: str) -> None:
    Path("link.txt").symlink_to("a/run.txt")
    result = refused(a, b, "--qrels", "qrels")
    assert "same-run" in result
    assert words in result


@pytest.mark.usefixtures("files")
def test_a_measure_asked_for_twice_counts_once() -> None:
    found = means(*AB, *ask("RR@5", "RR(rel=1)@5", "RR@100"))
    assert [one["measure"] for one in found] == ["RR@5", "RR@100"]


@pytest.mark.usefixtures("files")
def test_seed_and_correction_are_those_asked_for() -> None:
    asked = (*AB, *ask("nDCG@5", "P@1"))
    first, second, other = (means(*asked, "--seed", seed) for seed in (0, 0, 5))
    assert first == second
    assert first[0]["test"] == other[0]["test"]
    assert first[0]["flips_p"] != other[0]["flips_p"]
    assert first == means(*asked, "--intervals", "pointwise")
    for one in means(*asked, "--correction", "bonferroni"):
        assert one["corrected"] == min(1, 2 * one["test"]["p"])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("nonsense", "nonsense"),
        ("nDCG@0", "nDCG"),
        ("FirstRel", "missing-scores"),
        ("AWRF@5", "needs-groups"),
        ("__import__('os')", "-m"),
    ],
)
def test_a_measure_that_cannot_be_had_is_refused_by_name(measure: str, words: str) -> None:
    assert words in refused(*AB, "-m", measure)


def test_a_run_against_its_copy_has_no_p_and_says_why(files: Path) -> None:
    (files / "copy.run").write_bytes((files / "a" / "run.txt").read_bytes())
    (one,) = means("a/run.txt", "copy.run", "--qrels", "qrels", *ask("nDCG@5"))
    assert (one["test"]["difference"], one["ties"], one["test"]["p"]) == (0, QUERIES, None)
    assert one["flips_why"] == "every difference is 0"
    text = call("a/run.txt", "copy.run", "--qrels", "qrels", *ask("nDCG@5")).stdout
    assert "nDCG@5: every difference is 0" in text


@pytest.mark.usefixtures("files")
def test_folders_with_hostile_names_reach_no_terminal_as_they_are() -> None:
    names = [write_run(Path(f"{name}\x1b[2J") / "run.txt", [1, 2, 3] * 9) for name in "ab"]
    Path("q27").write_text("".join(f"q{n} 0 good 1\n" for n in range(27)))
    for form in ((), ("--markdown",), ("--latex",)):
        result = call(*names, "--qrels", "q27", *ask("P@1"), *form)
        assert result.exit_code == 0
        assert "\x1b" not in result.output
