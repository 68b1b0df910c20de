"""Prolific's files: whom to approve, whom to ask for a return, and the bulk bonus payments.

Each is what Prolific's pages take by pasting: one participant a line. A study's files hold that
study's participants only. Who stopped early cannot be approved: the submission is returned, and the
share that was earned goes out as a bonus.
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
        bonus: all bonuses together, in hundredths.
    """

    study: str
    approve: bytes
    returns: bytes
    bonuses: bytes
    bonus: Money


def completion_address(code: str) -> str:
    """Where Prolific takes a completion code back."""
    return f"https://app.prolific.com/submissions/complete?cc={code}"


def prolific_files(
    payments: Iterable[Payment],
) -> tuple[tuple[ProlificFiles, ...], tuple[Payment, ...]]:
    """Files for payments that are due.

    Args:
        payments: those made already are passed over: a bonus is paid again whenever it is pasted.

    Returns:
        The files of each study, by its id, and the payments that are in none: no id of Prolific's
        was given with them (24 hexadecimal digits), so that somebody else had come by the link.
    """
    studies: defaultdict[str, list[Payment]] = defaultdict(list)
    left_out = []
    for one in payments:
        if one.paid_at:
            continue
        if _PARTICIPANT.fullmatch(one.platform_id) and _STUDY.fullmatch(one.study):
            studies[one.study].append(one)
        else:
            left_out.append(one)
    files = tuple(_files(study, due) for study, due in sorted(studies.items()))
    return files, tuple(left_out)


def _files(study: str, due: list[Payment]) -> ProlificFiles:
    bonuses: defaultdict[str, Money] = defaultdict(int)
    for one in due:
        if one.kind != "base":
            bonuses[one.platform_id] += one.amount
    finished = [one.platform_id for one in due if one.kind == "base"]
    stopped = [one.platform_id for one in due if one.kind == "pro-rata"]
    return ProlificFiles(
        study=study,
        approve=_lines(finished),
        returns=_lines(one for one in stopped if one not in finished),
        bonuses=_lines(
            f"{name},{amount // 100}.{amount % 100:02}" for name, amount in bonuses.items()
        ),
        bonus=sum(bonuses.values()),
    )


def _lines(rows: Iterable[str]) -> bytes:
    return "".join(f"{row}\n" for row in dict.fromkeys(rows)).encode()
