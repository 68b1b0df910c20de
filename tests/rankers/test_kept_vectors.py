"""Vectors in a folder: what was computed is read again, what is damaged is computed again."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heldout.errors import StoreError
from heldout.ids import digest_bytes
from heldout.rankers.neural import encoders
from heldout.rankers.neural.encoders import Vectors, encode_all

TEXTS = ["a", "bb", "ccc", "d", "ee"]


class Killed(BaseException):
    """What a kill looks like from inside."""


class Encoder:
    """A vector per letter; dies at a text."""

    def __init__(self, deadly: str = "") -> None:
        self.deadly = deadly
        self.encoded: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        if self.deadly in texts:
            raise Killed
        self.encoded += texts
        return [np.full((len(text), 2), ord(text[0]), np.float32) for text in texts]


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_SHARD", 2)


def encode(encoder: Encoder, folder: Path | None, texts: Sequence[str] = TEXTS) -> Vectors:
    return encode_all(texts, encoder, digest=digest_bytes(b"encoder"), folder=str(folder or ""))


def same(one: Vectors, other: Vectors) -> bool:
    return one.rows.tobytes() == other.rows.tobytes() and one.sizes.tolist() == [1, 2, 3, 1, 2]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        encode(Encoder(deadly="ee"), tmp_path)
    rest = Encoder()
    found = encode(rest, tmp_path)
    assert rest.encoded == ["ee"]
    assert same(found, encode(Encoder(), None))
    again = Encoder()
    assert same(encode(again, tmp_path), found)
    assert again.encoded == []


def test_other_texts_or_another_encoder_never_meet_them(tmp_path: Path) -> None:
    encode(Encoder(), tmp_path)
    changed, other = Encoder(), Encoder()
    encode(changed, tmp_path, ["a", "bb", "ccc", "d", "ff"])
    encode_all(TEXTS, other, digest=digest_bytes(b"another"), folder=str(tmp_path))
    assert len(changed.encoded) == len(other.encoded) == 5


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"\x93NUMPY", b"\x80\x04pickle."])
def test_a_damaged_shard_is_computed_again(tmp_path: Path, content: bytes) -> None:
    encode(Encoder(), tmp_path)
    (shard,) = tmp_path.glob("*/000000002.npz")
    shard.write_bytes(content)
    again = Encoder()
    assert same(encode(again, tmp_path), encode(Encoder(), None))
    assert again.encoded == ["ccc", "d"]


def test_a_shard_of_too_few_vectors_is_computed_again(tmp_path: Path) -> None:
    encode(Encoder(), tmp_path)
    (shard,) = tmp_path.glob("*/000000002.npz")
    np.savez(shard, rows=np.zeros((2, 2), np.float32), sizes=np.array([1, 3]))
    again = Encoder()
    assert same(encode(again, tmp_path), encode(Encoder(), None))


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        encode(Encoder(), place)
