"""A campaign of judging as annotations: who saw what first, and what was chosen."""

import pytest

from heldout.errors import InputError
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.survivorship.reading.source import annotate_campaign


def pool(query: str, *docs: str, known: str = "") -> Pool:
    return Pool(
        query=query,
        text=f"text of {query}",
        candidates=tuple(Candidate(doc=doc, text=f"of {doc}", known=doc == known) for doc in docs),
    )


def saw(query: str, left: str, right: str, *, at: str = "", answer: str | None = None) -> Judgment:
    return Judgment(query=query, left=left, right=right, preferred=left, shown_at=at, answer=answer)


POOLS = [pool("q2", "a", "b", "c", known="c"), pool("q1", "d", "e", known="e"), pool("q3", "f")]


def test_passages_stand_in_the_order_in_which_they_were_first_shown() -> None:
    found = annotate_campaign(
        POOLS,
        [
            saw("q2", "c", "a", at="2026-11-21T12:00:05.250Z"),
            saw("q2", "b", "a", at="2026-11-21T12:00:05Z"),
            saw("q2", "x", "b", at="2026-11-21T11:00:00Z", answer="b"),
            saw("q1", "d", "e", at="2026-11-21T12:00:07Z"),
        ],
        labels=None,
        source="campaign",
    )
    first, second = found.records
    assert first.shown == ("b", "a", "c")
    assert first.selected == {"c": 3}
    assert first.text == "text of q2"
    assert first.texts == {"a": "of a", "b": "of b", "c": "of c"}
    assert (second.query, second.shown, second.selected) == ("q1", ("d", "e"), {"e": 2})
    assert found.depth == 3
    assert [note.found for note in found.notes] == ["1 query of which nobody saw a passage"]


def test_labels_take_the_place_of_the_known_answer_and_select_only_what_was_shown() -> None:
    found = annotate_campaign(
        POOLS,
        [saw("q2", "a", "b"), saw("q1", "d", "e")],
        labels={"q2": {"a", "c"}},
        source="campaign",
    )
    assert [dict(one.selected) for one in found.records] == [{"a": 1}, {}]
    assert (found.survived, found.discarded) == (1, 1)


def test_passages_of_challengers_join_the_pool_of_their_query() -> None:
    found = annotate_campaign(
        [*POOLS, pool("q1", "new")], [saw("q1", "new", "e")], labels=None, source="campaign"
    )
    (record,) = found.records
    assert record.shown == ("new", "e")


def test_a_campaign_that_nobody_saw_is_refused() -> None:
    only_tests = [saw("q1", "d", "x", answer="d")]
    with pytest.raises(InputError) as caught:
        annotate_campaign(POOLS, only_tests, labels=None, source="campaign")
    assert caught.value.problems[0].code == "no-judgments"
