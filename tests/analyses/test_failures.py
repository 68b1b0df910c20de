"""Where does it fail? The queries on which two runs differ, and the files of the page."""

import json
import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.analyses.outcomes.failures import (
    Failures,
    QueryDifference,
    Side,
    compare_lists,
    data_files,
    page_folder,
    render_page,
)
from heldout.analyses.outcomes.failures_of_runs import check_single, list_failures
from heldout.errors import InputError, StoreError
from heldout.scoring.evaluate import evaluate
from heldout.scoring.first_ranks import MethodSide as Named
from heldout.scoring.measures import parse_measure
from heldout.scoring.sources import ComparedRuns, find_compared
from heldout.trec.memory import run_from_mapping
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import read_file
from heldout.trec.tops import read_rankings, see_through

Data = Callable[[str], Path]
Grades = Mapping[str, Mapping[str, int]]

QRELS: Grades = {
    "both": {"d1": 2, "d2": 1, "d9": 0},
    "a": {"d1": 1},
    "b": {"d1": 1, "d2": 0},
    "none": {"d7": 1},
}
A = {"both": "d1 d9 d3", "a": "d3 d1", "b": "d2 d3 d4 d1", "none": "d3 d4"}
B = {"both": "d4 d3 d2", "a": "d3 d4", "b": "d1 d2"}


def run_of(lists: Mapping[str, str]) -> bytes:
    return "".join(
        f"{query} Q0 {doc} {rank} {-rank} t\n"
        for query, docs in lists.items()
        for rank, doc in enumerate(docs.split(), 1)
    ).encode()


def side(name: str, run: bytes, qrels: Grades, measure: str, *, depth: int = 10) -> Side:
    rankings = read_rankings(BytesIO(run), path=name, depth=depth, documents=qrels)
    wanted = parse_measure(measure)
    scored = evaluate(see_through(rankings.positions, qrels), qrels, [wanted]).scores[wanted]
    scores = dict(zip(sorted(qrels), scored.values.tolist(), strict=True))
    return Side(name=name, rankings=rankings, scores=scores)


def compare(
    a: Mapping[str, str],
    b: Mapping[str, str],
    *,
    measure: str = "RR@10",
    k: int = 3,
    depth: int = 10,
) -> dict[str, QueryDifference]:
    first, second = (side("a", run_of(one), QRELS, measure, depth=depth) for one in (a, b))
    return {one.query: one for one in compare_lists(first, second, QRELS, k=k)}


def test_outcomes_scores_and_first_ranks() -> None:
    found = compare(A, B)
    assert {query: one.outcome for query, one in found.items()} == {
        "both": "both",
        "a": "A alone",
        "b": "B alone",
        "none": "neither",
    }
    assert {query: (one.a.score, one.b.score, one.gain) for query, one in found.items()} == {
        "both": (1.0, 1 / 3, -2 / 3),
        "a": (0.5, 0.0, -0.5),
        "b": (0.25, 1.0, 0.75),
        "none": (0.0, 0.0, 0.0),
    }
    # Deeper than k, a relevant document is not found, and keeps its rank among the places
    assert [(found["b"].a.first, found["b"].a.positions["d1"]), found["b"].b.first] == [(0, 4), 1]
    assert list(found) == ["both", "a", "none", "b"]


def test_where_lower_is_better_a_rise_is_a_loss() -> None:
    a, b = (side("a", run_of(one), QRELS, "Unjudged@2") for one in (A, B))
    lower = {one.query: one for one in compare_lists(a, b, QRELS, better="lower")}
    assert (lower["both"].difference, lower["both"].gain) == (1.0, -1.0)


def test_a_rank_elsewhere_is_known_of_judged_documents_and_of_whole_lists() -> None:
    found = compare(A, B, depth=1)["both"]
    assert found.a.documents == ("d1",)
    assert found.a.rank_of("d9", judged=True) == 2
    assert found.b.rank_of("d1", judged=True) == 0
    assert found.a.rank_of("d4", judged=False) is None
    assert compare(A, B)["both"].a.rank_of("d4", judged=False) == 0


