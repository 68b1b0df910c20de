"""A person's decisions: publish, reject, ask, correct, extend. Each is one event.

Each service decides, makes everything public again and answers on the forge; the session's lock is
held. `score_part` alone decides nothing and needs no lock.

`publish` and `reject` decide too on what the team of a published entry proposes.

The event is the decision. What follows from it (files, page, commit) is made by `rebuild`, so a
crash after the event costs nothing: the next call finds it in the log and goes on from there.

An organiser's own run: scored like any other, shown without rank, trophy or quota.

What organisers write about a submission under embargo: it is public at once, the team is not.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from heldout.board.log.history import is_signed
from heldout.board.log.manifest import Identity, identity_fields
from heldout.board.log.submission import Submission
from heldout.board.organiser import finals, rebuild
from heldout.board.organiser.answer import ForgeAccess, answer_all
from heldout.board.organiser.review import Review, review
from heldout.board.policy.checks import add_months, counted
from heldout.board.policy.identity import mentions
from heldout.board.scores import commitments, releasing, rescoring, score, stored
from heldout.board.scores.rescoring import Precomputed, Taken, rules_of
from heldout.board.scores.session import Session, commit_held_out, note_held_out, refuse_rules
from heldout.board.scores.sets import SetData, check_seeds, load_sets
from heldout.errors import InputError, Problem, StoreError, TrustError, quote
from heldout.ids import parse_submission_id
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.shards import Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a submission.

    Attributes:
        id: the submission.
        done: whether it stands now as was asked for.
        done_before: whether it stood so before this call.
        why_not: what stands against it.
        event: number of the event that was logged, `None` where none was.
        kind: its kind; "" where none was.
        before: the released scores before a correction; empty for anything else.
    """

    id: str
    done: bool
    done_before: bool = False
    why_not: tuple[str, ...] = ()
    event: int | None = None
    kind: str = ""
    before: Mapping[str, str] = field(default_factory=dict)


_QUOTA = re.compile(
    r"\bquotas?\b|\btoo many\b"
    r"|\b(?:more than|over|already|limit of)\s+\w+\s+(?:runs?|submissions?|entr(?:y|ies))\b",
    re.IGNORECASE,
)
_DAY_DIGITS = 8
"""With so many digits the id of a submission begins."""


def publish(session: Session, result: Review, *, why: str) -> Decision:
    """Release the scores of a reviewed submission, or put what its team proposes on the page.

    It cannot be taken back.

    Args:
        session: its lock is held, so that two organisers cannot overshoot a quota together.
        result: a review made under the same lock.
        why: the reason, needed where a finding asks for one.
    """
    submission, manifest, proposal = result.submission, result.manifest, result.submission.proposal
    if proposal is None and submission.status == "published":
        return Decision(id=submission.id, done=True, done_before=True)
    obstacles = _obstacles(result, why)
    if obstacles or manifest is None:
        return Decision(id=submission.id, done=False, why_not=obstacles)
    spec = session.spec_at(submission.received)
    sealed: dict[str, Any] = {
        "identity": identity_fields(manifest),
        "why": why,
        "findings": [finding.rule for finding in result.findings if finding.public],
    }
    if proposal is not None:  # scores and times stay
        sealed |= {"revision": manifest.revision, **score.signature_field(spec, proposal.signature)}
        files = {"files": dict(proposal.files)}
        return _log(session, "amended", submission.id, public=files, sealed=sealed)
    until = manifest.embargo_until
    commit_held_out(session)
    release = releasing.release_entry(session, spec, submission, result.scores.views)
    public = {
        **release.public,
        "type": manifest.type,
        "embargo_until": None if until is None else until.isoformat(),
        "revision": manifest.revision,
    }
    evidence = stored.store_evidence_of(session.vault, submission.id, spec, result.scores)
    sealed |= {
        **release.sealed,
        "evidence": evidence,
        "kept": session.vault.result_digests(submission.id),
    }
    return _log(session, "published", submission.id, public=public, sealed=sealed)


