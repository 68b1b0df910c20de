"""Measures that other libraries compute: equal to what these say when they are asked directly."""

import gzip
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import judged
import pytest
import pytrec_eval
from hypothesis import given

from heldout.errors import InputError, SetupError
from heldout.scoring.cache import ScoreCache
from heldout.scoring.families import ALIASES, FAMILIES, TREC_EVAL
from heldout.scoring.names import read_measure, read_measures
from heldout.scoring.other_measures import OtherMeasure, check_others, score_others
from heldout.scoring.run_files import scan_file
from heldout.scoring.score import Failed, Reading, Scored
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.reading.sources import read_file

JUDGMENTS = {
    "q1": {"d1": 1, "d2": 0, "d3": 2, "d9": -1},
    "q2": {"d1": 1},
    "q3": {"d4": 0},
    "q4": {"d5": 3},
    "q5": {"d6": -1},
}
LISTS = {
    "q1": ("d3", "d7", "d9", "d1"),
    "q2": ("d8", "d1"),
    "q3": ("d4",),
    "q5": ("d6", "d1"),
    "unjudged": ("d1",),
}
RUN = {q: {d: 10.0 - at for at, d in enumerate(docs)} for q, docs in LISTS.items()}
MEASURES = (
    *("Rprec", "Rprec(rel=2)", "Rprec(judged_only=True)", "infAP", "infAP(rel=2)"),
    *("IPrec@0.0", "IPrec@0.1", "IPrec@0.5", "IPrec(rel=2)@0.2", "NumQ", "NumRel", "NumRet"),
    *("NumRet(rel=1)", "NumRet(rel=2)", "SetP", "SetP(relative=True)", "SetR", "SetF"),
    *("SetF(beta=2.0)", "SetF(beta=0.5,rel=2)", "SetAP", "SetAP(rel=2)", "Judged", "Judged@2"),
    *("Compat", "Compat(p=0.5)", "Compat(normalize=False)"),
)


def other(name: str) -> OtherMeasure:
    measure = read_measure(name)
    assert isinstance(measure, OtherMeasure)
    return measure


