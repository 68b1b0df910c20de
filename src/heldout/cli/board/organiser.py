"""The organiser's commands on submissions: review, decisions, rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import click

from heldout.cli import printing
from heldout.cli.context import (
    Identifier,
    Identifiers,
    OrganiserCall,
    Why,
    next_facts,
    reach_forge,
    require_yes,
)
from heldout.cli.options import check_reason, command
from heldout.errors import plural, printable
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.organiser.decide import Outcome
    from heldout.board.organiser.finals import FinalStep
    from heldout.board.organiser.rebuild import Rebuilt
    from heldout.board.organiser.review import Review
    from heldout.board.scores.session import Session
    from heldout.judging.services.maintaining import Waiting

_NamesNobody = Annotated[bool, Opt("Confirm that the text does not reveal an embargoed team.")]


@command
def review(
    *,
    ids: Identifiers,
    score: Annotated[bool, Opt("Show the scores; it is logged.")] = False,
    call: OrganiserCall,
) -> None:
    """Open, score and judge submissions. Nothing is decided and nothing is published.

    Exit code 1 where a finding stands against publication.

    \b
    Example:
      heldout review 20261120-lighthouse-monot5
    """
    from heldout.board.organiser.review import review_all, show_score
    from heldout.board.scores.sets import load_sets
    from heldout.cli.board import reports

    shown: list[dict[str, Any]] = []
    against = False
    with call.session() as session:
        sets = load_sets(session.repository, session.spec(), vault=session.vault)
        spec = session.spec()
        for result in review_all(session, sets, ids):
            scores = show_score(session, result) if score else None
            against |= bool(result.stands_against)
            if call.as_json:
                shown.append(reports.review_document(result, scores, spec))
            else:
                printing.print_facts(printing.answers(), reports.review_facts(result, now=call.now))
                printing.print_problems(printing.answers(), result.scores.metadata_problems)
                for run in result.scores.runs.values():
                    printing.print_problems(printing.answers(), run.problems, counts=run.counts)
                printing.print_facts(
                    printing.answers(), reports.verdict_facts(result, scores, spec)
                )
    if call.as_json:
        printing.print_json({"reviews": shown})
    if against:
        raise click.exceptions.Exit(1)


@command
def publish(
    *,
    ids: Identifiers,
    why: Annotated[
        str | None, Opt("Reason, where a finding asks for one.", check=check_reason, metavar="TEXT")
    ] = None,
    yes: Annotated[bool, Opt("Answer yes to every question.")] = False,
    call: OrganiserCall,
) -> None:
    """Release the scores of submissions and rebuild the page once. It cannot be taken back.

    Where the team of a published entry asks for another name, this approves it. Submissions that a
    finding stands against are named, and the others go on (exit code 1).

    \b
    Example:
      heldout publish 20261120-lighthouse-monot5 --yes
    """
    from heldout.board.organiser.decide import publish_all
    from heldout.board.organiser.review import review_all
    from heldout.board.scores.sets import load_sets

    with call.session() as session:
        sets = load_sets(session.repository, session.spec(), vault=session.vault)
        reviews = review_all(session, sets, ids)
        reason = _confirm(reviews, why or "", yes=yes)
        outcome = publish_all(session, reach_forge(), sets, reviews, why=reason)
        _report(call, session, outcome, "published")


@command
def reject(
    *,
    ids: Identifiers,
    why: Why,
    yes: _NamesNobody = False,
    call: OrganiserCall,
) -> None:
    """Refuse submissions, or a change of name of an entry. The reason is public.

    The quota of a refused submission is given back to its team.

    Nothing is refused where one of them cannot be.

    \b
    Example:
      heldout reject 20261120-lighthouse-monot5 --why "the third run in 30 days"
    """
    from heldout.board.organiser.decide import reject_all

    with call.session() as session:
        outcome = reject_all(session, reach_forge(), ids, why=why, anyway=yes)
        _report(call, session, outcome, "rejected")


@command
def ask(
    *,
    submission: Identifier,
    text: Annotated[str, Opt(argument=True, check=check_reason, metavar="TEXT")],
    yes: _NamesNobody = False,
    call: OrganiserCall,
) -> None:
    """Put a question to the team; it is public, and the submission waits for the answer.

    `heldout status` shows it to the team. Its answer is new metadata (heldout amend), after which
    the submission is to be reviewed again; if it answers elsewhere, publish or reject as before.

    \b
    Example:
      heldout ask 20261120-lighthouse-monot5 "Which group of the institute is this?"
    """
    from heldout.board.organiser.decide import ask_team

    with call.session() as session:
        outcome = ask_team(session, reach_forge(), submission, text=text, anyway=yes)
        _report(call, session, outcome, "asked")


@command
def correct(
    *,
    ids: Annotated[tuple[str, ...], Opt(argument=True, metavar="[ID...]")] = (),
    why: Why,
    all_earlier: Annotated[
        bool, Opt("All entries that are still scored with earlier labels, in place of ids.")
    ] = False,
    anyway: Annotated[bool, Opt("Log the reason also where no score changes.")] = False,
    yes: _NamesNobody = False,
    part: Annotated[
        str | None,
        Opt(
            "Part of the entries to score now, without logging or publishing: 3/10 is the third "
            "of ten. The call without it then finds these scores.",
            names=("--shard",),
            metavar="I/N",
        ),
    ] = None,
    call: OrganiserCall,
) -> None:
    """Publish errata: score entries or baselines again with today's labels, and say why.

    Says which other entries are still scored with earlier labels; --all-earlier corrects those.

    Where many machines see the vault's folder, each can score one --shard of many entries; a last
    call, without it, finds their scores in the vault and publishes.

    \b
    Example:
      heldout correct 20261120-lighthouse-monot5 \\
      --why "two labels were on wrong queries"
    """
    if bool(ids) == all_earlier:
        raise click.UsageError("name entries, or give --all-earlier")
    if part is not None:
        _score_part(ids, part, call)
        return
    from heldout.board.organiser.decide import correct_all

    with call.session() as session:
        ids = ids or _list_earlier(session)
        outcome = correct_all(session, reach_forge(), ids, why=why, unchanged=anyway, anyway=yes)
        _report(call, session, outcome, "corrected")


def _list_earlier(session: Session) -> tuple[str, ...]:
    """List all entries that have a score of earlier labels.

    Raises:
        click.UsageError: there is none.
    """
    from heldout.board.scores.stored import find_mixed

    mixed = find_mixed(session.vault, session.history())
    found = tuple(dict.fromkeys(name for one in mixed for name in one.earlier))
    if not found:
        raise click.UsageError(
            "no entry is scored with earlier labels; after labels were changed, correct one by its "
            "id first: that logs the new labels"
        )
    return found


def _score_part(ids: Sequence[str], part: str, call: OrganiserCall) -> None:
    """Score a part of a correction's entries; exit code 1 where some have no score, 2 where all."""
    from heldout.board.organiser.decide import score_part
    from heldout.board.scores.session import look_at
    from heldout.cli.board import reports
    from heldout.scoring.shards import parse_shard

    if call.accept_rules:
        raise click.UsageError("--shard logs nothing: without --accept-rules")
    shard = parse_shard(part)
    session = look_at(call.board(), call.need_vault(), now=call.now)
    ids = ids or _list_earlier(session)
    found = score_part(session, ids, shard, progress=printing.TERMINAL)
    entries = len(dict.fromkeys(ids))
    document = reports.part_document(found, shard, entries=entries)
    call.answer(document, reports.part_facts(found, shard, entries=entries))
    failed = found.failed
    if failed and not call.as_json:
        for problems in failed.values():
            printing.messages().print()
            printing.print_problems(printing.messages(), problems)
    if failed:
        some = found.scored or found.before or found.left
        raise click.exceptions.Exit(1 if some else 2)


