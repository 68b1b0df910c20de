"""Runs and labels of a small world as files."""

from collections.abc import Mapping
from pathlib import Path


def write_world(
    root: Path,
    runs: Mapping[str, Mapping[str, Mapping[str, float]]],
    qrels: Mapping[str, Mapping[str, int]],
) -> Path:
    """Write a run file for each run, and `qrels`."""
    labels = (f"{q} 0 {d} {g}\n" for q, docs in qrels.items() for d, g in docs.items())
    (root / "qrels").write_text("".join(labels))
    for name, run in runs.items():
        rows = (f"{q} Q0 {d} 1 {s} t\n" for q, docs in run.items() for d, s in docs.items())
        (root / f"{name}.run").write_text("".join(rows))
    return root
