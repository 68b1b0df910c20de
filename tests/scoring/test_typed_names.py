"""Names that people type for measures: trec_eval's, ir_measures', and loose spellings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import needs_their_parser

from heldout.errors import InputError
from heldout.scoring.measures import MEASURES, Measure, parse_measure
from heldout.scoring.names import read_measure, read_measures, read_own_measure
from heldout.scoring.other_measures import OtherMeasure

ONE = {
    "map": "AP",
    "ndcg": "nDCG",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut.10": "nDCG@10",
    "NDCG_CUT_10": "nDCG@10",
    "ndcg.1=3,2=9": "nDCG(gains={1:3,2:9})",
    "recip_rank": "RR",
    "P_10": "P@10",
    "p_10": "P@10",
    "recall_1000": "R@1000",
    "map_cut_100": "AP@100",
    "bpref": "Bpref",
    "success_1": "Success@1",
    "unj_10": "Unjudged@10",
    "ndcg@10": "nDCG@10",
    "NDCG@10": "nDCG@10",
    "ndcg(dcg='exp-log2')@5": "nDCG(dcg='exp-log2')@5",
    "mrr": "RR",
    "mrr@10": "RR@10",
    "MRR@10": "RR@10",
    "map(rel=2)": "AP(rel=2)",
    "recall@5": "R@5",
    "hit_rate@10": "Success@10",
    "rbp(p=0.5,rel=1)": "RBP(p=0.5,rel=1)",
    " nDCG@10 ": "nDCG@10",
}

OTHERS = {
    "Rprec": "Rprec",
    "rprec(rel=2)": "Rprec(rel=2)",
    "infAP": "infAP",
    "num_ret": "NumRet",
    "num_rel_ret": "NumRet(rel=1)",
    "iprec_at_recall_0.10": "IPrec@0.1",
    "iprec_at_recall.1": "IPrec@1.0",
    "set_F.2": "SetF(beta=2.0)",
    "SetF(beta=2)": "SetF(beta=2.0)",
    "set_relative_P": "SetP(relative=True)",
    "judged@10": "Judged@10",
    "alpha_nDCG@10": "alpha_nDCG@10",
    "α_nDCG@10": "alpha_nDCG@10",
    "gm_map": "gm_map",
    "relative_P_5": "relative_P_5",
    "Rprec_mult.5.0": "Rprec_mult_5.00",
}


@pytest.mark.parametrize(("written", "meant"), ONE.items())
def test_what_heldout_computes(written: str, meant: str) -> None:
    assert read_measure(written) == read_own_measure(written) == parse_measure(meant)


@pytest.mark.parametrize(("written", "meant"), OTHERS.items())
def test_what_others_compute(written: str, meant: str) -> None:
    measure = read_measure(written)
    assert isinstance(measure, OtherMeasure)
    assert str(measure) == meant
    assert read_measure(meant) == measure
    with pytest.raises(InputError) as caught:
        read_own_measure(written)
    assert caught.value.problems[0].code == "measure-elsewhere"


def test_several_by_one_name() -> None:
    found = read_measures("ndcg_cut.5,10")
    assert [str(one.measure) for one in found] == ["nDCG@5", "nDCG@10"]
    assert [one.trec_name for one in found] == ["ndcg_cut_5", "ndcg_cut_10"]
    assert [one.trec_name for one in read_measures("success")] == [
        *("success_1", "success_5", "success_10")
    ]
    with pytest.raises(InputError) as caught:
        read_measure("official")
    (problem,) = caught.value.problems
    assert problem.code == "measure-many"
    assert "29 measures" in problem.found


@pytest.mark.parametrize(
    ("written", "code", "hint"),
    [
        ("map_10", "measure-parameter", "did you mean AP@10?"),
        ("recip_rank_10", "measure-parameter", "did you mean RR@10?"),
        ("ndcg_10", "measure-parameter", "did you mean nDCG@10, which is ndcg_cut_10?"),
        ("ndcg_cut.23.4", "measure-parameter", "for example ndcg_cut.5,10"),
        ("utility_2,-1,0,0", "measure-parameter", ""),
        ("rbp", "measure-name", "RBP(rel=1) for labels of 0 and 1"),
        ("nDGC@10", "measure-name", "did you mean nDCG@10"),
        ("recal@10", "measure-name", "did you mean R@10"),
        ("Jugded@10", "measure-name", "did you mean Judged@10"),
        ("mrr_10", "measure-name", "did you mean RR@10?"),
        ("ndcg10", "measure-name", "did you mean nDCG@10?"),
        ("hits@10", "measure-name", "did you mean Success@10?"),
        ("zzz", "measure-name", "docs/reference/measures.md lists them all"),
        ("g", "measure-name", "did you mean G?"),
        ("alpha_nDCG", "measure-parameter", ""),
        ("IPrec@2", "measure-parameter", ""),
        ("IPrec", "measure-parameter", ""),
        ("IPrec(rell=2)@0.1", "measure-parameter", "did you mean rel?"),
        ("Rprec@10", "measure-parameter", ""),
        ("Rprec(rel=0)", "measure-parameter", ""),
        ("Rprec(rel=True)", "measure-parameter", ""),
        ("Rprec(rel=nan)", "measure-parameter", ""),
        ("INST", "measure-parameter", ""),
        ("Judged(cutoff=3)@3", "measure-parameter", ""),
        ("Rprec(", "measure-syntax", ""),
        ("x" * 300, "measure-syntax", ""),
        ("", "measure-syntax", ""),
    ],
)
def test_refused(written: str, code: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        read_measures(written, path="--sort")
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == (code, "--sort")
    assert hint in problem.hint


@pytest.mark.parametrize("written", [name for name in (*ONE, *OTHERS) if name not in ONE.values()])
def test_a_board_takes_the_strict_names_alone(written: str) -> None:
    if parse_measure_or_none(written) is None:
        return
    # our own aliases, such as MRR@10, are strict names too
    assert written.strip().partition("@")[0] in {
        alias for kind in MEASURES.values() for alias in kind.aliases
    } | set(MEASURES)


def parse_measure_or_none(text: str) -> Measure | None:
    try:
        return parse_measure(text)
    except InputError:
        return None


@given(text=st.text(alphabet="nDCGRPrecipmap_(){}=,:@'\".el0123 \n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_measures(text)
    except InputError:
        return
    for one in found:
        assert read_measure(str(one.measure)) == one.measure


@pytest.mark.real
def test_the_sets_are_those_of_trec_eval(data: Callable[[str], Path]) -> None:
    folder = data("trec_eval-reference")
    printed = [line.split()[0] for line in (folder / "out.test.a").read_text().splitlines()]
    ours = [one.trec_name for one in read_measures("all_trec")]
    # the run's name; two texts; and rbp, which pytrec_eval does not have
    absent = {"runid", "relstring", "rbp", "rbp_resid"}
    assert ours == [name for name in printed if name not in absent]
    official = [line.split()[0] for line in (folder / "out.test").read_text().splitlines()]
    assert [one.trec_name for one in read_measures("official")] == official[1:]


@needs_their_parser
@pytest.mark.parametrize("written", [name for name in (*ONE, *OTHERS) if "_" in name])
def test_a_name_of_trec_eval_means_what_ir_measures_takes_it_for(written: str) -> None:
    import ir_measures  # noqa: PLC0415 - slow to load, and of this test alone

    if written not in OTHERS and ("=" in written or "@" in written or written != written.lower()):
        return
    try:
        theirs = ir_measures.parse_trec_measure(written)
    except ValueError:
        return  # not one of trec_eval's, or only trec_eval has it
    assert [str(one.measure) for one in read_measures(written)] == [str(one) for one in theirs]
