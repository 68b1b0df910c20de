"""The checks of the policy, one for each rule: pure functions that yield the evidence.

A check sees a `Case`: the board, its history, the manifest, what the scan said of the runs, and
times. It yields a sentence for each violation, nothing where all is well. A person decides.
To add a rule: write its check here, with a row in `CHECKS`, and a row in
`board/rules/templates/policy.toml`.

Three checks need a word. The quota is a window that slides by the second (Lin et al. 2022, section
3.3, Frequency of Submission). Some checks compare a submission with all others, and its seeds with
each other. A run that is far below every baseline is reported though its score is published:
whoever begins low on purpose sees every rise from there (redteam.md, sandbagging), and runs
spoilt on most queries ask for single labels. A weak system may be as low: a person asks.
"""

import calendar
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from heldout.board.log.history import History, hides_tie, is_signed, list_renamed, names_of
from heldout.board.log.manifest import Manifest, team_key
from heldout.board.log.submission import Submission
from heldout.board.policy import identity, registered, similarity
from heldout.board.policy.ensembles import RunLikeness, say_ensemble, say_neighbour
from heldout.board.rules.spec import RULES, BoardSpec, FindingSeverity
from heldout.errors import Problem, quote
from heldout.ids import SubmissionId, submission_date


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far a run lies below a baseline, in the view that ranks.

    Attributes:
        baseline: the baseline's id.
        errors: mean of baseline less run over the queries of both, in its own standard errors;
            below 0 where the run is better.
    """

    baseline: str
    errors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a rule may look at.

    Attributes:
        spec: the rules of the day of submission.
        history: the board before or with this submission.
        id: the submission's id.
        received: its official time, UTC.
        manifest: its metadata.
        problems: run (`SET`, `SET~2` and so on) -> problems that the scan found in it.
        entrants: who else has submitted.
        key: of `identity.key_digest`; "" where the submission was not opened.
        reader: who will read the evidence.
        likenesses: query set -> what earlier runs are like the submission's.
        distances: of the run from each baseline; none where the held-out scores are not at hand.
        seeds: which of its runs cannot differ by their seed alone.
    """

    spec: BoardSpec
    history: History
    id: SubmissionId
    received: datetime
    manifest: Manifest
    problems: Mapping[str, Sequence[Problem]]
    entrants: tuple[identity.Entrant, ...] = ()
    key: str = ""
    reader: identity.Reader = "team"
    likenesses: Mapping[str, RunLikeness] = field(default_factory=dict)
    seeds: tuple[similarity.SeedFault, ...] = ()
    distances: tuple[Distance, ...] = ()


_SAID = 5
_LEVEL = 0.05
"""Runs like the new one that are told with all figures; the others by their ids."""


def _entrant(case: Case) -> identity.Entrant:
    said = case.manifest
    return identity.Entrant(
        submission=case.id,
        team=said.team,
        institution=said.institution,
        paper=said.paper,
        code=said.code,
        key=case.key,
    )


def check_registered(case: Case) -> Iterator[str]:
    """The submission is signed by a registered team that agreed to what is in force."""
    if case.spec.registration is None:
        return
    submission = case.history.submissions.get(case.id) or Submission(
        id=case.id, received=case.received, files={}, status="received"
    )
    yield from registered.list_unsigned(case.spec, case.history, submission, case.manifest.team)


def check_look_alikes(case: Case) -> Iterator[str]:
    """The team's name looks like that of no other team."""
    yield from identity.look_alike_evidence(_entrant(case), case.entrants, reader=case.reader)


