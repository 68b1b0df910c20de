"""JSON of triage and answerable: nothing is null without a why beside it."""

import json
from typing import Any

import numpy as np
import pytest
from question_samples import answer, question

from heldout.judging.campaign.judgments import Judgment
from heldout.survivorship.discarded.answerable import SystemTop, first_ranks, report_reach
from heldout.survivorship.discarded.judging import judge_agreement, judged_passages
from heldout.survivorship.discarded.triage import count_labels, report_triage, triage_agreement

ASKED = [question(f"q{n}", "d1", "d2") for n in range(3)]


def unexplained(value: Any, place: str = "") -> list[str]:
    """RunPositions of nulls in an object without a why; a why may itself be null."""
    if isinstance(value, list):
        return [one for n, item in enumerate(value) for one in unexplained(item, f"{place}[{n}]")]
    if not isinstance(value, dict):
        return []
    lost = [f"{place}.{key}" for key, item in value.items() if item is None and key != "why"]
    own = [] if value.get("why") else lost
    return own + [one for key, item in value.items() for one in unexplained(item, f"{place}.{key}")]


def both(name: str, other: str, *docs: str) -> list[Judgment]:
    """Two annotators on all queries: one says this, the other that."""
    ticked = docs if other != "unanswered" else ()
    return [
        one
        for query in ASKED
        for one in (answer(query.query, name, *docs), answer(query.query, other, *ticked, by="bob"))
    ]


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [answer("q0", "cannot")],
        [answer("q0", "no_ans")],
        both("no_ans", "no_ans"),
        both("no_ans", "ill_form"),
        both("no_ans", "no_ans")[:2] + both("ill_form", "ill_form")[2:],
        both("no_ans", "ill_form")[:2] + both("ill_form", "no_ans")[2:],
    ],
)
def test_triage_says_why_where_a_number_is_missing(answers: list[Judgment]) -> None:
    found = count_labels(ASKED, answers)
    agreement = triage_agreement(answers, np.random.default_rng(0))
    document = report_triage(found, agreement, level=0.95).document
    assert unexplained(json.loads(json.dumps(document))) == []


@pytest.mark.parametrize("systems", [("bm25",), ("bm25", "dense")])
@pytest.mark.parametrize(
    "answers",
    [
        [],
        [answer("q0", "cannot")],
        [answer("q0", "answered", "d1")],
        both("answered", "answered", "d1"),
        both("answered", "unanswered", "d1"),
        both("answered", "unanswered", "d1")[:2],
        both("answered", "unanswered", "d1")[:2] + both("answered", "answered", "d2")[2:],
    ],
)
def test_answerable_says_why_where_a_number_is_missing(
    answers: list[Judgment], systems: tuple[str, ...]
) -> None:
    tops = [SystemTop(system=s, query=q.query, docs=("d1",)) for s in systems for q in ASKED]
    ranks = first_ranks(judged_passages(ASKED, answers), tops)
    judging = judge_agreement(ASKED, answers, np.random.default_rng(0))
    document = report_reach(ranks, depth=10, level=0.95, judging=judging).document
    assert unexplained(json.loads(json.dumps(document))) == []
