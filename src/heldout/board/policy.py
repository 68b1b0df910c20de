"""The policy: one explicit table of rules, each a pure function that yields findings.

A rule sees the board, its history, the manifest, what the scan said of the runs, and the times.
It says what is the case and shows its evidence; a person decides. Sources:
fostering-coopetition, sections 2.2 and 3.3. docs/policy.md gives every rule's reason.
"""

import calendar
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from heldout.board.history import History, Submission
from heldout.board.manifest import Manifest, team_key
from heldout.board.quota import counted, fits, next_allowed, quota_window
from heldout.board.spec import BoardSpec
from heldout.errors import Problem
from heldout.ids import SubmissionId, submission_date

__all__ = [
    "RULES",
    "Case",
    "Finding",
    "Rule",
    "add_months",
    "judge",
]

FindingSeverity = Literal["reject", "review", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of a submission.

    Attributes:
        rule: name of the rule, a key of `RULES`.
        severity: `reject` stands against publication, `review` asks for a person's reason,
            `note` is for information.
        evidence: what was found, in a sentence.
    """

    rule: str
    severity: FindingSeverity
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a rule may look at.

    Attributes:
        spec: the rules of the day of submission.
        history: the board before or with this submission.
        id: the submission's id.
        received: its official time, UTC.
        manifest: its metadata.
        problems: query set -> problems that the scan found in the run.
    """

    spec: BoardSpec
    history: History
    id: SubmissionId
    received: datetime
    manifest: Manifest
    problems: Mapping[str, Sequence[Problem]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the policy.

    Attributes:
        check: yields the evidence of each violation.
        severity: of its findings.
        reason: why there is such a rule.
    """

    check: Callable[[Case], Iterator[str]]
    severity: FindingSeverity
    reason: str


def judge(case: Case) -> tuple[Finding, ...]:
    """Apply every rule that the board has not switched off, in the order of the table."""
    return tuple(
        Finding(rule=name, severity=rule.severity, evidence=evidence)
        for name, rule in RULES.items()
        if name not in case.spec.policy.off
        for evidence in rule.check(case)
    )


def add_months(day: date, months: int) -> date:
    """The same day some months later, or the last of that month where it has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def _quota(case: Case) -> Iterator[str]:
    """No window of the policy's length around this submission may hold more than the quota.

    The earliest stand: of those that wait only earlier ones count, else runs that came in the
    same second would refuse each other. What is published counts wherever it lies.
    """
    limit = case.spec.policy.quota
    window = quota_window(case.spec)
    others = sorted(_ahead(case), key=lambda s: (s.received, s.id))
    moments = [other.received for other in others]
    if fits(moments, case.received, window=window, limit=limit):
        return
    if case.spec.kind == "one-shot":
        yield f"more than {limit} runs of this team, the number that each has on this board"
        return
    near = [other for other in others if abs(other.received - case.received) < window]
    free = next_allowed(moments, now=case.received, window=window, limit=limit)
    hidden = [other for other in near if _is_hidden(other, case)]
    when = f"the next may come from {free:%d %b %Y %H:%M:%S} UTC"
    if free - window in [other.received for other in hidden]:
        when = "heldout status tells the team when the next may come"
    yield (
        f"more than {limit} runs of this team within {window.days} days, "
        f"with {_name_others(near, hidden)}; {when}"
    )


def _ahead(case: Case) -> Iterator[Submission]:
    """The team's other submissions that are published or were received before this one."""
    order = {name: place for place, name in enumerate(case.history.submissions)}
    own = (case.received, order.get(case.id, len(order)))
    for other in counted(case.history, case.manifest.team, case.spec, at=case.received):
        earlier = (other.received, order[other.id]) < own
        if other.id != case.id and (earlier or other.status == "published"):
            yield other


def _is_hidden(other: Submission, case: Case) -> bool:
    """Whether to say that both are of one team would break an embargo; a refusal is public."""
    ends = (other.embargo_until, case.manifest.embargo_until)
    return any(end is not None and end > case.received.date() for end in ends)


def _name_others(near: Sequence[Submission], hidden: Sequence[Submission]) -> str:
    """Ids, but of those that are hidden only how many."""
    names = ", ".join(other.id for other in near if other not in hidden)
    count = "one" if len(hidden) == 1 else str(len(hidden))
    secret = f"{count} under embargo" if names else f"{count} not named, for an embargo"
    return " and ".join(part for part in (names, secret if hidden else "") if part)


def _id_date(case: Case) -> Iterator[str]:
    days = abs((submission_date(case.id) - case.received.date()).days)
    if days > case.spec.policy.id_days:
        yield (
            f"the id says {submission_date(case.id):%d %b %Y}, the submission came on "
            f"{case.received:%d %b %Y}: {days} days apart (limit {case.spec.policy.id_days})"
        )


def _open(case: Case) -> Iterator[str]:
    day = case.received.date()
    if day < case.spec.opens:
        yield f"came on {day:%d %b %Y}, the board opens on {case.spec.opens:%d %b %Y}"
    if case.spec.seasons and case.spec.season_on(day) is None:
        yield f"came on {day:%d %b %Y}, when no season of the board was open"
    if case.spec.closes is not None and day > case.spec.closes and case.spec.kind != "one-shot":
        yield f"came on {day:%d %b %Y}, the board closed on {case.spec.closes:%d %b %Y}"


def _post_hoc(case: Case) -> Iterator[str]:
    """At a one-shot board a late run is taken, and has no rank."""
    day, deadline = case.received.date(), case.spec.closes
    if case.spec.kind == "one-shot" and deadline is not None and day > deadline:
        yield f"came on {day:%d %b %Y}, after the deadline {deadline:%d %b %Y}: it has no rank"


def _team(case: Case) -> Iterator[str]:
    if team_key(case.manifest.team) in _NAMELESS:
        yield f"'{case.manifest.team}' names no team"


def _institution(case: Case) -> Iterator[str]:
    # The OpenSSL form has no such field: there the team's text holds both.
    if case.spec.envelope == "age" and team_key(case.manifest.institution) in _NAMELESS:
        yield f"'{case.manifest.institution}' names no institution"


def _description(case: Case) -> Iterator[str]:
    if not case.manifest.model_description.strip():
        yield "model_description is empty"


def _type(case: Case) -> Iterator[str]:
    if case.manifest.type not in case.spec.types:
        yield f"'{case.manifest.type}' is none of: {', '.join(case.spec.types)}"


def _training_data(case: Case) -> Iterator[str]:
    if case.spec.envelope == "age" and not case.manifest.training_data.strip():
        yield "training_data is empty; 'none' is an answer"


def _embargo(case: Case) -> Iterator[str]:
    until = case.manifest.embargo_until
    latest = add_months(case.received.date(), case.spec.policy.embargo_months)
    if until is not None and until > latest:
        yield (
            f"asks for {until:%d %b %Y}; {case.spec.policy.embargo_months} months "
            f"from the submission end on {latest:%d %b %Y}"
        )


def _candidates(case: Case) -> Iterator[str]:
    for name, problems in case.problems.items():
        found = [p for p in problems if p.code == "not-a-candidate"]
        if found:
            yield f"{name}: {len(found)} or more documents outside the official candidates"


def _runs(case: Case) -> Iterator[str]:
    for name, problems in case.problems.items():
        errors = [p for p in problems if p.severity == "error" and p.code != "not-a-candidate"]
        if errors:
            yield f"{name}: {errors[0]}" + (f" (and {len(errors) - 1} more)" * (len(errors) > 1))


_NAMELESS = frozenset(
    ("", "-", "?", "n/a", "na", "none", "anonymous", "anon", "unknown", "team", "my team", "test")
)

RULES: Mapping[str, Rule] = {
    "board-open": Rule(
        check=_open, severity="reject", reason="a board takes runs between its two days"
    ),
    "post-hoc": Rule(
        check=_post_hoc,
        severity="note",
        reason="whoever has seen the scores of others has an advantage over them",
    ),
    "id-date": Rule(
        check=_id_date,
        severity="reject",
        reason="the id is the permanent key; its date should be that of the submission",
    ),
    "team-named": Rule(
        check=_team,
        severity="reject",
        reason="anonymous probing of the held-out labels is not allowed; an embargo is",
    ),
    "institution-named": Rule(
        check=_institution,
        severity="reject",
        reason="a web search for team and institution should find the participant",
    ),
    "description": Rule(
        check=_description, severity="reject", reason="a score without a system teaches nothing"
    ),
    "type-known": Rule(
        check=_type, severity="reject", reason="re-ranking and full ranking are compared apart"
    ),
    "training-data": Rule(
        check=_training_data,
        severity="reject",
        reason="readers must see whether a system saw the test material",
    ),
    "embargo": Rule(
        check=_embargo, severity="reject", reason="blind review needs months, not for ever"
    ),
    "quota": Rule(
        check=_quota,
        severity="reject",
        reason="every released score leaks a little of the held-out labels",
    ),
    "candidates": Rule(
        check=_candidates,
        severity="reject",
        reason="a re-ranking run orders the official candidates and brings none of its own",
    ),
    "runs": Rule(
        check=_runs, severity="reject", reason="a partial or broken run could probe single labels"
    ),
}
"""Every rule, in the order in which findings are shown."""
