"""Pools: per query, the passages that may be its best answer.

The first documents of the runs and the known answer, each text once (shallow-pooling, section 4.1).
"""

import msgspec

__all__ = ["Candidate", "Pool"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage of a pool.

    Attributes:
        doc: its id; of several documents with one text the known answer's, else the least.
        text: shown to judges; empty where no texts were given.
        runs: whose tops hold it or a document of the same text, sorted.
        known: it is the known answer.
        same: other ids of the pool with the same normalised text, sorted.
    """

    doc: str
    text: str = ""
    runs: tuple[str, ...] = ()
    known: bool = False
    same: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The passages of one query.

    Attributes:
        query: its id.
        text: shown to judges.
        candidates: by id.
    """

    query: str
    text: str = ""
    candidates: tuple[Candidate, ...]

    @property
    def pairs(self) -> int:
        """How many pairs of passages there are."""
        size = len(self.candidates)
        return size * (size - 1) // 2
