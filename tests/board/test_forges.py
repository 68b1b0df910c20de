"""The three hosted forges against a server of their shapes and faults: every method, the token."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from forge_server import (
    KINDS,
    PROJECTS,
    TOKEN,
    Fault,
    Forge,
    Kind,
    Misbehave,
    breaks_off,
    hangs_up,
    is_silent,
    pours,
    says,
    sends,
    serve,
)

from heldout.board.rules.spec import ForgeSpec
from heldout.board.store.forges import Handle, HostedForge, Surroundings, open_forge
from heldout.board.store.git import Git
from heldout.errors import SetupError, StoreError
from heldout.ids import Digest, SubmissionId, digest_bytes

EVENT = digest_bytes(b"an event")


ONE = Handle("1")


NOW = 1_795_000_000.0


@dataclass
class Clock:
    """Time that passes only in `sleep`, and by `step` with every look."""

    now: float = NOW
    step: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Client:
    """A forge as heldout sees it, and the server behind it."""

    forge: HostedForge
    server: Forge
    clock: Clock


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Forge]:
    kind: Kind = request.param
    with serve(kind) as forge:
        yield forge


@pytest.fixture(scope="module")
def clients() -> Iterator[Mapping[bool, httpx2.Client]]:
    """A patient client and a hasty one; both follow redirects, as a careless caller's would."""
    with (
        httpx2.Client(timeout=20, follow_redirects=True, trust_env=False) as patient,
        httpx2.Client(timeout=0.6, follow_redirects=True, trust_env=False) as hasty,
    ):
        yield {False: patient, True: hasty}


@pytest.fixture
def http(request: pytest.FixtureRequest, clients: Mapping[bool, httpx2.Client]) -> httpx2.Client:
    return clients["no answer in time" in request.node.name]


@pytest.fixture
def client(server: Forge, http: httpx2.Client) -> Client:
    return connect(server, http)


def connect(
    server: Forge, http: httpx2.Client, *, token: str = TOKEN, project: str | None = None
) -> Client:
    clock = Clock()
    forge = open_forge(
        ForgeSpec(kind=server.kind, url=server.url, project=project or PROJECTS[server.kind]),
        Git(Path("/nonexistent")),
        "age",
        main="HEAD",
        world=Surroundings(
            client=http,
            environ={"HELDOUT_FORGE_TOKEN": token},
            clock=clock,
            sleep=clock.sleep,
            token_host=server.url,
        ),
    )
    assert isinstance(forge, HostedForge)
    return Client(forge=forge, server=server, clock=clock)


WAITED: dict[str, tuple[Misbehave, float]] = {
    "too many requests, seconds to wait": (says(429, "slow down", {"Retry-After": "7"}), 7),
    "too many requests, a date to wait for": (
        says(429, "slow down", {"Retry-After": "Wed, 18 Nov 2026 11:06:50 GMT"}),
        10,
    ),
    "too many requests, nothing said": (says(429, "slow down"), 60),
    "the hour's limit spent, over soon": (
        says(
            403,
            "API rate limit exceeded for user ID 7.",
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(NOW) + 20)},
        ),
        20,
    ),
    "a secondary limit, nothing said": (
        says(403, "You have exceeded a secondary rate limit. Please wait a few minutes."),
        60,
    ),
    "the limit of GitLab": (
        says(
            429, "Retry later", {"RateLimit-Reset": str(int(NOW) + 5), "RateLimit-Remaining": "0"}
        ),
        5,
    ),
    "a reset that is over already": (says(429, "x", {"X-RateLimit-Reset": str(int(NOW) - 100)}), 1),
    "a wait that is no number": (says(429, "x", {"Retry-After": "soon"}), 60),
}


PASSING: dict[str, Misbehave] = {
    "500": says(500, "oops"),
    "502 as a page": sends(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}),
    "503 with a time to wait": says(503, "maintenance", {"Retry-After": "2"}),
    "504": says(504, "gateway timeout"),
    "the connection is closed": hangs_up,
    "the document breaks off": breaks_off,
    "no answer in time": is_silent,
}


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
    assert client.forge.comment(ONE, "News", event=digest_bytes(b"another event")) == "done"
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


def test_without_a_token_a_board_is_read_alone(server: Forge, http: httpx2.Client) -> None:
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
def test_a_malformed_token_is_not_shown(server: Forge, http: httpx2.Client, token: str) -> None:
    with pytest.raises(SetupError) as caught:
        connect(server, http, token=token)
    assert token not in str(caught.value)


def test_the_token_is_in_no_representation(client: Client) -> None:
    assert TOKEN not in repr(client.forge)


def test_a_project_that_is_not_there_is_told(server: Forge, http: httpx2.Client) -> None:
    with pytest.raises(StoreError, match="404: no such project"):
        connect(server, http, project="nobody/nothing").forge.list_open()


def listing(number: int = 1, sha: str = "a" * 40) -> bytes:
    """A page with one request, as it is on any of the three."""
    one = {"number": number, "iid": number, "title": "x", "user": None, "author": None}
    return json.dumps([{**one, "labels": [], "head": {"sha": sha}, "sha": sha}]).encode()


def lists_for_ever(handler_forge: Forge) -> Misbehave:
    """Every page is another one, and says that one more comes."""
    count = iter(range(1, 10_000))

    def act(handler: object) -> None:
        number = next(count)
        last = handler_forge.seen[-1].path
        if last.endswith(("pulls", "merge_requests")):
            headers = {"Link": '<http://evil.example/?page=2>; rel="next"'}
            sends(200, listing(number, f"{number:040x}"), headers)(handler)  # type: ignore[arg-type]

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
    "a commit that is a path": (sends(200, listing(sha="--upload-pack=evil")), "another JSON"),
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
    act = sends(200, listing(), {"Link": '<http://evil.example/?page=2>; rel="next"'})
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
        page = listing()
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
def test_a_comment_whose_answer_is_lost_is_not_posted_again(client: Client, name: str) -> None:
    request = client.server.add(1)
    client.server.faults.append(Fault(act=PASSING[name], method="POST", after=True, times=99))
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "done"
    assert client.forge.comment(ONE, "Hello", event=EVENT) == "known"
    assert len(client.server.calls("POST")) == len(request.comments) == 1


@pytest.mark.parametrize("name", PASSING)
def test_a_comment_perhaps_not_posted_waits_for_a_call(client: Client, name: str) -> None:
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