def test_relevant_documents_that_a_list_lacks_come_by_grade_and_rank() -> None:
    missed = compare(A, B)["both"].missed
    assert [(one.document, one.grade, one.a, one.b) for one in missed] == [
        ("d1", 2, 1, 0),
        ("d2", 1, 0, 3),
    ]
    assert compare(A, A)["a"].missed == ()
    (gone,) = compare(A, B)["none"].missed
    assert (gone.document, gone.a, gone.b) == ("d7", 0, 0)


rankings = st.lists(st.sampled_from([f"d{n}" for n in range(1, 10)]), unique=True, min_size=1)


@given(rankings, rankings)
def test_two_sides_swapped_mirror_each_other(first: list[str], second: list[str]) -> None:
    a, b = {"both": " ".join(first)}, {"both": " ".join(second)}
    one, other = compare(a, b, measure="nDCG@5"), compare(b, a, measure="nDCG@5")
    mirrored = {"A alone": "B alone", "B alone": "A alone", "both": "both", "neither": "neither"}
    for query, found in one.items():
        assert found.gain == -other[query].gain
        assert mirrored[found.outcome] == other[query].outcome
        assert (found.a, found.b) == (other[query].b, other[query].a)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "a.run").write_bytes(run_of(A))
    (tmp_path / "b.run").write_bytes(run_of(B))
    rows = (f"{q} 0 {doc} {grade}\n" for q, docs in QRELS.items() for doc, grade in docs.items())
    (tmp_path / "qrels").write_text("".join(rows))
    (tmp_path / "docs.tsv").write_text("d1\tone <b>text</b> </script>\nd3\t" + "long " * 900 + "\n")
    return tmp_path


def failures(files: Path, **options: object) -> Failures:
    runs = find_compared(str(files / "a.run"), str(files / "b.run"))
    qrels = read_file(read_qrels, files / "qrels")
    return list_failures(runs, qrels, **options)  # type: ignore[arg-type]  # options of any kind


def test_files_give_the_same_and_texts_are_counted(files: Path) -> None:
    found = failures(files, measure="RR@10", documents=files / "docs.tsv", k=3)
    assert [one.query for one in found.queries] == ["both", "a", "none", "b"]
    assert (found.wins, found.losses, found.ties) == (1, 2, 1)
    assert found.outcomes == {"both": 1, "A alone": 1, "B alone": 1, "neither": 1}
    assert [found.mean_a, found.mean_b] == [0.4375, pytest.approx(1 / 3)]
    assert found.texts["d1"] == "one <b>text</b> </script>"
    assert (len(found.texts["d3"]), found.texts["d3"][-1]) == (2000, "…")
    # d2, d4, d7 and d9 are shown, and have no text
    assert found.missing_texts == 4
    assert found.answer == (
        "B is better on 1 query, worse on 2 and equal on 1. Mean RR@10: A 0.4375, B 0.3333."
    )


def test_it_is_a_table_a_document_and_a_few_lines(files: Path) -> None:
    found = failures(files, measure="RR@10", k=3, queries={"a": "<b>what</b>"})
    frame = found.to_polars()
    assert frame.columns[:5] == ["query", "text", "a", "b", "difference"]
    assert frame["first_b"].to_list() == [3, None, None, 1]
    assert frame.rows(named=True) == found.to_dict()["queries"]
    assert repr(found) == f"A a\nB b\n{found.answer}"
    html = found._repr_html_()
    assert "&lt;b&gt;what" in html
    assert html.count("<table") == 2


