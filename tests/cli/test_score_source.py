"""Where an analysis gets its scores: the same table from any source, and what is refused."""

import gzip
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import calling
from heldout.cli.analyses.sources import Source, load_measures, load_scores
from heldout.cli.options import command
from heldout.cli.printing import reported_errors
from heldout.errors import InputError


def write_run(path: Path, ranks: dict[str, int]) -> str:
    """A run that has each query's relevant document at a rank."""
    lines = [
        f"{query} Q0 {'good' if place == rank else f'other{place}'} {place} {9 - place} tag\n"
        for query, rank in ranks.items()
        for place in range(1, 6)
    ]
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "b.run", {"q1": 2, "q2": 4})
    write_run(tmp_path / "a.run.gz", {"q1": 1, "q2": 2})
    write_run(tmp_path / "c.run", {"q1": 1})
    (tmp_path / "qrels").write_text("q1 0 good 1\nq2 0 good 1\nq2 0 other1 0\n")
    (tmp_path / "scores.csv").write_text("query,a,b,c\nq1,1,0.5,1\nq2,0.5,0.25,0\n")
    return tmp_path


def source(folder: Path, *patterns: str, measure: str | None = "RR@10") -> Source:
    runs = tuple(str(folder / pattern) for pattern in patterns)
    return Source(runs=runs, qrels=str(folder / "qrels"), measure=measure)


def refused(wanted: Source) -> dict[str, str]:
    """Code -> what was found."""
    with pytest.raises(InputError) as error:
        load_scores(wanted)
    return {problem.code: problem.found for problem in error.value.problems}


def test_runs_and_a_table_of_their_scores_are_the_same(folder: Path) -> None:
    of_runs = load_scores(source(folder, "*.run*"))
    of_table = load_scores(Source(table=str(folder / "scores.csv")))

    assert of_runs.table.systems == of_table.table.systems == ("a", "b", "c")
    assert of_runs.table.values.tolist() == of_table.table.values.tolist()
    assert of_runs.table.digest == of_table.table.digest
    assert (of_runs.measure, of_table.measure) == ("RR@10", "")


def test_a_query_that_a_run_does_not_answer_counts_0_and_is_told(folder: Path) -> None:
    scores = load_scores(source(folder, "*.run*"))

    assert scores.table.complete
    assert scores.table.values[2].tolist() == [1.0, 0.0]
    assert ("", "1 run did not answer all; unanswered ones count 0") in scores.facts


def test_a_file_that_several_patterns_name_is_read_once(folder: Path) -> None:
    wanted = source(folder, "b.run", "*.run", "a.run.gz")

    assert load_scores(wanted).table.systems == ("b", "c", "a")


def test_a_name_with_brackets_is_a_path_where_there_is_such_a_file(folder: Path) -> None:
    write_run(folder / "x[1].run", {"q1": 1, "q2": 1})

    assert load_scores(source(folder, "x[1].run", "b.run")).table.systems == ("x[1]", "b")


def test_several_measures_are_read_in_the_order_they_are_named(folder: Path) -> None:
    found = load_measures(source(folder, "*.run*"), ["P@5", "RR@10"])

    assert list(found) == ["P@5", "RR@10"]
    assert found["P@5"].table.values.tolist() == [[0.2, 0.2], [0.2, 0.2], [0.2, 0.0]]
    assert found["RR@10"].better == "higher"


def test_runs_with_one_name_go_by_their_paths_below_the_folder_of_all(folder: Path) -> None:
    (folder / "other").mkdir()
    write_run(folder / "other" / "b.run", {"q1": 1})

    found = load_scores(source(folder, "*.run", "other/*"))
    assert found.table.systems == ("b.run", "c.run", "other/b.run")
    assert found.table.values[2].tolist() == [1.0, 0.0]


def test_one_file_under_two_spellings_is_no_second_system(folder: Path) -> None:
    (folder / "other").mkdir()
    found = refused(source(folder, "b.run", "other/../b.run"))

    assert found == {"repeated-system": f"the same file as {folder / 'b.run'}"}


