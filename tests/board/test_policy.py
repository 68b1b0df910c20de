"""Each rule by table, and the quota to the second."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest
from boardlog import START, BoardLog, make_case, make_manifest, make_spec
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.history import History, list_renamed, names_of, read_history
from heldout.board.log.manifest import Manifest, team_key
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import Finding, add_months, judge, quota_state
from heldout.board.rules.spec import RULES, BoardSpec, Policy
from heldout.errors import Problem

SECOND = timedelta(seconds=1)
MONTH = timedelta(days=30)


def judge_one(
    manifest: Manifest | None = None, *, name: str = "20261101-a", **changes: Any
) -> tuple[Finding, ...]:
    given: dict[str, Any] = {"history": read_history([]), "received": START}
    given["manifest"] = manifest or make_manifest()
    return judge(make_case(BoardLog(), name, **(given | changes)))


def rules_of(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


def problem(code: str, severity: Any = "error") -> Problem:
    return Problem(code=code, path="eval.gz", line=3, found="x", expected="y", severity=severity)


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
        {},
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
    noted = {"dev": [problem("rank-zero", "note")], "eval": [problem("score-nan")] * 3}
    found = judge_one(problems=noted)
    assert rules_of(found) == ["runs"]
    assert "score-nan eval.gz:3" in found[0].evidence
    assert "(and 2 more)" in found[0].evidence


def test_candidates_have_a_rule_of_their_own() -> None:
    found = judge_one(problems={"dev": [problem("not-a-candidate")]})
    assert rules_of(found) == ["candidates"]
    none = make_spec(off=("candidates",))
    assert judge_one(problems={"dev": [problem("not-a-candidate")]}, spec=none) == ()


def test_findings_come_in_the_order_of_the_table() -> None:
    manifest = make_manifest("", institution="CWI", type="x", description="")
    runs = {"eval": [problem("nul-byte")]}
    findings = judge_one(manifest, name="20250101-a", problems=runs)
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


def test_teams_are_counted_apart_and_by_their_folded_names() -> None:
    log = published(START, START, team="Light  HOUSE")
    assert is_allowed(log.history, START, team="Lighthouse")
    assert not is_allowed(log.history, START, team="light house")


@pytest.mark.parametrize("end", ["reject", "withdraw", "ask"])
def test_what_leaked_nothing_is_given_back(end: str) -> None:
    log = published(START)
    log.wait(days=1)
    log.receive("20261102-b")
    log.review("20261102-b", make_manifest())
    assert not is_allowed(log.history, log.now)
    if end == "reject":
        log.reject("20261102-b")
    elif end == "ask":
        log.ask("20261102-b")
        assert not is_allowed(log.history, log.now)
        return
    else:
        log.update("20261102-b", make_manifest(revision=2, withdrawn=True), withdrawn=True)
    assert is_allowed(log.history, log.now)
    state = quota_state(log.history, "Lighthouse", make_spec(), now=log.now)
    assert state.used == ("20261101-run0",)


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


HIDDEN_QUOTA = "more than 2 runs of this team within 30 days; heldout status shows the team "
HIDDEN_QUOTA += "when it may submit again"


def test_junk_under_a_name_is_not_refused_for_what_an_embargo_hides() -> None:
    """The refusal would tell whoever sent it that the team has a hidden entry."""
    names = ("20261101-anon-1", "20261101-b", "20261101-c")
    log = waiting_at_once(*names, embargoed=names[:1])
    received = log.history.submissions[names[2]].received
    (finding,) = judge_one(make_manifest(), name=names[2], received=received, history=log.history)
    assert (finding.rule, finding.severity, finding.public) == ("unproven-quota", "review", False)
    assert not any(name in finding.evidence for name in names)


def test_a_signed_run_is_refused_without_hidden_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.board.policy.checks.is_signed", lambda *_: True)
    names = ("20261101-anon-1", "20261101-b", "20261101-c")
    log = waiting_at_once(*names, embargoed=names[:1])
    assert quota_evidence(log, names[2]) == [HIDDEN_QUOTA]


def test_an_embargoed_run_is_refused_without_a_name_of_its_team() -> None:
    names = ("20261101-a", "20261101-b", "20261101-anon-1")
    log = waiting_at_once(*names, embargoed=names[2:])
    assert quota_evidence(log, names[2], embargo_until=date(2027, 2, 1)) == [HIDDEN_QUOTA]


hours = st.lists(st.integers(0, 24 * 70), min_size=1, max_size=9)


def windows_hold(moments: list[datetime], quota: int, span: timedelta) -> bool:
    return all(sum(start <= m < start + span for m in moments) <= quota for start in moments)


@given(hours, st.integers(1, 3), st.integers(1, 30))
def test_allowed_runs_never_overflow_a_window(times: list[int], quota: int, days: int) -> None:
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
def test_no_order_overflows_a_window(times: list[int], quota: int, days: int, rng: Any) -> None:
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
def test_at_once_exactly_the_quota_stands(runs: int, quota: int, rng: Any) -> None:
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


NAMES = st.sampled_from(["Alpha", "ALPHA ", "Beta", "Gamma", "Delta", "Epsilon"])
REVEAL = date(2027, 3, 1)


def renamed(*names: str) -> Submission:
    return Submission(id="x", received=START, files={}, status="published", counts_for=names)


@given(st.lists(st.lists(NAMES, min_size=2, max_size=3), max_size=4), NAMES, NAMES)
def test_joined_names_are_parts_of_a_graph(entries: list[list[str]], one: str, other: str) -> None:
    submissions = [renamed(*names) for names in entries]
    every = {one, other}.union(*entries)
    parts = [{key} for key in set(map(team_key, every))]
    for names in entries:
        keys = set(map(team_key, names))
        met = [part for part in parts if part & keys]
        parts = [part for part in parts if not part & keys] + [set().union(*met)]
    (expected,) = [part for part in parts if team_key(one) in part]
    assert names_of(submissions, [one]) == expected
    assert (team_key(other) in names_of(submissions, [one])) == (
        team_key(one) in names_of(submissions, [other])
    )
    assert names_of(submissions[::-1], [one, other]) >= expected


def crew(**changes: str) -> BoardLog:
    """Two entries of one team, of which the first got another name."""
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.425")
    log.wait(days=1).submit("20261102-two", make_manifest("Alpha Crew"), "0.300")
    log.wait(days=1).amend("20261101-one", make_manifest("Zeta House", **changes))
    return log.wait(days=1)


def judged(log: BoardLog, name: str, manifest: Manifest) -> tuple[Finding, ...]:
    return judge(make_case(log, name, manifest=manifest))


def test_an_approved_new_name_gives_no_further_look() -> None:
    log = crew()
    for team in ("Alpha Crew", "Zeta House", " zeta  HOUSE"):
        state = quota_state(log.history, team, make_spec(), now=log.now)
        assert state.used == ("20261101-one", "20261102-two")
        (finding,) = judged(log, "20261104-three", make_manifest(team))
        assert (finding.rule, finding.severity) == ("quota", "reject")
    log.receive("20261104-three")
    log.review("20261104-three", make_manifest("Alpha Crew"))
    log.review("20261104-three", make_manifest("Zeta House"))
    # Opened under both names, which are one team's: it is refused once.
    assert len(judged(log, "20261104-three", make_manifest("Zeta House"))) == 1


def test_names_that_nobody_approved_join_nothing() -> None:
    log = BoardLog().open()
    log.submit("20261101-own", make_manifest("Lighthouse"), "0.400")
    log.submit("20261101-other", make_manifest("Harbour"), "0.300")
    log.propose("20261101-other", make_manifest("Lighthouse"))
    log.receive("20261101-waits")
    log.review("20261101-waits", make_manifest("Lighthouse"))
    log.review("20261101-waits", make_manifest("Harbour"))
    assert list_renamed(log.history) == ()
    log.decline("20261101-other")
    log.publish("20261101-waits", make_manifest("Harbour"), "0.310")
    assert names_of(list_renamed(log.history), ["Harbour"]) == {"harbour"}


def test_to_join_two_names_needs_a_reason() -> None:
    log = crew()
    log.submit("20261104-other", make_manifest("Harbour"), "0.200")
    log.propose("20261104-other", make_manifest("Zeta House"))
    found = judged(log, "20261104-other", make_manifest("Zeta House"))
    (finding,) = [one for one in found if one.rule == "renamed-entry"]
    assert (finding.severity, finding.public) == ("review", False)
    assert finding.evidence == (
        '"Zeta House" and "Harbour" are one team from then on, with one quota; '
        "others of theirs: 20261101-one, 20261102-two"
    )
    assert RULES["renamed-entry"].again == "renamed"


def test_a_rename_that_joins_nothing_new_needs_none() -> None:
    log = crew()
    log.propose("20261102-two", make_manifest("Zeta House"))
    found = judged(log, "20261102-two", make_manifest("Zeta House"))
    assert "renamed-entry" not in {one.rule for one in found}
    log.submit("20261104-lone", make_manifest("Harbour"), "0.200")
    log.propose("20261104-lone", make_manifest("Harbor"))
    found = judged(log, "20261104-lone", make_manifest("Harbor"))
    assert "renamed-entry" not in {one.rule for one in found}
    found = judged(log, "20261105-new", make_manifest("Alpha Crew"))
    assert "renamed-entry" not in {one.rule for one in found}


def hidden_crew() -> BoardLog:
    """Entries under two names that an embargoed entry alone says to be one team's."""
    log = BoardLog().open()
    log.submit("20261101-open", make_manifest("Alpha Crew"), "0.412")
    secret = make_manifest("Alpha Crew", embargo_until=REVEAL)
    log.wait(days=1).submit("20261102-veiled", secret, "0.300")
    log.wait(days=1).amend("20261102-veiled", make_manifest("Zeta House", embargo_until=REVEAL))
    return log.wait(days=1)


def test_a_refusal_tells_no_names_that_an_embargo_joins() -> None:
    log = hidden_crew()
    (finding,) = judged(log, "20261104-z", make_manifest("Zeta House"))
    assert finding.rule == "unproven-quota"
    assert "2026110" not in finding.evidence
    log.now += timedelta(days=365)
    log.submit("20271104-a", make_manifest("Alpha Crew"), "0.100")
    log.submit("20271104-b", make_manifest("Zeta House"), "0.200")
    (finding,) = judged(log, "20271104-c", make_manifest("Zeta House"))
    assert "with 20271104-a, 20271104-b;" in finding.evidence
