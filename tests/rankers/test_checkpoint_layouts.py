"""Layouts in which checkpoints are published, file by file: each gives the scores of its weights.

The replicas lack what the published folders lack: tokenizer.json and safetensors.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from tiny_models import TinyModels

from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    load_cross_encoder,
)
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

PAIRS = [TextPair("open a file", "read the buffer."), TextPair("sum", "a list of number")]


def load(folder: Path | str) -> CrossEncoder:
    return load_cross_encoder(
        CrossEncoderSettings(model=str(folder), device="cpu", precision="float32")
    )


def pickle_weights(folder: Path, *, rename: dict[str, str] | None = None) -> None:
    """Weights as pytorch_model.bin instead of safetensors, some parts of names changed."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import load_file  # noqa: PLC0415 - same

    weights: dict[str, Any] = load_file(folder / "model.safetensors")
    for old, new in (rename or {}).items():
        weights = {name.replace(old, new): value for name, value in weights.items()}
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    (folder / "model.safetensors").unlink()


def test_a_pickled_cross_encoder_with_old_names_scores_the_same(
    tiny: TinyModels, tmp_path: Path
) -> None:
    folder = tmp_path / "old"
    shutil.copytree(tiny.bert, folder)
    pickle_weights(
        folder, rename={"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    )
    found = load(folder)
    assert found.new_weights == ()
    assert found.score(PAIRS) == pytest.approx(load(tiny.bert).score(PAIRS), abs=1e-5)


def test_weights_in_several_files_are_read_through_their_index(
    tiny: TinyModels, tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(tiny.two_logits, folder)
    load(tiny.two_logits).model.save_pretrained(folder, max_shard_size="40KB")
    (folder / "model.safetensors").unlink()
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert load(folder).score(PAIRS) == pytest.approx(load(tiny.two_logits).score(PAIRS), abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "tokenizer_class": "T5Tokenizer",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "extra_ids": 0,
            "model_max_length": 512,
        },
        {"model_max_length": 512},
    ],
)
def test_a_t5_of_sentencepiece_and_pickled_weights_scores_the_same(
    tiny: TinyModels, tmp_path: Path, settings: dict[str, object]
) -> None:
    folder = tmp_path / "monot5"
    shutil.copytree(tiny.t5, folder)
    pickle_weights(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    found, wanted = load(folder), load(tiny.t5)
    assert found.answers == wanted.answers
    assert found.score(PAIRS) == pytest.approx(wanted.score(PAIRS), abs=1e-4)


def fill_cache(root: Path, name: str, source: str) -> None:
    """A cache of published models as the hub's client leaves it."""
    home = root / f"models--{name.replace('/', '--')}"
    commit = "0" * 40
    shutil.copytree(source, home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
