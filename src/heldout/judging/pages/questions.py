"""A question as a page, and the pages that stand in its place where it cannot be answered now."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from heldout.errors import plural
from heldout.judging.campaign.judgments import Reason
from heldout.judging.campaign.rows import amount_owed
from heldout.judging.campaign.settings import Settings, format_money
from heldout.judging.database.assignments import LONGEST_WORKER, Assignment, Given, Shown
from heldout.judging.database.claims import NoTask, Offer
from heldout.judging.pages.arrivals import MTURK_HOSTS, Addresses
from heldout.judging.platforms.links import personal_code
from heldout.web.pages import (
    Choice,
    ConsentPage,
    Ended,
    EndPage,
    ExitPage,
    HandIn,
    ItemPage,
    Link,
    Passage,
    Study,
)

# What a judge reads before the first question, on stopping, at the end, and where there is none.
#
# Pure: from the terms and the state of an assignment to a page.


def study_of(settings: Settings) -> Study:
    """What every page says of the study."""
    return Study(name=settings.name, contact=settings.contact)


def consent_page(
    found: Offer,
    *,
    action: str,
    fields: Mapping[str, str],
    asks_worker: bool = False,
    preview: bool = False,
    problem: str = "",
    last: Ended | None = None,
) -> ConsentPage:
    """The landing page.

    Args:
        found: what is offered.
        action: where the form is sent.
        fields: who comes, sent back with the consent.
        asks_worker: whether the worker's id has to be typed.
        preview: nothing can be begun.
        problem: what has to be corrected.
        last: the task that this worker ended before.
    """
    settings, again = found.settings, found.assignment is not None
    return ConsentPage(
        study=study_of(settings),
        length=_length(found.items),
        pay=_pay(settings),
        time=_time(settings),
        stopping=_stopping(settings),
        ethics=settings.ethics,
        paragraphs=_paragraphs(settings.consent),
        action=action,
        fields={**fields, "batch": str(found.batch)},
        button="Go on with your task" if again else "I agree, begin",
        note="" if again else "If you don't agree, just close this page. Nothing was recorded.",
        asks_worker=asks_worker,
        longest_worker=LONGEST_WORKER,
        preview=preview,
        problem=problem,
        last=last,
    )


def exit_page(assignment: Assignment, addresses: Addresses) -> ExitPage:
    """Before stopping: what is the worker's."""
    position = assignment.first_open or assignment.items
    return ExitPage(
        study=study_of(assignment.settings),
        owed=_owed_so_far(assignment),
        after="Your answers are kept. If you stop, you can't come back to this task.",
        token=addresses.token,
        action=addresses.exit,
        back=addresses.item(position),
        go_on=f"Go on with question {position}",
        button="Stop and be paid" if assignment.answered and assignment.settings.reward else "Stop",
    )


def end_page(assignment: Assignment, *, key: bytes) -> EndPage:
    """The end of an assignment, whichever it was.

    Args:
        assignment: as it stands.
        key: the campaign's secret, which the worker's own completion code is made with.
    """
    code = _code(assignment, key)
    if assignment.state == "submitted":
        return _submitted(assignment, code)
    title, what = "You have stopped", "Your answers are kept."
    if assignment.state != "exited":
        lease = plural(assignment.settings.lease_minutes, "minute")
        title = "Your place went to somebody else"
        what = (
            f"There was no answer for {lease}, so another person was given this task. "
            "The answers that you gave are kept."
        )
    return EndPage(
        study=study_of(assignment.settings),
        title=title,
        paragraphs=(_owed(assignment), what),
        code=code,
        hand_in=_hand_in(assignment) if assignment.owed else None,
    )


def last_end(assignment: Assignment, key: bytes) -> Ended:
    """What somebody who comes back reads of the task before.

    Args:
        assignment: the task.
        key: of the campaign, which makes codes.
    """
    return Ended(told=f"Your last task: {_owed(assignment)}", code=_code(assignment, key))


