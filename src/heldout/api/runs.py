"""`heldout.read_run` and `heldout.read_qrels`: from paths, mappings, data frames, ir_datasets."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any, TypeAlias

from heldout.collections.named import open_qrels
from heldout.scoring.given_runs import Run, is_path, open_run
from heldout.scoring.run_files import run_name, scan_file
from heldout.trec.memory import MemoryRun, scan_memory
from heldout.trec.qrels import Qrels
from heldout.trec.scans import Scan

PathLike_: TypeAlias = str | PathLike[str]
RunLike: TypeAlias = Run | PathLike_ | Mapping[str, Mapping[str, float]] | Any
"""A run: from `read_run`, a path, query -> document -> score, or a data frame."""
QrelsLike: TypeAlias = Qrels | PathLike_ | Mapping[str, Mapping[str, int]] | Any
"""Judgments: from `read_qrels`, a path, query -> document -> grade, or a data frame."""


def read_run(source: RunLike, *, name: str | None = None) -> Run:
    """A run, read and checked.

    Args:
        source: a path of a file in TREC form (6 columns) or MS MARCO form (3 columns), plain, gz,
            bz2 or zst, or of a Parquet file with the columns of a data frame; a mapping query ->
            document -> score; or a data frame of pandas, polars or pyarrow with a column `qid` or
            `query_id`, one `docno` or `doc_id`, and `score` or `rank`.
        name: of the system; by default that of the file, or "run".

    Raises:
        InputError: what is wrong, with `.code` and `.problems`.

    Example:
        >>> run = ho.read_run({"q1": {"d1": 2.5, "d2": 1.0}}, name="mine")
        >>> run.queries, run.documents
        (1, 2)
    """
    if isinstance(source, Run):
        return source
    if is_path(source):
        path = fspath(source)
        scan = scan_file(path, order=None)
        return _checked(scan, path, name or run_name(path))
    rows = open_run(source, name=name or "run")
    return _checked(scan_memory(rows, order=None), rows, rows.name)


def _checked(scan: Scan, source: str | MemoryRun, name: str) -> Run:
    scan.raise_errors()
    return Run(
        name=name,
        source=source,
        order=scan.order,
        queries=scan.facts.queries,
        documents=scan.facts.documents,
        notes=scan.problems,
    )


def read_qrels(source: QrelsLike, *, name: str | None = None, subtopics: bool = False) -> Qrels:
    """Judgments, read and checked.

    Args:
        source: a path of a qrels file of TREC, MS MARCO or BEIR, plain or compressed; `irds:` and a
            name of ir_datasets; a mapping query -> document -> grade; or a data frame with a column
            `qid` or `query_id`, one `docno` or `doc_id`, and `label` or `relevance`.
        name: for messages.
        subtopics: whether the second column of a file names the subtopic of a judgment, which
            alpha_nDCG and other measures of diversity need.

    Raises:
        InputError: what is wrong, with `.code` and `.problems`.
    """
    return open_qrels(source, name=name, subtopics=subtopics)


def label_of(source: QrelsLike) -> str:
    """Return what judgments are called in an answer."""
    return fspath(source) if is_path(source) else "qrels"
