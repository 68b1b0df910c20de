"""Devices, precision and batches."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from heldout.errors import SetupError
from heldout.rankers.neural.checkpoints import (
    choose_device,
    choose_precision,
    has_bfloat16,
    map_batches,
)

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("neural")]


def test_flags_tell_who_computes_in_bfloat16() -> None:
    assert has_bfloat16("model name : x\nflags\t\t: fpu avx512f avx512_bf16 pni\n")
    assert has_bfloat16("Features\t: fp asimd bf16\n")
    assert not has_bfloat16("flags\t\t: fpu avx512f avx512_bf16x\n")
    assert not has_bfloat16("model name : the avx512_bf16 one\n")
    assert not has_bfloat16("")


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == "cpu"
    with pytest.raises(SetupError, match=r"no device 'cuda' .* finds here: cpu"):
        choose_device("cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == "cuda"


def test_precision_is_what_the_device_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    assert choose_precision("float16", "cpu") == "float16"
    assert choose_precision("auto", "mps") == "float32"
    for there, precision in ((True, "bfloat16"), (False, "float16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda there=there: there)
        assert choose_precision("auto", "cuda") == precision


def test_batches_are_of_similar_length_and_rows_come_back_in_order() -> None:
    seen: list[list[int]] = []

    def compute(rows: Sequence[int]) -> NDArray[np.float64]:
        seen.append(list(rows))
        return np.array(rows, dtype=np.float64)

    assert map_batches(compute, [3, 9, 1, 9, 5], batch=2) == [0, 1, 2, 3, 4]
    assert seen == [[1, 3], [4, 0], [2]]
    assert map_batches(compute, [], batch=2) == []


def test_a_batch_is_never_padded_to_more_than_twice_a_text() -> None:
    lengths = [0, 500, 40, 45, 39, 20, 260, 19, 0]
    seen: list[list[int]] = []

    def compute(rows: Sequence[int]) -> NDArray[np.float64]:
        seen.append([lengths[row] for row in rows])
        return np.array(rows, dtype=np.float64)

    assert map_batches(compute, lengths, batch=32) == list(range(9))
    assert seen == [[500, 260], [45, 40, 39], [20, 19], [0, 0]]


def test_a_batch_too_large_for_the_memory_is_halved_until_it_fits() -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    sizes: list[int] = []

    def compute(rows: Sequence[int]) -> NDArray[np.float64]:
        sizes.append(len(rows))
        if len(rows) > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return np.array(rows, dtype=np.float64)

    assert map_batches(compute, [1] * 10, batch=16) == list(range(10))
    assert sizes == [10, 8, 4, 2, 2, 2, 2, 2]


def test_other_failures_and_a_memory_too_small_for_one_text_go_on() -> None:
    def broken(rows: Sequence[int]) -> NDArray[np.float64]:
        raise RuntimeError("shapes" if len(rows) > 1 else "out of memory")

    with pytest.raises(RuntimeError, match="shapes"):
        map_batches(broken, [1, 1], batch=2)
    with pytest.raises(RuntimeError, match="out of memory"):
        map_batches(broken, [1], batch=1)
