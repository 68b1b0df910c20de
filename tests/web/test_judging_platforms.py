"""Judges who come by a link, by Mechanical Turk and by Prolific."""

import judging_stage
import pytest
from judging_stage import MTURK, PROLIFIC, Make, fields_of, words_of

from heldout.database.errors import DatabaseError
from heldout.judging.database import claims

stage = judging_stage.stage


def test_a_link_without_a_worker_asks_for_the_id(stage: Make) -> None:
    one = stage()
    page = one.client.get(one.link)
    assert "Your worker id" in words_of(page)
    fields = fields_of(page)
    for worker in ("", "  ", "w" * 300, "a\0b", "a\x1b[2J", "\u202eada"):
        answer = one.post(f"{one.link}/consent", {**fields, "worker": worker})
        assert answer.status_code == 422
        assert "at most 255 characters" in words_of(answer)
        assert "Your worker id" in words_of(answer)
    answer = one.post(f"{one.link}/consent", {**fields, "worker": "ada"})
    assert answer.headers["location"].endswith("/item/1")


def test_mechanical_turk_previews_without_a_way_to_begin(stage: Make) -> None:
    one = stage(platform="mturk")
    preview = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "3HIT"}
    page = one.client.get(one.link, params=preview)
    assert "This is a preview" in words_of(page)
    assert "<form" not in page.text
    answer = one.post(f"{one.link}/consent", {**preview, "batch": "1"})
    assert "This is a preview" in words_of(answer)


def test_mechanical_turk_gets_its_form_back(stage: Make) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params=MTURK)
    answer = one.post(f"{one.link}/consent", fields_of(page))
    root = answer.headers["location"].rpartition("/item/")[0]
    end = one.finish(root, 4)
    assert 'action="https://workersandbox.mturk.com/mturk/externalSubmit"' in end.text
    assert fields_of(end) == {"assignmentId": "3ASG", "answered": "4"}
    assert "C0FFEE" not in end.text
    policy = end.headers["content-security-policy"]
    assert "frame-ancestors https://*.mturk.com" in policy
    assert "https://workersandbox.mturk.com" in policy.partition("form-action")[2]


@pytest.mark.parametrize("reward", [200, 0])
def test_who_stops_early_on_mechanical_turk_reads_how_a_part_is_paid(
    stage: Make, reward: int
) -> None:
    """The platform pays an approved task whole: a page that names a share alone is wrong."""
    words = "the reward that it shows for the task once we approve it. If that is less"
    one = stage(platform="mturk", reward=reward)
    page = one.client.get(one.link, params=MTURK)
    pages = [words_of(page)]
    answer = one.post(f"{one.link}/consent", fields_of(page))
    root = answer.headers["location"].rpartition("/item/")[0]
    assert words not in words_of(one.client.get(f"{root}/exit"))  # nothing is owed yet
    one.answer(root, 1)
    page = one.client.get(f"{root}/exit")
    one.post(f"{root}/exit", fields_of(page))
    pages += [words_of(page), words_of(one.client.get(f"{root}/done"))]
    assert [words in page for page in pages] == [reward > 0] * 3
    assert words not in words_of(stage(reward=reward).client.get(one.link))


@pytest.mark.parametrize("host", ["https://www.mturk.com", "https://workersandbox.mturk.com"])
def test_mechanical_turks_address_may_end_in_a_slash(stage: Make, host: str) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params={**MTURK, "turkSubmitTo": f"{host}/"})
    place = one.post(f"{one.link}/consent", fields_of(page)).headers["location"]
    end = one.finish(place.rpartition("/item/")[0], 4)
    assert f'action="{host}/mturk/externalSubmit"' in end.text


