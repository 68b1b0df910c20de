"""ColBERTs in both layouts they are published in, against sentence-transformers' own reader."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from tiny_models import TinyModels, save_wordpiece

from heldout.errors import InputError
from heldout.rankers.neural.late_interaction import Colbert, ColbertSettings, load_colbert

tiny = tiny_models.tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # other people's, while torch starts

QUERIES = ["open a file", "sum", "walk the tree of a directory and return a list of the path " * 3]
DOCUMENTS = ["read, sum!", "list", "close the file: is it not open? " * 9]

PYLATE = {
    "model_type": "ColBERT",
    "prompts": {},
    "similarity_fn_name": "MaxSim",
    "query_prefix": "[Q] ",
    "document_prefix": "[D] ",
    "query_length": 14,
    "document_length": 21,
    "attend_to_expansion_tokens": False,
    "skiplist_words": [",", "!", "?"],
    "do_query_expansion": True,
}


def load(folder: Path, **settings: int) -> Colbert:
    return load_colbert(
        ColbertSettings(model=str(folder), device="cpu", precision="float32", **settings)  # type: ignore[arg-type]  # of lengths only
    )


def save_pylate(
    source: str, folder: Path, *, layers: tuple[tuple[int, int], ...] = ((32, 8),), **more: Any
) -> Path:
    """A copy of a BERT in the layout of PyLate, `[Q] ` and `[D] ` being tokens of it."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import save_file  # noqa: PLC0415 - same
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415 - same

    torch.manual_seed(11)
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModel.from_pretrained(source)
    tokenizer.add_tokens(["[Q] ", "[D] "])
    model.resize_token_embeddings(len(tokenizer))
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    kinds = [("", "sentence_transformers.models.Transformer")]
    for number, (inner, outer) in enumerate(layers, 1):
        path = folder / f"{number}_Dense"
        path.mkdir()
        save_file({"linear.weight": torch.randn(outer, inner)}, path / "model.safetensors")
        config = {
            "in_features": inner,
            "out_features": outer,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
        (path / "config.json").write_text(json.dumps(config))
        kinds.append((path.name, "pylate.models.Dense.Dense"))
    modules = [
        {"idx": row, "name": str(row), "path": path, "type": kind}
        for row, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 63}')
    settings = json.dumps(PYLATE | more)
    (folder / "config_sentence_transformers.json").write_text(settings)
    return folder


def save_own(source: str, folder: Path, **noted: Any) -> Path:
    shutil.copytree(source, folder)
    if noted:
        (folder / "artifact.metadata").write_text(json.dumps(noted))
    return folder


def compare_with_peer(folder: Path) -> Colbert:
    """Check the vectors of all texts against sentence-transformers; gives what was loaded."""
    library: Any = pytest.importorskip("sentence_transformers", minversion="6.0")
    peer = library.MultiVectorEncoder(str(folder), device="cpu")
    found = load(folder)
    for mine, theirs in (
        (found.encode_queries(QUERIES), peer.encode_query(QUERIES)),
        (found.encode_documents(DOCUMENTS), peer.encode_document(DOCUMENTS)),
    ):
        for one, other in zip(mine, theirs, strict=True):
            assert one == pytest.approx(other, abs=1e-4)
    return found


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"do_query_expansion": False},
        {"attend_to_expansion_tokens": True},
        {"skiplist_words": []},
        {"query_length": 10, "document_length": 40},
    ],
)
def test_the_layout_of_pylate_gives_the_vectors_of_sentence_transformers(
    tiny: TinyModels, tmp_path: Path, more: dict[str, Any]
) -> None:
    compare_with_peer(save_pylate(tiny.headless, tmp_path / "pylate", **more))


