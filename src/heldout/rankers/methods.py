"""The methods of `heldout rank`, in one explicit table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from heldout.errors import InputError, Problem
from heldout.rankers.bm25 import Bm25Settings, Rm3Settings, rank_bm25, rank_rm3
from heldout.rankers.dense import DenseSettings, load_encoder, rank_dense
from heldout.rankers.fusion import fuse_reciprocal, fuse_scores
from heldout.rankers.language_model import LikelihoodSettings, rank_likelihood
from heldout.rankers.run import Run, Task
from heldout.rankers.vector_space import (
    NgramSettings,
    TfidfSettings,
    rank_char_ngrams,
    rank_tfidf,
)

__all__ = ["METHODS", "FusionSettings", "Method", "choose_method", "rank_fusion"]

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
        if not 0 <= self.k <= _MOST or not set(self.names) <= METHODS.keys() - {"fusion"}:
            choice = ", ".join(sorted(METHODS.keys() - {"fusion"}))
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
        rank: the ranker, given a task and settings of that class.
    """

    summary: str
    settings: type[Any]
    rank: Callable[[Task, Any], Run]


def choose_method(name: str, parameters: Mapping[str, str]) -> Callable[[Task], Run]:
    """The ranker of that name with these parameters.

    Args:
        name: a name in `METHODS`.
        parameters: values as text, by the field names of the method's settings.

    Returns:
        From a task to its run; raises SetupError where the method needs an extra that is not
        installed.

    Raises:
        InputError: code `rank-method` or `rank-parameter`.
    """
    if name not in METHODS:
        raise InputError(
            Problem(
                code="rank-method",
                path="--method",
                found=repr(name[:40]),
                expected=f"one of {', '.join(METHODS)}",
            )
        )
    method = METHODS[name]
    settings = _settings(method, parameters)
    return lambda task: method.rank(task, settings)


def rank_fusion(task: Task, settings: FusionSettings) -> Run:
    """Rank with several methods and fuse their runs.

    Raises:
        SetupError: one of them needs an extra that is not installed.
    """
    runs = [choose_method(name, {})(task) for name in settings.names]
    if settings.rule == "rrf":
        return fuse_reciprocal(runs, depth=task.depth, k=settings.k)
    return fuse_scores(runs, depth=task.depth)


def _rank_dense(task: Task, settings: DenseSettings) -> Run:
    return rank_dense(task, load_encoder(settings))


def _settings(method: Method, parameters: Mapping[str, str]) -> object:
    known = [field.name for field in fields(method.settings)]
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise _refusal(f"no parameter {unknown[0][:40]!r}", f"one of {', '.join(known)}")
    try:
        return msgspec.convert(dict(parameters), type=method.settings, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(
            f"a value that does not fit: {error}", "see `heldout rank --help`"
        ) from error


def _refusal(found: str, expected: str) -> InputError:
    return InputError(
        Problem(code="rank-parameter", path="--param", found=found, expected=expected)
    )


METHODS: dict[str, Method] = {
    "bm25": Method(summary="BM25", settings=Bm25Settings, rank=rank_bm25),
    "tfidf": Method(summary="cosine of TF-IDF vectors", settings=TfidfSettings, rank=rank_tfidf),
    "query-likelihood": Method(
        summary="query likelihood, Dirichlet or Jelinek-Mercer smoothing",
        settings=LikelihoodSettings,
        rank=rank_likelihood,
    ),
    "rm3": Method(
        summary="BM25 with pseudo-relevance feedback", settings=Rm3Settings, rank=rank_rm3
    ),
    "char-ngrams": Method(
        summary="cosine of character n-grams", settings=NgramSettings, rank=rank_char_ngrams
    ),
    "fusion": Method(
        summary="reciprocal rank fusion or CombSUM of other methods",
        settings=FusionSettings,
        rank=rank_fusion,
    ),
    "dense": Method(
        summary="all-MiniLM-L6-v2 sentence vectors (extra `neural`)",
        settings=DenseSettings,
        rank=_rank_dense,
    ),
}
"""Every method of `heldout rank` by name."""
