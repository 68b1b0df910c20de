"""Round numbers and first days for the axes of a chart, with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, floor, log10

# Days in words, the same under every locale.

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day_words(moment: date | datetime) -> str:
    """`20 Nov 2026`."""
    return f"{moment.day} {month_words(moment)}"


def month_words(moment: date | datetime) -> str:
    """`Nov 2026`."""
    return f"{_MONTHS[moment.month - 1]} {moment.year}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis and what is written there."""

    at: float
    label: str


def score_span(values: Sequence[float]) -> tuple[float, float]:
    """The part of an axis that shows the values with some room at both ends.

    Args:
        values: at least one, finite.
    """
    low, high = min(values), max(values)
    apart = 1e-9  # below that, scores are equal on any chart
    room = (high - low) * 0.08 if high - low > apart else 0.01
    return low - room, high + room


def score_ticks(span: tuple[float, float], *, most: int) -> tuple[Tick, ...]:
    """Round numbers in steps of 1, 2 or 5 inside a span.

    Args:
        span: its ends, the first below the second.
        most: how many there may be, at least 2.
    """
    low, high = (Decimal(repr(end)) for end in span)
    magnitude = (high - low).adjusted() - 2
    steps = (Decimal(n).scaleb(magnitude + e) for e in range(6) for n in (1, 2, 5))
    step = next(s for s in steps if _last(high, s) - _first(low, s) < most)
    places = max(0, -int(step.normalize().as_tuple().exponent))
    return tuple(
        Tick(at=float(step * n), label=f"{step * n:.{places}f}")
        for n in range(_first(low, step), _last(high, step) + 1)
    )


def log_ticks(span: tuple[float, float], *, most: int) -> tuple[Tick, ...]:
    """Round numbers on an axis of logarithms to base 10: 1, 2 and 5 of each decade, or decades.

    Where less than two of them are inside, round numbers in equal steps.

    Args:
        span: its ends as logarithms, the first below the second.
        most: how many there may be, at least 2.
    """
    low, high = span
    decades = range(floor(low), ceil(high) + 1)
    rough = [[Decimal(1).scaleb(e) for e in decades if e % step == 0] for step in range(1, 99)]
    fine = [Decimal(digit).scaleb(e) for e in decades for digit in (1, 2, 5)]
    for numbers in (fine, *rough):
        inside = [number for number in numbers if low <= log10(number) <= high]
        if len(inside) <= most:
            break
    if len(inside) <= 1:
        linear = score_ticks((10**low, 10**high), most=most)
        inside = [Decimal(repr(tick.at)) for tick in linear]
    return tuple(
        Tick(at=min(max(log10(number), low), high), label=_short_number(number))
        for number in inside
    )


def _short_number(number: Decimal) -> str:
    """`0.05`, `200`, `2,000`, `50M`, `7B`: as sizes of models are written."""
    for unit, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if number >= unit:
            return f"{(number / unit).normalize():,f}{letter}"
    return f"{number.normalize():,f}"


def day_ticks(start: date, end: date, *, most: int) -> tuple[Tick, ...]:
    """First days of months or years, or days where the span is short, within the span.

    Args:
        start: first day.
        end: last day, not before it.
        most: how many there may be, at least 2.
    """
    short = timedelta(days=60)
    if end - start <= short:
        return _short_ticks(start, end, most)
    for step in (1, 2, 3, 6, 12, 24, 60, 120, 600):
        months = [m for m in _months(start, end) if (m.year * 12 + m.month - 1) % step == 0]
        if len(months) <= most:
            yearly = step % 12 == 0
            return tuple(_day_tick(m, str(m.year) if yearly else month_words(m)) for m in months)
    return ()


def milliseconds(day: date) -> int:
    """A day as the time axis counts: milliseconds since 1970, UTC."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def _short_ticks(start: date, end: date, most: int) -> tuple[Tick, ...]:
    span = (end - start).days
    step = next(s for s in (1, 2, 7, 14, 28, 56) if span // s < most)
    days = [start + timedelta(days=n) for n in range(0, span + 1, step)]
    return tuple(_day_tick(day, day_words(day).rpartition(" ")[0]) for day in days)


def _day_tick(day: date, label: str) -> Tick:
    return Tick(at=milliseconds(day), label=label)


def _months(start: date, end: date) -> list[date]:
    first = start.year * 12 + start.month - 1
    last = end.year * 12 + end.month - 1
    months = (date(n // 12, n % 12 + 1, 1) for n in range(first, last + 1))
    return [month for month in months if start <= month <= end]


def _first(value: Decimal, step: Decimal) -> int:
    return int((value / step).to_integral_value(ROUND_CEILING))


def _last(value: Decimal, step: Decimal) -> int:
    return int((value / step).to_integral_value(ROUND_FLOOR))
