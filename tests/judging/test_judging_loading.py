"""What may be loaded into a campaign, and what is refused."""

from collections.abc import Sequence
from typing import Any

import judging_databases
import msgspec
import pytest
from small_campaign import NOW, SETTINGS, after, load, make_pools, make_tasks, take

import databases
from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.assignments import get_assignment, item
from heldout.judging.database.campaigns import Loaded, load_campaign, read_campaign
from heldout.judging.database.organiser import tasks
from heldout.judging.database.tables import CAMPAIGN

database = judging_databases.database
sqlite_database = judging_databases.sqlite_database


def changed(**fields: Any) -> Settings:
    return msgspec.structs.replace(SETTINGS, **fields)


def refuse(
    database: Database,
    *,
    settings: Settings = SETTINGS,
    pools: Sequence[Pool] = (),
    new: Sequence[Task] = (),
) -> set[str]:
    """The codes of the problems; nothing may have changed."""
    before = tasks(database)
    with pytest.raises(InputError) as caught:
        load_campaign(database, settings, pools, new, now=NOW)
    assert tasks(database) == before
    return {problem.code for problem in caught.value.problems}


def test_a_campaign_is_read_as_it_was_loaded(database: Database) -> None:
    load(database, queries=2, judges=2)
    assert tasks(database) == tuple(make_tasks(2, judges=2))
    found = read_campaign(database)
    assert (found.settings, found.batches) == (SETTINGS, {1: SETTINGS})
    assert len(found.code) >= 16
    assert len(found.key) == 32


def test_loading_again_changes_nothing(database: Database) -> None:
    load(database)
    before = read_campaign(database)
    again = load_campaign(database, SETTINGS, make_pools(2), make_tasks(2), now=after(minutes=1))
    assert again == Loaded(tasks=0, batches=(), waiting=())
    assert read_campaign(database) == before


def test_every_campaign_has_its_own_key_and_link(database: Database) -> None:
    load(database)
    first = read_campaign(database)
    other = databases.wiped(database.engine.dialect.name, CAMPAIGN)
    load(other)
    assert read_campaign(other).key != first.key
    assert read_campaign(other).code != first.code


def test_a_new_batch_is_added_with_its_own_terms(database: Database) -> None:
    load(database)
    dearer = changed(reward=300, question="Which is better?", consent="Other.", consent_version="2")
    new = make_tasks(3, batch=2)
    added = load_campaign(database, dearer, make_pools(3), make_tasks(2) + new, now=NOW)
    assert added == Loaded(
        tasks=3, batches=(2,), waiting=("question", "reward", "consent", "consent_version")
    )
    assert read_campaign(database).batches == {1: SETTINGS, 2: dearer}


def test_what_nobody_judges_otherwise_for_changes_at_once(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    repaired = changed(completion_code="RIGHT", contact="a@example.org", lease_minutes=90)
    assert load_campaign(database, repaired, [], [], now=NOW).waiting == ()
    assert get_assignment(database, held.id).settings == repaired


@pytest.mark.parametrize(
    "fields",
    [{"platform": "mturk"}, {"currency": "EUR"}, {"exclusion": "worker"}, {"failures": 2}],
    ids=str,
)
def test_what_holds_for_a_whole_campaign_is_not_changed(
    sqlite_database: Database, fields: dict[str, Any]
) -> None:
    load(sqlite_database)
    assert refuse(sqlite_database, settings=changed(**fields)) == {"changed-setting"}


def test_another_consent_needs_another_version(sqlite_database: Database) -> None:
    load(sqlite_database)
    new = make_tasks(1, batch=2)
    other = changed(consent="You judge pairs, and we sell your data.")
    assert refuse(sqlite_database, settings=other, pools=make_pools(1), new=new) == {
        "changed-consent"
    }


def test_a_text_that_may_have_been_shown_is_not_changed(sqlite_database: Database) -> None:
    load(sqlite_database)
    pool = make_pools(1)[0]
    other = Candidate(doc="d0a", text="quite another text")
    pools = [msgspec.structs.replace(pool, candidates=(other,))]
    assert refuse(sqlite_database, pools=pools) == {"changed-text"}
    asked = [msgspec.structs.replace(pool, text="another question")]
    assert refuse(sqlite_database, pools=asked) == {"changed-text"}
    assert refuse(sqlite_database, pools=[pool, *pools]) == {"changed-text"}


def test_a_task_that_may_have_been_shown_is_not_changed(sqlite_database: Database) -> None:
    load(sqlite_database)
    task = make_tasks(1)[0]
    turned = msgspec.structs.replace(task, items=task.items[::-1])
    assert refuse(sqlite_database, new=[turned]) == {"changed-task"}
    assert refuse(sqlite_database, new=[msgspec.structs.replace(task, batch=2)]) == {"changed-task"}


def test_a_batch_is_loaded_once(sqlite_database: Database) -> None:
    load(sqlite_database)
    late = msgspec.structs.replace(make_tasks(1)[0], task="late")
    assert refuse(sqlite_database, new=[late]) == {"old-batch"}


@pytest.mark.parametrize("batch", [-1, 0, 10**30])
def test_batches_are_numbered_from_1(sqlite_database: Database, batch: int) -> None:
    new = [msgspec.structs.replace(make_tasks(1)[0], batch=batch)]
    assert refuse(sqlite_database, pools=make_pools(1), new=new) == {"old-batch"}


def make_item(left: str = "d0a", right: str = "d0b", answer: str | None = None) -> Item:
    return Item(query="q0", left=left, right=right, answer=answer)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ([Task(task="t", items=())], "task-item"),
        ([Task(task="t", items=(make_item(right="d0a"),))], "task-item"),
        ([Task(task="t", items=(make_item(answer="d0c"),))], "task-item"),
        ([Task(task="t", items=(make_item(), make_item("d0b", "d0a")))], "task-item"),
        ([Task(task="t~2", items=(make_item(),))], "task-name"),
        ([Task(task="", items=(make_item(),))], "task-name"),
        ([Task(task="a\0", items=(make_item(),))], "task-name"),
        ([Task(task="t", items=(make_item(),))] * 2, "repeated-task"),
        ([Task(task="t", items=(make_item(right="nowhere"),))], "text-missing"),
        ([Task(task="t", items=(Item(query="no", left="d0a", right="d0b"),))], "text-missing"),
    ],
    ids=[
        *("empty", "itself", "third", "twice", "marked", "nameless", "nul", "repeated"),
        *("passage", "query"),
    ],
)
def test_a_task_that_cannot_be_shown_is_refused(
    sqlite_database: Database, new: list[Task], code: str
) -> None:
    assert refuse(sqlite_database, pools=make_pools(1), new=new) == {code}


def test_a_nul_in_a_text_is_replaced_on_both_engines(database: Database) -> None:
    texts = ("a\0b", "c")
    candidates = tuple(
        Candidate(doc=doc, text=text) for doc, text in zip(("d0a", "d0b"), texts, strict=True)
    )
    pools = [Pool(query="q0", text="q", candidates=candidates)]
    new = [Task(task="t", items=(make_item(),))]
    load_campaign(database, SETTINGS, pools, new, now=NOW)
    load_campaign(database, SETTINGS, pools, new, now=NOW)
    shown: Any = item(database, take(database, "ann").id, 1)
    assert shown.passages[0].text == "a\ufffdb"


def test_a_campaign_that_was_not_loaded_says_so(database: Database) -> None:
    with pytest.raises(DatabaseError, match="database-empty"):
        read_campaign(database)
