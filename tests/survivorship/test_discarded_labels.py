"""Labels for discarded queries of what people judged."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from heldout.ids import digest_bytes
from heldout.survivorship.discarded import judging
from heldout.trec.qrels import parse_qrels

SOURCE = {"annotators": ["ada"], "depth": 10, "systems": ["bm25"]}
JUDGED = {
    "q1": judging.JudgedPassages(answering=("d1",), others=("d2",), disputed=(), annotators=1),
    "q2": judging.JudgedPassages(answering=(), others=("d3",), disputed=(), annotators=1),
}


def rows(made: judging.MadeLabels) -> list[str]:
    return made.qrels.decode().splitlines()


def test_people_label_what_answers_and_what_does_not() -> None:
    made = judging.make_labels("first", JUDGED, SOURCE)
    assert rows(made) == ["q1 0 d1 1", "q1 0 d2 0", "q2 0 d3 0"]
    assert made.record == {
        "schema": 1,
        "name": "first",
        "made": "human",
        "queries": 2,
        "answered": 1,
        "lines": 3,
        "disputed": 0,
        "judged": SOURCE,
        "system": None,
        "qrels_sha256": digest_bytes(made.qrels),
    }


def test_what_just_half_of_them_ticked_is_no_label() -> None:
    tied = {
        "q1": judging.JudgedPassages(
            answering=("d1",), others=("d2",), disputed=("d4", "d5"), annotators=2
        ),
        "q2": judging.JudgedPassages(answering=(), others=(), disputed=("d4",), annotators=2),
    }
    own = judging.make_labels("first", tied, SOURCE)
    assert rows(own) == ["q1 0 d1 1", "q1 0 d2 0"]
    assert (own.record["disputed"], own.record["queries"]) == (3, 1)


DOCS = st.frozensets(st.sampled_from(["a", "b", "c", "d"]), min_size=1)


@given(st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), DOCS, min_size=1), st.data())
def test_labels_are_qrels(shown: Mapping[str, frozenset[str]], data: st.DataObject) -> None:
    judged = {}
    for query, docs in shown.items():
        answering = data.draw(st.frozensets(st.sampled_from(sorted(docs))))
        judged[query] = judging.JudgedPassages(
            answering=tuple(sorted(answering)),
            others=tuple(sorted(docs - answering)),
            disputed=(),
            annotators=1,
        )
    made = judging.make_labels("x", judged, SOURCE)
    read = parse_qrels(made.qrels, path="x.qrels").judgments
    assert read == {
        query: {doc: int(doc in one.answering) for doc in sorted(shown[query])}
        for query, one in judged.items()
    }
