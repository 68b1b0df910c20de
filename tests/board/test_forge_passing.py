"""Hosted forges that fail for a while: waited for and asked again, and nothing done twice."""

import forge_clients
import httpx2
import pytest
from forge_clients import EVENT, NOW, ONE, Client, connect
from forge_faults import PASSING, WAITED
from forge_server import Fault, says, serve

from heldout.board.store.forges import Handle
from heldout.errors import StoreError

server = forge_clients.server
clients = forge_clients.clients
http = forge_clients.http
client = forge_clients.client


@pytest.mark.parametrize("name", WAITED)
def test_a_limit_is_waited_for_then_all_goes_on(client: Client, name: str) -> None:
    act, seconds = WAITED[name]
    request = client.server.add(1)
    client.server.faults += [Fault(act=act, method="GET"), Fault(act=act, method="POST")]
    client.forge.list_open()
    assert client.clock.slept == [seconds]
    client.clock.now = NOW
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "done"
    assert client.clock.slept == [seconds] * 2
    assert len(request.comments) == 1


def test_a_limit_that_lasts_an_hour_is_told_and_not_waited_for(client: Client) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 3600)}
    client.server.faults.append(Fault(act=says(403, "rate limit exceeded", headers), times=9))
    with pytest.raises(StoreError, match="call again after 18 Nov 2026 12:06 UTC"):
        client.forge.list_open()
    assert client.clock.slept == []


def test_a_limit_that_never_ends_is_given_up(client: Client) -> None:
    client.server.faults.append(Fault(act=says(429, "x", {"Retry-After": "3"}), times=99))
    with pytest.raises(StoreError, match="asked 4 times"):
        client.forge.list_open()
    assert client.clock.slept == [3, 3, 3]


@pytest.mark.parametrize("name", PASSING)
def test_a_failure_while_reading_is_asked_again(client: Client, name: str) -> None:
    client.server.add(1)
    client.server.faults.append(Fault(act=PASSING[name], method="GET"))
    assert len(client.forge.list_open()) == 1
    assert len(client.clock.slept) == 1


@pytest.mark.parametrize("name", ["500", "the connection is closed"])
def test_a_failure_that_stays_is_told_after_four_times(client: Client, name: str) -> None:
    client.server.faults.append(Fault(act=PASSING[name], times=99))
    with pytest.raises(StoreError, match="asked 4 times"):
        client.forge.list_open()
    assert len(client.server.seen) == 4


def test_a_forge_that_cannot_be_reached_is_told(http: httpx2.Client) -> None:
    with serve("github") as server:
        gone = connect(server, http)
    with pytest.raises(StoreError, match="cannot be reached"):
        gone.forge.comment(ONE, "x", event=EVENT)


# never twice


@pytest.mark.parametrize("name", PASSING)
def test_a_comment_whose_answer_is_lost_is_found_and_not_posted_again(
    client: Client, name: str
) -> None:
    request = client.server.add(1)
    client.server.faults.append(Fault(act=PASSING[name], method="POST", after=True, times=99))
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "done"
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "known"
    assert len(client.server.calls("POST")) == len(request.comments) == 1


@pytest.mark.parametrize("name", PASSING)
def test_a_comment_that_perhaps_was_not_posted_waits_for_the_next_call(
    client: Client, name: str
) -> None:
    request = client.server.add(1)
    client.server.faults.append(Fault(act=PASSING[name], method="POST"))
    with pytest.raises(StoreError, match="call again"):
        client.forge.comment(ONE, "Hello", event=EVENT)
    assert len(client.server.calls("POST")) == 1
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "done"
    assert len(request.comments) == 1


def test_a_comment_is_not_posted_while_the_others_cannot_be_read(client: Client) -> None:
    client.server.add(1)
    client.server.faults.append(Fault(act=says(500, "oops"), method="GET", times=99))
    with pytest.raises(StoreError):
        client.forge.comment(ONE, "Hello", event=EVENT)
    assert client.server.calls("POST") == []


@pytest.mark.parametrize("name", PASSING)
def test_a_close_whose_answer_is_lost_is_looked_up(client: Client, name: str) -> None:
    client.server.add(2)
    for method in ("PUT", "PATCH", "POST"):
        client.server.faults.append(Fault(act=PASSING[name], method=method, after=True, times=99))
    assert client.forge.close(Handle("2")) == "done"
    assert sum(seen.method != "GET" for seen in client.server.seen) == 1
