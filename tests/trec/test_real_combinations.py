"""188 real runs: every scanner and decompressor gives the same scan and the same scores."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from combinations import Qrels, blocks_of, see_by_all

from heldout.trec.orders import ORDERS
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import open_input

Data = Callable[[str], Path]
COVID = "trec-covid-round1"
DEEP = "trec-dl-2021-passage"
FOLDERS = {
    "covid": (f"{COVID}/runs-depth100", f"{COVID}/qrels-round1.txt.gz", 143),
    "deep": (f"{DEEP}/runs", f"{DEEP}/qrels.dl21-passage.txt.gz", 45),
}

pytestmark = [pytest.mark.real, pytest.mark.slow]


def read_all(data: Data, folder: str) -> tuple[list[Path], Qrels]:
    runs, judgments, number = FOLDERS[folder]
    paths = sorted(data(runs).glob("*.gz"))
    assert len(paths) == number
    with open_input(data(judgments)) as source:
        return paths, read_qrels(source, path=judgments).judgments


@pytest.mark.parametrize("folder", list(FOLDERS))
def test_all_runs_as_they_are(data: Data, folder: str) -> None:
    """Each under one of the three orders, in turn."""
    paths, qrels = read_all(data, folder)
    for place, path in enumerate(paths):
        order = ORDERS[place % len(ORDERS)]
        seen = see_by_all(path.read_bytes(), order, qrels=qrels)
        assert seen.scan.ok or order == "msmarco", path.name


@pytest.mark.parametrize("folder", list(FOLDERS))
def test_some_runs_under_every_order_packed_by_bzip2_in_small_blocks(
    data: Data, folder: str
) -> None:
    paths, qrels = read_all(data, folder)
    for path in paths[::12]:
        packed = bz2.compress(gzip.decompress(path.read_bytes()), 1)
        for order in ORDERS:
            with blocks_of(1 << 14):
                in_parts = see_by_all(packed, order, qrels=qrels)
            whole = see_by_all(packed, order, qrels=qrels)
            assert in_parts.scores == whole.scores


@pytest.mark.parametrize("folder", list(FOLDERS))
def test_some_runs_with_all_their_queries_mixed(data: Data, folder: str) -> None:
    """Rank by rank over all queries: the same scores, bit by bit."""
    paths, qrels = read_all(data, folder)
    for path in paths[::24]:
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        mixed = b"".join(line for start in range(100) for line in lines[start::100])
        for order in ("trec", "trec9"):
            tidy = see_by_all(b"".join(lines), order, qrels=qrels)
            apart = see_by_all(mixed, order, qrels=qrels)
            assert apart.scores == tidy.scores
            assert apart.scan.facts == tidy.scan.facts
