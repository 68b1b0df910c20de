"""Late interaction (ColBERT): a vector per token, and for each of the query's its best partner.

ColBERTs are published in two layouts, with a linear layer over token vectors: that of ColBERT
itself (`linear.weight` beside the weights of the encoder, settings in `artifact.metadata`) and that
of PyLate (a folder per linear layer named by `modules.json`, settings in
`config_sentence_transformers.json`).
"""

import hashlib
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, printable
from heldout.ids import Digest
from heldout.rankers.neural.checkpoints import (
    DeviceChoice,
    DeviceName,
    Precision,
    PrecisionChoice,
    autocast,
    check_scores,
    choose_device,
    choose_precision,
    compare_weights,
    digest_tokenizer,
    digest_weights,
    import_neural,
    limit_length,
    load_checkpoint,
    map_batches,
    read_list,
    read_settings,
    read_tensors,
)
from heldout.rankers.neural.vectors import Encoding, Vectors, encode_all
from heldout.rankers.run import Run, Task, TextPair, rank_scores

SHORTEST = 8
"""Tokens that a text has room for at least."""

_LINEAR = "linear.weight"
_LENGTH, _QUERY_LENGTH = 220, 32
"""Tokens of documents and queries where a checkpoint says nothing."""

_IDENTITY = "torch.nn.modules.linear.Identity"
_SENTENCE_MODULES = ("Pooling", "LayerNorm", "WeightedLayerPooling")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColbertLayout:
    """What a checkpoint holds beside its encoder.

    Attributes:
        projection: weights of the linear layer, a tensor of shape (dimensions, hidden).
        query_marker: token set before a query; None where there is none.
        document_marker: token set before a document; likewise.
        silent: tokens of documents that get no vector: punctuation.
        length: tokens of a document at most, >= 8.
        query_length: tokens of a query, >= 8.
        fill: whether shorter queries are filled up with `[MASK]`.
        attend: whether the other tokens of a query see what fills it up.
    """

    projection: Any
    query_marker: int | None
    document_marker: int | None
    silent: frozenset[int]
    length: int
    query_length: int
    fill: bool = True
    attend: bool = False

    def __str__(self) -> str:
        """All but the weights, for a digest."""
        parts = (self.query_marker, self.document_marker, sorted(self.silent))
        return f"{parts} {self.length} {self.query_length} {self.fill} {self.attend}"


def read_layout(place: str, tokenizer: Any, model: str) -> ColbertLayout:
    """The layout of a checkpoint.

    Args:
        place: a folder or a published name.
        tokenizer: that of the checkpoint.
        model: its name, for messages.

    Raises:
        InputError: code `model-checkpoint`: it is no ColBERT, or one of another make.
    """
    if tokenizer.cls_token_id is None or tokenizer.mask_token_id is None:
        raise refuse_colbert(model, "a tokenizer without a token of the beginning or of a gap")
    linear = read_tensors(place, [_LINEAR])
    if linear:
        return _read_own(place, tokenizer, linear[_LINEAR], model)
    modules = read_list(place, "modules.json")
    settings = read_settings(place, "config_sentence_transformers.json")
    if "query_prefix" not in settings or "document_prefix" not in settings:
        raise refuse_colbert(model, f"no {_LINEAR}, and no settings of PyLate")
    return _read_pylate(place, tokenizer, modules, settings, model)


def refuse_colbert(model: str, found: str) -> InputError:
    """An error: what is there is no ColBERT that can be read."""
    return InputError.of(
        "model-checkpoint",
        printable(model),
        found,
        "a ColBERT: an encoder with a linear layer over its token vectors",
    )


def _read_own(place: str, tokenizer: Any, projection: Any, model: str) -> ColbertLayout:
    """The layout of ColBERT; what is not noted is as in its code."""
    noted = read_settings(place, "artifact.metadata")
    silent = string.punctuation if noted.get("mask_punctuation", True) else ""
    ids = tokenizer(list(silent), add_special_tokens=False)["input_ids"] if silent else []
    return ColbertLayout(
        projection=projection,
        query_marker=_token(tokenizer, noted.get("query_token_id") or "[unused0]", model),
        document_marker=_token(tokenizer, noted.get("doc_token_id") or "[unused1]", model),
        silent=frozenset(found[0] for found in ids),
        length=_count(noted, "doc_maxlen", _LENGTH, model),
        query_length=_count(noted, "query_maxlen", _QUERY_LENGTH, model),
        attend=bool(noted.get("attend_to_mask_tokens")),
    )


def _read_pylate(
    place: str,
    tokenizer: Any,
    modules: Sequence[Any],
    settings: Mapping[str, Any],
    model: str,
) -> ColbertLayout:
    """The layout of PyLate."""
    _refuse_unread(place, settings, model)
    words = settings.get("skiplist_words")
    silent = string.punctuation if words is None else words
    return ColbertLayout(
        projection=_compose(place, modules, model),
        query_marker=_token(tokenizer, settings["query_prefix"], model),
        document_marker=_token(tokenizer, settings["document_prefix"], model),
        silent=frozenset(tokenizer.convert_tokens_to_ids([str(word) for word in silent])),
        length=_count(settings, "document_length", _LENGTH, model),
        query_length=_count(settings, "query_length", _QUERY_LENGTH, model),
        fill=settings.get("do_query_expansion", True) is not False,
        attend=bool(settings.get("attend_to_expansion_tokens")),
    )


