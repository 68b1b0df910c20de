"""The methods of `heldout rank`, in one explicit table, and the one that is taken by default.

The default has nothing to tune, train or fetch: one of two, by what is installed. Both were at
least as good as BM25 on each of the collections of docs/results/zero-shot.md and better on some.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, Literal

import msgspec

from heldout.errors import InputError, printable
from heldout.progress_bar import SILENT, Progress
from heldout.rankers import terms
from heldout.rankers.neural import cross_encoder, encoders
from heldout.rankers.run import RankingTask, Reranker, Run, fuse_reciprocal, fuse_scores

_MOST = 1_000_000.0


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
        settings: the frozen dataclass of its parameters; each has a default.
        rank: the ranker, given a task, settings of that class, and what counts the documents that
            it encodes; None where it only re-ranks.
        load: gives, with such settings, what re-ranks; None where it only ranks.
        rerank_depth: documents per query that it re-ranks where nobody says.
    """

    settings: type[Any]
    rank: Callable[[RankingTask, Any, Progress], Run] | None = None
    load: Callable[[Any], Reranker] | None = None
    rerank_depth: int = 100


def choose_method(
    name: str, parameters: Mapping[str, str], progress: Progress = SILENT
) -> Callable[[RankingTask], Run]:
    """The ranker of that name with these parameters.

    Args:
        name: a name in `METHODS`, of one that ranks a whole collection.
        parameters: values as text, by the field names of the method's settings.
        progress: counts the documents that are encoded.

    Returns:
        From a task to its run; raises SetupError where the method needs an extra that is not
        installed, and InputError where a model cannot be loaded.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    rank, settings = _choose(name, parameters, rank=True)
    return lambda task: rank(task, settings, progress)


def choose_reranker(name: str, parameters: Mapping[str, str]) -> Callable[[], Reranker]:
    """Return what loads the re-ranker of that name with these parameters.

    Args:
        name: a name in `METHODS`, of one that re-ranks.
        parameters: values as text, by the field names of the method's settings.

    Returns:
        Loads the model; raises SetupError where an extra is not installed, and InputError where
        the model cannot be loaded.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    load, settings = _choose(name, parameters, rank=False)
    return lambda: load(settings)


def _choose(
    name: str, parameters: Mapping[str, str], *, rank: bool
) -> tuple[Callable[..., Any], object]:
    """Return what ranks or what loads a re-ranker, and its settings."""
    method = find_method(name)
    act = method.rank if rank else method.load
    if act is None:
        names = [one for one, row in METHODS.items() if (row.rank if rank else row.load)]
        lacks, option = ("only re-ranks", "--first") if rank else ("re-ranks nothing", "--method")
        raise _wrong_method(f"{name}, which {lacks}", names, option=option)
    known = [field.name for field in fields(method.settings)]
    unknown = [one for one in parameters if one not in known]
    if unknown:
        expected = f"one of {', '.join(known)}" if known else "none: this ranker has no parameters"
        raise _refusal(f"no parameter {unknown[0][:40]!r}", expected)
    try:
        return act, msgspec.convert(dict(parameters), type=method.settings, strict=False)
    except msgspec.ValidationError as error:
        found = f"a value that does not fit: {error}"
        raise _refusal(found, "see `heldout rank --help`") from error


def rank_fusion(task: RankingTask, settings: FusionSettings, progress: Progress = SILENT) -> Run:
    """Rank with several methods and fuse their runs.

    Raises:
        SetupError: one of them needs an extra that is not installed.
    """
    runs = [choose_method(name, {}, progress)(task) for name in settings.names]
    if settings.rule == "rrf":
        return fuse_reciprocal(runs, depth=task.depth, k=settings.k)
    return fuse_scores(runs, depth=task.depth)


def _with_encoder(
    rank: Callable[..., Run],
) -> Callable[[RankingTask, encoders.DenseSettings, Progress], Run]:
    """Return a ranker that takes vectors of the encoder that its settings name."""
    return lambda task, settings, progress: rank(
        task, encoders.load_encoder(settings), folder=settings.vectors, progress=progress
    )


def _of_words(
    rank: Callable[[RankingTask, Any], Run],
) -> Callable[[RankingTask, Any, Progress], Run]:
    """A ranker on words, which encodes nothing."""
    return lambda task, settings, _: rank(task, settings)


def _load_trained(settings: cross_encoder.CrossEncoderSettings) -> cross_encoder.CrossEncoder:
    """A cross-encoder all of whose weights come from its checkpoint.

    Raises:
        InputError: code `model-checkpoint` or `model-untrained`.
    """
    encoder = cross_encoder.load_cross_encoder(settings)
    if not encoder.new_weights:
        return encoder
    names = ", ".join(encoder.new_weights)
    raise InputError.of("model-untrained", printable(settings.model), names=names)


def find_method(name: str) -> Method:
    """The row of `METHODS` of that name.

    Raises:
        InputError: code `rank-method`.
    """
    if name in METHODS:
        return METHODS[name]
    raise _wrong_method(repr(name[:40]), METHODS)


def _wrong_method(found: str, names: Iterable[str], *, option: str = "--method") -> InputError:
    return InputError.of("rank-method", option, found, f"one of {', '.join(names)}")


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


def rank_hybrid(
    task: RankingTask, encoder: encoders.Encoder, *, folder: str = "", progress: Progress = SILENT
) -> Run:
    """BM25 without English function words, and vectors of texts; scores stretched and added.

    Args:
        task: what to rank.
        encoder: gives texts their vectors.
        folder: where the vectors of documents are stored; empty stores none.
        progress: counts the documents.

    Raises:
        SetupError: bm25s or PyStemmer is not installed.
        StoreError: the folder cannot be written.

    Source: CombSUM as `fusion.fuse_scores`.
    """
    deep = replace(task, depth=max(task.depth, _DEPTH))
    words = terms.rank_bm25(deep, terms.Bm25Settings(stopwords=True))
    vectors = encoders.rank_dense(deep, encoder, folder=folder, progress=progress)
    return fuse_scores([words, vectors], depth=task.depth)


METHODS: dict[str, Method] = {
    "bm25": Method(settings=terms.Bm25Settings, rank=_of_words(terms.rank_bm25)),
    "tfidf": Method(settings=terms.TfidfSettings, rank=_of_words(terms.rank_tfidf)),
    "query-likelihood": Method(
        settings=terms.LikelihoodSettings, rank=_of_words(terms.rank_likelihood)
    ),
    "rm3": Method(settings=terms.Rm3Settings, rank=_of_words(terms.rank_rm3)),
    "char-ngrams": Method(settings=terms.NgramSettings, rank=_of_words(terms.rank_char_ngrams)),
    "fusion": Method(settings=FusionSettings, rank=rank_fusion),
    "hybrid": Method(settings=encoders.DenseSettings, rank=_with_encoder(rank_hybrid)),
    "dense": Method(
        settings=encoders.DenseSettings,
        rank=_with_encoder(encoders.rank_dense),
        load=encoders.load_encoder,
    ),
    "colbert": Method(
        settings=encoders.ColbertSettings,
        rank=lambda task, settings, progress: encoders.rank_colbert(
            task, encoders.load_colbert(settings), progress
        ),
        load=encoders.load_colbert,
    ),
    "cross-encoder": Method(settings=cross_encoder.CrossEncoderSettings, load=_load_trained),
    "monot5": Method(settings=cross_encoder.MonoT5Settings, load=_load_trained),
    "duot5": Method(settings=cross_encoder.DuoT5Settings, load=_load_trained, rerank_depth=20),
}
"""Every method of `heldout rank` by name."""
