"""What `board new` and `board describe` tell of query sets."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from certain import sure
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heldout.board.scores import describe as overlap
from heldout.board.scores.describe import (
    ASSUMED,
    Description,
    describe_collection,
    describe_sets,
    find_overlap,
    find_unit,
    list_columns,
    normalise,
    resolve,
)
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.cli.printing import fill_facts
from heldout.trec.qrels import Qrels, parse_qrels
from heldout.trec.queries import Queries, parse_queries


def list_notes(description: Description) -> tuple[str, ...]:
    return tuple(text for _, text in fill_facts("described_notes", about=description)[1:])


def list_warnings(description: Description) -> list[str]:
    return [text for _, text in fill_facts("described_warnings", about=description)]


QUERIES = b"1\thow to sort a list\n2\twhat is a tuple\n3\tWhat is a  tuple?\n4\tset union\n"
QRELS = b"1 0 a 2\n1 0 b 0\n2 0 a 0\n2 0 c -1\n3 0 c 1\n9 0 x 1\n9 0 y 0\n8 0 x 1\n"


def queries(data: bytes) -> Queries:
    return parse_queries(data, path="q")


def qrels(data: bytes) -> Qrels:
    return parse_qrels(data, path="j")


def test_labels_are_counted_by_hand() -> None:
    facts = describe_sets({"dev": (queries(QUERIES), qrels(QRELS))}).sets[0]
    labels = sure(facts.labels)
    assert (facts.queries, facts.mean_length, facts.repeated) == (4, (5 + 4 + 4 + 2) / 4, 1)
    assert (labels.judgments, labels.judgments_per_query) == (5, 5 / 4)
    assert labels.relevant_per_query == 2 / 4
    assert list(labels.grades.items()) == [(-1, 1), (0, 2), (1, 1), (2, 1)]
    assert (labels.judged, labels.unjudged, labels.without_relevant) == (3, 1, 1)
    assert (labels.outside, labels.outside_queries) == (3, 2)
    assert facts.resolution.queries == 3


def test_excluded_queries_leave_n_but_not_the_table() -> None:
    given = {"dev": (queries(QUERIES), qrels(QRELS))}
    labels = sure(describe_sets(given, excluded={"dev": {"2", "4"}}).sets[0].labels)
    assert (labels.judgments, labels.judged, labels.excluded) == (5, 2, 1)
    assert (labels.unjudged, labels.without_relevant) == (1, 0)


def test_without_labels_nothing_is_made_up() -> None:
    description = describe_sets({"eval": (queries(QUERIES), None)})
    facts = description.sets[0]
    assert facts.labels is None
    assert facts.why == "no labels given"
    assert facts.resolution.queries == 4
    assert list_columns(description)[1] == ("eval", "4", "3.75", "-", "-", "-")


def test_one_judged_query_has_no_resolution() -> None:
    description = describe_sets({"e": (queries(b"1\tx\n2\ty\n"), qrels(b"1 0 a 1\n"))})
    assert description.sets[0].resolution.difference is None
    assert "1 judged queries; a paired test needs two" in list_notes(description)[-1]


def test_empty_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="dev has no query"):
        describe_sets({"dev": (Queries(texts={}, digest=queries(QUERIES).digest), None)})
    with pytest.raises(ValueError, match="no document"):
        describe_collection([])


def test_notes_say_what_was_found_and_nothing_else() -> None:
    described = describe_sets({"dev": (queries(QUERIES), qrels(QRELS))})
    assert list_notes(described)[:-1] == (
        "1 dev queries repeat the text of an earlier one",
        "1 dev queries have no judgment and are left out",
        "1 dev queries are judged and have no relevant document: they count 0 for every run",
    )
    (warning,) = list_warnings(described)
    assert warning.startswith("3 judgments of 2 queries outside the query file of dev")
    clean = describe_sets({"a": (queries(b"1\tone\n2\ttwo\n"), qrels(b"1 0 a 1\n2 0 a 1\n"))})
    assert len(list_notes(clean)) == 1


def test_notes_on_two_sets() -> None:
    eval_queries = queries(
        b"1\tother\n5\tSET UNION\n6\thow to sort a list?\n8\thow to sort a list in\n7\tunseen\n"
    )
    described = describe_sets({"dev": (queries(QUERIES), None), "eval": (eval_queries, None)})
    notes = list_notes(described)
    (warning,) = list_warnings(described)
    assert warning == "1 query in both dev and eval, 1 of them with another text"
    assert "2 eval queries have the text of a query in dev under another id" in notes
    assert any(note.startswith("1 eval queries are near-duplicates of one") for note in notes)


@pytest.mark.real
def test_passage_dev_row_of_table_1(data: Callable[[str], Path]) -> None:
    """Lin et al. 2022, Table 1: 6,980 queries, 5.92 tokens, 7,437 judgments, 1.07, 1.07."""
    given = queries(data("qrels/queries.msmarco-passage.dev-subset.tsv.gz").read_bytes())
    labels = qrels(data("qrels/qrels.msmarco-passage.dev-subset.txt.gz").read_bytes())
    row = list_columns(describe_sets({"dev": (given, labels)}))[1]
    assert row == ("dev", "6,980", "5.92", "7,437", "1.07", "1.07")


@pytest.mark.real
def test_document_dev_row_of_table_1(data: Callable[[str], Path]) -> None:
    """Lin et al. 2022, Table 1: 5,193 queries, 5.89 tokens, 5,193 judgments, 1.0, 1.0.

    Its queries are those passage dev queries that have a judged document.
    """
    labels = qrels(data("qrels/qrels.msmarco-doc.dev.txt.gz").read_bytes())
    passage = queries(data("qrels/queries.msmarco-passage.dev-subset.tsv.gz").read_bytes())
    texts = {query: passage.texts[query] for query in labels.judgments}
    row = list_columns(describe_sets({"d": (Queries(texts=texts, digest=passage.digest), labels)}))
    assert row[1] == ("d", "5,193", "5.89", "5,193", "1.00", "1.00")


words = st.sampled_from(["list", "lists", "sort", "sorted", "a", "an", "tuple", "of", "keys"])
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
query_sets = st.dictionaries(st.sampled_from([str(n) for n in range(9)]), texts, max_size=6)


def plain_near(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, float]:
    """Query of theirs -> greatest cosine with another, by loops and dictionaries."""

    def grams(text: str) -> Counter[str]:
        padded = f" {text} "
        return Counter(padded[i : i + 3] for i in range(len(padded) - 2))

    every = [grams(text) for text in (*ours.values(), *theirs.values())]
    frequency = Counter(gram for one in every for gram in one)
    weight = {gram: 1 + math.log(len(every) / n) for gram, n in frequency.items()}

    def cosine(a: Counter[str], b: Counter[str]) -> float:
        dot = sum(n * b[gram] * weight[gram] ** 2 for gram, n in a.items())
        norms = [math.hypot(*(n * weight[g] for g, n in one.items())) for one in (a, b)]
        return dot / norms[0] / norms[1]

    best: dict[str, float] = {}
    for query, text in theirs.items():
        near = [cosine(grams(text), grams(t)) for q, t in ours.items() if q != query and t != text]
        if near:
            best[query] = max(near)
    return best


@given(query_sets, query_sets, st.sampled_from([0.3, 0.5, 0.8]))
def test_every_near_pair_is_found(a: dict[str, str], b: dict[str, str], threshold: float) -> None:
    expected = {q: c for q, c in plain_near(a, b).items() if c >= threshold}
    assert overlap.find_near(a, b, threshold) == pytest.approx(expected)
    assert find_overlap(("a", a), ("b", b), threshold=threshold).near == len(expected)


@given(query_sets, query_sets)
def test_shared_ids_and_texts(a: dict[str, str], b: dict[str, str]) -> None:
    found = find_overlap(("a", a), ("b", b))
    assert found.same_id == len(a.keys() & b.keys())
    assert found.same_id_other_text == sum(a[q] != b[q] for q in a.keys() & b.keys())
    same = {q for q in b if any(b[q] == a[other] for other in a if other != q)}
    assert found.same_text == len(same)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a = {str(n): f"how to {word} a list" for n, word in enumerate(["sort", "copy", "join", "cut"])}
    b = {f"x{n}": f"how do i {word} lists" for n, word in enumerate(["sorted", "copy", "jam"])}
    whole = find_overlap(("a", a), ("b", b), threshold=0.4)
    monkeypatch.setattr(overlap, "_CELLS", 1)
    assert find_overlap(("a", a), ("b", b), threshold=0.4) == whole
    assert whole.near > 0


def test_a_set_and_itself_share_ids_and_nothing_else() -> None:
    one = {"1": "what is a tuple", "2": "sort keys"}
    found = find_overlap(("a", one), ("b", one))
    assert (found.same_id, found.same_id_other_text) == (2, 0)
    assert (found.same_text, found.near) == (0, 0)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("What  is a Tuple?", "what is a tuple"),
        ("\uff37hat is a tuple", "what is a tuple"),
        ("STRASSE", "stra\u00dfe"),
        ("snake_case", "snake case"),
        ("\u2026", "..."),
    ],
)
def test_texts_that_are_the_same(text: str, same: str) -> None:
    assert normalise(text) == normalise(same)


@pytest.mark.parametrize(("text", "other"), [("???", "!!!"), ("c 1", "c 2"), ("ab", "a b")])
def test_texts_that_are_not(text: str, other: str) -> None:
    assert normalise(text) != normalise(other)


@pytest.mark.parametrize("threshold", [0, -1, 1.1])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(ValueError, match=str(threshold)):
        find_overlap(("a", {}), ("b", {}), threshold=threshold)


@pytest.mark.real
def test_seven_thousand_by_seven_thousand(data: Callable[[str], Path]) -> None:
    file = data("qrels/queries.msmarco-passage.dev-subset.tsv.gz")
    given_texts = dict(parse_queries(file.read_bytes(), path="q").texts)
    renamed = {f"x{query}": text for query, text in given_texts.items()}
    start = time.process_time()
    found = find_overlap(("dev", given_texts), ("eval", renamed))
    assert time.process_time() - start < 20
    assert found.same_text == len(given_texts)
    assert found.near == 29


def find_power(queries: int, difference: float, deviation: float) -> float:
    """Power of the two-sided paired t test at .05, by the noncentral t distribution."""
    freedom = queries - 1
    edge = stats.t.ppf(0.975, freedom)
    shift = difference / deviation * math.sqrt(queries)
    return float(stats.nct.sf(edge, freedom, shift) + stats.nct.cdf(-edge, freedom, shift))


def test_a_thousand_queries_tell_three_hundredths_apart() -> None:
    found = resolve(1050)
    assert found.difference == pytest.approx(0.0281, abs=5e-5)
    assert (found.alpha, found.power, found.deviation) == (0.05, 0.8, ASSUMED)
    assert "0.40" in found.assumed
    assert "0.67" in found.assumed


@pytest.mark.parametrize("queries", [50, 1050, 6980])
def test_the_power_is_the_one_asked_for(queries: int) -> None:
    found = resolve(queries)
    assert find_power(queries, sure(found.difference), ASSUMED) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("queries", [0, 1])
def test_too_few_queries_have_no_number(queries: int) -> None:
    found = resolve(queries)
    assert found.difference is None
    assert found.why == f"{queries} judged queries; a paired test needs two"


def test_u_is_that_of_two_systems_that_differ_least_and_are_no_near_copies() -> None:
    queries = [f"q{i}" for i in range(40)]
    good = {query: float(i % 2) for i, query in enumerate(queries)}
    equal = {query: float(i % 4 > 1) for i, query in enumerate(queries)}
    copy = good | dict.fromkeys(queries[: FEWEST_DIFFERENT - 1], 0.5)
    weak = dict.fromkeys(queries, 0.1)
    unit = sure(find_unit({"weak": weak, "good": good, "copy": copy, "equal": equal}))
    assert {unit.a, unit.b} == {"good", "equal"}
    squares = sum((good[query] - equal[query]) ** 2 for query in queries)
    assert unit.size == pytest.approx(math.sqrt(squares / 39 / 40))
    assert find_unit({"good": good, "copy": copy}) is None
    assert find_unit({}) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=12, max_size=30))
def test_u_does_not_depend_on_undefined_queries(pairs: list[tuple[float, float]]) -> None:
    one: dict[str, float | None] = {f"q{i}": a for i, (a, _) in enumerate(pairs)}
    other: dict[str, float | None] = {f"q{i}": b for i, (_, b) in enumerate(pairs)}
    unit = find_unit({"one": one, "other": other})
    assert unit == find_unit({"one": one | {"x": None, "y": 0.3}, "other": other | {"x": 0.9}})
