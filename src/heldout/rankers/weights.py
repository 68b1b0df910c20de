"""The files of a checkpoint, before any class of a library reads them.

A checkpoint is a folder or a published name. Weights lie in one file or in several with an index,
as safetensors or pickled; pickled ones are read as tensors only.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heldout.rankers.devices import import_neural

__all__ = [
    "compare_weights",
    "find_file",
    "read_list",
    "read_settings",
    "read_tensors",
    "weight_shapes",
]

_PRETRAINING = (
    "cls.",
    "discriminator_predictions.",
    "generator_",
    "lm_head",
    "lm_loss",
    "lm_predictions.",
    "mask_predictions.",
    "predictions.",
    "sop_classifier.",
    "vocab_",
)
"""Beginnings of layers that guess words: vectors of texts do not go through them."""

_POOLER = "pooler."
"""A layer over the first token that token vectors do not go through."""

_FILES = ("model.safetensors", "pytorch_model.bin")
"""Whole weights, by preference."""


def find_file(place: str, name: str) -> Path | None:
    """A file of a checkpoint, fetched where it is not here; None where there is none.

    Args:
        place: a folder or a published name.
        name: path inside it.

    Raises:
        OSError: the checkpoint itself is not there, or cannot be reached.
    """
    hub = import_neural("transformers.utils.hub")
    path = hub.cached_file(place, name, _raise_exceptions_for_missing_entries=False)
    return Path(path) if path else None


def read_settings(place: str, name: str) -> dict[str, Any]:
    """An object of JSON in a checkpoint; empty where it is absent or something else.

    Args:
        place: a folder or a published name.
        name: path inside it.
    """
    found = _read_json(place, name)
    return found if isinstance(found, dict) else {}


def read_list(place: str, name: str) -> list[Any]:
    """An array of JSON in a checkpoint, otherwise as `read_settings`."""
    found = _read_json(place, name)
    return found if isinstance(found, list) else []


def _read_json(place: str, name: str) -> object:
    path = find_file(place, name)
    with suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8")) if path else None
    return None


def weight_shapes(place: str) -> dict[str, tuple[int, ...]]:
    """Shape of each weight by its name; empty where no file of weights is found."""
    return {
        name: shape for path in _weight_files(place) for name, shape in _shapes_in(path).items()
    }


def read_tensors(place: str, names: Sequence[str], *, under: str = "") -> dict[str, Any]:
    """Those of the named weights that are there, as torch tensors.

    Args:
        place: a folder or a published name.
        names: of weights.
        under: the folder inside it where the files lie, with its slash.
    """
    return {
        name: tensor
        for path in _weight_files(place, under)
        for name, tensor in _tensors_in(path, names).items()
    }


def compare_weights(report: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Names of weights that an encoder leaves out, and of those that the checkpoint lacks.

    Only those that token vectors go through count.

    Args:
        report: what `from_pretrained` says of loading.
    """

    def used(names: Iterable[str]) -> list[str]:
        return sorted(
            name
            for name in names
            if not name.startswith(_PRETRAINING)
            and _POOLER not in name
            and not name.endswith("position_ids")
        )

    return used(report["unexpected_keys"]), used(report["missing_keys"])


def _weight_files(place: str, under: str = "") -> Iterator[Path]:
    """The files of the first layout that is there."""
    for name in _FILES:
        whole = find_file(place, f"{under}{name}")
        if whole:
            yield whole
            return
        parts = read_settings(place, f"{under}{name}.index.json").get("weight_map", {})
        if parts:
            for part in sorted(set(parts.values())):
                found = find_file(place, f"{under}{part}")
                if found:
                    yield found
            return


def _shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    if path.suffix == ".safetensors":
        with _open_safe(path) as weights:
            return {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118 - it is no mapping
    return {name: tuple(value.shape) for name, value in _unpickle(path, "meta").items()}


def _tensors_in(path: Path, names: Sequence[str]) -> dict[str, Any]:
    if path.suffix == ".safetensors":
        with _open_safe(path) as weights:
            there = set(weights.keys())
            return {name: weights.get_tensor(name) for name in names if name in there}
    found = _unpickle(path, "cpu")
    return {name: found[name].clone() for name in names if name in found}


def _open_safe(path: Path) -> Any:
    return import_neural("safetensors").safe_open(path, framework="pt")


def _unpickle(path: Path, device: str) -> dict[str, Any]:
    """Tensors by name; old files are no archives and cannot be read in place."""
    found = import_neural("torch").load(
        path, map_location=device, weights_only=True, mmap=zipfile.is_zipfile(path)
    )
    return {name: value for name, value in found.items() if hasattr(value, "shape")}
