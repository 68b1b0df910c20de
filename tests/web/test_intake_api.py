"""The API: uploads that go on, what is refused and how, standings that are the same bytes."""

import hashlib
import json
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from team_stage import ENDINGS, ONE, MakePlace, Place, declared, files_of, make_place, place, send

from heldout.board.store.uploads import FileLimits
from heldout.intake.api import NewUpload
from heldout.intake.uploads import IntakeLimits

__all__ = ["make_place", "place"]
API = "/api/v1"


@pytest.fixture
def team(place: Place) -> httpx2.Client:
    return place.as_team(place.join()[1])


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == answer.status_code
    assert answer.headers["x-error-code"] == document["code"]
    return answer.status_code, document["code"]


def begin(team: httpx2.Client, files: dict[str, bytes]) -> str:
    answer = team.post(f"{API}/uploads", json=declared(files))
    assert answer.status_code == 201, answer.text
    return f"{API}/uploads/{answer.json()['id']}"


def test_names_of_files_are_not_remembered() -> None:
    """pydantic would hold 16,384 of them, whoever sent them."""
    text = json.dumps(declared(files_of()))
    one, two = (NewUpload.model_validate_json(text).files[0].name for _ in range(2))
    assert one == two
    assert one is not two


def test_an_upload_is_handed_over_with_a_receipt(place: Place, team: httpx2.Client) -> None:
    answer = send(team, files_of())
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"] == ONE
    assert answer.json()["received"] == "2026-11-21T12:00:00Z"
    assert place.delivered() == files_of()
    (one,) = team.get(f"{API}/submissions").json()["submissions"]
    assert one == team.get(f"{API}/submissions/{ONE}").json()
    assert (one["state"], one["sent"]) == ("waiting for the organiser", "2026-11-21T12:00:00Z")
    quota = team.get(f"{API}/quota").json()
    assert (quota["used"], quota["limit"]) == (1, 2)
    again = team.post(f"{API}/uploads", json=declared(files_of()))
    assert (again.status_code, again.json()["state"]) == (200, "accepted")


