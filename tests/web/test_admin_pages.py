"""The organiser's pages: who gets in, what they say, and every wrong way."""

import csv
from datetime import timedelta
from html import unescape
from io import StringIO

import judging_stage
import organiser_stage
import pytest
from judging_stage import Stage, Stages
from organiser_stage import TOKEN, Organiser, copied, worked

from heldout.errors import SetupError
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.organiser import assignments, payments_due, read_launch_state
from heldout.judging.pages.admin import render_admin
from heldout.judging.platforms.links import personal_code
from heldout.judging.studies.judges import JudgingQuality, StudyAgreement, measure_bias
from heldout.web.sessions import COOKIE, Attempts, SessionSigner, check_token

stages = judging_stage.stages
under_way = organiser_stage.under_way

PAGES = (
    *("/admin", "/admin/quality", "/admin/pairs", "/admin/workers", "/admin/payments"),
    *("/admin/log", "/admin/payments.csv", "/admin/pair?query=q1-1&a=q1-1-a&b=q1-1-b"),
)


@pytest.fixture
def organiser(stages: Stages, under_way: Stage) -> Organiser:
    """Signed in, at a campaign that is under way."""
    found = Organiser(copied(under_way, stages), stages.portal)
    assert found.sign_in().status_code == 303
    return found


@pytest.fixture
def stranger(stages: Stages) -> Organiser:
    return Organiser(stages.make(), stages.portal)


# Signing in


def test_nobody_sees_a_page_without_signing_in(stranger: Organiser) -> None:
    for address in PAGES:
        answer = stranger.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/sign-in")
        assert "q1-1" not in answer.text


def test_nobody_changes_anything_without_signing_in(stranger: Organiser) -> None:
    for address in ("launch", "pause", "payments", "sign-out"):
        answer = stranger.caller.post(f"/admin/{address}", data={"form_token": "x"})
        assert answer.headers["location"] == "/admin/sign-in"
    assert read_launch_state(stranger.stage.database) == "new"


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(stranger: Organiser) -> None:
    cookie = stranger.sign_in().headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Path=/admin", "Max-Age=43200"):
        assert part in cookie
    assert "Secure" not in cookie
    address = "https://judging.example/admin/sign-in"
    answer = stranger.caller.post(address, data={"token": TOKEN})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", "é" * 40, "x" * 10_000])
def test_another_token_opens_nothing(stranger: Organiser, token: str) -> None:
    answer = stranger.sign_in(token)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "This is not the token" in answer.text
    assert not token or token not in answer.text


def test_guessing_is_slowed_down_and_goes_on_after_a_while(stranger: Organiser) -> None:
    for _ in range(5):
        assert stranger.sign_in("guess").status_code == 403
    answer = stranger.sign_in()
    assert answer.status_code == 429
    assert "Try again in 16 minutes" in answer.text
    assert int(answer.headers["retry-after"]) == 901
    stranger.stage.clock.pass_by(minutes=15)
    assert stranger.sign_in().status_code == 303


def test_addresses_are_slowed_down_apart_and_old_ones_forgotten(stranger: Organiser) -> None:
    attempts, now = Attempts(), stranger.stage.clock()
    for _ in range(5):
        attempts.note("a", now=now)
    assert attempts.wait("a", now=now) == timedelta(minutes=15)
    assert attempts.wait("b", now=now) is None
    for number in range(10_000):
        attempts.note(str(number), now=now)
    assert attempts.wait("a", now=now) is None
    assert len(attempts.failures) == 10_000


def test_a_session_ends_by_itself(organiser: Organiser) -> None:
    organiser.stage.clock.pass_by(hours=11, minutes=59)
    assert organiser.get("/admin").status_code == 200
    organiser.stage.clock.pass_by(minutes=1)
    assert organiser.get("/admin").status_code == 303


def test_signing_out_ends_a_stolen_session_too(organiser: Organiser, stages: Stages) -> None:
    stolen = Organiser(organiser.stage, stages.portal)
    cookie = organiser.caller.client.cookies[COOKIE]
    stolen.caller.client.cookies.set(COOKIE, cookie, path="/admin")
    assert stolen.get("/admin").status_code == 200
    answer = organiser.post("/admin/sign-out")
    assert answer.headers["location"] == "/admin/sign-in"
    assert 'heldout-organiser="";' in answer.headers["set-cookie"]
    assert stolen.get("/admin").status_code == 303
    assert organiser.sign_in().status_code == 303
    assert organiser.get("/admin").status_code == 200


def test_a_forged_cookie_opens_nothing(organiser: Organiser) -> None:
    client = organiser.caller.client
    cookie = client.cookies[COOKIE]
    for forged in (cookie[:-1], cookie + "x", "x", "", "x" * 5_000, cookie.swapcase()):
        client.cookies.clear()
        client.cookies.set(COOKIE, forged, path="/admin")
        assert organiser.get("/admin").status_code == 303


