"""Questions about a query with its passages on the pages of a campaign: asked, saved, exported."""

from typing import Any

import judging_stage
import pytest
from httpx2 import Response
from judging_stage import SETTINGS, START, Caller, Clock, Stage, Stages, words_of
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

import chromium
from heldout.database.database import Database
from heldout.errors import InputError
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.questions import ANSWERABLE, TRIAGE, QuestionForm
from heldout.judging.database.campaigns import load_campaign, read_campaign
from heldout.judging.database.tables import open_database
from heldout.judging.pages.judge import make_app
from heldout.judging.services.exchange import write_judgments
from heldout.judging.services.pools import draw_next
from heldout.survivorship.discarded.campaign import count_triage
from heldout.survivorship.discarded.folder import QuestionFolder

stages = judging_stage.stages

browser = chromium.browser
TEXTS = (
    "An egg that boils for six minutes has a soft yolk; after ten minutes it is hard.",
    "Hens lay about three hundred eggs in a year, fewer when days are short.",
    "<script>alert(1)</script>",
)


def asked(number: int, *texts: str) -> Pool:
    """A query of these passages."""
    candidates = tuple(
        Candidate(doc=f"q{number}-d{place}", text=text) for place, text in enumerate(texts, 1)
    )
    return Pool(query=f"q{number}", text="how long do I boil an egg", candidates=candidates)


def make(
    stages: Stages, form: QuestionForm = TRIAGE, *, questions: tuple[Pool, ...] = (), **more: Any
) -> tuple[Stage, QuestionFolder]:
    """A campaign of two questions, or of these, in one task for each of two judges; its pages."""
    folder = QuestionFolder(stages.folder / "campaign", form)
    folder.add(questions or tuple(asked(number, *TEXTS) for number in (1, 2)))
    place = folder.path / "campaign.toml"
    place.write_text(place.read_text().replace("judges = 1", "judges = 2"))
    draw_next(folder, seed=0)
    database = load(folder, **more)
    stages.ends.callback(database.close)
    clock = Clock()
    app = make_app(database, clock=clock)
    return Stage(database, read_campaign(database), clock, app, Caller(app, stages.portal)), folder


def load(folder: QuestionFolder, **more: Any) -> Database:
    database = open_database(f"sqlite:///{folder.database}")
    settings = replace(folder.settings(kind=None), links="open", consent=SETTINGS.consent, **more)
    load_campaign(database, settings, folder.pools(), folder.tasks(), now=START)
    return database


def say(stage: Stage, root: str, position: int, choice: str, *ticked: int) -> Response:
    return stage.answer(root, position, choice, **{f"tick-{number}": "1" for number in ticked})


def test_answers_of_two_judges_are_saved_exported_and_counted(stages: Stages) -> None:
    stage, folder = make(stages)
    for name, last in (("ada", "no_ans"), ("bob", "cannot")):
        root = stage.begin(name)
        assert say(stage, root, 1, "wrong_lab", 1, 3).headers["location"] == f"{root}/item/2"
        assert say(stage, root, 2, last).headers["location"] == f"{root}/done"
        assert "Done: all 2 questions" in words_of(stage.client.get(f"{root}/done"))
    write_judgments(folder, None, None)
    answers = folder.answers()
    first = answers[0]
    assert (first.choice, first.reason) == ("wrong_lab", None)
    assert first.ticked == (f"{first.query}-d1", f"{first.query}-d3")
    assert [one.reason for one in answers] == [None, None, None, "other"]
    found = count_triage(folder, seed=0, level=0.95).document
    assert len(found["annotators"]) == 2
    assert "ada" not in found["annotators"]
    assert found["all"]["labels"]["wrong_lab"]["count"] == 1
    assert found["cannot"] == 1


def test_passages_are_text_in_the_order_drawn_and_without_their_ids(stages: Stages) -> None:
    stage, _ = make(stages, ANSWERABLE)
    page = stage.client.get(f"{stage.begin()}/item/1")
    words = words_of(page)
    assert "Passages, in random order" in words
    assert words.index("soft yolk") < words.index("Hens lay")
    assert "<script>alert(1)" not in page.text
    assert "q1-d1" not in page.text
    assert "Passage 3 answers the question" in words


@pytest.mark.parametrize(
    ("choice", "ticked", "words"),
    [
        ("", (), "Please choose an answer"),
        ("answered", (1,), "Please choose an answer"),
        ("left", (1,), "Please choose an answer"),
        ("wrong_lab", (), "please tick the passages"),
        ("no_ans", (2,), "a passage is ticked"),
    ],
)
def test_what_is_missing_is_said_and_what_was_chosen_stays(
    stages: Stages, choice: str, ticked: tuple[int, ...], words: str
) -> None:
    stage, _ = make(stages)
    page = say(stage, stage.begin(), 1, choice, *ticked)
    assert page.status_code == 422
    assert words in words_of(page)
    for number in ticked:
        assert f'name="tick-{number}" value="1" checked' in page.text
    assert stage.judgments() == ()


def test_tasks_of_another_kind_are_not_loaded(stages: Stages) -> None:
    _, folder = make(stages)
    folder.database.unlink()
    with pytest.raises(InputError, match="task-item"):
        load(folder, kind="preference")


def test_the_organiser_sees_how_far_a_campaign_of_questions_is(stages: Stages) -> None:
    from heldout.judging.pages.admin import Admin, admin_routes  # noqa: PLC0415 - of this test

    stage, _ = make(stages)
    say(stage, stage.begin(), 1, "cannot")
    token = "a token of sixteen characters"  # noqa: S105 - of the tests
    admin = Admin(database=stage.database, token=token, clock=stage.clock)
    app = make_app(stage.database, clock=stage.clock, routers=[admin_routes(admin)])
    client = Caller(app, stages.portal)
    client.post("/admin/sign-in", data={"token": token})
    for page in ("", "/quality", "/pairs", "/workers", "/log"):
        came = client.get(f"/admin{page}")
        assert came.status_code == 200, page
    assert "No pair has an answer yet." in client.get("/admin/pairs").text


@pytest.mark.browser
@pytest.mark.slow
def test_a_question_is_answered_by_keys_alone_and_outlives_a_lost_connection(
    browser: Browser, stages: Stages
) -> None:
    stage, _ = make(stages)
    address = stages.serve(stage.app)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address + stage.begin() + "/item/1")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.get_by_role("checkbox", name="Passage 1").check()
    page.keyboard.press("3")
    page.reload()
    expect(page.get_by_role("checkbox", name="Passage 1")).to_be_checked()
    expect(page.get_by_role("radio", name="Answered: wrongly discarded")).to_be_checked()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Question 2 of 2")).to_be_visible()
    page.wait_for_load_state("load")
    page.keyboard.press("1")
    page.get_by_role("button", name="Finish").click()
    expect(page.get_by_text("Done: all 2 questions")).to_be_visible()
    assert [(one.choice, len(one.ticked)) for one in stage.judgments()] == [
        ("wrong_lab", 1),
        ("no_ans", 0),
    ]
    assert complaints == []
