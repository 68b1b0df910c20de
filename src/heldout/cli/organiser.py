"""The organiser's commands on submissions: review, decisions, rebuild."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from heldout.board.log.manifest import parse_day
from heldout.cli.context import Place, at_board
from heldout.cli.decisions import print_next, rebuilt_facts, rebuilt_json, report
from heldout.cli.forging import answer_all
from heldout.cli.printing import answers, print_facts, print_json, reports_errors
from heldout.cli.reasons import REASON, why_option
from heldout.cli.reviews import print_review, review_json
from heldout.errors import printable
from heldout.pipeline.deciding.decide import (
    Decision,
    check_published,
    check_rejectable,
    check_scored,
)
from heldout.pipeline.deciding.decide import ask as ask_team
from heldout.pipeline.deciding.decide import correct as correct_entry
from heldout.pipeline.deciding.decide import extend as extend_embargo
from heldout.pipeline.deciding.decide import publish as publish_submission
from heldout.pipeline.deciding.decide import reject as reject_submission
from heldout.pipeline.deciding.finals import has_other_scores
from heldout.pipeline.deciding.public_texts import check_text
from heldout.pipeline.deciding.rebuild import catch_up, rebuild_public
from heldout.pipeline.deciding.rebuild import rebuild as rebuild_board
from heldout.pipeline.deciding.review import Review, review_all, show_score
from heldout.pipeline.deciding.review import review as review_submission
from heldout.pipeline.organiser.desk import Desk, note_labels
from heldout.pipeline.query_sets.sets import load_sets
from heldout.pipeline.scoring.rescoring import list_earlier, rescore

if TYPE_CHECKING:
    from heldout.pipeline.labels.maintaining import Waiting

__all__ = [
    "ask",
    "correct",
    "extend",
    "publish",
    "rebuild",
    "reject",
    "review",
]


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
    from heldout.pipeline.labels.maintaining import count_waiting  # noqa: PLC0415 - mostly not needed

    return count_waiting(desk, entries)


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no day like 2027-05-20") from None
