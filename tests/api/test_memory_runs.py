"""A run in memory is the same run in a file: scores, notes and errors."""

import bz2
import gzip
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import heldout as ho
from heldout.cli.evaluation import evaluate, validate
from heldout.errors import InputError
from heldout.files.frames import code_texts, make_frame, open_frame
from heldout.scoring.measures import parse_measure
from heldout.scoring.score import Scored, find_reading

Row = tuple[str, str, float]
MEASURES = ["RR@10", "nDCG@10", "AP", "P@5", "R@100", "Bpref", "Unjudged@10"]
QRELS = {q: {f"d{n}": (n * k) % 3 for n in range(0, 12, 2)} for k, q in enumerate("abcdefg", 1)}


def as_dict(rows: Sequence[Row]) -> Any:
    found: dict[str, dict[str, float]] = {}
    for query, document, score in rows:
        found.setdefault(query, {})[document] = score
    return found


def columns(rows: Sequence[Row], names: Sequence[str] = ("qid", "docno", "score")) -> Any:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def as_object(rows: Sequence[Row]) -> Any:
    return pd.DataFrame(columns(rows)).astype({"qid": object, "docno": object})


FORMS: dict[str, Callable[[Sequence[Row]], Any]] = {
    "mapping": as_dict,
    "pandas": lambda rows: pd.DataFrame(columns(rows)),
    "objects": as_object,
    "categories": lambda rows: pd.DataFrame(columns(rows)).astype({"qid": "category"}),
    "polars": lambda rows: pl.DataFrame(columns(rows)),
    "lazy": lambda rows: pl.LazyFrame(columns(rows)),
    "pyarrow": lambda rows: pa.table(columns(rows)),
    "ir_measures": lambda rows: pd.DataFrame(columns(rows, ("query_id", "doc_id", "score"))),
}


def write(rows: Sequence[Row], folder: Path) -> Path:
    path = folder / "a.run"
    lines = [f"{q} Q0 {d} {n} {s!r} tag" for n, (q, d, s) in enumerate(rows, 1)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def scores(run: Any, order: Any = None) -> Any:
    found = ho.evaluate({"run": run}, QRELS, MEASURES, order=order)
    columns = found.columns(per_query=True)
    of_ranks = ("rank-", "scores-rise")  # files have ranks here, and most frames none
    return columns, sorted({n.code for n in found.notes if not n.code.startswith(of_ranks)})


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    pairs = draw(
        st.lists(st.tuples(st.sampled_from("abcxyz"), st.integers(0, 14)), unique=True, min_size=1)
    )
    values = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 2.5, -3.0, 16777216.0, 16777217.0])
    return [(query, f"d{n}", draw(values)) for query, n in pairs]


