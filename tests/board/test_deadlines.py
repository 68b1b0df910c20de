"""A last day that is over stays where it was, whatever later rules say."""

from datetime import UTC, date, datetime, timedelta

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.changes import list_changed_terms, list_moved_days
from heldout.board.rules.days import (
    list_moved,
    list_terms,
    may_open_runs,
    missed_deadline,
    one_shot_deadline,
    opened_before,
    rule_for_runs,
)
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.overdue import list_overdue_at
from heldout.board.standings.standings import make_standings, project

CLOSES = "closes = 2027-12-31"
OVER = datetime(2027, 1, 1, tzinfo=UTC)


def rules(closes: str = "2026-12-31", kind: str = "one-shot") -> str:
    return RULES.replace(CLOSES, f'closes = {closes}\nkind = "{kind}"')


def ended() -> BoardLog:
    """A one-shot board, an entry in time and one that came late."""
    log = BoardLog().open(rules())
    log.seal("20261101-a", "0.3")
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
    assert one_shot_deadline(log.history) == date(2026, 12, 31)
    assert len(list(list_moved(log.history))) == 3
    assert "31 Dec 2026, which was over" in next(list_moved(log.history))


def test_scores_that_were_shown_one_by_one_for_a_while_are_not_sealed_again() -> None:
    log = BoardLog().open(rules())
    log.seal("20261101-a", "0.3")
    log.wait(days=1)
    log.change_rules(rules(kind="sequential"))
    assert "scores" in project(log.entries, now=log.now)[3].opened
    log.wait(days=1)
    log.change_rules(rules())
    log.seal("20261103-b", "0.4")
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
    log.seal("20270101-a", "0.5")
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
        log.submit(name, make_manifest(name), "0.4", sealed=final)
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
    log.seal("20261101-a", "0.3")
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
    log.seal("20261101-a", "0.3")
    log.wait(days=9)
    log.change_rules(rules("2026-11-09"))
    assert "open the scores" in next(list_moved(log.history))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from([None, 5, 10, 15, 30])), max_size=6),
    st.lists(st.integers(0, 40), min_size=2, max_size=2),
)
def test_what_is_shown_stays_shown(changes: list[tuple[int, int | None]], days: list[int]) -> None:
    log = BoardLog().open(rules("2026-11-20"))
    start = log.now
    log.seal("20261101-a", "0.3")
    for wait, closes in changes:
        log.wait(days=wait)
        day = start.date() + timedelta(days=closes or 0)
        log.change_rules(rules(day.isoformat()) if closes else rules(kind="sequential"))
    early, late = (start + timedelta(days=day) for day in sorted(days))
    shown = [opened_before(list_terms(log.history, now)) for now in (early, late)]
    assert min(shown[0], early) <= shown[1]


ONE_SHOT = RULES.replace("closes = 2027-12-31", 'closes = 2026-12-31\nkind = "one-shot"')


def due(log: BoardLog, now: datetime) -> list[tuple[str, date]]:
    """What the log as it was last published owes at `now`."""
    public = project(log.entries, now=log.now)
    return [(one.what, one.since) for one in list_overdue_at(public, now=now)]


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
        log.seal(name, "0.3")
    last, zone = date(2026, 12, 31), log.now.tzinfo
    assert due(log, datetime(2026, 12, 31, 23, 59, tzinfo=zone)) == []
    after = datetime(2027, 1, 1, 1, tzinfo=zone)
    assert due(log, after) == [("scores of published entries", last + timedelta(days=1))]
    log.now = after
    assert due(log, after) == []


@pytest.mark.parametrize("entries", [1, 2])
def test_figures_are_due_until_somebody_has_worked_on_the_log(entries: int) -> None:
    log = BoardLog().open(RULES + '\n[trust]\nshow = ["ranges"]\nafter = "30 days"\n')
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


DEEP = '\n[[views]]\nname = "deep"\nset = "eval"\nmeasure = "nDCG@10"\npublic = true\n'
SEASON = '\n[[seasons]]\nname = "one"\nview = "{view}"\nopens = 2026-11-01\n'
BEFORE = RULES + DEEP


def wrong(before: str, after: str, *, published: bool = True) -> dict[str, str]:
    """The keys that may not change, and what was expected, after a score was released."""
    log = BoardLog().open(before)
    log.receive("20261101-a")
    log.review("20261101-a", make_manifest("a"))
    if published:
        scores = {"eval": "0.3", "deep": "0.4"}
        public = {"scores": scores, "queries": dict.fromkeys(scores, 90)}
        log.publish("20261101-a", make_manifest("a"), "0.3", public=public)
    told = list_changed_terms(log.history, parse_spec(after.encode()))
    return {key: expected for key, _, expected, _ in told}


def edit(before: str, after: str, text: str = BEFORE) -> str:
    """Replaces the last of such places, that of the further view."""
    head, found, tail = text.rpartition(before)
    assert found
    return head + after + tail


