"""How fast this machine reads a run, with and without each part that makes it faster.

The run is a sample, drawn from a seed and kept in memory: no disk is measured.
"""

import bz2
import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from statistics import median
from typing import Literal

import numpy as np

from heldout.errors import SetupError
from heldout.trec.accelerators import Accelerators
from heldout.trec.runs import Scan, scan_run

__all__ = ["Form", "Sample", "Speed", "Timing", "draw_sample", "measure"]

Form = Literal["plain", "gz", "bz2"]

_DOCUMENTS = 8_841_823
_PARTS: Mapping[Form, tuple[str, ...]] = {
    "plain": ("compiled",),
    "gz": ("compiled", "isal"),
    "bz2": ("compiled", "lbzip2"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A run in TREC form.

    Attributes:
        queries: how many.
        depth: documents of each.
        files: its bytes, plain and packed as by `gzip -6` and `bzip2 -9`.
        qrels: query -> document -> grade: one document of each query.
    """

    queries: int
    depth: int
    files: Mapping[Form, bytes]
    qrels: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long reading and checking the sample took.

    Attributes:
        form: how it was packed.
        bytes: its size, packed.
        parts: what was used besides numpy and the standard library.
        seconds: median.
        ratio: seconds with nothing optional over these, > 1 where it is faster.
    """

    form: Form
    bytes: int
    parts: tuple[str, ...]
    seconds: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What was measured.

    Attributes:
        queries: of the sample.
        depth: documents of each.
        repeats: how often each was measured.
        threads: how many a decompressor might use.
        load: processes that were at work before, `None` where nobody tells.
        timings: by form, nothing optional first and all there is last.
    """

    queries: int
    depth: int
    repeats: int
    threads: int
    load: float | None
    timings: tuple[Timing, ...]


def draw_sample(rng: np.random.Generator, *, queries: int = 200, depth: int = 1000) -> Sample:
    """A run like those of MS MARCO: ids below 8,841,823, scores of six decimals that fall.

    Args:
        rng: sole source of randomness; advanced in place.
        queries: how many, >= 1.
        depth: documents of each, >= 1.
    """
    lines: list[str] = []
    qrels: dict[str, dict[str, int]] = {}
    for query in range(1_000_000, 1_000_000 + queries):
        documents = rng.choice(_DOCUMENTS, size=depth, replace=False).tolist()
        scores = 30 - np.cumsum(rng.uniform(0.001, 0.02, size=depth))
        qrels[str(query)] = {str(documents[int(rng.integers(depth))]): 1}
        lines += [
            f"{query} Q0 {document} {rank} {score:.6f} sample\n"
            for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
        ]
    text = "".join(lines).encode()
    packed: dict[Form, bytes] = {
        "plain": text,
        "gz": gzip.compress(text, 6, mtime=0),
        "bz2": bz2.compress(text, 9),
    }
    return Sample(queries=queries, depth=depth, files=packed, qrels=qrels)


def measure(
    sample: Sample,
    found: Accelerators,
    *,
    clock: Callable[[], float],
    repeats: int,
    load: float | None = None,
    done: Callable[[], None] = lambda: None,
) -> Speed:
    """Read the sample in every form with every choice of the parts that matter for it.

    The choices take turns, so that whatever else the machine does hurts all alike.

    Args:
        sample: what to read.
        found: what this machine has.
        clock: seconds.
        repeats: how often, >= 1.
        load: processes at work before; goes into the result.
        done: called after each repeat.

    Raises:
        SetupError: with some part, other things are found than without it.
    """
    trials = [(form, parts) for form in sample.files for parts in _choices(form, found)]
    seconds: dict[tuple[Form, tuple[str, ...]], list[float]] = {trial: [] for trial in trials}
    first = _read(sample, "plain", (), found)
    for _ in range(repeats):
        for form, parts in trials:
            begin = clock()
            scan = _read(sample, form, parts, found)
            seconds[form, parts].append(clock() - begin)
            _check_same(first, scan, parts)
        done()
    medians = {trial: median(times) for trial, times in seconds.items()}
    timings = tuple(
        Timing(
            form=form,
            bytes=len(sample.files[form]),
            parts=parts,
            seconds=taken,
            ratio=medians[form, ()] / taken,
        )
        for (form, parts), taken in medians.items()
    )
    return Speed(
        queries=sample.queries,
        depth=sample.depth,
        repeats=repeats,
        threads=found.threads,
        load=load,
        timings=timings,
    )


def _choices(form: Form, found: Accelerators) -> Iterator[tuple[str, ...]]:
    """Every choice of the parts that matter and are there, none first and all last."""
    there = [part for part in _PARTS[form] if part in {found.scanner, found.bzip2, found.gzip}]
    return chain.from_iterable(combinations(there, count) for count in range(len(there) + 1))


def _read(sample: Sample, form: Form, parts: Sequence[str], found: Accelerators) -> Scan:
    none = Accelerators(threads=found.threads)
    accelerators = replace(
        none,
        scanner=found.scanner if "compiled" in parts else none.scanner,
        bzip2=found.bzip2 if "lbzip2" in parts else none.bzip2,
        gzip=found.gzip if "isal" in parts else none.gzip,
    )
    return scan_run(
        io.BytesIO(sample.files[form]),
        path=f"sample.{form}",
        order="trec",
        qrels=sample.qrels,
        accelerators=accelerators,
    )


def _check_same(first: Scan, other: Scan, parts: Sequence[str]) -> None:
    """No part may change what is found.

    Raises:
        SetupError: it does.
    """
    if _found(first) != _found(other):
        names = ",".join(parts)
        raise SetupError(
            f"with {names or 'nothing optional'} the sample reads differently than without; "
            f"leave it out with HELDOUT_WITHOUT={names}, and tell us"
        )


def _found(scan: Scan) -> tuple[object, ...]:
    rankings, signature = scan.rankings, scan.signature
    arrays = (rankings.starts, rankings.positions, rankings.grades, rankings.retrieved)
    return (
        scan.facts,
        scan.counts,
        rankings.queries,
        *(array.tobytes() for array in (*arrays, signature.documents)),
    )
