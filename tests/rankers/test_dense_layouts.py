"""Sentence encoders in the layouts of their authors, and the refusal of what says no layout."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from numpy.typing import NDArray
from tiny_models import TinyModels, fill_cache

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import CHECKPOINTS
from heldout.rankers.neural.encoders import DenseEncoder, DenseSettings, load_encoder

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

TEXTS = ["open a file", "sum", "walk the tree of a directory: return a list of the path"]


def load(folder: Path | str, **settings: Any) -> DenseEncoder:
    given = {"device": "cpu", "precision": "float32"} | settings
    return load_encoder(DenseSettings(model=str(folder), **given))


def test_what_does_not_say_how_vectors_come_out_of_tokens_is_refused(tiny: TinyModels) -> None:
    for folder in (tiny.headless, tiny.bert, tiny.colbert):
        with pytest.raises(InputError, match=r"no modules.json; like=contriever"):
            load(folder)
    assert load(tiny.headless, like="contriever").similarity == "dot"


def test_a_folder_that_lacks_a_layer_is_refused_and_one_without_a_pooler_is_not(
    tiny: TinyModels, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - of the extra `neural`

    shutil.copytree(tiny.headless, tmp_path / "cut")
    weights = load_file(tmp_path / "cut/model.safetensors")
    left = {n: w for n, w in weights.items() if "pooler" not in n}
    save_file(left, tmp_path / "cut/model.safetensors", {"format": "pt"})
    load(tmp_path / "cut", like="contriever")
    layer = next(name for name in left if name.endswith("query.weight"))
    del left[layer]
    save_file(left, tmp_path / "cut/model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"weights are missing, the first is .*query\.weight"):
        load(tmp_path / "cut", like="contriever")


@pytest.mark.parametrize("short", ["contriever", "contriever-msmarco"])
def test_contriever_is_averaged_and_compared_by_the_dot_product_offline_too(
    tiny: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    from huggingface_hub import constants  # noqa: PLC0415 - of the extra `neural`

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
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - same

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    name = "sentence-transformers/msmarco-bert-base-dot-v5"
    SentenceTransformer(tiny.headless).save_pretrained(str(tmp_path / "my-dot-model"))
    fill_cache(tmp_path, name, str(tmp_path / "my-dot-model"))
    assert load(name).similarity == "dot"
    assert load(name, similarity="cosine").similarity == "cosine"
    assert load(tmp_path / "my-dot-model").similarity == "cosine"
