"""Hosted forges that answer nonsense, without end, or to learn the token."""

from collections.abc import Callable

import forge_clients
import httpx2
import pytest
from forge_clients import EVENT, ONE, Client, connect
from forge_faults import PASSING, WAITED
from forge_server import TOKEN, Fault, Forge, Misbehave, pours, says, sends, serve

from heldout.errors import StoreError

server = forge_clients.server
clients = forge_clients.clients
http = forge_clients.http
client = forge_clients.client


def lists_for_ever(handler_forge: Forge) -> Misbehave:
    """Every page is another one, and says that one more comes."""
    count = iter(range(1, 10_000))

    def act(handler: object) -> None:
        number = next(count)
        last = handler_forge.seen[-1].path
        if last.endswith(("pulls", "merge_requests")):
            items = f'[{{"number":{number},"iid":{number},"title":"x","user":null,"author":null,'
            items += f'"labels":[],"head":{{"sha":"{number:040x}"}},"sha":"{number:040x}"}}]'
            headers = {"Link": '<http://evil.example/?page=2>; rel="next"'}
            sends(200, items.encode(), headers)(handler)  # type: ignore[arg-type]

    return act


NONSENSE: dict[str, tuple[Misbehave, str]] = {
    "a page of HTML": (
        sends(200, b"<!DOCTYPE html><p>Sign in", {"Content-Type": "text/html"}),
        'no JSON .*"text/html"',
    ),
    "nothing at all": (sends(200, b""), "no JSON"),
    "bytes that are no UTF-8": (sends(200, b'["\xff\xfe"]'), "no JSON|another JSON"),
    "half a document": (sends(200, b'[{"number": 1, "ti'), "no JSON"),
    "an object for a list": (sends(200, b"{}"), "another JSON than documented"),
    "a list of numbers": (sends(200, b"[1, 2]"), "another JSON than documented"),
    "a list of nothing": (sends(200, b"[null]"), "another JSON than documented"),
    "a number that is text": (
        sends(200, b'[{"number": "1", "iid": "1"}]'),
        "another JSON than documented",
    ),
    "a negative number": (sends(200, b'[{"number": -1, "iid": -1}]'), "another JSON"),
    "a commit that is a path": (
        sends(
            200,
            b'[{"number":1,"iid":1,"title":"x","user":null,"author":null,"labels":[],'
            b'"head":{"sha":"--upload-pack=evil"},"sha":"--upload-pack=evil"}]',
        ),
        "another JSON",
    ),
    "brackets without end": (sends(200, b'[{"x": ' + b"[" * 100_000), "no JSON"),
    "50 MB": (pours, "over 8 MiB"),
    "a small archive of a large text": (
        sends(200, b"\x1f\x8b" + b"x" * 100, {"Content-Encoding": "gzip"}),
        "or compressed",
    ),
    "a teapot": (says(418, "I'm a teapot"), "418"),
    "control characters in an error": (says(422, "\x1b[31mred\x07 \u202egnp"), r"\\x1b\[31mred"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused_in_one_line(client: Client, name: str) -> None:
    act, said = NONSENSE[name]
    client.server.faults.append(Fault(act=act, times=99))
    with pytest.raises(StoreError, match=said) as caught:
        client.forge.list_open()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_list_without_end_is_given_up(client: Client) -> None:
    client.server.faults.append(Fault(act=lists_for_ever(client.server), times=9999))
    with pytest.raises(StoreError, match="does not end"):
        client.forge.list_open()
    assert len(client.server.seen) == 200


LONG = 900_000


def test_long_texts_in_requests_and_comments_hide_nothing(client: Client) -> None:
    """GitLab takes a million characters; a page of those is more than is read at once."""
    for number in range(1, 31):
        client.server.add(number, title="<" * LONG)
    chatter = ["x" * LONG] * 25
    client.server.requests[1].comments += [*chatter, f"<!-- heldout {EVENT} -->"]
    if client.server.kind == "forgejo":  # which gives all comments at once
        with pytest.raises(StoreError, match="over 8 MiB"):
            client.forge.comment(ONE, "Hello", event=EVENT)
    else:
        assert client.forge.comment(ONE, "Hello", event=EVENT) == "known"
    assert client.server.calls("POST") == []
    assert [int(r.handle) for r in client.forge.list_open()] == list(range(1, 31))


def test_a_page_that_comes_again_and_again_ends_the_list(client: Client) -> None:
    page = b'[{"number":1,"iid":1,"title":"x","user":null,"author":null,"labels":[],'
    page += b'"head":{"sha":"' + b"a" * 40 + b'"},"sha":"' + b"a" * 40 + b'"}]'
    act = sends(200, page, {"Link": '<http://evil.example/?page=2>; rel="next"'})
    client.server.faults.append(Fault(act=act, times=99))
    assert [r.handle for r in client.forge.list_open()] == ["1"]
    assert len(client.server.seen) == 2


def test_an_answer_that_drips_is_given_up(client: Client) -> None:
    client.clock.step = 200.0
    with pytest.raises(StoreError, match="took over 120 s"):
        client.forge.list_open()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_never_takes_the_token_elsewhere(client: Client, status: int) -> None:
    with serve("github") as evil:
        target = f"http://user:pass@localhost:{evil.url.rpartition(':')[2]}/api/v4/projects"
        act = says(status, "moved", {"Location": target})
        client.server.faults.append(Fault(act=act, times=99))
        client.server.add(1)
        for call in (client.forge.list_open, lambda: client.forge.close(ONE)):
            with pytest.raises(StoreError, match="elsewhere") as caught:
                call()
            assert "pass" not in str(caught.value)
        assert evil.seen == []


def test_a_next_page_elsewhere_is_not_asked_with_the_token(client: Client) -> None:
    with serve("github") as evil:
        page = b'[{"number":1,"iid":1,"title":"x","user":null,"author":null,"labels":[],'
        page += b'"head":{"sha":"' + b"a" * 40 + b'"},"sha":"' + b"a" * 40 + b'"}]'
        link = f'<{evil.url}/api/v3/repos/lab/board/pulls?page=2>; rel="next"'
        client.server.faults.append(Fault(act=sends(200, page, {"Link": link})))
        client.forge.list_open()
        assert evil.seen == []


def test_a_forge_that_says_the_token_back_does_not_get_it_shown(client: Client) -> None:
    client.server.faults.append(Fault(act=says(422, f"your token {TOKEN} is odd"), times=9))
    with pytest.raises(StoreError, match="your token … is odd") as caught:
        client.forge.list_open()
    assert TOKEN not in str(caught.value)


EVERY_FAULT = {
    **{name: act for name, (act, _) in WAITED.items()},
    **PASSING,
    **{name: act for name, (act, _) in NONSENSE.items()},
}


@pytest.mark.parametrize("name", EVERY_FAULT)
def test_no_message_of_any_fault_has_the_token(
    name: str, http: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    with serve("gitlab") as server:
        client = connect(server, http)
        server.add(1)
        server.faults.append(Fault(act=EVERY_FAULT[name], times=2))
        for call in (client.forge.list_open, lambda: client.forge.close(ONE)):
            assert TOKEN not in tell(call)
    assert TOKEN not in caplog.text


def tell(call: Callable[[], object]) -> str:
    """All that an error says of itself, "" where there is none."""
    try:
        call()
    except StoreError as error:
        return f"{error} {error!r} {error.__cause__!r}"
    return ""
