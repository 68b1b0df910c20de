"""Dense retrieval: documents and queries as single vectors of a sentence encoder.

Encoders say in modules.json how vectors come out of tokens. A folder without it is a bare model; it
is refused unless it is one of the table whose tokens are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, printable
from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.neural.checkpoints import (
    CHECKPOINTS,
    MINILM,
    Checkpoint,
    DeviceChoice,
    DeviceName,
    Precision,
    PrecisionChoice,
    autocast,
    check_scores,
    choose_device,
    choose_precision,
    digest_loaded,
    find_checkpoint,
    find_file,
    import_neural,
    load_checkpoint,
    load_complete,
)
from heldout.rankers.neural.vectors import encode_all
from heldout.rankers.run import RankingTask, Run, TextPair, rank_scores

_MODULES = "modules.json"


Similarity = Literal["cosine", "dot"]
Vectors = NDArray[np.float32]

_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""What checkpoints call the prompt of a document, by preference."""


class Encoder(Protocol):
    """Gives texts vectors whose inner product says how well they fit."""

    @property
    def digest(self) -> Digest:
        """SHA-256 of all that the vectors depend on."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries, shape (texts, dimensions)."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of documents, shape (texts, dimensions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSettings:
    """Which encoder, and how it is run.

    Attributes:
        model: a name in `checkpoints`, any other published sentence-transformers model, or a
            folder.
        batch: texts encoded at once, >= 1.
        like: a name in `checkpoints` whose prefixes and similarity a folder takes over, being a
            copy of it or trained from it; empty goes by `model`, which a folder's path is not.
        similarity: `cosine` or `dot`; `auto` is that of the table, else of the checkpoint.
        query_prefix: set before each query; empty takes that of the table, else of the checkpoint.
        document_prefix: set before each document; likewise.
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
    """

    model: str = MINILM
    batch: int = 64
    like: str = ""
    similarity: Literal["auto", "cosine", "dot"] = "auto"
    query_prefix: str = ""
    document_prefix: str = ""
    vectors: str = ""
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch, and `like` naming what is no sentence encoder of the table."""
        known = [short for short, row in CHECKPOINTS.items() if row.method == "dense"]
        row = find_checkpoint(self.like) if self.like else None
        if self.batch < 1 or (self.like and (row is None or row.method != "dense")):
            message = f"wanted: batch >= 1, like one of {', '.join(known)}"
            raise ValueError(message)

    @property
    def known(self) -> Checkpoint | None:
        """The row of the table that says what the checkpoint may leave out."""
        return find_checkpoint(self.like or self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseEncoder:
    """A loaded encoder.

    Attributes:
        model: of sentence-transformers, on its device.
        similarity: how vectors are compared; for `cosine` they have length one.
        query_prompt: set before each query; None leaves it to the checkpoint.
        document_prompt: set before each document; likewise.
        device: where it runs.
        precision: of its matrix products.
        settings: what it was loaded with.
        digest: SHA-256 of all that its scores depend on, as it was loaded.
    """

    model: Any
    similarity: Similarity
    query_prompt: str | None
    document_prompt: str | None
    device: DeviceName
    precision: Precision
    settings: DenseSettings
    digest: Digest

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries, shape (texts, dimensions).

        Raises:
            InputError: code `model-scores`.
        """
        return self._encode(texts, self.query_prompt)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of documents, shape (texts, dimensions).

        Raises:
            InputError: code `model-scores`.
        """
        return self._encode(texts, self.document_prompt)

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """Inner products of the vectors of each pair: a `PairScorer`.

        Raises:
            InputError: code `model-scores`.
        """
        queries = list(dict.fromkeys(pair.query for pair in pairs))
        rows = {query: row for row, query in enumerate(queries)}
        asked = self.encode_queries(queries)[[rows[pair.query] for pair in pairs]]
        found = self.encode_documents([pair.document for pair in pairs])
        products: NDArray[np.float64] = (asked.astype(np.float64) * found).sum(axis=1)
        return products

    def _encode(self, texts: Sequence[str], prompt: str | None) -> Vectors:
        if not texts:
            return np.zeros((0, 1), np.float32)
        with autocast(self.device, self.precision):
            vectors: Vectors = self.model.encode(
                list(texts),
                prompt=prompt,
                batch_size=self.settings.batch,
                show_progress_bar=False,
            )
        vectors = np.asarray(vectors, dtype=np.float32)
        check_scores(vectors, self.settings.model)
        if self.similarity == "dot":
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def rank_dense(
    task: RankingTask, encoder: Encoder, *, folder: str = "", progress: Progress = SILENT
) -> Run:
    """Rank by the inner product of vectors.

    Args:
        task: what to rank.
        encoder: gives both sides their vectors.
        folder: where the vectors of documents are stored; empty stores none.
        progress: counts the documents.

    Raises:
        StoreError: the folder cannot be written.

    Source: Reimers and Gurevych, EMNLP 2019.
    """
    documents = sorted(task.documents)
    texts = [task.documents[document] for document in documents]

    def encode(chosen: Sequence[str]) -> Sequence[Vectors]:
        return [row[np.newaxis] for row in encoder.encode_documents(chosen)]

    found = encode_all(texts, encode, digest=encoder.digest, folder=folder, progress=progress)
    vectors = found.rows.astype(np.float64)
    asked = encoder.encode_queries(list(task.queries.values())).astype(np.float64)
    return {
        query: rank_scores(documents, vectors @ vector, task.depth)
        for query, vector in zip(task.queries, asked, strict=True)
    }


def load_encoder(settings: DenseSettings) -> DenseEncoder:
    """Load an encoder onto its device.

    Texts are cut at the checkpoint's length.

    Raises:
        InputError: code `model-checkpoint` or `model-weights`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    device = choose_device(settings.device)
    return load_checkpoint(settings.model, lambda place: _load(place, settings, device))


def _load(place: str, settings: DenseSettings, device: DeviceName) -> DenseEncoder:
    library = import_neural("sentence_transformers")
    if settings.known is None and find_file(place, _MODULES) is None:
        message = f"no {_MODULES}; like=contriever averages the vectors of tokens"
        raise ValueError(message)
    model = load_complete(
        lambda: library.SentenceTransformer(place, device=device, trust_remote_code=False)
    )
    known = settings.known
    query, document = (known.query_prefix, known.document_prefix) if known else ("", "")
    precision = choose_precision(settings.precision, device)
    return DenseEncoder(
        model=model.float().eval(),
        similarity=_similarity(model, settings),
        query_prompt=settings.query_prefix or query or _prompt(model, ("query",)),
        document_prompt=settings.document_prefix or document or _prompt(model, _DOCUMENT_PROMPTS),
        device=device,
        precision=precision,
        settings=settings,
        digest=digest_loaded(settings, device, precision, known),
    )


def _prompt(model: Any, names: Sequence[str]) -> str | None:
    """The first prompt of these names that the checkpoint has."""
    return next((model.prompts[name] for name in names if name in model.prompts), None)


def _similarity(model: Any, settings: DenseSettings) -> Similarity:
    """As asked, else of the table, else of the checkpoint."""
    table = settings.known.similarity if settings.known else None
    name = table or _named_similarity(settings.model) or model.similarity_fn_name
    name = name if settings.similarity == "auto" else settings.similarity
    if name in {"cosine", "dot"}:
        return "dot" if name == "dot" else "cosine"
    raise InputError.of(
        "model-checkpoint",
        printable(settings.model),
        f"vectors compared by {printable(str(name))}",
        "cosine or dot",
        "give similarity=cosine or similarity=dot to compare them so all the same",
    )


def _named_similarity(model: str) -> Similarity | None:
    """Return what a published name says, as of `…/multi-qa-mpnet-base-dot-v1`.

    Copies from before sentence-transformers kept the similarity do not say it, and would be
    taken for cosine. The path of a folder says nothing.
    """
    return "dot" if "-dot-" in model and not Path(model).exists() else None
