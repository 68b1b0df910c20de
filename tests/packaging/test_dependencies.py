"""What is installed: how old it is, and that the list of it is whole."""

import runpy
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
tool = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "dependencies.py")))
MONTHS = 18

LOCK = """
[[package]]
name = "jinja2"
version = "3.1.0"
sdist = { upload-time = "2022-03-24T00:00:00Z" }

[[package]]
name = "jinja2"
version = "3.1.6"
sdist = { upload-time = "2025-03-06T00:00:00Z" }
wheels = [{ upload-time = "2025-03-05T23:59:59.5Z" }, { upload-time = "2025-04-01T00:00:00Z" }]
"""


def months_since(day: date, today: date) -> int:
    return (today.year - day.year) * 12 + today.month - day.month - (today.day < day.day)


def test_no_dependency_is_old_without_a_reason() -> None:
    today = datetime.now(UTC).date()
    old = [
        f"{one.name} {one.version} of {one.released}"
        for one in tool.read_page(tool.PAGE.read_text("utf-8"))
        if months_since(one.released, today) >= MONTHS and not one.reason
    ]
    assert old == [], "run tools/dependencies.py; replace what stays old, or give a reason there"


def test_the_page_lists_every_dependency() -> None:
    text = tool.PAGE.read_text("utf-8")
    rows = tool.read_page(text)
    assert [(one.name, one.extra) for one in rows] == tool.read_named()
    assert {one.name: one.reason for one in rows if one.reason} == dict(tool.REASONS)
    assert len(rows) == text.count("\n| ") - 2


def test_a_lock_says_when_the_newest_version_was_released() -> None:
    (found,) = tool.read_lock(LOCK, [("Jinja2", "base")])
    assert (found.version, found.released) == ("3.1.6", date(2025, 3, 5))
    (again,) = tool.read_page(tool.format_page([found], date(2026, 1, 1)))
    assert again == found


@pytest.mark.parametrize(
    ("day", "months"), [((2025, 5, 24), 17), ((2025, 5, 23), 18), ((2025, 5, 1), 18)]
)
def test_months_are_whole(day: tuple[int, int, int], months: int) -> None:
    assert months_since(date(*day), date(2026, 11, 23)) == months