def test_a_changed_token_and_another_campaigns_key_end_sessions(stranger: Organiser) -> None:
    now = stranger.stage.clock()
    signer = SessionSigner(key=b"k" * 32, token=TOKEN)
    cookie = signer.open(TOKEN, sign_outs=0, now=now)
    assert cookie
    assert signer.read(cookie, sign_outs=0, now=now)
    for other in (
        SessionSigner(key=b"k" * 32, token=TOKEN + "2"),
        SessionSigner(key=b"x" * 32, token=TOKEN),
    ):
        assert other.read(cookie, sign_outs=0, now=now) is None


def test_a_judges_token_is_no_session(organiser: Organiser) -> None:
    token = organiser.stage.begin("eve").removeprefix("/a/")
    client = organiser.caller.client
    client.cookies.clear()
    client.cookies.set(COOKIE, token, path="/admin")
    assert organiser.get("/admin").status_code == 303


def test_a_token_that_can_be_guessed_is_refused() -> None:
    assert check_token(f" {TOKEN}\n") == TOKEN
    with pytest.raises(SetupError, match="16"):
        check_token("   short        ")


def test_a_judge_gets_no_cookie(organiser: Organiser) -> None:
    page = organiser.get(organiser.stage.link + "?worker=eve")
    assert page.status_code == 200
    assert "set-cookie" not in page.headers


# Forms


def test_a_forged_form_changes_nothing(organiser: Organiser) -> None:
    keys = " ".join(one.key for one in payments_due(organiser.stage.database))
    for address in ("launch", "pause", "payments", "sign-out"):
        for token in ({}, {"form_token": ""}, {"form_token": "x"}, {"form_token": "é"}):
            answer = organiser.caller.post(f"/admin/{address}", data={"keys": keys, **token})
            assert answer.status_code == 403
    assert read_launch_state(organiser.stage.database) == "new"
    assert len(payments_due(organiser.stage.database)) == len(keys.split())
    assert organiser.get("/admin").status_code == 200


def test_a_form_of_an_earlier_session_is_refused(organiser: Organiser) -> None:
    token = organiser.form_token()
    organiser.post("/admin/sign-out")
    organiser.sign_in()
    answer = organiser.caller.post("/admin/launch", data={"form_token": token})
    assert answer.status_code == 403


def test_a_form_of_another_site_is_refused(organiser: Organiser) -> None:
    fields = {"form_token": organiser.form_token()}
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site}
        answer = organiser.caller.post("/admin/launch", data=fields, headers=headers)
        assert answer.status_code == 403
        answer = organiser.caller.post("/admin/sign-in", data={"token": TOKEN}, headers=headers)
        assert answer.status_code == 403


# What they say


def test_the_price_stands_before_the_launch(organiser: Organiser) -> None:
    words = organiser.words("/admin")
    assert "Open: everybody with a link gets a task." in words
    assert "Price of all tasks $14.40" in words  # 6 tasks of $2.00 and $0.40
    assert "http://judging.example/j/" in words
    organiser.post("/admin/pause")
    assert read_launch_state(organiser.stage.database) == "paused"
    words = organiser.words("/admin")
    assert "Paused: nobody gets a new task." in words
    assert "Launch: up to $14.40" in words
    organiser.post("/admin/launch")
    assert read_launch_state(organiser.stage.database) == "launched"
    assert "Launched: everybody with a link" in organiser.words("/admin")
    log = organiser.words("/admin/log")
    assert "launched – $14.40" in log
    assert log.index("launched") < log.index("paused")


AGREED = StudyAgreement(pairs=9, votes=18, alike=0.52, alpha=0.045, interval=None, why="")


def told_of(passed: int, tests: int) -> str:
    found = JudgingQuality(
        tests=tests,
        failed=tests - passed,
        tasks=5,
        excluded=0,
        answers=18,
        cannot={},
        shown=None,
        looked=None,
    )
    page = render_admin(
        "quality",
        settings=Settings(name="A study"),
        form_token="",
        judgments=18,
        effects=True,
        quality=found,
        agreement=AGREED,
        bias=measure_bias([]),
    )
    return unescape(page)


def test_careless_workers_are_not_excused_by_pairs_that_are_alike() -> None:
    told = told_of(8, 15)
    assert "It can also mean that workers are careless" in told
    assert "failed 46.7% of the tests" in told
    assert "Look for careless workers first" in told


def test_workers_are_told_by_pseudonym_with_their_standing(organiser: Organiser) -> None:
    words = organiser.words("/admin/workers")
    assert "4 workers, 1 barred." in words
    assert "barred: 1 failed test" in words
    for platform_id in ("ada", "bob", "cy", "=di()"):
        assert f" {platform_id} " not in words


