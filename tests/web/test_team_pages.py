"""A team's pages: invitation, token, sign-in, submissions, the form; and those who mean harm."""

import re
import sqlite3
import zipfile
from io import BytesIO
from unittest.mock import patch

import httpx2
import pytest
from judging_stage import fields_of, words_of
from openid_provider import ISSUER, ORCID, OpenIdProvider
from team_stage import ONE, TEAM, MakePlace, Place, files_of, make_place, parts, place

from heldout.intake import pages

__all__ = ["make_place", "place"]


def join(place: Place, name: str = TEAM) -> tuple[httpx2.Client, str]:
    """A browser that joined as a team, and the team's token."""
    browser, link = place.browser(), place.invite()
    answer = browser.post(link, data={**fields_of(browser.get(link)), "team": name, "mail": ""})
    assert answer.status_code == 200, answer.text
    return browser, re.findall(r'id="team-token">([^<]+)<', answer.text)[0]


def upload(browser: httpx2.Client, files: dict[str, bytes]) -> httpx2.Response:
    """As the page's form does."""
    page = browser.get("/upload")
    assert 'enctype="multipart/form-data"' in page.text
    action = re.findall(r'action="([^"]+)"', page.text)[0]
    return browser.post(action, files=parts(files))


def test_an_invitation_makes_a_team_with_a_token_that_is_shown_once(place: Place) -> None:
    browser, token = join(place)
    account = browser.get("/account")
    assert TEAM in words_of(account)
    assert "Your next submission may come now." in words_of(account)
    assert token not in account.text
    assert place.as_team(token).get("/api/v1/quota").json()["used"] == 0


def test_an_invitation_works_once_and_ends(place: Place) -> None:
    link = place.invite()
    form = fields_of(place.client.get(link))
    unnamed = place.client.post(link, data={**form, "team": ""})
    assert (unnamed.status_code, unnamed.headers["x-error-code"]) == (422, "team-name")
    assert place.client.post(link, data={**form, "team": TEAM}).status_code == 200
    for again in (place.client.get(link), place.client.post(link, data={**form, "team": "B"})):
        assert (again.status_code, again.headers["x-error-code"]) == (410, "invitation-used")
    late = place.invite()
    place.clock.pass_by(days=15)
    assert place.client.get(late).status_code == 410
    assert place.client.get("/join/nonsense").status_code == 404
    assert place.client.post(late, data={"team": "C"}).status_code == 403  # without its token


def test_the_form_s_upload_is_shown_and_uses_quota(place: Place) -> None:
    browser, _ = join(place)
    assert upload(browser, files_of()).status_code == 201
    assert place.delivered() == files_of()
    shown = words_of(browser.get("/account"))
    assert f"{ONE} waiting for the organiser" in shown
    assert "1 of 2 submissions used" in shown
    assert upload(browser, files_of("20261121-two")).status_code == 201
    refused = upload(browser, files_of("20261121-three"))
    assert refused.status_code == 429
    assert "upload-quota" in words_of(refused)
    assert "the next one may come at 21 December 2026" in words_of(refused)
    assert "may come from 21 December 2026" in words_of(browser.get("/account"))
    assert len(place.delivered()) == 6


def test_a_session_s_cookie_is_locked_down_and_a_form_is_the_session_s_own(place: Place) -> None:
    browser, token = join(place)
    entered = place.client.post("/sign-in", data={"token": token})
    assert entered.status_code == 303
    told = entered.headers["set-cookie"].lower()
    assert "httponly" in told
    assert "samesite=lax" in told
    assert "secure" not in told  # plain HTTP on this machine
    another, _ = join(place, "Another team")
    foreign = fields_of(another.get("/account"))
    assert browser.post("/account/token", data=foreign).status_code == 403
    assert browser.post("/sign-out", data={}).status_code == 403
    assert browser.post("/upload?form_token=x", files=parts(files_of())).status_code == 403
    own = fields_of(browser.get("/account"))
    elsewhere = {"sec-fetch-site": "cross-site"}
    assert browser.post("/account/token", data=own, headers=elsewhere).status_code == 403
    assert browser.post("/sign-out", data=own).status_code == 303
    assert browser.get("/account").status_code == 303
    assert place.delivered() == {}


def test_behind_https_a_cookie_is_secure(place: Place) -> None:
    from starlette.testclient import TestClient  # noqa: PLC0415 - only here

    from heldout.intake.app import make_intake_app  # noqa: PLC0415 - the same

    _, token = place.join()
    client = TestClient(
        make_intake_app(place.intake), base_url="https://board.example", follow_redirects=False
    )
    assert "; Secure" in client.post("/sign-in", data={"token": token}).headers["set-cookie"]


def test_a_new_token_ends_the_old_one_and_every_session(place: Place) -> None:
    browser, token = join(place)
    other = place.browser()
    assert other.post("/sign-in", data={"token": token}).status_code == 303
    answer = browser.post("/account/token", data=fields_of(browser.get("/account")))
    fresh = re.findall(r'id="team-token">([^<]+)<', answer.text)[0]
    assert place.as_team(fresh).get("/api/v1/quota").status_code == 200
    refused = place.as_team(token).get("/api/v1/quota")
    assert (refused.status_code, refused.json()["code"]) == (401, "team-token")
    assert other.get("/account").status_code == 303
    assert browser.get("/account").status_code == 200


