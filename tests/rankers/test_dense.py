"""Dense retrieval: the ranking with vectors of our own, the encoder where it is installed."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_task import LetterEncoder, small_task
from tiny_models import save_encoder

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.rankers.neural import checkpoints
from heldout.rankers.neural.checkpoints import CHECKPOINTS
from heldout.rankers.neural.encoders import DenseEncoder, DenseSettings, load_encoder, rank_dense
from heldout.rankers.run import RankingTask, TextPair


def test_documents_are_ordered_by_inner_product() -> None:
    texts = {"d1": "abc", "d2": "aab", "d3": "ccc", "d4": "aab", "d5": "x"}
    task = RankingTask(
        documents={DocId(key): text for key, text in texts.items()},
        queries={QueryId("1"): "aab", QueryId("2"): "c"},
        depth=4,
    )
    run = rank_dense(task, LetterEncoder())
    assert [hit.document for hit in run[QueryId("1")]] == ["d4", "d2", "d1", "d5"]
    assert [hit.document for hit in run[QueryId("2")]] == ["d3", "d1", "d5", "d4"]
    assert run[QueryId("1")][0].score == pytest.approx(1.0)


def test_vectors_in_a_folder_are_not_computed_again(tmp_path: Path) -> None:
    encoder = LetterEncoder()
    folder = str(tmp_path / "vectors")
    runs = [rank_dense(small_task(), encoder, folder=folder) for _ in range(2)]
    assert runs[0] == runs[1] == rank_dense(small_task(), LetterEncoder())
    assert encoder.encoded == len(small_task().documents)


@pytest.fixture(scope="module")
def minilm(neural: None) -> DenseEncoder:
    del neural
    return load_encoder(DenseSettings(precision="float32", device="cpu"))


@pytest.mark.filterwarnings("ignore")  # other people's warnings, while torch starts
def test_the_encoder_finds_the_right_document(minilm: DenseEncoder) -> None:
    assert rank_dense(small_task(), minilm)[QueryId("7")][0].document == "d3"
    texts = ["A man is eating food.", "Someone eats a meal.", "sort a list in place"]
    vectors = minilm.encode_documents(texts)
    assert vectors.shape == (3, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    alike, unlike = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert alike > 0.5
    assert unlike < 0.3


@pytest.mark.filterwarnings("ignore")
def test_other_weights_than_those_of_the_table_are_refused(
    neural: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del neural
    packaged = checkpoints.find_packaged(checkpoints.MINILM)
    assert packaged is not None
    copy = shutil.copytree(packaged, tmp_path / "copy")
    monkeypatch.setattr(checkpoints, "find_packaged", lambda _: str(copy))
    load_encoder(DenseSettings(device="cpu"))
    weights = copy / "model.safetensors"
    whole = bytearray(weights.read_bytes())
    whole[-1] ^= 1
    weights.write_bytes(whole)
    with pytest.raises(InputError, match=r"found model\.safetensors with SHA-256"):
        load_encoder(DenseSettings(device="cpu"))
    weights.unlink()
    with pytest.raises(InputError, match=r"found no model\.safetensors"):
        load_encoder(DenseSettings(device="cpu"))
    # A folder by its path may hold any weights.
    weights.write_bytes(whole)
    load_encoder(DenseSettings(model=str(copy), device="cpu"))


def test_the_ranking_is_that_of_semantic_search(minilm: DenseEncoder) -> None:
    from sentence_transformers import util  # noqa: PLC0415 - of the extra `neural`

    task = small_task()
    documents = sorted(task.documents)
    vectors = minilm.model.encode([task.documents[key] for key in documents])
    queries = minilm.model.encode(list(task.queries.values()))
    run = rank_dense(task, minilm)
    for query, found in zip(
        task.queries, util.semantic_search(queries, vectors, top_k=task.depth), strict=True
    ):
        assert [hit.document for hit in run[query]] == [
            documents[int(hit["corpus_id"])] for hit in found
        ]
        assert [hit.score for hit in run[query]] == pytest.approx(
            [hit["score"] for hit in found], abs=1e-5
        )


@pytest.mark.filterwarnings("ignore")
def test_pairs_score_as_the_ranking_does(minilm: DenseEncoder) -> None:
    task = small_task()
    text = task.queries[QueryId("7")]
    hits = rank_dense(task, minilm)[QueryId("7")]
    scores = minilm.score([TextPair(text, task.documents[hit.document]) for hit in hits])
    assert scores == pytest.approx([hit.score for hit in hits], abs=1e-5)
    assert minilm.score([]).shape == (0,)


@pytest.mark.filterwarnings("ignore")
def test_prefixes_and_similarity_are_those_of_the_table_or_as_asked(
    minilm: DenseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (minilm.similarity, minilm.query_prompt or "") == ("cosine", "")
    row = replace(CHECKPOINTS["minilm"], query_prefix="ask: ", similarity="dot")
    monkeypatch.setitem(CHECKPOINTS, "minilm", row)
    tabled = load_encoder(DenseSettings(precision="float32", device="cpu"))
    assert (tabled.similarity, tabled.query_prompt) == ("dot", "ask: ")
    asked = load_encoder(
        DenseSettings(precision="float32", device="cpu", similarity="cosine", query_prefix="q: ")
    )
    assert (asked.similarity, asked.query_prompt) == ("cosine", "q: ")
    assert asked.encode_queries(["a list"]) == pytest.approx(
        minilm.encode_documents(["q: a list"]), abs=1e-6
    )
    assert len({minilm.digest, tabled.digest, asked.digest}) == 3


@pytest.mark.usefixtures("neural")
@pytest.mark.filterwarnings("ignore")
def test_a_copy_in_a_folder_says_what_it_is_a_copy_of(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - of `neural`

    folder = str(tmp_path / "copy")
    SentenceTransformer(str(save_encoder(tmp_path / "bare"))).save_pretrained(folder)
    plain = DenseSettings(model=folder, device="cpu", precision="float32")
    likened_settings = replace(plain, like="e5-small")
    silent, likened, told = (
        load_encoder(settings)
        for settings in (plain, likened_settings, replace(likened_settings, query_prefix="q: "))
    )
    assert not silent.query_prompt
    assert (likened.query_prompt, likened.document_prompt) == ("query: ", "passage: ")
    assert (told.query_prompt, told.document_prompt) == ("q: ", "passage: ")
    assert len({silent.digest, likened.digest, told.digest}) == 3
    assert likened.encode_queries(["a list"]) == pytest.approx(
        silent.encode_documents(["query: a list"]), abs=1e-6
    )
    ance = load_encoder(replace(plain, like="ance"))
    assert (silent.similarity, ance.similarity) == ("cosine", "dot")


@pytest.mark.parametrize("like", ["monot5", "somebody/else", "./copy"])
def test_likeness_to_what_is_no_sentence_encoder_of_the_table_is_refused(like: str) -> None:
    with pytest.raises(ValueError, match=r"like one of ance, .*contriever, .*e5-small"):
        DenseSettings(like=like)


@pytest.mark.usefixtures("neural")
@pytest.mark.filterwarnings("ignore")
def test_vectors_that_are_compared_by_distance_are_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - of `neural`

    place = str(save_encoder(tmp_path / "plain"))
    folder = str(tmp_path / "far")
    SentenceTransformer(place, similarity_fn_name="manhattan").save_pretrained(folder)
    with pytest.raises(InputError, match=r"model-checkpoint .* compared by manhattan"):
        load_encoder(DenseSettings(model=folder))
    assert load_encoder(DenseSettings(model=folder, similarity="dot")).similarity == "dot"
