"""`heldout rank` without a method: which default it takes, and what that ranks."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from small_task import TEXTS, LetterEncoder, write_collection

from heldout.cli.program import main
from heldout.ids import DocId, QueryId
from heldout.rankers import methods
from heldout.rankers.methods import choose_default, choose_method, rank_hybrid
from heldout.rankers.run import RankingTask


@pytest.mark.parametrize(
    ("installed", "given", "chosen"),
    [
        (True, {"batch": "2"}, ("hybrid", {"batch": "2"})),
        (False, {}, ("rm3", {"stopwords": "true"})),
        (False, {"stopwords": "false"}, ("rm3", {"stopwords": "false"})),
    ],
)
def test_the_default_depends_on_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
    *,
    installed: bool,
    given: dict[str, str],
    chosen: tuple[str, dict[str, str]],
) -> None:
    monkeypatch.setattr(methods, "has_encoder", lambda: installed)
    assert choose_default(given) == chosen


def test_without_a_method_the_default_ranks_and_may_re_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bm25s")
    monkeypatch.setattr(methods, "has_encoder", lambda: False)
    write_collection(tmp_path)
    runs = []
    for called in ((), ("--method", "rm3", "--param", "stopwords=true")):
        out = tmp_path / "run.txt"
        arguments = ["rank", "--collection", str(tmp_path), "--out", str(out), *called]
        result = CliRunner().invoke(main, arguments)
        assert (result.exit_code, result.stdout) == (0, "")
        runs.append(out.read_text())
    assert runs[0] == runs[1]
    refused = CliRunner().invoke(main, ["rank", "--first", "bm25", "--out", str(tmp_path / "x")])
    assert refused.exit_code == 2
    assert "rank-method" in refused.stderr


def test_a_shallow_hybrid_run_is_the_top_of_a_deep_one() -> None:
    documents = {DocId(key): text for key, text in TEXTS.items()}
    queries = {QueryId("q"): "open and read the file"}
    deep, shallow = (
        rank_hybrid(RankingTask(documents=documents, queries=queries, depth=depth), LetterEncoder())
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
    task = RankingTask(
        documents=documents, queries={QueryId("q"): "doctor treats patient"}, depth=3
    )
    run = choose_method("hybrid", {})(task)
    assert run[QueryId("q")][0].document == "d1"
