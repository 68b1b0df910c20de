"""What every answer of the judging pages carries, and what they do not answer."""

import judging_stage
import pytest
from judging_stage import Make, Stage, fields_of, words_of

stage = judging_stage.stage
one = judging_stage.one
root = judging_stage.root


def test_every_answer_carries_the_headers_and_no_cookie(one: Stage, root: str) -> None:
    pages = [one.client.get(place) for place in (one.link, f"{root}/item/1", "/", "/a/x/done")]
    pages += [one.post(f"{root}/item/1", {}), one.client.get("/static/judging.css")]
    pages += [one.client.get("/static/none.css"), one.client.call("DELETE", one.link)]
    for page in pages:
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert "set-cookie" not in page.headers
    assert all("://" not in page.text.replace("http://www.w3.org/2000/svg", "") for page in pages)
    assert pages[0].headers["cache-control"] == "no-store"


def test_head_is_answered_as_get_without_a_body(one: Stage, root: str) -> None:
    for place in (one.link, f"{root}/item/1", "/health", "/static/judging.css", "/nowhere"):
        head, page = one.client.call("HEAD", place), one.client.get(place)
        assert head.status_code == page.status_code
        assert head.content == b""
        assert head.headers["content-length"] == str(len(page.content))
    assert one.client.call("HEAD", f"{one.link}/consent").status_code == 405


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/static/../app.py", "/admin"]
)
def test_there_are_no_other_pages(stage: Make, path: str) -> None:
    page = stage().client.get(path)
    assert page.status_code == 404
    assert "There is no such page" in words_of(page)


def test_an_unknown_link_says_nothing_of_the_study(one: Stage) -> None:
    for code in ("x", one.campaign.code[:-1], one.campaign.code + "x", "%E2%82%AC"):
        page = one.client.get(f"/j/{code}", params={"worker": "ada"})
        assert page.status_code == 404
        assert "Approval" not in page.text


def test_a_form_that_is_too_long_is_refused(one: Stage, root: str) -> None:
    fields = fields_of(one.client.get(f"{root}/item/1"))
    answer = one.post(f"{root}/item/1", {**fields, "choice": "a" * 100_000})
    assert answer.status_code == 413
    many = {f"f{number}": "" for number in range(1_100)}
    assert one.post(f"{root}/item/1", {**fields, **many}).status_code == 400
    assert one.client.post(f"{root}/item/1", content=b"\xff\xfe=\x00").status_code == 400
    for body in (b"%", b"&&&=", b"choice=a&choice=b"):
        answer = one.client.post(f"{root}/item/1", content=body)
        assert answer.status_code == 403
    assert one.judgments() == ()