@given(rows=runs(), order=st.sampled_from([None, "trec", "trec9"]))
@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_the_file(
    form: str, rows: list[Row], order: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not any(query in QRELS for query, _, _ in rows):
        return
    path = write(rows, tmp_path_factory.mktemp("run"))
    assert scores(FORMS[form](rows), order) == scores(path, order)


def test_a_run_of_ranks_alone_is_as_in_ms_marco(tmp_path: Path) -> None:
    rows = [(q, f"d{n}", float(n + 1)) for q in "abc" for n in range(12)]
    rows = [rows[at] for at in np.random.default_rng(0).permutation(len(rows))]
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{q}\t{d}\t{int(r)}\n" for q, d, r in rows), "utf-8")
    frame = pd.DataFrame(columns(rows, ("qid", "docno", "rank"))).astype({"rank": int})
    assert scores(frame) == scores(path)
    assert ho.read_run(frame).order == "msmarco"


def test_a_run_goes_out_and_in_again(tmp_path: Path) -> None:
    rows = [(q, f"d{n}", 20.0 - n) for q in "abc" for n in range(12)]
    for source in (write(rows, tmp_path), as_dict(rows), pd.DataFrame(columns(rows))):
        run = ho.read_run(source, name="mine")
        assert (run.name, run.queries, run.documents, run.order) == ("mine", 3, 36, "trec")
        assert run.to_dict() == as_dict(rows)
        for frame in (run.to_pandas(), run.to_polars(), run.to_frame("pyarrow")):
            assert ho.read_run(frame).to_dict() == as_dict(rows)


@pytest.mark.parametrize("name", ["b.run", "b.parquet"])
def test_a_run_is_saved_and_read_again(name: str, tmp_path: Path) -> None:
    rows = [(q, f"d{n}", 0.1 * (20 - n)) for q in "abc" for n in range(12)]
    run = ho.read_run(as_dict(rows), name="mine")
    run.save(tmp_path / name)
    again = ho.read_run(tmp_path / name)
    assert again.name == "b"
    assert again.to_dict() == as_dict(rows)
    assert scores(tmp_path / name) == scores(run)


def test_judgments_and_scores_are_stored_under_what_a_parquet_file_holds(tmp_path: Path) -> None:
    rows = [(q, d, grade) for q, grades in QRELS.items() for d, grade in grades.items()]
    path = tmp_path / "qrels.parquet"
    pl.DataFrame(columns(rows, ("qid", "docno", "label"))).write_parquet(path)
    assert ho.read_qrels(path).judgments == QRELS
    for best in ("d2", "d4"):
        run = tmp_path / "a.parquet"
        pl.DataFrame(columns([("a", best, 2.0), ("a", "d0", 1.0)])).write_parquet(run)
        reading = find_reading({"HELDOUT_CACHE": str(tmp_path / "cache")})
        (scored,) = reading.score([str(run)], ho.read_qrels(QRELS), [parse_measure("nDCG")])
        (again,) = reading.score([str(run)], ho.read_qrels(QRELS), [parse_measure("nDCG")])
        assert isinstance(scored, Scored)
        assert isinstance(again, Scored)
        assert not scored.stored
        assert again.stored
        assert again.evaluation.per_query() == scored.evaluation.per_query()


@pytest.mark.parametrize("content", [b"", b"no columns", b"PAR1 and then nothing PAR1"])
def test_a_file_that_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    for read in (ho.read_run, ho.read_qrels):
        with pytest.raises(InputError) as refused:
            read(path)
        assert refused.value.code == "parquet"


def frame(**changed: Any) -> Any:
    good = {"qid": ["a", "a", "b"], "docno": ["d1", "d2", "d1"], "score": [2.0, 1.0, 3.0]}
    return pd.DataFrame({name: cells for name, cells in (good | changed).items() if cells})


TWICE = pd.concat([frame(), frame()], axis=1)
WRONG: dict[str, tuple[Any, str, int | None]] = {
    "no query": (frame(qid=None), "frame-columns", None),
    "two queries": (frame(query_id=["a", "a", "b"]), "frame-columns", None),
    "no order": (frame(score=None), "frame-columns", None),
    "one name twice": (TWICE, "frame-columns", None),
    "ids as numbers": (frame(qid=[1, 1, 2]), "frame-type", None),
    "document ids as numbers": (frame(docno=[1, 2, 3]), "frame-type", None),
    "mixed ids": (frame(docno=["d1", 7, "d2"]), "frame-type", None),
    "scores as text": (frame(score=["a", "b", "c"]), "frame-type", None),
    "no id": (frame(docno=["d1", None, "d2"]), "frame-missing", 2),
    "NaN": (frame(score=[2.0, float("nan"), 1.0]), "score-nan", 2),
    "infinite": (frame(score=[2.0, 1.0, float("inf")]), "score-infinite", 3),
    "a document twice": (frame(docno=["d1", "d1", "d1"]), "repeated-document", 2),
    "part of a rank": (frame(score=None, rank=[1.0, 1.5, 1.0]), "frame-number", 2),
    "a rank twice": (frame(score=None, rank=[1, 1, 1]), "rank-repeated", 2),
    "no rows": (frame().head(0), "empty-file", None),
    "judgments": (frame(score=None, label=[1, 0, 1]), "looks-like-qrels", None),
    "number as document": ({"a": {7: 1.0}}, "frame-type", None),
    "text as score": ({"a": {"d1": "high"}}, "frame-type", None),
    "no queries": ({}, "empty-file", None),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_run_has_a_code_and_a_row(case: str) -> None:
    run, code, row = WRONG[case]
    with pytest.raises(InputError) as refused:
        ho.read_run(run)
    assert refused.value.code == code
    assert refused.value.problems[0].line == row
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md").read_text(
        "utf-8"
    )
    assert f"| {code} |" in page


def test_a_document_twice_is_found_where_depths_differ() -> None:
    rows = [("a", "d1", 3.0), ("a", "d2", 2.0), ("b", "d1", 2.0), ("a", "d1", 1.0)]
    for make in (FORMS["pandas"], FORMS["polars"], FORMS["pyarrow"]):
        with pytest.raises(InputError) as refused:
            ho.read_run(make(rows))
        assert [(p.code, p.line) for p in refused.value.problems] == [("repeated-document", 4)]


def test_judgments_come_in_every_form(tmp_path: Path) -> None:
    rows = [(q, d, grade) for q, grades in QRELS.items() for d, grade in grades.items()]
    path = tmp_path / "qrels"
    path.write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows), "utf-8")
    for names in (("qid", "docno", "label"), ("query_id", "doc_id", "relevance")):
        for library in (pd.DataFrame, pl.DataFrame, pa.table):
            assert ho.read_qrels(library(columns(rows, names))).judgments == QRELS
    assert ho.read_qrels(path).judgments == ho.read_qrels(QRELS).judgments == QRELS


