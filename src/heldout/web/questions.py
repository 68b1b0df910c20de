"""A question as a page, and the pages that stand in its place where it cannot be answered now."""

from collections.abc import Mapping
from datetime import datetime

from heldout.preferences.pricing import format_money
from heldout.store.judging.sittings import Given, Shown, Sitting
from heldout.web.addresses import Addresses
from heldout.web.endings import study_of
from heldout.web.pages import Choice, EndPage, HandIn, ItemPage, Link, Passage, Study

__all__ = ["ahead_page", "item_page", "late_page", "no_item_page", "unsaved_page"]

_KEPT_FIELDS = ("token", "stamp", "choice", "reason", "by", "active_ms")
_CHOICES: Mapping[str, str] = {
    "a": "Passage A",
    "b": "Passage B",
    "none": "that you can't judge this one",
}


def item_page(
    shown: Shown,
    addresses: Addresses,
    *,
    campaign: str,
    stamp: str,
    now: datetime,
    sent: Mapping[str, str] | None = None,
    problem: str = "",
) -> ItemPage:
    """An item.

    Args:
        shown: the query and the passages, and the answer that stands.
        addresses: of the assignment's pages.
        campaign: its link code; browsers keep choices apart by it.
        stamp: signed stamp of this showing.
        now: the time.
        sent: fields of a form that has to be mended: shown instead of the answer that stands.
        problem: what has to be mended, or what was found.
    """
    sitting, position = shown.sitting, shown.position
    settings, last = sitting.settings, shown.position == sitting.items
    choice, reason = _answer(shown.given) if sent is None else _sent(sent)
    return ItemPage(
        study=study_of(settings),
        position=position,
        total=sitting.items,
        query=shown.query,
        question=settings.question,
        language=settings.language,
        passages=(
            Passage(value="a", name="Passage A", text=shown.left.text),
            Passage(value="b", name="Passage B", text=shown.right.text),
        ),
        choice=choice,
        reason=reason,
        token=addresses.token,
        stamp=stamp,
        action=addresses.item(position),
        next=addresses.done if last else addresses.item(position + 1),
        place=f"{campaign} {sitting.assignment} {position}",
        replaces=shown.given.revision if shown.given else 0,
        keep=addresses.keep(position),
        left=max(0, int((sitting.lease_until - now).total_seconds())),
        back=addresses.item(position - 1) if position > 1 else "",
        exit=addresses.exit,
        stop="Stop and be paid" if shown.sitting.settings.reward else "Stop",
        note=_note(sitting, last=last),
        problem=problem,
    )


def ahead_page(sitting: Sitting, addresses: Addresses, *, position: int) -> EndPage:
    """The item comes later: an earlier one has no answer yet."""
    first = sitting.first_open or position
    return EndPage(
        study=study_of(sitting.settings),
        title=f"Question {position} comes later",
        paragraphs=(f"You have answered {sitting.answered} of {sitting.items}.",),
        link=Link(href=addresses.item(first), text=f"Go on with question {first}"),
    )


def no_item_page(sitting: Sitting, addresses: Addresses) -> EndPage:
    """The task has no such item."""
    position = sitting.first_open or sitting.items
    return EndPage(
        study=study_of(sitting.settings),
        title="There is no such question",
        paragraphs=(f"This task has {sitting.items}.",),
        link=Link(href=addresses.item(position), text=f"Go on with question {position}"),
    )


def late_page(sitting: Sitting, addresses: Addresses) -> EndPage:
    """An answer came after the assignment had ended."""
    amount = format_money(sitting.owed, sitting.settings.currency)
    return EndPage(
        study=study_of(sitting.settings),
        title="This answer came too late",
        paragraphs=(
            "The task had ended before, so this last answer was not taken.",
            f"What you answered before is kept, {sitting.answered} of {sitting.items}: {amount}.",
        ),
        link=Link(href=addresses.done, text="How the task ended"),
    )


def unsaved_page(
    study: Study, addresses: Addresses, position: int, sent: Mapping[str, str]
) -> EndPage:
    """The database does not answer: the choice stays on the page, and is sent again from there.

    Args:
        study: the study.
        addresses: of the assignment's pages.
        position: of the item.
        sent: fields of the form.
    """
    chosen = _CHOICES.get(sent.get("choice", ""), "")
    return EndPage(
        study=study,
        title="Not saved yet",
        paragraphs=(
            "We can't reach our records just now. Every answer before this one is saved.",
            f"Your choice is kept on this page: {chosen}. Press Next again in a moment.",
        ),
        hand_in=HandIn(
            action=addresses.item(position),
            fields={name: sent[name] for name in _KEPT_FIELDS if name in sent},
            button="Next",
        ),
    )


def _answer(given: Given | None) -> tuple[Choice | None, str]:
    if given is None:
        return None, ""
    sides: Mapping[str | None, Choice] = {"left": "a", "right": "b", None: "none"}
    return sides[given.side], given.reason or ""


def _sent(sent: Mapping[str, str]) -> tuple[Choice | None, str]:
    chosen: Mapping[str, Choice] = {"a": "a", "b": "b", "none": "none"}
    return chosen.get(sent.get("choice", "")), sent.get("reason", "")


def _note(sitting: Sitting, *, last: bool) -> str:
    minutes = sitting.settings.lease_minutes
    unit = "minute" if minutes == 1 else "minutes"
    kept = f"Your place is kept for {minutes} {unit} after each answer."
    return f"Finish sends all answers; after that they can't be changed. {kept}" if last else kept
