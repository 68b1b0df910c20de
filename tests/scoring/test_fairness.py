"""AWRF held against its definition in plain loops, with SciPy's Jensen-Shannon distance."""

import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import from_list
from scipy.spatial.distance import jensenshannon

from heldout.errors import InputError
from heldout.scoring.evaluate import MeasureScores, evaluate
from heldout.scoring.fairness import Exposures, read_target
from heldout.scoring.measures import parse_measure
from heldout.trec.groups import DocumentGroups, read_document_groups
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Signature

NAMES = [f"d{number}" for number in range(12)]
GROUPS = ["A", "B", "C"]
LISTS = st.lists(st.sampled_from(NAMES), max_size=12, unique=True)
MEMBERS = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 5), min_size=1),
    min_size=1,
)
TARGETS = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)
WEIGHTS = ("weight='geometric'", "weight='geometric',p=.3")
MEASURES = st.sampled_from(
    ["AWRF@1", "AWRF@5", "AWRF@10", f"AWRF({WEIGHTS[0]})@10", f"AWRF({WEIGHTS[1]})@4"]
)


def sign(lists: Mapping[str, Sequence[str]]) -> Signature:
    documents = np.zeros((len(lists), 100), np.uint64)
    for row, query in enumerate(sorted(lists)):
        hashes = hash_documents([name.encode() for name in lists[query]])
        documents[row, : len(hashes)] = hashes
    return Signature(queries=tuple(sorted(lists)), documents=documents)


def groups_of(members: Mapping[str, Mapping[str, float]]) -> DocumentGroups:
    rows = [f"{d}\t{g}\t{w}\n" for d, every in members.items() for g, w in every.items()]
    return read_document_groups(io.BytesIO("".join(rows).encode()), path="groups")


def measure_run(
    name: str,
    lists: Mapping[str, Sequence[str]],
    members: Mapping[str, Mapping[str, float]],
    *,
    target: Mapping[str, float] | None = None,
    judgments: Mapping[str, Mapping[str, int]] | None = None,
) -> MeasureScores:
    groups = groups_of(members)
    shares = read_target(groups, target, path="groups")
    exposures = Exposures(signature=sign(lists), groups=groups, target=shares)
    qrels = judgments or {query: {"d0": 1} for query in lists}
    rankings = {q: from_list(ds, qrels.get(q, {})) for q, ds in lists.items() if ds}
    measure = parse_measure(name)
    return evaluate(rankings, qrels, [measure], exposures=exposures).scores[measure]


def awrf(
    name: str,
    documents: Sequence[str],
    members: Mapping[str, Mapping[str, float]],
    target: Mapping[str, float] | None = None,
) -> float | None:
    return measure_run(name, {"q": documents}, members, target=target).value(0)


def plain_awrf(
    name: str,
    documents: Sequence[str],
    members: Mapping[str, Mapping[str, float]],
    target: Mapping[str, float],
) -> float | None:
    params = parse_measure(name).params
    exposure = dict.fromkeys(target, 0.0)
    for place, document in enumerate(documents[: params.cutoff]):
        log2 = 1 / math.log2(max(place + 1, 2))
        weight = params.p**place if params.weight == "geometric" else log2
        every = members.get(document, {})
        for group, share in every.items():
            exposure[group] += weight * share / sum(every.values())
    if not sum(exposure.values()):
        return None
    return 1 - float(jensenshannon(list(exposure.values()), list(target.values()))) ** 2


@given(name=MEASURES, documents=LISTS.filter(bool), members=MEMBERS, shares=TARGETS)
def test_equal_to_its_definition(
    name: str, documents: list[str], members: dict[str, dict[str, float]], shares: list[int]
) -> None:
    members = {**members, "elsewhere": dict.fromkeys(GROUPS, 1)}  # so that every group is there
    target = {group: share / sum(shares) for group, share in zip(GROUPS, shares, strict=True)}
    ours = awrf(name, documents, members, target)
    theirs = plain_awrf(name, documents, members, target)
    if theirs is None or ours is None:
        assert ours == theirs
    else:
        assert ours == pytest.approx(theirs, abs=1e-9)
        assert LOWEST <= ours <= 1


