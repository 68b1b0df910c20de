"""The organiser's commands on submissions: review, decisions, rebuild."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from heldout.board.log.final import Final, OpenedFinal
from heldout.board.log.manifest import Manifest, parse_day
from heldout.board.organiser.decide import (
    Decision,
    check_published,
    check_rejectable,
    check_scored,
    check_text,
)
from heldout.board.organiser.decide import ask as ask_team
from heldout.board.organiser.decide import correct as correct_entry
from heldout.board.organiser.decide import extend as extend_embargo
from heldout.board.organiser.decide import publish as publish_submission
from heldout.board.organiser.decide import reject as reject_submission
from heldout.board.organiser.finals import (
    FinalStep,
    find_final_view,
    has_other_scores,
    name_finalists,
    open_final,
)
from heldout.board.organiser.rebuild import Rebuilt, catch_up, rebuild_public
from heldout.board.organiser.rebuild import rebuild as rebuild_board
from heldout.board.organiser.review import Review, review_all, show_score
from heldout.board.organiser.review import review as review_submission
from heldout.board.policy.checks import Finding
from heldout.board.rules.release import release_score
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.kept import RunReport
from heldout.board.scores.rescoring import list_earlier, rescore
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import Desk, note_labels
from heldout.board.scores.sets import load_sets
from heldout.cli.board.decisions import print_next, rebuilt_facts, rebuilt_json, report
from heldout.cli.board.forge_client import answer_all
from heldout.cli.board.scores import say_true
from heldout.cli.board.trust import confirm
from heldout.cli.context import Place, at_board
from heldout.cli.options import REASON, why_option
from heldout.cli.printing import (
    Console,
    ago,
    answers,
    print_facts,
    print_json,
    print_problems,
    problem_json,
    reports_errors,
)
from heldout.errors import plural, printable, quote

if TYPE_CHECKING:
    from heldout.judging.services.maintaining import Waiting


# A review on one screen: what a person decides by.


def print_review(
    console: Console,
    result: Review,
    scores: Mapping[str, ViewScore] | None,
    spec: BoardSpec,
    *,
    now: datetime,
) -> None:
    """Print a review.

    Args:
        console: where to.
        result: the review.
        scores: the true scores where they were asked for, else `None`.
        spec: the board's rules.
        now: the moment, for how long it waits.
    """
    submission = result.submission
    since = submission.waits_since
    waits = "" if since is None else f", waiting: {waited(now - since)}"
    before = "   (opened before)" if result.done_before else ""
    print_facts(
        console,
        [
            ("id", f"{submission.id}{before}"),
            ("arrived", f"{submission.received:%d %b %Y %H:%M} UTC{waits}"),
            ("status", submission.status),
            *_who(result),
            *_amended(result),
            *[("runs", _run_line(name, run)) for name, run in result.scores.runs.items()],
            ("", ""),
        ],
    )
    print_problems(console, result.scores.metadata_problems)
    for run in result.scores.runs.values():
        print_problems(console, run.problems, counts=run.counts)
    print_facts(console, [_finding_line(finding) for finding in result.findings])
    if not result.findings:
        print_facts(console, [("findings", "none")])
    if result.lost:
        told = f"not compared with {', '.join(result.lost)}: its files in the vault are damaged"
        print_facts(console, [("note", told)])
    print_facts(console, [("", ""), *_score_lines(result, scores, spec), *_next(result)])


def waited(span: timedelta) -> str:
    """How long something waits: `3 hours`, or `just now`."""
    return "just now" if span < timedelta(minutes=1) else ago(span)


def review_json(
    result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec
) -> dict[str, Any]:
    """A review as JSON; scores with the released digits, and only where they were asked for."""
    shown = None
    if scores is not None:
        shown = {
            name: float(release_score(score.mean, decimals=spec.decimals))
            for name, score in scores.items()
        }
    return {
        "id": result.submission.id,
        "status": result.submission.status,
        "received": result.submission.received.isoformat(),
        "findings": [
            {"rule": f.rule, "severity": f.severity, "evidence": f.evidence}
            for f in result.findings
        ],
        "problems": {
            name: [problem_json(problem) for problem in run.problems]
            for name, run in result.scores.runs.items()
        },
        "amendments": [
            {"at": a.at.isoformat(), "field": a.field, "before": a.before, "after": a.after}
            for a in result.amendments
        ],
        "proposed": [
            {"field": a.field, "before": a.before, "after": a.after} for a in result.proposed
        ],
        "scores": shown,
        "open_runs": None if result.manifest is None else result.manifest.open_runs,
        "lost": list(result.lost),
        "done_before": result.done_before,
    }


_OPEN_RUNS: Mapping[bool | None, str] = {
    True: "yes: the team agrees that they are opened at the board's end",
    False: "no",
    None: "not said, which is no",
}


def _who(result: Review) -> list[tuple[str, str]]:
    manifest, quota = result.manifest, result.quota
    if manifest is None or quota is None:
        return []
    until = manifest.embargo_until
    embargo = "no embargo" if until is None else f"embargo until {until:%d %b %Y}"
    team = ", ".join(name for name in (manifest.institution, manifest.team) if name)
    used = f"{len(quota.used)} of {quota.limit} in its window"
    links = [link for link in (manifest.paper, manifest.code) if link]
    return [
        ("team", f"{team}; {used}"),
        ("system", f"{manifest.description}; {manifest.type}; {embargo}"),
        *[("link", link) for link in links],
        ("trained", manifest.training_data or "not said"),
        ("open runs", _OPEN_RUNS[manifest.open_runs]),
        *_costs(manifest),
    ]


def _costs(manifest: Manifest) -> list[tuple[str, str]]:
    """What the team says that its system costs."""
    stated = msgspec.to_builtins(manifest.efficiency) if manifest.efficiency is not None else {}
    words = [f"{name} {value}" for name, value in stated.items() if value not in (None, "")]
    return [("cost", ", ".join(words))] if words else []


def _amended(result: Review) -> list[tuple[str, str]]:
    """What the team changed, a line for each field."""
    return [
        (word, f"{a.at:%d %b %Y}, {a.field}: {quote(a.before)} -> {quote(a.after)}")
        for word, amendments in (("changed", result.amendments), ("asks for", result.proposed))
        for a in amendments
    ]


def _run_line(name: str, run: RunReport) -> str:
    odd = [
        (run.queries_tied, "with ties"),
        (run.queries_displaced, "whose ranks and scores disagree"),
    ]
    notes = "".join(f"; {plural(count, 'query', 'queries')} {what}" for count, what in odd if count)
    return (
        f"{name}: {plural(run.queries, 'query', 'queries')}, "
        f"{plural(run.documents, 'document')}{notes}"
    )


def _finding_line(finding: Finding) -> tuple[str, str]:
    return (finding.severity, f"{finding.rule}: {finding.evidence}")


def _score_lines(
    result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec
) -> list[tuple[str, str]]:
    if not result.scores.views:
        return [("score", "none: it could not be scored")]
    if scores is None and result.submission.status == "published":
        return [("score", "published with the entry; what is proposed changes none")]
    if scores is None:
        return [("score", "computed, hidden while you judge by the rules (--score shows it)")]
    return [
        (
            "score",
            _score_line(name, score, spec),
        )
        for name, score in scores.items()
    ]


def _score_line(name: str, score: ViewScore, spec: BoardSpec) -> str:
    return (
        f"{name} {score.measure} {say_true(score, decimals=spec.decimals)}, "
        f"n = {score.n:,}, {score.unanswered:,} unanswered, "
        f"{score.without_relevant:,} without a relevant document{_say_groups(score)}"
    )


def _say_groups(score: ViewScore) -> str:
    """Which groups of queries a summary is of: the worst, or the best and the worst."""
    return f"; {' over '.join(map(quote, score.groups))}" if score.groups else ""


def _next(result: Review) -> list[tuple[str, str]]:
    if result.submission.waits_since is None:
        return []
    name = result.submission.id
    reason = ' --why "…"' if result.needs_reason else ""
    publish = [] if result.stands_against else [("next", f"heldout publish {name}{reason}")]
    rest = [f'heldout reject {name} --why "…"']
    rest += [f'heldout ask {name} "…"'] if result.submission.pending else []
    lines = [*publish, *[("", line) for line in rest]]
    return [("", ""), ("next", lines[0][1]), *lines[1:]]


_told_anyway = click.option(
    "--yes", is_flag=True, help="The text tells no team under embargo, though it may look so."
)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--score", "with_score", is_flag=True, help="Show the scores; it is logged.")
@at_board
@reports_errors
def review(
    *,
    ids: tuple[str, ...],
    with_score: bool,
    place: Place,
) -> None:
    """Open, score and judge submissions. Nothing is decided and nothing is published.

    Exit code 1 where a finding stands against publication.

    \b
    Example:
      heldout review 20261120-lighthouse-monot5
    """
    shown: list[dict[str, Any]] = []
    against = False
    with place.desk(page=False) as desk:
        sets = load_sets(desk.repository, desk.spec(), vault=desk.vault)
        for result in review_all(desk, sets, ids):
            scores = show_score(desk, result) if with_score else None
            against |= bool(result.stands_against)
            if place.as_json:
                shown.append(review_json(result, scores, desk.spec()))
            else:
                print_review(answers(), result, scores, desk.spec(), now=place.now)
    if place.as_json:
        print_json({"reviews": shown})
    if against:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--why", type=REASON, metavar="TEXT", help="The reason, where a finding asks for one."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@at_board
@reports_errors
def publish(
    *,
    ids: tuple[str, ...],
    why: str | None,
    yes: bool,
    place: Place,
) -> None:
    """Release the scores of submissions and rebuild the page once. It cannot be taken back.

    Where the team of a published entry asks for another name, this approves it. Submissions that a
    finding stands against are named, and the others go on (exit code 1).

    \b
    Example:
      heldout publish 20261120-lighthouse-monot5 --yes
    """
    with place.desk() as desk:
        sets = load_sets(desk.repository, desk.spec(), vault=desk.vault)
        reviews = review_all(desk, sets, ids)
        reason = _confirm(reviews, why or "", yes=yes)
        decisions = [
            publish_submission(desk, review_submission(desk, sets, r.submission.id), why=reason)
            for r in reviews
        ]
        told = {result.submission.id: result for result in reviews}
        _decide(desk, decisions, "published", as_json=place.as_json, reviews=told)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@why_option("The reason; the team reads it.")
@_told_anyway
@at_board
@reports_errors
def reject(
    *,
    ids: tuple[str, ...],
    why: str,
    yes: bool,
    place: Place,
) -> None:
    """Refuse submissions, or a change of name of an entry. The reason is public.

    The quota of a refused submission is given back to its team.

    Nothing is refused where one of them cannot be.

    \b
    Example:
      heldout reject 20261120-lighthouse-monot5 --why "the third run in 30 days"
    """
    with place.desk() as desk:
        for submission in ids:
            check_rejectable(desk, submission)
        check_text(desk, why, *ids, anyway=yes)
        decisions = [reject_submission(desk, submission, why=why) for submission in ids]
        _decide(desk, decisions, "rejected", as_json=place.as_json)


@click.command()
@click.argument("submission", metavar="ID")
@click.argument("text", type=REASON, metavar="TEXT")
@_told_anyway
@at_board
@reports_errors
def ask(
    *,
    submission: str,
    text: str,
    yes: bool,
    place: Place,
) -> None:
    """Put a question to the team; it is public, and the submission waits for the answer.

    `heldout status` tells it to the team. Its answer is new metadata (heldout amend), after which
    the submission is to be reviewed again; if it answers elsewhere, publish or reject as before.

    \b
    Example:
      heldout ask 20261120-lighthouse-monot5 "Which group of the institute is this?"
    """
    with place.desk() as desk:
        check_text(desk, text, submission, anyway=yes)
        _decide(desk, [ask_team(desk, submission, text=text)], "asked", as_json=place.as_json)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@why_option("What was wrong.")
@click.option("--anyway", is_flag=True, help="Log the reason also where no score changes.")
@_told_anyway
@at_board
@reports_errors
def correct(
    *,
    ids: tuple[str, ...],
    why: str,
    anyway: bool,
    yes: bool,
    place: Place,
) -> None:
    """Publish errata: score entries or baselines anew with today's labels, and say why.

    Says which other entries are still scored with earlier labels.

    \b
    Example:
      heldout correct 20261120-lighthouse-monot5 \\
      --why "two labels were on wrong queries"
    """
    with place.desk() as desk:
        entries = [check_published(desk, name) for name in ids]
        check_text(desk, why, *ids, anyway=yes)
        sets = load_sets(desk.repository, desk.spec(), vault=desk.vault)
        scores = {name: rescore(desk, sets, name) for name in ids}
        for entry in entries:
            check_scored(entry, scores[entry.id])
        # Only now is it sure that the labels can be read and give scores: an event is for good.
        noted = note_labels(desk, why=why)
        decisions = [
            correct_entry(desk, name, found, why=why, anyway=anyway)
            for name, found in scores.items()
        ]
        news = noted or any(decision.event is not None for decision in decisions)
        rebuilt = catch_up(desk, news=news)
        entered = [entry.id for entry in entries if not entry.baseline]
        answer_all(desk, [d.id for d in decisions if d.kind and d.id in entered], {})
        earlier = list_earlier(desk, sets)
        final = ['heldout board final --why "…"'] if has_other_scores(desk) else []
        report(
            desk,
            decisions,
            rebuilt,
            verb="corrected",
            as_json=place.as_json,
            earlier=earlier,
            following=final,
        )


@click.command()
@click.argument("submission", metavar="ID")
@click.argument("day", metavar="DATE")
@why_option("The reason; it is public.")
@_told_anyway
@at_board
@reports_errors
def extend(
    *,
    submission: str,
    day: str,
    why: str,
    yes: bool,
    place: Place,
) -> None:
    """Move the end of an embargo, for a reason.

    \b
    Example:
      heldout extend 20261120-anon-5b1e09c4 2027-09-01 --why "the review was delayed"
    """
    with place.desk() as desk:
        check_text(desk, why, submission, anyway=yes)
        decision = extend_embargo(desk, submission, until=_day(day), why=why)
        _decide(desk, [decision], "extended", as_json=place.as_json)


@click.command()
@click.option("--yes", is_flag=True, help="The clock is right, though it is long after all else.")
@click.option(
    "--restore-rules", is_flag=True, help="Put the log's rules back where board.toml was edited."
)
@at_board
@reports_errors
def rebuild(*, yes: bool, restore_rules: bool, place: Place) -> None:
    """Make everything public again from the log and the time.

    Edited rules (board.toml, queries, public labels) hold once they are logged: they are shown, and
    need a yes or --accept-rules.

    Reveals embargoes that ended. Without a vault it remakes the page from the public log.

    A clock that is a year after all that the board knows of is refused, as by every organiser's
    command: it would reveal names before their day. --yes says once that it is right.

    \b
    Example:
      heldout rebuild
    """
    if place.vault is None and (restore_rules or place.accept_rules):
        raise click.UsageError("the rules are the organisers': name the vault, --vault DIR")
    if restore_rules and place.accept_rules:
        raise click.UsageError("--accept-rules or --restore-rules, not both")
    if place.vault is None:
        rebuilt = rebuild_public(place.board(), now=place.now)
    else:
        with place.desk(late=yes, restore=restore_rules) as desk:
            rebuilt = rebuild_board(desk)
    if place.as_json:
        print_json(rebuilt_json(rebuilt))
        return
    print_facts(answers(), rebuilt_facts(rebuilt))
    if place.vault is not None:
        print_next(place.board(), [])


def _confirm(reviews: Sequence[Review], why: str, *, yes: bool) -> str:
    """Say what publishing does, ask for a missing reason, ask whether to go on."""
    fresh = [r for r in reviews if r.submission.waits_since and not r.stands_against]
    if yes or not fresh:
        return why
    for told, group in (
        ("releases the scores", [r for r in fresh if r.submission.pending]),
        ("puts the proposed metadata on the page", [r for r in fresh if r.submission.proposal]),
    ):
        names = ", ".join(printable(r.submission.id) for r in group)
        if names:
            click.echo(f"This {told} of {names}. It cannot be taken back.", err=True)
    asks = sorted({finding.rule for r in fresh for finding in r.needs_reason})
    try:
        if asks and not why:
            why = click.prompt(
                f"Your reason for accepting {', '.join(asks)}", type=REASON, err=True
            )
        agreed = click.confirm("Publish?", err=True)
    except click.Abort:  # no terminal, or the input ended
        agreed = False
        click.echo(err=True)
    if not agreed:
        click.echo("nothing was published; --yes skips the question", err=True)
        raise click.exceptions.Exit(1)
    return why


def _decide(
    desk: Desk,
    decisions: Sequence[Decision],
    verb: str,
    *,
    as_json: bool,
    reviews: Mapping[str, Review] | None = None,
) -> None:
    rebuilt = catch_up(desk, news=any(decision.event is not None for decision in decisions))
    done = [decision.id for decision in decisions if decision.done]
    answer_all(desk, done, reviews or {})
    waiting = _count_waiting(desk, done) if verb == "published" else ()
    report(desk, decisions, rebuilt, verb=verb, as_json=as_json, waiting=waiting)


def _count_waiting(desk: Desk, entries: Sequence[str]) -> "Sequence[Waiting]":
    """What the board's preference labels were made without; mostly it has none."""
    if not any(view.labels for view in desk.spec().views):
        return ()
    from heldout.judging.services.maintaining import count_waiting  # noqa: PLC0415 - mostly not needed

    return count_waiting(desk, entries)


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no day like 2027-05-20") from None


