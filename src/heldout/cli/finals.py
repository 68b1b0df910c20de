"""The organiser's commands of a final: name the finalists, open their scores."""

from typing import Any

import click

from heldout.board.log.final import Final, OpenedFinal
from heldout.cli.context import Place, at_board
from heldout.cli.decisions import print_next, rebuilt_facts, rebuilt_json
from heldout.cli.printing import answers, plural, print_facts, print_json, reports_errors
from heldout.cli.reasons import REASON
from heldout.cli.trust import confirm
from heldout.pipeline.deciding.finals import (
    FinalStep,
    find_final_view,
    name_finalists,
    open_final,
)
from heldout.pipeline.deciding.public_texts import check_text
from heldout.pipeline.deciding.rebuild import Rebuilt, catch_up
from heldout.pipeline.organiser.desk import Desk

__all__ = ["final", "finalists"]


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
