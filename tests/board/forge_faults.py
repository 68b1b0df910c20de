"""What hosted forges answer for a while: limits that have to be waited for, failures that pass."""

from forge_clients import NOW
from forge_server import Misbehave, breaks_off, hangs_up, is_silent, says, sends

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
    "a reset that is over already": (
        says(429, "x", {"X-RateLimit-Reset": str(int(NOW) - 100)}),
        1,
    ),
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
