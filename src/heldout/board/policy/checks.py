"""Checks of the policy that look at a submission, its dates, and how many its team has made.

Each yields the evidence of a violation, a sentence each, and nothing where all is well.
"""

import calendar
from collections.abc import Iterator, Sequence
from datetime import date

from heldout.board.log.history import Submission
from heldout.board.log.joined_names import hides_tie, list_renamed
from heldout.board.log.manifest import team_key
from heldout.board.policy.case import Case
from heldout.board.policy.identity import name_evidence
from heldout.board.policy.quota import counted, fits, next_allowed, quota_window
from heldout.board.policy.registered import is_signed
from heldout.ids import submission_date

__all__ = [
    "add_months",
    "check_candidates",
    "check_description",
    "check_embargo",
    "check_id_date",
    "check_institution",
    "check_open",
    "check_open_runs",
    "check_post_hoc",
    "check_quota",
    "check_runs",
    "check_team",
    "check_training_data",
    "check_type",
    "check_unproven_quota",
]


def add_months(day: date, months: int) -> date:
    """The same day some months later, or the last of that month where it has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def check_quota(case: Case) -> Iterator[str]:
    """No window of the policy's length around this submission may hold more than the quota.

    The earliest stand: of those that wait only earlier ones count, else runs that came in the
    same second would refuse each other. What is published counts wherever it lies. What waits is
    held against every name that it was opened under: a new name does not make room.

    What an embargo hides counts only against a submission that its team has signed: else anybody
    could send files under a name, and learn by the refusal that the team has a hidden entry.
    """
    # Of two names that are one team's the second says what the first said.
    yield from dict.fromkeys(
        said
        for team in _names(case)
        for said in _quota_evidence(case, team, list(_openly_ahead(case, team)))
    )


def check_unproven_quota(case: Case) -> Iterator[str]:
    """What only hidden entries under the same name would refuse is for a person to look at."""
    limit, days = case.spec.policy.quota, quota_window(case.spec).days
    for team in _names(case):
        others = [*_ahead(case, team)]
        openly = [*_openly_ahead(case, team)]
        if _fit(case, openly) and not _fit(case, others):
            yield (
                f"more than {limit} runs within {days} days under this name, where no signature "
                "shows that they are one team's; ask the team: a refusal would tell that some of "
                "them are hidden"
            )
            return


def _names(case: Case) -> list[str]:
    """Names of the team whose quota a submission is held against."""
    own = case.history.submissions.get(case.id)
    names = own.teams if own is not None and own.pending else ()
    return list({team_key(name): name for name in (*names, case.manifest.team)}.values())


def _fit(case: Case, others: Sequence[Submission]) -> bool:
    moments = [other.received for other in others]
    window = quota_window(case.spec)
    return fits(moments, case.received, window=window, limit=case.spec.policy.quota)


def _quota_evidence(case: Case, team: str, others: Sequence[Submission]) -> Iterator[str]:
    """Names others only where nothing is hidden: an organiser may paste it into a public reason."""
    if _fit(case, others):
        return
    limit = case.spec.policy.quota
    if case.spec.kind == "one-shot":
        yield f"more than {limit} runs of this team, the number that each has on this board"
        return
    window = quota_window(case.spec)
    said = f"more than {limit} runs of this team within {window.days} days"
    others = sorted(others, key=lambda s: (s.received, s.id))
    near = [other for other in others if abs(other.received - case.received) < window]
    if any(_is_hidden(other, case, team) for other in near):
        yield f"{said}; heldout status tells the team when the next may come"
        return
    moments = [other.received for other in others]
    free = next_allowed(moments, now=case.received, window=window, limit=limit)
    names = ", ".join(other.id for other in near)
    yield f"{said}, with {names}; the next may come from {free:%d %b %Y %H:%M:%S} UTC"


def _openly_ahead(case: Case, team: str) -> Iterator[Submission]:
    """Those that may stand against it in public."""
    own = case.history.submissions.get(case.id)
    proven = own is not None and is_signed(case.history, own)
    day = case.received.date()
    renamed = list_renamed(case.history)
    for other in _ahead(case, team):
        tied = hides_tie(renamed, [team], other, day=day)
        if proven or not (tied or other.is_hidden(day)):
            yield other


def _ahead(case: Case, team: str) -> Iterator[Submission]:
    """The team's other submissions that are published or were received before this one."""
    order = {name: place for place, name in enumerate(case.history.submissions)}
    own = (case.received, order.get(case.id, len(order)))
    for other in counted(case.history, team, case.spec, at=case.received):
        earlier = (other.received, order[other.id]) < own
        if other.id != case.id and (earlier or other.status == "published"):
            yield other


