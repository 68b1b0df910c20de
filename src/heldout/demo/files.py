"""What `heldout demo --files` writes: the files that the tutorials work on, and a board to join.

Nothing here needs an extra: the rankers are those of the base install. The texts are the same under
every Python (`collections.stdlib_sample`), so a reader sees the figures that the tutorials show.
"""

import gzip
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from heldout.board.organiser.decide import add_baseline
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.participant.draft import draft_id
from heldout.collections.collection import Collection, QuerySplit
from heldout.collections.stdlib_sample import read_sample
from heldout.demo.story import DEPTH, check_new, create_demo_board, sit
from heldout.files.durable import write_whole
from heldout.rankers.methods import choose_method
from heldout.rankers.run import RankingTask, format_run
from heldout.trec.qrels import format_qrels
from heldout.trec.queries import format_queries

_BASELINE = "tfidf"
_SYSTEMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    _BASELINE: ("tfidf", {}),
    "char-ngrams": ("char-ngrams", {}),
    "ql-jm": ("query-likelihood", {"smoothing": "jelinek-mercer"}),
    "ql-dirichlet": ("query-likelihood", {}),
}
"""Name of the run files -> method and parameters; the first is the board's baseline."""


def write_files(folder: Path, *, now: datetime, say: Callable[[str, str], None]) -> None:
    """Write documents, queries, labels, four runs, and a board with a baseline.

    Args:
        folder: new; gets the files, `runs`, `board` and `vault`.
        now: the board's first moment, UTC.
        say: gets each step, as a heading and a sentence.

    Raises:
        StoreError: the folder holds something already.
        SetupError: this Python has no library source on disk.
    """
    check_new(folder)
    sample = read_sample()
    split = sample.split
    if sample.missing:
        say(
            "note",
            f"this Python lacks {sample.missing} of the tutorials' texts; figures differ a little",
        )
    # For the repository that the folder may lie in: nothing here, a vault least of all, is its own.
    write_whole(folder / ".gitignore", b"*\n")
    rows = (f"{document}\t{text}\n" for document, text in split.dev.documents.items())
    write_whole(folder / "documents.tsv", "".join(rows).encode())
    for name, half in (("dev", split.dev), ("eval", split.eval)):
        _write_set(folder, name, half)
    say("files", f"{folder}/documents.tsv, dev.tsv, dev.qrels, eval.tsv and eval.qrels")
    _write_runs(folder, split)
    say("runs", f"{folder}/runs/dev and {folder}/runs/eval: {', '.join(_SYSTEMS)}")
    _create_board(folder, split, now)
    say("board", f"{folder}/board with the baseline {_BASELINE}; its vault is {folder}/vault")


def _write_set(folder: Path, name: str, half: Collection) -> None:
    texts = {str(query): text for query, text in half.queries.items()}
    labels = {str(q): {str(d): n for d, n in grades.items()} for q, grades in half.qrels.items()}
    write_whole(folder / f"{name}.tsv", format_queries(texts))
    write_whole(folder / f"{name}.qrels", format_qrels(labels))


def _write_runs(folder: Path, split: QuerySplit) -> None:
    halves = {"dev": split.dev.queries, "eval": split.eval.queries}
    queries = {**split.dev.queries, **split.eval.queries}
    task = RankingTask(documents=split.dev.documents, queries=queries, depth=DEPTH)
    for system, (method, parameters) in _SYSTEMS.items():
        run = choose_method(method, parameters)(task)
        for name, half in halves.items():
            text = format_run({query: run[query] for query in half}, form="trec", tag=system)
            # Without a time in the header the same run has the same bytes.
            path = folder / "runs" / name / f"{system}.run.gz"
            write_whole(path, gzip.compress(text, mtime=0))


def _create_board(folder: Path, split: QuerySplit, now: datetime) -> None:
    create_demo_board(folder, split, now)
    runs = {name: folder / "runs" / name / f"{_BASELINE}.run.gz" for name in ("dev", "eval")}
    with sit(folder, now) as session:
        name = draft_id(_BASELINE, today=now.date(), embargoed=False)
        add_baseline(session, name, runs, description="TF-IDF cosine")
        bring_up_to_date(session)
