"""Prolific's files: whom to approve, whom to ask for a return, and the bulk bonus payments.

Each is what Prolific's pages take by pasting: one participant a line. A study's files hold that
study's participants only. Approving pays a participant the study's reward, once: what a second
task earned goes out as a bonus. Who stopped early cannot be approved: the submission is returned,
and the share that was earned goes out as a bonus.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from heldout.preferences.payments import Payment
from heldout.preferences.settings import Money

__all__ = ["ProlificFiles", "completion_address", "prolific_files"]

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
    """Where Prolific takes a completion code back."""
    return f"https://app.prolific.com/submissions/complete?cc={code}"


def prolific_files(
    payments: Iterable[Payment],
) -> tuple[tuple[ProlificFiles, ...], tuple[Payment, ...]]:
    """Files for payments that are due; each is in one of them, or left out.

    Args:
        payments: those made already are in no file, as a bonus is paid again whenever it is pasted;
            they tell who was approved before, and is not again.

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
