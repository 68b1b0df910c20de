"""The methods of `heldout rank`, in one explicit table, and the one that is taken by default.

The default has nothing to tune, train or fetch: one of two, by what is installed. Both were at
least as good as BM25 on each of the collections of docs/results/zero-shot.md and better on some.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from heldout.errors import InputError, printable
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    DuoT5Settings,
    MonoT5Settings,
    load_cross_encoder,
    load_duo,
)
from heldout.rankers.neural.dense import DenseSettings, Encoder, load_encoder, rank_dense
from heldout.rankers.neural.late_interaction import ColbertSettings, load_colbert, rank_colbert
from heldout.rankers.neural.vectors import Encoding
from heldout.rankers.run import Reranker, Run, Task, fuse_reciprocal, fuse_scores
from heldout.rankers.terms import (
    Bm25Settings,
    LikelihoodSettings,
    NgramSettings,
    Rm3Settings,
    TfidfSettings,
    rank_bm25,
    rank_char_ngrams,
    rank_likelihood,
    rank_rm3,
    rank_tfidf,
)

_MOST = 1_000_000.0
_NOT_KEPT = Encoding()


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionSettings:
    """What is fused and how.

    Attributes:
        of: names of methods, divided by commas; each runs with its own defaults.
        rule: `rrf` (ranks) or `combsum` (scores).
        k: constant of `rrf`, 0 to 1,000,000.
    """

    of: str = "bm25,char-ngrams,query-likelihood"
    rule: Literal["rrf", "combsum"] = "rrf"
    k: float = 60.0

    def __post_init__(self) -> None:
        """Refuse what cannot be fused."""
        fusible = {name for name, method in METHODS.items() if method.rank} - {"fusion"}
        if not 0 <= self.k <= _MOST or not set(self.names) <= fusible:
            choice = ", ".join(sorted(fusible))
            message = f"wanted: k in 0..1000000, and of made of {choice}"
            raise ValueError(message)

    @property
    def names(self) -> tuple[str, ...]:
        """The methods to fuse."""
        return tuple(name.strip() for name in self.of.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to rank.

    Attributes:
        summary: what it is, in a line.
        settings: the frozen dataclass of its parameters; each has a default.
        rank: the ranker, given a task, settings of that class, and what happens while documents
            are encoded; None where it only re-ranks.
        load: gives, with such settings, what re-ranks; None where it only ranks.
        encodes: whether it encodes the whole collection, which takes long.
        rerank_depth: documents per query that it re-ranks where nobody says.
    """

    summary: str
    settings: type[Any]
    rank: Callable[[Task, Any, Encoding], Run] | None = None
    load: Callable[[Any], Reranker] | None = None
    encodes: bool = False
    rerank_depth: int = 100


def choose_method(
    name: str, parameters: Mapping[str, str], encoding: Encoding = _NOT_KEPT
) -> Callable[[Task], Run]:
    """The ranker of that name with these parameters.

    Args:
        name: a name in `METHODS`, of one that ranks a whole collection.
        parameters: values as text, by the field names of the method's settings.
        encoding: where vectors are kept that have no folder among the parameters, and who hears of
            progress.

    Returns:
        From a task to its run; raises SetupError where the method needs an extra that is not
        installed, and InputError where a model cannot be loaded.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    method = find_method(name)
    rank = method.rank
    if rank is None:
        raise _wrong_method(f"{name}, which only re-ranks", _names(rank=True), place="--first")
    settings = _settings(method, parameters)
    return lambda task: rank(task, settings, encoding)


def choose_reranker(name: str, parameters: Mapping[str, str]) -> Callable[[], Reranker]:
    """What loads the re-ranker of that name with these parameters.

    Args:
        name: a name in `METHODS`, of one that re-ranks.
        parameters: values as text, by the field names of the method's settings.

    Returns:
        Loads the model; raises SetupError where an extra is not installed, and InputError where
        the model cannot be loaded.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    method = find_method(name)
    load = method.load
    if load is None:
        raise _wrong_method(f"{name}, which re-ranks nothing", _names(rank=False))
    settings = _settings(method, parameters)
    return lambda: load(settings)


