"""Labels for discarded queries, and the record of what a file of labels is made of.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. One that just half of its annotators ticked is neither, and has no line.

Pseudo-labels are what a strong system puts first, for queries that nobody judged (Gupta and
MacAvaney 2022, §6). They say so: in the second column of each line, in the name of the file and in
its record. With what people judged they are put into one file only where that is asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from heldout.ids import Digest, digest_bytes
from heldout.survivorship.discarded.judging import Judged

PSEUDO = "pseudo"
"""The second column of a line that nobody judged, and a part of its file's name."""

_HUMAN = "0"


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


class LabelRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file of labels is made of.

    Attributes:
        schema: of this record.
        name: of the file, without its suffix.
        made: by people, by a system, or by both.
        queries: with a line.
        answered: with a line of grade 1.
        human: lines by people.
        pseudo: lines that nobody judged.
        disputed: documents without a line, since just half of their annotators ticked them.
        judged: what people judged; `None` without.
        system: whose documents were taken; `None` without.
        qrels_sha256: of the labels.
    """

    schema: Literal[1] = 1
    name: str
    made: Literal["human", "pseudo", "human and pseudo"]
    queries: int
    answered: int
    human: int
    pseudo: int
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

    record: LabelRecord
    qrels: bytes


def make_labels(
    name: str,
    judged: Mapping[str, Judged],
    source: LabelSource | None,
    *,
    pseudo: Iterable[tuple[str, str]] = (),
    system: PseudoSource | None = None,
) -> MadeLabels:
    """A file of labels and its record.

    Queries are in the order of what people judged, documents of one by id; what they dispute has no
    line. Then come pseudo-labels, each marked as what nobody judged.

    Args:
        name: of the file; it gets `.pseudo` behind it where there are pseudo-labels alone, and
            `.with-pseudo` where there are both.
        judged: query -> what annotators say of its passages.
        source: what they judged; `None` where nobody did.
        pseudo: query and document of each pseudo-label; what people judged gets none.
        system: whose first documents these are; `None` without pseudo-labels.

    Raises:
        ValueError: there are pseudo-labels, and no system.
    """
    rows = [
        (query, _HUMAN, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]
    human = len(rows)
    rows += [(query, PSEUDO, doc, 1) for query, doc in pseudo if query not in judged]
    if system is None and len(rows) > human:
        raise ValueError("pseudo-labels without the system that they are of")
    if system is not None:
        name = f"{name}.with-{PSEUDO}" if source else f"{name}.{PSEUDO}"
    qrels = "".join(f"{query} {mark} {doc} {grade}\n" for query, mark, doc, grade in rows).encode()
    record = LabelRecord(
        name=name,
        made="human and pseudo" if source and system else "human" if source else "pseudo",
        queries=len({row[0] for row in rows}),
        answered=len({query for query, _, _, grade in rows if grade}),
        human=human,
        pseudo=len(rows) - human,
        disputed=sum(len(one.disputed) for one in judged.values()),
        judged=source,
        system=system,
        qrels_sha256=digest_bytes(qrels),
    )
    return MadeLabels(record=record, qrels=qrels)
