"""ColBERT against plain calls and a loop over tokens."""

import string
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_task import small_task
from tiny_models import TinyModels

from heldout.errors import InputError
from heldout.ids import QueryId
from heldout.rankers.neural import late_interaction
from heldout.rankers.neural.late_interaction import (
    Colbert,
    ColbertSettings,
    load_colbert,
    max_similarity,
    rank_colbert,
)
from heldout.rankers.neural.vectors import Encoding
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_max_similarity_is_a_loop_over_tokens(counts: list[int], asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((asked, 3)).astype(np.float32)
    documents = [rng.standard_normal((count, 3)).astype(np.float32) for count in counts]
    starts = np.cumsum([0, *counts[:-1]])
    found = max_similarity(query, np.concatenate(documents), starts)
    for document, score in zip(documents, found, strict=True):
        wanted = sum(max(float(one @ other) for other in document) for one in query)
        assert score == pytest.approx(wanted, abs=1e-4)


@pytest.fixture(scope="module")
def colbert(tiny: TinyModels) -> Colbert:
    settings = ColbertSettings(
        model=tiny.colbert, precision="float32", device="cpu", batch=3, query_length=12, length=40
    )
    return load_colbert(settings)


def plain_vectors(folder: str, ids: list[int], attended: list[int]) -> NDArray[np.float32]:
    """Vectors of all tokens of one text, from the files of the checkpoint."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import load_file  # noqa: PLC0415 - same
    from transformers import BertConfig, BertModel  # noqa: PLC0415 - same

    weights = load_file(Path(folder) / "model.safetensors")
    linear = weights.pop("linear.weight")
    model = BertModel(BertConfig.from_pretrained(folder)).eval()
    model.load_state_dict({name.removeprefix("bert."): value for name, value in weights.items()})
    with torch.no_grad():
        hidden = model(
            input_ids=torch.tensor([ids]), attention_mask=torch.tensor([attended])
        ).last_hidden_state[0]
    vectors = (hidden @ linear.T).numpy()
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def test_a_query_is_marked_and_filled_up_with_masks(tiny: TinyModels, colbert: Colbert) -> None:
    tokens = ["[CLS]", "[unused0]", "open", "a", "file", "?", "[SEP]", *["[MASK]"] * 5]
    ids = colbert.tokenizer.convert_tokens_to_ids(tokens)
    wanted = plain_vectors(tiny.colbert, ids, [1] * 7 + [0] * 5)
    found = colbert.encode_queries(["sum", "Open a file?", ""])
    assert [len(rows) for rows in found] == [12, 12, 12]
    assert found[1] == pytest.approx(wanted, abs=1e-5)


def test_punctuation_of_a_document_is_read_but_has_no_vector(
    tiny: TinyModels, colbert: Colbert
) -> None:
    tokens = ["[CLS]", "[unused1]", "read", ",", "sum", "!", "[SEP]"]
    ids = colbert.tokenizer.convert_tokens_to_ids(tokens)
    wanted = plain_vectors(tiny.colbert, ids, [1] * 7)[[0, 1, 2, 4, 6]]
    found = colbert.encode_documents(["read, sum!", "list " * 99, string.punctuation])
    assert found[0] == pytest.approx(wanted, abs=1e-5)
    assert len(found[1]) == 40
    assert np.linalg.norm(found[1], axis=1) == pytest.approx(1.0, abs=1e-5)


def test_ranking_a_collection_scores_as_pairs_do(
    colbert: Colbert, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(late_interaction, "_BLOCK", 3)
    task = small_task()
    kept = Encoding(folder=tmp_path)
    run = rank_colbert(task, colbert, kept)
    assert run == rank_colbert(task, colbert, kept) == rank_colbert(task, colbert)
    for query, hits in run.items():
        pairs = [TextPair(task.queries[query], task.documents[hit.document]) for hit in hits]
        assert colbert.score(pairs) == pytest.approx([hit.score for hit in hits], abs=1e-3)
    assert run[QueryId("7")] != run[QueryId("007")]
    assert colbert.score([]).shape == (0,)


def test_a_length_beyond_the_places_of_the_model_is_cut(tiny: TinyModels) -> None:
    long = load_colbert(ColbertSettings(model=tiny.colbert, precision="float32", device="cpu"))
    assert (long.layout.length, long.layout.query_length) == (64, 32)
    assert long.encode_documents(["list " * 99])[0].shape == (64, 8)


def test_pickled_weights_load_too_and_digests_tell_settings_apart(
    tiny: TinyModels, colbert: Colbert, tmp_path: Path
) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import load_file  # noqa: PLC0415 - same

    for path in Path(tiny.colbert).iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(Path(tiny.colbert) / "model.safetensors")
    torch.save(weights, tmp_path / "pytorch_model.bin")
    given = {"precision": "float32", "device": "cpu", "batch": 3, "query_length": 12}
    same, other = (
        load_colbert(ColbertSettings(model=str(tmp_path), length=length, **given))  # type: ignore[arg-type]  # of mixed types
        for length in (40, 39)
    )
    assert same.digest == colbert.digest != other.digest
    pair = [TextPair("open", "read the list")]
    assert same.score(pair) == colbert.score(pair)


def test_a_checkpoint_without_the_linear_layer_is_refused(tiny: TinyModels) -> None:
    with pytest.raises(InputError, match=r"model-checkpoint .*no linear.weight"):
        load_colbert(ColbertSettings(model=tiny.bert))


def test_a_colbert_with_weights_missing_is_refused(tiny: TinyModels, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - of the extra `neural`

    for path in Path(tiny.colbert).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layer.1" not in name}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model-checkpoint .*weights missing"):
        load_colbert(ColbertSettings(model=str(tmp_path)))