def test_decimal_grades_come_in_every_form(tmp_path: Path) -> None:
    """nDCG takes them as gains; a measure that asks for a level refuses them."""
    rows: list[tuple[str, str, float]] = [
        (q, d, grade / 4) for q, grades in QRELS.items() for d, grade in grades.items()
    ]
    (tmp_path / "trec").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows), "utf-8")
    beir = "".join(f"{q}\t{d}\t{g}\n" for q, d, g in rows)
    (tmp_path / "beir").write_text(f"query-id\tcorpus-id\tscore\n{beir}", "utf-8")
    table = columns(rows, ("qid", "docno", "label"))
    pl.DataFrame(table).write_parquet(tmp_path / "qrels.parquet")
    mapping = {q: {d: Decimal(grade) / 4 for d, grade in one.items()} for q, one in QRELS.items()}
    forms = [tmp_path / "trec", tmp_path / "beir", tmp_path / "qrels.parquet", mapping]
    forms += [library(table) for library in (pd.DataFrame, pl.DataFrame, pa.table)]
    run = {q: dict.fromkeys(grades, 1.0) for q, grades in QRELS.items()}
    wanted = ho.evaluate(run, forms[0], ["nDCG@10"]).columns(per_query=True)
    for form in forms:
        assert ho.evaluate(run, form, ["nDCG@10"]).columns(per_query=True) == wanted
        with pytest.raises(InputError) as refused:
            ho.evaluate(run, form, ["RR@10"])
        assert refused.value.code in ("grade-not-a-number", "frame-number")


WRONG_QRELS: dict[str, tuple[Any, str]] = {
    "a run": (frame(), "looks-like-a-run"),
    "a run as mapping": ({"a": {"d1": 2.5}}, "grade-not-a-number"),
    "part of a grade": (frame(score=None, label=[0.5, 1, 1]), "frame-number"),
    "two grades": (
        frame(score=None, docno=["d1", "d1", "d1"], label=[0, 1, 1]),
        "conflicting-judgment",
    ),
    "an id as a grade": ({"a": {"d1": 10**9}}, "grade-too-large"),
    "nothing": ({}, "empty-file"),
}


@pytest.mark.parametrize("case", WRONG_QRELS)
def test_what_is_wrong_with_judgments_has_a_code(case: str) -> None:
    qrels, code = WRONG_QRELS[case]
    with pytest.raises(InputError) as refused:
        ho.read_qrels(qrels)
    assert refused.value.code == code


def test_swapped_arguments_are_named() -> None:
    run = frame()
    qrels = frame(score=None, label=[1, 0, 1])
    with pytest.raises(InputError) as refused:
        ho.evaluate({"mine": qrels}, run, "RR")
    assert refused.value.code in ("looks-like-qrels", "looks-like-a-run")


def test_it_reads_no_environment_starts_no_process_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Closed(dict[str, str]):
        def get(self, name: str, default: Any = None) -> Any:
            assert not name.startswith(("HELDOUT", "HOME", "XDG", "PATH")), name
            return default  # other libraries ask for their own

        __getitem__ = get

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a process")

    text = "".join(f"{q} Q0 d{n} 1 {20 - n} tag\n" for q in "abc" for n in range(12))
    paths = [tmp_path / "a.run.bz2", tmp_path / "b.run.gz", tmp_path / "c.run"]
    packs: list[Callable[[bytes], bytes]] = [bz2.compress, gzip.compress, bytes]
    for path, pack in zip(paths, packs, strict=True):
        path.write_bytes(pack(text.encode()))
    monkeypatch.setattr("os.environ", Closed())
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    monkeypatch.setattr("os.fork", refuse)
    found = ho.evaluate([*map(str, paths)], QRELS, ["RR", "nDCG@10"])
    assert found["a"] == found["b"] == found["c"]
    assert [ho.read_run(path).documents for path in paths] == [36] * 3
    assert ho.validate(paths[0], ["a", "b", "c"])
    ho.stability({"x": {"a": 0.5, "b": 1.0}, "y": {"a": 1.0, "b": 0.25}}, trials=5)
    ho.compare(paths[2], {"mine": frame()}, QRELS, "RR").to_dict()
    assert capfd.readouterr() == ("", "")


def test_validation_lists_every_problem() -> None:
    found = ho.validate(frame(), ["a", "c"], depth=1)
    assert not found
    assert {one.code for one in found.problems} == {
        *("too-many-documents", "unknown-query", "missing-query"),
    }
    assert list(found.to_pandas()["code"]) == [one.code for one in found.problems]
    assert ho.validate(frame(), ["a", "b"])
    assert ho.validate({"a": {7: 1.0}}).problems[0].code == "frame-type"


