"""Vectors of texts, which queries and documents have by themselves: one each, or one per token.

Dense retrieval compares the vectors of a sentence encoder. Encoders say in modules.json how vectors
come out of tokens; a folder without it is a bare model, and is refused unless it is one of the
table whose tokens are averaged. Late interaction (ColBERT) finds for each token of a query its best
partner; sentence-transformers reads the layouts in which ColBERTs are published: its own, that of
PyLate and that of ColBERT itself.

Vectors of documents may be stored in a folder, so that a killed run goes on where it was.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, StoreError, printable
from heldout.files.durable import write_whole
from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.neural import checkpoints
from heldout.rankers.run import RankingTask, Run, TextPair, rank_scores

Floats = NDArray[np.float32]

EncodeTexts = Callable[[Sequence[str]], Iterable[Floats]]
"""From texts to the vectors of each: shape (dimensions,), or one per token."""

_SHARD = 256
"""Texts of a shard: what a kill loses, some seconds of work on one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The vectors of texts, one text after the other.

    Attributes:
        rows: float32, shape (vectors, dimensions).
        sizes: int64, shape (texts,): how many rows each text has.
    """

    rows: Floats
    sizes: NDArray[np.int64]


def encode_all(
    texts: Sequence[str],
    encode: EncodeTexts,
    *,
    digest: Digest,
    folder: str = "",
    progress: Progress = SILENT,
) -> Vectors:
    """Encode texts, those that an earlier run has left out.

    Args:
        texts: at least one.
        encode: gives every text at least one vector.
        digest: of the encoder: weights and settings.
        folder: where shards of vectors are stored, below the digest of encoder and texts, so that
            other encoders and texts never meet them; empty stores nothing.
        progress: counts the texts.

    Returns:
        The vectors in the order of the texts.

    Raises:
        StoreError: the folder cannot be written.
    """
    home = Path(folder) / _name(digest, texts) if folder else None
    parts = []
    with progress.steps("encoding", len(texts)) as done:
        for start in range(0, len(texts), _SHARD):
            chosen = texts[start : start + _SHARD]
            path = home / f"{start:09d}.npz" if home else None
            part = _read(path, len(chosen)) if path else None
            if part is None:
                part = _pack(encode(chosen))
                if path:
                    _write(path, part)
            parts.append(part)
            for _ in chosen:
                done()
    return Vectors(
        rows=np.concatenate([part.rows for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
    )


def _name(digest: Digest, texts: Sequence[str]) -> str:
    total = hashlib.sha256(f"{digest} {_SHARD}\n".encode())
    for text in texts:
        total.update(hashlib.sha256(text.encode()).digest())
    return total.hexdigest()[:32]


def _pack(found: Iterable[Floats]) -> Vectors:
    vectors = [np.atleast_2d(one) for one in found]
    sizes = np.array([len(rows) for rows in vectors], dtype=np.int64)
    return Vectors(rows=np.concatenate(vectors).astype(np.float32, copy=False), sizes=sizes)


def _read(path: Path, texts: int) -> Vectors | None:
    """Read a shard as it was written; None where it is absent or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            vectors = Vectors(rows=arrays["rows"], sizes=arrays["sizes"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    whole = vectors.sizes.shape == (texts,) and vectors.sizes.sum() == len(vectors.rows)
    return vectors if whole else None


def _write(path: Path, vectors: Vectors) -> None:
    content = io.BytesIO()
    np.savez(content, rows=vectors.rows, sizes=vectors.sizes)
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


class Encoder(Protocol):
    """Gives queries and documents their vectors."""

    @property
    def digest(self) -> Digest:
        """SHA-256 of all that the vectors depend on."""

    def encode_queries(self, texts: Sequence[str]) -> Iterable[Floats]:
        """Vectors of queries."""

    def encode_documents(self, texts: Sequence[str]) -> Iterable[Floats]:
        """Vectors of documents."""


def _rank(
    task: RankingTask,
    encoder: Encoder,
    compare: Callable[[Vectors], Callable[[Floats], NDArray[np.float64]]],
    *,
    folder: str,
    progress: Progress,
) -> Run:
    """Rank all documents by the scores that `compare` gives a query's vectors."""
    documents = sorted(task.documents)
    texts = [task.documents[document] for document in documents]
    encode = encoder.encode_documents
    found = encode_all(texts, encode, digest=encoder.digest, folder=folder, progress=progress)
    score, asked = compare(found), encoder.encode_queries(list(task.queries.values()))
    return {
        query: rank_scores(documents, score(vectors), task.depth)
        for query, vectors in zip(task.queries, asked, strict=True)
    }


Similarity = Literal["cosine", "dot"]

_MODULES = "modules.json"
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""What checkpoints call the prompt of a document, by preference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSettings(checkpoints.ModelSettings):
    """Which sentence encoder, and how it is run.

    Attributes:
        like: a name in `checkpoints` whose prefixes and similarity a folder takes over, being a
            copy of it or trained from it; empty goes by `model`, which a folder's path is not.
        similarity: `cosine` or `dot`; `auto` is that of the table, else of the checkpoint.
        query_prefix: set before each query; empty takes that of the table, else of the checkpoint.
        document_prefix: set before each document; likewise.
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
    """

    batch: int = 64
    like: str = ""
    similarity: Literal["auto", "cosine", "dot"] = "auto"
    query_prefix: str = ""
    document_prefix: str = ""
    vectors: str = ""

    def __post_init__(self) -> None:
        """Refuse an empty batch, and `like` naming what is no sentence encoder of the table."""
        known = [short for short, row in checkpoints.CHECKPOINTS.items() if row.method == "dense"]
        row = checkpoints.find_checkpoint(self.like) if self.like else None
        if self.batch < 1 or (self.like and (row is None or row.method != "dense")):
            message = f"wanted: batch >= 1, like one of {', '.join(known)}"
            raise ValueError(message)

    @property
    def known(self) -> checkpoints.Checkpoint | None:
        """The row of the table that says what the checkpoint may leave out."""
        return checkpoints.find_checkpoint(self.like or self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseEncoder(checkpoints.LoadedModel):
    """A loaded sentence encoder.

    Attributes:
        similarity: how vectors are compared; for `cosine` they have length one.
        query_prompt: set before each query; None leaves it to the checkpoint.
        document_prompt: set before each document; likewise.
    """

    similarity: Similarity
    query_prompt: str | None
    document_prompt: str | None

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """Vectors of queries, shape (texts, dimensions).

        Raises:
            InputError: code `model-scores`.
        """
        return self._encode(texts, self.query_prompt)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
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

    def _encode(self, texts: Sequence[str], prompt: str | None) -> Floats:
        if not texts:
            return np.zeros((0, 1), np.float32)
        with checkpoints.autocast(self.device, self.precision):
            vectors: Floats = self.model.encode(
                list(texts),
                prompt=prompt,
                batch_size=self.settings.batch,
                show_progress_bar=False,
            )
        vectors = np.asarray(vectors, dtype=np.float32)
        checkpoints.check_scores(vectors, self.settings.model)
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

    def compare(found: Vectors) -> Callable[[Floats], NDArray[np.float64]]:
        rows = found.rows.astype(np.float64)
        return lambda vector: rows @ vector.astype(np.float64)

    return _rank(task, encoder, compare, folder=folder, progress=progress)


def load_encoder(settings: DenseSettings) -> DenseEncoder:
    """Load an encoder onto its device.

    Texts are cut at the checkpoint's length.

    Raises:
        InputError: code `model-checkpoint` or `model-weights`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    known = settings.known
    query, document = (known.query_prefix, known.document_prefix) if known else ("", "")

    def read(source: str, device: str) -> dict[str, Any]:
        if known is None and checkpoints.find_file(source, _MODULES) is None:
            message = f"no {_MODULES}; like=contriever averages the vectors of tokens"
            raise ValueError(message)
        model = _load("SentenceTransformer", source, device)
        asked = settings.document_prefix or document
        return {
            "model": model,
            "similarity": _similarity(model, settings),
            "query_prompt": settings.query_prefix or query or _prompt(model, ("query",)),
            "document_prompt": asked or _prompt(model, _DOCUMENT_PROMPTS),
        }

    return checkpoints.load_model(DenseEncoder, settings, read, known)


def _load(kind: str, source: str, device: str) -> Any:
    """Load a model of sentence-transformers in float32, all of whose weights are there."""
    load = getattr(checkpoints.import_neural("sentence_transformers"), kind)
    model = checkpoints.load_complete(lambda: load(source, device=device, trust_remote_code=False))
    return model.float().eval()


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
    found = f"vectors compared by {printable(str(name))}"
    hint = "give similarity=cosine or similarity=dot to compare them so all the same"
    raise InputError.of("model-checkpoint", printable(settings.model), found, "cosine or dot", hint)


def _named_similarity(model: str) -> Similarity | None:
    """Return what a published name says, as of `…/multi-qa-mpnet-base-dot-v1`.

    Copies from before sentence-transformers kept the similarity do not say it, and would be
    taken for cosine. The path of a folder says nothing.
    """
    return "dot" if "-dot-" in model and not Path(model).exists() else None


TokenVectors = Floats
"""Vectors of length one, shape (tokens, dimensions)."""

_BLOCK = 4096
"""Documents compared with a query at once."""

_MODEL_TYPES = frozenset({"ColBERT", "MultiVectorEncoder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColbertSettings(checkpoints.ModelSettings):
    """Which ColBERT, and how it is run.

    Attributes:
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
    """

    model: str = "colbertv2"
    vectors: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Colbert(checkpoints.LoadedModel):
    """A loaded ColBERT."""

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
        with checkpoints.autocast(self.device, self.precision):
            found: list[TokenVectors] = encode(
                list(texts),
                batch_size=self.settings.batch,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return [checkpoints.check_scores(rows, self.settings.model) for rows in found]


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

    def compare(found: Vectors) -> Callable[[Floats], NDArray[np.float64]]:
        return lambda query: _all_scores(query, found)

    return _rank(task, colbert, compare, folder=colbert.settings.vectors, progress=progress)


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

    def read(source: str, device: str) -> dict[str, Any]:
        _check_colbert(source)
        return {"model": _load("MultiVectorEncoder", source, device)}

    return checkpoints.load_model(Colbert, settings, read)


def _check_colbert(source: str) -> None:
    """Refuse what is no ColBERT: the library would draw the layer that it lacks."""
    known = checkpoints.read_settings(source, "config_sentence_transformers.json")
    if "query_prefix" in known or known.get("model_type") in _MODEL_TYPES:
        return
    if "HF_ColBERT" not in (
        checkpoints.read_settings(source, "config.json").get("architectures") or ()
    ):
        raise ValueError("no settings of a ColBERT, which has a layer over its token vectors")
