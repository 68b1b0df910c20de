"""A last day that is over stays where it was, whatever later rules say."""

from datetime import UTC, date, datetime, timedelta

from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.manifest import Manifest
from heldout.board.rules.changes import list_moved_days
from heldout.board.rules.days import (
    list_moved,
    list_terms,
    missed_deadline,
    one_shot_deadline,
    opened_before,
)
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import make_standings, project

CLOSES = "closes = 2027-12-31"
LAST = date(2026, 12, 31)
OVER = datetime(2027, 1, 1, tzinfo=UTC)


def rules(closes: str = "2026-12-31", kind: str = "one-shot") -> str:
    return RULES.replace(CLOSES, f'closes = {closes}\nkind = "{kind}"')


def seal(log: BoardLog, name: str, score: str) -> None:
    """Publish while the scores are not told yet."""
    manifest: Manifest = make_manifest(name)
    log.receive(name)
    log.review(name, manifest)
    told = {"scores": {"dev": score, "eval": score}, "queries": {"dev": 100, "eval": 90}}
    public = {"type": manifest.type, "embargo_until": None, "revision": 1}
    log.add("published", name, public, {**told, **told_of(name)})


def told_of(name: str) -> dict[str, object]:
    log = BoardLog()
    log.review(name, make_manifest(name))
    return {"identity": log.entries[0].get("identity"), "why": "", "findings": []}


def ended() -> BoardLog:
    """A one-shot board, an entry in time and one that came late."""
    log = BoardLog().open(rules())
    seal(log, "20261101-a", "0.3")
    log.now = OVER
    log.submit("20270101-late", make_manifest("late"), "0.5")
    log.wait(days=1)
    return log


def ranks(log: BoardLog, text: str) -> dict[str, int | None]:
    spec = parse_spec(text.encode())
    return {row.id: row.rank for row in make_standings(log.entries, spec, now=log.now).every}


def test_a_late_run_gets_no_rank_by_a_last_day_that_is_moved_afterwards() -> None:
    log = ended()
    for later in (rules("2027-06-01"), rules(kind="sequential"), RULES):
        log.change_rules(later)
        log.wait(days=1)
        assert ranks(log, later) == {"20261101-a": 1, "20270101-late": None}
    assert one_shot_deadline(log.history) == LAST
    assert len(list(list_moved(log.history))) == 3
    assert "31 Dec 2026, which was over" in next(list_moved(log.history))


def test_scores_that_were_shown_are_not_sealed_again() -> None:
    log = ended()
    shown = project(log.entries, now=log.now)
    assert "scores" in shown[3].opened
    log.change_rules(rules("2028-06-01"))
    again = project(log.entries, now=log.now)
    assert [set(entry.opened) for entry in again[:-1]] == [set(e.opened) for e in shown]


def test_scores_that_were_shown_one_by_one_for_a_while_are_not_sealed_again() -> None:
    log = BoardLog().open(rules())
    seal(log, "20261101-a", "0.3")
    log.wait(days=1)
    log.change_rules(rules(kind="sequential"))
    assert "scores" in project(log.entries, now=log.now)[3].opened
    log.wait(days=1)
    log.change_rules(rules())
    seal(log, "20261103-b", "0.4")
    public = project(log.entries, now=log.now + timedelta(days=1))
    assert "scores" in public[3].opened
    assert "scores" not in public[-1].opened


def test_a_last_day_in_the_past_makes_nobody_late() -> None:
    log = BoardLog().open(RULES)
    log.wait(days=10)
    log.submit("20261111-rival", make_manifest("rival"), "0.5")
    log.wait(days=1)
    later = rules("2026-11-02")
    log.change_rules(later)
    assert ranks(log, later) == {"20261111-rival": 1}


def test_an_entry_in_time_by_the_rules_of_its_day_stays_in_time() -> None:
    log = BoardLog().open(rules())
    log.change_rules(rules("2027-01-15"))  # before it was over, so everybody knew
    log.now = OVER
    seal(log, "20270101-a", "0.5")
    terms = list_terms(log.history, log.now)
    assert missed_deadline(terms, OVER) is None
    assert one_shot_deadline(log.history) == date(2027, 1, 15)
    assert list(list_moved(log.history)) == []
    assert "scores" not in project(log.entries, now=datetime(2027, 1, 15, tzinfo=UTC))[-1].opened
    assert "scores" in project(log.entries, now=datetime(2027, 1, 16, tzinfo=UTC))[-1].opened


