"""`heldout.survivorship` from Python: the documents of the commands, from values and from files."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import heldout as ho
from heldout.cli.program import main
from heldout.survivorship import Annotations

QUERIES, DEPTH = 40, 4


def make_world() -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, dict[str, int]]]:
    """Two runs of ten documents, and labels that the first documents of the one mostly have."""
    rng = Random(5)  # noqa: S311 - made-up runs
    runs: dict[str, dict[str, dict[str, float]]] = {"bm25": {}, "dense": {}}
    qrels: dict[str, dict[str, int]] = {}
    for number in range(QUERIES):
        query, docs = f"q{number}", [f"d{number}-{place}" for place in range(10)]
        qrels[query] = {rng.choice(docs[:3] * 3 + docs): 1, docs[9]: 0}
        for name, run in runs.items():
            order = docs if name == "bm25" else rng.sample(docs, 10)
            run[query] = {doc: 10.0 - place for place, doc in enumerate(order)}
    return runs, qrels


RUNS, QRELS = make_world()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("survived")
    labels = ((q, d, g) for q, docs in QRELS.items() for d, g in docs.items())
    (root / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in labels))
    for name, run in RUNS.items():
        scored = ((q, d, s) for q, docs in run.items() for d, s in docs.items())
        (root / f"{name}.run").write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in scored))
    kinds = "".join(f"{query}\t{'odd' if n % 2 else 'even'}\n" for n, query in enumerate(QRELS))
    (root / "kinds").write_text(kinds)
    return root


@pytest.fixture(scope="module")
def annotations() -> Annotations:
    return ho.survivorship.annotate_run({"bm25": RUNS["bm25"]}, QRELS, depth=DEPTH)


def command(folder: Path, *arguments: str) -> Any:
    """The document that a command of `heldout survive` prints."""
    shown = ("--shown", f"{folder}/bm25.run", "--qrels", f"{folder}/qrels")
    given = ("survive", *arguments, *shown, "--shown-depth", str(DEPTH), "--json")
    answer = CliRunner().invoke(main, given)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def plain(answer: ho.Answer) -> Any:
    document = json.loads(json.dumps(answer.to_dict()))
    document.pop("source", None)  # a path there, a name here
    return document


def expected(document: Any) -> Any:
    document.pop("source", None)
    return document


def test_scores_by_depth_are_those_of_the_command(folder: Path, annotations: Annotations) -> None:
    found = ho.survivorship.score_depths(annotations, RUNS, "RR@10", to=6, trials=100, seed=2)
    options = ("--to", "6", "--trials", "100", "--seed", "2", "--runs", f"{folder}/*.run")
    assert plain(found) == expected(command(folder, "depths", *options))
    shown = ho.survivorship.score_depths(annotations, measure="RR@10", depths=(1, 2), to=0)
    assert plain(shown) == expected(
        command(folder, "depths", "--depth", "1", "--depth", "2", "--to", "0")
    )


def test_types_are_those_of_the_command(folder: Path, annotations: Annotations) -> None:
    kinds = dict(line.split("\t") for line in (folder / "kinds").read_text().splitlines())
    found = ho.survivorship.query_types(annotations, kinds)
    assert plain(found) == expected(command(folder, "types", "--types", f"{folder}/kinds"))


def test_labels_of_a_depth_are_what_was_selected_above_it(annotations: Annotations) -> None:
    places = {q: list(RUNS["bm25"][q]).index(next(iter(docs))) + 1 for q, docs in QRELS.items()}
    for depth in range(1, DEPTH + 1):
        labels = ho.survivorship.labels_at(annotations, depth)
        assert set(labels) == {query for query, place in places.items() if place <= depth}
        scores = ho.evaluate(RUNS, labels, "RR@10")
        study = ho.survivorship.score_depths(annotations, RUNS, "RR@10", to=0).to_dict()
        for run in RUNS:
            found = study["depths"][depth - 1]["scores"][run]
            assert scores[run]["RR@10"] == pytest.approx(found)
    assert ho.survivorship.labels_at(annotations) == ho.survivorship.labels_at(annotations, DEPTH)
    discarded = {one.query for one in ho.survivorship.discarded_queries(annotations)}
    assert discarded == {query for query, place in places.items() if place > DEPTH}
    assert annotations.discarded == len(discarded)


def test_a_notebook_shows_sizes_and_not_every_query(annotations: Annotations) -> None:
    survived = annotations.survived
    assert repr(annotations) == f"<Annotations: 40 queries to depth 4, {survived} with a label>"


def test_a_file_of_another_kind_has_no_annotations(folder: Path) -> None:
    with pytest.raises(ho.InputError) as caught:
        ho.survivorship.read_annotations(folder / "kinds")
    assert caught.value.problems[0].code == "no-annotations"


def test_triples_of_a_depth_are_some_of_all_in_their_order(annotations: Annotations) -> None:
    every = list(
        ho.survivorship.make_training_triples(annotations, {"dense": RUNS["dense"]}, negatives=3)
    )
    first = list(
        ho.survivorship.make_training_triples(
            annotations, {"dense": RUNS["dense"]}, depth=1, negatives=3
        )
    )
    labels = ho.survivorship.labels_at(annotations, 1)
    assert first == [one for one in every if one.positive in labels.get(one.query, {})]
    assert 0 < len(first) < len(every) == 3 * annotations.survived
    assert all(
        one.negative not in QRELS[one.query] or not QRELS[one.query][one.negative] for one in every
    )


def test_runs_of_other_queries_are_refused(annotations: Annotations) -> None:
    other = {"mine": {f"x{query}": docs for query, docs in RUNS["bm25"].items()}}
    with pytest.raises(ho.InputError) as caught:
        ho.survivorship.score_depths(annotations, other)
    assert caught.value.problems[0].code == "no-common-query"
