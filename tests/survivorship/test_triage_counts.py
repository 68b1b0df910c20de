"""Why queries were discarded: the sample, the counts, what annotators agree on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_samples import annotations, answer, question
from statsmodels.stats.inter_rater import cohens_kappa, to_table
from statsmodels.stats.proportion import proportion_confint

from heldout.errors import InputError
from heldout.judging.campaign.judgments import Judgment
from heldout.survivorship.discarded import triage

LABELS: tuple[triage.TriageLabel, ...] = ("no_ans", "partial_ans", "wrong_lab", "ill_form")
TABLE_1 = {"dev": (70, 15, 14, 1), "train": (36, 5, 6, 3)}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def said(query: str, label: str, *, by: str = "ada") -> Judgment:
    docs = ("d1",) if label in ("partial_ans", "wrong_lab") else ()
    return answer(query, label, *docs, by=by)


def test_the_counts_of_the_study_come_out() -> None:
    labels = {
        f"{split}-{number}": label
        for split, counts in TABLE_1.items()
        for number, label in enumerate(
            label for label, count in zip(LABELS, counts, strict=True) for _ in range(count)
        )
    }
    questions = [question(one, "d1", split=one.partition("-")[0]) for one in labels]
    found = triage.count_labels(questions, [said(query, label) for query, label in labels.items()])
    for counts in found.splits:
        expected = TABLE_1[counts.split]
        assert tuple(counts.labels[label].count for label in LABELS) == expected
        assert (counts.total, counts.disputed, counts.open) == (sum(expected), 0, 0)
    together = found.all.labels
    assert (together["wrong_lab"].count, together["wrong_lab"].of) == (20, 150)
    assert together["ill_form"].count == 4
    low, high = proportion_confint(20, 150, method="wilson")
    assert (together["wrong_lab"].low, together["wrong_lab"].high) == pytest.approx((low, high))
    assert len(triage.sound_queries(questions, found)) == 126


def test_most_annotators_decide_and_a_draw_is_disputed() -> None:
    questions = [question(name, "d1") for name in ("q1", "q2", "q3", "q4")]
    answers = [
        said("q1", "no_ans"),
        said("q1", "no_ans", by="bob"),
        said("q1", "ill_form", by="cy"),
        said("q2", "no_ans"),
        said("q2", "wrong_lab", by="bob"),
        said("q3", "cannot"),
    ]
    found = triage.count_labels(questions, answers)
    assert found.labels == {"q1": "no_ans"}
    assert (found.all.total, found.all.disputed, found.all.open) == (1, 1, 2)
    assert (found.annotators, found.cannot) == (("ada", "bob", "cy"), 1)


def test_the_last_answer_of_an_annotator_counts() -> None:
    answers = [said("q1", "wrong_lab"), said("q1", "ill_form")]
    assert triage.count_labels([question("q1", "d1")], answers).labels == {"q1": "ill_form"}


def test_without_an_answer_no_share_is_told() -> None:
    found = triage.count_labels([question("q1", "d1")], [])
    share = found.all.labels["no_ans"]
    assert (share.count, share.of, share.share, share.low) == (0, 0, None, None)
    assert found.all.open == 1


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.sampled_from(["ada", "bob", "cy"])),
        st.sampled_from([*LABELS, "cannot"]),
    )
)
def test_every_query_is_labelled_disputed_or_open(given_labels: dict[tuple[int, str], str]) -> None:
    questions = [question(f"q{n}", "d1", split=f"s{n % 2}") for n in range(6)]
    answers = [said(f"q{n}", label, by=by) for (n, by), label in given_labels.items()]
    found = triage.count_labels(questions, answers)
    for one in (*found.splits, found.all):
        assert sum(share.count for share in one.labels.values()) == one.total
    assert found.all.total + found.all.disputed + found.all.open == 6
    assert found.all.total == sum(one.total for one in found.splits) == len(found.labels)


def test_two_annotators_have_kappa_and_alpha() -> None:
    ada = ["no_ans", "no_ans", "wrong_lab", "ill_form", "partial_ans", "no_ans"]
    bob = ["no_ans", "wrong_lab", "wrong_lab", "ill_form", "no_ans", "no_ans"]
    answers = [said(f"q{n}", label) for n, label in enumerate(ada)]
    answers += [said(f"q{n}", label, by="bob") for n, label in enumerate(bob)]
    pairs = [[LABELS.index(label) for label in both] for both in zip(ada, bob, strict=True)]
    table = to_table(pairs, bins=4)[0]
    found = triage.triage_agreement(answers, rng())
    assert found.alpha.units == 6
    assert found.alpha.value is not None
    assert found.kappa["ada", "bob"].value == pytest.approx(cohens_kappa(table).kappa)
    assert found.interval is not None
    assert found.interval[0] <= found.alpha.value <= found.interval[1]


def test_one_annotator_agrees_with_nobody() -> None:
    found = triage.triage_agreement([said("q1", "no_ans")], rng())
    assert (found.alpha.value, found.kappa) == (None, {})
    assert found.alpha.why == "no unit has two ratings"


def test_discarded_queries_are_drawn_and_nothing_else() -> None:
    source = annotations({"q1": ["d1"], "q2": ["d2", "d3"], "q3": ["d4"], "q4": []}, {"q1": "d1"})
    drawn = triage.draw_discarded(source, count=2, rng=rng(), split="dev")
    assert {one.query for one in drawn} == {"q2", "q3"}
    (two,) = (one for one in drawn if one.query == "q2")
    assert [one.doc for one in two.candidates] == ["d2", "d3"]
    assert (two.text, two.candidates[0].text, two.split) == ("what is q2", "text of d2", "dev")


def test_the_same_seed_draws_the_same_queries() -> None:
    source = annotations({f"q{n}": [f"d{n}"] for n in range(50)})
    first = triage.draw_discarded(source, count=10, rng=rng(3))
    assert first == triage.draw_discarded(source, count=10, rng=rng(3))
    assert first != triage.draw_discarded(source, count=10, rng=rng(4))


def test_more_queries_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match=r"too-few-queries.*1 discarded query with passages"):
        triage.draw_discarded(annotations({"q1": ["d1"]}), count=2, rng=rng())


def test_a_source_without_discarded_queries_is_refused() -> None:
    source = annotations({"q1": ["d1"]}, {"q1": "d1"}, counts_discarded=False)
    with pytest.raises(InputError, match="no-discarded"):
        triage.draw_discarded(source, count=1, rng=rng())


def test_texts_are_needed() -> None:
    source = annotations({"q1": ["d1"]})
    (record,) = source.records
    bare = type(record)(query=record.query, shown=record.shown)
    with pytest.raises(InputError) as caught:
        triage.draw_discarded(
            type(source)(
                source="a", records=[bare], depth=10, open_ended=False, counts_discarded=True
            ),
            count=1,
            rng=rng(),
        )
    assert [one.found for one in caught.value.problems] == ["no text for q1", "no text for d1"]
