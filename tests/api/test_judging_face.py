"""`heldout.judging` from Python: the documents of the commands, from values and from files."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import heldout as ho
from heldout.cli.program import main
from heldout.judging.labels.labels import Made
from heldout.judging.labels.source import Judged

QUERIES = 24
Rows = list[tuple[str, str, str, str]]


def make_world() -> tuple[Rows, dict[str, dict[str, dict[str, float]]], dict[str, dict[str, int]]]:
    """Judgments of the first documents of three runs, the runs, and labels."""
    rng = Random(17)  # noqa: S311 - made-up runs
    rows: Rows = []
    runs: dict[str, dict[str, dict[str, float]]] = {"one": {}, "two": {}, "three": {}}
    qrels: dict[str, dict[str, int]] = {}
    for number in range(QUERIES):
        query, docs = f"q{number}", [f"d{number}-{place}" for place in range(5)]
        qrels[query] = {docs[0]: 1}
        for skill, name in enumerate(runs, 1):
            drawn = {doc: rng.random() + skill * docs.index(doc) / 4 for doc in docs}
            order = sorted(docs, key=drawn.__getitem__)
            runs[name][query] = {doc: 5.0 - place for place, doc in enumerate(order)}
        first = sorted({next(iter(run[query])) for run in runs.values()} | {docs[0]})
        for place, a in enumerate(first):
            for b in first[place + 1 :]:
                rows += [(query, a, b, min(a, b) if rng.random() < 0.8 else b) for _ in range(2)]
    return rows, runs, qrels


ROWS, RUNS, QRELS = make_world()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("judged")
    (root / "judged.tsv").write_text("".join(" ".join(row) + "\n" for row in ROWS))
    labels = ((q, d, g) for q, docs in QRELS.items() for d, g in docs.items())
    (root / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in labels))
    for name, run in RUNS.items():
        scored = ((q, d, s) for q, docs in run.items() for d, s in docs.items())
        (root / f"{name}.run").write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in scored))
    return root


def command(folder: Path, *arguments: str) -> Any:
    """The document that a command of `heldout prefer` prints."""
    files = ("--judgments", f"{folder}/judged.tsv", "--runs", f"{folder}/*.run", "--json")
    given = ("prefer", *arguments, *files, "--qrels", f"{folder}/qrels")
    answer = CliRunner().invoke(main, given)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def named(folder: Path) -> Mapping[str, Path]:
    return {name: folder / f"{name}.run" for name in sorted(RUNS)}


@pytest.fixture(scope="module")
def judged(folder: Path) -> Judged:
    return ho.judging.read_judgments(folder / "judged.tsv", qrels=folder / "qrels")


def plain(answer: ho.Answer) -> Any:
    return json.loads(json.dumps(answer.to_dict()))


def test_contests_are_those_of_the_command(folder: Path, judged: Judged) -> None:
    found = ho.judging.contests(judged, f"{folder}/*.run")
    assert plain(found) == command(folder, "contests")
    assert found.columns()["run"]


def test_strengths_are_those_of_the_command(folder: Path, judged: Judged) -> None:
    found = ho.judging.strengths(judged, f"{folder}/*.run", draws=50, seed=3)
    assert plain(found) == command(folder, "strengths", "--draws", "50", "--seed", "3")


@pytest.mark.parametrize("mode", ["tournament", "bradley-terry"])
def test_labels_and_every_run_on_them_are_those_of_the_command(folder: Path, mode: Any) -> None:
    paths = f"{folder}/*.run"
    judged = ho.judging.read_judgments(folder / "judged.tsv", qrels=folder / "qrels", runs=paths)
    labels = ho.judging.make_labels(judged, mode=mode, name="v1")
    found = ho.judging.rescore(judged, labels, paths, trials=50, redraws=3, seed=5)
    options = ("--mode", mode, "--trials", "50", "--redraws", "3", "--seed", "5", "--name", "v1")
    assert plain(found) == command(folder, "labels", *options)


def test_rows_mappings_and_frames_are_as_files(folder: Path, judged: Judged) -> None:
    pandas = pytest.importorskip("pandas")
    rows = ho.judging.read_judgments(ROWS, qrels=QRELS)
    frame = pandas.DataFrame(ROWS, columns=["query", "a", "b", "preferred"])
    from_frame = ho.judging.read_judgments(frame.itertuples(index=False), qrels=QRELS)
    assert rows.judgments == judged.judgments == from_frame.judgments
    runs = {
        name: pandas.read_csv(path, sep=" ", names=["qid", "x", "docno", "r", "score", "t"])
        for name, path in named(folder).items()
    }
    read = [ho.read_run(RUNS[name], name=name) for name in sorted(RUNS)]

    wanted = plain(ho.judging.contests(judged, named(folder)))
    for given in ({name: RUNS[name] for name in sorted(RUNS)}, runs, read):
        assert plain(ho.judging.contests(rows, given)) == wanted


def test_labels_score_runs_as_judgments(folder: Path, judged: Judged) -> None:
    labels = ho.judging.make_labels(judged)
    (folder / "new").write_bytes(labels.qrels)

    assert ho.read_qrels(folder / "new").judgments == labels.grades
    by_values = ho.evaluate(RUNS, labels.grades, "RR@10")
    by_files = ho.evaluate(named(folder), folder / "new", "RR@10")
    assert {run: by_values[run] for run in RUNS} == {run: by_files[run] for run in RUNS}


def test_two_versions_of_labels_are_compared_on_the_queries_of_both(
    folder: Path, judged: Judged
) -> None:
    labels: Made = ho.judging.make_labels(judged)
    found = ho.judging.compare_labels(folder / "qrels", labels, RUNS, "RR@10", trials=30)

    common = {query: QRELS[query] for query in labels.grades}  # others have one passage alone
    before, after = (ho.evaluate(RUNS, grades, "RR@10") for grades in (common, labels.grades))
    columns = found.columns()
    rows = dict(
        zip(columns["run"], zip(columns["before"], columns["after"], strict=True), strict=True)
    )
    for run in RUNS:
        assert rows[run] == pytest.approx((before[run]["RR@10"], after[run]["RR@10"]))
    assert "ordered" not in columns
    document = found.to_dict()
    assert (document["before"], document["after"], document["queries"]) == (
        "qrels",
        "labels",
        len(common),
    )


def test_a_notebook_shows_sizes_and_not_every_judgment(judged: Judged) -> None:
    assert repr(judged).startswith(f"<Judged: {len(ROWS)} judgments of ")
    labels = ho.judging.make_labels(judged, name="v1")
    assert repr(labels) == f"<Made: labels 'v1' of {len(labels.grades)} queries, by tournament>"


def test_pools_are_the_first_documents_and_the_known_answers(folder: Path) -> None:
    pools = ho.judging.build_pools(named(folder), folder / "qrels", depth=2)
    assert [pool.query for pool in pools] == list(QRELS)
    for pool in pools:
        firsts = {doc for run in RUNS.values() for doc in list(run[pool.query])[:2]}
        assert {one.doc for one in pool.candidates} == firsts | set(QRELS[pool.query])
        assert pool.known is not None
        assert pool.known.doc in QRELS[pool.query]
    sample = ho.judging.build_pools(RUNS, QRELS, sample=5, seed=1)
    assert len(sample) == 5
    assert sample == ho.judging.build_pools(RUNS, QRELS, sample=5, seed=1)
    texts = {doc: "the same" for run in RUNS.values() for docs in run.values() for doc in docs}
    alike = ho.judging.build_pools(RUNS, QRELS, documents=texts)
    assert all(len(pool.candidates) == 1 for pool in alike)


def test_ratings_of_several_judges_are_read_for_agreement(tmp_path: Path) -> None:
    path = tmp_path / "ratings"
    path.write_text("q1 ann d1 1\nq1 bob d1 0\nq1 ann d2 1\nq1 bob d2 1\n")
    ratings = ho.judging.read_ratings(path)
    assert ratings == {"ann": {"q1": {"d1": 1, "d2": 1}}, "bob": {"q1": {"d1": 0, "d2": 1}}}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "no-judgments"),
        ([("q1", "a", "b")], "bad-preference"),
        ([("q1", "a", "a", "a")], "bad-preference"),
        ([("q1", "a", "b", "c")], "bad-preference"),
        ([("q1", "a", "b", None)], "bad-preference"),
        ([(1, "a", "b", "a")], "bad-preference"),
    ],
)
def test_rows_that_are_no_judgments_are_refused(rows: Any, code: str) -> None:
    with pytest.raises(ho.InputError) as caught:
        ho.judging.read_judgments(rows)
    assert caught.value.problems[0].code == code


def test_two_runs_of_one_name_are_refused(judged: Judged) -> None:
    twice = [ho.read_run(RUNS["one"], name="one"), ho.read_run(RUNS["two"], name="one")]
    with pytest.raises(ho.InputError) as caught:
        ho.judging.contests(judged, twice)
    assert caught.value.problems[0].code == "repeated-system"


@pytest.mark.parametrize("room", ["judging", "survivorship"])
def test_every_name_is_there_with_an_example(room: str) -> None:
    package = getattr(ho, room)
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        found = getattr(package, name)
        assert found.__doc__
        if callable(found) and not isinstance(found, type) and name != "labels_at":
            assert "Example:" in found.__doc__
    with pytest.raises(AttributeError):
        _ = package.nothing


def test_naming_the_rooms_takes_nothing_with_it() -> None:
    code = (
        "import heldout as ho, sys; ho.judging, ho.survivorship; dir(ho.judging);"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'scipy', 'msgspec')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.real
def test_judgments_of_trec_give_what_the_commands_give(data: Callable[[str], Path]) -> None:
    judgments = data("preferences/dl21-dueling-bandits/judgments.txt.gz")
    qrels = data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz")
    names = ("NLE_P_v1", "NLE_P_quick", "bcai_p_mbert")
    paths = [data(f"trec-dl-2021-passage/runs/{name}.gz") for name in names]
    judged = ho.judging.read_judgments(judgments, qrels=qrels)
    assert len(judged.judgments) == 11_681

    given = ("--judgments", str(judgments), "--qrels", str(qrels), "--json")
    runs = [part for path in paths for part in ("--runs", str(path))]
    said = CliRunner().invoke(main, ["prefer", "contests", *given, *runs])
    assert plain(ho.judging.contests(judged, paths)) == json.loads(said.stdout)
    labels = ho.judging.make_labels(judged)
    said = CliRunner().invoke(main, ["prefer", "labels", *given])
    document = json.loads(said.stdout)
    assert document["labels"] == {query: sorted(docs) for query, docs in labels.grades.items()}
