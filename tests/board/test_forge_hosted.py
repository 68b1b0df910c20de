"""The three hosted forges against a server that keeps their shapes: every method, the token."""

from collections.abc import Callable

import forge_clients
import httpx2
import pytest
from forge_clients import EVENT, ONE, OTHER, Client, connect
from forge_server import TOKEN, Forge

from heldout.board.store.forges import Handle
from heldout.errors import SetupError, StoreError
from heldout.ids import Digest, SubmissionId

server = forge_clients.server
clients = forge_clients.clients
http = forge_clients.http
client = forge_clients.client


# every method


def test_open_requests_are_listed_over_all_pages_oldest_first(client: Client) -> None:
    for number in range(1, 232):
        client.server.add(number)
    client.server.requests[7].state = "closed"
    client.server.requests[8].state = "merged"
    listed = client.forge.list_open()
    assert [int(r.handle) for r in listed] == [n for n in range(1, 232) if n not in (7, 8)]
    assert len(client.server.calls("GET")) == (5 if client.server.kind == "forgejo" else 3)


def test_a_request_has_its_ref_and_commit(client: Client) -> None:
    client.server.add(31, "a" * 40)
    (found,) = client.forge.list_open()
    folder = "merge-requests" if client.server.kind == "gitlab" else "pull"
    assert found.ref == f"refs/{folder}/31/head"
    assert (found.handle, found.sha) == ("31", "a" * 40)


def test_a_request_whose_author_is_gone_is_listed(client: Client) -> None:
    client.server.add(1, author=None)
    assert len(client.forge.list_open()) == 1


def test_a_board_without_requests_has_none(client: Client) -> None:
    assert client.forge.list_open() == ()


def test_a_comment_is_posted_with_its_mark_and_found_again(client: Client) -> None:
    request = client.server.add(1)
    assert client.forge.comment(ONE, "Hello\n", event=EVENT) == "done"
    assert request.comments == [f"Hello\n\n<!-- heldout {EVENT} -->\n"]
    assert client.forge.comment(ONE, "Hello again", event=EVENT) == "known"
    assert len(request.comments) == 1
    assert client.forge.comment(ONE, "News", event=OTHER) == "done"
    assert len(request.comments) == 2


def test_a_mark_is_found_on_the_last_of_many_pages(client: Client) -> None:
    chatter = [f"comment {n}" for n in range(310)]
    client.server.add(1, comments=[*chatter, f"x\r\n\r\n<!-- heldout {EVENT} -->\r\n"])
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "known"
    assert client.server.calls("POST") == []


def test_a_mark_inside_a_line_is_not_taken_for_one(client: Client) -> None:
    request = client.server.add(1, comments=[f"they wrote `<!-- heldout {EVENT} -->` there"])
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "done"
    assert len(request.comments) == 2


def test_a_request_is_closed_once(client: Client) -> None:
    request = client.server.add(1)
    assert client.forge.close(ONE) == "done"
    assert request.state == "closed"
    assert client.forge.close(ONE) == "known"
    client.server.add(2, state="merged")
    assert client.forge.close(Handle("2")) == "known"


def test_labels_are_added_to_those_that_are_there(client: Client) -> None:
    client.server.labels["published"] = 5
    request = client.server.add(1, labels=["theirs"])
    client.server.labels["theirs"] = 6
    for _ in range(2):
        assert client.forge.label(ONE, "published", "heldout: received") == "done"
    assert request.labels == ["theirs", "published", "heldout: received"]


@pytest.mark.parametrize("name", ["", "a,b", "\nx", "-x", "ü", "x" * 60])
def test_a_label_that_a_forge_could_misread_is_not_sent(client: Client, name: str) -> None:
    with pytest.raises(ValueError, match="no label"):
        client.forge.label(ONE, name)
    assert client.server.seen == []


@pytest.mark.parametrize("handle", ["", "0", "1/../2", "1?x", "-1", "٣", "x", "9" * 17])
def test_a_handle_that_is_no_number_never_becomes_an_address(client: Client, handle: str) -> None:
    forge = client.forge
    calls: tuple[Callable[[], object], ...] = (
        lambda: forge.comment(Handle(handle), "x", event=EVENT),
        lambda: forge.close(Handle(handle)),
        lambda: forge.label(Handle(handle), "x"),
    )
    for call in calls:
        with pytest.raises(ValueError, match="no number of a request"):
            call()
    assert client.server.seen == []


def test_an_event_that_is_no_hash_makes_no_mark(client: Client) -> None:
    with pytest.raises(ValueError, match="-->"):
        client.forge.comment(ONE, "x", event=Digest("--> @all"))


def test_a_request_is_found_by_the_source_of_its_arrival(client: Client) -> None:
    submission = SubmissionId("20261102-x")
    assert client.forge.locate("pull request 31", submission) == "31"
    for source in ("pull request 0", "pull request 31x", "branch submission/1", "a folder"):
        assert client.forge.locate(source, submission) is None


# the token


def test_without_a_token_a_public_board_is_read_and_nothing_is_changed(
    server: Forge, http: httpx2.Client
) -> None:
    server.add(1)
    client = connect(server, http, token="")
    assert len(client.forge.list_open()) == 1
    with pytest.raises(StoreError, match=r"401.*HELDOUT_FORGE_TOKEN"):
        client.forge.close(ONE)


def test_a_wrong_token_is_told_without_showing_it(server: Forge, http: httpx2.Client) -> None:
    wrong = "wrong-9f8e7d"
    with pytest.raises(StoreError, match="401") as caught:
        connect(server, http, token=wrong).forge.list_open()
    assert wrong not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "line\nend", "tokén", "x" * 5000, "\x00"])
def test_a_malformed_token_is_refused_without_showing_it(
    server: Forge, http: httpx2.Client, token: str
) -> None:
    with pytest.raises(SetupError) as caught:
        connect(server, http, token=token)
    assert token not in str(caught.value)


def test_the_token_is_in_no_representation(client: Client) -> None:
    assert TOKEN not in repr(client.forge)


def test_a_project_that_is_not_there_is_told(server: Forge, http: httpx2.Client) -> None:
    with pytest.raises(StoreError, match="404: no such project"):
        connect(server, http, project="nobody/nothing").forge.list_open()
