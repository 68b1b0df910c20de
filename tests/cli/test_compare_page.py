"""`heldout compare --html`: a page beside the answer, which stays as it is."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import calling

call = partial(calling.call, "compare")
refused = partial(calling.refused, "compare")

Data = Callable[[str], Path]


def listed(page: Path) -> Any:
    """What the page's script gets as its list of queries."""
    (script,) = page.with_name(f"{page.stem}_files").glob("*/queries.js")
    found = re.fullmatch(r"heldout\.take\(\.\.\.(.*)\);\n", script.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])[1]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, docs in {"a": "d1 d2 d3", "b": "d3 d2 d1"}.items():
        rows = (
            f"q{n} Q0 {doc} {rank} {-rank} t\n"
            for n in range(30)
            for rank, doc in enumerate(docs.split(), 1)
        )
        Path(f"{name}.run").write_text("".join(rows))
    Path("qrels").write_text("".join(f"q{n} 0 d{1 + 2 * (n % 2)} 1\n" for n in range(30)))
    Path("queries.jsonl").write_text(
        "".join(f'{{"_id": "q{n}", "text": "what is {n}"}}\n' for n in range(30))
    )
    return ["a.run", "b.run", "--qrels", "qrels", "-m", "RR@10"]


def test_the_answer_stays_and_the_page_lies_beside_it(asked: list[str]) -> None:
    plain = call(*asked, "--json")
    result = call(*asked, "--json", "--queries", "queries.jsonl", "--html", "out.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == plain.stdout
    assert "page      out.html; its data are in out_files" in result.stderr
    data = listed(Path("out.html"))
    assert {line[1] for line in data["queries"]} == {f"what is {n}" for n in range(30)}
    assert [line[4] for line in data["queries"]] == [-0.666667] * 15 + [0.666667] * 15


def test_a_part_of_the_queries_has_a_page_of_that_part(asked: list[str]) -> None:
    Path("half.tsv").write_text("".join(f"q{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(30)))
    only = ["--only", "half.tsv=odd", "--least", "2"]
    result = call(*asked, *only, "--html", "out.html")
    assert result.exit_code == 0, result.output
    assert {line[0] for line in listed(Path("out.html"))["queries"]} == {
        f"q{n}" for n in range(1, 30, 2)
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--documents", "docs.tsv"], "--documents and --depth are for the page"),
        (["--depth", "5"], "--documents and --depth are for the page"),
        (["--html", "out.html", "--depth", "101"], "101 is not in the range"),
        (["--html", "out.txt"], "page-name"),
        (["--html", "qrels.html"], "give another name"),
        (["--html", "out.html", "--documents", "nowhere.tsv"], "unreadable-file"),
    ],
)
def test_what_makes_no_page_is_refused_and_nothing_is_written(
    asked: list[str], more: list[str], said: str
) -> None:
    Path("qrels.html").write_text("mine")
    before = sorted(Path().iterdir())
    assert said in " ".join(refused(*asked, *more).split())
    assert sorted(Path().iterdir()) == before
    assert Path("qrels.html").read_text() == "mine"


def test_a_group_of_seeds_has_no_page(asked: list[str]) -> None:
    Path("c.run").write_text(Path("a.run").read_text())
    result = call("a.run", "[bc].run", *asked[2:], "--html", "out.html")
    assert (result.exit_code, "one-run" in result.stderr) == (2, True)
    assert not Path("out.html").exists()


@pytest.mark.real
def test_on_real_runs_the_page_counts_what_the_answer_counts(data: Data, tmp_path: Path) -> None:
    folder = data("trec-dl-2021-passage")
    runs = (folder / "runs" / f"{name}.gz" for name in ("p_bm25", "NLE_P_v1"))
    page = tmp_path / "out.html"
    asked = [*runs, "--qrels", folder / "qrels.dl21-passage.txt.gz", "--rel", 3, "-k", 3]
    answer = json.loads(call(*asked, "-m", "nDCG@10", "--html", page, "--json").stdout)
    lines = listed(page)["queries"]
    found = [(bool(line[6]), bool(line[7])) for line in lines]
    assert [answer["a_only"], answer["b_only"], answer["both"], answer["neither"]] == [
        found.count(one) for one in ((True, False), (False, True), (True, True), (False, False))
    ]
    (mean,) = answer["means"]["differences"]
    gains = [line[5] for line in lines]
    assert [mean["wins"], mean["losses"]] == [gains.count(1), gains.count(-1)]
    assert sum(line[2] for line in lines) / 53 == pytest.approx(mean["a"], abs=1e-6)
    assert sum(line[3] for line in lines) / 53 == pytest.approx(mean["b"], abs=1e-6)
