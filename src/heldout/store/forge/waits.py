"""How long a forge asks its caller to wait: pure functions of an answer's headers.

Source: docs.github.com "Best practices for using the REST API" (handle rate limit errors),
docs.gitlab.com "User and IP rate limits" (response headers), RFC 9110 section 10.2.3.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

__all__ = ["LONGEST_WAIT", "is_rate_limited", "seconds_to_wait"]

LONGEST_WAIT = 120.0
"""Seconds; who asks for more is told to the user instead of waited for."""

_UNSAID = 60.0
_TOO_MANY = 429
_FORBIDDEN = 403


def is_rate_limited(status: int, headers: Mapping[str, str], text: str) -> bool:
    """Whether an answer refuses for now, and did nothing.

    Args:
        status: HTTP status; 429, or GitHub's 403.
        headers: the answer's, names in any case if the mapping ignores it.
        text: the body, for GitHub's secondary limits, which may come without a header.
    """
    if status == _TOO_MANY:
        return True
    spent = headers.get("x-ratelimit-remaining") == "0"
    told = "retry-after" in headers or "rate limit" in text.lower()
    return status == _FORBIDDEN and (spent or told)


def seconds_to_wait(headers: Mapping[str, str], *, now: float) -> float:
    """Seconds until the next call may be made, at least one; a minute where nothing is said.

    Args:
        headers: of an answer that `is_rate_limited`.
        now: Unix time in seconds.
    """
    said = headers.get("retry-after", "").strip()
    if said:
        return _clip(_seconds(said, now))
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        reset = headers.get(name, "").strip()
        if reset.isascii() and reset.isdigit() and len(reset) <= len("9999999999"):
            return _clip(int(reset) - now)
    return _UNSAID


def _seconds(said: str, now: float) -> float:
    """Retry-After, which is a number of seconds or a date."""
    if said.isascii() and said.isdigit() and len(said) <= len("9999999999"):
        return float(said)
    try:
        return parsedate_to_datetime(said).timestamp() - now
    except (ValueError, OverflowError):
        return _UNSAID


def _clip(seconds: float) -> float:
    return max(1.0, seconds)
