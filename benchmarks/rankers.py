"""What each class of ranker costs on one core: time to rank, to re-rank and to index, and memory.

Processor time of one thread is taken, so that what else a machine does changes little. Cost does
not depend on the values of weights, so models that are not installed are built from the
published configuration with random weights; their scores mean nothing and are not shown. What
ranks without a first stage is measured as `heldout rank` on the embedded collection, from the
start of Python to the run file.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.rankers.neural.checkpoints import CHECKPOINTS, MINILM, find_packaged
from heldout.rankers.neural.cross_encoder import (
    CrossEncoderSettings,
    DuoT5Settings,
    load_cross_encoder,
)
from heldout.rankers.neural.encoders import (
    ColbertSettings,
    DenseSettings,
    load_colbert,
    load_encoder,
)
from heldout.rankers.reranking import score_best_passage
from heldout.rankers.run import Reranker, TextPair

_MEGABYTE = 1 << 20
_BASE = {"hidden": 768, "layers": 12, "heads": 12, "inner": 3072}
_MINILM = {"hidden": 384, "layers": 6, "heads": 12, "inner": 1536}


def _tokenizer(folder: Path) -> Any:
    """The WordPiece of MiniLM, which is that of BERT."""
    place = find_packaged(MINILM) or CHECKPOINTS[MINILM].name
    tokenizer = import_module("transformers").AutoTokenizer.from_pretrained(place)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _bert(folder: Path, shape: dict[str, int]) -> Any:
    return import_module("transformers").BertConfig(
        vocab_size=len(_tokenizer(folder)),
        hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["inner"],
        num_labels=1,
    )


def _build_cross_encoder(folder: Path, shape: dict[str, int]) -> None:
    library = import_module("transformers")
    library.BertForSequenceClassification(_bert(folder, shape)).save_pretrained(folder)


def _build_colbert(folder: Path) -> None:
    torch, library = import_module("torch"), import_module("transformers")
    config = _bert(folder, _BASE)
    config.architectures = ["HF_ColBERT"]
    config.save_pretrained(folder)
    weights = library.BertModel(config).state_dict()
    named = {f"bert.{name}": value for name, value in weights.items()}
    named["linear.weight"] = torch.randn(128, config.hidden_size)
    import_module("safetensors.torch").save_file(named, folder / "model.safetensors")


def _build_monot5(folder: Path) -> None:
    """T5-base; its tokens are whole words of ours, for no SentencePiece of T5 is installed."""
    library = import_module("transformers")
    words = {f"▁{word}" for word in _words()} | {"▁true", "▁false", "▁Relevant:", "▁Query:"}
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -100.0), ("▁", -9.0)]
    pieces += [(word, -8.0) for word in sorted(words)]
    pieces += [(letter, -12.0) for letter in sorted(set("".join(words)) - {"▁"})]
    library.T5Tokenizer(vocab=pieces, extra_ids=0, model_max_length=512).save_pretrained(folder)
    config = library.T5Config(
        vocab_size=32128,
        d_model=768,
        d_ff=3072,
        num_layers=12,
        num_heads=12,
        decoder_start_token_id=0,
    )
    library.T5ForConditionalGeneration(config).save_pretrained(folder)


def _words() -> list[str]:
    return sorted({word for text in _documents(10_000) for word in text.split()})[:25_000]


def _load_cross_encoder(folder: Path, precision: Any) -> Reranker:
    return load_cross_encoder(CrossEncoderSettings(model=str(folder), precision=precision))


def _load_colbert(folder: Path, precision: Any) -> Reranker:
    return load_colbert(ColbertSettings(model=str(folder), precision=precision))


def _load_dense(_folder: Path, precision: Any) -> Reranker:
    return load_encoder(DenseSettings(precision=precision))


def _load_duo(folder: Path, precision: Any) -> Reranker:
    return load_cross_encoder(DuoT5Settings(model=str(folder), precision=precision))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """How one is built, unless it is installed, loaded, and asked.

    Attributes:
        build: the model in a folder.
        load: it, with a precision.
        shown: documents of a query that are scored again.
        questions: what so many documents of a query are to the model.
        sample: how many documents to time it on, where not all that are there.
        passage: words of a passage; documents are then 1,000 words long.
    """

    build: Callable[[Path], None]
    load: Callable[[Path, Any], Reranker]
    shown: int = 100
    questions: Callable[[int], int] = int
    sample: int | None = None
    passage: int | None = None


_RANKERS: dict[str, Ranker] = {
    "dense, MiniLM": Ranker(build=lambda _: None, load=_load_dense),
    "cross-encoder, MiniLM": Ranker(
        build=lambda folder: _build_cross_encoder(folder, _MINILM), load=_load_cross_encoder
    ),
    "cross-encoder, BERT-base": Ranker(
        build=lambda folder: _build_cross_encoder(folder, _BASE), load=_load_cross_encoder
    ),
    "cross-encoder, MiniLM, MaxP": Ranker(
        build=lambda folder: _build_cross_encoder(folder, _MINILM),
        load=_load_cross_encoder,
        sample=5,
        passage=150,
    ),
    "monoT5, T5-base": Ranker(build=_build_monot5, load=_load_cross_encoder),
    "duoT5, T5-base": Ranker(
        build=_build_monot5,
        load=_load_duo,
        shown=20,
        questions=lambda documents: documents * (documents - 1),
        sample=7,
    ),
    "ColBERT, BERT-base": Ranker(build=_build_colbert, load=_load_colbert),
}


_FIRST_STAGES = {
    "bm25": ["--method", "bm25"],
    "query-likelihood": ["--method", "query-likelihood"],
    "rm3": ["--method", "rm3"],
    "default without `neural`": ["--method", "rm3", "--param", "stopwords=true"],
    "default with `neural`": ["--no-compare"],
}


def _documents(count: int) -> list[str]:
    """Texts of the embedded collection, some thirty words each in the middle."""
    texts = build_collection(read_docstrings().docstrings).documents
    return list(texts.values())[:count]


def _seconds(work: Callable[[], object], repeats: int) -> float:
    """Median of processor time."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return median(taken)


