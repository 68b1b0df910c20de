"""A team without git: invited, joined, sealed, sent to a real server, taken in, published."""

import shutil
import time
from io import BytesIO
from pathlib import Path

import httpx2
import pytest
from lab import DAY, NEXT, Answer, Lab, found_lab
from registering import asking_lab, register
from team_server import join, team_pages

from heldout.board.participant.server import Server, new_client, store_token
from heldout.board.store.repository import Repository


def take_in(lab: Lab, *, now: str) -> list[dict[str, str]]:
    answer = lab.organiser("inbox", "--from", lab.root / "uploads", "--json", now=now).done()
    received: list[dict[str, str]] = answer.json["received"]
    return received


def by_token(
    lab: Lab, client: httpx2.Client, token: str, *arguments: str, now: str, clone: Path
) -> Answer:
    """A participant's command in a clone that knows the token, as a terminal would ask for it."""
    store_token(Repository(clone, lab.states), str(client.base_url), token)
    answer = lab.call(*arguments, "--board", clone, "--now", now)
    assert token not in answer.out + answer.err
    return answer


def send(client: httpx2.Client, token: str, name: str, data: bytes) -> None:
    address = str(client.base_url).rstrip("/")
    server = Server(address=address, token=token, connect=new_client, sleep=time.sleep)
    assert not server.upload({name: lambda: BytesIO(data)})


def without_git(lab: Lab, client: httpx2.Client) -> Path:
    """The board's public files as a folder, as the pages give them."""
    packed = lab.root / "board.zip"
    packed.write_bytes(client.get("/board.zip").content)
    shutil.unpack_archive(packed, lab.root / "plain")
    return lab.root / "plain"


def test_a_team_without_git_is_invited_sends_and_is_published(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    with team_pages(lab) as client:
        token = join(lab, client, "Lighthouse Retrieval Group")
        plain = without_git(lab, client)
        submission = lab.draft("one", clone=plain)
        args = ("submit", submission, "--to", str(client.base_url))
        by_token(lab, client, token, *args, now=DAY, clone=plain).done()
        again = by_token(lab, client, token, *args, now=DAY, clone=plain)
        assert "done before" in again.out
        status = by_token(lab, client, token, "status", submission, now=DAY, clone=plain)
        assert "waiting for the organiser" in status.out
        client.headers["authorization"] = f"Bearer {token}"
        (receipt,) = take_in(lab, now=DAY)
        assert (receipt["kind"], receipt["id"]) == ("received", submission)
        lab.push()
        assert client.get(f"/api/v1/submissions/{submission}").json()["state"] in (
            "received",
            "taken in by the organiser; not in the public log yet",
        )
        assert lab.publish(submission, now=NEXT).code == 0
        (row,) = lab.rows()
        assert row["id"] == submission
        assert lab.audit()["ok"]
        assert take_in(lab, now=NEXT) == []
    lab.push()
    with team_pages(lab) as client:  # a start reads the board that was pushed
        client.headers["authorization"] = f"Bearer {token}"
        found = client.get(f"/api/v1/submissions/{submission}").json()
        assert found["state"] == "published"
        assert client.get("/api/v1/standings").json()["rows"][0]["id"] == submission


@pytest.mark.night
def test_a_board_that_asks_for_registration_works_without_git(tmp_path: Path) -> None:
    """Registration and submission are both sent to the server; neither has a branch."""
    lab = asking_lab(tmp_path)
    letters = lab.root / "letters"
    letters.mkdir()
    handle = register(lab, to=letters)
    with team_pages(lab) as client:
        token = join(lab, client, "Lighthouse Retrieval Group")
        letter = (letters / f"{handle}.json").read_bytes()
        send(client, token, f"{handle}.json", letter)
        submission = lab.draft("one")
        args = ("submit", submission, "--to", str(client.base_url))
        by_token(lab, client, token, *args, now=DAY, clone=lab.clone).done()
        send(client, token, "team-0123456789abcdef.json", letter)
    kinds = [one["kind"] for one in take_in(lab, now=DAY)]
    assert sorted(kinds) == ["received", "refused", "registered"], kinds
    assert lab.publish(submission, now=NEXT).code == 0
    assert [row["id"] for row in lab.rows()] == [submission]
    assert lab.audit()["ok"]
