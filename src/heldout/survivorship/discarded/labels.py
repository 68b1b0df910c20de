"""Labels for discarded queries, and the record of what a file of labels is made of.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. One that just half of its annotators ticked is neither, and has no line.

Pseudo-labels are what a strong system puts first, for queries that nobody judged (Gupta and
MacAvaney 2022, §6). They say so: in the second column of each line, in the name of the file and in
its record, and are never put into one file with what people judged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heldout.ids import digest_bytes
from heldout.survivorship.discarded.judging import JudgedPassages

PSEUDO = "pseudo"
"""The second column of a line that nobody judged, and a part of its file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeLabels:
    """A file of labels and its record.

    Attributes:
        record: what it is made of: `name`, `made` (`human` or `pseudo`), how many `queries`,
            `answered` ones and `lines`, how many documents are `disputed` and have no line, what
            was `judged` or which `system` it is of, and the digest of the labels.
        qrels: its bytes.
    """

    record: Mapping[str, Any]
    qrels: bytes

    @property
    def name(self) -> str:
        """Of the file, without its suffix."""
        return str(self.record["name"])


def make_labels(
    name: str, judged: Mapping[str, JudgedPassages], source: Mapping[str, Any]
) -> MadeLabels:
    """Make a file of labels of what people judged, and its record.

    Queries are in the order of what people judged, documents of one by id; what they dispute has no
    line.

    Args:
        name: of the file.
        judged: query -> what annotators say of its passages.
        source: who judged what, for the record.
    """
    rows = [
        (query, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]
    disputed = sum(len(one.disputed) for one in judged.values())
    return _make(rows, mark="0", name=name, made="human", disputed=disputed, judged=source)


def make_pseudo_labels(
    name: str, pseudo: Iterable[tuple[str, str]], system: Mapping[str, Any]
) -> MadeLabels:
    """Make a file of pseudo-labels, each marked as what nobody judged, and its record.

    Args:
        name: of the labels beside which they lie; the file gets `.pseudo` behind it.
        pseudo: query and document of each.
        system: whose first documents these are, for the record.
    """
    rows = [(query, doc, 1) for query, doc in pseudo]
    return _make(rows, mark=PSEUDO, name=f"{name}.{PSEUDO}", made=PSEUDO, system=system)


def _make(rows: Sequence[tuple[str, str, int]], *, mark: str, **more: Any) -> MadeLabels:
    qrels = "".join(f"{query} {mark} {doc} {grade}\n" for query, doc, grade in rows).encode()
    record = {
        "schema": 1,
        "queries": len({query for query, _, _ in rows}),
        "answered": len({query for query, _, grade in rows if grade}),
        "lines": len(rows),
        "disputed": 0,
        "judged": None,
        "system": None,
        "qrels_sha256": digest_bytes(qrels),
    }
    return MadeLabels(record=record | more, qrels=qrels)
