"""Ways to a wrong figure that nothing would show: each is refused, or said beside the figure."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from calling import answer, call, refused


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in; nothing is stored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "off")
    return tmp_path


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


class TestScoresThatCollide:
    """`trec_eval` up to 9 compares float32, and most official tables were made with it."""

    def evaluate(self, *options: str) -> Result:
        write("qrels", "1 0 b 1", "2 0 b 1")
        write("a.run", "1 Q0 a 1 1.000000001 t", "1 Q0 b 2 1 t", "2 Q0 a 1 2 t", "2 Q0 b 2 1 t")
        return call("evaluate", "a.run", "--qrels", "qrels", "-m", "RR", *options)

    def test_one_line_names_the_queries_and_the_other_order(self) -> None:
        found = self.evaluate()

        assert "0.5000" in found.stdout
        assert "note   scores-collide  a.run" in found.stderr
        assert "scores of 1 query that are equal as float32" in found.stderr
        assert "--order trec9" in found.stderr

    def test_under_trec9_there_is_nothing_to_say(self) -> None:
        found = self.evaluate("--order", "trec9")

        assert "0.7500" in found.stdout
        assert "scores-collide" not in found.stderr

    def test_json_has_it_too(self) -> None:
        (run,) = json.loads(self.evaluate("--json").stdout)["runs"]
        assert [note["code"] for note in run["notes"]] == ["scores-collide"]


class TestNothingButZeros:
    """Grades in another column, or ids of another form, give zeros that look like a result."""

    @pytest.fixture(autouse=True)
    def files(self) -> None:
        write("a.run", *(f"{query} Q0 a 1 2 t" for query in range(1, 31)))
        write("b.run", *(f"{query} Q0 b 1 2 t" for query in range(1, 31)))
        write("zeros", *(f"{query} 0 {doc} 0" for query in range(1, 31) for doc in "ab"))

    @pytest.mark.parametrize(
        "command",
        [
            ("compare", "a.run", "b.run"),
            ("analyse", "stability", "--runs", "[ab].run", "-m", "nDCG@10"),
            ("analyse", "reliability", "--runs", "[ab].run", "-m", "nDCG@10"),
            ("analyse", "outcomes", "--runs", "[ab].run"),
            ("analyse", "views", "--runs", "[ab].run", "-m", "nDCG@10", "-m", "AP"),
        ],
        ids=["compare", "stability", "reliability", "outcomes", "views"],
    )
    def test_equal_zeros_have_no_leader(self, command: tuple[str, ...]) -> None:
        assert "all-zero" in refused(*command, "--qrels", "zeros")

    def test_evaluate_says_that_all_is_0(self) -> None:
        found = call("evaluate", "a.run", "b.run", "--qrels", "zeros", "-m", "nDCG@10")

        assert found.exit_code == 0
        assert "note   all-zero  zeros" in found.stderr
        assert "note   nothing-relevant  zeros" in found.stderr

    def test_one_score_above_0_is_a_result(self) -> None:
        write("qrels", "1 0 a 1", "1 0 b 0", "2 0 b 0")
        assert (
            "all-zero"
            not in call("evaluate", "b.run", "a.run", "--qrels", "qrels", "-m", "RR").stderr
        )


def test_judgments_for_a_run() -> None:
    write("qrels", *(f"{query} 0 a 1" for query in range(1, 31)))
    found = call("evaluate", "qrels", "--qrels", "qrels", "-m", "RR")

    assert found.stderr.count("error ") == 1
    assert "looks-like-qrels  qrels:1" in found.stderr


class TestTablesOfScores:
    """A packed table is read as a packed run is; another encoding is named, and no bad number."""

    TEXT = "query,a,b\n" + "".join(f"{query},{query % 3},{query % 2}\n" for query in range(1, 41))

    def stability(self, name: str) -> Result:
        return call("analyse", "stability", "--scores", name, "--flips", "99", "--json")

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
    def test_a_packed_table_says_what_the_plain_one_says(
        self, pack: Callable[[bytes], bytes]
    ) -> None:
        Path("plain.csv").write_bytes(self.TEXT.encode())
        Path("packed.csv").write_bytes(pack(self.TEXT.encode()))

        packed, plain = self.stability("packed.csv"), self.stability("plain.csv")
        assert (packed.exit_code, packed.stdout) == (0, plain.stdout)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
    def test_utf_16_is_named(self, encoding: str) -> None:
        Path("table.csv").write_bytes(self.TEXT.encode(encoding))
        found = self.stability("table.csv")

        assert found.exit_code == 2
        assert "nul-byte  table.csv:1" in found.stderr
        assert "UTF-16" in found.stderr
        assert "scores-number" not in found.stderr


class TestManyRuns:
    """The table stays in sight: what many runs have in common is said once."""

    def test_a_note_of_many_runs_is_one_note(self) -> None:
        write("qrels", "1 0 a 1", "2 0 a 1")
        names = [
            write(f"r{n}.run", "1 Q0 a 0 2 t", "1 Q0 b 1 1 t", "3 Q0 a 1 1 t", "4 Q0 a 1 1 t")
            for n in range(12)
        ]
        found = call("evaluate", *names, "--qrels", "qrels", "-m", "RR", "-m", "FirstRel@1")

        lines = found.stderr.splitlines()
        assert len([line for line in lines if "12 runs: " in line]) == len(lines) - 2 == 2
        assert (
            "12 runs: rank-zero (the rank column is not used: scores decide): r0, r1, r2 and 9 more"
            in lines[1]
        )
        assert "12 runs: few-common-queries" in lines[2]
        assert found.stdout.count("without judgments ignored") == 3
        assert "and 9 more like the last" in found.stdout

    def test_queries_are_in_the_order_of_their_numbers(self) -> None:
        write("qrels", *(f"{query} 0 a 1" for query in range(1, 13)))
        write("a.run", *(f"{query} Q0 a 1 1 t" for query in range(1, 13)))
        asked = ("evaluate", "a.run", "--qrels", "qrels", "-m", "RR", "--per-query")

        (run,) = answer(*asked)["runs"]
        assert list(run["per_query"]) == [str(query) for query in range(1, 13)]
        shown = [line.split()[0] for line in call(*asked).stdout.splitlines() if "1.0000" in line]
        assert shown == ["a", *map(str, range(1, 13))]

    def test_a_name_of_a_catalogue_is_no_run(self) -> None:
        write("qrels", "1 0 a 1")
        assert "a name of ir_datasets stands for no run" in refused(
            "evaluate", "irds:vaswani", "--qrels", "qrels", "-m", "RR"
        )


class TestColumnsOfQueryIds:
    """A column of ids counted as the system with the highest scores; a row of means as a query."""

    def stability(self, *lines: str) -> Result:
        write("table.csv", *lines)
        return call("analyse", "stability", "--scores", "table.csv", "--flips", "99", "--json")

    @pytest.mark.parametrize("head", ["qid", "Query ID", "topic", "query_id", "TOPIC"])
    def test_is_known_by_the_usual_names(self, head: str) -> None:
        found = self.stability(f"{head},a,b", "401,0.1,0.2", "402,0.5,0.3", "403,0.5,0.1")
        assert set(json.loads(found.stdout)["systems"]) == {"a", "b"}

    def test_under_another_name_is_refused(self) -> None:
        found = self.stability("number,a,b", "401,0.1,0.2", "402,0.5,0.3")
        assert found.exit_code == 2
        assert "'number' over 401, 402" in found.stderr
        assert "head the first column `query`" in found.stderr

    def test_ranks_and_scores_of_0_and_1_are_no_ids(self) -> None:
        assert self.stability("a,b", "1,2", "3,1", "4,9").exit_code == 0
        assert self.stability("a,b", "0,0.5", "1,0.5", "1,1").exit_code == 0

    @pytest.mark.parametrize("name", ["all", "Mean", "average"])
    def test_a_row_of_means_is_no_query(self, name: str) -> None:
        found = self.stability("query,a,b", "1,0.1,0.2", "2,0.5,0.3", f"{name},0.3,0.25")
        assert (found.exit_code, found.stdout) == (2, "")
        assert "scores-summary  table.csv:4" in found.stderr

    def test_a_query_twice_is_found_behind_blanks(self) -> None:
        found = self.stability("query,a,b", "1,0.1,0.2", "1 ,0.5,0.3")
        assert "scores-repeated-query  table.csv:3" in found.stderr

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_other_separators_are_named(self, separator: str) -> None:
        found = self.stability(
            *(line.replace(",", separator) for line in ("query,a", "1,2", "2,3"))
        )
        assert "scores-syntax  table.csv:1" in found.stderr
        assert "commas between columns" in found.stderr


def test_two_texts_of_one_query_are_refused() -> None:
    write("qrels", *(f"{query} 0 a 1" for query in range(1, 31)))
    write("a.run", *(f"{query} Q0 a 1 2 t" for query in range(1, 31)))
    write("one.tsv", *(f"{query}\twhat is it" for query in range(1, 31)))
    write("other.tsv", *(f"{query}\thow to do it" for query in range(1, 31)))
    asked = ("evaluate", "a.run", "--qrels", "qrels", "-m", "RR", "--facet", "question")

    assert call(*asked, "--queries", "one.tsv", "--queries", "one.tsv").exit_code == 0
    assert "changed-text  other.tsv" in refused(
        *asked, "--queries", "one.tsv", "--queries", "other.tsv"
    )


def test_a_table_of_one_query_is_read() -> None:
    write("table.csv", "a,b", "1,0.5")
    assert "IndexError" not in call("analyse", "stability", "--scores", "table.csv").output


class TestScoresThatRise:
    """Distances, or rank and score in each other's column, turn a list upside down."""

    @pytest.fixture(autouse=True)
    def files(self) -> None:
        write("qrels", "1 0 a 1", "2 0 a 1")
        write("queries", "1\tone", "2\ttwo")
        rows = [f"{query} Q0 {doc} {{}} {{}} t" for query in (1, 2) for doc in "abc"]
        places = [1, 2, 3, 1, 2, 3]
        write("distances.run", *(r.format(at, at / 10) for r, at in zip(rows, places, strict=True)))
        write("swapped.run", *(r.format(100 - at, at) for r, at in zip(rows, places, strict=True)))
        write("good.run", *(r.format(at, -at / 10) for r, at in zip(rows, places, strict=True)))
        write("ties.run", *(r.format(at, 0) for r, at in zip(rows, places, strict=True)))

    def test_distances_are_named(self) -> None:
        found = call("evaluate", "distances.run", "--qrels", "qrels", "-m", "RR")
        assert "note   scores-rise  distances.run" in found.stderr
        assert "in 2 of 2 queries: these lists are read from their end" in found.stderr
        assert "scores-rise" in call("validate", "distances.run", "--queries", "queries").stdout

    @pytest.mark.parametrize("order", ["trec", "trec9"])
    @pytest.mark.parametrize("name", ["good.run", "ties.run"])
    def test_scores_that_fall_or_tie_are_not(self, name: str, order: str) -> None:
        asked = ("evaluate", name, "--qrels", "qrels", "-m", "RR", "--order", order)
        assert "scores-rise" not in call(*asked).stderr

    def test_ranks_in_the_column_of_scores_are_named(self) -> None:
        found = call("evaluate", "swapped.run", "--qrels", "qrels", "-m", "RR")
        assert "note   scores-rise  swapped.run" in found.stderr

    def test_by_rank_it_is_no_matter(self) -> None:
        asked = ("evaluate", "distances.run", "--qrels", "qrels", "-m", "RR", "--order", "msmarco")
        assert "scores-rise" not in call(*asked).stderr


def test_scores_beyond_the_range_of_their_measure_are_refused() -> None:
    percent = write("table.csv", "query,a,b", *(f"{q},{10 * q},{5 * q}" for q in range(1, 9)))
    asked = ("analyse", "stability", "--scores", percent, "--flips", "99")

    assert call(*asked).exit_code == 0
    assert call(*asked, "-m", "FirstRel").exit_code == 0
    found = call(*asked, "-m", "nDCG@10")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "scores from 5 to 80" in found.stderr


def test_judges_who_write_queries_in_two_ways_are_told() -> None:
    write("a.qrels", *(f"{query} 0 {doc} {doc > 'b':d}" for query in range(1, 12) for doc in "abc"))
    write(
        "b.qrels", *(f"{query:02} 0 {doc} {doc > 'a':d}" for query in range(1, 12) for doc in "abc")
    )
    found = call("analyse", "agreement", "--qrels", "a.qrels", "--qrels", "b.qrels")

    assert found.exit_code == 0
    assert "note   other-spelling  b" in found.stderr
    assert '9 differ only in leading zeros, as "01" from "1"' in found.stderr