def test_the_history_of_a_pair_shows_every_answer_and_what_counts(organiser: Organiser) -> None:
    organiser.stage.answer(organiser.stage.roots["=di()"], 1, "a")
    page = organiser.get("/admin/pairs")
    query = "q4-1"
    address = f"/admin/pair?query={query}&a={query}-a&b={query}-b"
    assert address.replace("&", "&amp;") in page.text
    words = organiser.words(address)
    assert f"prefers {query}-a no: not finished" in words
    assert f"prefers {query}-b no: not finished" in words
    test = organiser.words("/admin/pair?query=q1-3&a=q1-3-b&b=q1-3-a")
    assert "prefers q1-3-a no: a test" in test
    one = organiser.words("/admin/pair?query=q1-1&a=q1-1-a&b=q1-1-b")
    assert "prefers q1-1-a yes" in one


def test_a_pair_that_is_none_is_not_found(organiser: Organiser) -> None:
    for asked in ("", "query=q1-1", "query=q1-1&a=q1-1-a&b=q1-1-a", "query=%00&a=x&b=y"):
        assert organiser.get(f"/admin/pair?{asked}").status_code == 404


# Payments


def read_csv(organiser: Organiser) -> list[dict[str, str]]:
    answer = organiser.get("/admin/payments.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    return list(csv.DictReader(StringIO(answer.text, newline="")))


def test_payments_have_a_kind_an_amount_and_a_key(organiser: Organiser) -> None:
    words = organiser.words("/admin/payments")
    assert "Due $4.50 in 3 payments" in words
    assert "of it base $4.00 of it pro-rata $0.50" in words
    rows = read_csv(organiser)
    assert [(row["platform_id"], row["kind"], row["amount"]) for row in rows] == [
        ("ada", "base", "2.00"),
        ("bob", "base", "2.00"),
        ("cy", "pro-rata", "0.50"),
    ]
    assert len({row["key"] for row in rows}) == 3


def test_a_payment_is_marked_once(organiser: Organiser) -> None:
    first, second, third = (one.key for one in payments_due(organiser.stage.database))
    answer = organiser.post("/admin/payments", keys=first)
    assert "1 payment marked as paid." in organiser.words(answer.headers["location"])
    organiser.stage.clock.pass_by(seconds=5)
    again = organiser.post("/admin/payments", keys=f"{first} {second} {third} forged")
    assert "2 payments marked as paid." in organiser.words(again.headers["location"])
    organiser.stage.clock.pass_by(seconds=5)
    once_more = organiser.post("/admin/payments", keys=f"{first} {second}")
    assert "0 payments marked" in organiser.words(once_more.headers["location"])
    rows = read_csv(organiser)
    assert [row["paid_at"] != "" for row in rows] == [True] * 3
    assert "Paid $4.50 in 3 payments" in organiser.words("/admin/payments")
    assert "Nothing is due." in organiser.words("/admin/payments")


@pytest.mark.parametrize("marked", ["999999999", "1", "x", "2026-11-21T00:00:00.000Z"])
def test_a_forged_link_says_of_no_payment_that_it_was_marked(
    organiser: Organiser, marked: str
) -> None:
    words = organiser.words(f"/admin/payments?marked={marked}")
    assert "0 payments marked as paid." in words
    assert "Paid $0.00 in 0 payments" in words


def test_a_completion_code_is_looked_up(organiser: Organiser) -> None:
    stage = organiser.stage
    ada = assignments(stage.database)[0]
    code = personal_code(stage.campaign.key, ada.assignment)
    words = organiser.words(f"/admin/payments?code={code.lower()}")
    assert f"The code of {ada.worker}: task {ada.task}, submitted, 4 of 4 answered." in words
    for wrong in ("nobody", code[:-1], personal_code(stage.campaign.key, 999)):
        assert "This campaign did not give out that code." in organiser.words(
            f"/admin/payments?code={wrong}"
        )


# Hostile texts


def test_markup_in_names_and_texts_is_shown_as_text(stages: Stages) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    stage = worked(stages, name=hostile, texts=(hostile, hostile + "b"), query=hostile)
    organiser = Organiser(stage, stages.portal)
    organiser.sign_in()
    for address in PAGES:
        assert "<script" not in organiser.get(address).text
    page = organiser.get("/admin/pair?query=q1-1&a=q1-1-a&b=q1-1-b").text
    assert 'dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;' in page


def test_every_page_carries_the_strict_headers(organiser: Organiser) -> None:
    for address in (*PAGES, "/admin/sign-in"):
        headers = organiser.get(address).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


# With the judges' pages
