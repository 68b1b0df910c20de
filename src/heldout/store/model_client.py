"""Asks a language model behind an OpenAI-compatible chat endpoint, with httpx.

Whatever an endpoint does is an answer or a `Fault`, never an exception: bounded bytes and time, few
tries with growing waits. No redirect is followed, for the key would go along.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from heldout.errors import SetupError, quote
from heldout.preferences.model_judges import Asked, Fault, Message, Reply
from heldout.store.forge.waits import LONGEST_WAIT, seconds_to_wait

__all__ = ["BODY_LIMIT", "ModelClient", "completions_url", "new_client", "read_key"]

BODY_LIMIT = 1 << 20
"""Most bytes of one answer that are read."""

_TRIES = 4
_PATH = "/chat/completions"
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_LONGEST_KEY = 4096
_DETAIL = 200
_TOP_TOKENS = 5
_ALIKE = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405})
_PASSING = frozenset({408, 425, 429})
_OK = 200
_FAILED = 500
_MEANINGS: Mapping[int, str] = {
    401: "the key is missing or wrong (--key-env)",
    403: "the key may not do this (--key-env)",
    404: "no such model or address (--endpoint, --model)",
    405: "no chat endpoint (--endpoint)",
}


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Token(msgspec.Struct, frozen=True):
    token: str
    logprob: float


class _Place(msgspec.Struct, frozen=True):
    top_logprobs: list[_Token] = []


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[_Place] | None = None


class _Said(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    model: str = ""
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class _Again:
    """A failure that may pass, and after how many seconds it is worth another try."""

    fault: Fault
    wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClient:
    """One model at one endpoint; may be called from several threads.

    Attributes:
        client: its timeouts hold for each read; it must not follow redirects.
        url: as `completions_url` gives it.
        model: the model's name there.
        key: sent as a bearer token; empty for none. Kept out of every message.
        seed: sent along.
        most_tokens: longest answer, in tokens.
        probabilities: ask for those of the first token.
        seconds: longest time of one try.
        now: the time, UTC.
        tick: seconds of a clock that never goes back.
        sleep: waits for so many seconds.
    """

    client: httpx.Client
    url: str
    model: str
    key: str = field(default="", repr=False)
    seed: int = 0
    most_tokens: int = 1024
    probabilities: bool = False
    seconds: float = 120.0
    now: Callable[[], datetime]
    tick: Callable[[], float]
    sleep: Callable[[float], None]

    def __call__(self, messages: Sequence[Message]) -> Asked:
        """Ask, up to four times where a failure may pass.

        Waits between tries are 1, 2 and 4 seconds, or what the endpoint says, up to two minutes;
        one that wants more is not waited for.
        """
        asked_at = self.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for attempt in range(_TRIES):
            begun = self.tick()
            outcome = self._try(messages, begun)
            latency = max(0, round((self.tick() - begun) * 1000))
            again = isinstance(outcome, _Again) and attempt < _TRIES - 1
            if isinstance(outcome, _Again) and again:
                wait = float(2**attempt) if outcome.wait is None else outcome.wait
                if wait <= LONGEST_WAIT:
                    self.sleep(wait)
                    continue
            return Asked(
                outcome=outcome.fault if isinstance(outcome, _Again) else outcome,
                asked_at=asked_at,
                latency_ms=latency,
                tries=attempt + 1,
            )
        raise AssertionError  # the last attempt returns

    def _try(self, messages: Sequence[Message], begun: float) -> Reply | Fault | _Again:
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            with self.client.stream(
                "POST",
                self.url,
                json=self._body(messages),
                headers=headers,
                follow_redirects=False,
            ) as response:
                body = self._read(response, begun)
        except (httpx.TimeoutException, TimeoutError):
            return _Again(Fault(failure="timeout", detail="no whole answer in time"))
        except httpx.HTTPError as error:
            told = f"no connection, or a broken one ({type(error).__name__})"
            return _Again(Fault(failure="unreachable", detail=told))
        if response.status_code != _OK:
            return self._explain(response, body or b"")
        return _decode(body, response)

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        asked = {"logprobs": True, "top_logprobs": _TOP_TOKENS} if self.probabilities else {}
        return {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "temperature": 0,
            "seed": self.seed,
            "max_tokens": self.most_tokens,
            **asked,
        }

    def _read(self, response: httpx.Response, begun: float) -> bytes | None:
        """The body, without unpacking anything; `None` where it is too large."""
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > BODY_LIMIT:
                return None
            if self.tick() - begun > self.seconds:
                raise TimeoutError
        return bytes(body)

    def _explain(self, response: httpx.Response, body: bytes) -> Fault | _Again:
        status = response.status_code
        said = body[: 1 << 12].decode("utf-8", "replace")
        said = said.replace(self.key, "…") if self.key else said
        told = ": ".join(part for part in (f"status {status}", _MEANINGS.get(status, "")) if part)
        detail = f"{told}; it says {quote(said, limit=_DETAIL)}" if said.strip() else told
        fault = Fault(failure="http", detail=detail, for_all=status in _ALIKE)
        if status in _PASSING or status >= _FAILED:
            return _Again(fault, self._wait(response))
        return fault

    def _wait(self, response: httpx.Response) -> float | None:
        if "retry-after" not in response.headers:
            return None
        return seconds_to_wait(response.headers, now=self.now().timestamp())


def completions_url(endpoint: str) -> str:
    """The address that is called, from what a user gives: `https://HOST/v1`, or with the path.

    Raises:
        SetupError: it is no address of the web, holds a password, or would send texts and the key
            in the clear to another machine.
    """
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise SetupError(f"--endpoint {quote(endpoint)} is no address such as https://HOST/v1")
    if "@" in parts.netloc:
        raise SetupError("--endpoint holds a name or password; name a variable with --key-env")
    if parts.scheme == "http" and host not in _LOCAL:
        raise SetupError(f"--endpoint {quote(endpoint)} has to be https: others could read along")
    root = endpoint.rstrip("/")
    return root if root.endswith(_PATH) else root + _PATH


def read_key(environ: Mapping[str, str], name: str | None) -> str:
    """The key in an environment variable; empty where none is named.

    Raises:
        SetupError: it is not set, or holds blanks or anything but ASCII; the text does not show it.
    """
    if name is None:
        return ""
    key = environ.get(name, "").strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise SetupError(f"{quote(name)} holds no key: set it to the key alone, without blanks")
    if len(key) > _LONGEST_KEY:
        raise SetupError(f"{quote(name)} holds more than {_LONGEST_KEY:,} characters: no key")
    return key


def new_client(*, seconds: float, connections: int) -> httpx.Client:
    """An HTTP client for as many calls at once.

    Args:
        seconds: longest silence of an endpoint.
        connections: calls at once.
    """
    return httpx.Client(
        timeout=httpx.Timeout(seconds, connect=10.0, pool=None),
        limits=httpx.Limits(max_connections=connections),
        follow_redirects=False,
    )


def _decode(body: bytes | None, response: httpx.Response) -> Reply | Fault:
    if body is None:
        return Fault(failure="too-large", detail=f"an answer of over {BODY_LIMIT >> 20} MiB")
    if response.headers.get("content-encoding", "identity") != "identity":
        return Fault(failure="malformed", detail="the answer is compressed, though not asked for")
    try:
        found = msgspec.json.decode(body, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Fault(failure="malformed", detail=f"no chat completion: {str(error)[:_DETAIL]}")
    if not found.choices:
        return Fault(failure="malformed", detail="a chat completion without a choice")
    choice = found.choices[0]
    filtered = choice.finish_reason == "content_filter"
    usage = found.usage or _Usage()
    return Reply(
        text=choice.message.content or "",
        refusal=choice.message.refusal or ("stopped by a content filter" if filtered else ""),
        ended=choice.finish_reason != "length",
        served=found.model,
        tokens=_first_token(choice.logprobs),
        input_tokens=_count(usage.prompt_tokens),
        output_tokens=_count(usage.completion_tokens),
    )


def _first_token(found: _Logprobs | None) -> Mapping[str, float] | None:
    if found is None or not found.content or not found.content[0].top_logprobs:
        return None
    return {one.token: math.exp(min(0.0, one.logprob)) for one in found.content[0].top_logprobs}


def _count(value: object) -> int | None:
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if counts and isinstance(value, int) else None
