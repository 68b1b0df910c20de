"""A BERT of a few thousand weights, written to a folder, and triples of a few words for it."""

from pathlib import Path

from heldout.rankers.cross_encoder import CrossEncoder, CrossEncoderSettings, load_cross_encoder
from heldout.rankers.devices import import_neural
from heldout.rankers.training import TextTriple

WORDS = (
    *("open", "close", "read", "write", "file", "buffer", "path"),
    *("tree", "walk", "sum", "number", "list", "sort", "key"),
)

TRIPLES = [
    TextTriple("open file", "open the file at path", "sum of the number list"),
    TextTriple("sort list", "sort list by key", "walk the tree path"),
    TextTriple("read buffer", "read from buffer", "close file"),
    TextTriple("walk tree", "walk path tree", "write number to buffer"),
    TextTriple("sum list", "sum number list", "open path"),
]


def write_bert(folder: Path) -> Path:
    """Two layers, 32 wide, with dropout, so that chance plays a part in every step."""
    torch, transformers = import_neural("torch"), import_neural("transformers")
    transformers.logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "of",
        "by",
        "at",
        "to",
        "from",
    ]
    (folder / "vocab.txt").write_text("\n".join([*vocabulary, *WORDS]) + "\n")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary) + len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def load_bert(folder: Path) -> CrossEncoder:
    return load_cross_encoder(
        CrossEncoderSettings(model=str(folder), device="cpu", precision="float32", length=32)
    )
