"""Layouts in which checkpoints are published, file by file: each gives the scores of its weights.

The replicas lack what the published folders lack: a type in config.json, tokenizer.json,
safetensors.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from tiny_models import TinyModels

from heldout.errors import InputError
from heldout.rankers.neural.checkpoints import CHECKPOINTS, find_checkpoint
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    load_cross_encoder,
)
from heldout.rankers.run import TextPair

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

PAIRS = [TextPair("open a file", "read the buffer."), TextPair("sum", "a list of number")]

BARE = [
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
]
"""What config.json of the first published BERTs holds, and no more."""


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


def bare_bert(source: str, folder: Path, **more: str) -> Path:
    """A copy in the layout of castorini/monobert-large-msmarco."""
    shutil.copytree(source, folder)
    config = json.loads((folder / "config.json").read_text())
    kept = {name: config[name] for name in BARE} | more
    (folder / "config.json").write_text(json.dumps(kept, indent=2))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    pickle_weights(folder)
    return folder


@pytest.mark.parametrize("more", [{}, {"model_type": "bert"}])
def test_a_bert_of_a_bare_configuration_has_the_head_of_its_weights(
    tiny: TinyModels, tmp_path: Path, more: dict[str, str]
) -> None:
    found = load(bare_bert(tiny.two_logits, tmp_path / "monobert", **more))
    assert (found.kind, found.new_weights) == ("bert", ())
    assert found.model.config.num_labels == 2
    assert found.score(PAIRS) == pytest.approx(load(tiny.two_logits).score(PAIRS), abs=1e-5)


def test_of_two_logits_the_second_is_that_of_relevant(tiny: TinyModels, tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`

    folder = bare_bert(tiny.two_logits, tmp_path / "monobert")
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True)
    before = load(folder).score(PAIRS)
    weights["classifier.bias"] += torch.tensor([0.0, 3.0])
    torch.save(weights, folder / "pytorch_model.bin")
    assert load(folder).score(PAIRS) == pytest.approx(before + 3, abs=1e-5)


def test_a_bare_bert_without_a_head_has_one_drawn(tiny: TinyModels, tmp_path: Path) -> None:
    shutil.copytree(tiny.headless, tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    kept = {name: config[name] for name in BARE} | {"model_type": "bert"}
    (tmp_path / "plain" / "config.json").write_text(json.dumps(kept))
    assert load(tmp_path / "plain").new_weights == ("classifier.bias", "classifier.weight")


def test_a_configuration_without_a_type_is_no_bert_by_itself(
    tiny: TinyModels, tmp_path: Path
) -> None:
    folder = bare_bert(tiny.two_logits, tmp_path / "other")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match="model-checkpoint"):
        load(folder)


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
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": None}))
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


def test_a_model_that_was_renamed_is_found_in_the_cache_by_its_former_name(
    tiny: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants  # noqa: PLC0415 - of the extra `neural`

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    row = CHECKPOINTS["minilm-l6"]
    with pytest.raises(InputError, match="model-checkpoint"):
        load("minilm-l6")
    fill_cache(tmp_path, row.aliases[0], tiny.bert)
    digests = {load(name).digest for name in ("minilm-l6", row.name, *row.aliases)}
    assert digests == {load(tiny.bert).digest}


def test_a_former_name_stands_for_the_same_row() -> None:
    for row in CHECKPOINTS.values():
        assert all(find_checkpoint(name) is row for name in (row.name, *row.aliases))