def test_wrong_tokens_are_slowed_down_and_not_said_back(place: Place) -> None:
    for _ in range(5):
        wrong = place.client.post("/sign-in", data={"token": "a-guess"})
        assert (wrong.status_code, wrong.headers["x-error-code"]) == (403, "team-token")
        assert "a-guess" not in wrong.text
    slowed = place.client.post("/sign-in", data={"token": "a-guess"})
    assert (slowed.status_code, slowed.headers["x-error-code"]) == (429, "too-many-tries")
    assert int(slowed.headers["retry-after"]) > 0
    assert place.as_team("a-guess").get("/api/v1/quota").json()["code"] == "too-many-tries"
    assert place.client.post("/sign-in", data={"token": place.join()[1]}).status_code == 303
    place.clock.pass_by(minutes=16)
    assert place.client.post("/sign-in", data={"token": "a-guess"}).status_code == 403


def test_no_secret_lies_in_the_database(place: Place) -> None:
    browser, token = join(place)
    link = place.invite()
    secrets = [token, link.rpartition("/")[2], browser.cookies["heldout-team"]]
    with sqlite3.connect(place.uploads / "intake.sqlite") as database:
        stored = "\n".join(database.iterdump())
    assert TEAM in stored
    assert [one for one in secrets if one in stored] == []


def test_no_page_may_stand_in_a_frame(place: Place) -> None:
    browser, _ = join(place)
    for address in ("/sign-in", place.invite(), "/account", "/upload", "/api/v1/standings"):
        policy = browser.get(address).headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_the_board_s_public_files_are_a_zip(place: Place) -> None:
    answer = place.client.get("/board.zip")
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        names = archive.namelist()
        assert archive.read("log.jsonl") == (place.board / "log.jsonl").read_bytes()
    assert {"board.toml", "log.jsonl", "keys/organisers.txt"} <= set(names)
    assert [name for name in names if name.startswith(("/", "..", "leaderboard"))] == []
    assert place.client.get("/board.zip").headers["etag"] == answer.headers["etag"]


@pytest.fixture
def there() -> OpenIdProvider:
    return OpenIdProvider()


def flow(
    browser: httpx2.Client, there: OpenIdProvider, address: str, form: dict[str, str]
) -> httpx2.Response:
    """Somebody goes to the provider, says yes and comes back."""
    with patch.object(pages, "new_client", there.client):
        sent = browser.post(address, data=form)
        assert sent.status_code == 303, sent.text
        back = there.consent(sent.headers["location"])
        return browser.get("/sign-in/orcid/back", params=back)


def test_a_person_signs_in_for_the_team_that_tied_them(
    make_place: MakePlace, there: OpenIdProvider
) -> None:
    place = make_place(providers=(ORCID,))
    stranger = place.browser()
    unknown = flow(stranger, there, "/sign-in/orcid", {})
    assert unknown.status_code == 403
    assert "No team knows this account" in words_of(unknown)
    assert stranger.get("/account").status_code == 303
    browser, _ = join(place)
    policies = [
        browser.get(one).headers["content-security-policy"] for one in ("/account", "/upload")
    ]
    assert [f"form-action 'self' {ISSUER};" in one for one in policies] == [True, False]
    form = fields_of(browser.get("/account"))
    assert "You can sign in with ORCID" in words_of(flow(browser, there, "/account/orcid", form))
    assert there.asked[-1]["redirect_uri"] == "https://board.example/sign-in/orcid/back"
    assert flow(stranger, there, "/sign-in/orcid", {}).headers["location"] == "/account"
    assert TEAM in words_of(stranger.get("/account"))
    another, _ = join(place, "Another team")
    form = fields_of(another.get("/account"))
    taken = flow(another, there, "/account/orcid", form)
    assert "no other team" in words_of(taken)


def test_a_sign_in_of_somebody_else_s_browser_is_refused(
    make_place: MakePlace, there: OpenIdProvider
) -> None:
    place = make_place(providers=(ORCID,))
    victim, attacker = place.browser(), place.browser()
    with patch.object(pages, "new_client", there.client):
        back = there.consent(attacker.post("/sign-in/orcid", data={}).headers["location"])
        assert victim.get("/sign-in/orcid/back", params=back).status_code == 403
        victim.post("/sign-in/orcid", data={})
        assert victim.get("/sign-in/orcid/back", params=back).status_code == 403
        elsewhere = {**back, "next": "https://evil.example", "redirect_uri": "https://evil.example"}
        told = attacker.get("/sign-in/orcid/back", params=elsewhere)
    assert "evil" not in told.headers.get("location", "")
    assert place.client.post("/sign-in/github", data={}).status_code == 404
    assert place.client.post("/account/orcid", data={}).status_code == 303
