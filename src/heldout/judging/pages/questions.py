"""A question as a page, and the pages that stand in its place where it cannot be answered now."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from heldout.errors import plural
from heldout.judging.campaign.judgments import Reason
from heldout.judging.campaign.questions import CANNOT, FORMS
from heldout.judging.campaign.rows import amount_owed
from heldout.judging.campaign.settings import Settings, format_money
from heldout.judging.database.assignments import LONGEST_WORKER, Assignment, Shown
from heldout.judging.database.claims import NoTask, Offer
from heldout.judging.pages.arrivals import MTURK_HOSTS, Addresses
from heldout.judging.platforms.links import personal_code
from heldout.web.pages import (
    ConsentPage,
    Ended,
    EndPage,
    ExitPage,
    HandIn,
    ItemPage,
    Link,
    Passage,
    QuestionPage,
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
        button="Continue your task" if again else "I agree, begin",
        note="" if again else "If you don't agree, close this page. Nothing has been recorded.",
        asks=ask_worker(settings) if asks_worker else None,
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
        after=" ".join(
            (
                "Your answers are stored. You can't come back to this task after you stop.",
                *(_hand_in_words(assignment.settings) if assignment.answered else ()),
            )
        ),
        token=addresses.token,
        action=addresses.exit,
        back=addresses.item(position),
        go_on=f"Continue with question {position}",
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
    title, what = "You have stopped", "Your answers are stored."
    if assignment.state != "exited":
        lease = plural(assignment.settings.lease_minutes, "minute")
        title = "This task went to another person"
        what = f"There was no answer for {lease}. The answers that you gave before are stored."
    hand_in = _hand_in(assignment) if assignment.owed else None
    return EndPage(
        study=study_of(assignment.settings),
        title=title,
        paragraphs=(
            _owed(assignment),
            what,
            *(_hand_in_words(assignment.settings) if hand_in else ()),
        ),
        code=code,
        hand_in=hand_in,
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
    if found.settings.reward and found.why == "barred":
        paragraphs.append(_TASK_PAID if found.settings.pay_failed else _TASK_UNPAID)
    elif found.settings.reward and found.why in _PAYS:
        paragraphs.append(_FINISHED_PAID)
    if last:
        paragraphs.append(last.told)
    return EndPage(
        study=study_of(found.settings),
        title=title,
        paragraphs=tuple(paragraphs),
        code=last.code if last else "",
        link=Link(href=again, text="Try again") if found.why in _LATER else None,
    )


def ask_worker(settings: Settings) -> tuple[str, str]:
    """How somebody behind an open link is asked who they are: the label, and what it means."""
    if settings.reward:
        return "Your worker id", "the id by which you are paid"
    return "Your name", "or any word: use the same one when you come back"


Refusal = Literal["unknown", "unsigned"]


def refused_page(settings: Settings, why: Refusal) -> EndPage:
    """Nobody can be let in: the platform did not say who comes, or the link is not signed."""
    return _notice(study_of(settings), *_REFUSALS[why])


def start_page() -> EndPage:
    """The first page: what this server is, and where links come from; nothing of the campaign."""
    return _notice(
        Study(),
        "A study in which people judge passages",
        "To take part, open the link that the organiser sent you.",
        "Are you the organiser? The command “heldout prefer links” writes a link for each person.",
        link=Link(href="/admin", text="Sign in as the organiser"),
    )


def too_many_page(study: Study, wait: timedelta) -> EndPage:
    """Several tasks were stopped early from one address."""
    minutes = plural(int(wait.total_seconds()) // 60 + 1, "minute")
    return _notice(
        study,
        "Please try again later",
        "Several tasks were stopped early from your network.",
        f"You can begin a new task in {minutes}. Tasks that have begun are not affected.",
    )


def _notice(study: Study, title: str, *paragraphs: str, link: Link | None = None) -> EndPage:
    return EndPage(study=study, title=title, paragraphs=paragraphs, link=link)


_REFUSALS: Mapping[Refusal, tuple[str, str, str]] = {
    "unknown": (
        "Please come through the platform",
        "The link does not say who you are, so we could not pay you.",
        "Please open the study again on the platform where you saw it.",
    ),
    "unsigned": (
        "Please use the link that was sent to you",
        "Each person has a personal link in this study. This link is incomplete or changed.",
        "Please open the link in your message again, or copy all of it.",
    ),
}
_FINISHED_PAID = "Your finished tasks are paid as agreed."
_TASK_PAID = f"That task is paid too. {_FINISHED_PAID}"
_TASK_UNPAID = "As agreed at the beginning, that task is not paid. Your other tasks are."
_PART_UNPAID = (
    "As agreed at the beginning, a task with answers that clearly don't fit the passages is not "
    "paid, and neither is a part of it."
)
_BARRED = (
    "Some check questions in an earlier task were answered incorrectly, so we cannot offer you "
    "more tasks in this study."
)
_WAITING = (
    "Other people are working on the last tasks, or have begun many from your network. One of "
    "these may become free: please try again later."
)
_BARRED_NOW = (
    "Your answers were sent. Some check questions were answered incorrectly, so we cannot offer "
    "you more tasks in this study."
)
_PAID_WHOLE = (
    "Hand the task in at the end: Mechanical Turk then pays the reward that it shows for the task "
    "once we approve it. If that is less than what is yours, the rest comes as a bonus."
)
_PAYS = ("paused", "seen", "done")
_LATER = ("waiting", "paused", "elsewhere")
_ELSEWHERE = (
    "You have begun a task elsewhere. Please continue in that window, or on the platform's page of "
    "that assignment. The task ends after {lease} without an answer; then you can begin another "
    "one here."
)
_NO_TASK: Mapping[str, tuple[str, str]] = {
    "barred": ("There are no more tasks for you", _BARRED),
    "waiting": ("No task is free at the moment", _WAITING),
    "paused": (
        "The study is not open at the moment",
        "No new tasks are given out now. Please try again later.",
    ),
    "seen": (
        "You have judged everything that you can",
        "You have seen all the pairs that are left. Thank you.",
    ),
    "done": ("Everything is judged", "There are no tasks left. Thank you."),
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
        paragraphs.append(f"This task is paid too: {amount} is yours.")
    elif assignment.settings.reward:
        paragraphs.append("As agreed at the beginning, this task is not paid.")
    if assignment.owed:
        paragraphs += _hand_in_words(assignment.settings)
    return EndPage(
        study=study_of(assignment.settings),
        title=f"Done: all {plural(assignment.items, 'question')}",
        paragraphs=tuple(paragraphs),
        code=code,
        hand_in=_hand_in(assignment),
    )


def _code(assignment: Assignment, key: bytes) -> str:
    """The platform's code, which all are given; without a platform, a code for each paid task.

    Nobody needs a code where nobody is paid. Where there is nothing but a link, who stopped and is
    owed something needs it as well. To Prolific it says that all is done; a part is paid there by
    a bonus.
    """
    settings = assignment.settings
    part = settings.platform == "link" and assignment.owed > 0
    if settings.platform == "mturk" or not (assignment.state == "submitted" or part):
        return ""
    if settings.platform == "link" and settings.reward and not settings.completion_code:
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


def _hand_in_words(settings: Settings) -> tuple[str, ...]:
    """Say how Mechanical Turk pays an amount: an approved task is paid whole, or not at all."""
    if settings.platform != "mturk" or not settings.reward:
        return ()
    return (_PAID_WHOLE,)


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
    return f"{yours}, unless some of your answers clearly don't fit the passages."


def _owed(assignment: Assignment) -> str:
    amount = format_money(assignment.owed, assignment.settings.currency)
    if not assignment.settings.reward:
        return f"{assignment.answered} of {assignment.items} answered."
    if not assignment.answered:
        return f"None of {assignment.items} answered: there is nothing to pay."
    if not assignment.owed:
        return f"{assignment.answered} of {assignment.items} answered: {amount}. {_PART_UNPAID}"
    return f"{assignment.answered} of {assignment.items} answered: {amount} is yours."


def _length(items: int) -> str:
    return f"{plural(items, 'question')}, one per page. You can go back and change an answer."


def _pay(settings: Settings) -> str:
    if not settings.reward:
        return "None: taking part is voluntary."
    amount = f"{format_money(settings.reward, settings.currency)} for all of them."
    if settings.pay_failed:
        return amount
    return f"{amount} A task with answers that clearly don't fit the passages is not paid."


def _stopping(settings: Settings) -> str:
    if not settings.reward:
        return "You may stop at any point."
    paid = "You may stop at any point. Your answers until then are paid"
    if not settings.pay_failed:
        paid += ", unless some of them clearly don't fit the passages"
    return " ".join((f"{paid}.", *_hand_in_words(settings)))


def _paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text that may be broken into lines anywhere within them."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return tuple(part for part in parts if part)


def _time(settings: Settings) -> str:
    lease = plural(settings.lease_minutes, "minute")
    about = f"About {plural(settings.minutes, 'minute')}. " if settings.minutes else ""
    return f"{about}You have {lease} for each question."


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
    """Return the page of an item.

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
    choice, reason = _chosen(shown, sent)
    form = FORMS.get(settings.kind)
    make = ItemPage if form is None else partial(QuestionPage, form=form)
    return make(
        study=study_of(settings),
        position=position,
        total=assignment.items,
        query=shown.query,
        question=settings.question,
        language=settings.language,
        passages=_passages(shown, sent),
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


def _passages(shown: Shown, sent: Mapping[str, str] | None) -> tuple[Passage, ...]:
    """Return the passages as they are shown; those that are ticked, as sent or as answered."""
    if shown.assignment.settings.kind == "preference":
        named = zip(("a", "b"), ("Passage A", "Passage B"), shown.passages, strict=True)
        return tuple(Passage(value=value, name=name, text=one.text) for value, name, one in named)
    given = shown.given.ticked if shown.given else ()
    return tuple(
        Passage(
            value=str(number),
            name=f"Passage {number}",
            text=one.text,
            ticked=one.doc in given if sent is None else f"tick-{number}" in sent,
        )
        for number, one in enumerate(shown.passages, 1)
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
    return Link(href=addresses.item(position), text=f"Continue with question {position}")


def late_page(assignment: Assignment, addresses: Addresses) -> EndPage:
    """An answer came after the assignment had ended."""
    return _notice(
        study_of(assignment.settings),
        "This answer came too late",
        "The task had ended, so this answer is not stored. Your earlier answers are.",
        _owed(assignment),
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
    chosen = _CHOICES.get(sent.get("choice", ""), "an answer")
    return EndPage(
        study=study,
        title="Not saved yet",
        paragraphs=(
            "The server can't save answers at the moment. Your earlier answers are saved.",
            f"Your choice is still on this page: {chosen}. Press Next again in a moment.",
        ),
        hand_in=HandIn(
            action=addresses.item(position),
            fields={
                name: text
                for name, text in sent.items()
                if name in _KEPT_FIELDS or name.startswith("tick-")
            },
            button="Next",
        ),
    )


def _chosen(shown: Shown, sent: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what is chosen, and the reason: as sent, or else as it was answered."""
    given = shown.given
    if sent is not None:
        return sent.get("choice", ""), sent.get("reason", "")
    if given is None:
        return "", ""
    if given.side is None:
        pair = shown.assignment.settings.kind == "preference"
        return "none" if pair else CANNOT, given.reason or ""
    return {"left": "a", "right": "b"}.get(given.side, given.side), ""


def _note(assignment: Assignment, *, last: bool) -> str:
    lease = plural(assignment.settings.lease_minutes, "minute")
    time = f"You have {lease} for each question."
    return f"Finish sends all answers. You can't change them after that. {time}" if last else time
