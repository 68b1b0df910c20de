"""The table of methods: names, parameters, refusals."""

import sys

import pytest
from small_task import small_task

from heldout.errors import InputError, SetupError
from heldout.ids import QueryId
from heldout.rankers.methods import METHODS, choose_method, choose_reranker


def refused(method: str, **parameters: str) -> str:
    with pytest.raises(InputError) as caught:
        choose_method(method, parameters)
    (problem,) = caught.value.problems
    return problem.code


def test_names_are_the_contract() -> None:
    words = ["bm25", "tfidf", "query-likelihood", "rm3", "char-ngrams", "fusion"]
    neural = ["hybrid", "dense", "colbert", "cross-encoder", "monot5", "duot5"]
    assert list(METHODS) == [*words, *neural]


def test_an_unknown_method_or_parameter_is_refused() -> None:
    assert refused("bm26") == "rank-method"
    assert refused("monot5") == "rank-method"
    assert refused("bm25", k2="1") == "rank-parameter"


NO_VALUES = {
    "bm25": ("k1=-0.1", "k1=nan", "k1=inf", "k1=many", "b=1.1", "stem=perhaps"),
    "query-likelihood": ("mu=0", "lam=1", "smoothing=none"),
    "rm3": ("documents=0", "terms=1.5", "original=2", "b=-1"),
    "char-ngrams": ("length=0",),
    "fusion": ("of=bm25,fusion", "of=", "k=-1", "rule=max", "of=bm25,monot5"),
    "dense": ("batch=0", "similarity=euclidean", "device=tpu"),
    "colbert": ("batch=0",),
}


@pytest.mark.parametrize(
    ("method", "given"), [(method, one) for method, all_ in NO_VALUES.items() for one in all_]
)
def test_a_value_that_does_not_fit_is_refused(method: str, given: str) -> None:
    name, _, value = given.partition("=")
    assert refused(method, **{name: value}) == "rank-parameter"


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("bm25", {"k1": "2.0"}),
        ("bm25", {"b": "0.9"}),
        ("bm25", {"stem": "false"}),
        ("tfidf", {"stopwords": "true"}),
        ("query-likelihood", {"mu": "20"}),
        ("query-likelihood", {"smoothing": "jelinek-mercer"}),
        ("rm3", {"documents": "1"}),
        ("rm3", {"original": "0.1"}),
        ("char-ngrams", {"length": "2"}),
        ("fusion", {"rule": "combsum"}),
        ("fusion", {"of": "bm25, tfidf", "k": "1"}),
    ],
)
def test_each_parameter_changes_the_run(method: str, parameters: dict[str, str]) -> None:
    task = small_task()
    assert choose_method(method, parameters)(task) != choose_method(method, {})(task)


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [
        ("bm25", "bm25s", "rankers"),
        ("rm3", "bm25s", "rankers"),
        ("dense", "torch", "neural"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, method: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SetupError, match=rf"pip install 'heldout\[{extra}\]'"):
        choose_method(method, {})(small_task())


def test_word_methods_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bm25s", "Stemmer", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, module, None)
    for method in ("tfidf", "query-likelihood", "char-ngrams"):
        assert choose_method(method, {})(small_task())[QueryId("7")][0].document == "d3"


def test_which_methods_rank_and_which_re_rank() -> None:
    assert [name for name, row in METHODS.items() if row.rank is None] == [
        "cross-encoder",
        "monot5",
        "duot5",
    ]
    assert [name for name, method in METHODS.items() if method.load] == [
        *("dense", "colbert", "cross-encoder", "monot5", "duot5")
    ]
    with pytest.raises(InputError, match="rank-method --method: found bm25, which re-ranks"):
        choose_reranker("bm25", {})


@pytest.mark.parametrize("method", ["dense", "colbert", "cross-encoder", "monot5", "duot5"])
def test_a_re_ranker_without_torch_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SetupError, match=r"torch: pip install 'heldout\[neural\]'"):
        choose_reranker(method, {})()


def test_a_fusion_says_of_what_it_can_be_made() -> None:
    with pytest.raises(InputError, match=r"k in 0\.\.1000000, and of made of bm25, char-ngrams"):
        choose_method("fusion", {"k": "-1"})
