"""Checkpoints that are absent, damaged or hostile: a clear error, and no code of theirs runs."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_models
from tiny_models import TinyModels

from heldout.errors import InputError
from heldout.rankers.methods import METHODS, choose_reranker
from heldout.rankers.neural import encoders
from heldout.rankers.neural.checkpoints import CHECKPOINTS, find_checkpoint
from heldout.rankers.neural.cross_encoder import CrossEncoderSettings, load_cross_encoder

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

LOADERS: dict[str, Callable[[str], object]] = {
    "cross-encoder": lambda model: load_cross_encoder(CrossEncoderSettings(model=model)),
    "colbert": lambda model: encoders.load_colbert(encoders.ColbertSettings(model=model)),
    "dense": lambda model: encoders.load_encoder(
        encoders.DenseSettings(model=model, like="contriever")
    ),
}


def test_short_names_stand_for_published_ones() -> None:
    assert find_checkpoint("monot5") is find_checkpoint("castorini/monot5-base-msmarco")
    assert find_checkpoint("somebody/else") is None
    names = [row.name for row in CHECKPOINTS.values()]
    assert len(set(names)) == len(names)
    assert {row.method for row in CHECKPOINTS.values()} <= METHODS.keys()


def test_the_page_has_every_short_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "rankers.md").read_text()
    for short, row in CHECKPOINTS.items():
        assert f"| `{short}` | {row.name} | {row.method}" in page


def test_a_default_model_is_in_the_table_and_of_its_method() -> None:
    for method in ("colbert", "cross-encoder", "monot5", "duot5"):
        settings = METHODS[method].settings()
        assert CHECKPOINTS[settings.model].method == method


@pytest.mark.usefixtures("neural")
@pytest.mark.parametrize("loader", LOADERS)
def test_a_folder_with_nothing_in_it_is_said(loader: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model-checkpoint .*is the folder complete"):
        LOADERS[loader](str(tmp_path))


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "unheard-of"}'),
        ("model.safetensors", b""),
        ("model.safetensors", b"\xff" * 64),
        ("tokenizer.json", b"{}"),
    ],
)
def test_a_damaged_file_is_said(
    tiny: TinyModels, tmp_path: Path, loader: str, name: str, content: bytes
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(tiny.colbert if loader == "colbert" else tiny.bert, folder)
    (folder / "vocab.txt").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match="model-checkpoint"):
        LOADERS[loader](str(folder))


class Attack:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("loader", LOADERS)
def test_a_pickle_that_runs_code_is_refused(tiny: TinyModels, tmp_path: Path, loader: str) -> None:
    folder, mark = tmp_path / "hostile", tmp_path / "mark"
    shutil.copytree(tiny.colbert if loader == "colbert" else tiny.bert, folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"linear.weight": Attack(mark)}))
    with pytest.raises(InputError, match="model-checkpoint"):
        LOADERS[loader](str(folder))
    assert not mark.exists()


@pytest.mark.parametrize("loader", LOADERS)
def test_code_beside_the_weights_is_never_run(
    tiny: TinyModels, tmp_path: Path, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # who says yes to every question
    folder, mark = tmp_path / "hostile", tmp_path / "mark"
    shutil.copytree(tiny.colbert if loader == "colbert" else tiny.bert, folder)
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_text())
    names = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification")
    config |= {"model_type": "own", "auto_map": dict.fromkeys(names, "own.Own")}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="model-checkpoint"):
        LOADERS[loader](str(folder))
    assert not mark.exists()


@pytest.mark.usefixtures("neural")
def test_a_name_that_cannot_be_fetched_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants  # noqa: PLC0415 - of the extra `neural`

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for load in LOADERS.values():
        with pytest.raises(InputError, match=r"model-checkpoint .*HF_HOME"):
            load("nobody/no-such-model-anywhere")


def test_a_head_that_nobody_trained_never_ranks(tiny: TinyModels) -> None:
    with pytest.raises(InputError, match=r"model-untrained .*classifier.weight"):
        choose_reranker("cross-encoder", {"model": tiny.headless})()