@command
def extend(
    *,
    submission: Identifier,
    day: Annotated[date, Opt(argument=True, metavar="DATE")],
    why: Why,
    yes: _NamesNobody = False,
    call: OrganiserCall,
) -> None:
    """Move the end of an embargo, for a reason.

    \b
    Example:
      heldout extend 20261120-anon-5b1e09c4 2027-09-01 --why "the review was delayed"
    """
    from heldout.board.organiser.decide import extend_embargo

    with call.session() as session:
        outcome = extend_embargo(session, reach_forge(), submission, until=day, why=why, anyway=yes)
        _report(call, session, outcome, "extended")


@command
def rebuild(
    *,
    yes: Annotated[
        bool, Opt("Confirm that the clock is right, although the last event is long ago.")
    ] = False,
    restore_rules: Annotated[
        bool, Opt("Put the log's rules back where board.toml was edited.")
    ] = False,
    call: OrganiserCall,
) -> None:
    """Make everything public again from the log and the time.

    Edited rules (board.toml, queries, public labels) hold once they are logged: they are shown, and
    need a yes or --accept-rules.

    Reveals embargoes that ended, and commits. Without a vault it makes the page again from the
    public log, reveals nothing and commits nothing.

    A clock that is a year after all that the board knows of is refused, as by every organiser's
    command: it would reveal names before their day. --yes says once that it is right.

    \b
    Example:
      heldout rebuild
    """
    from heldout.board.organiser.rebuild import bring_up_to_date, rebuild_public
    from heldout.cli.board import reports

    if call.vault is None and (restore_rules or call.accept_rules):
        raise click.UsageError("the rules are the organisers': name the vault, --vault DIR")
    if restore_rules and call.accept_rules:
        raise click.UsageError("--accept-rules or --restore-rules, not both")
    if call.vault is None:
        rebuilt = rebuild_public(call.board(), now=call.now)
    else:
        with call.session(late=yes, restore=restore_rules) as session:
            rebuilt = bring_up_to_date(session)
    facts = reports.rebuilt_facts(rebuilt)
    if call.vault is not None:
        facts += next_facts(call.board())
    elif rebuilt.changed:
        facts.append(("note", "without a vault nothing is committed: git diff shows what changed,"))
        facts.append(("", "git checkout leaderboard takes it back; organisers add --vault DIR"))
    call.answer(reports.rebuilt_document(rebuilt), facts)


