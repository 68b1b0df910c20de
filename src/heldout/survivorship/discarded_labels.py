"""Labels for discarded queries, by people; and pseudo-labels, which say that they are.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. A pseudo-label is the first document of a strong system, and nobody looked at it: its
lines name `pseudo` in their second column, its file has it in its name, and its record says whose
it is. The two are put into one file only where that is asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from heldout.ids import Digest, digest_bytes
from heldout.survivorship.passage_judging import Judged
from heldout.trec.tops import Tops

__all__ = [
    "PSEUDO",
    "LabelRecord",
    "LabelSource",
    "MadeLabels",
    "PseudoSource",
    "human_labels",
    "mixed_labels",
    "pseudo_labels",
]

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


_Rows = list[tuple[str, str, str, int]]


def human_labels(judged: Mapping[str, Judged], source: LabelSource, *, name: str) -> MadeLabels:
    """Labels by people alone.

    Args:
        judged: query -> what annotators say of its passages.
        source: what they judged.
        name: of the file.
    """
    return _made(name, _human_rows(judged), judged=source, system=None)


def pseudo_labels(
    tops: Tops, queries: Iterable[str], source: PseudoSource, *, name: str
) -> MadeLabels:
    """The first documents of a system as answers, marked as what nobody judged.

    Args:
        tops: query -> first documents of the system.
        queries: those that are to have such labels; none that people judged.
        source: whose they are.
        name: of the file, which gets `.pseudo` behind it.
    """
    rows = _pseudo_rows(tops, queries, source.depth)
    return _made(f"{name}.{PSEUDO}", rows, judged=None, system=source)


def mixed_labels(
    judged: Mapping[str, Judged],
    source: LabelSource,
    tops: Tops,
    queries: Iterable[str],
    system: PseudoSource,
    *,
    name: str,
) -> MadeLabels:
    """Both in one file, each line marked: what people judged, and pseudo-labels for the rest.

    Args:
        judged: query -> what annotators say of its passages.
        source: what they judged.
        tops: query -> first documents of the system.
        queries: those that may have pseudo-labels; what people judged gets none.
        system: whose they are.
        name: of the file, which gets `.with-pseudo` behind it.
    """
    rest = [query for query in queries if query not in judged]
    rows = _human_rows(judged) + _pseudo_rows(tops, rest, system.depth)
    return _made(f"{name}.with-{PSEUDO}", rows, judged=source, system=system)


def _human_rows(judged: Mapping[str, Judged]) -> _Rows:
    return [
        (query, _HUMAN, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]


def _pseudo_rows(tops: Tops, queries: Iterable[str], depth: int) -> _Rows:
    return [(query, PSEUDO, doc, 1) for query in queries for doc in tops.get(query, ())[:depth]]


def _made(
    name: str, rows: _Rows, *, judged: LabelSource | None, system: PseudoSource | None
) -> MadeLabels:
    qrels = "".join(f"{query} {mark} {doc} {grade}\n" for query, mark, doc, grade in rows).encode()
    pseudo = sum(mark == PSEUDO for _, mark, _, _ in rows)
    record = LabelRecord(
        name=name,
        made="human and pseudo" if judged and system else "human" if judged else "pseudo",
        queries=len({row[0] for row in rows}),
        answered=len({query for query, _, _, grade in rows if grade}),
        human=len(rows) - pseudo,
        pseudo=pseudo,
        judged=judged,
        system=system,
        qrels_sha256=digest_bytes(qrels),
    )
    return MadeLabels(record=record, qrels=qrels)
