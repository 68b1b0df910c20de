"""Labels for discarded queries, by people, and the record of what a file of labels is made of.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. One that just half of its annotators ticked is neither, and has no line. Nothing here
knows a system's opinion; that is `pseudo_labels`.
"""

from collections.abc import Mapping
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


LabelRows = list[tuple[str, str, str, int]]
"""Query, mark, document and grade of each line."""


def human_labels(judged: Mapping[str, Judged], source: LabelSource, *, name: str) -> MadeLabels:
    """Labels by people alone.

    Args:
        judged: query -> what annotators say of its passages.
        source: what they judged.
        name: of the file.
    """
    return make_labels(
        name, human_rows(judged), judged=source, system=None, disputed=count_disputed(judged)
    )


def human_rows(judged: Mapping[str, Judged]) -> LabelRows:
    """The lines of what people judged, by query, documents by id; none of what they dispute."""
    return [
        (query, _HUMAN, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]


def count_disputed(judged: Mapping[str, Judged]) -> int:
    """Documents that have no line because just half of their annotators ticked them."""
    return sum(len(one.disputed) for one in judged.values())


def make_labels(
    name: str,
    rows: LabelRows,
    *,
    judged: LabelSource | None,
    system: PseudoSource | None,
    disputed: int = 0,
) -> MadeLabels:
    """A file of labels and its record.

    Args:
        name: of the file, without its suffix.
        rows: its lines.
        judged: what people judged; `None` where nobody did.
        system: whose documents are among them; `None` where none are.
        disputed: documents that people judged and that have no line.
    """
    qrels = "".join(f"{query} {mark} {doc} {grade}\n" for query, mark, doc, grade in rows).encode()
    pseudo = sum(mark == PSEUDO for _, mark, _, _ in rows)
    record = LabelRecord(
        name=name,
        made="human and pseudo" if judged and system else "human" if judged else "pseudo",
        queries=len({row[0] for row in rows}),
        answered=len({query for query, _, _, grade in rows if grade}),
        human=len(rows) - pseudo,
        pseudo=pseudo,
        disputed=disputed,
        judged=judged,
        system=system,
        qrels_sha256=digest_bytes(qrels),
    )
    return MadeLabels(record=record, qrels=qrels)