# The organiser's commands of a final: name the finalists, open their scores.


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--why", type=REASON, metavar="TEXT", help="Reason for other finalists than before; public."
)
@click.option(
    "--yes", is_flag=True, help="The text tells no team under embargo, though it may look so."
)
@at_board
@reports_errors
def finalists(*, ids: tuple[str, ...], why: str | None, yes: bool, place: Place) -> None:
    """Name the published entries that the final view scores, before anybody knows these scores.

    The list is public. Until the final is opened another list replaces it, for a reason.

    \b
    Example:
      heldout board finalists 20261120-lighthouse-monot5 20261121-coast-colbert
    """
    with place.desk() as desk:
        if why is not None:
            check_text(desk, why, *ids, anyway=yes)
        step = name_finalists(desk, ids, why=why or "")
        rebuilt = catch_up(desk, news=step.event is not None)
        _report(desk, step, rebuilt, as_json=place.as_json)


@click.command()
@click.option(
    "--why", type=REASON, metavar="TEXT", help="Reason for opening it again with other scores."
)
@click.option("--yes", is_flag=True, help="Do not ask; log the reason as it stands.")
@at_board
@reports_errors
def final(*, why: str | None, yes: bool, place: Place) -> None:
    """Publish the finalists' scores on the final view, and who wins. It cannot be taken back.

    Only after the last day. The earliest finalist wins that is not clearly below the best: by more
    than two paired standard errors. The page also says how much luck the best of so many has.

    Called again it changes nothing, unless labels were corrected since and every finalist was
    scored again (heldout correct): then it publishes the new scores, for a reason.

    \b
    Example:
      heldout board final --vault ../kb-vault
    """
    with place.desk() as desk:
        known = desk.history().final
        if why is not None:
            check_text(desk, why, *(() if known is None else known.finalists), anyway=yes)
        find_final_view(desk)
        if known is not None and known.opened is None and not yes:
            names = ", ".join(known.finalists)
            many = plural(len(known.finalists), "finalist")
            confirm(
                f"This publishes the scores of {many} on {known.view}: {names}. It cannot be "
                "taken back.",
                "Open the final?",
            )
        step = open_final(desk, why=why or "")
        rebuilt = catch_up(desk, news=step.event is not None)
        _report(desk, step, rebuilt, as_json=place.as_json)


