"""What a submission is compared with: all others that the vault knows."""

from collections.abc import Iterator, Mapping
from functools import partial

from heldout.board.history import History, Submission
from heldout.board.identity import Entrant, list_entrants
from heldout.board.likeness import RunLikeness, find_likeness
from heldout.ids import query_set_of
from heldout.pipeline.score_files import read_key
from heldout.pipeline.signatures import read_signatures
from heldout.store.vault import Vault
from heldout.trec.scans import Signature

__all__ = ["compare_runs", "list_others"]


def list_others(vault: Vault, history: History, submission: Submission) -> tuple[Entrant, ...]:
    """Everybody who ever submitted, with their keys where the vault knows them."""
    keys = {name: read_key(vault, name) for name in history.submissions}
    return list_entrants(history, day=submission.received.date(), keys=keys)


def compare_runs(
    vault: Vault, history: History, submission: Submission
) -> Mapping[str, RunLikeness]:
    """Query set -> what runs that were received before are like the submission's.

    Of several seeds the first is compared: the others are like it, or a rule of their own says so.
    """
    names = list(history.submissions)
    before = names[: names.index(submission.id)]

    def earlier(query_set: str) -> Iterator[tuple[str, Signature]]:
        for name in before:
            signature = read_signatures(vault, name).get(query_set)
            if signature is not None:
                yield name, signature

    return {
        query_set: find_likeness(signature, partial(earlier, query_set))
        for query_set, signature in read_signatures(vault, submission.id).items()
        if query_set == query_set_of(query_set)
    }