def publish_baseline(
    session: Session, name: str, scored: rescoring.ScoredBaseline, identity: Identity
) -> Decision:
    """Show an organiser's own run: no rank, no trophy, no quota.

    The runs are kept, so that the entry can be corrected when labels are repaired, and their
    signatures, with which later submissions are compared.

    Raises:
        InputError: the name is taken.
    """
    before = session.history().in_any_case(name)
    asked = (name, identity, True)
    same = before is not None and (before.id, before.identity, before.baseline) == asked
    if before is not None and same and before.runs == scored.scores.files:
        return Decision(id=name, done=True, done_before=True)
    if before is not None:
        raise InputError(_refusal("id-taken", name, before, "a name of its own"))
    commit_held_out(session)
    spec = session.spec().on(session.now.date(), baseline=True)
    noisy = releasing.noisy_scores(session, spec, scored.scores.views, baseline=True)
    errors = releasing.list_errors(session, spec, scored.scores.views)
    public = releasing.released(spec, scored.scores.views, noisy=noisy, errors=errors)
    runs = {
        n: str(session.vault.store_sealed(path.read_bytes())) for n, path in scored.runs.items()
    }
    stored.store_signatures(session.vault, name, scored.scans)
    stored.store_scores(session.vault, name, scored.scores)
    return _log(
        session,
        "baseline",
        name,
        public={**public, "type": "baseline", "embargo_until": None},
        sealed={
            "identity": identity_fields(identity),
            "runs": runs,
            "evidence": stored.store_evidence_of(session.vault, name, spec, scored.scores),
            "kept": session.vault.result_digests(name),
        },
    )


def reject(session: Session, submission_id: str, *, why: str) -> Decision:
    """Refuse a submission, or what an entry's team proposed; the reason is public, for the team."""
    submission = check_rejectable(session, submission_id)
    if submission.proposal is not None:
        return _log(session, "declined", submission_id, public={"why": why})
    if submission.status == "rejected":
        return Decision(id=submission_id, done=True, done_before=True)
    return _log(session, "rejected", submission_id, public={"why": why})


def check_rejectable(session: Session, submission_id: str) -> Submission:
    """A submission that waits for a decision, itself or its proposal, or was rejected before.

    Raises:
        InputError: it was published or withdrawn.
    """
    submission = session.find(submission_id)
    if submission.status != "rejected" and submission.proposal is None:
        _check_pending(submission)
    return submission


def correct(
    session: Session,
    submission_id: str,
    scores: stored.ScoreFile,
    *,
    why: str,
    anyway: bool = False,
) -> Decision:
    """Publish an erratum: scores made again with today's labels and code, and the reason.

    Args:
        session: its lock is held.
        submission_id: an entry, or a baseline.
        scores: what scoring it again gave; kept also where no released score changes.
        why: the reason; it is public.
        anyway: log it also where no released score changes; so too while scores are sealed, for
            who has an erratum must not tell whose score changed.

    Raises:
        InputError: the submission is not published, or its run has errors now.
    """
    submission = session.find_published(submission_id)
    check_scored(submission, scores)
    spec = rules_of(session, submission)
    release = releasing.release_again(session, spec, submission, scores.views)
    before = submission.scores
    same = _is_as_before(submission, release, scores)
    stored.store_scores(session.vault, submission_id, scores)
    # Later scores may be compared with these: the log says what they are, sealed ones too.
    evidence = stored.store_evidence_of(session.vault, submission_id, spec, scores)
    vouched = {"evidence": evidence, "kept": session.vault.result_digests(submission_id)}
    done_before = same and bool(submission.errata) and submission.errata[-1][1] == why
    again = (vouched["kept"], evidence) != (submission.stored, submission.evidence)
    # While a score is sealed, an erratum only where it changed would tell that it did.
    silent = again and not release.sealed.keys().isdisjoint(("scores", "final"))
    if (
        same
        and not silent
        and _by_labels_alone(session, submission, evidence)
        and (done_before or not anyway)
    ):
        if again:  # nothing is told, and the log vouches for what is kept
            session.log("reviewed", submission_id, sealed=vouched)
        return Decision(
            id=submission_id,
            done=True,
            done_before=done_before,
            before={} if done_before else before,
        )
    public = {**release.public, "why": why}
    sealed = {**release.sealed, **vouched}
    logged = _log(session, "corrected", submission_id, public=public, sealed=sealed)
    return replace(logged, before=before)


