"""Where neural models run: the device, the precision, and batches that fit into its memory."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from heldout.errors import SetupError

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
    """Whether a processor computes in bfloat16 itself.

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
    """One result per text, computed in batches of similar length, the longest first.

    Texts of a batch are padded to its longest, so it ends where they are less than half as long.
    Where a GPU's memory is too small for a batch, it and all later ones are halved.

    Args:
        compute: from the numbers of some texts to one row each; called without gradients.
        lengths: of each text, in any unit.
        batch: texts computed at once at most, >= 1.

    Returns:
        A row per text, in the order of `lengths`.
    """
    torch = import_neural("torch")
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    rows: dict[int, NDArray[Any]] = {}
    done = 0
    with torch.inference_mode():
        while done < len(order):
            chosen = _alike(order[done : done + batch], lengths)
            try:
                rows.update(zip(chosen, compute(chosen), strict=True))
            except RuntimeError as error:
                if batch == 1 or not _out_of_memory(error):
                    raise
                batch = max(1, batch // 2)
            else:
                done += len(chosen)
    return [rows[row] for row in range(len(lengths))]


def _alike(rows: Sequence[int], lengths: Sequence[int]) -> Sequence[int]:
    """The first rows, as long as they are at least half as long as the very first."""
    return list(takewhile(lambda row: 2 * lengths[row] >= lengths[rows[0]], rows))


def _out_of_memory(error: RuntimeError) -> bool:
    """Whether a GPU's memory was too small; torch says it in several classes."""
    return "out of memory" in str(error)
