"""The file of a run that is being made: kills, torn lines, and other settings."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.errors import StoreError
from heldout.rankers.reranking import PartialScores
from heldout.rankers.run import TextPair

QUERIES = [[TextPair(f"query {n}", f"text {n}"), TextPair(f"query {n}", "\n")] for n in range(5)]


class Scorer:
    """Counts its calls, and stops at one of them."""

    def __init__(self, deadly: int = 0) -> None:
        self.deadly, self.calls = deadly, 0

    def __call__(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        self.calls += 1
        if self.calls == self.deadly:
            raise KeyboardInterrupt
        return np.array([len(pair.document) / 3 for pair in pairs])


def score_all(path: Path, scorer: Scorer, name: str = "a") -> list[list[float]]:
    partial = PartialScores(path, name)
    return [list(partial.score(pairs, scorer)) for pairs in QUERIES]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.partial"
    with pytest.raises(KeyboardInterrupt):
        score_all(path, Scorer(deadly=3))
    rest = Scorer()
    found = score_all(path, rest)
    assert (found, rest.calls) == (score_all(tmp_path / "whole", Scorer()), 3)


@given(cut=st.integers(0, 600))
def test_a_file_torn_anywhere_gives_the_same_scores(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "run.partial"
    whole = score_all(path, Scorer())
    path.write_bytes(path.read_bytes()[:cut])
    assert score_all(path, Scorer()) == whole
    again = Scorer()
    assert (score_all(path, again), again.calls) == (whole, 0)


def test_another_scorer_or_other_texts_find_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.partial"
    path.write_bytes(b"\x00\x01\n[]\n")
    score_all(path, Scorer())
    other = Scorer()
    score_all(path, other, "b")
    assert other.calls == len(QUERIES)
    PartialScores(path, "a").score(QUERIES[0][::-1], other)
    assert other.calls == len(QUERIES) + 1


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        PartialScores(tmp_path, "a")
