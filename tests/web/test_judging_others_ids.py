"""Who names another's id, or many ids, and what the pages give them."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx2
import judging_stage
import pytest
from judging_stage import (
    MTURK,
    PROLIFIC,
    SETTINGS,
    Caller,
    Make,
    Stage,
    Stages,
    fields_of,
    words_of,
)

stage = judging_stage.stage


def begin_mturk(one: Stage, **who: str) -> tuple[int, str]:
    """Consent as Mechanical Turk's link does; the status, and where it leads."""
    fields = fields_of(one.client.get(one.link, params={**MTURK, **who}))
    answer = one.post(f"{one.link}/consent", fields or {**MTURK, **who, "batch": "1"})
    return answer.status_code, answer.headers.get("location", "")


def test_who_knows_a_worker_id_gets_no_form_to_hand_in_anothers_work(stage: Make) -> None:
    one = stage(platform="mturk")
    _, place = begin_mturk(one)
    root = place.rpartition("/item/")[0]
    one.answer(root, 1)
    status, place = begin_mturk(one, assignmentId="3THIEF")
    assert (status, place) == (200, "")
    page = one.client.get(one.link, params={**MTURK, "assignmentId": "3THIEF"})
    assert "Your task is open elsewhere" in words_of(page)
    assert root not in page.text
    done = one.finish(root, 4)
    assert 'value="3ASG"' in done.text
    assert "3THIEF" not in done.text


def test_who_held_a_task_before_its_owner_sees_nothing_of_what_the_owner_did(stage: Make) -> None:
    one = stage(platform="mturk", tasks=2)
    _, stolen = begin_mturk(one, assignmentId="3THIEF")
    _, place = begin_mturk(one)
    root = place.rpartition("/item/")[0]
    one.finish(root, 4)
    end = one.client.get(f"{stolen.rpartition('/item/')[0]}/done")
    assert 'value="3ASG"' not in end.text
    assert "$2.00" not in end.text


def test_an_id_alone_reads_neither_code_nor_amount(stage: Make) -> None:
    for code in ("C0FFEE", ""):
        one = stage(completion_code=code, tasks=1)
        own = one.finish(one.begin("ada"), 4)
        assert "Your completion code" in own.text
        for address in (one.link, f"{one.link}?"):
            page = one.client.get(address, params={"worker": "ada"})
            assert "<code>" not in page.text
            assert "completion code" not in page.text
            assert "$2.00 is yours" not in page.text


def test_an_id_alone_does_not_open_a_task_with_answers(stage: Make) -> None:
    one = stage()
    root = one.begin("ada")
    one.answer(root, 1)
    page = one.client.get(one.link, params={"worker": "ada"})
    assert "Your task is open elsewhere" in words_of(page)
    answer = one.post(f"{one.link}/consent", {"worker": "ada", "batch": "1"})
    assert (answer.status_code, answer.headers.get("location")) == (200, None)
    assert "<code>" in one.finish(root, 4).text


@pytest.mark.parametrize("pay_failed", [True, False])
def test_invented_ids_from_one_address_stop_after_five_early_exits(
    stage: Make, *, pay_failed: bool
) -> None:
    one = stage(tasks=30, items=13, pay_failed=pay_failed, uncounted_percent=1_000)
    begun = 0
    for number in range(40):
        fields = {"worker": f"invented-{number}", "batch": "1"}
        answer = one.post(f"{one.link}/consent", fields)
        if answer.status_code == 429:
            assert "stopped early from your network" in words_of(answer)
            assert int(answer.headers["Retry-After"]) > 0
            continue
        begun += 1
        root = answer.headers["location"].rpartition("/item/")[0]
        one.answer(root, 1)
        one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
        one.clock.pass_by(seconds=0.06)
    assert begun == 5
    one.clock.pass_by(minutes=16)
    assert one.begin("honest")


IDS: dict[str, Callable[[int], dict[str, str]]] = {
    "link": lambda n: {"worker": f"made-up-{n}"},
    "mturk": lambda n: {**MTURK, "workerId": f"AMADEUP{n}", "assignmentId": f"3ASG{n}"},
    "prolific": lambda n: {**PROLIFIC, "PROLIFIC_PID": f"{n:024x}", "SESSION_ID": f"s{n}"},
}
NAMED = ["mturk", *(pytest.param(name, marks=pytest.mark.night) for name in ("link", "prolific"))]


