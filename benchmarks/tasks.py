"""Ten tasks of other tools' READMEs, done by them and by heldout: equal results, and times.

    python benchmarks/tasks.py --prepare DIR     an environment with the peers, once
    python benchmarks/tasks.py DIR               all tasks and the large frames: some minutes
    python benchmarks/tasks.py --here --quick    small, with what this Python has

The code is that of from-other-tools.md: what stands there is what runs. A task whose tool is
not installed is named and left out. Times are medians in one process, after one call that is not
timed; peer and heldout take turns.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

from prepare import prepare, prepared_python
from workplace import child_environment

__all__ = ["TASKS", "Task", "check", "make_data", "read_tasks", "run_code"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "from-other-tools.md"
_SECTION = re.compile(r"^## (\d+)\. (.+) \((\w+)\)$", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MODULES = {"PyTerrier": "pyterrier"}
_TOLERANCE = 1e-9
_SHALLOW = 1e-6  # ranx has 32 bits here and there

Values = Mapping[Any, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task, as the page has it.

    Attributes:
        number: on the page.
        title: what it does.
        tool: whose README it is from.
        theirs: code that leaves its result in `theirs`.
        ours: code that leaves its result in `ours`.
        more: blocks behind it, which only have to run.
    """

    number: int
    title: str
    tool: str
    theirs: CodeType
    ours: CodeType
    more: tuple[CodeType, ...]

    @property
    def installed(self) -> bool:
        """Whether its tool is."""
        return find_spec(_MODULES.get(self.tool, self.tool)) is not None


def read_tasks(page: Path = PAGE) -> tuple[Task, ...]:
    """The tasks of the page, in its order."""
    parts = _SECTION.split(page.read_text("utf-8"))[1:]
    tasks = []
    for number, title, tool, text in zip(*(parts[at::4] for at in range(4)), strict=True):
        name = f"{page.name} {number}"
        theirs, ours, *more = (compile(code, name, "exec") for code in _BLOCK.findall(text))
        tasks.append(
            Task(
                number=int(number),
                title=title,
                tool=tool,
                theirs=theirs,
                ours=ours,
                more=tuple(more),
            )
        )
    return tuple(tasks)


def make_data(queries: int, depth: int, seed: int) -> dict[str, Any]:
    """Simulated runs without ties, and judgments; every name that the page uses."""
    import numpy as np  # noqa: PLC0415 - the one that starts children needs none of these
    import pandas as pd  # noqa: PLC0415 - the same

    rng = np.random.default_rng(seed)
    documents = np.array([f"d{number}" for number in range(20 * depth)])
    qrels: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}, "fusion": {}}
    for number in range(queries):
        query = f"q{number}"
        known = rng.choice(documents, size=20, replace=False)
        grades = rng.integers(0, 3, len(known))
        grades[0] = 2  # ranx wants something relevant, and so do recall and nDCG
        qrels[query] = dict(zip(known.tolist(), grades.tolist(), strict=True))
        for at, run in enumerate(runs.values()):
            found = rng.choice(known, size=10 + 2 * at, replace=False)
            listed = np.unique(np.concatenate([found, rng.choice(documents, depth - len(found))]))
            scores = (rng.permutation(len(listed)) + 1.0) / 8  # no two alike, whole in 32 bits
            scores[np.isin(listed, found)] += depth * at / 64
            order = np.argsort(-scores, kind="stable")
            scores[order] = np.arange(len(listed), 0, -1) / 8
            run[query] = dict(zip(listed[order].tolist(), scores[order].tolist(), strict=True))
    rows = {name: _rows(run) for name, run in runs.items()}
    named = {"query_id": "qid", "doc_id": "docno"}
    judged = [(q, d, grade) for q, one in qrels.items() for d, grade in one.items()]
    qrels_frame = pd.DataFrame(judged, columns=["query_id", "doc_id", "relevance"])
    frames = {
        name: pd.DataFrame(one, columns=["query_id", "doc_id", "score"])
        for name, one in rows.items()
    }
    return {
        "qrels": qrels,
        "run": runs["bm25"],
        "other": runs["dense"],
        "runs": runs,
        "run_frame": frames["bm25"],
        "qrels_frame": qrels_frame,
        "pt_runs": [
            frame.rename(columns=named).assign(
                rank=lambda one: one.groupby("qid").cumcount(), query="text"
            )
            for frame in frames.values()
        ],
        "pt_qrels": qrels_frame.rename(columns={**named, "relevance": "label"}),
        "topics": pd.DataFrame({"qid": list(qrels), "query": ["text"] * len(qrels)}),
    }


