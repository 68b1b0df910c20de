"""Axes of charts: the part of a scale that is shown, with round numbers and days on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, floor, log10

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EQUAL = 1e-9  # closer than that, scores are equal on any chart


def day_words(moment: date | datetime) -> str:
    """`20 Nov 2026`, the same under every locale."""
    return f"{moment.day} {_month_words(moment)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A position on an axis and what is written there."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The part of a scale that a chart shows.

    Attributes:
        low, high: its ends.
        ticks: at most so many ticks -> the ticks, at least 2 may be asked for.
        log: whether equal ratios have equal lengths.
    """

    low: float
    high: float
    ticks: Callable[[int], Sequence[Tick]]
    log: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies: 0 at the low end, 1 at the high one."""
        if self.log:
            low = log10(self.low)
            return (log10(value) - low) / (log10(self.high) - low)
        return (value - self.low) / (self.high - self.low)


def score_axis(values: Iterable[float], *, room: float = 0.08) -> Axis:
    """An axis of numbers with some room at both ends.

    Args:
        values: what it has to show: at least one, finite.
        room: share of the span that is added at each end.
    """
    low, high = _widen([*values], room)
    return Axis(low=low, high=high, ticks=lambda most: _round_ticks(low, high, most))


def log_axis(values: Iterable[float], *, room: float = 0.08) -> Axis:
    """An axis of logarithms.

    Args:
        values: what it has to show: at least one, above 0.
        room: share of the span that is added at each end.
    """
    low, high = _widen([log10(value) for value in values], room)
    return Axis(
        low=10**low, high=10**high, ticks=lambda most: _log_ticks(low, high, most), log=True
    )


def count_axis(largest: float) -> Axis:
    """An axis of whole numbers from 0."""
    high = largest * 1.05

    def ticks(most: int) -> tuple[Tick, ...]:
        found = _round_ticks(0.0, high, most)
        return tuple(_count_tick(one.at) for one in found if one.at == round(one.at))

    return Axis(low=0.0, high=high, ticks=ticks)


def rank_axis(last: int, first: int = 1) -> Axis:
    """An axis on which each whole number has a column: ranks, sizes, rows of a matrix."""

    def ticks(most: int) -> tuple[Tick, ...]:
        step = next(
            s * 10**n for n in range(9) for s in (1, 2, 5) if last <= (most - 1) * s * 10**n
        )
        return tuple(_count_tick(n) for n in sorted({first, *range(step, last + 1, step)}))

    return Axis(low=first - 0.5, high=last + 0.5, ticks=ticks)


def share_axis(high: float = 1.0) -> Axis:
    """An axis of percentages from 0."""

    def ticks(most: int) -> tuple[Tick, ...]:
        steps = (0.05, 0.1, 0.2, 0.25, 0.5)
        step = next((s for s in steps if high / s < most), 1.0)
        return tuple(
            Tick(at=n * step, label=f"{n * step:.0%}")
            for n in range(floor(high / step + _EQUAL) + 1)
        )

    return Axis(low=0.0, high=high, ticks=ticks)


def name_axis(names: Mapping[float, str], first: float | None = None) -> Axis:
    """An axis with names at given positions; where room is short, some are left out.

    Args:
        names: position -> name, in order.
        first: the position that is named before all others, by default the last one.
    """
    positions = [*names]
    start = positions[-1] if first is None else first

    def ticks(most: int) -> tuple[Tick, ...]:
        apart = (positions[-1] - positions[0]) / max(1, most - 1)
        shown = [start]
        for one in reversed(positions):
            if all(abs(one - other) >= apart and one != other for other in shown):
                shown.append(one)
        return tuple(Tick(at=one, label=names[one]) for one in sorted(shown))

    return Axis(low=positions[0] - 0.5, high=positions[-1] + 0.5, ticks=ticks)


def day_axis(start: date, end: date) -> Axis:
    """An axis of days, which counts them as `date.toordinal` does."""
    edge = max((end - start).days * 0.02, 1.0)
    return Axis(
        low=start.toordinal() - edge,
        high=end.toordinal() + edge,
        ticks=lambda most: _day_ticks(start, end, most),
    )


def _widen(values: Sequence[float], room: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    more = (high - low) * room if high - low > _EQUAL else 0.01
    return low - more, high + more


def _round_ticks(low: float, high: float, most: int) -> tuple[Tick, ...]:
    """Round numbers in steps of 1, 2 or 5."""
    first, last = Decimal(repr(low)), Decimal(repr(high))
    magnitude = (last - first).adjusted() - 2
    steps = (Decimal(n).scaleb(magnitude + e) for e in range(6) for n in (1, 2, 5))
    step = next(s for s in steps if _floor(last / s) - _ceil(first / s) < most)
    digits = max(0, -int(step.normalize().as_tuple().exponent))
    return tuple(
        Tick(at=float(step * n), label=f"{step * n:,.{digits}f}".replace("-", "\u2212"))
        for n in range(_ceil(first / step), _floor(last / step) + 1)
    )


def _log_ticks(low: float, high: float, most: int) -> tuple[Tick, ...]:
    """1, 2 and 5 of each decade, or decades; where less than two are inside, equal steps."""
    decades = range(floor(low), ceil(high) + 1)
    rough = [[Decimal(1).scaleb(e) for e in decades if e % step == 0] for step in range(1, 99)]
    fine = [Decimal(digit).scaleb(e) for e in decades for digit in (1, 2, 5)]
    for numbers in (fine, *rough):
        inside = [number for number in numbers if low <= log10(number) <= high]
        if len(inside) <= most:
            break
    if len(inside) <= 1:
        inside = [Decimal(repr(tick.at)) for tick in _round_ticks(10**low, 10**high, most)]
    return tuple(Tick(at=float(number), label=_short_number(number)) for number in inside)


def _short_number(number: Decimal) -> str:
    """`0.05`, `200`, `2,000`, `50M`, `7B`: as sizes of models are written."""
    for unit, suffix in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if number >= unit:
            return f"{(number / unit).normalize():,f}{suffix}"
    return f"{number.normalize():,f}"


def _day_ticks(start: date, end: date, most: int) -> tuple[Tick, ...]:
    """First days of months or years, or days where the span is short."""
    if end - start <= timedelta(days=60):
        span = (end - start).days
        step = next(s for s in (1, 2, 7, 14, 28, 56, 112) if span // s < most)
        days = [start + timedelta(days=n) for n in range(0, span + 1, step)]
        return tuple(_day_tick(day, day_words(day).rpartition(" ")[0]) for day in days)
    for step in (1, 2, 3, 6, 12, 24, 60, 120, 600):
        months = [m for m in _months(start, end) if (m.year * 12 + m.month - 1) % step == 0]
        if len(months) <= most:
            yearly = step % 12 == 0
            return tuple(_day_tick(m, str(m.year) if yearly else _month_words(m)) for m in months)
    return ()


def _day_tick(day: date, label: str) -> Tick:
    return Tick(at=day.toordinal(), label=label)


def _month_words(moment: date | datetime) -> str:
    return f"{_MONTHS[moment.month - 1]} {moment.year}"


def _months(start: date, end: date) -> list[date]:
    first = start.year * 12 + start.month - 1
    last = end.year * 12 + end.month - 1
    months = (date(n // 12, n % 12 + 1, 1) for n in range(first, last + 1))
    return [month for month in months if start <= month <= end]


def _count_tick(number: float) -> Tick:
    return Tick(at=number, label=f"{round(number):,}")


def _ceil(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_CEILING))


def _floor(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_FLOOR))