def test_runs_in_memory_give_what_their_files_give(files: Path) -> None:
    rows = {
        name: {
            query: {doc: -float(rank) for rank, doc in enumerate(docs.split())}
            for query, docs in lists.items()
        }
        for name, lists in (("a", A), ("b", B))
    }
    runs = {name: run_from_mapping(one, name=name) for name, one in rows.items()}
    sides = {name: Named(name=name, runs=(name,)) for name in runs}
    qrels = read_file(read_qrels, files / "qrels")
    found = list_failures(ComparedRuns(runs=runs, **sides), qrels, depth=2)
    assert found == failures(files, depth=2)


def test_the_measure_fits_the_labels_where_nobody_names_one(files: Path) -> None:
    assert (failures(files).measure, failures(files).chosen) == ("nDCG@10", True)
    (files / "qrels").write_text("a 0 d1 1\nb 0 d1 1\n")
    assert failures(files).measure == "RR@10"
    (files / "qrels").write_text("a 0 d1 2\nb 0 d1 2\n")
    assert failures(files, rel=2).measure == "RR(rel=2)@10"
    assert failures(files, measure="P@1").chosen is False


def test_a_depth_that_no_list_is_held_to_is_refused(files: Path) -> None:
    assert failures(files, measure="P@1").depth == 1
    assert failures(files, measure="P@1", depth=100).depth == 100
    for depth in (0, 101):
        with pytest.raises(ValueError, match=f"depth: {depth}"):
            failures(files, depth=depth)


def test_a_group_of_runs_is_refused_with_its_side(files: Path) -> None:
    (files / "c.run").write_bytes(run_of(B))
    with pytest.raises(InputError) as caught:
        check_single(find_compared(str(files / "a.run"), str(files / "[bc].run")))
    assert [(one.code, one.path) for one in caught.value.problems] == [("one-run", "B")]


CALL = re.compile(rb"heldout\.take\(\.\.\.(.*)\);\n", re.DOTALL)


def values_of(found: Failures) -> dict[int | str, object]:
    scripts = (CALL.fullmatch(content) for _, content in data_files(found))
    return {name: value for one in scripts if one for name, value in [json.loads(one[1])]}


def test_data_hold_no_markup_and_say_what_the_value_says(files: Path) -> None:
    found = failures(files, measure="RR@10", documents=str(files / "docs.tsv"))
    for name, content in data_files(found):
        assert name.startswith("page.") or not re.search(rb"[<>&]|\xe2\x80[\xa8\xa9]", content)
    values = values_of(found)
    listed, chunk = values["queries"], values[0]
    assert isinstance(listed, dict)
    assert isinstance(chunk, dict)
    assert listed["chunks"] == [0]
    assert [line[0] for line in listed["queries"]] == [one.query for one in found.queries]
    documents = chunk["documents"]
    assert ["d1", "one <b>text</b> </script>"] in documents
    for one, shown in zip(found.queries, chunk["queries"], strict=True):
        assert tuple(documents[n][0] for n, _, _ in shown["a"]) == one.a.documents
        assert [grade for _, grade, _ in shown["b"]] == [
            one.grades.get(doc) for doc in one.b.documents
        ]


def test_many_texts_make_many_chunks_and_every_query_is_in_one(tmp_path: Path) -> None:
    queries = [f"q{n}" for n in range(60)]
    for name, shift in (("a", 0), ("b", 7)):
        lists = {q: " ".join(f"d{n * 20 + (j + shift) % 20}" for j in range(10))
                 for n, q in enumerate(queries)}  # fmt: skip
        (tmp_path / f"{name}.run").write_bytes(run_of(lists))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{n * 20} 1\n" for n, q in enumerate(queries)))
    texts = {f"d{n}": f"text {n} " * 150 for n in range(1200)}
    found = failures(tmp_path, documents=texts)
    values = values_of(found)
    listed = values["queries"]
    assert isinstance(listed, dict)
    starts = listed["chunks"]
    assert len(starts) > 3
    sizes = [len(values[n]["queries"]) for n in range(len(starts))]  # type: ignore[index]  # JSON
    assert [sum(sizes[:n]) for n in range(len(sizes))] == starts
    assert sum(sizes) == 60


