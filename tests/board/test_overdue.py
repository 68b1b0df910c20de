"""What a public log withholds although its day has come."""

from datetime import date, datetime, timedelta

import pytest
from boardlog import RULES, BoardLog, make_manifest

from heldout.board.log.events import Entry
from heldout.board.log.manifest import identity_fields
from heldout.board.standings.overdue import list_overdue_at
from heldout.board.standings.standings import project

ONE_SHOT = RULES.replace("closes = 2027-12-31", 'closes = 2026-12-31\nkind = "one-shot"')
TRUST = '\n[trust]\nshow = ["ranges"]\nafter = "30 days"\n'


def public(log: BoardLog) -> tuple[Entry, ...]:
    """The log as it was last published."""
    return project(log.entries, now=log.now)


def due(log: BoardLog, now: datetime) -> list[tuple[str, date]]:
    return [(one.what, one.since) for one in list_overdue_at(public(log), now=now)]


def test_a_name_is_due_from_the_day_of_its_reveal_until_it_is_published() -> None:
    log = BoardLog().open()
    until = log.now.date() + timedelta(days=200)
    log.submit("20261101-secret", make_manifest("Hidden Harbour", embargo_until=until), "0.397")
    log.submit("20261101-open", make_manifest("Open Team"), "0.3")
    then = datetime.combine(until, datetime.min.time(), log.now.tzinfo)
    assert due(log, then - timedelta(seconds=1)) == []
    assert due(log, then) == [("the name behind 20261101-secret", until)]
    log.now = then
    assert due(log, then + timedelta(days=9)) == []


def test_scores_of_a_one_shot_board_are_due_once_after_its_last_day() -> None:
    log = BoardLog().open(ONE_SHOT)
    for name in ("20261101-a", "20261101-b"):
        manifest = make_manifest(name)
        log.receive(name)
        log.review(name, manifest)
        shown = {"type": manifest.type, "embargo_until": None, "revision": 1}
        sealed = {"identity": identity_fields(manifest), "why": "", "findings": []}
        scores = {"scores": {"dev": "0.3", "eval": "0.3"}, "queries": {"dev": 100, "eval": 90}}
        log.add("published", name, shown, {**scores, **sealed})
    last, zone = date(2026, 12, 31), log.now.tzinfo
    assert due(log, datetime(2026, 12, 31, 23, 59, tzinfo=zone)) == []
    after = datetime(2027, 1, 1, 1, tzinfo=zone)
    assert due(log, after) == [("scores of published entries", last + timedelta(days=1))]
    log.now = after
    assert due(log, after) == []


@pytest.mark.parametrize("entries", [1, 2])
def test_figures_are_due_until_somebody_has_worked_on_the_log(entries: int) -> None:
    log = BoardLog().open(RULES + TRUST)
    for n in range(entries):
        log.submit(f"20261101-{n}", make_manifest(f"Team {n}"), f"0.{3 + n}")
    day = log.now.date() + timedelta(days=30)
    later = log.now + timedelta(days=30)
    assert due(log, later - timedelta(days=1)) == []
    expected = [("the confidence figures", day)] if entries > 1 else []
    assert due(log, later) == expected
    log.now = later
    log.receive("20261201-new")
    assert due(log, later + timedelta(days=5)) == []
