"""Days in words, the same under every locale."""

from datetime import date, datetime

__all__ = ["day_words", "month_words"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day_words(moment: date | datetime) -> str:
    """`20 Nov 2026`."""
    return f"{moment.day} {month_words(moment)}"


def month_words(moment: date | datetime) -> str:
    """`Nov 2026`."""
    return f"{_MONTHS[moment.month - 1]} {moment.year}"