def check_ties(*kinds: identity.TieKind) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether such ties lead to other teams."""
    return lambda case: identity.tie_evidence(
        _entrant(case), case.entrants, kinds=kinds, reader=case.reader
    )


def check_renamed(case: Case) -> Iterator[str]:
    """No other entries, under either name, where a published entry shall have another one."""
    own = case.history.submissions.get(case.id)
    if own is None or own.status != "published":
        return
    renamed = list_renamed(case.history)
    before = names_of(renamed, own.counts_for)
    after = names_of(renamed, [case.manifest.team])
    others = [
        other.id
        for other in case.history.submissions.values()
        if other.id != case.id
        and (other.pending or other.status == "published")
        and not (before | after).isdisjoint(map(team_key, other.counts_for))
    ]
    if others and before.isdisjoint(after):
        yield (
            f"{quote(case.manifest.team)} and {quote(own.counts_for[-1])} are one team from then "
            f"on, with one quota; others of theirs: {identity.some_ids(others)}"
        )


def check_id_words(case: Case) -> Iterator[str]:
    """The id of an embargoed submission does not tell whose it is."""
    until, said = case.manifest.embargo_until, case.manifest
    if until is None or until <= case.received.date():
        return
    if found := identity.resembles(case.id, said.team, said.institution):
        yield found


def check_alike(verdict: similarity.Verdict, *, own: bool) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether an earlier run, of the same team or of another, is so like it.

    A team may send a system again in a new season: that ranks by queries of its own.
    """

    def check(case: Case) -> Iterator[str]:
        season = case.spec.season_on(case.received.date())
        keys = names_of(list_renamed(case.history), [case.manifest.team])
        alike: dict[str, dict[str, similarity.Neighbour]] = defaultdict(dict)
        for name, found in case.likenesses.items():
            for other in found.neighbours:
                submission = case.history.submissions.get(other.id)
                teams = () if submission is None else submission.counts_for
                mine = not keys.isdisjoint(map(team_key, teams))
                past = submission is not None and (
                    case.spec.season_on(submission.received.date()) != season
                )
                if other.verdict == verdict and mine == own and not (own and past):
                    alike[other.id][name] = other
        for name in list(alike)[:_SAID]:
            known = case.history.submissions.get(name)
            yield say_neighbour(alike[name], baseline=known is not None and known.baseline)
        if further := list(alike)[_SAID:]:
            yield f"the same is to be said of {len(further)} more: {identity.some_ids(further)}"

    return check


def check_ensemble(case: Case) -> Iterator[str]:
    """No few earlier runs explain the run together."""
    for name, found in case.likenesses.items():
        if found.ensemble is not None:
            yield say_ensemble(name, found.ensemble)


def check_seeds(*, copied: bool) -> Callable[[Case], Iterator[str]]:
    """A rule's check: whether two seeds are copies of each other, or too unlike to be seeds."""
    return lambda case: (similarity.say_fault(f) for f in case.seeds if f.copied == copied)


def paired_distance(
    run: Mapping[str, float | None], baseline: Mapping[str, float | None], *, better: str
) -> float | None:
    """Return how many paired standard errors a run lies below a baseline.

    Args:
        run: query -> score, `None` where the measure is undefined.
        baseline: the same of the baseline.
        better: `higher` or `lower` scores.

    Returns:
        `None` where nothing can be said: less than two queries in common, or the difference is the
        same on all of them, so that it has no standard error.
    """
    pairs = [(run[query], baseline[query]) for query in run.keys() & baseline.keys()]
    gaps = [b - r for r, b in pairs if r is not None and b is not None]
    if len(set(gaps)) <= 1:
        return None
    errors = statistics.fmean(gaps) / (statistics.stdev(gaps) / math.sqrt(len(gaps)))
    return errors if better == "higher" else -errors


def check_far_below(case: Case) -> Iterator[str]:
    """Under `rounded` no run lies clearly below the worst baseline.

    One that is spoilt on all queries but one says what that one is worth, the tenth as well as the
    first. Under `clear` no low score is published.
    """
    if case.spec.release.rule == "clear":
        return
    bar = far_below_limit(case.spec)
    distances = sorted(case.distances, key=lambda one: (one.errors, one.baseline))
    if not distances or distances[0].errors <= bar:
        return
    worst, best = distances[0], distances[-1]
    lies = f"{worst.errors:.1f} paired standard errors below {worst.baseline}, the nearest baseline"
    if best is not worst:
        lies += f", and {best.errors:.1f} below {best.baseline}"
    yield f"the run lies {lies} (limit {bar:.2f})"