A_AND_B = {"d0": {"A": 1.0}, "d1": {"B": 1.0}, "d2": {"A": 1.0}, "d3": {"B": 1.0}}
EVEN = {"A": 0.5, "B": 0.5}
LOWEST = 1 - math.log(2) - 1e-12


@pytest.mark.parametrize(
    ("documents", "target", "expected"),
    [
        # all attention to A: JSD of (1, 0) and (1/2, 1/2) is 1.5 ln 2 - 0.75 ln 3, by hand
        (["d0"], EVEN, 1 - (1.5 * math.log(2) - 0.75 * math.log(3))),
        (["d0", "d2"], EVEN, 1 - (1.5 * math.log(2) - 0.75 * math.log(3))),
        (["d0"], {"A": 1.0, "B": 0.0}, 1.0),
        (["d0", "d2"], {"A": 0.0, "B": 1.0}, LOWEST),
        # the first two positions count alike
        (["d0", "d1"], EVEN, 1.0),
    ],
)
def test_cases_by_hand(documents: list[str], target: dict[str, float], expected: float) -> None:
    assert awrf("AWRF@10", documents, A_AND_B, target) == pytest.approx(expected, abs=1e-12)


def test_the_third_position_weighs_less_than_the_first_two() -> None:
    first, third = 2.0, 1 / math.log2(3)
    target = {"A": first / (first + third), "B": third / (first + third)}
    assert awrf("AWRF@3", ["d0", "d2", "d1"], A_AND_B, target) == pytest.approx(1, abs=1e-12)
    other = awrf("AWRF@3", ["d0", "d1", "d2"], A_AND_B, target)
    assert other is not None
    assert other < 0.99
    geometric = {"A": 1 / 1.25, "B": 0.25 / 1.25}
    name = "AWRF(weight='geometric',p=0.25)@2"
    assert awrf(name, ["d0", "d1"], A_AND_B, geometric) == pytest.approx(1, abs=1e-12)


def test_without_a_target_it_is_the_share_of_the_documents() -> None:
    members = {"d0": {"A": 1.0}, "d1": {"B": 1.0}, "d2": {"B": 1.0}, "d3": {"B": 1.0}}
    declared = {"A": 0.25, "B": 0.75}
    assert awrf("AWRF@4", ["d0", "d1"], members) == awrf("AWRF@4", ["d0", "d1"], members, declared)


def test_a_list_of_unknown_documents_has_no_awrf_and_an_unanswered_query_counts_0() -> None:
    lists = {"q1": ["d0"], "q2": ["new"], "q3": []}
    found = measure_run("AWRF@5", lists, A_AND_B, target={"A": 1.0, "B": 0.0})
    assert [found.value(i) for i in range(3)] == [1.0, None, 0.0]
    assert (found.mean, found.n) == (0.5, 2)


def test_a_run_of_unknown_documents_alone_has_no_mean_and_says_why() -> None:
    found = measure_run("AWRF@5", {"q": ["new", "newer"]}, A_AND_B)
    assert (found.mean, found.n) == (None, 0)
    assert found.why == "no list has a document of a known group"


def test_below_the_cutoff_nothing_counts() -> None:
    assert awrf("AWRF@2", ["new", "newer", "d0"], A_AND_B) is None


def test_the_product_is_that_of_both_measures_on_sparse_labels() -> None:
    lists = {"q1": ["d1", "d0", "d2"], "q2": ["d2", "d1"], "q3": ["new"]}
    judgments = {"q1": {"d0": 1}, "q2": {"d9": 1}, "q3": {"new": 1}}
    both = measure_run("nDCG_AWRF@3", lists, A_AND_B, judgments=judgments)
    fair = measure_run("AWRF@3", lists, A_AND_B, judgments=judgments)
    assert both.value(0) == pytest.approx(fair.value(0), abs=1e-12)  # of rank 2 nothing is taken
    assert both.value(1) == 0
    assert both.value(2) is None  # nDCG is 1, but nobody knows how fair the list is


