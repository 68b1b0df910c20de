"""Judged rankings out of plain mappings, so that these tests need no file format."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from heldout.trec.ranking import JudgedRanking

needs_their_parser = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="ir_measures 0.4.3 parses names with ast.Num, now gone"
)


def from_list(documents: Sequence[str], judgments: Mapping[str, int]) -> JudgedRanking:
    """The ranking that lists these documents, best first."""
    hits = [(at, judgments[doc]) for at, doc in enumerate(documents, start=1) if doc in judgments]
    return JudgedRanking(
        positions=np.array([at for at, _ in hits], np.int64),
        grades=np.array([grade for _, grade in hits], np.int64),
        retrieved=len(documents),
    )


def scores_of(documents: Sequence[str]) -> dict[str, float]:
    """Scores without ties, exact in float32, that put the documents in this order."""
    return {document: float(len(documents) - at) for at, document in enumerate(documents)}


DOCUMENTS = [f"d{number}" for number in range(40)]
GRADES = st.sampled_from([-2, -1, 0, 0, 0, 1, 1, 2, 3, 4])
JUDGMENTS = st.dictionaries(st.sampled_from(DOCUMENTS), GRADES, min_size=1, max_size=30)
LISTS = st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=40, unique=True)

# trec_eval reads beyond its array where no judged document has grade level - 1 or more, and
# pytrec_eval can crash there; with this document, listed by no run, both are well defined
ANCHOR = "d40"


def anchored(judgments: Mapping[str, int], grade: int) -> dict[str, int]:
    """Judgments that trec_eval can take at relevance levels up to grade + 1."""
    return {**judgments, ANCHOR: grade}