def no_task_page(found: NoTask, *, again: str, last: Ended | None = None) -> EndPage:
    """Why there is nothing to do.

    Args:
        found: what was found instead of a task.
        again: the address to try again.
        last: the task that this worker ended before.
    """
    title, reason = _NO_TASK[found.why]
    paragraphs = [reason.replace("{lease}", plural(found.settings.lease_minutes, "minute"))]
    if found.why == "barred" and found.settings.reward:
        paragraphs.append(_TASK_PAID if found.settings.pay_failed else _TASK_UNPAID)
    if last:
        paragraphs.append(last.told)
    return EndPage(
        study=study_of(found.settings),
        title=title,
        paragraphs=tuple(paragraphs),
        code=last.code if last else "",
        link=Link(href=again, text="Try again") if found.why in _LATER else None,
    )


Refusal = Literal["unknown", "unsigned"]


def refused_page(settings: Settings, why: Refusal) -> EndPage:
    """Nobody can be let in: the platform did not say who comes, or the link is not signed."""
    return _notice(study_of(settings), *_REFUSALS[why])


def start_page(study: Study) -> EndPage:
    """The first page: what this server is, and where judges and the organiser go."""
    return _notice(
        study,
        study.name or "A study",
        "Passages are compared here.",
        "To take part, open the link that you were given: this page does not lead there.",
        link=Link(href="/admin", text="Organiser's pages"),
    )


