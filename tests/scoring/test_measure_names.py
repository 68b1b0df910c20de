"""Names of measures: what we write is what ir_measures writes."""

import warnings
from typing import Any

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import needs_their_parser

from heldout.errors import InputError
from heldout.scoring.measures import MEASURES, Measure, parse_measure

OURS_ONLY = {"FirstRel", "Unjudged", "AWRF", "nDCG_AWRF"}
VALUES: dict[str, st.SearchStrategy[str]] = {
    "cutoff": st.integers(1, 10_000).map(str),
    "rel": st.integers(1, 9).map(str),
    "judged_only": st.sampled_from(["True", "False"]),
    "dcg": st.sampled_from(["'log2'", "'exp-log2'", '"exp-log2"']),
    "gains": st.dictionaries(st.integers(0, 9), st.integers(0, 99), max_size=4).map(
        lambda gains: "{" + ",".join(f"{grade}: {gain}" for grade, gain in gains.items()) + "}"
    ),
    "p": st.floats(0.01, 0.99).map(lambda p: f"{p:.4f}"),
}


@st.composite
def shared_names(draw: st.DrawFn) -> str:
    """A measure as somebody may write it, with parameters that ir_measures has too."""
    name = draw(st.sampled_from(sorted(set(MEASURES) - OURS_ONLY)))
    kind = MEASURES[name]
    known = [parameter for parameter in kind.parameters if parameter != "max_rel"]
    chosen = [parameter for parameter in known if draw(st.booleans())]
    given_values = ", ".join(f"{parameter}={draw(VALUES[parameter])}" for parameter in chosen)
    cut = kind.cutoff == "required" or (kind.cutoff == "optional" and draw(st.booleans()))
    written = draw(st.sampled_from([name, *(set(kind.aliases) - {"bpref"})]))
    return (
        written
        + (f"({given_values})" if chosen else "")
        + (f"@{draw(VALUES['cutoff'])}" if cut else "")
    )


def theirs(text: str) -> Any:
    with warnings.catch_warnings():
        # ir_measures 0.4.3 still uses ast.Num, deprecated since Python 3.12
        warnings.simplefilter("ignore", DeprecationWarning)
        return ir_measures.parse_measure(text)


@needs_their_parser
@given(text=shared_names())
def test_we_write_what_ir_measures_writes(text: str) -> None:
    ours = str(parse_measure(text))
    assert ours == str(theirs(text))
    assert str(theirs(ours)) == ours


@given(text=shared_names())
def test_round_trip(text: str) -> None:
    measure = parse_measure(text)
    again = parse_measure(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert str(again) == str(measure)


@pytest.mark.parametrize("name", sorted(set(MEASURES) - OURS_ONLY))
def test_parameters_are_those_of_ir_measures(name: str) -> None:
    known = set(ir_measures.measures.registry[name].SUPPORTED_PARAMS)
    ours = set(MEASURES[name].parameters) | ({"cutoff"} - {MEASURES[name].cutoff})
    if MEASURES[name].cutoff == "none":
        ours.discard("cutoff")
    assert ours - {"max_rel"} == known


@pytest.mark.parametrize("name", sorted(OURS_ONLY))
def test_our_own_names_are_free(name: str) -> None:
    assert name not in ir_measures.measures.registry


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("RR(rel=2)@10", "RR(rel=2)@10"),
        ("RR(rel=1)@10", "RR@10"),
        ("RR(cutoff=10)", "RR@10"),
        (" MRR @ 10 ", "RR@10"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("RBP(rel=1,p=.5)@10", "RBP(p=0.5,rel=1)@10"),
        ("RBP(p=0.5,max_rel=2)", "RBP(p=0.5,max_rel=2)"),
        ("P(rel=2)@5", "P(rel=2)@5"),
        ("ERR@20", "ERR@20"),
        ("ERR(max_rel=4)@20", "ERR@20"),
        ("bpref(rel=2)", "Bpref(rel=2)"),
        ("Success@5", "Success@5"),
        ("R@1000", "R@1000"),
        ("Unjudged@10", "Unjudged@10"),
        ("FirstRel@100", "FirstRel@100"),
        ("nDCG(gains={0:0,1:1,2:3})", "nDCG(gains={2:3})"),
        ("nDCG(gains={3:9, 2:4}, dcg='log2')@5", "nDCG(gains={2:4,3:9})@5"),
    ],
)
def test_canonical_names(text: str, canonical: str) -> None:
    assert str(parse_measure(text)) == canonical


REFUSED = {
    "measure-syntax": (
        *("", "nDCG@10@5", "__import__('os')", "nDCG(10)", "nDCG(gains={1:2)", "RR(rel=2"),
        "RR@10" + " " * 300,
    ),
    "measure-name": ("nDGC@10", "mrr@10", "ROUGE"),
    "measure-parameter": (
        *("nDCG@10;import os", "nDCG@0", "nDCG@-5", "nDCG@ten", "nDCG@10.5", "nDCG@", "P"),
        *("RR(cutoff=5)@10", "RR(rel=2,rel=2)", "RR(rell=2)", "RR(rel=0)", "RR(rel=True)"),
        *("RR(rel='2')", "RR(rel=)", "RR(judged_only=1)", "Bpref@10", "RBP(p=1.0)", "RBP(p=1)"),
        *("RBP(p=nan)", "RBP(rel=1,max_rel=2)", "nDCG(dcg='log')", "nDCG(gains={1:1,1:2})"),
        *("nDCG(gains={1:-1})", "nDCG(gains={1:99999})", "nDCG(gains={1})", "nDCG(rel=2)@10"),
        *("AWRF", "AWRF@101", "AWRF(p=0.5)@10", "AWRF(weight='linear')@10", "AWRF(rel=1)@10"),
    ),
}


@pytest.mark.parametrize(
    ("text", "code"), [(text, code) for code, texts in REFUSED.items() for text in texts]
)
def test_refused(text: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_measure(text, path="board.toml:measure")
    (problem,) = caught.value.problems
    assert problem.code == code
    assert problem.path == "board.toml:measure"
    assert problem.expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ndcg_cut_10", "did you mean nDCG@10?"),
        ("recip_rank", "did you mean RR?"),
        ("P_5", "did you mean P@5?"),
        ("nDGC@10", "did you mean nDCG@10?"),
        ("mrr@10", "did you mean RR@10?"),
        ("map@100", "did you mean AP@100?"),
        ("ndcg_cut.10", "did you mean nDCG@10?"),
        ("ndcg10", "did you mean nDCG@10?"),
        ("recall.1000", "did you mean R@1000?"),
        ("ndcg(dcg='exp-log2')@5", "did you mean nDCG(dcg='exp-log2')@5?"),
        ("RR(rell=2)", "did you mean rel?"),
    ],
)
def test_near_names_are_offered(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_measure(text)
    assert hint in caught.value.problems[0].hint
    if "rel" not in hint:
        parse_measure(hint.removeprefix("did you mean ").removesuffix("?"))


@pytest.mark.parametrize("text", ["Rprec", "Judged@10", "gm_map", "infAP", "num_ret", "alpha_nDCG"])
def test_a_measure_of_another_library_is_no_measure_of_a_board(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_measure(text)
    (problem,) = caught.value.problems
    assert problem.code == "measure-name"
    assert problem.hint == "another library computes it, for heldout evaluate: no board ranks by it"


@given(text=st.text(alphabet="nDCGRPr(){}=,:@'\".el0123 \n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        measure = parse_measure(text)
    except InputError:
        return
    assert isinstance(measure, Measure)
    assert parse_measure(str(measure)) == measure
