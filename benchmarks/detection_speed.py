"""How long one new run takes against many earlier ones, on generated signatures."""

import io
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from heldout.board.policy.ensembles import fit
from heldout.board.policy.similarity import DEPTH, list_alike
from heldout.trec.scans import Signature

__all__ = ["describe_speed"]

_SEED = 20220711


def describe_speed(earlier: int, queries: int) -> str:
    """A new run against many earlier ones, read from files as the vault keeps them."""
    random = np.random.default_rng(_SEED)
    pool = random.integers(1, 1 << 63, size=(queries, 300), dtype=np.uint64)
    quality = random.normal(size=pool.shape)
    ids = tuple(sorted(str(1_000_000 + query) for query in range(queries)))

    def make() -> Signature:
        order = np.argsort(quality + random.normal(size=pool.shape), axis=1)[:, :DEPTH]
        return Signature(queries=ids, documents=np.take_along_axis(pool, order, axis=1))

    new = make()
    near = Signature(queries=ids, documents=np.roll(new.documents, 1, axis=0))
    near.documents[:, 1:] = new.documents[:, 1:]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(20):
            write(Path(folder) / f"{number}.npz", make())
        write(Path(folder) / "near.npz", near)

        def read(*names: str) -> Iterator[tuple[str, Signature]]:
            for number in range(earlier):
                with np.load(Path(folder) / f"{names[number % len(names)]}.npz") as arrays:
                    found = tuple(arrays["eval.queries"].tolist())
                    yield str(number), Signature(queries=found, documents=arrays["eval.documents"])

        files = [str(number) for number in range(20)]
        work: dict[str, Callable[[], object]] = {
            "reading alone": lambda: sum(1 for _ in read(*files)),
            "`list_alike`": lambda: list_alike(new, read(*files)),
            "`list_alike`, every earlier run a variant": lambda: list_alike(new, read("near")),
            "`explain`": lambda: fit(new, read(*files)),
        }
        for what, call in work.items():
            wall, cpu = perf_counter(), process_time()
            call()
            wall, cpu = perf_counter() - wall, process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            rows.append(f"| {what} | {cpu:.1f} s | {wall:.1f} s | {peak} MiB |")
    lines = [
        f"### One new run against {earlier:,} earlier ones, {queries:,} queries",
        "",
        "| what, reading included | processor | wall clock | peak memory so far |",
        "| --- | ---: | ---: | ---: |",
        *rows,
    ]
    return "\n".join(lines)


def write(path: Path, signature: Signature) -> None:
    """A signature as the vault keeps it."""
    buffer = io.BytesIO()
    arrays = {"eval.documents": signature.documents, "eval.queries": np.array(signature.queries)}
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    path.write_bytes(buffer.getvalue())
