"""Reading and scoring in a process that has started, beside decompression alone in the same one.

    python warm.py DATA REPEATS CORES

A child process of the benchmark: prints rows as JSON. The judgments are read before.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from floors import drain

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.accelerators import Accelerators, Bzip2, Scanner
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.runs import scan_run

__all__ = ["measure_warm"]

_MEASURES = tuple(map(parse_measure, ("RR@10", "nDCG@10", "AP", "R@1000")))
_ORDERS: Mapping[str, Order] = {"dev.tsv.bz2": "msmarco", "dev.trec.bz2": "trec"}


def measure_warm(data: Path, *, repeats: int, cores: int) -> list[dict[str, object]]:
    """Seconds of every combination of decompressor and scanner that is there.

    Args:
        data: folder of the generated files.
        repeats: how often each is timed, >= 1.
        cores: threads of a decompressor that can use several.
    """
    with (data / "dev.qrels").open("rb") as file:
        qrels = read_qrels(file, path="dev.qrels")
    expected = json.loads((data / "expected.json").read_bytes())["scores"]["dev"]
    rows: list[dict[str, object]] = []
    for name in _ORDERS:
        contenders = _contenders(data / name, qrels, expected, cores)
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
    path: Path, qrels: Qrels, expected: Mapping[str, float], cores: int
) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for bzip2 in _decompressors():
        threads = 1 if bzip2 == "stdlib" else cores
        label = f"{path.name}, {bzip2}"
        found[f"{label}, alone"] = partial(drain, bzip2, str(path), cores=threads)
        for scanner in _scanners():
            chosen = Accelerators(scanner=scanner, bzip2=bzip2, threads=threads)
            found[f"{label}, {scanner}"] = partial(_score, path, qrels, expected, chosen)
    return found


def _decompressors() -> list[Bzip2]:
    return ["lbzip2", "stdlib"] if shutil.which("lbzip2") else ["stdlib"]


def _scanners() -> list[Scanner]:
    return ["compiled", "numpy"] if find_spec("heldout.trec.scanning._scan") else ["numpy"]


def _score(
    path: Path, qrels: Qrels, expected: Mapping[str, float], accelerators: Accelerators
) -> None:
    with path.open("rb") as source:
        scan = scan_run(
            source,
            path=path.name,
            order=_ORDERS[path.name],
            qrels=qrels.judgments,
            accelerators=accelerators,
        )
    scores = evaluate(scan.rankings, qrels.judgments, _MEASURES).scores
    for measure, score in scores.items():
        if score.mean is None or abs(score.mean - expected[str(measure)]) > 1e-9:  # noqa: PLR2004 - rounding
            raise ValueError(f"{accelerators}: {measure} {score.mean}")


if __name__ == "__main__":
    measured = measure_warm(Path(sys.argv[1]), repeats=int(sys.argv[2]), cores=int(sys.argv[3]))
    print(json.dumps(measured))