@pytest.mark.parametrize(
    ("before", "after", "key", "expected"),
    [
        ("nDCG@10", "AP", "views[2].measure", "nDCG@10"),
        ('measure = "nDCG@10"', 'measure = "nDCG@10"\nlabels = "other"', "views[2].labels", "none"),
        ('set = "eval"', 'set = "dev"', "views[2].set", "eval"),
        (
            'measure = "nDCG@10"',
            'measure = "nDCG@10"\nqueries = "labels/a.list"',
            "views[2].queries",
            "none",
        ),
        ("queries/eval.tsv", "queries/dev.tsv", "sets.eval.queries", "queries/eval.tsv"),
        (
            'queries = "queries/eval.tsv"',
            'queries = "queries/eval.tsv"\nqrels = "qrels/dev.qrels"',
            "sets.eval.qrels",
            "none",
        ),
        ("decimals = 3", 'decimals = 3\ndenominator = "all"', "denominator", "counted"),
        ("decimals = 3", "decimals = 6", "decimals", "3"),
        ('order = "trec"', 'order = "msmarco"', "runs.order", "trec"),
    ],
)
def test_a_view_of_released_scores(before: str, after: str, key: str, expected: str) -> None:
    assert wrong(BEFORE, edit(before, after))[key] == f"{expected}, as before"


@pytest.mark.parametrize("rules", [("rounded", "clear"), ("clear", "rounded")])
def test_a_board_changes_its_release_rule(rules: tuple[str, str]) -> None:
    before, after = (edit("[policy]", f'[release]\nrule = "{rule}"\n\n[policy]') for rule in rules)
    assert wrong(before, after) == {}


def test_a_view_that_is_taken_away_does_not_come_back_as_another() -> None:
    log = BoardLog().open(BEFORE)
    log.submit("20261101-a", make_manifest("a"), "0.3")
    log.change_rules(edit('name = "eval"\n', 'name = "other"\n').replace('"eval"\nd', '"other"\nd'))
    back = parse_spec(edit('measure = "RR@10"', 'measure = "AP"').encode())
    assert [one[0] for one in list_changed_terms(log.history, back)][:1] == ["views[1].measure"]


def test_what_waits_is_scored_by_the_rules_of_its_day_so_they_stay_too() -> None:
    after = edit('measure = "RR@10"', 'measure = "AP"')
    assert wrong(BEFORE, after, published=False) == {"views[1].measure": "RR@10, as before"}


def test_before_any_submission_a_view_may_be_anything_and_a_new_name_is_always_free() -> None:
    empty = BoardLog().open(BEFORE).history
    assert not list(list_changed_terms(empty, parse_spec(edit("nDCG@10", "AP").encode())))
    assert wrong(BEFORE, BEFORE + DEEP.replace("deep", "mean").replace("nDCG@10", "AP")) == {}


def test_what_ranks_published_entries_stays() -> None:
    other = edit('primary = "eval"', 'primary = "deep"')
    assert wrong(BEFORE, other) == {"primary": '"eval", as before'}
    by_season = wrong(BEFORE, other + SEASON.format(view="deep"))
    assert by_season == {"seasons[0].view": '"eval", as before'}
    assert wrong(BEFORE, BEFORE + SEASON.format(view="eval")) == {}


WORDS = st.sampled_from([True, False, None])
KINDS = st.sampled_from(["never", "with-consent", "always"])
ENTRY = "20261101-one"


def rules_with(kind: str) -> str:
    return f'{RULES}\n[archive]\nruns = "{kind}"\n'


def log_of(first: str, last: str, *, said: bool | None) -> BoardLog:
    log = BoardLog().open(rules_with(first))
    log.submit(ENTRY, make_manifest(open_runs=said), "0.400")
    log.baseline("20261101-bm25", "0.300")
    log.wait(hours=1)
    log.change_rules(rules_with(last) + "# later\n")
    return log


@given(first=KINDS, last=KINDS, said=WORDS, agreed=st.sampled_from([(), (ENTRY,)]))
def test_no_run_is_opened_against_a_no_or_a_never(
    *, first: str, last: str, said: bool | None, agreed: tuple[str, ...]
) -> None:
    history = log_of(first, last, said=said).history
    opened = may_open_runs(history, history.submissions[ENTRY], agreed=agreed)
    refused = said is False or "never" in (first, last)
    granted = said or bool(agreed) or (first, last) == ("always", "always")
    assert opened == (granted and not refused)


@given(KINDS, KINDS)
def test_the_stricter_rules_hold_whichever_came_first(first: str, last: str) -> None:
    one, other = log_of(first, last, said=None).history, log_of(last, first, said=None).history
    rule = rule_for_runs(one, one.submissions[ENTRY])
    assert rule == rule_for_runs(other, other.submissions[ENTRY])
    assert rule in (first, last)


@given(KINDS)
def test_a_baseline_s_runs_are_the_organisers_own(kind: str) -> None:
    history = log_of(kind, kind, said=None).history
    assert may_open_runs(history, history.submissions["20261101-bm25"]) == (kind != "never")


def test_the_last_word_of_the_team_holds() -> None:
    log = log_of("with-consent", "with-consent", said=True)
    log.update(ENTRY, make_manifest(open_runs=False, revision=2))
    assert not may_open_runs(log.history, log.history.submissions[ENTRY])
    log.update(ENTRY, make_manifest(open_runs=True, revision=3))
    assert may_open_runs(log.history, log.history.submissions[ENTRY])
