"""Where the extra that makes pages is not installed, nothing is begun that ends with a page.

Events are for good: they are not logged and then told as a wrong call.
"""

import sys
from pathlib import Path

import pytest
from town import Answer, Town, call, found_town, founding, write_inputs

pytestmark = pytest.mark.slow
DAY = "2026-11-05T10:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return found_town(tmp_path)


@pytest.fixture(params=["jinja2", "vl_convert"])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One package that cannot be imported."""
    name = str(request.param)
    monkeypatch.setitem(sys.modules, name, None)
    return name


def refused(answer: Answer, missing: str) -> bool:
    told = f"the page needs {missing}, which is not installed, so nothing was done" in answer.err
    return answer.code == 2 and told and "heldout[site]" in answer.err


def test_no_decision_is_logged_without_a_page(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    one = town.send("one", now="2026-11-03T10:00:00Z")
    town.take_in(now=DAY)
    before, public = town.kinds(), (town.board / "log.jsonl").read_bytes()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for arguments in (
        ("inbox",),
        ("publish", one, "--yes"),
        ("ask", one, "Which group is this?"),
        ("reject", one, "--why", "no"),
        ("rebuild",),
        ("archive", town.root / "a.zip", "--yes"),
    ):
        assert refused(town.organiser(*arguments, now=DAY), "jinja2"), arguments
    assert (town.kinds(), (town.board / "log.jsonl").read_bytes()) == (before, public)
    assert not (town.board / "submissions").exists()
    assert town.organiser("review", one, now=DAY).code == 0
    assert town.organiser("board", "teams", now=DAY).code == 0
    monkeypatch.undo()
    assert town.publish(one, now=DAY).code == 0


def test_no_half_of_a_board_is_left(tmp_path: Path, missing: str) -> None:
    write_inputs(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert refused(call(tmp_path, *founding(tmp_path)), missing)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_both_missing_packages_are_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(tmp_path)
    for name in ("jinja2", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None)
    answer = call(tmp_path, *founding(tmp_path))
    assert "the page needs jinja2 and vl_convert, which are not installed" in answer.err
