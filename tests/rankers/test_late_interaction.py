"""ColBERT against plain calls and a loop over tokens."""

import json
import string
from dataclasses import replace
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
from heldout.rankers.neural import encoders
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_max_similarity_is_a_loop_over_tokens(counts: list[int], asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = rng.standard_normal((asked, 3)).astype(np.float32)
    documents = [rng.standard_normal((count, 3)).astype(np.float32) for count in counts]
    starts = np.cumsum([0, *counts[:-1]])
    found = encoders.max_similarity(query, np.concatenate(documents), starts)
    for document, score in zip(documents, found, strict=True):
        wanted = sum(max(float(one @ other) for other in document) for one in query)
        assert score == pytest.approx(wanted, abs=1e-4)


def load(folder: Path | str) -> encoders.Colbert:
    return encoders.load_colbert(
        encoders.ColbertSettings(model=str(folder), precision="float32", device="cpu", batch=3)
    )


@pytest.fixture(scope="module")
def colbert(tiny: TinyModels) -> encoders.Colbert:
    (Path(tiny.colbert) / "artifact.metadata").write_text('{"doc_maxlen": 40, "query_maxlen": 12}')
    return load(tiny.colbert)


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


def test_a_query_is_marked_and_filled_up_with_masks(
    tiny: TinyModels, colbert: encoders.Colbert
) -> None:
    tokens = ["[CLS]", "[unused0]", "open", "a", "file", "?", "[SEP]", *["[MASK]"] * 5]
    ids = colbert.model.tokenizer.convert_tokens_to_ids(tokens)
    wanted = plain_vectors(tiny.colbert, ids, [1] * 7 + [0] * 5)
    found = colbert.encode_queries(["sum", "Open a file?", ""])
    assert [len(rows) for rows in found] == [12, 12, 12]
    assert found[1] == pytest.approx(wanted, abs=1e-5)


def test_punctuation_of_a_document_is_read_but_has_no_vector(
    tiny: TinyModels, colbert: encoders.Colbert
) -> None:
    tokens = ["[CLS]", "[unused1]", "read", ",", "sum", "!", "[SEP]"]
    ids = colbert.model.tokenizer.convert_tokens_to_ids(tokens)
    wanted = plain_vectors(tiny.colbert, ids, [1] * 7)[[0, 1, 2, 4, 6]]
    found = colbert.encode_documents(["read, sum!", "list " * 99, string.punctuation])
    assert found[0] == pytest.approx(wanted, abs=1e-5)
    assert len(found[1]) == 40
    assert np.linalg.norm(found[1], axis=1) == pytest.approx(1.0, abs=1e-5)


def test_ranking_a_collection_scores_as_pairs_do(
    colbert: encoders.Colbert, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(encoders, "_BLOCK", 3)
    task = small_task()
    stored = replace(colbert, settings=replace(colbert.settings, vectors=str(tmp_path)))
    run = encoders.rank_colbert(task, stored)
    assert run == encoders.rank_colbert(task, stored) == encoders.rank_colbert(task, colbert)
    for query, hits in run.items():
        pairs = [TextPair(task.queries[query], task.documents[hit.document]) for hit in hits]
        assert colbert.score(pairs) == pytest.approx([hit.score for hit in hits], abs=1e-3)
    assert run[QueryId("7")] != run[QueryId("007")]
    assert colbert.score([]).shape == (0,)


def test_pickled_weights_load_too_and_digests_tell_settings_apart(
    tiny: TinyModels, colbert: encoders.Colbert, tmp_path: Path
) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import load_file  # noqa: PLC0415 - same

    for path in Path(tiny.colbert).iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(Path(tiny.colbert) / "model.safetensors")
    torch.save(weights, tmp_path / "pytorch_model.bin")
    same = load(tmp_path)
    (tmp_path / "artifact.metadata").write_text('{"doc_maxlen": 39, "query_maxlen": 12}')
    assert same.digest != load(tmp_path).digest
    pair = [TextPair("open", "read the list")]
    assert same.score(pair) == colbert.score(pair)


def test_what_is_no_colbert_is_refused_and_no_layer_is_drawn(tiny: TinyModels) -> None:
    for folder in (tiny.bert, tiny.headless):
        with pytest.raises(InputError, match=r"model-checkpoint .*no settings of a ColBERT"):
            load(folder)


def test_the_layout_of_pylate_has_its_markers_lengths_and_layer(
    tiny: TinyModels, tmp_path: Path
) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import save_file  # noqa: PLC0415 - same
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415 - same

    tokenizer = AutoTokenizer.from_pretrained(tiny.headless)
    model = AutoModel.from_pretrained(tiny.headless).eval()
    tokenizer.add_tokens(["[Q] ", "[D] "])
    model.resize_token_embeddings(len(tokenizer))
    tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    linear = torch.randn(8, 32)
    (tmp_path / "1_Dense").mkdir()
    save_file({"linear.weight": linear}, tmp_path / "1_Dense" / "model.safetensors")
    identity = "torch.nn.modules.linear.Identity"
    layer = {"in_features": 32, "out_features": 8, "bias": False, "activation_function": identity}
    kinds = ("sentence_transformers.models.Transformer", "pylate.models.Dense.Dense")
    modules = [
        {"idx": row, "name": str(row), "path": ("", "1_Dense")[row], "type": kind}
        for row, kind in enumerate(kinds)
    ]
    settings = {
        "model_type": "ColBERT",
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": 14,
        "document_length": 21,
        "skiplist_words": [","],
    }
    for name, content in (
        ("1_Dense/config.json", layer),
        ("modules.json", modules),
        ("config_sentence_transformers.json", settings),
        ("sentence_bert_config.json", {"max_seq_length": 63}),
    ):
        (tmp_path / name).write_text(json.dumps(content))
    found = load(tmp_path)
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", "[D] ", "read", ",", "sum", "[SEP]"])
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0][[0, 1, 2, 4, 5]]
    wanted = torch.nn.functional.normalize(hidden @ linear.T, dim=-1).numpy()
    assert found.encode_documents(["read, sum"])[0] == pytest.approx(wanted, abs=1e-5)
    assert len(found.encode_documents(["list " * 50])[0]) == 21
    assert len(found.encode_queries(["sum"])[0]) == 14
