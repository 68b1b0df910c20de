"""`heldout rank` re-ranking, from the command line, with a tiny model in a folder."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from click.testing import CliRunner
from numpy.typing import NDArray
from small_task import write_collection
from tiny_models import TinyModels

from heldout.cli.program import main
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    load_cross_encoder,
)
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_collection(tmp_path)


def invoke(folder: Path, *arguments: object) -> tuple[int, str, str]:
    words = ["--collection", folder, *arguments]
    result = CliRunner().invoke(main, ["rank", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def rankings(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        query, _, document, *_ = line.split()
        found.setdefault(query, []).append(document)
    return found


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("cross-encoder", "bert"),
        ("monot5", "t5"),
        ("duot5", "t5"),
        ("colbert", "colbert"),
        ("dense", "dense"),
    ],
)
def test_each_method_reorders_the_head_of_a_run_and_keeps_its_tail(
    tiny: TinyModels, folder: Path, method: str, model: str
) -> None:
    first, out = folder / "first.run", folder / "second.run"
    assert invoke(folder, "--method", "tfidf", "--depth", 7, "--out", first)[0] == 0
    code, stdout, _ = invoke(
        *(folder, "--method", method, "--param", f"model={getattr(tiny, model)}"),
        *("--param", "precision=float32", "--first", first, "--rerank-depth", 4, "--depth", 6),
        *("--out", out, "--json"),
    )
    assert code == 0
    told = json.loads(stdout)
    assert (told["first"], told["rerank_depth"], told["queries"]) == (str(first), 4, 3)
    before, after = rankings(first), rankings(out)
    for query, documents in before.items():
        assert sorted(after[query][:4]) == sorted(documents[:4])
        assert after[query][4:] == documents[4:6]
    assert not (folder / "second.run.partial").exists()


def test_without_a_first_stage_bm25_is_it_and_dense_and_colbert_rank_alone(
    tiny: TinyModels, folder: Path
) -> None:
    def run(method: str, model: str, *more: str) -> dict[str, list[str]]:
        out = folder / "run"
        code, _, stderr = invoke(
            *(folder, "--method", method, "--param", f"model={model}", "--depth", 3),
            *("--out", out, *more),
        )
        assert code == 0, stderr
        return rankings(out)

    assert run("cross-encoder", tiny.bert) == run("cross-encoder", tiny.bert, "--first", "bm25")
    for method, model in (("dense", tiny.dense), ("colbert", tiny.colbert)):
        alone = run(method, model)
        (folder / "run").rename(folder / "alone.run")
        again = run(method, model, "--first", str(folder / "alone.run"), "--rerank-depth", "3")
        assert again == alone
    # Only the best three of tfidf are looked at, so they are all there is.
    few = run("colbert", tiny.colbert, "--first", "tfidf", "--rerank-depth", "3")
    assert {query: set(found) for query, found in few.items()} == {
        query: set(found) for query, found in run_tfidf(folder).items()
    }


@pytest.mark.parametrize(("method", "model", "depth"), [("duot5", "t5", 20), ("monot5", "t5", 100)])
def test_how_deep_is_re_ranked_hangs_on_the_method_unless_said(
    tiny: TinyModels, folder: Path, method: str, model: str, depth: int
) -> None:
    words = ("--method", method, "--param", f"model={getattr(tiny, model)}", "--json")
    for more, wanted in (((), depth), (("--rerank-depth", 3), 3)):
        status, stdout, _ = invoke(folder, *words, *more, "--out", folder / "run")
        assert (status, json.loads(stdout)["rerank_depth"]) == (0, wanted)


def run_tfidf(folder: Path) -> dict[str, list[str]]:
    out = folder / "tfidf"
    assert invoke(folder, "--method", "tfidf", "--depth", 3, "--out", out)[0] == 0
    return rankings(out)


def test_passages_change_scores_of_long_documents_only(tiny: TinyModels, folder: Path) -> None:
    def run(*more: object) -> bytes:
        out = folder / "run"
        model = f"model={tiny.bert}"
        code, _, _ = invoke(
            folder, "--method", "cross-encoder", "--param", model, "--out", out, *more
        )
        assert code == 0
        return out.read_bytes()

    assert run("--passage", 500) == run()
    assert run("--passage", 4) != run()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--method", "bm25", "--first", "tfidf"), "rank-method"),
        (("--method", "monot6"), "rank-method"),
        (("--method", "monot5", "--first", "nowhere.run"), "rank-first"),
        (("--method", "monot5", "--first", "duot5"), "rank-method"),
        (("--method", "monot5", "--param", "batch=0"), "rank-parameter"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_read(
    folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    out = folder / "run"
    status, stdout, stderr = invoke(folder / "absent", *arguments, "--out", out)
    assert (status, stdout) == (2, "")
    assert code in stderr
    assert sorted(path.name for path in folder.iterdir()) == ["documents.tsv", "queries.tsv"]


def test_a_model_that_gave_no_score_does_not_block_the_next(tiny: TinyModels, folder: Path) -> None:
    out, damaged = folder / "run", folder / "damaged"
    encoder = load_cross_encoder(CrossEncoderSettings(model=tiny.bert, device="cpu"))
    encoder.model.classifier.bias.data.fill_(float("nan"))
    encoder.save(damaged)

    def call(model: object) -> tuple[int, str, str]:
        return invoke(
            folder, "--method", "cross-encoder", "--param", f"model={model}", "--out", out
        )

    status, _, stderr = call(damaged)
    assert status == 2
    assert "model-scores" in stderr
    status, _, stderr = call(tiny.bert)
    assert (status, out.exists()) == (0, True), stderr


def test_a_query_that_the_first_stage_does_not_answer_is_said(
    tiny: TinyModels, folder: Path
) -> None:
    first, out = folder / "first.run", folder / "run"
    first.write_text("7 Q0 d1 1 2.0 x\n7 Q0 d3 2 1.0 x\n")
    words = ("--method", "cross-encoder", "--param", f"model={tiny.bert}", "--out", out)
    status, _, stderr = invoke(folder, *words, "--first", first)
    assert status == 0
    assert "note      2 queries without documents in" in stderr
    assert rankings(out).keys() == {"7"}
    first.write_text("7 Q0 elsewhere 1 2.0 x\n")
    status, _, stderr = invoke(folder, *words, "--first", first)
    assert status == 2
    assert "rerank-document" in stderr


def test_a_command_that_was_stopped_goes_on_to_the_same_bytes(
    tiny: TinyModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, whole = folder / "killed.run", folder / "whole.run"
    words = ("--method", "cross-encoder", "--param", f"model={tiny.bert}", "--first", "tfidf")
    score, calls = CrossEncoder.score, 0

    def die_at_the_third(encoder: CrossEncoder, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return score(encoder, pairs)

    monkeypatch.setattr(CrossEncoder, "score", die_at_the_third)
    assert invoke(folder, *words, "--out", killed)[0] == 1
    assert (folder / "killed.run.partial").read_bytes().count(b"\n") == 2
    assert not killed.exists()
    assert (invoke(folder, *words, "--out", killed)[0], calls) == (0, 4)
    assert invoke(folder, *words, "--out", whole)[0] == 0
    assert killed.read_bytes() == whole.read_bytes()
    assert not (folder / "killed.run.partial").exists()