def _refuse_unread(place: str, settings: Mapping[str, Any], model: str) -> None:
    """Refuse settings of PyLate that we do not follow."""
    prompts = {str(text) for text in (settings.get("prompts") or {}).values() if text}
    if prompts - {settings["query_prefix"], settings["document_prefix"]}:
        raise refuse_colbert(model, "prompts before texts, beside the markers")
    if read_settings(place, "sentence_bert_config.json").get("do_lower_case"):
        raise refuse_colbert(model, "texts made small before the tokenizer")


def _compose(place: str, modules: Sequence[Any], model: str) -> Any:
    """The linear layers of a checkpoint as one."""
    kinds = {str(part["type"]).rpartition(".")[2]: part for part in modules if "type" in part}
    if not kinds.keys().isdisjoint(_SENTENCE_MODULES):
        raise refuse_colbert(model, "a sentence encoder, which has one vector per text")
    paths = [str(part["path"]) for part in modules if str(part["type"]).endswith(".Dense")]
    layers = [_linear(place, path, model) for path in paths]
    if not layers:
        raise refuse_colbert(model, "modules.json without a linear layer")
    return reduce(lambda inner, outer: outer @ inner, layers)


def _linear(place: str, path: str, model: str) -> Any:
    """Weights of a layer that is nothing but linear."""
    config = read_settings(place, f"{path}/config.json")
    activation = config.get("activation_function", _IDENTITY)
    if config.get("bias") or config.get("use_residual") or activation != _IDENTITY:
        raise refuse_colbert(model, f"{printable(path)}, which is more than linear")
    weights = read_tensors(place, [_LINEAR], under=f"{path}/")
    if not weights:
        raise refuse_colbert(model, f"no {_LINEAR} in {printable(path)}")
    return weights[_LINEAR]


def _token(tokenizer: Any, marker: object, model: str) -> int | None:
    """The id of a marker, which is one token; None where there is none."""
    if not marker:
        return None
    vocabulary = tokenizer.get_vocab()
    if marker not in vocabulary:
        raise refuse_colbert(model, f"a marker that is no token: {printable(str(marker)[:40])!r}")
    return int(vocabulary[marker])


def _count(noted: Mapping[str, Any], name: str, default: int, model: str) -> int:
    found = noted.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or found < SHORTEST:
        raise refuse_colbert(model, f"{name} {printable(repr(found)[:40])}, which is no length")
    return found


TokenVectors = NDArray[np.float32]
"""Vectors of length one, shape (tokens, dimensions)."""

_NOT_KEPT = Encoding()

