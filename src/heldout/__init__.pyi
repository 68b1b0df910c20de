# The public names of heldout, written by `python tools/api.py`.

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from heldout import judging as judging
from heldout import survivorship as survivorship
from heldout.analyses.entries import BoardScores
from heldout.analyses.outcomes.failures import Failures as Failures
from heldout.answers.answer import Answer as Answer
from heldout.api.analyses import ScoresLike
from heldout.api.analyses import failures as failures
from heldout.api.board import Board as Board
from heldout.api.evaluation import EvaluationResult as EvaluationResult
from heldout.api.evaluation import QrelsLike
from heldout.api.evaluation import Validation as Validation
from heldout.api.evaluation import evaluate as evaluate
from heldout.api.evaluation import read_qrels as read_qrels
from heldout.api.evaluation import read_run as read_run
from heldout.api.evaluation import validate as validate
from heldout.errors import HeldoutError as HeldoutError
from heldout.errors import InputError as InputError
from heldout.errors import Problem as Problem
from heldout.errors import SetupError as SetupError
from heldout.scoring.given_runs import Run as Run
from heldout.trec.qrels import Qrels as Qrels

__version__: str
__all__ = [
    "__version__",
    "Answer",
    "Board",
    "EvaluationResult",
    "Failures",
    "HeldoutError",
    "InputError",
    "Problem",
    "Qrels",
    "Run",
    "SetupError",
    "Validation",
    "compare",
    "evaluate",
    "failures",
    "read_qrels",
    "read_run",
    "validate",
    "stability",
    "reliability",
    "outcomes",
    "power",
    "facets",
    "scales",
    "views",
    "progress",
    "drift",
    "teams",
    "agreement",
    "judging",
    "survivorship",
]

def stability(
    scores: ScoresLike,
    measure: str | None = None,
    *,
    trials: int = 1000,
    size: int | None = None,
    ties: Literal['earlier', 'shared'] = 'earlier',
    flips: int = 10000,
    level: float = 0.95,
    single_step: bool = False,
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def reliability(
    scores: ScoresLike,
    measure: str | None = None,
    *,
    splits: int = 100,
    alpha: float = 0.05,
    equal: Literal['own', 'either'] = 'own',
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def outcomes(
    scores: ScoresLike,
    measure: str | None = None,
    *,
    baseline: str | None = None,
    k: int | None = None,
    decide: Literal['signed-rank', 't'] = 'signed-rank',
    by: Literal['esl', 'rr'] = 'esl',
    correction: Literal['holm', 'bonferroni', 'none'] = 'holm',
    alpha: float = 0.05,
    harm: Literal['margin', 'plain'] = 'margin',
    margin_found: float = 0.01,
    margin_esl: float = 0.5,
    level: float = 0.95,
    jobs: int = 1,
) -> Answer: ...

def power(
    scores: ScoresLike,
    measure: str | None = None,
    *,
    difference: float | tuple[float, ...] = (),
    size: int | tuple[int, ...] = (),
    alpha: float = 0.05,
    power: float = 0.8,
    level: float = 0.95,
    trials: int = 1000,
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def facets(
    scores: ScoresLike,
    kinds: str | Mapping[str, str] | Mapping[str, Collection[str]],
    measure: str | None = None,
    texts: Mapping[str, str] | None = None,
    least: int = 20,
    *,
    against: str | None = None,
    system: str | None = None,
    level: float = 0.95,
    draws: int = 9999,
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def scales(
    measure: str,
    *,
    length: int | None = None,
    grades: str = '1',
) -> Answer: ...

def views(
    views: Mapping[str, ScoresLike] | EvaluationResult | Sequence[EvaluationResult],
    *,
    run: str | tuple[str, ...] = (),
    top: int = 10,
    trials: int = 1000,
    ties: Literal['earlier', 'shared'] = 'earlier',
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def progress(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    measure: str | None = None,
    view: str | None = None,
    *,
    decide: Literal['t', 'signed-rank', 'rank-sum'] = 't',
    bar: bool = True,
    filter: str = '',
) -> Answer: ...

def drift(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    dev: ScoresLike | str | None = None,
    measure: str | None = None,
    view: str | None = None,
    *,
    plot: Literal['time', 'dev'] = 'time',
    trials: int = 1000,
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def teams(
    scores: ScoresLike | BoardScores,
    entries: Any = None,
    reserve: ScoresLike | str | None = None,
    measure: str | None = None,
    view: str | None = None,
    *,
    by: Literal['team', 'institution'] = 'team',
    groups: Path | None = None,
    until: date | None = None,
    window: int = 30,
    trials: int = 2000,
    seed: int = 0,
    jobs: int = 1,
) -> Answer: ...

def agreement(
    judges: Mapping[str, QrelsLike] | Mapping[str, Any],
    relevant: int | None = None,
    *,
    scale: Literal['nominal', 'ordinal', 'interval', 'ratio'] = 'nominal',
    weights: Literal['none', 'linear', 'quadratic'] = 'none',
    trials: int = 1000,
    level: float = 0.95,
    persistence: float = 0.9,
    ties: Literal['w', 'a', 'b'] = 'a',
    seed: int = 0,
) -> Answer: ...

def compare(
    a: Any,
    b: Any,
    qrels: QrelsLike,
    measures: str | Sequence[Any] | Any = (),
    *,
    seed: int = 0,
    jobs: int = 1,
    k: int = 100,
    rel: int = 1,
    order: Literal['trec', 'trec9', 'msmarco'] | None = None,
    decide: Literal['signed-rank', 't'] = 'signed-rank',
    by: Literal['esl', 'rr'] = 'esl',
    correction: Literal['holm', 'bonferroni', 'none'] = 'holm',
    alpha: float = 0.05,
    harm: Literal['margin', 'plain'] = 'margin',
    margin_found: float = 0.01,
    margin_esl: float = 0.5,
    intervals: Literal['simultaneous', 'pointwise'] = 'simultaneous',
    level: float = 0.95,
) -> Answer: ...