def asked_directly(
    name: str, judgments: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """What ir_measures says; each measure by a call of its own."""
    import ir_measures  # noqa: PLC0415 - slow to load

    family, _, rest = name.partition("@")
    family, _, inside = family.rstrip(")").partition("(")
    known = ir_measures.measures.registry[family]
    values: dict[str, object] = {}
    for pair in filter(None, inside.split(",")):
        key, _, value = pair.partition("=")
        dtype = known.SUPPORTED_PARAMS[key].dtype
        values[key] = value == "True" if dtype is bool else dtype(value)
    if rest:
        values[known.AT_PARAM] = known.SUPPORTED_PARAMS[known.AT_PARAM].dtype(rest)
    found = ir_measures.iter_calc([known(**values)], judgments, run)
    return {one.query_id: one.value for one in found}


def test_the_families_are_those_of_ir_measures_that_heldout_lacks() -> None:
    import ir_measures  # noqa: PLC0415 - slow to load

    from heldout.scoring.measures import MEASURES as OWN  # noqa: PLC0415 - the name says whose

    registry = {name for name in ir_measures.measures.registry if name.isascii()}
    own = {alias for name, kind in OWN.items() for alias in (name, *kind.aliases)}
    assert registry - own == {*FAMILIES, *ALIASES}
    theirs = {one.__name__ for one in ir_measures.measures.registry.values()}
    assert theirs - own == set(FAMILIES)


@pytest.mark.parametrize("name", MEASURES)
def test_equal_to_ir_measures(name: str) -> None:
    measure = other(name)
    found = score_others(LISTS, JUDGMENTS, [measure])[measure]
    level = measure.params.rel or 1
    # a document that nobody lists keeps trec_eval from reading beyond its grades
    safe = {
        query: grades if max(grades.values()) >= level - 1 else {**grades, "none": level - 1}
        for query, grades in JUDGMENTS.items()
    }
    assert found == asked_directly(name, safe, RUN)
    assert list(found) != []


@given(judgments=judged.JUDGMENTS, documents=judged.LISTS)
def test_any_list_is_equal_to_ir_measures(
    judgments: Mapping[str, int], documents: Sequence[str]
) -> None:
    """Negative grades, none that is relevant, levels above every grade."""
    import ir_measures  # noqa: PLC0415 - slow to load

    run = {"q": judged.scores_of(documents)}
    for measure, theirs in (
        ("Rprec(rel=4)", ir_measures.Rprec(rel=4)),
        ("infAP", ir_measures.infAP),
        ("IPrec(rel=2)@0.3", ir_measures.IPrec(rel=2) @ 0.3),
        ("NumRet(rel=3)", ir_measures.NumRet(rel=3)),
        ("SetF(beta=2.0,rel=3)", ir_measures.SetF(beta=2.0, rel=3)),
        ("Compat(p=0.8)", ir_measures.Compat(p=0.8)),
        ("Judged@5", ir_measures.Judged @ 5),
    ):
        level = theirs.params.get("rel", 1)
        grades = judged.anchored(judgments, level - 1)
        if "rel" not in theirs.params and max(judgments.values()) >= 0:
            grades = dict(judgments)
        (found,) = score_others({"q": documents}, {"q": judgments}, [other(measure)]).values()
        (expected,) = (one.value for one in ir_measures.iter_calc([theirs], {"q": grades}, run))
        assert found == {"q": expected}, measure


def test_several_at_once_are_each_what_it_is_alone() -> None:
    """ir_measures 0.4.3 takes NumRet for that of judged documents if asked beside judged_only."""
    measures = [other(name) for name in MEASURES]
    together = score_others(LISTS, JUDGMENTS, measures)
    assert list(together) == measures
    for measure in measures:
        assert together[measure] == score_others(LISTS, JUDGMENTS, [measure])[measure]


def test_every_name_that_only_trec_eval_has_is_equal_to_pytrec_eval() -> None:
    measures = [m for one in TREC_EVAL for m in (a.measure for a in read_measures(one))]
    others = [one for one in measures if isinstance(one, OtherMeasure)]
    assert len(others) == len(measures)
    found = score_others(LISTS, JUDGMENTS, others)
    theirs = pytrec_eval.RelevanceEvaluator(JUDGMENTS, set(TREC_EVAL)).evaluate(RUN)
    for measure in others:
        if measure.kind.aggregate != "geometric mean":
            assert {q: found[measure][q] for q in theirs} == {
                q: row[str(measure)] for q, row in theirs.items()
            }
        assert found[measure].keys() == JUDGMENTS.keys()


def test_documents_without_a_score_come_after_those_of_the_list() -> None:
    """Compat of ir_measures takes an unlisted document as scored 0, so above negative scores."""
    measure = other("Compat(p=0.5)")
    judgments = {"q": {"a": 1, "b": 1, "c": 1}}
    found = score_others({"q": ("x", "c")}, judgments, [measure])[measure]["q"]
    assert found == asked_directly("Compat(p=0.5)", judgments, {"q": {"x": 2.0, "c": 1.0}})["q"]
    below = asked_directly("Compat(p=0.5)", judgments, {"q": {"x": -1.0, "c": -2.0}})["q"]
    assert found != below


def test_accuracy_is_undefined_where_the_list_has_nothing_relevant() -> None:
    measure = other("Accuracy")
    found = score_others(
        {"q1": ("d2", "d1"), "q2": ("d7",)}, {"q1": {"d1": 1}, "q2": {"d1": 1}}, [measure]
    )
    assert found[measure] == {"q1": 0.0}


def test_what_the_library_cannot_compute_is_said_and_nothing_else() -> None:
    measure = other("Accuracy")  # 0 / 0 in ir_measures 0.4.3, where every document is relevant
    with pytest.raises(InputError) as caught:
        score_others({"q": ("d",)}, {"q": {"d": 1}}, [measure])
    (problem,) = caught.value.problems
    assert problem.code == "measure-failed"
    assert "ZeroDivisionError" in problem.found
    assert "ir_measures" in problem.expected


DIVERSE = {
    "q1": {"1": {"d1": 1, "d2": 1}, "2": {"d2": 1, "d3": 1}, "3": {"d4": 1}},
    "q2": {"1": {"d1": 1}, "2": {"d1": 1}},
}
DIVERSE_MEASURES = (
    *("alpha_nDCG@5", "alpha_nDCG(alpha=0.3)@5", "alpha_DCG@3", "ERR_IA@5", "nERR_IA@5"),
    *("NRBP", "nNRBP", "NRBP(alpha=0.2,beta=0.8)", "AP_IA", "P_IA@3", "StRecall@2"),
)


@pytest.mark.parametrize("name", DIVERSE_MEASURES)
def test_diversity_is_equal_to_ir_measures(name: str) -> None:
    pytest.importorskip("pyndeval")
    import ir_measures  # noqa: PLC0415 - slow to load

    flat = {
        q: {d: g for grades in parts.values() for d, g in grades.items()}
        for q, parts in DIVERSE.items()
    }
    lists = {"q1": ("d9", "d2", "d4", "d1"), "q2": ("d1",)}
    measures = [other(one) for one in DIVERSE_MEASURES]
    found = score_others(lists, flat, measures, subtopics=DIVERSE)[other(name)]
    rows = [
        ir_measures.Qrel(q, d, g, subtopic)
        for q, parts in DIVERSE.items()
        for subtopic, grades in parts.items()
        for d, g in grades.items()
    ]
    run = {q: {d: 10.0 - at for at, d in enumerate(docs)} for q, docs in lists.items()}
    assert found == asked_directly(name, rows, run)  # type: ignore[arg-type]  # rows with subtopics
    assert any(found.values())


GAINS = (
    *("INST(max_rel=2)", "INSQ(max_rel=2,T=2.0)", "BPM(max_rel=2)@3", "SDCG(max_rel=2)@3"),
    *("NERR8(max_rel=2)@3", "NERR9(max_rel=2)@5", "NERR10(max_rel=2)", "NERR11(max_rel=2)"),
)


@pytest.mark.parametrize("name", GAINS)
def test_rates_of_gain_are_equal_to_ir_measures(name: str) -> None:
    pytest.importorskip("cwl")
    found = score_others(LISTS, JUDGMENTS, [other(one) for one in GAINS])[other(name)]
    assert found == asked_directly(name, JUDGMENTS, RUN)
    assert any(found.values())


def test_diversity_without_subtopics_is_refused_before_anything_is_read() -> None:
    pytest.importorskip("pyndeval")
    measure = other("alpha_nDCG@10")
    for subtopics in (None, {}, {"q": {"0": {"d": 1}}}):
        with pytest.raises(InputError) as caught:
            check_others([measure], subtopics)
        assert caught.value.problems[0].code == "needs-subtopics"


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    utility = other("utility")
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    with pytest.raises(SetupError, match=r"Rprec is computed by ir_measures: pip install"):
        read_measure("Rprec")
    with pytest.raises(SetupError, match=r"utility is computed by trec_eval.*heldout\[measures\]"):
        check_others([utility])
    assert str(read_measure("ndcg_cut_10")) == "nDCG@10"


def test_a_missing_provider_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_measures  # noqa: PLC0415 - slow to load

    monkeypatch.setattr(ir_measures.cwl_eval, "_is_available", False)
    with pytest.raises(SetupError, match=r"computes INST\(max_rel=3\) with cwl_eval: pip install"):
        check_others([other("INST(max_rel=3)")])


def write(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


ORDERS: Sequence[tuple[Order, tuple[str, ...]]] = [
    ("trec", ("b", "c", "a", "d")),
    ("trec9", ("c", "b", "a", "d")),
    ("msmarco", ("d", "c", "b", "a")),
]


@pytest.mark.parametrize(("order", "documents"), ORDERS)
def test_lists_are_in_heldouts_order(
    order: Order, documents: tuple[str, ...], tmp_path: Path
) -> None:
    """`b` and `c` differ in float64 alone, `a` and `d` tie."""
    lines = ("q Q0 d 1 0.25 t", "q Q0 c 2 0.5 t", "q Q0 b 3 0.50000000001 t", "q Q0 a 4 0.3 t")
    run = write(tmp_path, "run", "# a comment", *lines, "", "other Q0 a 1 0.3 t")
    lists = scan_file(run, order=order, listed=9).lists
    assert lists["q"].documents == documents


def test_a_run_of_ranks(tmp_path: Path) -> None:
    run = write(tmp_path, "run.tsv", "q\tb\t2", "q\ta\t1", "q\tc\t3")
    lists = scan_file(run, order="msmarco", listed=9).lists
    assert lists["q"].documents == ("a", "b", "c")


def test_scored_beside_our_own_in_the_order_asked_for(tmp_path: Path) -> None:
    runs = [
        write(tmp_path, "a.run", "q Q0 d 1 2 t", "q Q0 e 2 1 t", "r Q0 d 1 1 t"),
        write(tmp_path, "b.run", "q Q0 e 1 2 t"),
        write(tmp_path, "broken.run", "q Q0 e 1 t"),
    ]
    qrels = read_file(read_qrels, write(tmp_path, "qrels", "q 0 d 1", "q 0 f 0", "r 0 e 1"))
    measures = [read_measure(name) for name in ("NumRet", "RR", "Rprec", "gm_map")]
    one, two, three = Reading().score(runs, qrels, measures)
    assert isinstance(one, Scored)
    assert isinstance(two, Scored)
    assert isinstance(three, Failed)
    assert list(one.evaluation.scores) == measures
    assert [found.mean for found in one.evaluation.scores.values()][:3] == [3.0, 0.5, 0.5]
    assert [found.mean for found in two.evaluation.scores.values()][:3] == [1.0, 0.0, 0.0]
    geometric = one.evaluation.scores[measures[3]]
    assert geometric.mean == pytest.approx(1e-5**0.5, rel=1e-12)
    alone = Reading().score(runs[:1], qrels, measures, excluded=frozenset({"r"}))[0]
    assert isinstance(alone, Scored)
    assert alone.evaluation.scores[measures[0]].mean == 2.0


REAL = (
    *("Rprec", "Rprec(rel=2)", "infAP", "IPrec@0.1", "NumRet", "NumRet(rel=2)", "NumRel", "NumQ"),
    *("SetP", "SetR", "SetF", "SetAP", "SetP(relative=True)", "Judged@10", "Judged", "Compat"),
    *("Accuracy",),
)


def covid(data: Callable[[str], Path], run: str) -> tuple[str, Qrels, dict[str, dict[str, float]]]:
    folder = data("trec-covid-round1")
    path = folder / "runs-depth100" / f"{run}.gz"
    rows: dict[str, dict[str, float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            rows.setdefault(query, {})[document] = float(score)
    return str(path), read_file(read_qrels, folder / "qrels-round1.txt.gz"), rows


@pytest.mark.real
@pytest.mark.parametrize("run", ["xj4wang_run1", "sheikh_bm25_all"])
def test_real_runs_are_equal_to_ir_measures(data: Callable[[str], Path], run: str) -> None:
    path, qrels, rows = covid(data, run)
    measures = [read_measure(name) for name in REAL]
    (outcome,) = Reading().score([path], qrels, measures, order="trec9")
    assert isinstance(outcome, Scored)
    found = outcome.evaluation.per_query()
    for measure in measures:
        theirs = asked_directly(str(measure), qrels.judgments, rows)
        ours = {q: row[measure] for q, row in found.items() if row[measure] is not None}
        assert ours == theirs, measure


@pytest.mark.real
@pytest.mark.parametrize("run", ["xj4wang_run1", "sheikh_bm25_all", "yn-r1-concepttext"])
def test_all_names_of_trec_eval_on_real_runs(data: Callable[[str], Path], run: str) -> None:
    path, qrels, rows = covid(data, run)
    asked = read_measures("all_trec")
    (outcome,) = Reading().score([path], qrels, [one.measure for one in asked], order="trec9")
    assert isinstance(outcome, Scored)
    names = pytrec_eval.supported_measures - {"runid", "relstring"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels.judgments, names).evaluate(rows)
    found = outcome.evaluation
    assert theirs.keys() == set(found.queries)
    for one in asked:
        scores = found.scores[one.measure]
        if one.trec_name.startswith("unj_"):
            continue  # pytrec_eval lacks it; against trec_eval itself in another test
        for at, query in enumerate(found.queries):
            value: object = theirs[query][one.trec_name]
            if scores.measure.kind.aggregate == "geometric mean":
                value = pytest.approx(2.718281828459045 ** theirs[query][one.trec_name], rel=1e-12)
            elif not isinstance(scores.measure, OtherMeasure):
                value = pytest.approx(value, abs=1e-12)
            assert scores.value(at) == value, (one.trec_name, query)
        mean = pytrec_eval.compute_aggregated_measure(
            one.trec_name, [row[one.trec_name] for row in theirs.values()]
        )
        assert scores.mean == pytest.approx(mean, rel=1e-12), one.trec_name


def test_their_scores_are_not_stored(tmp_path: Path) -> None:
    run = write(tmp_path, "a.run", "q Q0 d 1 2 t", "q Q0 e 2 1 t")
    qrels = read_file(read_qrels, write(tmp_path, "qrels", "q 0 e 1"))
    reading = Reading(cache=ScoreCache(root=tmp_path / "cache"), code="one")
    asked = [read_measure("RR"), read_measure("Rprec")]
    for _ in range(2):
        (found,) = reading.score([run], qrels, asked)
        assert isinstance(found, Scored)
        assert not found.stored
        assert [scores.mean for scores in found.evaluation.scores.values()] == [0.5, 0.0]
    records = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert records
    assert any(b"RR" in record for record in records)
    assert not any(b"Rprec" in record for record in records)
    (own,) = reading.score([run], qrels, asked[:1])
    assert isinstance(own, Scored)
    assert own.stored


def test_a_run_in_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = {"qid": ["q", "q"], "docno": ["d", "e"], "score": [2.0, 1.0]}
    polars.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    text = write(tmp_path, "b.run", "q Q0 d 1 2 t", "q Q0 e 2 1 t")
    qrels = read_file(read_qrels, write(tmp_path, "qrels", "q 0 e 1"))
    asked = [read_measure(name) for name in ("Compat", "NumRet", "gm_map")]
    found = Reading().score([str(tmp_path / "a.parquet"), text], qrels, asked)
    one, two = (run.evaluation for run in found if isinstance(run, Scored))
    assert [one.scores[m].mean for m in asked] == [two.scores[m].mean for m in asked]


def test_several_processes_say_the_same(tmp_path: Path) -> None:
    runs = [write(tmp_path, f"{n}.run", f"q Q0 d{n} 1 2 t", "q Q0 e 2 1 t") for n in range(3)]
    qrels = read_file(read_qrels, write(tmp_path, "qrels", "q 0 e 1", "q 0 d1 1"))
    asked = [read_measure(name) for name in ("Rprec", "gm_map", "Compat")]
    means = []
    for jobs in (1, 2):
        found = [
            run for run in Reading(jobs=jobs).score(runs, qrels, asked) if isinstance(run, Scored)
        ]
        assert len(found) == len(runs)
        means.append([[run.evaluation.scores[one].mean for one in asked] for run in found])
    assert means[0] == means[1]
    assert len({tuple(row) for row in means[0]}) > 1