def test_what_goes_wrong_is_shown_in_mechanical_turks_frame_too(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params=MTURK)
    root = one.post(f"{one.link}/consent", fields_of(page)).headers["location"]
    root = root.rpartition("/item/")[0]
    answers = [one.client.get("/a/x/done"), one.client.get("/j/x")]
    answers.append(one.post(f"{root}/item/1", {"stamp": "x" * 300_000}))
    one.clock.pass_by(days=40)
    answers.append(one.client.get(f"{root}/done"))
    for error in (DatabaseError("database-lost", "gone"), RuntimeError("a bug")):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(claims, "offer", fail)
        answers.append(one.client.get(one.link, params={**MTURK, "assignmentId": "new"}))
    assert [answer.status_code for answer in answers] == [403, 404, 413, 410, 503, 500]
    for answer in answers:
        assert "frame-ancestors https://*.mturk.com" in answer.headers["content-security-policy"]
    elsewhere = one.client.get("/nowhere").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in elsewhere


def test_mechanical_turk_gets_a_form_back_from_who_stops_with_something_owed(stage: Make) -> None:
    one = stage(platform="mturk")
    fields = fields_of(one.client.get(one.link, params=MTURK))
    place = one.post(f"{one.link}/consent", fields).headers["location"]
    root = place.rpartition("/item/")[0]
    one.answer(root, 1)
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert fields_of(one.client.get(f"{root}/done")) == {"assignmentId": "3ASG", "answered": "1"}


@pytest.mark.parametrize(
    "submit_to",
    [
        *("", "https://evil.example", "http://www.mturk.com", "https://www.mturk.com.evil.example"),
        *("https://www.mturk.com@evil.example", "javascript:alert(1)", "//www.mturk.com"),
    ],
)
def test_a_form_is_handed_in_nowhere_else(stage: Make, submit_to: str) -> None:
    """An address in the link that would send a worker's form, and the worker, to somebody else."""
    one = stage(platform="mturk")
    page = one.client.get(one.link, params={**MTURK, "turkSubmitTo": submit_to})
    assert page.status_code == 400
    assert "through the platform" in words_of(page)
    fields = {**MTURK, "turkSubmitTo": submit_to, "batch": "1"}
    assert one.post(f"{one.link}/consent", fields).status_code == 400


def test_prolific_says_who_comes_by_its_own_names(stage: Make) -> None:
    one = stage(platform="prolific")
    who = PROLIFIC
    fields = fields_of(one.client.get(one.link, params={**who, "worker": "x"}))
    assert fields == {**who, "batch": "1"}
    root = one.post(f"{one.link}/consent", fields).headers["location"].rpartition("/item/")[0]
    assert "C0FFEE" in one.finish(root, 4).text
    assert one.client.get(one.link).status_code == 400


@pytest.mark.parametrize(("platform", "who"), [("mturk", MTURK), ("prolific", PROLIFIC)])
def test_a_place_that_is_paid_once_holds_one_task(
    stage: Make, platform: str, who: dict[str, str]
) -> None:
    """Somebody closed the window before they handed in, and opens the study again."""
    one = stage(platform=platform)
    fields = fields_of(one.client.get(one.link, params=who))
    place = one.post(f"{one.link}/consent", fields).headers["location"]
    end = words_of(one.finish(place.rpartition("/item/")[0], 4))
    for answer in (one.client.get(one.link, params=who), one.post(f"{one.link}/consent", fields)):
        assert answer.status_code == 303
        assert words_of(one.client.get(answer.headers["location"])) == end
    name = "SESSION_ID" if platform == "prolific" else "assignmentId"
    for other in ({**who, name: "other"}, {**who, "workerId": "B2", "PROLIFIC_PID": "6a" * 12}):
        assert "I agree, begin" in words_of(one.client.get(one.link, params=other))


@pytest.mark.parametrize(
    "worker", ["{{%PROLIFIC_PID%}}", "5f1", "5F1A2B3C4D5E6F7A8B9C0D1E", "5f1a2b3c4d5e6f7a8b9c0d1e0"]
)
def test_who_has_no_id_of_prolifics_gets_no_task(stage: Make, worker: str) -> None:
    one = stage(platform="prolific")
    fields = {**PROLIFIC, "PROLIFIC_PID": worker}
    page = one.client.get(one.link, params=fields)
    assert page.status_code == 400
    assert "through the platform" in words_of(page)
    assert one.post(f"{one.link}/consent", {**fields, "batch": "1"}).status_code == 400