def test_without_groups_it_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        evaluate({}, {"q": {"d": 1}}, [parse_measure("AWRF@10")])
    assert [problem.code for problem in caught.value.problems] == ["needs-groups"]


@pytest.mark.parametrize(
    ("target", "group", "place"),
    [({"A": 1.0}, "B", "in the file only"), ({**EVEN, "Z": 0.0}, "Z", "in the target only")],
)
def test_a_target_and_a_file_of_other_groups_are_refused(
    target: dict[str, float], group: str, place: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_target(groups_of(A_AND_B), target, path="labels/x.groups")
    assert caught.value.problems[0].code == "unknown-group"
    assert group in caught.value.problems[0].found
    assert place in caught.value.problems[0].found


@pytest.mark.parametrize(
    "text", ["AWRF@10", "AWRF(weight='geometric')@20", "nDCG_AWRF(dcg='exp-log2')@10"]
)
def test_names_come_back(text: str) -> None:
    assert str(parse_measure(text)) == text


def test_a_hundred_thousand_documents_are_found_again() -> None:
    """As far as hashes can be wrong, none is."""
    rows = "".join(f"D{i}\t{'AB'[i % 2]}\n" for i in range(100_000))
    groups = read_document_groups(io.BytesIO(rows.encode()), path="groups")
    asked = hash_documents([f"D{i}".encode() for i in range(-500, 100_500)])
    found = groups.find(asked)
    assert (found < 0).sum() == 1000
    assert groups.shares() == {"A": 0.5, "B": 0.5}


def trec_fair(
    documents: Sequence[str],
    relevant: Sequence[str],
    members: Mapping[str, Mapping[str, float]],
    target: Mapping[str, float],
    *,
    length: int,
) -> tuple[float, float]:
    """nDCG and AWRF as the code of TREC Fair Ranking 2022 has them, restated with its libraries."""
    listed = documents[:length]
    discount = np.reciprocal(np.log2(np.maximum(np.arange(1, length + 1, dtype="f4"), 2)))
    gain = np.isin(listed, relevant).astype("f4")
    ndcg = (gain * discount[: len(listed)]).sum() / discount[: min(length, len(relevant))].sum()
    known = np.array([document in members for document in listed])
    rows = [members[document] for document in listed if document in members]
    shares = np.array([[row.get(g, 0) / sum(row.values()) for g in target] for row in rows])
    weights = discount[: len(listed)][known]
    exposure = (shares * weights[:, np.newaxis]).sum(axis=0) / weights.sum()
    distance = jensenshannon(exposure, list(target.values()))
    return float(ndcg), float(1 - distance * distance)


@given(
    documents=LISTS.filter(bool),
    relevant=st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    members=MEMBERS,
    shares=TARGETS,
    length=st.integers(1, 12),
)
def test_equal_to_what_trec_fair_ranking_2022_computes(
    documents: list[str],
    relevant: list[str],
    members: dict[str, dict[str, float]],
    shares: list[int],
    length: int,
) -> None:
    """To the float32 of its discounts."""
    members = {**members, "elsewhere": dict.fromkeys(GROUPS, 1)}
    target = {group: share / sum(shares) for group, share in zip(GROUPS, shares, strict=True)}
    judgments = {"q": dict.fromkeys(relevant, 1)}
    if not any(document in members for document in documents[:length]):
        assert awrf(f"AWRF@{length}", documents, members, target) is None
        return
    ndcg, fair = trec_fair(documents, relevant, members, target, length=length)

    both = measure_run(
        f"nDCG_AWRF@{length}", {"q": documents}, members, target=target, judgments=judgments
    )
    assert awrf(f"AWRF@{length}", documents, members, target) == pytest.approx(fair, abs=2e-6)
    assert both.value(0) == pytest.approx(ndcg * fair, abs=2e-6)
