"""Versions of a board's labels as files, and votes from anywhere."""

import pytest

from heldout.errors import InputError
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.labels import format_labels
from heldout.judging.labels.maintenance import LeadRule
from heldout.judging.services.maintaining import (
    CampaignContent,
    draw_challenges,
    label,
    weigh_challenges,
)


def campaign(*judgments: Judgment, challengers: tuple[str, ...] = ("b",)) -> CampaignContent:
    tests = tuple(Item(query=f"t{n}", left="x", right="y", answer="x") for n in range(3))
    return CampaignContent(
        settings=Settings(name="study"),
        pools=(Pool(query="q", candidates=(Candidate(doc="a", known=True),)),),
        challengers=(Pool(query="q", candidates=tuple(Candidate(doc=doc) for doc in challengers)),),
        tests=tests,
        tasks=(),
        judgments=judgments,
    )


def votes(winner: str, loser: str, count: int) -> list[Judgment]:
    return [
        Judgment(query="q", left=winner, right=loser, preferred=winner, worker=f"w{number}")
        for number in range(count)
    ]


def test_a_document_that_no_published_run_showed_takes_nobodys_place() -> None:
    assert label(campaign(*votes("planted", "a", 9)), LeadRule()).best == {"q": ("a",)}
    assert label(campaign(*votes("b", "a", 3)), LeadRule()).best == {"q": ("b",)}


@pytest.mark.parametrize(
    "hostile", ["a 1\nq 0 planted", "a\tb", "", " ", "a\x00b\n", "x 1", "\u200bx", "\u202ex"]
)
def test_an_id_that_writes_a_row_of_its_own_is_refused(hostile: str) -> None:
    for labels in ({"q": (hostile,)}, {hostile: ("a",)}):
        with pytest.raises(InputError, match="label-id"):
            format_labels(labels)


def test_labels_are_the_same_bytes_in_any_order() -> None:
    assert format_labels({"b": ("x",), "a": ("y", "z")}) == b"a 0 y 1\na 0 z 1\nb 0 x 1\n"
    assert format_labels({}) == format_labels({"a": ()}) == b""


def test_pairs_that_need_as_many_judges_come_in_one_batch_with_ids_of_its_own() -> None:
    held = campaign(*votes("b", "a", 1), challengers=("b", "c", "d"))
    challenges = weigh_challenges(held, LeadRule())
    assert {one.challenger: one.wanted for one in challenges} == {"b": 2, "c": 3, "d": 3}
    tasks = draw_challenges(held, challenges, seed=1)
    assert [(task.batch, task.why) for task in tasks] == [(1, "challenge")] * 3 + [
        (2, "challenge")
    ] * 2
    assert len({task.task for task in tasks}) == 5
    assert draw_challenges(held, challenges, seed=1) == tasks
