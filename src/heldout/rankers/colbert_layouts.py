"""How ColBERTs are published: the linear layer over token vectors, and how texts are framed.

Two layouts: that of ColBERT itself (`linear.weight` beside the weights of the encoder, settings in
`artifact.metadata`) and that of PyLate (a folder per linear layer named by `modules.json`, settings
in `config_sentence_transformers.json`).
"""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from heldout.errors import InputError, Problem, printable
from heldout.rankers.weights import read_list, read_settings, read_tensors

__all__ = ["SHORTEST", "ColbertLayout", "read_layout", "refuse_colbert"]

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
    return InputError(
        Problem(
            code="model-checkpoint",
            path=printable(model),
            found=found,
            expected="a ColBERT: an encoder with a linear layer over its token vectors",
        )
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
    """Refuse what PyLate can be told and we do not follow."""
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
