"""Runs as files."""

import bz2
import gzip
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_task import run_of

from heldout.errors import StoreError
from heldout.rankers.run import format_run, write_run

RUN = run_of({"007": [("d2", 1.5), ("d1", 1.5)], "7": [("é", -0.1)]})


def test_the_msmarco_form() -> None:
    expected = "007\td2\t1\n007\td1\t2\n7\té\t1\n"
    assert format_run(RUN, form="msmarco", tag="t").decode() == expected


def test_the_trec_form() -> None:
    expected = "007 Q0 d2 1 1.5 t\n007 Q0 d1 2 1.5 t\n7 Q0 é 1 -0.1 t\n"
    assert format_run(RUN, form="trec", tag="t").decode() == expected


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_scores_come_back_bit_by_bit_and_in_order(scores: list[float]) -> None:
    scores = sorted(scores, reverse=True)
    run = run_of({"q": [(f"d{number}", score) for number, score in enumerate(scores)]})
    lines = format_run(run, form="trec", tag="t").decode().splitlines()
    written = [line.split()[4] for line in lines]
    assert np.array(written, np.float32).tolist() == scores
    doubles = [float(text) for text in written]
    pairs = zip(pairwise(scores), pairwise(doubles), strict=True)
    assert all((one > two) == (first > second) for (one, two), (first, second) in pairs)


@pytest.mark.parametrize("tag", ["", "two words", " t", "t\n"])
def test_a_tag_is_one_word(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        format_run(RUN, form="trec", tag=tag)


@pytest.mark.parametrize(
    ("name", "unpack"), [("r.run", bytes), ("r.gz", gzip.decompress), ("r.bz2", bz2.decompress)]
)
def test_the_name_says_how_it_is_packed(
    tmp_path: Path, name: str, unpack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "new" / name
    write_run(RUN, path, form="trec", tag="t")
    assert unpack(path.read_bytes()) == format_run(RUN, form="trec", tag="t")
    again = tmp_path / name
    write_run(RUN, again, form="trec", tag="t")
    assert again.read_bytes() == path.read_bytes()


def test_a_file_that_cannot_be_replaced_is_kept_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.run"
    path.write_bytes(b"before")

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StoreError, match="disk full"):
        write_run(RUN, path, form="trec", tag="t")
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.run"]