_BLOCK = 4096
"""Documents compared with a query at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColbertSettings:
    """Which ColBERT, and how it is run.

    Attributes:
        model: a name in `checkpoints`, any other published one, or a folder.
        batch: texts encoded at once, >= 1.
        length: tokens of a document, >= 8; what is longer is cut; 0 goes by the checkpoint, or
            220 where it does not say.
        query_length: tokens of a query, >= 8; shorter ones are filled up with `[MASK]`, whose
            vectors count; 0 goes by the checkpoint, or 32.
        vectors: folder that keeps the documents' vectors for the next call; empty keeps none.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
    """

    model: str = "colbertv2"
    batch: int = 32
    length: int = 0
    query_length: int = 0
    vectors: str = ""
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch and texts without room."""
        lengths = [length for length in (self.length, self.query_length) if length]
        if self.batch < 1 or any(length < SHORTEST for length in lengths):
            message = f"wanted: batch >= 1, length and query_length >= {SHORTEST}, or 0"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Colbert:
    """A loaded ColBERT.

    Attributes:
        model: the encoder, on its device.
        layout: how texts are framed; the weights of its linear layer are on the device too.
        tokenizer: that of the checkpoint.
        device: where it runs.
        precision: of the encoder's matrix products.
        settings: what it was loaded with.
    """

    model: Any
    layout: ColbertLayout
    tokenizer: Any
    device: DeviceName
    precision: Precision
    settings: ColbertSettings

    @property
    def digest(self) -> Digest:
        """SHA-256 of the weights and of what else vectors depend on."""
        total = hashlib.sha256(f"{self.layout} ".encode())
        total.update(f"{self.device} {self.precision} {self.settings.batch} ".encode())
        total.update(self.layout.projection.cpu().numpy().tobytes())
        total.update(digest_tokenizer(self.tokenizer).encode())
        total.update(digest_weights(self.model).encode())
        return Digest(total.hexdigest())

    def encode_queries(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of queries, each of `query_length` tokens where queries are filled up.

        Raises:
            InputError: code `model-scores`.
        """
        layout = self.layout
        rows = self._frame(texts, layout.query_marker, layout.query_length)
        gaps = [layout.query_length - len(row) if layout.fill else 0 for row in rows]
        filler, seen = self.tokenizer.mask_token_id, int(layout.attend)
        ids = [row + [filler] * gap for row, gap in zip(rows, gaps, strict=True)]
        # What fills a query up has vectors itself, also where the others do not look at it.
        attended = [[1] * len(row) + [seen] * gap for row, gap in zip(rows, gaps, strict=True)]
        return self._encode(ids, attended, kept=[[True] * len(row) for row in ids])

    def encode_documents(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of documents; punctuation has none.

        Raises:
            InputError: code `model-scores`.
        """
        ids = self._frame(texts, self.layout.document_marker, self.layout.length)
        kept = [[token not in self.layout.silent for token in row] for row in ids]
        return self._encode(ids, [[1] * len(row) for row in ids], kept=kept)

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

    def _frame(self, texts: Sequence[str], marker: int | None, length: int) -> list[list[int]]:
        """Token ids of texts between their frame, cut to the length."""
        if not texts:
            return []
        tokenizer = self.tokenizer
        head = [tokenizer.cls_token_id] + ([] if marker is None else [marker])
        room = length - len(head) - 1
        found = tokenizer(list(texts), add_special_tokens=False, truncation=True, max_length=room)[
            "input_ids"
        ]
        return [[*head, *ids, tokenizer.sep_token_id] for ids in found]

    def _encode(
        self,
        ids: Sequence[list[int]],
        attended: Sequence[list[int]],
        *,
        kept: Sequence[list[bool]],
    ) -> list[TokenVectors]:
        """Vectors of the tokens that are kept."""
        torch = import_neural("torch")

        def compute(rows: Sequence[int]) -> Sequence[TokenVectors]:
            chosen = {
                "input_ids": [ids[row] for row in rows],
                "attention_mask": [attended[row] for row in rows],
            }
            inputs = self.tokenizer.pad(chosen, return_tensors="pt").to(self.device)
            with autocast(self.device, self.precision):
                hidden = self.model(**inputs).last_hidden_state.float()
            vectors = torch.nn.functional.normalize(hidden @ self.layout.projection.T, dim=-1)
            return [
                part[: len(ids[row])][kept[row]]
                for row, part in zip(rows, vectors.cpu().numpy(), strict=True)
            ]

        found = map_batches(compute, [len(row) for row in ids], batch=self.settings.batch)
        for rows in found:
            check_scores(rows, self.settings.model)
        return found


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


def rank_colbert(task: Task, colbert: Colbert, encoding: Encoding = _NOT_KEPT) -> Run:
    """Rank by MaxSim with every document: a first stage for small collections.

    Args:
        task: what to rank.
        colbert: the model. A document takes some 500 bytes of memory per token.
        encoding: where the vectors of documents are kept, and who hears of progress.

    Raises:
        InputError: code `model-scores`.
        StoreError: the folder cannot be written.

    Source: Khattab and Zaharia, SIGIR 2020.
    """
    documents = sorted(task.documents)
    texts = [task.documents[document] for document in documents]
    found = encode_all(texts, colbert.encode_documents, digest=colbert.digest, encoding=encoding)
    asked = colbert.encode_queries(list(task.queries.values()))
    return {
        query: rank_scores(documents, _all_scores(rows, found), task.depth)
        for query, rows in zip(task.queries, asked, strict=True)
    }


def _all_scores(query: TokenVectors, found: Vectors) -> NDArray[np.float64]:
    """MaxSim of all documents, some at a time."""
    count = len(found.starts) - 1
    blocks = [range(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]
    return np.concatenate([_block_scores(query, found, block) for block in blocks])


def _block_scores(query: TokenVectors, found: Vectors, block: range) -> NDArray[np.float64]:
    first, last = found.starts[block.start], found.starts[block.stop]
    starts = found.starts[block.start : block.stop] - first
    return max_similarity(query, found.rows[first:last], starts)


def load_colbert(settings: ColbertSettings) -> Colbert:
    """Load a ColBERT onto its device.

    Raises:
        InputError: code `model-checkpoint`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    device = choose_device(settings.device)
    return load_checkpoint(settings.model, lambda place: _load(place, settings, device))


def _load(place: str, settings: ColbertSettings, device: DeviceName) -> Colbert:
    torch, transformers = import_neural("torch"), import_neural("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    layout = read_layout(place, tokenizer, settings.model)
    model, report = transformers.AutoModel.from_pretrained(
        place, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
    )
    left_out, missing = compare_weights(report)
    if missing:
        raise refuse_colbert(settings.model, f"{len(missing)} weights missing")
    if set(left_out) - {_LINEAR}:
        raise refuse_colbert(settings.model, f"{len(left_out)} weights of no layer that is read")
    # Token vectors do not go through it, and where the checkpoint lacks it, it is drawn.
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return Colbert(
        model=model.to(device).eval(),
        layout=replace(
            layout,
            projection=layout.projection.float().to(device),
            length=limit_length(model.config, tokenizer, settings.length or layout.length),
            query_length=limit_length(
                model.config, tokenizer, settings.query_length or layout.query_length
            ),
        ),
        tokenizer=tokenizer,
        device=device,
        precision=choose_precision(settings.precision, device),
        settings=settings,
    )