def _confirm(reviews: Sequence[Review], why: str, *, yes: bool) -> str:
    """Say what publishing does, ask for a missing reason, ask whether to go on."""
    fresh = [r for r in reviews if r.submission.waits_since and not r.stands_against]
    if yes or not fresh:
        return why
    for what, group in (
        ("releases the scores", [r for r in fresh if r.submission.pending]),
        ("puts the proposed metadata on the page", [r for r in fresh if r.submission.proposal]),
    ):
        names = ", ".join(printable(r.submission.id) for r in group)
        if names:
            click.echo(f"This {what} of {names}. It cannot be taken back.", err=True)
    asks = sorted({finding.rule for r in fresh for finding in r.needs_reason})
    try:
        if asks and not why:
            question = f"Your reason for accepting {', '.join(asks)}"
            why = click.prompt(question, value_proc=check_reason, err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo("\nnothing was published; --yes skips the question", err=True)
        raise click.exceptions.Exit(1) from None
    require_yes("Publish?", "nothing was published; --yes skips the question")
    return why


def _report(call: OrganiserCall, session: Session, outcome: Outcome, verb: str) -> None:
    """Say what became of submissions; exit code 1 where one is not as was asked for."""
    from heldout.cli.board import reports

    rebuilt, earlier = outcome.rebuilt, outcome.earlier
    waiting: Sequence[Waiting] = ()  # most boards have no preference labels
    if verb == "published" and any(view.labels for view in session.spec().views):
        from heldout.judging.services.maintaining import count_waiting

        waiting = count_waiting(session, outcome.done)
    document: dict[str, Any] = {"decisions": [*map(reports.decision_document, outcome.decisions)]}
    if verb == "corrected":
        document["earlier_labels"] = earlier
    if waiting:
        document["waiting"] = {one.query_set: one.tops for one in waiting}
    facts = reports.decision_facts(session, outcome, verb) + reports.rebuilt_facts(rebuilt)
    commands = [f'heldout correct {" ".join(earlier)} --why "…"'] if earlier else []
    commands += ['heldout board final --why "…"'] if outcome.reopens_final else []
    left = sum(s.waits_since is not None for s in session.history().submissions.values())
    commands += [f"heldout inbox   ({left} left)"] if left else []
    addresses = {"repository": session.spec().repository, "install": session.spec().install}
    facts += printing.fill_facts(
        "reported",
        missing=[key for key in addresses if verb == "published" and not addresses[key]],
        earlier=earlier,
        waiting=waiting,
    )
    commands += ["heldout prefer maintain CAMPAIGN --documents FILE"] * bool(waiting)
    facts += next_facts(session.repository, commands)
    call.answer({**document, **reports.rebuilt_document(rebuilt)}, facts)
    if len(outcome.done) < len(outcome.decisions):
        raise click.exceptions.Exit(1)


# The organiser's commands of a final: name the finalists, open their scores.


@command
def finalists(
    *,
    ids: Identifiers,
    why: Annotated[
        str | None,
        Opt("Reason for other finalists than before; public.", check=check_reason, metavar="TEXT"),
    ] = None,
    yes: _NamesNobody = False,
    call: OrganiserCall,
) -> None:
    """Name the published entries that the final view scores, before anybody knows these scores.

    The list is public. Until the final is opened another list replaces it, for a reason.

    \b
    Example:
      heldout board finalists 20261120-lighthouse-monot5 20261121-coast-colbert
    """
    from heldout.board.organiser import decide, finals
    from heldout.board.organiser.rebuild import catch_up

    with call.session() as session:
        if why is not None:
            decide.check_text(session, why, *ids, anyway=yes)
        step = finals.name_finalists(session, ids, why=why or "")
        rebuilt = catch_up(session, news=step.event is not None)
        _report_final(call, session, step, rebuilt)


@command
def final(
    *,
    why: Annotated[
        str | None,
        Opt("Reason for opening it again with other scores.", check=check_reason, metavar="TEXT"),
    ] = None,
    yes: Annotated[bool, Opt("Do not ask; log the reason as it stands.")] = False,
    call: OrganiserCall,
) -> None:
    """Publish the finalists' scores on the final view, and who wins. It cannot be taken back.

    Only after the last day. The earliest finalist wins that is not clearly below the best: by more
    than two paired standard errors. The page also says how much luck the best of so many has.

    Under the rule clear the end of a season is the same with the named entries of all teams, which
    heldout rebuild does by itself.

    Called again it changes nothing, unless labels were corrected since and every entry in it was
    scored again (heldout correct): then it publishes the new scores, for a reason.

    \b
    Example:
      heldout board final --vault ../kb-vault
    """
    from heldout.board.organiser import decide, finals
    from heldout.board.organiser.rebuild import catch_up
    from heldout.cli.board import reports

    with call.session() as session:
        known, ends = session.history().final, session.history().season_ends
        if why is not None:
            about = {name for one in ends.values() for name in one.opened.scores}
            about |= set(() if known is None else known.finalists)
            decide.check_text(session, why, *about, anyway=yes)
        again = finals.end_seasons_again(session, why=why or "")
        if session.spec().finalists_view is None:
            rebuilt = catch_up(session, news=bool(again))
            ended = replace(rebuilt, ends=(*again, *rebuilt.ends))
            if not ended.ends:
                finals.check_ended(session)
            call.answer(
                reports.rebuilt_document(ended),
                [*reports.rebuilt_facts(ended), *next_facts(session.repository)],
            )
            return
        if known is not None and known.opened is None and not yes:
            names = ", ".join(known.finalists)
            many = plural(len(known.finalists), "finalist")
            click.echo(
                f"This publishes the scores of {many} on {known.view}: {names}. It cannot be "
                "taken back.",
                err=True,
            )
            require_yes("Open the final?")
        step = finals.open_final(session, why=why or "")
        rebuilt = catch_up(session, news=step.event is not None or bool(again))
        _report_final(call, session, step, replace(rebuilt, ends=(*again, *rebuilt.ends)))


def _report_final(call: OrganiserCall, session: Session, step: FinalStep, rebuilt: Rebuilt) -> None:
    from heldout.cli.board import reports

    known = step.final
    after = [] if known.opened else [f"after {session.spec().closes}: heldout board final"]
    call.answer(
        {**reports.final_document(known), "event": step.event, **reports.rebuilt_document(rebuilt)},
        [
            *reports.final_facts(known, step.event),
            *reports.rebuilt_facts(rebuilt),
            *next_facts(session.repository, after),
        ],
    )
