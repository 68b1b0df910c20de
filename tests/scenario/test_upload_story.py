"""A team without git: invited, joined, sealed, sent to a real server, taken in, published."""

import shutil
import time
from io import BytesIO
from pathlib import Path

import httpx2
import pytest
from registering_town import asking_town, register
from serving_town import join, team_pages
from town import Answer, Town, call, found_town

from heldout.board.participant.server import Server, keep_token, new_client
from heldout.board.store.repository import Repository

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


def take_in(town: Town, *, now: str) -> list[dict[str, str]]:
    answer = town.organiser("inbox", "--from", town.root / "uploads", "--json", now=now).done()
    received: list[dict[str, str]] = answer.json["received"]
    return received


def by_token(
    town: Town, client: httpx2.Client, token: str, *arguments: str, now: str, clone: Path
) -> Answer:
    """A participant's command in a clone that knows the token, as a terminal would ask for it."""
    keep_token(Repository(clone, town.states), str(client.base_url), token)
    answer = call(town.root, *arguments, "--board", clone, "--now", now)
    assert token not in answer.out + answer.err
    return answer


def send(client: httpx2.Client, token: str, name: str, data: bytes) -> None:
    address = str(client.base_url).rstrip("/")
    server = Server(address=address, token=token, connect=new_client, sleep=time.sleep)
    assert not server.upload({name: lambda: BytesIO(data)})


def without_git(town: Town, client: httpx2.Client) -> Path:
    """The board's public files as a folder, as the pages give them."""
    packed = town.root / "board.zip"
    packed.write_bytes(client.get("/board.zip").content)
    shutil.unpack_archive(packed, town.root / "plain")
    return town.root / "plain"


def test_a_team_without_git_is_invited_sends_and_is_published(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    with team_pages(town) as client:
        token = join(town, client, "Lighthouse Retrieval Group")
        plain = without_git(town, client)
        submission = town.draft("one", now=DAY, clone=plain)
        told = ("submit", submission, "--to", str(client.base_url))
        by_token(town, client, token, *told, now=DAY, clone=plain).done()
        again = by_token(town, client, token, *told, now=DAY, clone=plain)
        assert "done before" in again.out
        status = by_token(town, client, token, "status", submission, now=DAY, clone=plain)
        assert "waiting for the organiser" in status.out
        client.headers["authorization"] = f"Bearer {token}"
        (receipt,) = take_in(town, now=DAY)
        assert (receipt["kind"], receipt["id"]) == ("received", submission)
        town.push()
        assert client.get(f"/api/v1/submissions/{submission}").json()["state"] in (
            "received",
            "taken in by the organiser; not in the public log yet",
        )
        assert town.publish(submission, now=NEXT).code == 0
        (row,) = town.rows()
        assert row["id"] == submission
        assert town.audit()["ok"]
        assert take_in(town, now=NEXT) == []
    town.push()
    with team_pages(town) as client:  # a start reads the board that was pushed
        client.headers["authorization"] = f"Bearer {token}"
        found = client.get(f"/api/v1/submissions/{submission}").json()
        assert found["state"] == "published"
        assert client.get("/api/v1/standings").json()["rows"][0]["id"] == submission


@pytest.mark.night
def test_a_board_that_asks_for_registration_works_without_git(tmp_path: Path) -> None:
    """Registration and submission are both sent to the server; neither has a branch."""
    town = asking_town(tmp_path)
    letters = town.root / "letters"
    letters.mkdir()
    handle = register(town, to=letters)
    with team_pages(town) as client:
        token = join(town, client, "Lighthouse Retrieval Group")
        letter = (letters / f"{handle}.json").read_bytes()
        send(client, token, f"{handle}.json", letter)
        submission = town.draft("one", now=DAY)
        told = ("submit", submission, "--to", str(client.base_url))
        by_token(town, client, token, *told, now=DAY, clone=town.clone).done()
        send(client, token, "team-0123456789abcdef.json", letter)
    kinds = [one["kind"] for one in take_in(town, now=DAY)]
    assert sorted(kinds) == ["received", "refused", "registered"], kinds
    assert town.publish(submission, now=NEXT).code == 0
    assert [row["id"] for row in town.rows()] == [submission]
    assert town.audit()["ok"]