def test_a_pattern_without_files_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # what is named is cut where it is long
    wanted = Source(runs=("b.run", "nothing*.run"), qrels="qrels", measure="RR@10")
    assert refused(wanted) == {"no-run": 'no file for "nothing*.run"'}


def test_a_missing_score_is_not_0(folder: Path) -> None:
    path = folder / "lacking.csv"
    path.write_text("a,b,c,d,e\n1,,,,\n0.5,1,,1,\n")

    found = refused(Source(table=str(path)))
    assert found == {"missing-scores": "no score for some queries: b (1), c (2), d (1) and 1 more"}


def test_a_run_with_errors_stops_the_analysis_with_its_line(folder: Path) -> None:
    (folder / "broken.run").write_text("q1 Q0 d1 1 nan tag\n")

    with pytest.raises(InputError) as error:
        load_scores(source(folder, "*.run"))

    assert {(p.path, p.line) for p in error.value.problems} == {(str(folder / "broken.run"), 1)}


@command
@reported_errors()
def loading(source: Source) -> None:
    """Stands for any analysis."""
    click.echo(",".join(load_scores(source).table.systems))


def call(*arguments: object) -> Result:
    return CliRunner().invoke(loading, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which scores?"),
        (["--runs", "b.run", "--qrels", "qrels"], "which measure?"),
        (["--runs", "b.run", "-m", "RR"], "which judgments?"),
        (["--scores", "scores.csv", "--qrels", "qrels"], "leave --runs and --qrels away"),
        (["--board", ".", "--scores", "scores.csv"], "--board has scores and measure already"),
        (["--runs", "b.run", "--qrels", "none", "-m", "RR"], "none"),
        (["--scores", "none.csv"], "none.csv"),
        (["--runs", "b.run", "--qrels", "qrels", "-m", "nonsense"], "nonsense"),
        (["--board", "."], "board"),
    ],
    ids=["nothing", "no-measure", "no-qrels", "both", "all", "qrels", "table", "measure", "board"],
)
def test_what_is_missing_or_too_much_is_said_without_a_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(folder)
    result = call(*arguments)

    assert result.exit_code == 2
    assert words in result.output
    assert isinstance(result.exception, SystemExit)


def test_hostile_names_in_a_table_reach_no_terminal_as_they_are(folder: Path) -> None:
    path = folder / "hostile.csv"
    path.write_text("a\x1b[2J,b\n,1\n")
    result = call("--scores", path)

    assert result.exit_code == 2
    assert "\x1b" not in result.output


def test_bytes_that_are_no_number_are_refused_with_their_place(folder: Path) -> None:
    path = folder / "latin.csv"
    path.write_bytes(b"a,b\n1,0.5\n" + b"\xff\xfe,1\n")
    result = call("--scores", path)

    assert result.exit_code == 2
    assert "latin.csv" in result.output


def test_the_order_of_documents_is_told_on_the_terminal_and_in_json(folder: Path) -> None:
    given = ["stability", "--runs", str(folder / "*.run*"), "--qrels", str(folder / "qrels")]
    given += ["-m", "RR@10", "--flips", "99"]

    told = calling.call("analyse", *given, "--order", "trec9").output
    assert "order     trec9: as trec, with scores rounded to float32" in told
    assert calling.answer("analyse", *given)["orders"] == ["trec"]


def test_what_all_runs_have_wrong_is_said_a_few_times_and_counted(folder: Path) -> None:
    (folder / "other").write_text("x1 0 good 1\n")
    runs = [write_run(folder / f"r{n}.run", {"q1": 1}) for n in range(20)]
    one, many = (
        calling.call(
            *("analyse", "stability", *(f"--runs={run}" for run in some)),
            *(f"--qrels={folder / 'other'}", "-mP@1"),
        )
        for some in (runs[:1], runs)
    )

    assert one.output.count("no-common-query") == 1
    assert many.output.count("found  ") == 3
    assert "and 17 more of no-common-query" in many.output
