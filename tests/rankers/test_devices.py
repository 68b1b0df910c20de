"""Devices, precision and batches."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from heldout.errors import SetupError
from heldout.rankers.neural import checkpoints

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("neural")]


def test_flags_tell_who_computes_in_bfloat16() -> None:
    assert checkpoints.has_bfloat16("model name : x\nflags\t\t: fpu avx512f avx512_bf16 pni\n")
    assert checkpoints.has_bfloat16("Features\t: fp asimd bf16\n")
    assert not checkpoints.has_bfloat16("flags\t\t: fpu avx512f avx512_bf16x\n")
    assert not checkpoints.has_bfloat16("model name : the avx512_bf16 one\n")
    assert not checkpoints.has_bfloat16("")


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert checkpoints.choose_device("auto") == checkpoints.choose_device("cpu") == "cpu"
    with pytest.raises(SetupError, match=r"no device 'cuda' .* finds here: cpu"):
        checkpoints.choose_device("cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert checkpoints.choose_device("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert checkpoints.choose_device("auto") == "cuda"


def test_precision_is_what_the_device_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    assert checkpoints.choose_precision("float16", "cpu") == "float16"
    assert checkpoints.choose_precision("auto", "mps") == "float32"
    for there, precision in ((True, "bfloat16"), (False, "float16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda there=there: there)
        assert checkpoints.choose_precision("auto", "cuda") == precision


def test_batches_are_of_similar_length_and_rows_come_back_in_order() -> None:
    seen: list[list[int]] = []

    def compute(rows: Sequence[int]) -> NDArray[np.float64]:
        seen.append(list(rows))
        return np.array(rows, dtype=np.float64)

    assert checkpoints.map_batches(compute, [3, 9, 1, 9, 5], batch=2) == [0, 1, 2, 3, 4]
    assert seen == [[1, 3], [4, 0], [2]]
    assert checkpoints.map_batches(compute, [], batch=2) == []