def _by_labels_alone(session: Session, submission: Submission, evidence: Mapping[str, str]) -> bool:
    """Check whether scores are what they were, or were made with other labels.

    Others by the same labels are never taken over in silence: later runs are compared with them.
    """
    try:
        return all(
            stored.follows_on(stored.read_evidence(session.vault, before), made, made.labels)
            for view, before in submission.evidence.items()
            if view in evidence
            for made in (stored.read_evidence(session.vault, evidence[view]),)
        )
    except StoreError:  # what they were is lost
        return False


def _is_as_before(
    submission: Submission, release: releasing.EntryRelease, scores: stored.ScoreFile
) -> bool:
    """Check whether an erratum would publish, now or later, what was published before."""
    names = (*release.scores, *submission.final)
    if any(submission.counts.get(name) != scores.views[name].n for name in names):
        return False
    known = {view: text for view, text in submission.spreads.items() if view in submission.scores}
    final = release.public.get("final", {"scores": submission.final})["scores"]
    now = (release.scores, release.spreads, final)
    return now == (dict(submission.scores), known, dict(submission.final))


def check_scored(submission: Submission, scores: stored.ScoreFile) -> None:
    """Refuse an erratum without a score.

    Raises:
        InputError: the run or its metadata has errors today, or no score is defined.
    """
    if not scores.views:
        expected = "a run that can be scored with today's labels and code"
        refusal = _refusal("not-scored", submission.id, submission, expected)
        raise InputError([*scores.metadata_problems, refusal])


def _log(
    session: Session,
    kind: str,
    name: str,
    *,
    public: Mapping[str, Any],
    sealed: Mapping[str, Any] | None = None,
) -> Decision:
    entry = session.log(kind, name, public=public, sealed=sealed)
    return Decision(id=name, done=True, event=entry.event.seq, kind=kind)


def _obstacles(result: Review, why: str) -> tuple[str, ...]:
    """Return the findings that stand against it, or that nobody has given a reason for."""
    submission = result.submission
    if submission.proposal is None and not submission.pending:
        return (f"it is {submission.status}",)
    if submission.proposal is None and not result.stands_against and not result.scores.views:
        return ("there is no score: a run has errors",)
    against = tuple(f"{f.rule}: {f.evidence}" for f in result.stands_against)
    if against or not result.needs_reason or why.strip():
        return against
    asks = "; ".join(f"{f.rule}: {f.evidence}" for f in result.needs_reason)
    return (f"a reason is needed (--why) for: {asks}",)


def _check_pending(submission: Submission) -> None:
    if not submission.pending:
        raise InputError(
            _refusal("already-decided", submission.id, submission, "one that waits for a decision")
        )


def _refusal(code: str, name: str, submission: Submission, expected: str) -> Problem:
    found = "a baseline" if submission.baseline else f"a submission that is {submission.status}"
    return Problem(code=code, path=name, found=found, expected=expected)


def add_baseline(
    session: Session, name: str, runs: Mapping[str, Path], *, description: str
) -> Decision:
    """Score an organiser's runs and log them as a baseline.

    Args:
        session: its lock is held.
        name: a submission id, yyyymmdd-name.
        runs: run (`SET`, `SET~2` and so on) -> its file, of each set of the board.
        description: the system, as the page shows it.

    Raises:
        InputError: a run is missing or has errors, or the name is taken.
    """
    parse_submission_id(name)
    note_held_out(session)
    spec = session.spec().on(session.now.date(), baseline=True)
    firsts = {name for name in runs if "~" not in name}
    asked = "one run for each of: " + ", ".join(spec.sets)
    problems = [
        Problem("missing-run", "baseline", f"{'a' if n in runs else 'no'} run for '{n}'", asked)
        for n in sorted(firsts ^ set(spec.sets))
    ]
    problems += check_seeds(runs, sets=spec.sets, most=spec.runs.seeds, path="baseline")
    found, expected = "no such file", "a run file that can be read"
    problems += [
        Problem(code="unreadable-file", path=str(path), found=found, expected=expected)
        for path in runs.values()
        if not path.is_file()
    ]
    if problems:
        raise InputError(problems)
    sets = load_sets(session.repository, spec, vault=session.vault)
    scored = rescoring.score_baseline(spec, sets, runs)
    identity = Identity(
        team="organisers",
        institution="",
        description=description,
        paper="",
        code="",
        training_data="",
    )
    return publish_baseline(session, name, scored, identity)


