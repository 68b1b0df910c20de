"""Models of two layers built from a configuration and saved, as published checkpoints are."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_TEXT = """
    open close read write file path buffer bytes walk directory tree return sum number list sort
    key value error raise the a of and in to from is not with for it query document relevant true
    false ? . , : ; ! 0 1 q d
"""
WORDS = _TEXT.split()


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModels:
    """Folders of checkpoints."""

    bert: str
    two_logits: str
    t5: str
    colbert: str
    headless: str
    dense: str


def save_models(root: Path) -> TinyModels:
    return TinyModels(
        bert=str(save_bert(root / "bert")),
        two_logits=str(save_bert(root / "two", labels=2)),
        t5=str(save_t5(root / "t5")),
        colbert=str(save_colbert(root / "colbert")),
        headless=str(save_encoder(root / "headless")),
        dense=str(save_dense(root / "dense")),
    )


def _seed() -> Any:
    import torch  # noqa: PLC0415 - of the extra `neural`

    torch.manual_seed(7)
    return torch


def save_wordpiece(folder: Path) -> Any:
    """A WordPiece tokenizer as BERT has it, over whole words and single letters."""
    from transformers import BertTokenizerFast  # noqa: PLC0415 - of the extra `neural`

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    known = [*special, *dict.fromkeys([*WORDS, *letters, *(f"##{letter}" for letter in letters)])]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(known) + "\n")
    tokenizer = BertTokenizerFast.from_pretrained(folder, model_max_length=64)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _bert_config(size: int, labels: int) -> Any:
    from transformers import BertConfig  # noqa: PLC0415 - of the extra `neural`

    return BertConfig(
        vocab_size=size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=labels,
        # Larger than usual, so that scores of different texts differ.
        initializer_range=0.3,
    )


def save_bert(folder: Path, *, labels: int = 1) -> Path:
    """A cross-encoder of one logit or two."""
    _seed()
    from transformers import BertForSequenceClassification  # noqa: PLC0415 - of `neural`

    size = len(save_wordpiece(folder))
    BertForSequenceClassification(_bert_config(size, labels)).save_pretrained(folder)
    return folder


def save_encoder(folder: Path) -> Path:
    """A BERT without a head."""
    _seed()
    from transformers import BertModel  # noqa: PLC0415 - of the extra `neural`

    size = len(save_wordpiece(folder))
    BertModel(_bert_config(size, 1)).save_pretrained(folder)
    return folder


def save_dense(folder: Path) -> Path:
    """A sentence encoder as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - of `neural`

    bare = save_encoder(folder.with_name("bare"))
    SentenceTransformer(str(bare)).save_pretrained(str(folder))
    return folder


def save_colbert(folder: Path, *, dimensions: int = 8) -> Path:
    """A BERT with a linear layer over token vectors, in the layout of ColBERT."""
    torch = _seed()
    from safetensors.torch import save_file  # noqa: PLC0415 - of the extra `neural`
    from transformers import BertModel  # noqa: PLC0415 - of the extra `neural`

    config = _bert_config(len(save_wordpiece(folder)), 1)
    config.architectures = ["HF_ColBERT"]
    config.save_pretrained(folder)
    weights = {f"bert.{key}": value for key, value in BertModel(config).state_dict().items()}
    weights["linear.weight"] = torch.randn(dimensions, config.hidden_size)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_t5(folder: Path) -> Path:
    """A T5 with a Unigram tokenizer trained on the words above."""
    _seed()
    import sentencepiece  # noqa: PLC0415 - of the extra `neural`
    from transformers import (  # noqa: PLC0415 - of the extra `neural`
        T5Config,
        T5ForConditionalGeneration,
        T5Tokenizer,
    )

    folder.mkdir(parents=True, exist_ok=True)
    text = " ".join(WORDS)
    prompts = "Query: open file Document: read Document0: sum Document1: list Relevant: true false"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text, text[::-1], prompts] * 20),
        model_prefix=str(folder / "spiece"),
        vocab_size=120,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        user_defined_symbols=["▁true", "▁false"],
        minloglevel=2,
    )
    tokenizer = T5Tokenizer.from_pretrained(folder, extra_ids=0, model_max_length=512)
    tokenizer.save_pretrained(folder)
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        initializer_factor=3.0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def fill_cache(root: Path, name: str, source: str) -> None:
    """A cache of published models as the hub's client leaves it."""
    home = root / f"models--{name.replace('/', '--')}"
    commit = "0" * 40
    shutil.copytree(source, home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)


@pytest.fixture(scope="session")
def tiny(neural: None, tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Folders of checkpoints, and torch with one thread, for the machine is shared."""
    del neural
    import torch  # noqa: PLC0415 - of the extra `neural`

    torch.set_num_threads(1)
    return save_models(tmp_path_factory.mktemp("tiny"))