def test_a_cut_upload_goes_on_from_the_byte_that_the_server_has(
    place: Place, team: httpx2.Client
) -> None:
    files = files_of(size=100_000)
    path, name = begin(team, files), f"{ONE}{ENDINGS[0]}"
    host, port = httpx2.URL(place.url).host, httpx2.URL(place.url).port
    head = (
        f"PATCH {path}/files/{name}?offset=0 HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {team.headers['authorization']}\r\nContent-Length: 100007\r\n\r\n"
    )
    with socket.create_connection((host, port), timeout=10) as line:
        line.sendall(head.encode() + files[name][:40_000])
        end = time.monotonic() + 20
        while sum(one.stat().st_size for one in place.uploads.glob(".parts/*/*")) < 40_000:
            assert time.monotonic() < end
            time.sleep(0.02)
    while not (shown := team.get(path).json())["files"][2]["received"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (shown["files"][2]["name"], shown["files"][2]["received"]) == (name, 40_000)
    assert code_of(team.post(f"{path}/finish")) == (409, "upload-incomplete")
    wrong = team.patch(f"{path}/files/{name}", params={"offset": 39_999}, content=b"x")
    assert code_of(wrong) == (409, "upload-offset")
    again = team.post(f"{API}/uploads", json=declared(files))  # the client was started again
    assert (again.status_code, again.json()["id"]) == (200, shown["id"])
    for other, data in files.items():
        start = 40_000 if other == name else 0
        team.patch(f"{path}/files/{other}", params={"offset": start}, content=data[start:])
    assert team.post(f"{path}/finish").status_code == 200
    assert place.delivered() == files


def test_too_much_is_refused_before_it_is_read(place: Place, team: httpx2.Client) -> None:
    files = files_of()
    name = next(iter(files))
    huge = declared(files)
    huge["files"][0]["bytes"] = (1 << 20) + 1
    assert code_of(team.post(f"{API}/uploads", json=huge)) == (413, "upload-too-large")
    path = begin(team, files)
    long = team.patch(f"{path}/files/{name}", params={"offset": 0}, content=b"x" * 50)
    assert code_of(long) == (413, "upload-too-large")
    body = json.dumps({"files": ["x" * 70_000]})
    assert code_of(team.post(f"{API}/uploads", content=body)) == (413, "upload-too-large")
    assert team.delete(path).status_code == 204
    assert code_of(team.post(f"{path}/finish")) == (409, "upload-ended")
    assert place.delivered() == {}


def test_a_nul_in_an_address_never_reaches_the_database(team: httpx2.Client) -> None:
    """PostgreSQL takes none in a text, and the driver's own error would be a bug's page."""
    path = begin(team, files_of())
    for call in (
        team.get(f"{API}/uploads/a%00b"),
        team.delete(f"{API}/uploads/%00"),
        team.post(f"{API}/uploads/%00/finish"),
        team.get(f"{API}/submissions/%00"),
        team.patch(f"{path}/files/%00", params={"offset": 0}, content=b"x"),
    ):
        assert code_of(call) == (422, "request")


@pytest.mark.parametrize("offset", ["1_0", "+10", " 10", "10.0", "1e1", "٣", "-0", "0x1", ""])
def test_a_number_that_is_not_written_in_digits_is_refused(
    team: httpx2.Client, offset: str
) -> None:
    """`1_0` was read as 10."""
    path, name = begin(team, files_of()), f"{ONE}{ENDINGS[0]}"
    part = team.patch(f"{path}/files/{name}", params={"offset": offset}, content=b"x")
    assert code_of(part) == (422, "request")
    for page in ("standings", "submissions"):
        for which in ("offset", "limit"):
            answer = team.get(f"{API}/{page}", params={which: offset})
            assert code_of(answer) == (422, "request")
    size = declared(files_of("20261121-two"))
    size["files"][0]["bytes"] = offset
    assert code_of(team.post(f"{API}/uploads", json=size)) == (422, "request")


def test_limits_of_a_team_and_of_the_disk_are_told(make_place: MakePlace) -> None:
    place = make_place(most=IntakeLimits(of_team=1, free_bytes=0, bytes=1000))
    team = place.as_team(place.join()[1])
    begin(team, files_of())
    more = team.post(f"{API}/uploads", json=declared(files_of("20261121-two")))
    assert code_of(more) == (429, "upload-limit")
    assert int(more.headers["retry-after"]) > 0
    other = place.as_team(place.join("Another team")[1])
    full = other.post(f"{API}/uploads", json=declared(files_of("20261121-three", size=900)))
    assert code_of(full) == (507, "upload-full")


def test_a_closed_board_takes_nothing(place: Place, team: httpx2.Client) -> None:
    view = place.intake.board.view()
    closed = replace(view.history, closed=place.clock())  # a history is shared by who reads the log
    object.__setattr__(view, "history", closed)
    assert code_of(send(team, files_of())) == (403, "board-closed")


def test_nothing_of_another_team_is_seen(place: Place, team: httpx2.Client) -> None:
    path = begin(team, files_of())
    other = place.as_team(place.join("Another team")[1])
    for answer in (
        other.get(path),
        other.post(f"{path}/finish"),
        other.delete(path),
        other.patch(f"{path}/files/{ONE}{ENDINGS[0]}", params={"offset": 0}, content=b"x"),
        other.get(f"{API}/submissions/{ONE}"),
    ):
        assert code_of(answer) == (404, "upload-unknown")
    for method, address in (("GET", path), ("GET", f"{API}/quota"), ("POST", f"{API}/uploads")):
        answer = place.client.request(method, place.url + address)
        assert code_of(answer) == (401, "team-token")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_standings_are_the_published_digits_page_by_page(place: Place) -> None:
    file = place.board / "leaderboard" / "leaderboard.json"
    rows = [
        {"rank": n, "id": f"e{n}", "team": f"Team {n}", "description": f"System {n}"}
        for n in range(1, 6)
    ]
    text = json.dumps({"schema": 1, "board": "b", "as_of": "2026-11-21T00:00:00Z", "rows": rows})
    file.write_text(text.replace('"System 1"', '"System 1", "scores": {"RR@10": 0.410}'))
    first = place.client.get(f"{API}/standings", params={"limit": 2})
    assert "0.410" in first.text
    found = first.json()
    assert [row["rank"] for row in found["rows"]] == [1, 2]
    assert (found["total"], found["next"], found["as_of"][:10]) == (5, 2, "2026-11-21")
    last = place.client.get(f"{API}/standings", params={"offset": 4}).json()
    assert (last["rows"][0]["id"], last["next"]) == ("e5", None)
    known = {"if-none-match": first.headers["etag"]}
    assert (
        place.client.get(f"{API}/standings", params={"limit": 2}, headers=known).status_code == 304
    )
    assert "public" in first.headers["cache-control"]
    file.write_text("{")
    assert place.client.get(f"{API}/standings").status_code in (200, 503)


def test_a_wrong_request_says_where_it_is_wrong(place: Place, team: httpx2.Client) -> None:
    for answer in (
        place.client.get(f"{API}/standings", params={"limit": 0}),
        place.client.get(f"{API}/standings", params={"limit": "x"}),
        team.post(f"{API}/uploads", content=b"{"),
        team.post(f"{API}/uploads", json={"files": [], "more": 1}),
    ):
        assert code_of(answer) == (422, "request")
    for nowhere in ("nothing", "submissions/%0a", "%0a"):  # the last two schemathesis found
        assert code_of(team.get(f"{API}/{nowhere}"))[0] == 404
    assert code_of(place.client.put(f"{API}/standings"))[0] == 405
    digest = hashlib.sha256(b"x").hexdigest()
    odd = {"files": [{"name": "../x", "bytes": 1, "sha256": digest}]}
    assert code_of(team.post(f"{API}/uploads", json=odd)) == (422, "upload-name")
    assert FileLimits().file_bytes == 1 << 30


def test_the_page_of_the_api_is_as_the_api_describes_itself() -> None:
    root = Path(__file__).parents[2]
    program = [sys.executable, str(root / "tools" / "http_api.py")]
    printed = subprocess.run(program, capture_output=True, check=True, text=True).stdout
    assert (root / "docs" / "reference" / "http.md").read_text("utf-8") == printed, (
        "python tools/http_api.py > docs/reference/http.md"
    )
