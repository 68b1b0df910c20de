"""What annotators say of pooled passages: which of them answer a query, and how far they agree.

Shares of queries have Wilson intervals; what is undefined has none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from heldout.stats.agreement import Agreement, krippendorff_alpha, krippendorff_interval
from heldout.survivorship.discarded.questions import CANNOT, Answer, Question, latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What annotators say of one query's passages.

    Attributes:
        answering: documents that answer it, with those of the same text, sorted.
        others: documents that do not, sorted.
        disputed: documents that just half of the annotators ticked, sorted; nobody knows of them.
        annotators: how many judged it.
    """

    answering: tuple[str, ...]
    others: tuple[str, ...]
    disputed: tuple[str, ...]
    annotators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageJudging:
    """Who judged passages, and how far they agree.

    Attributes:
        annotators: those with an answer that counts, sorted.
        asked: queries there are.
        judged: queries with an answer that counts.
        disputed: passages that just half of their annotators ticked.
        cannot: answers of people who could not judge.
        alpha: Krippendorff's, nominal, over passages: ticked or not.
        interval: of alpha, from drawing queries; `None` where undefined.
    """

    annotators: tuple[str, ...]
    asked: int
    judged: int
    disputed: int
    cannot: int
    alpha: Agreement
    interval: tuple[float, float] | None


def judged_passages(
    questions: Iterable[Question], answers: Iterable[Answer]
) -> Mapping[str, Judged]:
    """What answers each query, by more than half of its annotators.

    Args:
        questions: all of them.
        answers: all that were given; of each annotator the last one to a query counts.

    Returns:
        Query -> what is said of its passages; queries that nobody judged are left out.
    """
    given: defaultdict[str, list[Answer]] = defaultdict(list)
    for one in latest(answers).values():
        if one.choice != CANNOT:
            given[one.query].append(one)
    return {one.query: _judge(one, given[one.query]) for one in questions if given.get(one.query)}


def judge_agreement(
    questions: Sequence[Question],
    answers: Iterable[Answer],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
) -> PassageJudging:
    """Who judged, and how far annotators tick the same passages.

    Args:
        questions: all of them.
        answers: all that were given; of each annotator the last one to a query counts.
        rng: of the draws of the interval.
        level: of the interval.
    """
    given = latest(answers)
    valid = {place: one for place, one in given.items() if one.choice != CANNOT}
    annotators = sorted({annotator for _, annotator in valid})
    units = [(one.query, passage.doc) for one in questions for passage in one.passages]
    table = np.full((len(annotators), len(units)), np.nan)
    for row, annotator in enumerate(annotators):
        for column, (query, doc) in enumerate(units):
            if (query, annotator) in valid:
                table[row, column] = doc in valid[query, annotator].passages
    judged = judged_passages(questions, given.values())
    groups = [query for query, _ in units]
    return PassageJudging(
        annotators=tuple(annotators),
        asked=len(questions),
        judged=len(judged),
        disputed=sum(doc in judged[query].disputed for query, doc in units if query in judged),
        cannot=len(given) - len(valid),
        alpha=krippendorff_alpha(table),
        interval=krippendorff_interval(table, rng, groups=groups, level=level),
    )


def _judge(question: Question, given: Sequence[Answer]) -> Judged:
    ticks = Counter(doc for one in given for doc in one.passages)
    answering: list[str] = []
    others: list[str] = []
    disputed: list[str] = []
    for passage in question.passages:
        twice = 2 * ticks[passage.doc]
        named = answering if twice > len(given) else others if twice < len(given) else disputed
        named += [passage.doc, *passage.same]
    return Judged(
        answering=tuple(sorted(answering)),
        others=tuple(sorted(others)),
        disputed=tuple(sorted(disputed)),
        annotators=len(given),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many of so many.

    Attributes:
        count: how many.
        of: of how many.
        share: of them, 0 to 1; `None` where there are none.
        low: lower end of the Wilson interval; `None` with `share`.
        high: its upper end.
    """

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


def share_of(count: int, of: int, *, level: float = 0.95) -> Share:
    """A share with its interval.

    Args:
        count: 0 to `of`.
        of: how many there are, >= 0.
        level: of the interval, in (0, 1).
    """
    if not of:
        return Share(count=count, of=of, share=None, low=None, high=None)
    low, high = wilson(count, of, level=level)
    return Share(count=count, of=of, share=count / of, low=low, high=high)


def wilson(count: int, of: int, *, level: float) -> tuple[float, float]:
    """The interval of a share, which holds also for few queries and near 0 and 1.

    Args:
        count: 0 to `of`.
        of: how many there are, >= 1.
        level: of the interval, in (0, 1).

    Source: Wilson 1927.
    """
    ends = binomtest(count, of).proportion_ci(level, "wilson")
    return float(ends.low), float(ends.high)


def share_value(share: Share, *, why: str) -> dict[str, Any]:
    """A share for JSON.

    Args:
        share: of queries.
        why: there are none, where there are none.
    """
    return asdict(share) | ({"why": why} if share.share is None else {})


def agreement_value(
    alpha: Agreement, interval: tuple[float, float] | None, *, units: str
) -> dict[str, Any]:
    """Krippendorff's alpha and its interval for JSON.

    Args:
        alpha: of all units.
        interval: from drawing queries; `None` where undefined.
        units: what they are called, as `queries`.
    """
    found = {
        "alpha": alpha.value,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        units: alpha.units,
    }
    return found | ({} if interval else {"why": alpha.why or _no_interval(alpha)})


def _no_interval(alpha: Agreement) -> str:
    if alpha.observed == 0:
        return "no interval: annotators agree on all, so no draw of queries tells anything"
    return "no interval: too few queries; draws are all alike, or alpha is undefined in one"
