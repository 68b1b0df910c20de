"""Links and completion codes for workers from anywhere.

A link of one's own is signed for the worker's id, so that nobody comes in another's name.

A code of one's own proves that this very task was finished: it names the assignment, and nobody
without the campaign's key can make one up. Where everybody has the same code it can be passed on.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from heldout.judging.campaign.judgments import Judgment, honest_answers
from heldout.judging.campaign.rows import Task, copy_task
from heldout.judging.campaign.settings import Money, Payment, Platform, Settings

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Base 32 as Crockford writes it: no I, L, O, U, which are misread."""

_MISREAD = str.maketrans("OIL", "011")
_CHECK = 8
_LONGEST = 40
_SIGNED_BYTES = 16
_PARAMETERS: Mapping[Platform, str] = {
    "link": "",
    "mturk": "",
    "prolific": "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
    "&SESSION_ID={{%SESSION_ID%}}",
}
"""What is added to the link that a platform is given; Mechanical Turk adds it by itself, and behind
an open link the page asks who comes."""


def study_link(root: str, code: str, platform: Platform) -> str:
    """The link that a platform is given.

    Args:
        root: where the pages are served, as `https://judging.example`.
        code: the campaign's.
        platform: where workers come from; it replaces what stands in braces.
    """
    return f"{root.rstrip('/')}/j/{code}{_PARAMETERS[platform]}"


def personal_link(root: str, code: str, *, key: bytes, worker: str) -> str:
    """The link of one worker, which nobody without the campaign's key can make for another id.

    Args:
        root: where the pages are served.
        code: the campaign's.
        key: the campaign's secret.
        worker: the id by which the worker is paid.
    """
    fields = {"worker": worker, "sig": _sign(key, worker)}
    return f"{root.rstrip('/')}/j/{code}?{urlencode(fields)}"


def is_signed(key: bytes, worker: str, signature: str) -> bool:
    """Check whether a signature is that of a worker's own link."""
    return signature.isascii() and hmac.compare_digest(_sign(key, worker), signature)


def personal_code(key: bytes, assignment: int) -> str:
    """The completion code of one assignment, as `1F-7K3M-9QXZ`.

    Args:
        key: the campaign's secret.
        assignment: its id, from 0.
    """
    check = _check(key, assignment)
    return f"{_encode(assignment)}-{check[:4]}-{check[4:]}"


def read_code(key: bytes, text: str) -> int | None:
    """The assignment whose code this is; `None` where it is nobody's.

    Case, blanks and dashes make no difference, nor do O for 0, I and L for 1.
    """
    plain = re.sub(r"[\s\-]", "", text).upper().translate(_MISREAD)
    if not _CHECK < len(plain) <= _LONGEST or set(plain) - set(_ALPHABET):
        return None
    assignment = 0
    for char in plain[:-_CHECK]:
        assignment = assignment * 32 + _ALPHABET.index(char)
    fits = hmac.compare_digest(_check(key, assignment), plain[-_CHECK:])
    return assignment if fits else None


def _sign(key: bytes, worker: str) -> str:
    """128 bits, in 22 letters that an address can hold."""
    digest = hmac.new(key, b"heldout personal link\0" + worker.encode(), hashlib.sha256).digest()
    return urlsafe_b64encode(digest[:_SIGNED_BYTES]).rstrip(b"=").decode()


def _check(key: bytes, assignment: int) -> str:
    """Eight letters, 40 bits, that only who has the key can make."""
    message = f"heldout completion code {assignment}".encode()
    digest = hmac.new(key, message, hashlib.sha256).digest()
    return _encode(int.from_bytes(digest[:5])).rjust(_CHECK, "0")


def _encode(number: int) -> str:
    text = ""
    while number or not text:
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return text


# Prolific's files: whom to approve, whom to ask for a return, and the bulk bonus payments.
#
# Each is what Prolific's pages take by pasting: one participant a line. A study's files hold that
# study's participants only. Approving pays a participant the study's reward, once: what a second
# task earned goes out as a bonus. Who stopped early cannot be approved: the submission is
# returned, and the share that was earned goes out as a bonus.

