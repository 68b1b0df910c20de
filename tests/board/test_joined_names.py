"""An approved new name makes two names one team: what counts for one counts for the other."""

from datetime import date, timedelta

from boardlog import START, BoardLog, make_manifest, make_spec
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.history import list_renamed, names_of
from heldout.board.log.manifest import Manifest, team_key
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import Case, Finding, judge, quota_state
from heldout.board.rules.spec import RULES
from heldout.ids import SubmissionId

NAMES = st.sampled_from(["Alpha", "ALPHA ", "Beta", "Gamma", "Delta", "Epsilon"])
REVEAL = date(2027, 3, 1)


def renamed(*names: str) -> Submission:
    return Submission(id="x", received=START, files={}, status="published", counts_for=names)


@given(st.lists(st.lists(NAMES, min_size=2, max_size=3), max_size=4), NAMES, NAMES)
def test_joined_names_are_the_parts_of_a_graph(
    entries: list[list[str]], one: str, other: str
) -> None:
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
    case = Case(
        spec=make_spec(),
        history=log.history,
        id=SubmissionId(name),
        received=log.now,
        manifest=manifest,
        problems={},
    )
    return judge(case)


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
    assert "renamed-entry" not in {
        one.rule for one in judged(log, "20261105-new", make_manifest("Alpha Crew"))
    }


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