def test_of_6980_queries_the_page_and_its_list_weigh_less_than_a_megabyte(tmp_path: Path) -> None:
    queries = {f"{1_000_000 + n}": f"{n} what is the answer to this question" for n in range(6980)}
    for name, docs in (("a", "d1 d2 d3"), ("b", "d2 d3 d1")):
        (tmp_path / f"{name}.run").write_bytes(run_of(dict.fromkeys(queries, docs)))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d{n % 4} 1\n" for n, q in enumerate(queries)))
    found = failures(tmp_path, queries=queries)
    first = {name: content for name, content in data_files(found) if "chunk" not in name}
    assert sorted(first) == ["page.css", "page.js", "queries.js"]
    assert sum(map(len, first.values())) + len(render_page(found, data="x")) < 1_000_000


def test_a_page_takes_the_place_of_its_own_earlier_one_alone(files: Path) -> None:
    found, page = failures(files), files / "out.html"
    folder = found.write(page)
    assert folder == page_folder(page) == files / "out_files"
    (before,) = folder.iterdir()
    failures(files, measure="P@1").write(page)
    (after,) = folder.iterdir()
    assert before != after
    assert f"out_files/{after.name}/page.js" in page.read_text()


@pytest.mark.parametrize("name", ["out.html", "out_files", "out_files/mine.txt"])
def test_what_is_not_a_page_stays(files: Path, name: str) -> None:
    path = files / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(StoreError, match="another name"):
        failures(files).write(files / "out.html")
    assert path.read_text() == "mine"
    assert (files / "out.html").exists() == (name == "out.html")


def test_a_link_in_the_folder_is_not_followed(files: Path) -> None:
    other = files / "other"
    (other / "0123456789abcdef").mkdir(parents=True)
    (files / "out_files").symlink_to(other)
    with pytest.raises(StoreError):
        failures(files).write(files / "out.html")
    assert [one.name for one in other.iterdir()] == ["0123456789abcdef"]


def test_a_write_that_fails_leaves_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("heldout.files.durable.write_whole", full)
    with pytest.raises(OSError, match="No space"):
        failures(files).write(files / "out.html")
    assert not (files / "out.html").exists()
    assert not (files / "out_files").exists()


def test_a_page_is_named_as_one(files: Path) -> None:
    with pytest.raises(InputError) as caught:
        failures(files).write(files / "out.svg")
    assert [one.code for one in caught.value.problems] == ["page-name"]


def test_names_and_texts_are_escaped_in_the_page(files: Path) -> None:
    hostile = {"both": "</title><script>alert(1)</script>", "a": "\u202egnp.exe"}
    text = render_page(failures(files, queries=hostile), data="x").decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text


@pytest.mark.real
def test_of_two_runs_of_dl_2021_it_says_what_compare_says(data: Data) -> None:
    folder = data("trec-dl-2021-passage")
    runs = find_compared(*(str(folder / "runs" / f"{name}.gz") for name in ("p_bm25", "NLE_P_v1")))
    found = list_failures(runs, read_file(read_qrels, folder / "qrels.dl21-passage.txt.gz"))
    assert (found.wins, found.losses, found.ties, found.measure) == (48, 4, 1, "nDCG@10")
    assert found.outcomes["both"] == 53
    official = {}
    for line in (folder / "ndcg_cut_10-per-topic.csv").read_text().splitlines()[1:]:
        run, topic, score = line.split(",")
        official[run, topic] = float(score)
    known = [one for one in found.queries if ("p_bm25", one.query) in official]
    assert len(known) == 53
    for one in known:
        assert one.a.score == pytest.approx(official["p_bm25", one.query], abs=5.1e-5)
        assert one.b.score == pytest.approx(official["NLE_P_v1", one.query], abs=5.1e-5)
