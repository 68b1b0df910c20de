"""What a submission is compared with: all others that the vault knows."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from heldout.board.log.history import History, Submission
from heldout.board.policy.identity import Entrant, list_entrants
from heldout.board.policy.likeness import RunLikeness, find_likeness
from heldout.errors import StoreError
from heldout.ids import query_set_of
from heldout.pipeline.scoring.score_files import read_key
from heldout.pipeline.scoring.signatures import read_signatures
from heldout.store.vault import Vault
from heldout.trec.scans import Signature

__all__ = ["Mend", "compare_runs", "list_others", "signatures_of"]

T = TypeVar("T")

Mend = Callable[[str], bool]
"""Makes what the vault keeps of a submission anew; whether it could."""


def list_others(
    vault: Vault, history: History, submission: Submission, *, mend: Mend
) -> tuple[Entrant, ...]:
    """Everybody who ever submitted, with their keys where the vault knows them.

    Args:
        vault: of the board.
        history: what its log says.
        submission: whose day it is.
        mend: called for one whose scores are damaged or lost.
    """
    keys = {}
    for name, other in history.submissions.items():
        lost = "scores" in other.kept and not vault.scores(name).is_file()
        keys[name] = _read(partial(read_key, vault, name), name, "", lost=lost, mend=mend)
    return list_entrants(history, day=submission.received.date(), keys=keys)


def compare_runs(
    vault: Vault, history: History, submission: Submission, *, mend: Mend
) -> Mapping[str, RunLikeness]:
    """Query set -> what runs that were received before are like the submission's.

    Of several seeds the first is compared: the others are like it, or a rule of their own says so.

    Args:
        vault: of the board.
        history: what its log says.
        submission: the one that is judged.
        mend: called for one whose signatures are damaged or lost.
    """
    names = list(history.submissions)
    before = names[: names.index(submission.id)]

    def earlier(query_set: str) -> Iterator[tuple[str, Signature]]:
        for name in before:
            found = signatures_of(vault, history.submissions[name], mend=mend)
            if query_set in found:
                yield name, found[query_set]

    return {
        query_set: find_likeness(signature, earlier(query_set))
        for query_set, signature in signatures_of(vault, submission, mend=mend).items()
        if query_set == query_set_of(query_set)
    }


def signatures_of(vault: Vault, submission: Submission, *, mend: Mend) -> Mapping[str, Signature]:
    """As `read_signatures`; what is missing or damaged is made anew, and empty where it cannot be.

    What waits and was never opened is opened here: a copy would else pass for whichever of the two
    is reviewed first.
    """
    name = submission.id
    # Baselines of old were logged without their signatures, and the vault has their runs.
    expected = "signatures" in submission.kept or bool(submission.runs)
    expected |= submission.status == "received"
    lost = expected and not vault.signature(name).is_file()
    return _read(partial(read_signatures, vault, name), name, {}, lost=lost, mend=mend)


def _read(read: Callable[[], T], name: str, otherwise: T, *, lost: bool, mend: Mend) -> T:
    """Read a file; where it is lost or damaged once more after mending."""
    for mended in (False, True):
        if lost or mended:
            if not mend(name):
                return otherwise
            lost = False
        try:
            return read()
        except StoreError:
            continue
    return otherwise