def encodes(name: str, parameters: Mapping[str, str]) -> bool:
    """Whether a method encodes the whole collection; fusion, whether one of its methods does.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    method = find_method(name)
    settings = _settings(method, parameters)
    if isinstance(settings, FusionSettings):
        return any(METHODS[part].encodes for part in settings.names)
    return method.encodes


def rank_fusion(task: Task, settings: FusionSettings, encoding: Encoding = _NOT_KEPT) -> Run:
    """Rank with several methods and fuse their runs.

    Raises:
        SetupError: one of them needs an extra that is not installed.
    """
    runs = [choose_method(name, {}, encoding)(task) for name in settings.names]
    if settings.rule == "rrf":
        return fuse_reciprocal(runs, depth=task.depth, k=settings.k)
    return fuse_scores(runs, depth=task.depth)


def _rank_dense(task: Task, settings: DenseSettings, encoding: Encoding) -> Run:
    return rank_dense(task, load_encoder(settings), _encoding(settings, encoding))


def _rank_colbert(task: Task, settings: ColbertSettings, encoding: Encoding) -> Run:
    return rank_colbert(task, load_colbert(settings), _encoding(settings, encoding))


def _encoding(settings: DenseSettings | ColbertSettings, encoding: Encoding) -> Encoding:
    """The folder that was asked for goes before that of the run."""
    folder = Path(settings.vectors) if settings.vectors else encoding.folder
    return replace(encoding, folder=folder, batch=settings.batch)


def _of_words(rank: Callable[[Task, Any], Run]) -> Callable[[Task, Any, Encoding], Run]:
    """A ranker on words, which encodes nothing."""
    return lambda task, settings, _: rank(task, settings)


def _load_trained(settings: CrossEncoderSettings) -> CrossEncoder:
    """A cross-encoder all of whose weights come from its checkpoint.

    Raises:
        InputError: code `model-checkpoint` or `model-untrained`.
    """
    encoder = load_cross_encoder(settings)
    if not encoder.new_weights:
        return encoder
    raise InputError.of(
        "model-untrained",
        printable(settings.model),
        f"no weights for {', '.join(encoder.new_weights)}",
        "a model that was trained to score pairs",
        "train it first: heldout survive train",
    )


def find_method(name: str) -> Method:
    """The row of `METHODS` of that name.

    Raises:
        InputError: code `rank-method`.
    """
    if name in METHODS:
        return METHODS[name]
    raise _wrong_method(repr(name[:40]), ", ".join(METHODS))


def _names(*, rank: bool) -> str:
    """The methods that rank, or those that re-rank."""
    return ", ".join(
        name for name, method in METHODS.items() if (method.rank if rank else method.load)
    )


def _wrong_method(found: str, names: str, *, place: str = "--method") -> InputError:
    return InputError.of("rank-method", place, found, f"one of {names}")


def _settings(method: Method, parameters: Mapping[str, str]) -> object:
    known = [field.name for field in fields(method.settings)]
    unknown = [name for name in parameters if name not in known]
    if unknown:
        expected = f"one of {', '.join(known)}" if known else "none: this ranker has no parameters"
        raise _refusal(f"no parameter {unknown[0][:40]!r}", expected)
    try:
        return msgspec.convert(dict(parameters), type=method.settings, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(
            f"a value that does not fit: {error}", "see `heldout rank --help`"
        ) from error


def _refusal(found: str, expected: str) -> InputError:
    return InputError.of("rank-parameter", "--param", found, expected)


_DEPTH = 100
"""Least documents of each run that are added: a shallow run is the top of a deep one."""
_NEEDED = ("sentence_transformers", "torch")


def choose_default(parameters: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Return the default method by what is installed, with its parameters.

    Args:
        parameters: those that were given.
    """
    if has_encoder():
        return "hybrid", parameters
    return "rm3", {"stopwords": "true"} | dict(parameters)


def has_encoder() -> bool:
    """Check that the extra `neural` is installed, without importing it."""
    return all(find_spec(name) is not None for name in _NEEDED)


def rank_hybrid(task: Task, encoder: Encoder, encoding: Encoding = _NOT_KEPT) -> Run:
    """BM25 without English function words, and vectors of texts; scores stretched and added.

    Args:
        task: what to rank.
        encoder: gives texts their vectors.
        encoding: where the vectors of documents are kept, and who hears of progress.

    Raises:
        SetupError: bm25s or PyStemmer is not installed.
        StoreError: the folder cannot be written.

    Source: CombSUM as `fusion.fuse_scores`.
    """
    deep = replace(task, depth=max(task.depth, _DEPTH))
    words = rank_bm25(deep, Bm25Settings(stopwords=True))
    return fuse_scores([words, rank_dense(deep, encoder, encoding)], depth=task.depth)


def _rank_hybrid(task: Task, settings: DenseSettings, encoding: Encoding) -> Run:
    return rank_hybrid(task, load_encoder(settings), _encoding(settings, encoding))


METHODS: dict[str, Method] = {
    "bm25": Method(summary="BM25", settings=Bm25Settings, rank=_of_words(rank_bm25)),
    "tfidf": Method(
        summary="cosine of TF-IDF vectors", settings=TfidfSettings, rank=_of_words(rank_tfidf)
    ),
    "query-likelihood": Method(
        summary="query likelihood, Dirichlet or Jelinek-Mercer smoothing",
        settings=LikelihoodSettings,
        rank=_of_words(rank_likelihood),
    ),
    "rm3": Method(
        summary="BM25 with pseudo-relevance feedback",
        settings=Rm3Settings,
        rank=_of_words(rank_rm3),
    ),
    "char-ngrams": Method(
        summary="cosine of character n-grams",
        settings=NgramSettings,
        rank=_of_words(rank_char_ngrams),
    ),
    "fusion": Method(
        summary="reciprocal rank fusion or CombSUM of other methods",
        settings=FusionSettings,
        rank=rank_fusion,
    ),
    "hybrid": Method(
        summary="BM25 and vectors of all-MiniLM-L6-v2, scores added (extra `neural`)",
        settings=DenseSettings,
        rank=_rank_hybrid,
        encodes=True,
    ),
    "dense": Method(
        summary="single vectors of a sentence encoder (extra `neural`)",
        settings=DenseSettings,
        rank=_rank_dense,
        load=load_encoder,
        encodes=True,
    ),
    "colbert": Method(
        summary="late interaction of token vectors (extra `neural`)",
        settings=ColbertSettings,
        rank=_rank_colbert,
        load=load_colbert,
        encodes=True,
    ),
    "cross-encoder": Method(
        summary="query and document read together, BERT or monoT5 (extra `neural`)",
        settings=CrossEncoderSettings,
        load=_load_trained,
    ),
    "monot5": Method(
        summary="a T5 that answers whether a document is relevant (extra `neural`)",
        settings=MonoT5Settings,
        load=_load_trained,
    ),
    "duot5": Method(
        summary="a T5 that answers which of two documents is better (extra `neural`)",
        settings=DuoT5Settings,
        load=load_duo,
        rerank_depth=20,
    ),
}
"""Every method of `heldout rank` by name."""