def _rows(run: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str, float]]:
    return [
        (query, document, score) for query, one in run.items() for document, score in one.items()
    ]


# Results as numbers by key: of the tool, and of heldout


def _cells(columns: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Iterable[tuple[Any, Any]]:
    """(key, name of a column), cell: for every column that is no key."""
    labels = list(zip(*(columns[key] for key in keys), strict=True))
    for name in columns:
        if name not in keys:
            for label, cell in zip(labels, columns[name], strict=True):
                yield (*label, name), cell


def _by_query(ours: Any) -> Values:
    """Query, measure -> score."""
    columns = {name: list(ours[name]) for name in ours.columns if name != "run"}
    return dict(_cells(columns, ["query"]))


def _by_run(ours: Any) -> Values:
    return dict(_cells({name: list(ours[name]) for name in ours.columns}, ["run", "query"]))


def _of_means(ours: Mapping[str, float]) -> Values:
    return dict(ours)


def _trec_by_query(theirs: Mapping[str, Mapping[str, float]]) -> Values:
    names = {"map": "AP", "ndcg": "nDCG"}
    return {(q, names[name]): value for q, one in theirs.items() for name, value in one.items()}


def _ranx_means(theirs: Any) -> Values:
    names = {"map@100": "AP@100", "mrr": "RR", "ndcg@10": "nDCG@10"}
    if not isinstance(theirs, Mapping):
        return {"nDCG@10": float(theirs)}
    return {names[name]: float(value) for name, value in theirs.items()}


def _ranx_report(theirs: Any) -> Values:
    names = {"map@100": "AP@100", "ndcg@10": "nDCG@10"}
    found = {}
    for run in theirs.model_names[1:]:
        for name, ours in names.items():
            tested = theirs.comparisons[(theirs.model_names[0], run)][name]
            found[ours, run, "mean"] = float(theirs.results[run][name])
            found[ours, run, "p"] = float(tested["p_value"])
    return found


def _against(ours: Any, *columns: str) -> Values:
    table = ours.columns()
    shown = {name: table[name] for name in ("measure", "run", *columns)}
    return dict(_cells(shown, ["measure", "run"]))


def _experiment(theirs: Any) -> Values:
    rows = theirs.set_index("name").iloc[1:]
    names = {"": "mean", " p-value": "p", " p-value corrected": "corrected"}
    return {
        (measure, run, ours): float(rows.loc[run, f"{measure}{end}"])
        for measure in ("AP", "nDCG@10")
        for run in rows.index
        for end, ours in names.items()
    }


TASKS: Mapping[int, tuple[Callable[[Any], Values], Callable[[Any], Values], float]] = {
    1: (_trec_by_query, _by_query, _TOLERANCE),
    2: (lambda t: {"p": t.pvalue}, lambda o: {"p": o.columns()["p (t)"][0]}, _TOLERANCE),
    3: (lambda t: {str(m): v for m, v in t.items()}, _of_means, _TOLERANCE),
    4: (
        lambda t: {(one.query_id, str(one.measure)): one.value for one in t},
        _by_query,
        _TOLERANCE,
    ),
    5: (
        lambda t: {str(m): v for m, v in t.items()},
        lambda o: {name: o[name][0] for name in o.columns if name != "run"},
        _TOLERANCE,
    ),
    6: (_ranx_means, _of_means, _SHALLOW),
    7: (_ranx_means, _of_means, _SHALLOW),
    8: (_ranx_report, lambda o: _against(o, "mean", "p"), _SHALLOW),
    9: (_experiment, lambda o: _against(o, "mean", "p", "corrected"), _TOLERANCE),
    10: (
        lambda t: {(r.name_, r.qid, r.measure): r.value for r in _tuples(t)},
        _by_run,
        _TOLERANCE,
    ),
}
"""By number: what their result says, what ours says, and how far the two may differ."""


def _tuples(frame: Any) -> Any:
    return frame.rename(columns={"name": "name_"}).itertuples(index=False)


def check(task: Task, names: dict[str, Any]) -> str:
    """What differs between the two results, or "" where nothing does."""
    theirs_of, ours_of, tolerance = TASKS[task.number]
    theirs, ours = theirs_of(names["theirs"]), ours_of(names["ours"])
    if theirs.keys() != ours.keys():
        other = sorted(map(str, theirs.keys() ^ ours.keys()))
        return f"{len(other)} results are of one alone, such as {other[0]}"
    for key, value in theirs.items():
        if not math.isclose(value, ours[key], rel_tol=tolerance, abs_tol=tolerance):
            return f"{key}: {value!r} and {ours[key]!r}"
    return ""


# Times


def run_code(code: CodeType, names: dict[str, Any]) -> None:
    """Run a block of the page."""
    exec(code, names)  # noqa: S102 - code of our own page


def _timed(code: CodeType, names: dict[str, Any]) -> float:
    begin = time.perf_counter()
    run_code(code, names)
    return time.perf_counter() - begin


def _run_tasks(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Every installed task: checked once, then timed."""
    import heldout as ho  # noqa: PLC0415 - only the child has it

    rows = []
    data = make_data(given.queries, given.depth, given.seed)
    for task in read_tasks():
        row: dict[str, Any] = {"task": f"{task.number}. {task.title}", "tool": task.tool}
        rows.append(row)
        if not task.installed:
            row["verdict"] = "not installed"
            continue
        names = {"ho": ho, **data}
        for code in (task.theirs, task.ours, *task.more):
            run_code(code, names)
        row["verdict"] = check(task, names) or "equal"
        pairs = [
            (_timed(task.theirs, names), _timed(task.ours, names)) for _ in range(given.repeats)
        ]
        row["theirs"], row["ours"] = map(statistics.median, zip(*pairs, strict=True))
    return rows


def _run_frames(given: argparse.Namespace) -> list[dict[str, Any]]:
    """A large run as a file and as frames: with heldout, and with tools that take frames."""
    import numpy as np  # noqa: PLC0415 - only the child has it
    import polars as pl  # noqa: PLC0415 - the same

    import heldout as ho  # noqa: PLC0415 - only the child has it

    queries, depth = given.large
    rng = np.random.default_rng(given.seed)
    ids = rng.integers(0, 8_841_823 // depth, (queries, depth)) + (
        np.arange(depth) * (8_841_823 // depth)
    )
    columns = {
        "query_id": np.repeat(np.arange(queries) + 1_000_000, depth).astype(str),
        "doc_id": rng.permuted(ids, axis=1).ravel().astype(str),
        "score": np.tile(np.arange(depth, 0, -1) / 8, queries),
    }
    run = pl.DataFrame(columns)
    relevant_at = rng.integers(0, 20, (queries, 1))
    picked = run.filter(pl.Series((np.arange(depth) == relevant_at).ravel()))
    relevance = pl.lit(1, pl.Int64).alias("relevance")
    qrels = picked.select("query_id", "doc_id", relevance).to_pandas()
    names = ["nDCG@10", "RR@10"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.run"
        rank = pl.Series("rank", np.tile(np.arange(1, depth + 1), queries))
        lines = run.select(
            "query_id", pl.lit("Q0").alias("q0"), "doc_id", rank, "score", pl.lit("x").alias("tag")
        )
        lines.write_csv(path, separator=" ", include_header=False)
        labels = ho.read_qrels(qrels)
        frame = run.to_pandas()
        objects = frame.astype({"query_id": object, "doc_id": object})
        cases: dict[str, Callable[[], Any]] = {
            "heldout, TREC file": lambda: ho.evaluate({"r": str(path)}, labels, names)["r"],
            "heldout, polars": lambda: ho.evaluate({"r": run}, labels, names)["r"],
            "heldout, pandas": lambda: ho.evaluate({"r": frame}, labels, names)["r"],
            "heldout, pandas of objects": lambda: ho.evaluate({"r": objects}, labels, names)["r"],
        }
        cases |= _peers_of_frames(frame, qrels) if given.peers else {}
        return _time_cases(cases, given.repeats)


def _peers_of_frames(frame: Any, qrels: Any) -> dict[str, Callable[[], Any]]:
    cases: dict[str, Callable[[], Any]] = {}
    if find_spec("ir_measures"):
        import ir_measures  # noqa: PLC0415 - where it is installed

        parsed = [ir_measures.parse_measure(name) for name in ("nDCG@10", "RR@10")]

        def use_ir_measures() -> dict[str, float]:
            found = ir_measures.calc_aggregate(parsed, qrels, frame)
            return {str(measure): value for measure, value in found.items()}

        cases["ir_measures, pandas"] = use_ir_measures
    if find_spec("ranx"):
        from ranx import Qrels, Run, evaluate  # type: ignore[import-not-found]  # noqa: PLC0415 - of the benchmark's environment

        def use_ranx(qrels: Any = qrels, frame: Any = frame) -> dict[str, float]:
            keys = {"q_id_col": "query_id", "doc_id_col": "doc_id"}
            objects = {"query_id": object, "doc_id": object}
            found = evaluate(
                Qrels.from_df(qrels.astype(objects), score_col="relevance", **keys),
                Run.from_df(frame.astype(objects), score_col="score", **keys),
                ["ndcg@10", "mrr@10"],
            )
            return {"nDCG@10": found["ndcg@10"], "RR@10": found["mrr@10"]}

        some = qrels.head(20)
        use_ranx(some, frame[frame["query_id"].isin(some["query_id"])])  # compiles it
        cases["ranx, pandas"] = use_ranx
    return cases


def _time_cases(cases: Mapping[str, Callable[[], Any]], repeats: int) -> list[dict[str, Any]]:
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    found: dict[str, Any] = {}
    for at in range(repeats):
        for name, case in cases.items():
            if at and seconds[name][0] > _SLOW:  # once is enough to see it
                continue
            begin = time.perf_counter()
            found[name] = case()
            seconds[name].append(time.perf_counter() - begin)
    (first, right), *_ = found.items()
    floor = statistics.median(seconds[first])
    return [
        {
            "case": name,
            "seconds": statistics.median(seconds[name]),
            "repeats": len(seconds[name]),
            "ratio": statistics.median(seconds[name]) / floor,
            "verdict": "equal" if _alike(found[name], right) else f"differs: {found[name]}",
        }
        for name in cases
    ]


_SLOW = 60.0


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(
        math.isclose(one[name], other[name], abs_tol=_SHALLOW) for name in one
    )


def format_report(tasks: Sequence[Mapping[str, Any]], frames: Sequence[Mapping[str, Any]]) -> str:
    """Both tables, in Markdown."""
    lines = ["| task | tool | theirs, s | ours, s | theirs / ours | results |"]
    lines.append("| --- | --- | --: | --: | --: | --- |")
    for row in tasks:
        times = "- | - | -"
        if "ours" in row:
            ratio = row["theirs"] / row["ours"]
            times = f"{row['theirs']:.3f} | {row['ours']:.3f} | {ratio:.1f}"
        lines.append(f"| {row['task']} | {row['tool']} | {times} | {row['verdict']} |")
    if frames:
        lines += ["", "| run | s | repeats | to the file | results |"]
        lines.append("| --- | --: | --: | --: | --- |")
    lines += [
        f"| {row['case']} | {row['seconds']:.2f} | {row['repeats']} | {row['ratio']:.2f} | "
        f"{row['verdict']} |"
        for row in frames
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure; 1 where results differ."""
    given = _parse()
    if given.prepare:
        given.prepare.mkdir(parents=True, exist_ok=True)
        prepare(given.prepare.resolve())
        return 0
    if given.folder is not None:
        command = [str(prepared_python(given.folder.resolve())), __file__, "--here", *sys.argv[1:]]
        command.remove(str(given.folder))
        return subprocess.run(command, check=False, env=child_environment()).returncode
    if given.quick:
        given.queries, given.depth, given.large, given.repeats = 30, 120, (50, 100), 1
        given.peers = False
    before = os.getloadavg()[0]
    tasks = _run_tasks(given)
    frames = _run_frames(given)
    print(format_report(tasks, frames))
    print(f"\nload before and after: {before:.1f}, {os.getloadavg()[0]:.1f}")
    print(json.dumps({"queries": given.queries, "depth": given.depth, "repeats": given.repeats}))
    wrong = [row for row in (*tasks, *frames) if row["verdict"] not in ("equal", "not installed")]
    return 1 if wrong else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR")
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--here", action="store_true", help="with this Python")
    parser.add_argument("--quick", action="store_true", help="small, once")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument(
        "--large", type=int, nargs=2, default=(9000, 1000), metavar=("QUERIES", "DEPTH")
    )
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="of large frames")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not (given.folder or given.prepare or given.here):
        parser.error("DIR, --prepare DIR or --here")
    return given


if __name__ == "__main__":
    sys.exit(main())