def measure(name: str, folder: Path, precision: str, *, pairs: int, repeats: int) -> None:
    """Print one row of the table."""
    import_module("torch").set_num_threads(1)
    texts = [text for text in _documents(4000) if len(text.split()) > 20][:pairs]  # noqa: PLR2004 - as long as an answer
    kind = _RANKERS[name]
    ranker: Any = kind.load(folder, precision)
    score = ranker.score
    if kind.passage is not None:
        words = " ".join(texts * 50).split()
        texts = [" ".join(words[start : start + 1000]) for start in range(0, 10_000, 1000)]
        score = score_best_passage(score, size=kind.passage)
    texts = texts[: kind.sample]
    asked = [TextPair("return the names of the files in a directory", text) for text in texts]
    score(asked[:2])
    taken = _seconds(lambda: score(asked), repeats)
    query = taken / kind.questions(len(texts)) * kind.questions(kind.shown)
    indexing = "-"
    if hasattr(ranker, "encode_documents"):
        taken = _seconds(lambda: ranker.encode_documents(texts), repeats)
        indexing = f"{len(texts) / taken:.0f}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MEGABYTE
    precision = getattr(ranker, "precision", precision)
    _row(name, precision, str(kind.shown), f"{1 / query:.3f}", indexing, f"{peak:,.0f}")


def _row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def measure_first_stages() -> None:
    """Print the table of what ranks the embedded collection by itself."""
    _row("first stage", "processor seconds, all in all", "peak MB")
    _row("---", "---", "---")
    for name, options in _FIRST_STAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.run.gz"
            command = [sys.executable, "-m", "heldout", "rank", "--out", str(out), *options]
            started = subprocess.Popen(
                command, env=dict(os.environ, OMP_NUM_THREADS="1"), stderr=subprocess.DEVNULL
            )
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
            if started.returncode:
                raise SystemExit(f"{name}: rank ended with {started.returncode}")
        seconds = used.ru_utime + used.ru_stime
        _row(name, f"{seconds:.1f}", f"{used.ru_maxrss * 1024 / _MEGABYTE:,.0f}")


def main() -> None:
    """Each ranker in processes of its own, so that peaks of memory are its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=_RANKERS)
    parser.add_argument("--folder", type=Path, help="of the model, with --only")
    parser.add_argument("--build", action="store_true", help="the model, and no more")
    parser.add_argument("--first-stages", action="store_true", help="these, and no more")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--pairs", type=int, default=100, help="documents scored at once")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.build:
        _RANKERS[given.only].build(given.folder)
    elif given.first_stages:
        measure_first_stages()
    elif given.only:
        measure(given.only, given.folder, given.precision, pairs=given.pairs, repeats=given.repeats)
    else:
        _measure_all(given)


def _measure_all(given: argparse.Namespace) -> None:
    _row("ranker", "precision", "documents a query", "queries/s", "documents/s", "peak MB")
    _row(*["---"] * 6)
    for name in _RANKERS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--only", name, "--folder", folder]
            subprocess.run([*command, "--build"], check=True, stderr=subprocess.DEVNULL)
            numbers = ["--pairs", str(given.pairs), "--repeats", str(given.repeats)]
            subprocess.run([*command, *numbers, "--precision", given.precision], check=True)
    measure_first_stages()


if __name__ == "__main__":
    main()
