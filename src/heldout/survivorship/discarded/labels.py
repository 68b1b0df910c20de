"""Labels for discarded queries, and the record of what a file of labels is made of.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. One that just half of its annotators ticked is neither, and has no line.

Pseudo-labels are what a strong system puts first, for queries that nobody judged (Gupta and
MacAvaney 2022, §6). They say so: in the second column of each line, in the name of the file and in
its record, and are never put into one file with what people judged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from heldout.ids import Digest, digest_bytes
from heldout.survivorship.discarded.judging import JudgedPassages

PSEUDO = "pseudo"
"""The second column of a line that nobody judged, and a part of its file's name."""


class LabelSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people judged.

    Attributes:
        annotators: their names, sorted.
        depth: of every system that was pooled.
        systems: that were pooled.
        questions_sha256: of what was shown.
        answers_sha256: of what was answered.
    """

    annotators: tuple[str, ...]
    depth: int
    systems: tuple[str, ...]
    questions_sha256: Digest
    answers_sha256: Digest


class PseudoSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose first documents are taken for answers.

    Attributes:
        system: the run's name.
        run_sha256: of its bytes.
        depth: how many of its first documents.
    """

    system: str
    run_sha256: Digest
    depth: int


class DiscardedLabelRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file of labels is made of.

    Attributes:
        schema: of this record.
        name: of the file, without its suffix.
        made: by people, or by a system.
        queries: with a line.
        answered: with a line of grade 1.
        lines: how many.
        disputed: documents without a line, since just half of their annotators ticked them.
        judged: what people judged; `None` without.
        system: whose documents were taken; `None` without.
        qrels_sha256: of the labels.
    """

    schema: Literal[1] = 1
    name: str
    made: Literal["human", "pseudo"]
    queries: int
    answered: int
    lines: int
    disputed: int
    judged: LabelSource | None
    system: PseudoSource | None
    qrels_sha256: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeLabels:
    """A file of labels and its record.

    Attributes:
        record: what it is made of.
        qrels: its bytes.
    """

    record: DiscardedLabelRecord
    qrels: bytes


def make_labels(name: str, judged: Mapping[str, JudgedPassages], source: LabelSource) -> MadeLabels:
    """Make a file of labels of what people judged, and its record.

    Queries are in the order of what people judged, documents of one by id; what they dispute has no
    line.

    Args:
        name: of the file.
        judged: query -> what annotators say of its passages.
        source: what they judged.
    """
    rows = [
        (query, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]
    disputed = sum(len(one.disputed) for one in judged.values())
    return _make(name, "human", rows, disputed=disputed, judged=source)


def make_pseudo_labels(
    name: str, pseudo: Iterable[tuple[str, str]], system: PseudoSource
) -> MadeLabels:
    """Make a file of pseudo-labels, each marked as what nobody judged, and its record.

    Args:
        name: of the labels beside which they lie; the file gets `.pseudo` behind it.
        pseudo: query and document of each.
        system: whose first documents these are.
    """
    rows = [(query, doc, 1) for query, doc in pseudo]
    return _make(f"{name}.{PSEUDO}", "pseudo", rows, system=system)


def _make(
    name: str,
    made: Literal["human", "pseudo"],
    rows: Sequence[tuple[str, str, int]],
    *,
    disputed: int = 0,
    judged: LabelSource | None = None,
    system: PseudoSource | None = None,
) -> MadeLabels:
    mark = "0" if made == "human" else PSEUDO
    qrels = "".join(f"{query} {mark} {doc} {grade}\n" for query, doc, grade in rows).encode()
    record = DiscardedLabelRecord(
        name=name,
        made=made,
        queries=len({query for query, _, _ in rows}),
        answered=len({query for query, _, grade in rows if grade}),
        lines=len(rows),
        disputed=disputed,
        judged=judged,
        system=system,
        qrels_sha256=digest_bytes(qrels),
    )
    return MadeLabels(record=record, qrels=qrels)