def test_an_encoder_without_a_pooler_is_read_too(tiny: TinyModels, tmp_path: Path) -> None:
    """As GTE-ModernColBERT has it."""
    import torch  # noqa: PLC0415 - of the extra `neural`
    from transformers import ModernBertConfig, ModernBertModel  # noqa: PLC0415 - same

    del tiny
    torch.manual_seed(5)
    source = tmp_path / "modern"
    tokenizer = save_wordpiece(source)
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )
    ModernBertModel(config).save_pretrained(source)
    compare_with_peer(save_pylate(str(source), tmp_path / "pylate"))


def test_linear_layers_in_a_row_are_one(tiny: TinyModels, tmp_path: Path) -> None:
    folder = save_pylate(tiny.headless, tmp_path / "two", layers=((32, 16), (16, 4)))
    assert compare_with_peer(folder).layout.projection.shape == (4, 32)


@pytest.mark.parametrize(
    "noted",
    [
        {},
        {"doc_maxlen": 18, "query_maxlen": 12},
        {"mask_punctuation": False},
        {"attend_to_mask_tokens": True},
        {"query_token_id": "[unused1]", "doc_token_id": "[unused0]"},
    ],
)
def test_the_layout_of_colbert_gives_the_vectors_of_sentence_transformers(
    tiny: TinyModels, tmp_path: Path, noted: dict[str, Any]
) -> None:
    compare_with_peer(save_own(tiny.colbert, tmp_path / "own", **noted))


def test_lengths_are_those_of_the_checkpoint_unless_said(tiny: TinyModels, tmp_path: Path) -> None:
    own = save_own(tiny.colbert, tmp_path / "own", doc_maxlen=18, query_maxlen=12)
    pylate = save_pylate(tiny.headless, tmp_path / "pylate")
    assert [
        (load(folder).layout.length, load(folder).layout.query_length)
        for folder in (*(own, pylate), Path(tiny.colbert))
    ] == [(18, 12), (21, 14), (64, 32)]  # 220 is more than the model has places for
    said = load(own, length=30, query_length=9)
    assert (said.layout.length, said.layout.query_length) == (30, 9)
    assert said.digest != load(own).digest


Change = Callable[[Path], object]


def write(name: str, **content: Any) -> Change:
    def change(folder: Path) -> None:
        path = folder / name
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | content))

    return change


def pool(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    pooling = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    (folder / "modules.json").write_text(json.dumps([*modules, pooling]))


SETTINGS = "config_sentence_transformers.json"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (write(SETTINGS, query_prefix="[nowhere] "), "a marker that is no token"),
        (write(SETTINGS, query_length=-3), "query_length -3, which is no length"),
        (write(SETTINGS, document_length="long"), "document_length 'long', which is no length"),
        (write(SETTINGS, prompts={"query": "search_query: "}), "prompts before texts"),
        (write("sentence_bert_config.json", do_lower_case=True), "texts made small"),
        (write("1_Dense/config.json", bias=True), "1_Dense, which is more than linear"),
        (write("1_Dense/config.json", use_residual=True), "1_Dense, which is more than linear"),
        (lambda folder: (folder / "1_Dense/model.safetensors").unlink(), "no linear.weight in 1_D"),
        (lambda folder: (folder / "modules.json").write_text("[]"), "without a linear layer"),
        (lambda folder: (folder / SETTINGS).unlink(), "no settings of PyLate"),
        (pool, "one vector per text"),
    ],
)
def test_what_we_would_read_wrongly_is_refused(
    tiny: TinyModels, tmp_path: Path, change: Change, said: str
) -> None:
    folder = save_pylate(tiny.headless, tmp_path / "pylate")
    change(folder)
    with pytest.raises(InputError, match=rf"model-checkpoint .*{said}"):
        load(folder)


def test_weights_of_a_layer_that_nobody_reads_are_refused(tiny: TinyModels, tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - of the extra `neural`
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - same

    folder = save_own(tiny.colbert, tmp_path / "own")
    weights = load_file(folder / "model.safetensors") | {"score.weight": torch.zeros(1, 8)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="weights of no layer that is read"):
        load(folder)