def final_rules(closes: str) -> str:
    view = '\n[[views]]\nname = "reserve"\nset = "eval"\nmeasure = "R@5"\npublic = false\n'
    return RULES.replace(CLOSES, f"closes = {closes}") + f"{view}final = true\n"


def test_a_final_score_that_was_shown_is_not_sealed_again() -> None:
    log = BoardLog().open(final_rules("2026-11-10"))
    final = {"final": {"scores": {"reserve": "0.7"}, "queries": {"reserve": 9}}}
    for name in ("20261101-a", "20261120-b"):
        log.receive(name)
        log.review(name, make_manifest(name))
        log.publish(name, make_manifest(name), "0.4", sealed=final)
        log.wait(days=12)
        log.change_rules(final_rules("2026-12-24"))
        log.wait(days=1)
    public = project(log.entries, now=log.now)
    opened = {e.event.submission: "final" in e.opened for e in public if e.event.submission}
    assert opened == {"20261101-a": True, "20261120-b": False}


def test_new_rules_that_move_a_day_that_is_over_are_wrong() -> None:
    cases: tuple[tuple[str, str, list[str]], ...] = (
        (rules(), rules("2027-02-01"), ["closes"]),
        (rules(), rules("2026-12-01"), ["closes"]),
        (rules(), rules(kind="sequential"), ["kind"]),
        (rules(), RULES, ["kind", "closes"]),
        (final_rules("2026-12-31"), final_rules("2027-12-31"), ["closes"]),
        (rules(kind="sequential"), RULES, []),
        (rules(), rules().replace("depth = 100", "depth = 50"), []),
    )
    for before, after, wrong in cases:
        log = BoardLog().open(before)
        spec = parse_spec(after.encode())
        assert [one[0] for one in list_moved_days(log.history, spec, now=OVER)] == wrong
        day_before = OVER - timedelta(seconds=1)
        assert list(list_moved_days(log.history, spec, now=day_before)) == []


def test_scores_that_wait_for_their_day_are_not_opened_before_it() -> None:
    """Whoever sends a run after that has seen them, whatever the rules become again."""
    log = BoardLog().open(rules())
    seal(log, "20261101-a", "0.3")
    log.wait(days=9)
    for later, wrong in (
        (rules(kind="sequential"), ["kind"]),
        (rules("2026-11-09"), ["closes"]),
        (rules("2026-11-10"), []),
        (rules("2027-06-01"), []),
    ):
        spec = parse_spec(later.encode())
        assert [one[0] for one in list_moved_days(log.history, spec, now=log.now)] == wrong
    log.change_rules(rules(kind="sequential"))
    log.wait(days=1)
    again = parse_spec(rules().encode())
    assert [one[0] for one in list_moved_days(log.history, again, now=log.now)] == ["kind"]
    log.change_rules(rules())
    assert [told.partition("2026 ")[2] for told in list_moved(log.history)] == [
        "open the scores of a one-shot board before its last day, 31 Dec 2026, is over",
        "hide scores on a board that had published scores",
    ]


def test_a_last_day_moved_into_the_past_while_scores_are_sealed_is_told() -> None:
    log = BoardLog().open(rules())
    log.wait(days=9)
    log.change_rules(rules("2026-11-09"))
    assert list(list_moved(log.history)) == []  # nobody had an entry
    log = BoardLog().open(rules())
    seal(log, "20261101-a", "0.3")
    log.wait(days=9)
    log.change_rules(rules("2026-11-09"))
    assert "open the scores" in next(list_moved(log.history))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from([None, 5, 10, 15, 30])), max_size=6),
    st.lists(st.integers(0, 40), min_size=2, max_size=2),
)
def test_whatever_the_rules_become_what_is_shown_once_stays_shown(
    changes: list[tuple[int, int | None]], days: list[int]
) -> None:
    log = BoardLog().open(rules("2026-11-20"))
    start = log.now
    seal(log, "20261101-a", "0.3")
    for wait, closes in changes:
        log.wait(days=wait)
        day = start.date() + timedelta(days=closes or 0)
        log.change_rules(rules(day.isoformat()) if closes else rules(kind="sequential"))
    early, late = (start + timedelta(days=day) for day in sorted(days))
    shown = [opened_before(list_terms(log.history, now)) for now in (early, late)]
    assert min(shown[0], early) <= shown[1]
