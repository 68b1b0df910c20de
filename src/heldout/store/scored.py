"""A run that was scored, and what its scores depend on."""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.errors import Problem
from heldout.ids import Digest
from heldout.measures.evaluate import Evaluation
from heldout.trec.ranking import Order, Rankings
from heldout.trec.rows import Form
from heldout.trec.scans import Facts

__all__ = ["Key", "StoredRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """All that a record depends on, but the run.

    Attributes:
        qrels: SHA-256 of the judgments' bytes.
        order: the order asked for, `None` for the one that fits the run's columns.
        code: what computes, as `code_version` gives it.
    """

    qrels: Digest
    order: Order | None
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What scoring a run gave.

    Attributes:
        digest: SHA-256 of the run's bytes.
        form: how its lines are laid out.
        order: the order of its documents.
        notes: what is odd about it, without the path, which may be another today.
        counts: code -> how many there are.
        facts: what is odd without being worth a note.
        rankings: places and grades of the judged documents.
        evaluation: its scores, as far as they are known; `None` before it was measured.
    """

    digest: Digest
    form: Form | None
    order: Order
    notes: tuple[Problem, ...]
    counts: Mapping[str, int]
    facts: Facts
    rankings: Rankings
    evaluation: Evaluation | None = None
