"""How the organiser's pages say times, shares and sums."""

from datetime import UTC, datetime, timedelta

__all__ = ["ago", "amount", "moment", "percent", "plural", "seconds"]

_MINUTE = 60
_HOUR = 3_600
_DAY = 86_400


def plural(count: int, one: str, many: str = "") -> str:
    """`1 task`, `1,050 tasks`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(share: float | None) -> str:
    """A share as `34.3%`; a dash where there is none."""
    return "–" if share is None else f"{share:.1%}"


def amount(hundredths: int) -> str:
    """An amount without its currency: `0.77`."""
    return f"{hundredths // 100:,}.{hundredths % 100:02}"


def moment(at: datetime | None) -> str:
    """A time as `21 Nov 14:02`, UTC; a dash where there is none."""
    return "–" if at is None else f"{at.astimezone(UTC):%d %b %H:%M}".lstrip("0")


def ago(span: timedelta) -> str:
    """A span as a person says it: `12 minutes`, `3 hours`, `2 days`."""
    whole = max(0, int(span.total_seconds()))
    if whole < _MINUTE:
        return "less than a minute"
    if whole < _HOUR:
        return plural(whole // _MINUTE, "minute")
    return plural(whole // _HOUR, "hour") if whole < 2 * _DAY else plural(whole // _DAY, "day")


def seconds(value: float) -> str:
    """Seconds as `8.4 s` or `3 min 05 s`."""
    if value < 2 * _MINUTE:
        return f"{value:.1f} s"
    return f"{int(value) // _MINUTE} min {int(value) % _MINUTE:02} s"
