"""`heldout rank` without a method: the default, its comparison with BM25, and fine-tuning."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from small_task import TEXTS

from heldout.cli.program import main
from heldout.ids import Digest, DocId, QueryId
from heldout.rankers import reranking
from heldout.rankers.methods import bind_method, choose_zero_shot, rank_hybrid
from heldout.rankers.run import Task

WORDS = [
    "open",
    "close",
    "read",
    "write",
    "walk",
    "yield",
    "buffer",
    "path",
    "file",
    "tree",
    "sum",
    "number",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve queries and sixty documents of random words, labelled by the query's own words."""
    rng = np.random.default_rng(5)
    documents = [" ".join(rng.choice(WORDS, size=6)) for _ in range(60)]
    queries = [" ".join(rng.choice(WORDS, size=2, replace=False)) for _ in range(12)]
    place = tmp_path / "collection"
    place.mkdir()
    rows = "".join(f"d{number}\t{text}\n" for number, text in enumerate(documents))
    (place / "documents.tsv").write_text(rows)
    rows = "".join(f"q{number}\t{text}\n" for number, text in enumerate(queries))
    (place / "queries.tsv").write_text(rows)
    labels = "".join(
        f"q{number} 0 d{row} 1\n"
        for number, query in enumerate(queries)
        for row, text in enumerate(documents)
        if set(query.split()) <= set(text.split())
    )
    (place / "qrels.txt").write_text(labels)
    return place


