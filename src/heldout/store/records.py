"""What a stored score looks like on disk: msgpack, behind a line that says so and a checksum.

Apart from the cache, since to load msgspec takes longer than to find that nothing is stored.
"""

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem
from heldout.ids import Digest
from heldout.measures.evaluate import Evaluation, MeasureScores
from heldout.measures.spec import Measure
from heldout.store.scored import Key, StoredRun
from heldout.trec.ranking import Order, Rankings
from heldout.trec.rows import Form
from heldout.trec.runs import Facts

__all__ = ["Record", "decode", "encode", "merge", "pack", "unpack"]

_KIND = b"heldout scores 1\n"
_DIGEST_BYTES = 32


class _Scores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`MeasureScores` on disk; arrays are little-endian."""

    mean: float | None
    why: str
    n: int
    without_relevant: int
    values: bytes
    defined: bytes


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`StoredRun` on disk, with its key; arrays are little-endian."""

    run: Digest
    key: Key
    form: Form | None
    order: Order
    notes: tuple[Problem, ...]
    counts: dict[str, int]
    facts: Facts
    queries: tuple[str, ...]
    starts: bytes
    positions: bytes
    grades: bytes
    retrieved: bytes
    evaluated: tuple[str, ...]
    unanswered: int
    ignored: int
    scores: dict[str, _Scores]


def pack(key: Key, found: StoredRun) -> Record:
    """A run as it is stored.

    Raises:
        ValueError: it was not measured, or queries were left out.
    """
    evaluation, rankings = found.evaluation, found.rankings
    if evaluation is None or evaluation.excluded:
        raise ValueError(found.digest)  # no part of the key says which queries were left out
    return Record(
        run=found.digest,
        key=key,
        form=found.form,
        order=found.order,
        notes=found.notes,
        counts=dict(found.counts),
        facts=found.facts,
        queries=rankings.queries,
        starts=_bytes(rankings.starts),
        positions=_bytes(rankings.positions),
        grades=_bytes(rankings.grades),
        retrieved=_bytes(rankings.retrieved),
        evaluated=evaluation.queries,
        unanswered=evaluation.unanswered,
        ignored=evaluation.ignored,
        scores={str(measure): _pack_scores(one) for measure, one in evaluation.scores.items()},
    )


def _pack_scores(scores: MeasureScores) -> _Scores:
    return _Scores(
        mean=scores.mean,
        why=scores.why,
        n=scores.n,
        without_relevant=scores.without_relevant,
        values=scores.values.astype("<f8").tobytes(),
        defined=scores.defined.tobytes(),
    )


def unpack(record: Record, measures: Sequence[Measure]) -> StoredRun:
    """A run as it was stored, with the scores on these measures, as far as they are there."""
    scores = {
        measure: _unpack_scores(measure, record.scores[str(measure)])
        for measure in measures
        if str(measure) in record.scores
    }
    return StoredRun(
        digest=record.run,
        form=record.form,
        order=record.order,
        notes=record.notes,
        counts=record.counts,
        facts=record.facts,
        rankings=Rankings(
            queries=record.queries,
            starts=_integers(record.starts),
            positions=_integers(record.positions),
            grades=_integers(record.grades),
            retrieved=_integers(record.retrieved),
        ),
        evaluation=Evaluation(
            queries=record.evaluated,
            scores=scores,
            unanswered=record.unanswered,
            ignored=record.ignored,
            excluded=0,
        ),
    )


def _unpack_scores(measure: Measure, stored: _Scores) -> MeasureScores:
    return MeasureScores(
        measure=measure,
        mean=stored.mean,
        why=stored.why,
        n=stored.n,
        without_relevant=stored.without_relevant,
        values=np.frombuffer(stored.values, dtype="<f8").astype(np.float64),
        defined=np.frombuffer(stored.defined, dtype=np.bool_).copy(),
    )


def _bytes(numbers: NDArray[np.int64]) -> bytes:
    return numbers.astype("<i8").tobytes()


def _integers(data: bytes) -> NDArray[np.int64]:
    return np.frombuffer(data, dtype="<i8").astype(np.int64)


def encode(record: Record) -> bytes:
    """The content of its file."""
    data = msgspec.msgpack.encode(record)
    return _KIND + hashlib.sha256(data).digest() + data


def decode(content: bytes, key: Key, run: Digest) -> Record | None:
    """The record in a file, if it is whole, ours, and of these."""
    head = len(_KIND) + _DIGEST_BYTES
    data = content[head:]
    if content[:head] != _KIND + hashlib.sha256(data).digest():
        return None
    try:
        record = msgspec.msgpack.decode(data, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if (record.run, record.key) == (run, key) else None


def merge(before: Record | None, record: Record) -> Record:
    """The record with the scores that were there before as well; where both have one, its own."""
    if before is None:
        return record
    return msgspec.structs.replace(record, scores={**before.scores, **record.scores})