def check_text(session: Session, text: str, *submissions: str, anyway: bool = False) -> None:
    """Refuse a question or a reason that tells who sent a submission under embargo.

    Of those that it is about, and of every other: a reason for one may name the team of another,
    name both of two entries that only the organisers know to be alike, say that something is
    under embargo, or speak of a quota that a hidden entry fills. A rejected or withdrawn one is
    never revealed, so its embargo counts as asked for.

    Args:
        session: of the organiser.
        text: what the log would say in public, for good.
        submissions: ids that it is about; those that the log does not know are left to others.
        anyway: whether a person has looked and says that it tells nothing.

    Raises:
        InputError: `telling-text`; nothing was logged.
    """
    known, day = session.history().submissions, session.now.date()
    about = {name: known[name] for name in submissions if name in known}
    hidden = {one.id: one for one in known.values() if one.is_hidden(day)}
    others = [one for name, one in hidden.items() if name not in about]
    found = [_find(session, text, submission) for submission in (*about.values(), *others)]
    tied = {name for name, one in hidden.items() if not one.baseline}
    named = [one.id for one in known.values() if _names_id(text, one.id)]
    found += [_find_tie(text, submission.id, named, tied) for submission in about.values()]
    found += [_find_quota(session, text, submission) for submission in about.values()]
    problems = [problem for problem in found if problem is not None]
    if problems and not anyway:
        raise InputError(problems)


def _refuse_text(submission: str, found: str, hint: str = "", *, until: str = "") -> Problem:
    expected = f"a text that does not reveal the team before {until}"
    if not until:
        expected = "a text that does not reveal an entry under embargo; it is public at once"
    hint = f"write it without that{hint}; if it reveals nothing: --yes"
    return Problem("telling-text", submission, found, expected, hint)


def _find_quota(session: Session, text: str, submission: Submission) -> Problem | None:
    """Find words of a quota that hidden entries fill: the open ones can be counted.

    Who signed is the team itself, and may know; where it is hidden, others may not.
    """
    said, day, history = _QUOTA.search(text), session.now.date(), session.history()
    senders = () if said is None else list(_senders(session, submission))
    hides = submission.is_hidden(day) or any(until and day < until for _, until in senders)
    counts = [
        one
        for who, _ in senders
        for one in counted(history, who.team, session.spec(), at=submission.received)
        if one.id != submission.id and one.is_hidden(day)
    ]
    if said is None or not (hides or (counts and not is_signed(history, submission))):
        return None
    found = f"it says {quote(said[0])}, and an embargo hides an entry that counts"
    return _refuse_text(submission.id, found, " (heldout status tells the team)")


def _find_tie(
    text: str, submission: str, every: Sequence[str], hidden: Collection[str]
) -> Problem | None:
    """Return what ties a submission to another, while an embargo hides who sent either.

    Args:
        text: what the log would say.
        submission: an id that it is about.
        every: the ids that it names.
        hidden: the ids of submissions under an embargo.
    """
    named = [name for name in every if name != submission]
    tied = next((name for name in named if submission in hidden or name in hidden), None)
    said = re.search(r"\bembargo\w*", text, re.IGNORECASE)
    if tied is not None:
        found = f"it names {tied} beside it, and an embargo hides who sent one of them"
    elif said is not None and hidden:
        found = f"it says {quote(said[0])}: its sender would learn of a hidden entry"
    else:
        return None
    return _refuse_text(submission, found)


def _names_id(text: str, name: str) -> bool:
    day = name[:_DAY_DIGITS]
    if day.isdecimal() and day not in text:  # a pattern for each of many names takes long
        return False
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def _find(session: Session, text: str, submission: Submission) -> Problem | None:
    for who, until in _senders(session, submission):
        if until is None or until <= session.now.date():
            continue
        evidence = mentions(text, who.team, who.institution, links=(who.paper, who.code))
        if evidence is not None:
            return _refuse_text(submission.id, evidence, until=f"{until:%d %b %Y}")
    return None


