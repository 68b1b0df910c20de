"""A model endpoint that misbehaves in every way, over real HTTP, and the rows on disk."""

import json
import os
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer, chat_server, completion, say

from heldout.errors import SetupError, StoreError
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.models.judges import (
    BODY_LIMIT,
    ROWS,
    Call,
    ModelClient,
    ModelJudge,
    ModelJudgment,
    Reply,
    ask_model,
    completions_url,
    new_client,
    open_rows,
    plan_calls,
    read_key,
    read_rows,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = "sk-very-secret"
MESSAGES = ({"role": "system", "content": "Judge."}, {"role": "user", "content": "{}"})
JUDGE = ModelJudge(model="a-model", seed=3)


class World:
    """A clock that stands still, and sleeps that are only noted."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.time = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def tick(self) -> float:
        return self.time


def client_of(url: str, world: World, *, timeout: float = 5.0, **changes: Any) -> ModelClient:
    return ModelClient(
        client=new_client(seconds=timeout, connections=8),
        url=completions_url(url),
        **{
            "model": JUDGE.model,
            "seed": JUDGE.seed,
            "key": KEY,
            "now": lambda: NOW,
            "tick": world.tick,
            "sleep": world.sleep,
            **changes,
        },
    )


def ask(
    answer: Callable[[dict[str, Any], int], Answer], **options: Any
) -> tuple[Reply, ChatServer, World]:
    world = World()
    with chat_server(answer) as chat:
        client = client_of(chat.url, world, **options)
        try:
            return client(MESSAGES), chat, world
        finally:
            client.client.close()


def test_a_call_says_what_it_should_and_reads_what_came() -> None:
    asked, chat, _ = ask(lambda _body, _n: say("B"))
    assert chat.asked == [
        {
            "model": "a-model",
            "messages": list(MESSAGES),
            "temperature": 0,
            "seed": 3,
            "max_tokens": 1024,
        }
    ]
    assert chat.headers[0]["authorization"] == f"Bearer {KEY}"
    assert asked == Reply(
        text="B",
        served="served-model",
        input_tokens=90,
        output_tokens=1,
        asked_at="2026-11-21T12:00:00Z",
    )


def test_without_a_key_none_is_sent() -> None:
    _, chat, _ = ask(lambda _body, _n: say("B"), key="")
    assert "authorization" not in chat.headers[0]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 529])
def test_a_passing_failure_is_tried_again_with_growing_waits(status: int) -> None:
    asked, _, world = ask(lambda _body, n: say("A") if n == 3 else Answer(b"busy", status))
    assert asked.failure is None
    assert (asked.tries, world.slept) == (3, [1.0, 2.0])


def test_tries_end() -> None:
    asked, chat, world = ask(lambda _body, _n: Answer(b"overloaded", 503))
    assert (asked.failure, asked.tries, len(chat.asked)) == ("http", 4, 4)
    assert asked.detail == 'status 503; it says "overloaded"'
    assert world.slept == [1.0, 2.0, 4.0]


def test_the_endpoint_says_how_long_to_wait_up_to_a_limit() -> None:
    patient = Answer(b"", 429, {"Retry-After": "7"})
    asked, _, world = ask(lambda _body, n: say("A") if n == 2 else patient)
    assert (asked.tries, world.slept) == (2, [7.0])
    greedy = Answer(b"", 429, {"Retry-After": "86400"})
    asked, _, world = ask(lambda _body, _n: greedy)
    assert (asked.failure, asked.tries, world.slept) == ("http", 1, [])


@pytest.mark.parametrize(
    ("status", "for_all"), [(400, False), (422, False), (401, True), (404, True)]
)
def test_a_refusing_status_is_not_tried_again(status: int, *, for_all: bool) -> None:
    asked, chat, _ = ask(lambda _body, _n: Answer(b"no", status))
    assert (asked.failure, asked.for_all, len(chat.asked)) == ("http", for_all, 1)


def test_a_redirect_is_not_followed_with_the_key() -> None:
    with chat_server(lambda _body, _n: say("A")) as thief:
        away = Answer(b"", 307, {"Location": f"{thief.url}/chat/completions"})
        asked, _, _ = ask(lambda _body, _n: away)
        assert (asked.failure, asked.for_all) == ("http", True)
        assert thief.asked == []


def test_the_key_is_in_no_message() -> None:
    asked, _, _ = ask(lambda _body, _n: Answer(f"bad key {KEY}".encode(), 401))
    assert KEY not in asked.detail
    assert "bad key …" in asked.detail
    assert KEY not in repr(client_of("http://localhost/v1", World()))


def test_control_characters_of_an_endpoint_are_escaped() -> None:
    asked, _, _ = ask(lambda _body, _n: Answer(b"\x1b[31mred\x00", 400))
    assert "\x1b" not in asked.detail


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"<html>502</html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": ["A"]}}]}',
        b'{"choices": "A"}',
        b'{"choices": [{"message": {"content": "A"}}]',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
        b"[" * 100_000,
        (
            b'{"choices": [{"message": {"content": "A"}, "logprobs": {"content": [{"top_logprobs": '
            b'[{"token": "A", "logprob": NaN}]}]}}]}'
        ),
    ],
)
def test_what_is_no_completion_is_malformed(body: bytes) -> None:
    asked, _, _ = ask(lambda _body, _n: Answer(body))
    assert asked.failure == "malformed"


def test_a_lone_surrogate_is_malformed_or_text() -> None:
    raw = b'{"choices": [{"message": {"content": "\\ud800"}}]}'
    asked, _, _ = ask(lambda _body, _n: Answer(raw))
    assert asked.failure or asked.text.encode()


@pytest.mark.parametrize(
    ("usage", "count"),
    [
        ({"prompt_tokens": -1}, None),
        ({"prompt_tokens": "9"}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": 1e99}, None),
        ({"prompt_tokens": 10**30}, None),
        ({"prompt_tokens": 4}, 4),
        (None, None),
    ],
)
def test_absurd_counts_of_tokens_are_none(usage: Any, count: int | None) -> None:
    whole = {**completion("A"), "usage": usage}
    asked, _, _ = ask(lambda _body, _n: Answer(json.dumps(whole).encode()))
    assert asked.input_tokens == count


REFUSED = {"message": {"role": "assistant", "content": None, "refusal": "I can't"}}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (say(None, **REFUSED), "refusal"),
        (say("", finish_reason="content_filter"), "refusal"),
        (say("A because", finish_reason="length"), "cut-off"),
        (Answer(b"x" * (BODY_LIMIT + 70_000)), "too-large"),
        (Answer(b"\x1f\x8b" + b"0" * 50, 200, {"Content-Encoding": "gzip"}), "malformed"),
    ],
    ids=["refused", "filtered", "cut", "endless", "compressed"],
)
def test_an_answer_that_says_nothing_has_its_reason(answer: Answer, failure: str) -> None:
    asked, _, _ = ask(lambda _body, _n: answer)
    assert asked.failure == failure


@pytest.mark.parametrize("answer", [Answer(slam=True), Answer(b'{"cho', cut=50)])
def test_broken_connections_are_unreachable(answer: Answer) -> None:
    asked, chat, _ = ask(lambda _body, _n: answer)
    assert (asked.failure, asked.tries) == ("unreachable", 4)
    assert len(chat.asked) == 4


def test_a_port_that_nobody_listens_on_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = client_of(f"http://127.0.0.1:{port}/v1", World())
    assert client(MESSAGES).failure == "unreachable"


def test_silence_is_a_timeout() -> None:
    asked, _, _ = ask(lambda _body, _n: Answer(b"late", hang=0.3), timeout=0.05)
    assert (asked.failure, asked.tries) == ("timeout", 4)


def test_a_dripping_answer_is_a_timeout_too() -> None:
    """Each byte comes in time, and the whole never would."""
    times = iter(range(10_000))
    asked, _, _ = ask(
        lambda _body, _n: Answer(b"x" * 50, drip=0.002),
        tick=lambda: float(next(times)),
        seconds=20.0,
    )
    assert asked.failure == "timeout"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://models.example/v1", "https://models.example/v1/chat/completions"),
        ("https://models.example/v1/", "https://models.example/v1/chat/completions"),
        (
            "https://models.example/v1/chat/completions",
            "https://models.example/v1/chat/completions",
        ),
        ("http://localhost:8000/v1", "http://localhost:8000/v1/chat/completions"),
        ("http://[::1]:8000", "http://[::1]:8000/chat/completions"),
    ],
)
def test_an_endpoint_is_given_with_or_without_its_path(given: str, url: str) -> None:
    assert completions_url(given) == url


@pytest.mark.parametrize(
    "given",
    [
        "",
        "models.example/v1",
        "ftp://models.example",
        "file:///etc/passwd",
        "https://",
        "http://models.example/v1",
        "https://me:secret@models.example",
        "https://x/?key=1",
        "http://[::1",
        "https://x:port/",
        "http://localhost.evil.example/v1",
    ],
)
def test_an_endpoint_that_could_leak_is_refused(given: str) -> None:
    with pytest.raises(SetupError) as error:
        completions_url(given)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("value", ["", "two words", "ключ", "a\nb", "x" * 5000])
def test_a_bad_key_is_told_without_showing_it(value: str) -> None:
    with pytest.raises(SetupError) as error:
        read_key({"K": value}, "K")
    assert not value or value not in str(error.value)


def test_a_key_is_read_where_one_is_named() -> None:
    assert read_key({"K": f" {KEY}\n"}, "K") == KEY
    assert read_key({}, None) == ""
    with pytest.raises(SetupError):
        read_key({}, "K")


# Rows on disk


def pools(count: int) -> tuple[Pool, ...]:
    return tuple(
        Pool(
            query=f"q{number}",
            text="why",
            candidates=(Candidate(doc="a", text="long"), Candidate(doc="b", text="short")),
        )
        for number in range(count)
    )


def calls_of(count: int, done: tuple[ModelJudgment, ...] = ()) -> tuple[Call, ...]:
    made = pools(count)
    return plan_calls([(pool.query, "a", "b") for pool in made], made, JUDGE, done=done)


def answer_a(_messages: object) -> Reply:
    return Reply(text="A", asked_at="t")


def test_rows_are_kept_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    assert read_rows(tmp_path) == ()
    with open_rows(tmp_path) as record:
        first = list(ask_model(calls_of(3)[:4], JUDGE, answer_a, concurrency=2, record=record))
    assert len(first) == 4
    rest = calls_of(3, read_rows(tmp_path))
    assert len(rest) == 2
    with open_rows(tmp_path) as record:
        list(ask_model(rest, JUDGE, answer_a, concurrency=2, record=record))
    rows = read_rows(tmp_path)
    assert len({(row.query, row.a, row.b) for row in rows}) == len(rows) == 6
    assert calls_of(3, rows) == ()
    assert (tmp_path / ROWS).stat().st_mode & 0o777 == 0o600


def test_a_row_that_a_crash_cut_off_is_asked_again(tmp_path: Path) -> None:
    with open_rows(tmp_path) as record:
        list(ask_model(calls_of(2), JUDGE, answer_a, concurrency=1, record=record))
    whole = (tmp_path / ROWS).read_bytes()
    (tmp_path / ROWS).write_bytes(whole[:-20])
    assert len(calls_of(2, read_rows(tmp_path))) == 1
    with open_rows(tmp_path) as record:
        list(
            ask_model(
                calls_of(2, read_rows(tmp_path)), JUDGE, answer_a, concurrency=1, record=record
            )
        )
    assert len(read_rows(tmp_path)) == 4


def test_two_processes_do_not_append_at_once(tmp_path: Path) -> None:
    with open_rows(tmp_path), pytest.raises(StoreError, match="at work here"), open_rows(tmp_path):
        pass


def test_a_full_disk_stops_with_whole_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, writes = os.write, iter(range(100))

    def full(handle: int, data: bytes) -> int:
        if next(writes) < 2:
            return real(handle, data)
        real(handle, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with open_rows(tmp_path) as record, pytest.raises(StoreError, match="No space left"):
        list(ask_model(calls_of(5), JUDGE, answer_a, concurrency=2, record=record))
    monkeypatch.undo()
    assert len(read_rows(tmp_path)) == 2
    assert (tmp_path / ROWS).read_bytes().endswith(b"}\n")


def test_a_wrong_key_stops_at_once_and_keeps_its_rows(tmp_path: Path) -> None:
    def refuse(_messages: object) -> Reply:
        return Reply(failure="http", detail="status 401", for_all=True)

    with open_rows(tmp_path) as record, pytest.raises(StoreError, match="status 401"):
        list(ask_model(calls_of(50), JUDGE, refuse, concurrency=4, record=record))
    assert 1 <= len(read_rows(tmp_path)) <= 8


def test_twenty_failed_calls_in_a_row_stop_the_work(tmp_path: Path) -> None:
    def fail(_messages: object) -> Reply:
        return Reply(failure="timeout", detail="no whole answer in time")

    with open_rows(tmp_path) as record, pytest.raises(StoreError, match="no whole answer"):
        list(ask_model(calls_of(50), JUDGE, fail, concurrency=1, record=record))
    assert len(read_rows(tmp_path)) == 20


def test_who_stops_in_the_middle_keeps_what_was_asked(tmp_path: Path) -> None:
    asked = []

    def slow(messages: object) -> Reply:
        asked.append(messages)
        return answer_a(messages)

    with open_rows(tmp_path) as record:
        work = ask_model(calls_of(50), JUDGE, slow, concurrency=4, record=record)
        next(work)
        work.close()
    assert len(read_rows(tmp_path)) == len(asked) < 20


def test_many_calls_at_once_over_http_are_all_there_and_no_more_than_asked(tmp_path: Path) -> None:
    """A model that likes `long` and fails now and then, but no call until it is given up."""
    busy = set[str]()

    def answer(body: dict[str, Any], number: int) -> Answer:
        asked = body["messages"][1]["content"]
        texts = json.loads(asked)
        if number % 7 == 0 and asked not in busy:
            busy.add(asked)
            return Answer(b"busy", 503)
        return say("A" if texts["passage_a"] == "long" else "B")

    world = World()
    with chat_server(answer) as chat:
        client = client_of(chat.url, world)
        with open_rows(tmp_path) as record:
            rows = list(ask_model(calls_of(40), JUDGE, client, concurrency=6, record=record))
        client.client.close()
    assert len(rows) == len(read_rows(tmp_path)) == 80
    assert {row.chosen for row in rows} == {"a"}
    assert busy
    assert 2 <= chat.most_at_once <= 6
    assert sum(row.tries for row in rows) == len(chat.asked)


def test_rows_come_from_the_callers_thread() -> None:
    seen = set()
    work = ask_model(
        calls_of(5),
        JUDGE,
        answer_a,
        concurrency=4,
        record=lambda _row: seen.add(threading.get_ident()),
    )
    list(work)
    assert seen == {threading.get_ident()}