def _is_hidden(other: Submission, case: Case, team: str) -> bool:
    """Whether to say that both are of one team would break an embargo; a refusal is public."""
    day = case.received.date()
    ends = (other.embargo_until, case.manifest.embargo_until)
    tied = hides_tie(list_renamed(case.history), [team], other, day=day)
    return tied or any(end is not None and end > day for end in ends)


def check_id_date(case: Case) -> Iterator[str]:
    """The date in the id is near that of receipt."""
    days = abs((submission_date(case.id) - case.received.date()).days)
    if days > case.spec.policy.id_days:
        yield (
            f"the id says {submission_date(case.id):%d %b %Y}, the submission came on "
            f"{case.received:%d %b %Y}: {days} days apart (limit {case.spec.policy.id_days})"
        )


def check_open(case: Case) -> Iterator[str]:
    """The board, or a season of it, takes submissions on that day."""
    day = case.received.date()
    if day < case.spec.opens:
        yield f"came on {day:%d %b %Y}, the board opens on {case.spec.opens:%d %b %Y}"
    if case.spec.seasons and case.spec.season_on(day) is None:
        yield f"came on {day:%d %b %Y}, when no season of the board was open"
    if case.spec.closes is not None and day > case.spec.closes and case.spec.kind != "one-shot":
        yield f"came on {day:%d %b %Y}, the board closed on {case.spec.closes:%d %b %Y}"


def check_post_hoc(case: Case) -> Iterator[str]:
    """At a one-shot board a late run is taken, and has no rank."""
    day, deadline = case.received.date(), case.spec.closes
    if case.spec.kind == "one-shot" and deadline is not None and day > deadline:
        yield f"came on {day:%d %b %Y}, after the deadline {deadline:%d %b %Y}: it has no rank"


def check_team(case: Case) -> Iterator[str]:
    """The team has a name."""
    reserved = (case.spec.name, case.spec.title)
    yield from name_evidence(case.manifest.team, "team", reserved=reserved)


def check_institution(case: Case) -> Iterator[str]:
    """The institution has a name, where the metadata has such a field."""
    # The OpenSSL form has no such field: there the team's text holds both.
    if case.spec.envelope == "age":
        yield from name_evidence(case.manifest.institution, "institution")


def check_description(case: Case) -> Iterator[str]:
    """The system is described."""
    if not case.manifest.description.strip():
        yield "model_description is empty"


def check_type(case: Case) -> Iterator[str]:
    """The type is one of the board's."""
    if case.manifest.type not in case.spec.types:
        yield f"'{case.manifest.type}' is none of: {', '.join(case.spec.types)}"


def check_training_data(case: Case) -> Iterator[str]:
    """Something is said of the training data, where the metadata has such a field."""
    if case.spec.envelope == "age" and not case.manifest.training_data.strip():
        yield "training_data is empty; 'none' is an answer"


def check_open_runs(case: Case) -> Iterator[str]:
    """The team knows and accepts that its runs are opened, on a board that opens all of them."""
    if case.spec.archive.runs != "always" or case.manifest.open_runs:
        return
    told = "this board opens the runs of every entry at its end"
    if case.manifest.open_runs is False:
        yield f"open_runs is false, but {told}"
    elif case.spec.envelope == "age":  # the OpenSSL form's scripts write no such field
        yield f"open_runs is not true, but {told}"


def check_embargo(case: Case) -> Iterator[str]:
    """The embargo ends in time."""
    until = case.manifest.embargo_until
    latest = add_months(case.received.date(), case.spec.policy.embargo_months)
    if until is not None and until > latest:
        yield (
            f"asks for {until:%d %b %Y}; {case.spec.policy.embargo_months} months "
            f"from the submission end on {latest:%d %b %Y}"
        )


def check_candidates(case: Case) -> Iterator[str]:
    """A re-ranking run keeps to the official candidates."""
    for name, problems in case.problems.items():
        found = [p for p in problems if p.code == "not-a-candidate"]
        if found:
            yield f"{name}: {len(found)} or more documents outside the official candidates"


def check_runs(case: Case) -> Iterator[str]:
    """The runs have no errors."""
    for name, problems in case.problems.items():
        errors = [p for p in problems if p.severity == "error" and p.code != "not-a-candidate"]
        if errors:
            yield f"{name}: {errors[0]}" + (f" (and {len(errors) - 1} more)" * (len(errors) > 1))
