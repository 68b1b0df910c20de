"""Reading and scoring in a process that has started, beside decompression alone in the same one.

    python warm.py DATA REPEATS

A child process of the benchmark: prints rows as JSON. The judgments are read before.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from floors import drain

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import Scanner

__all__ = ["measure_warm"]

_MEASURES = tuple(map(parse_measure, ("RR@10", "nDCG@10", "AP", "R@1000")))
_ORDERS: Mapping[str, Order] = {"dev.tsv.bz2": "msmarco", "dev.trec.bz2": "trec"}


def measure_warm(data: Path, *, repeats: int) -> list[dict[str, object]]:
    """Seconds of decompression and of every scanner that is there.

    Args:
        data: folder of the generated files.
        repeats: how often each is timed, >= 1.
    """
    with (data / "dev.qrels").open("rb") as file:
        qrels = read_qrels(file, path="dev.qrels")
    expected = json.loads((data / "expected.json").read_bytes())["scores"]["dev"]
    rows: list[dict[str, object]] = []
    for name in _ORDERS:
        contenders = _contenders(data / name, qrels, expected)
        seconds: dict[str, list[float]] = {key: [] for key in contenders}
        for _ in range(repeats):
            for key, run in contenders.items():
                start = time.perf_counter()
                run()
                seconds[key].append(time.perf_counter() - start)
        rows += [
            {
                "name": key,
                "role": "floor" if key.endswith("alone") else "heldout",
                "seconds": times,
                "verdict": "" if key.endswith("alone") else "agrees",
            }
            for key, times in seconds.items()
        ]
    return rows


def _contenders(
    path: Path, qrels: Qrels, expected: Mapping[str, float]
) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    label = f"{path.name}, stdlib"
    found[f"{label}, alone"] = partial(drain, "stdlib", str(path), cores=1)
    for scanner in _scanners():
        found[f"{label}, {scanner}"] = partial(_score, path, qrels, expected, scanner)
    return found


def _scanners() -> list[Scanner]:
    return ["compiled", "numpy"] if find_spec("heldout.trec.scanning._scan") else ["numpy"]


def _score(path: Path, qrels: Qrels, expected: Mapping[str, float], scanner: Scanner) -> None:
    with path.open("rb") as source:
        scan = scan_run(
            source,
            path=path.name,
            order=_ORDERS[path.name],
            qrels=qrels.judgments,
            scanner=scanner,
        )
    scores = evaluate(scan.rankings, qrels.judgments, _MEASURES).scores
    for measure, score in scores.items():
        if score.mean is None or abs(score.mean - expected[str(measure)]) > 1e-9:  # noqa: PLR2004 - rounding
            raise ValueError(f"{scanner}: {measure} {score.mean}")


if __name__ == "__main__":
    measured = measure_warm(Path(sys.argv[1]), repeats=int(sys.argv[2]))
    print(json.dumps(measured))