def _senders(session: Session, submission: Submission) -> Iterator[tuple[Identity, date | None]]:
    """Return who sent it, reviewed or not, and until when that is hidden."""
    if submission.identity is not None:
        yield submission.identity, submission.embargo_until
    if submission.proposal is not None and submission.proposal.identity is not None:
        yield submission.proposal.identity, submission.embargo_until
    if submission.status == "received":
        with suppress(TrustError, InputError):  # what does not open tells nobody
            spec = session.spec_at(submission.received)
            _, manifest = score.open_manifest(session.vault, spec, submission)
            yield manifest, manifest.embargo_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of submissions.

    Attributes:
        decisions: one for each submission.
        rebuilt: what was made public again.
        earlier: entries that are still scored with earlier labels.
        reopens_final: whether the final has to be opened again, since its scores changed.
        ahead: what became of scores that parts of a correction had stored.
    """

    decisions: tuple[Decision, ...]
    rebuilt: rebuild.Rebuilt
    earlier: tuple[str, ...] = ()
    reopens_final: bool = False
    ahead: Taken | None = None

    @property
    def done(self) -> tuple[str, ...]:
        """The submissions that are as was asked for."""
        return tuple(decision.id for decision in self.decisions if decision.done)


def publish_all(
    session: Session,
    forge: ForgeAccess,
    sets: Mapping[str, SetData],
    reviews: Sequence[Review],
    *,
    why: str,
) -> Outcome:
    """Release the scores of reviewed submissions, or approve what is proposed for an entry.

    Args:
        session: of the organiser.
        forge: answers the submissions.
        sets: the board's query sets.
        reviews: what was shown to whoever decides.
        why: the reason, where a finding asks for one.
    """
    events, decisions = len(session.vault.log()), []
    for one in reviews:
        # What was shown still holds unless an event came since: of another of these, mostly.
        same = len(session.vault.log()) == events
        now = one if same else review(session, sets, one.submission.id)
        decisions.append(publish(session, now, why=why))
    return _conclude(session, forge, decisions, {one.submission.id: one for one in reviews})


def reject_all(
    session: Session, forge: ForgeAccess, ids: Sequence[str], *, why: str, anyway: bool = False
) -> Outcome:
    """Refuse submissions, or a change of name; nothing is refused where one of them cannot be.

    Args:
        session: of the organiser.
        forge: answers the submissions.
        ids: the submissions.
        why: the reason, which is public.
        anyway: a person says that the reason names no team under embargo.
    """
    for submission in ids:
        check_rejectable(session, submission)
    check_text(session, why, *ids, anyway=anyway)
    return _conclude(session, forge, [reject(session, name, why=why) for name in ids])


def ask_team(
    session: Session, forge: ForgeAccess, name: str, *, text: str, anyway: bool = False
) -> Outcome:
    """Put a public question to the team, and wait for its answer; arguments as in `reject_all`."""
    check_text(session, text, name, anyway=anyway)
    submission = session.find(name)
    if submission.status == "asked" and submission.why == text:
        return _conclude(session, forge, [Decision(id=name, done=True, done_before=True)])
    _check_pending(submission)
    return _conclude(session, forge, [_log(session, "asked", name, public={"why": text})])


def extend_embargo(
    session: Session,
    forge: ForgeAccess,
    name: str,
    *,
    until: date,
    why: str,
    anyway: bool = False,
) -> Outcome:
    """Move the end of an embargo to a later day, for a reason; arguments as in `reject_all`.

    Args:
        session: its lock is held.
        forge: answers the submission.
        name: a published entry.
        until: the new day of the reveal: after the one that was promised, and no farther from today
            than an embargo may be from its submission.
        why: the reason; it is public.
        anyway: as in `reject_all`.

    Raises:
        InputError: the entry is not published under an embargo that still holds, or the day is
            none of these.
    """
    check_text(session, why, name, anyway=anyway)
    submission = session.find(name)
    if submission.status == "published" and submission.embargo_until == until:
        return _conclude(session, forge, [Decision(id=name, done=True, done_before=True)])
    today = session.now.date()
    end = submission.embargo_until
    if submission.status != "published" or end is None or end <= today:
        expected = "a published entry under an embargo"
        refusal = _refusal("no-embargo", name, submission, expected)
        if submission.status == "published" and end is not None and end <= today:
            refusal = replace(refusal, found=f"an embargo that ended on {end}")
        raise InputError(refusal)
    months = session.spec_at(submission.received).policy.embargo_months
    latest = add_months(today, months)
    if not end < until <= latest:
        expected = f"a day after {end}, up to {latest}, {months} months from today"
        hint = "the team was promised that day: an embargo does not become shorter"
        raise InputError.of("embargo-day", name, str(until), expected, hint if until < end else "")
    public = {"embargo_until": until.isoformat(), "why": why}
    return _conclude(session, forge, [_log(session, "extended", name, public=public)])


def correct_all(
    session: Session,
    forge: ForgeAccess,
    ids: Sequence[str],
    *,
    why: str,
    unchanged: bool = False,
    anyway: bool = False,
) -> Outcome:
    """Score entries or baselines again with today's labels, and publish what changed.

    Scores that `score_part` stored are taken where they hold today.

    Args:
        session: of the organiser.
        forge: answers the entries.
        ids: published entries, or baselines.
        why: what was wrong; public.
        unchanged: whether the reason is logged where no score changes, too.
        anyway: as in `reject_all`.
    """
    entries = [session.find_published(name) for name in ids]
    check_text(session, why, *ids, anyway=anyway)
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    ahead = Precomputed(session, sets)
    scores = dict(rescoring.rescore_each(session, sets, list(dict.fromkeys(ids)), ahead=ahead))
    for entry in entries:
        check_scored(entry, scores[entry.id])
    # Only now is it sure that the labels can be read and give scores: an event is for good.
    noted = commit_held_out(session, why=why)
    decisions = [
        correct(session, name, found, why=why, anyway=unchanged) for name, found in scores.items()
    ]
    rebuilt = rebuild.catch_up(session, news=noted or _is_news(decisions))
    entered = {entry.id for entry in entries if not entry.baseline}
    answer_all(session, forge, [d.id for d in decisions if d.kind and d.id in entered], {})
    ahead.forget(scores)
    return Outcome(
        decisions=tuple(decisions),
        rebuilt=rebuilt,
        earlier=tuple(rescoring.list_earlier(session, sets)),
        reopens_final=finals.has_other_scores(session),
        ahead=ahead.taken(),
    )


def score_part(
    session: Session, ids: Sequence[str], shard: Shard, *, progress: Progress = SILENT
) -> rescoring.ScoredAhead:
    """Score a part of the entries of a correction ahead of it, where there is room.

    Nothing is decided, logged or published, no lock is held, and nothing leaves the vault. Where
    the vault lies in a folder that several machines see, each can score a part at the same time.

    Args:
        session: of the organiser; it may be opened to be read alone.
        ids: all entries of the correction.
        shard: which part of them.
        progress: of the entries of this part.

    Raises:
        InputError: one of them is not published, or cannot be scored again.
        StoreError: the board's folder has rules or files that nobody accepted.
    """
    change = commitments.find_rule_change(session.repository, session.vault)
    if change is not None:
        refuse_rules(change)
    entries = {name: session.find_published(name) for name in ids}
    sets = load_sets(session.repository, session.spec(), vault=session.vault)
    own = shard.deal(entries, size=lambda name: rescoring.size_of(session, entries[name]))
    with progress.steps("scoring", len(own)) as done:
        return rescoring.score_ahead(rescoring.Precomputed(session, sets), own, done=done)


def _conclude(
    session: Session,
    forge: ForgeAccess,
    decisions: Sequence[Decision],
    reviews: Mapping[str, Review] | None = None,
) -> Outcome:
    outcome = Outcome(
        decisions=tuple(decisions), rebuilt=rebuild.catch_up(session, news=_is_news(decisions))
    )
    answer_all(session, forge, outcome.done, reviews or {})
    return outcome


def _is_news(decisions: Iterable[Decision]) -> bool:
    return any(decision.event is not None for decision in decisions)
