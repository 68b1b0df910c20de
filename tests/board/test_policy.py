"""Each rule by table, and the quota to the second."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest
from boardlog import START, BoardLog, make_manifest, make_spec
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.history import History, read_history
from heldout.board.log.manifest import Manifest
from heldout.board.policy.checks import Case, Finding, add_months, judge, quota_state
from heldout.board.rules.spec import BoardSpec, Policy
from heldout.errors import Problem
from heldout.ids import SubmissionId

EMPTY = read_history([])
SECOND = timedelta(seconds=1)
MONTH = timedelta(days=30)


def judge_one(
    manifest: Manifest | None = None,
    *,
    name: str = "20261101-a",
    received: datetime = START,
    history: History = EMPTY,
    spec: BoardSpec | None = None,
    problems: dict[str, list[Problem]] | None = None,
) -> tuple[Finding, ...]:
    case = Case(
        spec=spec or make_spec(),
        history=history,
        id=SubmissionId(name),
        received=received,
        manifest=manifest or make_manifest(),
        problems=problems or {},
    )
    return judge(case)


def rules_of(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


def problem(code: str, severity: Any = "error") -> Problem:
    return Problem(code=code, path="eval.gz", line=3, found="x", expected="y", severity=severity)


def test_a_good_submission_has_no_findings() -> None:
    assert judge_one() == ()


def one_shot(**policy: Any) -> BoardSpec:
    """The board of `RULES` with a deadline: from 1 November to 31 December 2026."""
    spec = make_spec(**policy)
    return msgspec.structs.replace(spec, kind="one-shot", closes=date(2026, 12, 31))


def test_at_a_one_shot_board_a_late_run_is_taken_with_a_note() -> None:
    late = datetime(2027, 1, 1, tzinfo=UTC)
    findings = judge_one(received=late, name="20270101-a", spec=one_shot())
    assert [(f.rule, f.severity) for f in findings] == [("post-hoc", "note")]
    assert judge_one(received=late - SECOND, name="20261231-a", spec=one_shot()) == ()


def test_at_a_one_shot_board_a_team_has_its_runs_for_all_days_together() -> None:
    spec = one_shot(quota=3)
    log = published(START, START + MONTH, START + timedelta(days=55))
    last = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    late = judge_one(history=log.history, received=last, name="20261231-x", spec=spec)
    assert rules_of(late) == ["quota"]
    # After the deadline runs are counted by themselves.
    after = judge_one(history=log.history, received=last + SECOND, name="20270101-x", spec=spec)
    assert rules_of(after) == ["post-hoc"]
    before = quota_state(log.history, "Lighthouse", spec, now=last)
    assert before.used == tuple(log.history.submissions)
    assert before.since == datetime(2026, 11, 1, tzinfo=UTC)
    assert before.next_allowed == last + SECOND
    assert quota_state(log.history, "Lighthouse", spec, now=last + SECOND).used == ()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"team": ""}, "team-named"),
        ({"team": "  "}, "team-named"),
        ({"team": "Anonymous"}, "team-named"),
        ({"team": "\uff21non"}, "team-named"),
        ({"team": "N/A"}, "team-named"),
        ({"team": "Anonymous Testing Group"}, "team-named"),
        ({"institution": ""}, "institution-named"),
        ({"institution": "unknown"}, "institution-named"),
        ({"description": ""}, "description"),
        ({"description": " "}, "description"),
        ({"type": "ensemble"}, "type-known"),
        ({"type": "Full Ranking"}, "type-known"),
        ({"type": ""}, "type-known"),
        ({"training_data": ""}, "training-data"),
        ({"training_data": " "}, "training-data"),
        ({"embargo_until": date(2027, 8, 2)}, "embargo"),
        ({"embargo_until": date(9999, 12, 31)}, "embargo"),
    ],
)
def test_metadata_that_a_rule_stands_against(changes: dict[str, Any], rule: str) -> None:
    manifest = make_manifest(**{"institution": "University of Granada", **changes})
    findings = judge_one(manifest)
    assert rules_of(findings) == [rule]
    assert findings[0].severity == "reject"
    assert findings[0].evidence
    assert judge_one(manifest, spec=make_spec(off=(rule,))) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"training_data": "none"},
        {"embargo_until": None},
        {"embargo_until": date(2027, 8, 1)},
        {"embargo_until": date(2020, 1, 1)},
        {"type": "reranking"},
        {"team": "Testing Lab Freiburg"},
        {"paper": "", "code": ""},
    ],
)
def test_metadata_that_no_rule_stands_against(changes: dict[str, Any]) -> None:
    assert judge_one(make_manifest(**changes)) == ()


def test_the_openssl_form_has_no_fields_for_two_rules() -> None:
    spec = msgspec.structs.replace(make_spec(), envelope="openssl")
    assert judge_one(make_manifest(institution="", training_data=""), spec=spec) == ()


@pytest.mark.parametrize(
    ("name", "received", "stands_against"),
    [
        ("20261108-a", datetime(2026, 11, 1, tzinfo=UTC), False),
        ("20261109-a", datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC), True),
        ("20261101-a", datetime(2026, 11, 8, 23, 59, 59, tzinfo=UTC), False),
        ("20261101-a", datetime(2026, 11, 9, tzinfo=UTC), True),
        ("20270101-a", datetime(2026, 12, 30, tzinfo=UTC), False),
    ],
)
def test_the_id_s_date(name: str, received: datetime, *, stands_against: bool) -> None:
    assert rules_of(judge_one(name=name, received=received)) == ["id-date"] * stands_against


@pytest.mark.parametrize(
    ("received", "stands_against"),
    [
        (datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 11, 1, tzinfo=UTC), False),
        (datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC), False),
        (datetime(2028, 1, 1, tzinfo=UTC), True),
    ],
)
def test_the_board_s_days(received: datetime, *, stands_against: bool) -> None:
    findings = judge_one(name=f"{received:%Y%m%d}-a", received=received)
    assert rules_of(findings) == ["board-open"] * stands_against


def test_runs_with_errors() -> None:
    found = judge_one(
        problems={"dev": [problem("rank-zero", "note")], "eval": [problem("score-nan")] * 3}
    )
    assert rules_of(found) == ["runs"]
    assert "score-nan eval.gz:3" in found[0].evidence
    assert "(and 2 more)" in found[0].evidence


def test_candidates_have_a_rule_of_their_own() -> None:
    found = judge_one(problems={"dev": [problem("not-a-candidate")]})
    assert rules_of(found) == ["candidates"]
    assert (
        judge_one(
            problems={"dev": [problem("not-a-candidate")]}, spec=make_spec(off=("candidates",))
        )
        == ()
    )


def test_findings_come_in_the_order_of_the_table() -> None:
    findings = judge_one(
        make_manifest("", institution="CWI", type="x", description=""),
        name="20250101-a",
        problems={"eval": [problem("nul-byte")]},
    )
    assert rules_of(findings) == ["id-date", "team-named", "description", "type-known", "runs"]


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 120))
def test_months_keep_the_day_or_the_last_of_the_month(day: date, months: int) -> None:
    later = add_months(day, months)
    assert (later.year - day.year) * 12 + later.month - day.month == months
    assert later.day == day.day or (later.day < day.day and (later + timedelta(days=1)).day == 1)


# quota


def published(*moments: datetime, team: str = "Lighthouse") -> BoardLog:
    log = BoardLog().open()
    for number, moment in enumerate(moments):
        log.now = moment
        log.submit(f"{moment:%Y%m%d}-run{number}", make_manifest(team), "0.4")
    return log


def is_allowed(
    history: History, moment: datetime, team: str = "Lighthouse", policy: Policy | None = None
) -> bool:
    findings = judge_one(
        make_manifest(team),
        name=f"{moment:%Y%m%d}-new",
        received=moment,
        history=history,
        spec=msgspec.structs.replace(make_spec(), policy=policy or Policy()),
    )
    return "quota" not in rules_of(findings)


def test_the_window_slides_to_the_second() -> None:
    log = published(START, START + timedelta(days=3))
    assert not is_allowed(log.history, START + MONTH - SECOND)
    assert is_allowed(log.history, START + MONTH)
    state = quota_state(log.history, "Lighthouse", make_spec(), now=START + timedelta(days=4))
    assert (len(state.used), state.limit) == (2, 2)
    assert state.since == START + timedelta(days=4) - MONTH
    assert state.next_allowed == START + MONTH


def test_below_the_quota_the_next_may_come_now() -> None:
    log = published(START)
    now = START + SECOND
    state = quota_state(log.history, "Lighthouse", make_spec(), now=now)
    assert (state.used, state.next_allowed) == (("20261101-run0",), now)


def test_teams_are_counted_apart_and_by_their_folded_names() -> None:
    log = published(START, START, team="Light  HOUSE")
    assert is_allowed(log.history, START, team="Lighthouse")
    assert not is_allowed(log.history, START, team="light house")


@pytest.mark.parametrize("end", ["reject", "withdraw"])
def test_what_leaked_nothing_is_given_back(end: str) -> None:
    log = published(START)
    log.wait(days=1)
    log.receive("20261102-b")
    log.review("20261102-b", make_manifest())
    assert not is_allowed(log.history, log.now)
    if end == "reject":
        log.reject("20261102-b")
    else:
        log.update("20261102-b", make_manifest(revision=2, withdrawn=True), withdrawn=True)
    assert is_allowed(log.history, log.now)
    assert quota_state(log.history, "Lighthouse", make_spec(), now=log.now).used == (
        "20261101-run0",
    )


def test_a_question_gives_nothing_back() -> None:
    log = published(START)
    log.receive("20261102-b")
    log.review("20261102-b", make_manifest())
    log.ask("20261102-b")
    assert not is_allowed(log.history, log.now)


def test_baselines_use_no_quota() -> None:
    log = BoardLog().open()
    for name in ("bm25", "dense", "random"):
        log.baseline(name, "0.3")
    assert is_allowed(log.history, START, team="Us")


def test_a_new_name_after_publication_frees_no_quota() -> None:
    log = published(START, START)
    for name in ("20261101-run0", "20261101-run1"):
        log.amend(name, make_manifest("Beacon", revision=2))
    assert not is_allowed(log.history, START + SECOND)
    assert not is_allowed(log.history, START + SECOND, team="Beacon")


def test_a_name_that_nobody_approved_uses_no_quota() -> None:
    log = published(START, START)
    log.update("20261101-run0", make_manifest("Beacon", revision=2))
    log.propose("20261101-run0", make_manifest("Beacon", revision=3))
    log.propose("20261101-run1", make_manifest("Beacon", revision=2))
    log.decline("20261101-run1")
    assert not is_allowed(log.history, START + SECOND)
    for proposed in log.history.submissions.values():
        assert "Beacon" not in proposed.counts_for


def test_the_one_judged_does_not_count_against_itself() -> None:
    log = published(START)
    log.wait(days=1).receive("20261102-b")
    log.review("20261102-b", make_manifest())
    assert judge_one(name="20261102-b", received=log.now, history=log.history) == ()


def test_the_refusal_names_the_others_and_the_next_time() -> None:
    log = published(START, START + timedelta(days=1))
    log.wait(days=1).receive("20261103-c")
    log.review("20261103-c", make_manifest())
    (finding,) = judge_one(name="20261103-c", received=log.now, history=log.history)
    assert finding.evidence == (
        "more than 2 runs of this team within 30 days, with 20261101-run0, 20261102-run1; "
        "the next may come from 01 Dec 2026 12:00:00 UTC"
    )


def test_a_later_run_that_was_published_first_counts() -> None:
    """Received first, judged last: a window around it must not overflow either."""
    log = BoardLog().open()
    log.receive("20261101-late")
    for name in ("20261102-b", "20261103-c"):
        log.wait(days=1).submit(name, make_manifest(), "0.4")
    log.review("20261101-late", make_manifest())
    (finding,) = judge_one(name="20261101-late", received=START, history=log.history)
    assert finding.rule == "quota"
    assert "from 02 Dec 2026 12:00:00 UTC" in finding.evidence


def test_a_later_run_that_waits_does_not_count() -> None:
    log = BoardLog().open()
    for name in ("20261101-a", "20261101-b", "20261101-c"):
        log.wait(minutes=1).receive(name)
        log.review(name, make_manifest())
    received = log.history.submissions["20261101-b"].received
    assert judge_one(name="20261101-b", received=received, history=log.history) == ()


def waiting_at_once(*names: str, embargoed: tuple[str, ...] = ()) -> BoardLog:
    """Runs of one team that were received in the same second, in this order, and opened."""
    log = BoardLog().open()
    for name in names:
        log.receive(name)
    until = date(2027, 2, 1)
    for name in reversed(names):
        log.review(name, make_manifest(embargo_until=until if name in embargoed else None))
    return log


def quota_evidence(log: BoardLog, name: str, **changes: Any) -> list[str]:
    received = log.history.submissions[name].received
    found = judge_one(make_manifest(**changes), name=name, received=received, history=log.history)
    assert rules_of(found) == ["quota"] * len(found)
    return [finding.evidence for finding in found]


def test_of_runs_of_one_second_the_earliest_stand() -> None:
    """Also where the names sort otherwise than they came."""
    names = ("20261101-c", "20261101-a", "20261101-b")
    log = waiting_at_once(*names)
    assert [bool(quota_evidence(log, name)) for name in names] == [False, False, True]
    (evidence,) = quota_evidence(log, "20261101-b")
    assert "with 20261101-a, 20261101-c; the next may come from 01 Dec 2026" in evidence


HIDDEN_QUOTA = (
    "more than 2 runs of this team within 30 days; heldout status shows the team "
    "when it may submit again"
)


def test_junk_under_a_name_is_not_refused_for_what_an_embargo_hides() -> None:
    """The refusal would tell whoever sent it that the team has a hidden entry."""
    names = ("20261101-anon-1", "20261101-b", "20261101-c")
    log = waiting_at_once(*names, embargoed=names[:1])
    received = log.history.submissions[names[2]].received
    (finding,) = judge_one(make_manifest(), name=names[2], received=received, history=log.history)
    assert (finding.rule, finding.severity, finding.public) == ("unproven-quota", "review", False)
    assert not any(name in finding.evidence for name in names)


def test_a_signed_run_is_held_against_hidden_ones_in_a_text_that_tells_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("heldout.board.policy.checks.is_signed", lambda *_: True)
    names = ("20261101-anon-1", "20261101-b", "20261101-c")
    log = waiting_at_once(*names, embargoed=names[:1])
    assert quota_evidence(log, names[2]) == [HIDDEN_QUOTA]


def test_an_embargoed_run_is_refused_without_a_name_of_its_team() -> None:
    names = ("20261101-a", "20261101-b", "20261101-anon-1")
    log = waiting_at_once(*names, embargoed=names[2:])
    evidence = quota_evidence(log, names[2], embargo_until=date(2027, 2, 1))
    assert evidence == [HIDDEN_QUOTA]


hours = st.lists(st.integers(0, 24 * 70), min_size=1, max_size=9)


def windows_hold(moments: list[datetime], quota: int, span: timedelta) -> bool:
    return all(sum(start <= m < start + span for m in moments) <= quota for start in moments)


@given(hours, st.integers(1, 3), st.integers(1, 30))
def test_allowed_submissions_never_overflow_a_window(
    times: list[int], quota: int, days: int
) -> None:
    log = BoardLog().open()
    allowed = []
    for number, hour in enumerate(sorted(times)):
        log.now = START + timedelta(hours=hour)
        policy = Policy(quota=quota, quota_days=days)
        spec = make_spec(quota=quota, quota_days=days)
        free = quota_state(log.history, "Lighthouse", spec, now=log.now).next_allowed
        may = is_allowed(log.history, log.now, policy=policy)
        assert may == (free == log.now)
        if may:
            log.submit(f"20261101-{number}", make_manifest(), "0.4")
            allowed.append(log.now)
        else:
            assert is_allowed(log.history, free, policy=policy)
            assert not is_allowed(log.history, free - SECOND, policy=policy)
    assert windows_hold(allowed, quota, timedelta(days=days))


@given(hours, st.integers(1, 3), st.integers(1, 30), st.randoms(use_true_random=False))
def test_the_order_of_decisions_cannot_overflow_a_window(
    times: list[int], quota: int, days: int, rng: Any
) -> None:
    log = BoardLog().open()
    received = {}
    for number, hour in enumerate(sorted(times)):
        log.now = START + timedelta(hours=hour)
        log.receive(f"20261101-{number}")
        received[f"20261101-{number}"] = log.now
    names = list(received)
    rng.shuffle(names)
    spec = make_spec(quota=quota, quota_days=days, off=("board-open", "id-date"))
    shown = []
    for name in names:
        log.review(name, make_manifest())
        if judge_one(name=name, received=received[name], history=log.history, spec=spec):
            log.reject(name)
        else:
            log.publish(name, make_manifest(), "0.4")
            shown.append(received[name])
    assert shown
    assert windows_hold(shown, quota, timedelta(days=days))


@given(st.integers(1, 6), st.integers(1, 3), st.randoms(use_true_random=False))
def test_at_once_exactly_the_quota_stands_in_any_order_of_decisions(
    runs: int, quota: int, rng: Any
) -> None:
    names = [f"20261101-{number}" for number in range(runs)]
    log = waiting_at_once(*names)
    spec = make_spec(quota=quota)
    for name in rng.sample(names, runs):
        if judge_one(name=name, received=START, history=log.history, spec=spec):
            log.reject(name)
        else:
            log.publish(name, make_manifest(), "0.4")
    shown = [s.id for s in log.history.submissions.values() if s.status == "published"]
    assert shown == names[:quota]
