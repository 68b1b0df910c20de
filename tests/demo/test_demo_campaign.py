"""The demo's campaign: pools, made-up judges, labels."""

import bz2
from datetime import UTC, datetime

import pytest

from heldout.collections.collection import Collection, QuerySplit
from heldout.demo.campaign import QUERIES, CampaignStory, play_campaign
from heldout.ids import DocId, QueryId
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import counted, failed_tests

pytestmark = pytest.mark.slow

NUMBERS = range(60)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def _split() -> QuerySplit:
    documents = {DocId(f"d{n:02}-{m}"): f"topic{n:02} text{n}x{m}" for n in NUMBERS for m in "abc"}
    queries = {QueryId(f"q{n:02}"): f"topic{n:02}" for n in NUMBERS}
    qrels = {QueryId(f"q{n:02}"): {DocId(f"d{n:02}-a"): 1} for n in NUMBERS}
    dev = Collection(documents=documents, queries=queries, qrels=qrels)
    return QuerySplit(dev=dev, eval=Collection(documents=documents, queries={}, qrels={}))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignStory, list[str]]:
    folder = tmp_path_factory.mktemp("campaign")
    for run in "bc":
        rows = "".join(f"q{n:02}\td{n:02}-{run}\t1\n" for n in NUMBERS)
        (folder / "runs" / run).mkdir(parents=True)
        (folder / "runs" / run / "dev.tsv.bz2").write_bytes(bz2.compress(rows.encode()))
    told: list[str] = []
    story = play_campaign(
        folder, _split(), now=NOW, seed=0, say=lambda heading, _: told.append(heading)
    )
    return story, told


def test_every_pair_has_one_answer_that_counts(played: tuple[CampaignStory, list[str]]) -> None:
    story, told = played
    assert told == ["pools", "judges"]
    assert story.sizes.queries == QUERIES
    assert story.counted == story.sizes.pairs == 3 * QUERIES
    judged = CampaignFolder(story.folder).judgments()
    assert len({one.pair for one in counted(judged)}) == story.counted
    assert len(judged) == story.judgments == sum(story.visits)


def test_who_did_not_look_is_left_out_and_who_stopped_is_paid_for_five(
    played: tuple[CampaignStory, list[str]],
) -> None:
    story, _ = played
    failed = failed_tests(CampaignFolder(story.folder).judgments())
    assert sum(n > 0 for n in failed.values()) >= 1
    assert story.visits.count(5) == 1


def test_labels_follow_the_judges(played: tuple[CampaignStory, list[str]]) -> None:
    story, _ = played
    assert set(story.labels.tournaments) == set(story.labels.labels)
    assert 0 < story.changed < QUERIES
