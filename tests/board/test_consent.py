"""Whose runs may be opened when a board ends."""

from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.days import may_open_runs, rule_for_runs

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