def test_compare_is_the_same_from_files_and_from_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    both = {
        name: [(q, f"d{n}", float(rng.normal())) for q in QRELS for n in range(12)] for name in "xy"
    }
    paths = {}
    for name, rows in both.items():
        (tmp_path / name).mkdir()
        paths[name] = write(rows, tmp_path / name).rename(tmp_path / f"{name}.run")
    of_files = ho.compare(paths["x"], paths["y"], QRELS, "nDCG@10")
    x, y = ({name: pl.DataFrame(columns(rows))} for name, rows in both.items())
    of_frames = ho.compare(x, y, QRELS, "nDCG@10")
    assert of_files.to_dict() == of_frames.to_dict()
    pages = [ho.failures(paths["x"], paths["y"], QRELS), ho.failures(x, y, QRELS)]
    assert pages[0].to_dict() == pages[1].to_dict()
    assert (tmp_path / pages[0].write(tmp_path / "out.html")).exists()
    with pytest.raises(InputError) as refused:
        ho.compare(paths["x"], paths["x"], QRELS)
    assert refused.value.code == "same-run"


def test_evaluate_and_validate_say_what_their_commands_say(tmp_path: Path) -> None:
    rows = [(q, f"d{n}", 20.0 - n) for q in "abz" for n in range(12)]
    run, qrels = write(rows, tmp_path), tmp_path / "qrels"
    judged = [(q, d, grade) for q, grades in QRELS.items() for d, grade in grades.items()]
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in judged), "utf-8")
    queries = tmp_path / "queries.tsv"
    queries.write_text("a\tone\nb\ttwo\nc\tthree\n", "utf-8")
    found = ho.evaluate(run, qrels, MEASURES).to_dict(per_query=True)
    asked = [str(run), "--qrels", str(qrels), "--per-query", "--json", "--no-cache"]
    shown = CliRunner().invoke(evaluate, [*asked, *(x for m in MEASURES for x in ("-m", m))])
    assert json.loads(json.dumps(found)) == json.loads(shown.stdout)
    checked = ho.validate(run, queries, depth=5).to_dict()
    shown = CliRunner().invoke(
        validate, [str(run), "--queries", str(queries), "--depth", "5", "--json"]
    )
    assert json.loads(json.dumps(checked)) == json.loads(shown.stdout)


@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=30), min_size=1))
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_equal_texts_have_equal_numbers_and_others_do_not(library: Any, texts: list[str]) -> None:
    numbers = code_texts(open_frame(make_frame({"a": texts}, library), path="")["a"]).tolist()
    known: dict[str, int] = {}
    assert all(known.setdefault(one, n) == n for one, n in zip(texts, numbers, strict=True))
    assert len(set(known.values())) == len(known)


@pytest.mark.parametrize("form", ["mapping", "polars"])
def test_measures_of_ir_measures_see_the_same_order(form: str, tmp_path: Path) -> None:
    for step in (-1.0, 0.0, 1.0):  # in order, tied, and from the end
        rows = [(q, f"d{n}", step * n) for q in "abc" for n in range(12)]
        found = ho.evaluate({"run": FORMS[form](rows)}, QRELS, ["Rprec", "Judged@10", "IPrec@0.1"])
        of_file = ho.evaluate({"run": write(rows, tmp_path)}, QRELS, found.measures)
        assert found.columns(per_query=True) == of_file.columns(per_query=True)


def test_a_measure_is_found_under_the_name_that_was_typed() -> None:
    found = ho.evaluate({"run": frame()}, QRELS, ["map", "ndcg_cut_10"])
    assert found.measures == ("AP", "nDCG@10")
    assert found.scores("ndcg_cut_10").table.digest == found.scores("nDCG@10").table.digest
    with pytest.raises(InputError) as refused:
        found.scores("P@5")
    assert refused.value.code == "measure-name"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_that_rise_with_the_rank_are_noted_as_of_a_file(sign: float, tmp_path: Path) -> None:
    cells = [(q, f"d{n}", n + 1, sign * (n + 1) / 3) for q in "abc" for n in range(12)]
    path = tmp_path / "a.run"
    path.write_text("".join(f"{q} Q0 {d} {r} {s!r} tag\n" for q, d, r, s in cells), "utf-8")
    table = dict(zip(("qid", "docno", "rank", "score"), zip(*cells, strict=True), strict=True))
    of_file = {note.code for note in ho.read_run(path).notes}
    assert {note.code for note in ho.read_run(pl.DataFrame(table)).notes} == of_file - {
        "rank-disagrees"
    }
    assert ("scores-rise" in of_file) == (sign > 0)
