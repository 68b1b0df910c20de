"""What `heldout evaluate` prints: names people type, lines of trec_eval, CSV, sorted runs."""

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heldout.cli.program import main

QRELS = ("1 0 a 1", "1 0 b 0", "2 0 a 2", "10 0 c 1")
GOOD = ("1 Q0 a 1 2 t", "1 Q0 b 2 1 t", "2 Q0 a 1 1 t", "10 Q0 c 1 1 t")
FAIR = ("1 Q0 b 1 2 t", "1 Q0 a 2 1 t", "2 Q0 x 1 1 t", "10 Q0 c 1 1 t")
WORST = ("1 Q0 x 1 1 t", "2 Q0 x 1 1 t", "10 Q0 x 1 1 t")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs and their judgments."""
    pytest.importorskip("ir_measures")
    pytest.importorskip("pytrec_eval")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "off")
    for name, lines in (("qrels", QRELS), ("worst", WORST), ("good", GOOD), ("fair", FAIR)):
        suffix = "" if name == "qrels" else ".run"
        Path(f"{name}{suffix}").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


RUNS = ("worst.run", "good.run", "fair.run")


def evaluate(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["evaluate", *arguments, "--qrels", "qrels"])


def test_the_heading_says_what_was_meant() -> None:
    found = evaluate("good.run", "-m", "map", "-m", "ndcg_cut.5,10", "-m", "mrr@10", "-m", "AP")
    heading = found.stdout.splitlines()[0].split()
    assert heading == ["run", "AP", "nDCG@5", "nDCG@10", "RR@10", "unanswered"]
    asked = json.loads(evaluate("good.run", "-m", "map", "--json").stdout)
    meant = json.loads(evaluate("good.run", "-m", "AP", "--json").stdout)
    assert asked == meant


def test_who_computed_it_stands_below_and_counts_are_sums() -> None:
    found = evaluate("good.run", "-m", "RR", "-m", "Rprec", "-m", "num_ret", "-m", "gm_map")
    assert found.stdout.splitlines()[1].split() == ["good", "1.0000", "1.0000", "4", "1.0000", "0"]
    assert "computed  by ir_measures 0." in found.stdout
    assert "order of documents: Rprec, NumRet" in found.stdout
    assert "sum over the queries, and no mean: NumRet" in found.stdout
    assert "geometric mean over the queries, and no mean: gm_map" in found.stdout
    document = json.loads(evaluate("good.run", "-m", "RR", "-m", "Rprec", "--json").stdout)
    assert list(document["computed_by"]) == ["Rprec"]
    assert document["computed_by"]["Rprec"].startswith("ir_measures ")
    assert "computed_by" not in json.loads(evaluate("good.run", "-m", "RR", "--json").stdout)


def test_lines_of_trec_eval() -> None:
    found = evaluate("fair.run", "-m", "map", "-m", "P.1", "-m", "nDCG@10", "-m", "num_q", "-q")
    assert found.stdout.splitlines() == [
        "map                   \t1\t0.5000",
        "P_1                   \t1\t0.0000",
        "nDCG@10               \t1\t0.6309",
        "map                   \t2\t0.0000",
        "P_1                   \t2\t0.0000",
        "nDCG@10               \t2\t0.0000",
        "map                   \t10\t1.0000",
        "P_1                   \t10\t1.0000",
        "nDCG@10               \t10\t1.0000",
        "map                   \tall\t0.5000",
        "P_1                   \tall\t0.3333",
        "nDCG@10               \tall\t0.5436",
        "num_q                 \tall\t3",
    ]


def test_lines_of_several_runs_say_whose_they_are() -> None:
    lines = evaluate(*RUNS, "-m", "recip_rank", "-q", "--sort", "mrr").stdout.splitlines()
    assert lines[3:5] == [
        "runid                 \tall\tgood",
        "recip_rank            \tall\t1.0000",
    ]
    assert [line.split("\t")[2] for line in lines if line.startswith("runid")] == [
        *("good", "fair", "worst")
    ]


def test_csv_has_full_precision() -> None:
    found = evaluate(*RUNS, "-m", "nDCG@10", "-m", "FirstRel", "--csv")
    rows = list(csv.reader(found.stdout.splitlines()))
    assert rows[0] == ["run", "nDCG@10", "FirstRel"]
    assert [row[0] for row in rows[1:]] == ["worst", "good", "fair"]
    assert rows[1] == ["worst", "0.0", ""]  # undefined
    (query,) = [
        row
        for row in csv.DictReader(
            evaluate(*RUNS, "-m", "nDCG@10", "--csv", "--per-query").stdout.splitlines()
        )
        if (row["run"], row["query"]) == ("fair", "1")
    ]
    document = json.loads(evaluate("fair.run", "-m", "nDCG@10", "--per-query", "--json").stdout)
    assert float(query["nDCG@10"]) == document["runs"][0]["per_query"]["1"]["nDCG@10"]


DECIMALS: dict[str, dict[str, float]] = {
    "1": {"a": 0.3333333333333333, "b": 0.05},
    "2": {"a": 1, "x": 2.5},
    "10": {"c": 0},
}


def test_decimal_grades_are_gains_of_ndcg(folder: Path) -> None:
    lines = (f"{q} 0 {d} {g}\n" for q, grades in DECIMALS.items() for d, g in grades.items())
    (folder / "qrels").write_text("".join(lines))
    asked = ("-m", "nDCG@1", "-m", "nDCG", "-m", "Unjudged@1", "-m", "nDCG(judged_only=True)")
    found = json.loads(evaluate("fair.run", *asked, "--json", "--per-query").stdout)
    gains = {"1": [0.05, 0.3333333333333333], "2": [2.5], "10": [0.0]}
    (run,) = found["runs"]
    for query, values in run["per_query"].items():
        ideal = sorted(DECIMALS[query].values(), reverse=True)
        for depth, measure in ((1, "nDCG@1"), (9, "nDCG")):
            dcg, best = (
                sum(gain / math.log2(at + 1) for at, gain in enumerate(each[:depth], 1))
                for each in (gains[query], ideal)
            )
            assert values[measure] == pytest.approx(dcg / best if best else 0, rel=1e-10)


@pytest.mark.parametrize(
    "measure",
    ["RR@10", "P(rel=2)@5", "nDCG(dcg='exp-log2')@5", "nDCG(gains={1:2})@5", "ERR@5", "Rprec"],
)
def test_a_measure_of_levels_refuses_decimal_grades_and_is_named(
    folder: Path, measure: str
) -> None:
    (folder / "qrels").write_text("1 0 a 0.5\n2 0 a 2.0\n10 0 c 1\n")
    found = evaluate("good.run", "-m", "nDCG@10", "-m", measure)
    assert found.exit_code == 2
    assert "grade-not-a-number  qrels:1" in found.stderr
    assert "a whole number, which " + measure.partition("(")[0].partition("@")[0] in found.stderr
    assert "nDCG" in found.stderr
    (folder / "qrels").write_text("1 0 a 1.0\n2 0 a 2.0\n10 0 c 1\n")
    assert evaluate("good.run", "-m", "nDCG@10", "-m", measure).exit_code == 0


def test_no_name_of_a_run_or_a_query_starts_a_formula_in_csv() -> None:
    Path("qrels").write_text("".join(f"{query} 0 a 1\n" for query in ("=1+1", "+1", "q")))
    for tag in ("=1+1", "@a"):
        lines = (f"{query} Q0 a 1 1 {tag}\n" for query in ("=1+1", "+1", "q"))
        Path(f"{tag}.run").write_text("".join(lines))
    found = evaluate("=1+1.run", "@a.run", "-m", "nDCG@10", "--csv", "--per-query")
    assert found.stdout.splitlines()[1:] == [
        *(f"'{run},{query},1.0" for run in ("=1+1", "@a") for query in ("'+1", "'=1+1", "q"))
    ]


def test_parquet_has_what_csv_has() -> None:
    polars = pytest.importorskip("polars")
    asked = ("-m", "nDCG@10", "-m", "FirstRel")
    for more in ((), ("--per-query",)):
        found = evaluate(*RUNS, *asked, *more, "--parquet", "out/scores.parquet")
        assert found.stdout == evaluate(*RUNS, *asked, *more).stdout
        table = polars.read_parquet("out/scores.parquet")
        rows = csv.reader(evaluate(*RUNS, *asked, *more, "--csv").stdout.splitlines())
        assert next(rows) == table.columns
        for line, row in zip(rows, table.iter_rows(), strict=True):
            assert line == ["" if cell is None else str(cell) for cell in row]


def test_without_a_library_for_parquet_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.files.frames.find_spec", lambda _: None)
    found = evaluate("absent.run", "-m", "RR", "--parquet", "scores.parquet")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "pip install 'heldout[frames]'" in found.stderr
    assert "absent.run" not in found.stderr


@pytest.mark.parametrize(
    ("measure", "order"),
    [("ndcg@10", ["good", "fair", "worst"]), ("FirstRel", ["good", "fair", "worst"])],
)
def test_sorted_the_best_first(measure: str, order: list[str]) -> None:
    asked = ("-m", "nDCG@10", "-m", "FirstRel", "--sort", measure)
    lines = evaluate(*RUNS, *asked).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == order
    document = json.loads(evaluate(*RUNS, *asked, "--json").stdout)
    assert [run["run"] for run in document["runs"]] == order


def test_nothing_is_sorted_by_what_is_not_computed() -> None:
    found = evaluate(*RUNS, "-m", "RR", "--sort", "nDCG@10")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "error  sort-measure  --sort" in found.stderr
    assert "add -m 'nDCG@10'" in found.stderr


@pytest.mark.parametrize("forms", [("-q", "--csv"), ("--csv", "--json"), ("-q", "--json")])
def test_one_form_at_a_time(forms: tuple[str, ...]) -> None:
    found = evaluate("good.run", "-m", "RR", *forms)
    assert found.exit_code == 2
    assert "exclude each other" in found.stderr


def test_lines_for_programs_have_no_subsets() -> None:
    found = evaluate("good.run", "-m", "RR", "-q", "--facet", "length", "--queries", "qrels")
    assert found.exit_code == 2
    assert "-q and --csv have no place for subsets" in found.stderr


def test_what_a_measure_needs_is_said_before_anything_is_read() -> None:
    found = evaluate("absent.run", "-m", "RR", "-m", "alpha_nDCG@10")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "absent.run" not in found.stderr
    assert "needs-subtopics" in found.stderr or "pip install" in found.stderr


def test_diversity_by_the_second_column_of_the_qrels() -> None:
    pytest.importorskip("pyndeval")
    Path("qrels").write_text("1 1 a 1\n1 2 b 1\n1 2 a 0\n2 1 a 1\n2 2 a 1\n10 1 c 1\n")
    found = evaluate("good.run", "-m", "alpha_nDCG@5", "-m", "P@1", "-m", "StRecall@1")
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[1].split()[1:4] == ["1.0000", "1.0000", "0.8333"]


def test_a_run_from_a_pipe_is_read_once() -> None:
    import os  # noqa: PLC0415 - of this test alone
    import threading  # noqa: PLC0415 - this test alone has a pipe

    os.mkfifo("pipe.run")
    text = Path("good.run").read_text()
    writer = threading.Thread(target=lambda: Path("pipe.run").write_text(text), daemon=True)
    writer.start()
    found = evaluate("pipe.run", "-m", "RR", "-m", "Rprec")
    assert found.exit_code == 2
    assert "error  read-once  pipe.run" in found.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("analyse", "stability", "--runs", "*.run", "-m", "Rprec", "--flips", "99"),
        ("analyse", "stability", "--runs", "*.run", "-m", "utility", "--flips", "99"),
        ("analyse", "views", "--runs", "*.run", "-m", "Rprec", "-m", "map"),
        ("compare", "good.run", "fair.run", "-m", "IPrec@0.1", "-m", "map"),
    ],
)
def test_every_answer_names_the_library_that_computed_a_measure(command: tuple[str, ...]) -> None:
    found = CliRunner().invoke(main, [*command, "--qrels", "qrels"])
    assert found.exit_code == 0, found.output
    assert " by ir_measures 0." in found.stdout or " by trec_eval in " in found.stdout
    if "views" not in command:
        document = CliRunner().invoke(main, [*command, "--qrels", "qrels", "--json"])
        assert "computed_by" in json.loads(document.stdout)


@pytest.mark.parametrize(
    "command",
    [
        ("redteam", "--runs", "good.run", "fair.run", "--qrels", "qrels"),
        ("analyse", "scales", "--length", "5"),
    ],
)
def test_what_computes_itself_refuses_measures_of_others(command: tuple[str, ...]) -> None:
    found = CliRunner().invoke(main, [*command, "-m", "Rprec"])
    assert found.exit_code == 2
    assert "measure-elsewhere" in found.stderr


def test_a_board_takes_no_measure_of_others_and_no_loose_name() -> None:
    Path("queries").write_text("1\ta\n2\tb\n10\tc\n")
    for written in ("Rprec", "ndcg@10", "map", "ndcg_cut_10", "official", "alpha_nDCG@10"):
        arguments = ["board", "new", "b", "--vault", "v", "--eval", "queries", "qrels"]
        found = CliRunner().invoke(main, [*arguments, "-m", written, "--stake", "known"])
        assert found.exit_code == 2, found.output
        assert f'views[0].measure = "{written}"' in found.stderr
        assert "expected  one of RR, nDCG, AP" in found.stderr
        assert not Path("b").exists()


@pytest.mark.real
@pytest.mark.parametrize("option", ["official", "all_trec"])
def test_equal_to_the_output_of_trec_eval(
    option: str, data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Each line, but those of names that are not here; trec_eval 10 on its own test files.

    Two names differ: pytrec_eval, and ir_measures with it, has the interpolation of trec_eval 9.
    """
    source = data("trec_eval-reference")
    run = tmp_path / "results.run"
    with gzip.open(source / "results.test.gz") as packed:
        run.write_bytes(packed.read())
    arguments = ["evaluate", str(run), "--qrels", str(source / "qrels.test.gz"), "-q"]
    found = CliRunner().invoke(main, [*arguments, "-m", option])
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    if option == "official":
        lines = [line for line in lines if "\tall\t" in line]
        expected = (source / "out.test").read_text().splitlines()
    else:
        absent = ("relstring", "rbp ", "rbp_resid")
        printed = (source / "out.test.aq").read_text().splitlines()
        expected = [line for line in printed if not line.startswith(absent)]
    # trec_eval's run has a tag of its own, ours the name of its file
    ours = [line.replace("all\tresults", "all\tSTANDARD") for line in lines]
    assert [line.split("\t")[:2] for line in ours] == [line.split("\t")[:2] for line in expected]
    other = {mine.split()[0] for mine, theirs in zip(ours, expected, strict=True) if mine != theirs}
    interpolated = {"iprec_at_recall_0.10", "iprec_at_recall_0.60", "11pt_avg"}
    assert other == {name for name in interpolated if option == "all_trec" or name[0] != "1"}