@pytest.mark.parametrize("platform", NAMED)
def test_made_up_ids_shut_a_study_for_their_own_addresses_alone(
    tmp_path: Path, platform: str
) -> None:
    """The page through real HTTP, behind a proxy: 30 ids from 7 addresses, each one answer."""
    with Stages(tmp_path) as stages:
        one = stages.make(tasks=60, items=3, platform=platform, uncounted_percent=0)
        url = stages.serve(one.app, proxy_headers=True, forwarded_allow_ips="127.0.0.1")

        def begin(number: int, address: str) -> tuple[Stage, str]:
            """Consent as somebody from an address; where the task is, "" where there is none."""
            client = httpx2.Client(
                base_url=url, headers={"x-forwarded-for": address}, timeout=20, trust_env=False
            )
            stages.ends.callback(client.close)
            visitor = replace(one, client=cast("Caller", client))
            fields = fields_of(client.get(one.link, params=IDS[platform](number)))
            answer = client.post(f"{one.link}/consent", data=fields)
            return visitor, str(answer.headers.get("location", "").rpartition("/item/")[0])

        def judge(number: int, address: str) -> float:
            """Finish a task; the seconds that it took."""
            began = time.monotonic()
            visitor, root = begin(number, address)
            assert root
            visitor.finish(root, 3)
            return time.monotonic() - began

        alone = judge(100, "198.51.100.1")
        given = 0
        for number in range(30):
            visitor, root = begin(number, f"203.0.113.{number % 7}")
            if root:
                given += 1
                visitor.answer(root, 1)
                visitor.post(f"{root}/exit", fields_of(visitor.client.get(f"{root}/exit")))
        assert given == 7  # two rewards, a third of one each; and the seventh address's first
        assert not begin(50, "203.0.113.3")[1]
        assert judge(101, "198.51.100.2") < alone + 5  # a new id from elsewhere
        assert judge(102, "2001:db8::1") < alone + 5
        assert judge(103, "198.51.100.1") < alone + 5  # behind one where a task counts
        assert not begin(51, "203.0.113.3")[1]


@pytest.mark.parametrize("platform", NAMED)
def test_made_up_ids_of_one_network_hold_a_share_of_the_free_tasks(
    tmp_path: Path, platform: str
) -> None:
    """Ids that never answer: the others of their network wait for one answer, nobody else does."""
    with Stages(tmp_path) as stages:
        one = stages.make(tasks=40, items=3, platform=platform)
        url = stages.serve(one.app, proxy_headers=True, forwarded_allow_ips="127.0.0.1")
        client = httpx2.Client(base_url=url, timeout=20, trust_env=False)
        stages.ends.callback(client.close)
        visitor = replace(one, client=cast("Caller", client))

        def begin(number: int, address: str) -> str:
            client.headers["x-forwarded-for"] = address
            fields = fields_of(client.get(one.link, params=IDS[platform](number)))
            answer = client.post(f"{one.link}/consent", data=fields)
            return str(answer.headers.get("location", "").rpartition("/item/")[0])

        held = [root for number in range(60) if (root := begin(number, "203.0.113.1"))]
        assert len(held) == 8  # a quarter of the 32 that are left
        page = client.get(one.link, params=IDS[platform](99))
        assert "No task is free at the moment" in words_of(page)
        visitor.finish(begin(100, "198.51.100.1"), 3)
        for root in held[:2]:
            visitor.answer(root, 1)
        assert begin(101, "203.0.113.1")
        assert not begin(102, "203.0.113.1")
        one.clock.pass_by(minutes=61)
        assert begin(103, "203.0.113.1")


def test_who_came_by_a_signed_link_is_not_held_up_by_others_exits(stage: Make) -> None:
    one = stage(tasks=9, links="personal", uncounted_percent=1_000)
    for number in range(6):
        root = one.begin(f"w{number}")
        one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert one.begin("w7")


def test_the_placeholder_of_the_printed_link_is_nobodys_id(stage: Make) -> None:
    one = stage()
    assert "Your worker id" in words_of(one.client.get(one.link, params={"worker": "ID"}))
    answer = one.post(f"{one.link}/consent", {"worker": "ID", "batch": "1"})
    assert answer.status_code == 422


def test_the_servers_own_address_says_what_it_is(stage: Make) -> None:
    one = stage()
    page = one.client.get("/")
    assert page.status_code == 200
    assert "open the link that the organiser sent you" in words_of(page)
    for revealed in (one.campaign.code, SETTINGS.name, SETTINGS.contact):
        assert revealed not in page.text
    assert 'href="/admin"' in page.text
