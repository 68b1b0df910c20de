"""Late interaction (ColBERT): a vector per token, and for each of the query's its best partner.

sentence-transformers reads the layouts in which ColBERTs are published: its own, that of PyLate and
that of ColBERT itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.neural.checkpoints import (
    DeviceChoice,
    DeviceName,
    Precision,
    PrecisionChoice,
    autocast,
    check_scores,
    choose_device,
    choose_precision,
    digest_loaded,
    import_neural,
    load_checkpoint,
    load_complete,
    read_settings,
)
from heldout.rankers.neural.vectors import Vectors, encode_all
from heldout.rankers.run import RankingTask, Run, TextPair, rank_scores

TokenVectors = NDArray[np.float32]
"""Vectors of length one, shape (tokens, dimensions)."""

_BLOCK = 4096
"""Documents compared with a query at once."""

_MODEL_TYPES = frozenset({"ColBERT", "MultiVectorEncoder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColbertSettings:
    """Which ColBERT, and how it is run.

    Attributes:
        model: a name in `checkpoints`, any other published one, or a folder.
        batch: texts encoded at once, >= 1.
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
    """

    model: str = "colbertv2"
    batch: int = 32
    vectors: str = ""
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch."""
        if self.batch < 1:
            raise ValueError("wanted: batch >= 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Colbert:
    """A loaded ColBERT.

    Attributes:
        model: of sentence-transformers, on its device.
        device: where it runs.
        precision: of its matrix products.
        settings: what it was loaded with.
        digest: SHA-256 of all that its scores depend on, as it was loaded.
    """

    model: Any
    device: DeviceName
    precision: Precision
    settings: ColbertSettings
    digest: Digest

    def encode_queries(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of queries, filled up as the checkpoint says.

        Raises:
            InputError: code `model-scores`.
        """
        return self._encode(self.model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of documents; what the checkpoint leaves out has none.

        Raises:
            InputError: code `model-scores`.
        """
        return self._encode(self.model.encode_document, texts)

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """MaxSim of each pair: a `PairScorer`.

        Raises:
            InputError: code `model-scores`.
        """
        queries = list(dict.fromkeys(pair.query for pair in pairs))
        asked = dict(zip(queries, self.encode_queries(queries), strict=True))
        found = self.encode_documents([pair.document for pair in pairs])
        starts = np.array([0])
        values = [
            max_similarity(asked[pair.query], rows, starts)[0]
            for pair, rows in zip(pairs, found, strict=True)
        ]
        return np.array(values, dtype=np.float64)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> list[TokenVectors]:
        if not texts:
            return []
        with autocast(self.device, self.precision):
            found: list[TokenVectors] = encode(
                list(texts),
                batch_size=self.settings.batch,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return [check_scores(rows, self.settings.model) for rows in found]


def max_similarity(
    query: TokenVectors, rows: TokenVectors, starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """MaxSim: for each token of the query its most similar token of a document, summed.

    Args:
        query: shape (tokens, dimensions).
        rows: tokens of all documents, one document after the other.
        starts: first row of each document; each has at least one.

    Returns:
        float64, shape (documents,).

    Source: Khattab and Zaharia, SIGIR 2020, section 3.3.
    """
    best = np.maximum.reduceat(query @ rows.T, starts, axis=1)
    total: NDArray[np.float64] = best.sum(axis=0, dtype=np.float64)
    return total


def rank_colbert(task: RankingTask, colbert: Colbert, progress: Progress = SILENT) -> Run:
    """Rank by MaxSim with every document: a first stage for small collections.

    Args:
        task: what to rank.
        colbert: the model. A document takes some 500 bytes of memory per token.
        progress: counts the documents.

    Raises:
        InputError: code `model-scores`.
        StoreError: the folder cannot be written.

    Source: Khattab and Zaharia, SIGIR 2020.
    """
    documents = sorted(task.documents)
    texts = [task.documents[document] for document in documents]
    found = encode_all(
        texts,
        colbert.encode_documents,
        digest=colbert.digest,
        folder=colbert.settings.vectors,
        progress=progress,
    )
    asked = colbert.encode_queries(list(task.queries.values()))
    return {
        query: rank_scores(documents, _all_scores(rows, found), task.depth)
        for query, rows in zip(task.queries, asked, strict=True)
    }


def _all_scores(query: TokenVectors, found: Vectors) -> NDArray[np.float64]:
    """MaxSim of all documents, some at a time."""
    scores, first = [], 0
    for start in range(0, len(found.sizes), _BLOCK):
        starts = np.cumsum([0, *found.sizes[start : start + _BLOCK]])
        scores.append(max_similarity(query, found.rows[first : first + starts[-1]], starts[:-1]))
        first += starts[-1]
    return np.concatenate(scores)


def load_colbert(settings: ColbertSettings) -> Colbert:
    """Load a ColBERT onto its device.

    Raises:
        InputError: code `model-checkpoint`: among others, it is no ColBERT.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    device = choose_device(settings.device)
    return load_checkpoint(settings.model, lambda place: _load(place, settings, device))


def _load(place: str, settings: ColbertSettings, device: DeviceName) -> Colbert:
    library = import_neural("sentence_transformers")
    _check_colbert(place)
    model = load_complete(
        lambda: library.MultiVectorEncoder(place, device=device, trust_remote_code=False)
    )
    precision = choose_precision(settings.precision, device)
    return Colbert(
        model=model.float().eval(),
        device=device,
        precision=precision,
        settings=settings,
        digest=digest_loaded(settings, device, precision),
    )


def _check_colbert(place: str) -> None:
    """Refuse what is no ColBERT: the library would draw the layer that it lacks."""
    known = read_settings(place, "config_sentence_transformers.json")
    if "query_prefix" in known or known.get("model_type") in _MODEL_TYPES:
        return
    if "HF_ColBERT" not in (read_settings(place, "config.json").get("architectures") or ()):
        raise ValueError("no settings of a ColBERT, which has a layer over its token vectors")
