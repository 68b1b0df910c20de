"""Sentence encoders in the layouts of their authors: every trained layer counts, or a refusal."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from numpy.typing import NDArray
from tiny_models import TinyModels, save_wordpiece

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import CHECKPOINTS, load_checkpoint
from heldout.rankers.neural.dense import DenseEncoder, DenseSettings, is_averaged, load_encoder

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

TEXTS = ["open a file", "sum", "walk the tree of a directory: return a list of the path"]


def load(folder: Path | str, **settings: Any) -> DenseEncoder:
    given = {"device": "cpu", "precision": "float32"} | settings
    return load_encoder(DenseSettings(model=str(folder), **given))


def save_roberta(folder: Path, **more: Any) -> Any:
    """A RoBERTa under `roberta.`, as a class with a head of its own saves it; gives the model."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from transformers import RobertaConfig, RobertaModel  # noqa: PLC0415 - same

    torch.manual_seed(3)
    config = RobertaConfig(
        vocab_size=len(save_wordpiece(folder)),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        initializer_range=0.3,
    )
    config.save_pretrained(folder)
    model = RobertaModel(config, add_pooling_layer=False).eval()
    weights = {f"roberta.{name}": value for name, value in model.state_dict().items()}
    torch.save(weights | more, folder / "pytorch_model.bin")
    return model


def ance_layers() -> dict[str, Any]:
    import torch  # noqa: PLC0415 - of the extra `neural`

    torch.manual_seed(4)
    return {
        "embeddingHead.weight": torch.randn(16, 32),
        "embeddingHead.bias": torch.randn(16),
        "norm.weight": torch.rand(16) + 0.5,
        "norm.bias": torch.randn(16),
        "roberta.pooler.dense.weight": torch.randn(32, 32),
        "roberta.pooler.dense.bias": torch.randn(32),
        "classifier.dense.weight": torch.randn(32, 32),
    }


def plain_ance(model: Any, layers: dict[str, Any], tokenizer: Any) -> NDArray[np.float32]:
    """One text at a time: the first token, the linear layer, the norm."""
    import torch  # noqa: PLC0415 - of the extra `neural`

    rows = []
    with torch.no_grad():
        for text in TEXTS:
            first = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[:, 0]
            inner = first @ layers["embeddingHead.weight"].T + layers["embeddingHead.bias"]
            scale, shift = layers["norm.weight"], layers["norm.bias"]
            rows.append(torch.nn.functional.layer_norm(inner, (16,), scale, shift).numpy()[0])
    return np.array(rows)


def test_ance_as_castorini_published_it_has_its_head_and_its_norm(
    tiny: TinyModels, tmp_path: Path
) -> None:
    del tiny
    layers = ance_layers()
    model = save_roberta(tmp_path / "ance", **layers)
    found = load(tmp_path / "ance")
    wanted = plain_ance(model, layers, found.model.tokenizer)
    assert found.similarity == "dot"
    assert found.encode_documents(TEXTS) == pytest.approx(wanted, abs=1e-4)
    assert not load_checkpoint(str(tmp_path / "ance"), is_averaged)
    layers["norm.bias"] += 1
    save_roberta(tmp_path / "other", **layers)
    assert load(tmp_path / "other").digest != found.digest


@pytest.mark.parametrize("name", ["classifier.weight", "embeddingHead.weight", "projection.weight"])
def test_a_layer_that_would_be_left_out_is_refused_by_its_name(
    tiny: TinyModels, tmp_path: Path, name: str
) -> None:
    del tiny
    save_roberta(tmp_path / "more", **{name: ance_layers()["embeddingHead.weight"]})
    with pytest.raises(InputError, match=rf"model-layers .*would leave out {name}"):
        load(tmp_path / "more")


def test_a_cross_encoder_is_no_sentence_encoder(tiny: TinyModels) -> None:
    with pytest.raises(InputError, match=r"model-layers .*classifier.bias.*--method cross-encoder"):
        load(tiny.bert)


def test_weights_that_are_not_there_are_not_drawn(tiny: TinyModels, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - of the extra `neural`

    shutil.copytree(tiny.headless, tmp_path / "half")
    path = tmp_path / "half" / "model.safetensors"
    kept = {name: value for name, value in load_file(path).items() if "layer.1." not in name}
    save_file(kept, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model-layers .*no weights for .* and \d+ more"):
        load(tmp_path / "half")


def test_what_guesses_words_is_no_layer_of_vectors(tiny: TinyModels, tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    del tiny
    save_roberta(tmp_path / "plain")
    save_roberta(tmp_path / "more", **{"lm_head.dense.weight": torch.randn(32, 32)})
    plain, more = (load(tmp_path / name) for name in ("plain", "more"))
    assert more.digest == plain.digest


def test_a_model_that_is_averaged_is_told_from_one_that_says_how_it_pools(
    tiny: TinyModels, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - of `neural`

    SentenceTransformer(tiny.headless).save_pretrained(str(tmp_path / "whole"))
    assert load_checkpoint(tiny.headless, is_averaged)
    assert not load_checkpoint(str(tmp_path / "whole"), is_averaged)


@pytest.mark.parametrize("short", ["contriever", "contriever-msmarco"])
def test_contriever_is_averaged_and_compared_by_the_dot_product_offline_too(
    tiny: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    from huggingface_hub import constants  # noqa: PLC0415 - of the extra `neural`
    from test_checkpoint_layouts import fill_cache  # noqa: PLC0415 - beside us

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    fill_cache(tmp_path, CHECKPOINTS[short].name, tiny.headless)
    found = load(short)
    wanted = [found.model[0].auto_model, found.model.tokenizer]
    assert found.similarity == "dot"
    assert found.encode_queries(TEXTS) == pytest.approx(average(*wanted), abs=1e-5)


def average(model: Any, tokenizer: Any) -> NDArray[np.float32]:
    import torch  # noqa: PLC0415 - of the extra `neural`

    with torch.no_grad():
        return np.array(
            [
                model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
                for text in TEXTS
            ]
        )


def test_a_published_name_of_dot_products_says_so_and_a_path_does_not(
    tiny: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants  # noqa: PLC0415 - of the extra `neural`
    from test_checkpoint_layouts import fill_cache  # noqa: PLC0415 - beside us

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    name = "sentence-transformers/msmarco-bert-base-dot-v5"
    fill_cache(tmp_path, name, tiny.headless)
    assert load(name).similarity == "dot"
    assert load(name, similarity="cosine").similarity == "cosine"
    shutil.copytree(tiny.headless, tmp_path / "my-dot-model")
    assert load(tmp_path / "my-dot-model").similarity == "cosine"