_PARTICIPANT = re.compile(r"[0-9a-f]{24}")
_STUDY = re.compile(r"[0-9A-Za-z]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProlificFiles:
    """The files of one study.

    Attributes:
        study: its id.
        approve: participants who finished, one a line.
        returns: participants to be asked to return their submission, one a line.
        bonuses: participant, comma, amount; one line for each participant.
        base: what approving pays, in hundredths.
        bonus: all bonuses together, in hundredths.
    """

    study: str
    approve: bytes
    returns: bytes
    bonuses: bytes
    base: Money
    bonus: Money


def completion_address(code: str) -> str:
    """Return where Prolific takes a completion code back."""
    return f"https://app.prolific.com/submissions/complete?cc={code}"


def prolific_files(
    payments: Iterable[Payment],
) -> tuple[tuple[ProlificFiles, ...], tuple[Payment, ...]]:
    """Files for payments that are due; each is in one of them, or left out.

    Args:
        payments: those made already are in no file, as a bonus is paid again whenever it is pasted;
            they say who was approved before, and is not again.

    Returns:
        The files of each study, by its id, and the payments that are in none: no id of Prolific's
        was given with them (24 hexadecimal digits), so that somebody else had come by the link.
    """
    studies: defaultdict[str, list[Payment]] = defaultdict(list)
    left_out = []
    for one in payments:
        if _PARTICIPANT.fullmatch(one.platform_id) and _STUDY.fullmatch(one.study):
            studies[one.study].append(one)
        elif not one.paid_at:
            left_out.append(one)
    files = tuple(
        _files(study, found)
        for study, found in sorted(studies.items())
        if not all(one.paid_at for one in found)
    )
    return files, tuple(left_out)


def _files(study: str, payments: list[Payment]) -> ProlificFiles:
    before = {one.platform_id for one in payments if one.paid_at and one.kind == "base"}
    approved: dict[str, Money] = {}
    bonuses: defaultdict[str, Money] = defaultdict(int)
    stopped = []
    for one in payments:
        name = one.platform_id
        if one.paid_at:
            continue
        if one.kind == "base" and name not in before and name not in approved:
            approved[name] = one.amount
            continue
        bonuses[name] += one.amount
        if one.kind == "pro-rata":
            stopped.append(name)
    return ProlificFiles(
        study=study,
        approve=_lines(approved),
        returns=_lines(name for name in stopped if name not in approved and name not in before),
        bonuses=_lines(
            f"{name},{amount // 100}.{amount % 100:02}" for name, amount in bonuses.items()
        ),
        base=sum(approved.values()),
        bonus=sum(bonuses.values()),
    )


def _lines(rows: Iterable[str]) -> bytes:
    return "".join(f"{row}\n" for row in dict.fromkeys(rows)).encode()


# Tasks to be done again by somebody else, where files and not our own pages give them out.
#
# Our own pages reissue by themselves (`heldout.judging.database`).

_AGAIN = "r"


def first_tasks(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Tasks that repeat no other one."""
    names = {task.task for task in tasks}
    return tuple(
        task
        for task in tasks
        if not task.task.endswith(_AGAIN) or task.task.removesuffix(_AGAIN) not in names
    )


def unjudged_tasks(tasks: Iterable[Task], judgments: Iterable[Judgment]) -> tuple[Task, ...]:
    """Tasks in which nothing was judged yet, in their order."""
    judged = {one.task for one in judgments}
    return tuple(task for task in tasks if task.task not in judged)


def repeat_tasks(
    tasks: Sequence[Task],
    judgments: Sequence[Judgment],
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Task, ...]:
    """Copies, in a new order, of tasks that were judged and do not count; as the next batch.

    A task does not count where its tests were failed, where it was not finished, and, as the
    settings say, where its worker failed another one. One that has a copy gets no second one.

    Args:
        tasks: of all batches.
        judgments: all that there are.
        settings: what excludes, and how many judges a pair has.
        rng: the order of the copies.
    """
    there = {task.task for task in tasks}
    judged = {one.task for one in judgments}
    done = honest_answers(judgments, exclusion=settings.exclusion, failures=settings.failures)
    again = judged - {one.task for one in done}
    batch = max((task.batch for task in tasks), default=0) + 1
    copies = []
    for task in tasks:
        name = task.task + _AGAIN
        if task.task in again and name not in there:
            copy = copy_task(task, name=name, same_sides=settings.judges % 2 == 0, rng=rng)
            copies.append(Task(task=name, items=copy.items, why=copy.why, batch=batch))
    return tuple(copies)
