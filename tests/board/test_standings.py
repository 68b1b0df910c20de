"""The leaderboard of a day, and what the public log may show on it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from boardlog import RULES, START, BoardLog, make_manifest, make_spec
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.events import Entry, format_entry, parse_log
from heldout.board.log.manifest import identity_fields
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import Row, best_so_far, make_standings, project
from heldout.errors import InputError

SPEC = make_spec()
REVEAL = date(2027, 5, 20)


def rows_of(log: BoardLog, now: datetime | None = None) -> tuple[Row, ...]:
    return make_standings(log.entries, SPEC, now=now or log.now).rows


def board_of(*scores: str) -> BoardLog:
    """Entries a, b, c … a day apart."""
    log = BoardLog().open()
    for letter, score in zip("abcdefgh", scores, strict=False):
        log.wait(days=1).submit(f"20261101-{letter}", make_manifest(f"Team {letter}"), score)
    return log


def embargoed(until: date = REVEAL) -> BoardLog:
    log = BoardLog().open()
    log.submit("20261101-secret", make_manifest("Hidden Harbour", embargo_until=until), "0.397")
    return log


def bytes_of(entries: tuple[Entry, ...]) -> bytes:
    return b"".join(map(format_entry, entries))


def test_an_empty_board() -> None:
    standings = make_standings(BoardLog().open().entries, SPEC, now=START)
    assert (standings.rows, standings.waiting) == ((), 0)
    assert (standings.board, standings.primary, standings.as_of) == ("kb", "eval", START)


def test_texts_are_compared_as_numbers() -> None:
    rows = rows_of(board_of("9.5", "10.25", "0.9999", "1.000"))
    assert [row.scores["eval"] for row in rows] == ["10.25", "9.5", "1.000", "0.9999"]


def test_the_time_of_submission_counts_and_not_that_of_publication() -> None:
    log = BoardLog().open()
    log.receive("20261101-first")
    log.wait(hours=1).submit("20261101-second", make_manifest("B"), "0.400")
    log.review("20261101-first", make_manifest("A"))
    log.wait(days=3).publish("20261101-first", make_manifest("A"), "0.400")
    rows = rows_of(log)
    assert [row.id for row in rows] == ["20261101-first", "20261101-second"]
    assert [row.trophy for row in rows] == [True, False]


def test_the_line_of_records_begins_above_the_best_baseline() -> None:
    log = board_of("0.300", "0.360", "0.350", "0.400", "0.400")
    log.baseline("bm25", "0.350")
    assert [row.id[-1] for row in best_so_far(rows_of(log), "eval")] == ["b", "d"]
    assert best_so_far((), "eval") == ()
    plain = rows_of(board_of("0.300", "0.200", "0.310"))
    assert [row.id[-1] for row in best_so_far(plain, "eval")] == ["a", "c"]


def test_a_correction_moves_an_entry() -> None:
    log = board_of("0.300", "0.400")
    log.correct("20261101-b", "0.299", why="wrong labels")
    rows = rows_of(log)
    assert [row.id[-1] for row in rows] == ["a", "b"]
    assert [row.trophy for row in rows] == [True, False]
    assert rows[1].errata == ((log.now, "wrong labels"),)
    assert rows[1].counts["eval"] == 89


@pytest.mark.parametrize("end", ["reject", "withdraw", "wait", "ask"])
def test_what_was_not_published_is_not_shown(end: str) -> None:
    log = BoardLog().open()
    log.receive("20261101-a")
    log.review("20261101-a", make_manifest("Hidden Harbour"))
    if end == "reject":
        log.reject("20261101-a")
    elif end == "withdraw":
        log.update("20261101-a", make_manifest("Hidden Harbour", revision=2), withdrawn=True)
    elif end == "ask":
        log.ask("20261101-a")
    standings = make_standings(log.entries, SPEC, now=log.now)
    assert standings.rows == ()
    assert standings.waiting == (end in ("wait", "ask"))
    assert b"Hidden Harbour" not in bytes_of(project(log.entries, now=log.now))


def test_an_embargo_ends_with_the_first_moment_of_its_day() -> None:
    log = embargoed()
    (hidden,) = rows_of(log, datetime(2027, 5, 19, 23, 59, 59, 999_999, tzinfo=UTC))
    assert (hidden.identity, hidden.embargoed, hidden.reveal_due) == (None, True, False)
    assert (hidden.scores["eval"], hidden.type) == ("0.397", "full ranking")
    assert hidden.embargo_until == REVEAL
    (shown,) = rows_of(log, datetime(2027, 5, 20, tzinfo=UTC))
    assert (shown.embargoed, shown.reveal_due, shown.embargo_until) == (False, False, REVEAL)
    assert shown.identity == make_manifest("Hidden Harbour").identity


def test_an_event_from_before_costs_could_be_stated_is_read() -> None:
    log = BoardLog().open()
    manifest = make_manifest("Harbour")
    identity = identity_fields(manifest)
    del identity["efficiency"]
    log.receive("20261101-old")
    log.publish("20261101-old", manifest, "0.4", sealed={"identity": identity})
    (row,) = rows_of(log)
    assert row.identity == manifest.identity


def test_a_public_log_past_the_day_says_that_a_reveal_is_due() -> None:
    public = project(embargoed().entries, now=START)
    (row,) = make_standings(public, SPEC, now=datetime(2027, 5, 20, tzinfo=UTC)).rows
    assert (row.identity, row.embargoed, row.reveal_due) == (None, True, True)


def test_a_draft_of_the_metadata_is_never_opened() -> None:
    log = BoardLog().open()
    log.receive("20261101-a")
    log.review("20261101-a", make_manifest("First Thought"))
    log.update("20261101-a", make_manifest("Second Thought", revision=2))
    final = make_manifest("Final Name", revision=3)
    log.review("20261101-a", final)
    log.publish("20261101-a", final, "0.4")
    public = bytes_of(project(log.entries, now=log.now))
    assert b"First Thought" not in public
    assert b"Second Thought" not in public
    assert b"Final Name" in public


def test_labels_stay_sealed_in_the_public_log() -> None:
    log = BoardLog().open()
    assert "labels" in log.entries[0].opened
    assert project(log.entries, now=log.now)[0].opened == {}


def test_a_primary_view_without_scores_is_told() -> None:
    rules = RULES.replace('name = "eval"', 'name = "test"').replace('"eval"\nd', '"test"\nd')
    with pytest.raises(InputError, match="20261101-a has no score"):
        make_standings(board_of("0.4").entries, parse_spec(rules.encode()), now=START)


# properties over random boards

HIDDEN = "Hidden Harbour"
DAYS = 400
Step = Callable[[BoardLog, str, int], None]


def _submit(log: BoardLog, name: str, score: int) -> None:
    log.submit(name, make_manifest(f"Open {name}"), f"0.{score:03}")


def _embargo(log: BoardLog, name: str, score: int) -> None:
    until = (log.now + timedelta(days=score % 200)).date()
    manifest = make_manifest(f"{HIDDEN} {name}", embargo_until=until)
    log.submit(name, manifest, f"0.{score:03}", why=f"{HIDDEN} {name} again", findings=["x"])
    log.update(name, make_manifest(f"{HIDDEN} {name} II", embargo_until=until, revision=2))
    if score % 3 == 0 and until > log.now.date():
        log.extend(name, until + timedelta(days=20))


def _refuse(log: BoardLog, name: str, _: int) -> None:
    log.receive(name)
    log.review(name, make_manifest(f"{HIDDEN} {name}"))
    log.reject(name)


def _wait(log: BoardLog, name: str, score: int) -> None:
    log.receive(name)
    if score % 2:
        log.review(name, make_manifest(f"{HIDDEN} {name}"))


def _baseline(log: BoardLog, name: str, score: int) -> None:
    log.baseline(name, f"0.{score:03}")


_STEPS = st.sampled_from([_submit, _embargo, _refuse, _wait, _baseline])
steps = st.tuples(_STEPS, st.integers(0, 999), st.integers(0, 40))
boards = st.lists(steps, max_size=7)


def build(plan: list[tuple[Step, int, int]]) -> BoardLog:
    log = BoardLog().open()
    for number, (step, score, days) in enumerate(plan):
        step(log.wait(days=days), f"20261101-{number}", score)
    return log


@given(boards, st.integers(0, DAYS))
def test_both_logs_give_the_same_standings(plan: list[tuple[Step, int, int]], days: int) -> None:
    log = build(plan)
    now = log.now + timedelta(days=days)
    public = parse_log(bytes_of(project(log.entries, now=now)), path="log.jsonl")
    assert make_standings(public, SPEC, now=now) == make_standings(log.entries, SPEC, now=now)
    assert project(public, now=now) == public


@given(boards, st.integers(0, DAYS))
def test_no_embargoed_identity_is_anywhere(plan: list[tuple[Step, int, int]], days: int) -> None:
    log = build(plan)
    now = log.now + timedelta(days=days)
    shown = f"{bytes_of(project(log.entries, now=now))!r}{rows_of(log, now)!r}"
    for submission in log.history.submissions.values():
        until = submission.embargo_until
        revealed = submission.status == "published" and until is not None and now.date() >= until
        assert (f"{HIDDEN} {submission.id}" in shown) == revealed


@given(boards)
def test_standings_are_a_ranking(plan: list[tuple[Step, int, int]]) -> None:
    rows = rows_of(build(plan))
    for above, below in pairwise(rows):
        first, second = Decimal(above.scores["eval"]), Decimal(below.scores["eval"])
        assert (-first, above.received, above.id) < (-second, below.received, below.id)
    ranked = [row for row in rows if not row.baseline]
    assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))
    assert all(row.rank is None and not row.trophy for row in rows if row.baseline)
    for row in ranked:
        earlier = [r for r in rows if (r.received, r.id) < (row.received, row.id)]
        score = Decimal(row.scores["eval"])
        assert row.trophy == all(Decimal(r.scores["eval"]) < score for r in earlier)
    assert {row.id for row in best_so_far(rows, "eval")} <= {r.id for r in rows if r.trophy}


@given(boards, st.lists(st.integers(0, DAYS), min_size=2, max_size=2))
def test_hashes_stay_and_openings_grow(plan: list[tuple[Step, int, int]], days: list[int]) -> None:
    log = build(plan)
    early, late = (project(log.entries, now=log.now + timedelta(days=d)) for d in sorted(days))
    for before, after in zip(early, late, strict=True):
        assert before.raw == after.raw
        assert before.hash == after.hash
        assert set(before.opened) <= set(after.opened)


ONE_SHOT = RULES.replace("closes = 2027-12-31", 'closes = 2026-12-31\nkind = "one-shot"')
DEADLINE = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    "rules", [ONE_SHOT, ONE_SHOT.replace("closes = 2026-12-31", 'closes = "2026-12-31"')]
)
def test_a_one_shot_board_tells_all_scores_after_its_last_day(rules: str) -> None:
    log = BoardLog().open(rules)
    spec = parse_spec(rules.encode())
    log.baseline("bm25", "0.2")
    log.seal("20261101-a", "0.3")
    log.wait(days=1)
    log.seal("20261102-b", "0.4")
    before = make_standings(log.entries, spec, now=DEADLINE)
    assert [row.id for row in before.rows] == ["bm25"]
    assert [(row.id, row.unranked, row.scores) for row in before.unranked] == [
        ("20261101-a", "score shown after 31 Dec 2026", {}),
        ("20261102-b", "score shown after 31 Dec 2026", {}),
    ]
    public = b"".join(map(format_entry, project(log.entries, now=DEADLINE)))
    assert b"0.3" not in public
    assert b"0.4" not in public
    log.now = DEADLINE + timedelta(days=2)
    log.submit("20270102-late", make_manifest("late"), "0.5")
    after = make_standings(log.entries, spec, now=log.now)
    ranked = [(row.rank, row.id[:8]) for row in after.rows]
    assert ranked == [(1, "20261102"), (2, "20261101"), (None, "bm25")]
    (late,) = after.unranked
    assert (late.id, late.unranked) == ("20270102-late", "post hoc: came after 31 Dec 2026")
    # All come out at once, so none was the best of its day.
    assert not any(row.trophy for row in after.rows)
    assert make_standings(project(log.entries, now=log.now), spec, now=log.now) == after


def test_a_baseline_may_come_to_a_one_shot_board_after_its_last_day() -> None:
    log = BoardLog().open(ONE_SHOT)
    log.now = DEADLINE + timedelta(days=2)
    log.baseline("20270102-bm25", "0.2")
    found = make_standings(log.entries, parse_spec(ONE_SHOT.encode()), now=log.now)
    assert [(row.rank, row.id, row.unranked) for row in found.rows] == [(None, "20270102-bm25", "")]
    assert found.unranked == ()