@pytest.fixture(autouse=True)
def _lexical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "ir_datasets"))
    monkeypatch.setattr(reranking, "has_encoder", lambda: False)


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["rank", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def answer(folder: Path, *arguments: object) -> dict[str, object]:
    out = folder.parent / "run.txt"
    code, stdout, stderr = invoke("--collection", folder, "--out", out, "--json", *arguments)
    assert (code, out.exists()) == (0, True), stderr
    found: dict[str, object] = json.loads(stdout)
    return found


def test_without_a_method_the_default_ranks_and_is_compared(folder: Path) -> None:
    code, stdout, stderr = invoke("--collection", folder, "--out", folder.parent / "run.txt")
    assert code == 0
    assert "pseudo-relevance feedback" in stderr
    assert stdout.startswith("Whether zero-shot-lexical is better than BM25 is not known: ")
    assert "on 12 labelled queries" in stdout
    assert "bootstrap 95%" in stdout
    assert "heldout rank --method bm25" in stdout


def test_json_has_the_comparison(folder: Path) -> None:
    found = answer(folder)
    assert (found["method"], found["parameters"]) == ("zero-shot-lexical", {})
    assert found["labels"] == str(folder / "qrels.txt")
    comparison = found["comparison"]
    assert isinstance(comparison, dict)
    assert comparison["measure"] == "nDCG@10"
    assert comparison["wins"] + comparison["ties"] + comparison["losses"] == 12
    assert comparison["verdict"] in ("better", "not better", "worse", "cannot tell")


def test_without_labels_it_says_so_and_what_labels_would_buy(folder: Path) -> None:
    (folder / "qrels.txt").unlink()
    code, stdout, _ = invoke("--collection", folder, "--out", folder.parent / "run.txt")
    assert code == 0
    assert "Without labels it is unknown whether this run is better" in stdout
    assert "50 labelled queries would find a true gain of about" in stdout
    found = answer(folder)
    assert (found["labels"], found["comparison"], found["why"]) == (None, None, "no labels")
    _, stdout, _ = invoke(
        *("--collection", folder, "--out", folder.parent / "run.txt", "--measure", "RR@10")
    )
    assert "50 labelled queries" not in stdout


def test_labels_of_its_own_are_taken_where_given(folder: Path) -> None:
    other = folder.parent / "other.tsv"
    other.write_text("query-id\tcorpus-id\tscore\nq0\td1\t1\nq99\td1\t1\n")
    found = answer(folder, "--qrels", other, "--measure", "RR@10")
    comparison = found["comparison"]
    assert isinstance(comparison, dict)
    assert (comparison["queries"], comparison["unasked"]) == (1, 1)
    assert (comparison["verdict"], comparison["t"]) == ("cannot tell", None)


def test_bm25_against_itself_is_no_better(folder: Path) -> None:
    found = answer(folder, "--method", "bm25", "--compare")
    comparison = found["comparison"]
    assert isinstance(comparison, dict)
    assert (comparison["difference"], comparison["ties"]) == (0, 12)
    assert comparison["verdict"] == "cannot tell"


def test_a_named_method_is_not_compared_unless_asked(folder: Path) -> None:
    assert "comparison" not in answer(folder, "--method", "tfidf")
    assert "comparison" in answer(folder, "--method", "tfidf", "--qrels", folder / "qrels.txt")
    assert "comparison" not in answer(folder, "--no-compare")


def test_a_learning_curve_says_whether_fine_tuning_pays(folder: Path) -> None:
    curve = folder.parent / "curve"
    curve.mkdir()
    points = [
        {
            "pairs": 100 * 2**step,
            "trials": [0.2 + 0.05 * step + noise for noise in (-0.01, 0, 0.01)],
        }
        for step in range(3)
    ]
    text = {"measure": "RR@10 on mine", "baseline": {"name": "bm25", "mean": 0.4}, "points": points}
    (curve / "learning-curve.json").write_text(json.dumps(text))
    both = answer(folder, "--curve", curve)
    assert isinstance(both["comparison"], dict)
    assert both["comparison"]["measure"] == "RR@10"
    found = answer(folder, "--no-compare", "--curve", curve)["fine_tuning"]
    assert isinstance(found, dict)
    assert found["verdict"] == "would pay"
    assert found["pairs_needed"] > 400
    code, stdout, _ = invoke(
        *("--collection", folder, "--out", folder.parent / "x", "--curve", curve)
    )
    assert code == 0
    assert "fine-tuning would pay against bm25" in stdout
    assert "pairs reach 0.4200" in stdout
    assert "this run is not in the curve, bm25 is" in stdout
    out = folder.parent / "refused"
    code, _, stderr = invoke(
        *("--collection", folder, "--out", out, "--curve", curve, "--measure", "nDCG@10")
    )
    assert (code, out.exists()) == (2, False)
    assert "curve-measure" in stderr
    assert answer(folder, "--curve", curve, "--measure", "RR@10")["fine_tuning"] == found


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--param", "k1=1"), "rank-parameter"),
        (("--first", "bm25"), "rank-method"),
        (("--measure", "nonsense"), "measure-name"),
        (("--curve", "nowhere"), "curve-file"),
        (("--qrels", "nowhere"), "unreadable-file"),
        (("--collection", "irds:no/such/name"), "collection-name"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anything_is_ranked(
    folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    out = folder.parent / "run.txt"
    collection = () if "--collection" in arguments else ("--collection", folder)
    status, stdout, stderr = invoke(*collection, "--out", out, *arguments)
    assert (status, stdout) == (2, "")
    assert code in stderr
    assert not out.exists()


def test_labels_that_number_queries_otherwise_are_refused_before_ranking(folder: Path) -> None:
    (folder / "qrels.txt").write_text("1 0 d1 1\n2 0 d2 1\n")
    out = folder.parent / "run.txt"
    status, _, stderr = invoke("--collection", folder, "--out", out)
    assert status == 2
    assert "labels-match-nothing" in stderr
    assert not out.exists()


def test_what_is_chosen_hangs_on_what_is_installed() -> None:
    assert choose_zero_shot(encoder=True).name == "zero-shot-hybrid"
    assert choose_zero_shot(encoder=False).name == "zero-shot-lexical"


class CountingEncoder:
    """Vectors of word counts: no weights, and texts of the same words are alike."""

    digest = Digest("0" * 64)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[text.lower().split().count(word) for word in WORDS] for text in texts]
        vectors = np.array(rows, dtype=np.float32) + 1e-3
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / lengths, dtype=np.float32)


def test_a_shallow_hybrid_run_is_the_top_of_a_deep_one() -> None:
    documents = {DocId(key): text for key, text in TEXTS.items()}
    queries = {QueryId("q"): "open and read the file"}
    deep, shallow = (
        rank_hybrid(Task(documents=documents, queries=queries, depth=depth), CountingEncoder())
        for depth in (7, 2)
    )
    assert [hit.document for hit in shallow[QueryId("q")]] == [
        hit.document for hit in deep[QueryId("q")][:2]
    ]


@pytest.mark.usefixtures("neural")
def test_the_default_with_an_encoder_finds_what_shares_no_word() -> None:
    import torch  # noqa: PLC0415 - the extra `neural` may be missing

    torch.set_num_threads(1)
    documents = {
        DocId("d1"): "The physician examined the sick child.",
        DocId("d2"): "A recipe for lemon cake with butter and sugar.",
        DocId("d3"): "The committee adjourned without a vote.",
    }
    task = Task(documents=documents, queries={QueryId("q"): "doctor treats patient"}, depth=3)
    default = choose_zero_shot(encoder=True)
    run = bind_method(default.method, {})(task)
    assert run[QueryId("q")][0].document == "d1"