def _report(desk: Desk, step: FinalStep, rebuilt: Rebuilt, *, as_json: bool) -> None:
    known, opened = step.final, step.final.opened
    if as_json:
        print_json({**_json(known, opened), "event": step.event, **rebuilt_json(rebuilt)})
        return
    before = "" if step.event is not None else "   (done before)"
    facts = [("final", f"{known.view}{before}")]
    if opened is None:
        facts += [("", name) for name in known.finalists]
    else:
        facts += [("", _say_finalist(name, opened)) for name in _by_score(known, opened)]
        facts += [("winner", f"{opened.winner}, the earliest that is not clearly below the best")]
        luck = opened.luck or "none, for there is one finalist"
        facts += [("luck", f"{luck}: how far the best of so many lies above its worth on average")]
    print_facts(answers(), [*facts, *rebuilt_facts(rebuilt)])
    closes = desk.spec().closes
    print_next(desk.repository, [f"after {closes}: heldout board final"] if opened is None else [])


def _by_score(known: Final, opened: OpenedFinal) -> list[str]:
    return sorted(known.finalists, key=lambda name: -float(opened.scores[name]))


def _say_finalist(name: str, opened: OpenedFinal) -> str:
    return f"{opened.scores[name]}  {name}{'  clearly below' if name in opened.below else ''}"


def _json(known: Final, opened: OpenedFinal | None) -> dict[str, Any]:
    document: dict[str, Any] = {"view": known.view, "finalists": list(known.finalists)}
    if opened is None:
        return document
    return {
        **document,
        "scores": dict(opened.scores),
        "queries": opened.queries,
        "best": opened.best,
        "below": list(opened.below),
        "winner": opened.winner,
        "luck": opened.luck or None,
    }