def far_below_limit(spec: BoardSpec) -> float:
    """Paired standard errors below a baseline that need an explanation.

    Of a board's declared submissions, each with several views, as good as that baseline at most
    about 5% lie so far below in any: the normal quantile of 1 - .05/(K V).
    """
    chances = spec.release.submissions * max(spec.held_out_views, 1)
    return -statistics.NormalDist().inv_cdf(_LEVEL / chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """How much of its quota a team has used.

    Attributes:
        used: submissions that count, the ids in order of time.
        limit: the most that may.
        since: begin of the window that ends now.
        next_allowed: the earliest time at which one more may be received.
    """

    used: tuple[str, ...]
    limit: int
    since: datetime
    next_allowed: datetime


def quota_state(history: History, team: str, spec: BoardSpec, *, now: datetime) -> QuotaState:
    """Return what a team has used of its quota at a moment, and when it may submit again.

    Args:
        history: the board's; by the public log alone, embargoed and undecided ones are not seen.
        team: as in the metadata.
        spec: the rules.
        now: the moment, UTC.
    """
    window = quota_window(spec)
    used = sorted(
        (s.received, s.id)
        for s in counted(history, team, spec, at=now)
        if now - window < s.received <= now
    )
    moments = [moment for moment, _ in used]
    again = next_allowed(moments, now=now, window=window, limit=spec.policy.quota)
    since = now - window
    late = after_deadline(spec)
    if late is not None and now < late:
        since = datetime.combine(spec.opens, time(), UTC)
        again = now if again <= now else late
    return QuotaState(
        used=tuple(name for _, name in used),
        limit=spec.policy.quota,
        since=since,
        next_allowed=again,
    )


def after_deadline(spec: BoardSpec) -> datetime | None:
    """The first moment after the last day of a one-shot board; `None` for any other."""
    if spec.kind != "one-shot" or spec.closes is None:
        return None
    return datetime.combine(spec.closes + timedelta(days=1), time(), UTC)


def quota_window(spec: BoardSpec) -> timedelta:
    """Length of the window; at a one-shot board it holds all of the board's days."""
    if spec.kind == "one-shot" and spec.closes is not None:
        return timedelta(days=(spec.closes - spec.opens).days + 1)
    return timedelta(days=spec.policy.quota_days)


def next_allowed(
    moments: Sequence[datetime], *, now: datetime, window: timedelta, limit: int
) -> datetime:
    """The earliest time from now on at which one more fits, before and after others."""
    ends = sorted(moment + window for moment in moments)
    return next(
        t for t in (now, *ends) if t >= now and fits(moments, t, window=window, limit=limit)
    )


def fits(moments: Sequence[datetime], moment: datetime, *, window: timedelta, limit: int) -> bool:
    """Check whether no window around one more submission holds more than the quota."""
    starts = [start for start in (*moments, moment) if moment - window < start <= moment]
    return all(
        sum(start <= other < start + window for other in moments) < limit for start in starts
    )


def counted(history: History, team: str, spec: BoardSpec, *, at: datetime) -> Iterator[Submission]:
    """A team's submissions that use its quota: published, or still to be decided.

    One that was refused or withdrawn before publication released no score, so it leaked nothing
    and is given back. At a one-shot board those in time and those after it are counted apart.
    Names that an approved new name joined are one team.
    """
    keys = names_of(list_renamed(history), [team])
    late = after_deadline(spec)
    for submission in history.submissions.values():
        counts = submission.pending or submission.status == "published"
        named = not keys.isdisjoint(map(team_key, submission.counts_for))
        beside = late is None or (submission.received < late) == (at < late)
        if counts and named and beside and not submission.baseline:
            yield submission


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
    """Find what only hidden entries under the same name would refuse: a person looks at it."""
    limit, days = case.spec.policy.quota, quota_window(case.spec).days
    for team in _names(case):
        others = [*_ahead(case, team)]
        openly = [*_openly_ahead(case, team)]
        if _fit(case, openly) and not _fit(case, others):
            yield (
                f"more than {limit} runs within {days} days under this name, where no signature "
                "shows that they are one team's; ask the team: a refusal would reveal that "
                "some of them are hidden"
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
        yield f"{said}; heldout status shows the team when it may submit again"
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
    order = {name: number for number, name in enumerate(case.history.submissions)}
    own = (case.received, order.get(case.id, len(order)))
    for other in counted(case.history, team, case.spec, at=case.received):
        earlier = (other.received, order[other.id]) < own
        if other.id != case.id and (earlier or other.status == "published"):
            yield other


def _is_hidden(other: Submission, case: Case, team: str) -> bool:
    """Check whether to say that both are of one team would break an embargo."""
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
    yield from identity.name_evidence(case.manifest.team, "team", reserved=reserved)


def check_institution(case: Case) -> Iterator[str]:
    """The institution has a name, where the metadata has such a field."""
    # The OpenSSL form has no such field: there the team's text holds both.
    if case.spec.envelope == "age":
        yield from identity.name_evidence(case.manifest.institution, "institution")


def check_description(case: Case) -> Iterator[str]:
    """The system is described."""
    if not case.manifest.description.strip():
        yield "model_description is empty"


def check_type(case: Case) -> Iterator[str]:
    """The type is one of the board's."""
    if case.manifest.type not in case.spec.types:
        yield f"'{case.manifest.type}' is none of: {', '.join(case.spec.types)}"


def check_program(case: Case) -> Iterator[str]:
    """A program where the board takes programs, runs where it takes runs."""
    programs = case.spec.programs
    if case.manifest.program is not None and programs is None:
        yield "it is a program, and this board takes run files alone"
    if case.manifest.program is None and programs is not None and programs.required:
        yield "it has run files, and this board takes programs alone"


def check_training_data(case: Case) -> Iterator[str]:
    """Something is said of the training data, where the metadata has such a field."""
    if case.spec.envelope == "age" and not case.manifest.training_data.strip():
        yield "training_data is empty; 'none' is an answer"


def check_open_runs(case: Case) -> Iterator[str]:
    """The team knows and accepts that its runs are opened, on a board that opens all of them."""
    if case.spec.archive.runs != "always" or case.manifest.open_runs:
        return
    found = "this board opens the runs of every entry at its end"
    if case.manifest.open_runs is False:
        yield f"open_runs is false, but {found}"
    elif case.spec.envelope == "age":  # the OpenSSL form's scripts write no such field
        yield f"open_runs is not true, but {found}"


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


CHECKS: Mapping[str, Callable[[Case], Iterator[str]]] = {
    "board-open": check_open,
    "post-hoc": check_post_hoc,
    "id-date": check_id_date,
    "team-named": check_team,
    "team-registered": check_registered,
    "mixed-scripts": lambda case: identity.script_evidence(case.manifest.team),
    "look-alike": check_look_alikes,
    "several-names": check_ties("paper", "code", "institution"),
    "shared-key": check_ties("key"),
    "name-taken": check_ties("name"),
    "renamed-entry": check_renamed,
    "telling-id": check_id_words,
    "institution-named": check_institution,
    "description": check_description,
    "type-known": check_type,
    "program": check_program,
    "training-data": check_training_data,
    "open-runs": check_open_runs,
    "embargo": check_embargo,
    "quota": check_quota,
    "unproven-quota": check_unproven_quota,
    "candidates": check_candidates,
    "runs": check_runs,
    "copied-seeds": check_seeds(copied=True),
    "unlike-seeds": check_seeds(copied=False),
    "same-run": check_alike("identical", own=True),
    "others-run": check_alike("identical", own=False),
    "small-change": check_alike("variant", own=True),
    "near-others": check_alike("variant", own=False),
    "ensemble": check_ensemble,
    "far-below": check_far_below,
}
"""The check of each rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of a submission.

    Attributes:
        rule: name of the rule, a key of `RULES`.
        severity: as the rule has it.
        evidence: what was found, in a sentence.
        public: whether the public may see that the rule found something.
    """

    rule: str
    severity: FindingSeverity
    evidence: str
    public: bool = True


def judge(case: Case, *, again: Literal["", "amended", "renamed"] = "") -> tuple[Finding, ...]:
    """Apply every rule that the board has not switched off, in the order of the table.

    Args:
        case: what they look at.
        again: what changes of an entry that is published; "" for a submission.
    """
    return tuple(
        Finding(
            rule=name,
            severity=rule.severity,
            evidence=evidence,
            public=rule.shown != "organisers",
        )
        for name, rule in RULES.items()
        if name not in case.spec.policy.off and (not again or rule.again in ("amended", again))
        for evidence in CHECKS[name](case)
    )
