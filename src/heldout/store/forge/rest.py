"""REST calls with httpx: bounded, paged, patient with rate limits, never twice where it matters.

A call that only reads is tried again after a failure. One that changes something is tried again
only where the forge said that it did nothing, or could not be reached: where an answer was lost,
the caller has to look before it asks again. No redirect is followed, for the token would go along.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import httpx

from heldout.store.forge.answers import BODY_LIMIT, Answer, decode, explain
from heldout.store.forge.protocol import ForgeError, LostAnswerError
from heldout.store.forge.waits import LONGEST_WAIT, is_rate_limited, seconds_to_wait

__all__ = ["Rest", "Size"]

T = TypeVar("T")

Method = Literal["GET", "POST", "PUT", "PATCH"]

_TRIES = 4
_MOST_PAGES = 200
_SECONDS = 120.0
_REFUSED = 300
_FAILED = 500
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Size:
    """How many items a page has.

    Attributes:
        name: the parameter that asks for it.
        most: the most that the forge gives.
    """

    name: str
    most: int


class _NotSentError(Exception):
    """The forge could not be reached: nothing happened."""


class _LostError(Exception):
    """The request went out, and no whole answer came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """One forge's REST interface.

    Attributes:
        client: its timeouts hold for each read; it must not follow redirects.
        root: what every path is appended to.
        headers: sent with every call, the token among them.
        token: kept out of every message.
        clock: Unix time in seconds.
        sleep: waits for so many seconds.
    """

    client: httpx.Client
    root: str
    headers: Mapping[str, str] = field(repr=False)
    token: str = field(repr=False)
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def get(self, path: str, kind: type[T]) -> T:
        """One document.

        Args:
            path: below the root, quoted.
            kind: the documented shape; fields that it does not name are skipped.

        Raises:
            ForgeError: the forge refused, did not answer, or answered another shape.
        """
        return decode(self._call("GET", path, {}, None), kind)

    def pages(
        self, path: str, kind: type[list[T]], params: Mapping[str, str], *, size: Size
    ) -> Iterator[T]:
        """The items of a list, page by page.

        Where a page is too large, for anybody may write long texts into a request, the list is
        read anew in smaller ones, so that items can come twice. A page equal to the one before
        ends the list: the forge knows no pages.

        Args:
            path: below the root, quoted.
            kind: shape of a page.
            params: the rest of the query.
            size: how a page's size is asked for.

        Raises:
            ForgeError: also where the list does not end, or one item is too large.
        """
        count, number, before = size.most, 1, b""
        while number * count <= _MOST_PAGES * size.most:
            asked = {**params, size.name: str(count), "page": str(number)}
            answer = self._call("GET", path, asked, None)
            if not answer.whole and count > 1:
                count, number, before = max(1, count // 10), 1, b""
                continue
            items = decode(answer, kind)
            if answer.body == before:
                return
            yield from items
            before, number = answer.body, number + 1
            if not (len(items) >= count if answer.more is None else answer.more and items):
                return
        raise ForgeError(f"{path}: the list does not end")

    def send(self, method: Method, path: str, body: Mapping[str, Any]) -> None:
        """Change something, once.

        Raises:
            LostAnswerError: it may have happened.
            ForgeError: it did not happen.
        """
        self._call(method, path, {}, body)

    def _call(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Answer:
        for attempt in range(_TRIES):
            try:
                answer = self._ask(method, path, params, body)
            except _NotSentError as error:
                delay, reason = float(2**attempt), str(error)
            except _LostError as error:
                self._check_repeatable(method, path, str(error))
                delay, reason = float(2**attempt), str(error)
            else:
                if not _is_passing(answer):
                    return self._accept(method, path, answer)
                reason = explain(answer, token=self.token)
                if answer.status >= _FAILED:
                    self._check_repeatable(method, path, reason)
                delay = self._delay(answer, attempt, f"{method} {path}: {reason}")
            if attempt < _TRIES - 1:
                self.sleep(delay)
        raise ForgeError(f"{method} {path}: asked {_TRIES} times; {reason}")

    def _check_repeatable(self, method: Method, path: str, reason: str) -> None:
        if method != "GET":
            raise LostAnswerError(
                f"{method} {path}: {reason}. It may have happened all the same; "
                "call again, which looks before it asks"
            )

    def _delay(self, answer: Answer, attempt: int, told: str) -> float:
        if answer.status >= _FAILED and "retry-after" not in answer.headers:
            return float(2**attempt)
        delay = seconds_to_wait(answer.headers, now=self.clock())
        if delay > LONGEST_WAIT:
            raise ForgeError(f"{told}; call again {_moment(self.clock() + delay)}")
        return delay

    def _accept(self, method: Method, path: str, answer: Answer) -> Answer:
        if answer.status >= _REFUSED:
            raise ForgeError(f"{method} {path}: {explain(answer, token=self.token)}")
        return answer

    def _ask(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Answer:
        begun = self.clock()
        try:
            with self.client.stream(
                method,
                self.root + path,
                params=params or None,
                json=body,
                headers={**self.headers, "Accept-Encoding": "identity"},
                follow_redirects=False,
            ) as response:
                return self._read(response, begun)
        except _NOT_SENT:
            raise _NotSentError("the forge cannot be reached") from None
        except httpx.TimeoutException:
            raise _LostError("the forge did not answer in time") from None
        except httpx.HTTPError as error:
            raise _LostError(f"the connection broke ({type(error).__name__})") from None

    def _read(self, response: httpx.Response, begun: float) -> Answer:
        """The answer, without unpacking anything: a small archive can be a large text."""
        body, whole = bytearray(), "content-encoding" not in response.headers
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > BODY_LIMIT or not whole:
                whole = False
                break
            if self.clock() - begun > _SECONDS:
                raise _LostError(f"the answer took over {_SECONDS:.0f} s")
        return Answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body[:BODY_LIMIT]) if whole else b"",
            whole=whole,
            more=_has_next(response),
        )


def _is_passing(answer: Answer) -> bool:
    """Whether it makes sense to ask again later."""
    limited = is_rate_limited(answer.status, answer.headers, answer.text)
    return limited or answer.status >= _FAILED


def _has_next(response: httpx.Response) -> bool | None:
    if "x-next-page" in response.headers:
        return bool(response.headers["x-next-page"].strip())
    return "next" in response.links if "link" in response.headers else None


def _moment(unix: float) -> str:
    try:
        return f"after {datetime.fromtimestamp(unix, UTC):%d %b %Y %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "much later"