def too_many_page(study: Study, wait: timedelta) -> EndPage:
    """Several tasks were stopped early from one address."""
    minutes = plural(int(wait.total_seconds()) // 60 + 1, "minute")
    return _notice(
        study,
        "Please try again later",
        "Several tasks were stopped early from your network just before.",
        f"A new task can be begun from there in {minutes}. Tasks under way are not affected.",
    )


def _notice(study: Study, title: str, *paragraphs: str, link: Link | None = None) -> EndPage:
    return EndPage(study=study, title=title, paragraphs=paragraphs, link=link)


_REFUSALS: Mapping[Refusal, tuple[str, str, str]] = {
    "unknown": (
        "Please come through the platform",
        "We could not see who you are, so we could not pay you.",
        "Please open the study again from the platform where you found it.",
    ),
    "unsigned": (
        "Please use the link that was sent to you",
        "Each person has a link of their own in this study; this one is not whole.",
        "Please open the link from your message again, or copy all of it.",
    ),
}
_FINISHED_PAID = "What you have finished is paid as agreed."
_TASK_PAID = f"That task is paid all the same. {_FINISHED_PAID}"
_TASK_UNPAID = "As agreed at the beginning, that task is not paid; every other one is."
_PART_UNPAID = (
    "As agreed at the beginning, a task with answers that plainly don't fit the passages is not "
    "paid, nor is a part of it."
)
_BARRED = (
    "In an earlier task of this study some of your answers did not fit what the passages say, so "
    "we can't offer you another one."
)
_WAITING = (
    "Other people are working on the last tasks. One of them may come free: please try again in a "
    "while."
)
_BARRED_NOW = (
    "Your answers were sent. Some of them did not fit what the passages say, so there is no "
    "further task for you in this study."
)
_LATER = ("waiting", "paused", "elsewhere")
_ELSEWHERE = (
    "A task with your id is under way. Please go on where it was begun: in that window, or on the "
    "platform's page of that assignment. After {lease} without an answer it ends, and you can "
    "begin another one here."
)
_NO_TASK: Mapping[str, tuple[str, str]] = {
    "barred": ("There is no further task for you", _BARRED),
    "waiting": ("Nothing is free at the moment", _WAITING),
    "paused": (
        "The study is not open at the moment",
        "No new task is handed out now. Please try again later; what you have finished is paid.",
    ),
    "seen": (
        "You have judged all there is for you",
        f"What is left are pairs that you have seen before. {_FINISHED_PAID} Thank you.",
    ),
    "done": ("Everything is judged", f"There are no tasks left. {_FINISHED_PAID} Thank you."),
    "elsewhere": ("Your task is open elsewhere", _ELSEWHERE),
    "changed": (
        "The terms have changed",
        "Please open the study again with the link that you were given.",
    ),
}


def _submitted(assignment: Assignment, code: str) -> EndPage:
    amount = format_money(assignment.owed, assignment.settings.currency)
    paragraphs = [_BARRED_NOW if assignment.barred else "Your answers were sent."]
    if assignment.settings.reward and not assignment.barred:
        paragraphs = [f"Your answers were sent. {amount} is yours."]
    elif assignment.settings.reward and assignment.owed:
        paragraphs.append(f"This task is paid all the same: {amount} is yours.")
    elif assignment.settings.reward:
        paragraphs.append("As agreed at the beginning, this task is not paid.")
    return EndPage(
        study=study_of(assignment.settings),
        title=f"Done: all {plural(assignment.items, 'question')}",
        paragraphs=tuple(paragraphs),
        code=code,
        hand_in=_hand_in(assignment),
    )


def _code(assignment: Assignment, key: bytes) -> str:
    """The platform's code, which all are given; from anywhere without one, a code of one's own.

    Where there is nothing but a link, who stopped and is owed something needs it as well. To
    Prolific it says that all is done; a part is paid there by a bonus.
    """
    settings = assignment.settings
    part = settings.platform == "link" and assignment.owed > 0
    if settings.platform == "mturk" or not (assignment.state == "submitted" or part):
        return ""
    if settings.platform == "link" and not settings.completion_code:
        return personal_code(key, assignment.id)
    return settings.completion_code


def _hand_in(assignment: Assignment) -> HandIn | None:
    """The form back to Mechanical Turk: it pays nobody, nor a part, who did not hand one in."""
    worker = assignment.worker
    if assignment.settings.platform != "mturk" or worker.submit_to not in MTURK_HOSTS:
        return None
    return HandIn(
        action=f"{worker.submit_to}/mturk/externalSubmit",
        fields={"assignmentId": worker.place, "answered": str(assignment.answered)},
        button="Hand in on Mechanical Turk",
    )


def _owed_so_far(assignment: Assignment) -> str:
    """What is said before the end, which must not depend on how tests were answered.

    Whoever could look at it after each answer would learn which pairs are tests, and their answers.
    """
    settings = assignment.settings
    if not assignment.answered or settings.pay_failed or not settings.reward:
        return _owed(assignment)
    share = amount_owed(
        reward=settings.reward, answered=assignment.answered, items=assignment.items
    )
    amount = format_money(share, settings.currency)
    yours = f"{assignment.answered} of {assignment.items} answered: {amount} is yours"
    return f"{yours}, unless some of your answers plainly don't fit the passages."


def _owed(assignment: Assignment) -> str:
    amount = format_money(assignment.owed, assignment.settings.currency)
    if not assignment.settings.reward:
        return f"{assignment.answered} of {assignment.items} answered."
    if not assignment.answered:
        return f"None of {assignment.items} answered yet: there is nothing to be paid."
    if not assignment.owed:
        return f"{assignment.answered} of {assignment.items} answered: {amount}. {_PART_UNPAID}"
    return f"{assignment.answered} of {assignment.items} answered: {amount} is yours."


def _length(items: int) -> str:
    return f"{plural(items, 'question')}, one on each page. You can go back and change an answer."


def _pay(settings: Settings) -> str:
    if not settings.reward:
        return "None: taking part is voluntary."
    amount = f"{format_money(settings.reward, settings.currency)} for all of them."
    if settings.pay_failed:
        return amount
    return f"{amount} A task with answers that plainly don't fit the passages is not paid."


def _stopping(settings: Settings) -> str:
    if not settings.reward:
        return "You may stop at any point."
    paid = "You may stop at any point, and are paid for what you have answered"
    if settings.pay_failed:
        return f"{paid}."
    return f"{paid}, unless some of it plainly doesn't fit the passages."


def _paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text that may be broken into lines anywhere within them."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return tuple(part for part in parts if part)


def _time(settings: Settings) -> str:
    lease = plural(settings.lease_minutes, "minute")
    about = f"About {plural(settings.minutes, 'minute')}. " if settings.minutes else ""
    return f"{about}Take as long as you like: your place is kept for {lease} after each answer."


_REASONS: Mapping[Reason, str] = {
    "same": "both say the same",
    "neither": "neither answers it",
    "unreadable": "I can't read one of them",
    "language": "I don't know the language",
    "other": "of another reason",
}
"""Why somebody cannot judge, in words that go on after "because"."""

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
        shown: the query and the passages, and the answer in force.
        addresses: of the assignment's pages.
        campaign: its link code; browsers keep choices apart by it.
        stamp: signed stamp of this showing.
        now: the time.
        sent: fields of a form that has to be corrected: shown instead of the answer in force.
        problem: what has to be corrected, or what was found.
    """
    assignment, position = shown.assignment, shown.position
    settings, last = assignment.settings, shown.position == assignment.items
    choice, reason = _chosen(shown.given, sent)
    return ItemPage(
        study=study_of(settings),
        position=position,
        total=assignment.items,
        query=shown.query,
        question=settings.question,
        language=settings.language,
        passages=(
            Passage(value="a", name="Passage A", text=shown.left.text),
            Passage(value="b", name="Passage B", text=shown.right.text),
        ),
        choice=choice,
        reason=reason,
        reasons={str(reason): words for reason, words in _REASONS.items()},
        token=addresses.token,
        stamp=stamp,
        action=addresses.item(position),
        next=addresses.done if last else addresses.item(position + 1),
        place=f"{campaign} {assignment.id} {position}",
        replaces=shown.revision,
        keep=addresses.keep(position),
        left=max(0, int((assignment.lease_until - now).total_seconds())),
        back=addresses.item(position - 1) if position > 1 else "",
        exit=addresses.exit,
        stop="Stop and be paid" if shown.assignment.settings.reward else "Stop",
        note=_note(assignment, last=last),
        problem=problem,
    )


def ahead_page(assignment: Assignment, addresses: Addresses, *, position: int) -> EndPage:
    """The item comes later: an earlier one has no answer yet."""
    first = assignment.first_open or position
    return _notice(
        study_of(assignment.settings),
        f"Question {position} comes later",
        f"You have answered {assignment.answered} of {assignment.items}.",
        link=_go_on(addresses, first),
    )


def no_item_page(assignment: Assignment, addresses: Addresses) -> EndPage:
    """The task has no such item."""
    return _notice(
        study_of(assignment.settings),
        "There is no such question",
        f"This task has {assignment.items}.",
        link=_go_on(addresses, assignment.first_open or assignment.items),
    )


def _go_on(addresses: Addresses, position: int) -> Link:
    return Link(href=addresses.item(position), text=f"Go on with question {position}")


def late_page(assignment: Assignment, addresses: Addresses) -> EndPage:
    """An answer came after the assignment had ended."""
    amount = format_money(assignment.owed, assignment.settings.currency)
    return _notice(
        study_of(assignment.settings),
        "This answer came too late",
        "The task had ended before, so this last answer was not taken.",
        f"What you answered before is kept, {assignment.answered} of {assignment.items}: {amount}.",
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


def _chosen(given: Given | None, sent: Mapping[str, str] | None) -> tuple[Choice | None, str]:
    """What is chosen, and the reason: as sent, or else as it was answered."""
    if sent is not None:
        choices: Mapping[str, Choice] = {"a": "a", "b": "b", "none": "none"}
        return choices.get(sent.get("choice", "")), sent.get("reason", "")
    if given is None:
        return None, ""
    sides: Mapping[str | None, Choice] = {"left": "a", "right": "b", None: "none"}
    return sides[given.side], given.reason or ""


def _note(assignment: Assignment, *, last: bool) -> str:
    lease = plural(assignment.settings.lease_minutes, "minute")
    kept = f"Your place is kept for {lease} after each answer."
    return f"Finish sends all answers; after that they can't be changed. {kept}" if last else kept
