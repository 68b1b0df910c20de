"""What annotators say of pooled passages, how far they agree, and labels made of it.

Shares of queries have Wilson intervals; what is undefined has none.

What people judged becomes qrels: 1 for a passage that answers, 0 for one that was looked at and
does not. One that just half of its annotators ticked is neither, and has no line.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from heldout.answers.table import Table
from heldout.answers.texts import write_table
from heldout.ids import digest_bytes
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Pool
from heldout.stats.agreement import AgreementCoefficient, krippendorff_alpha, krippendorff_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPassages:
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
    alpha: AgreementCoefficient
    interval: tuple[float, float] | None


def judged_passages(
    questions: Iterable[Pool], answers: Iterable[Judgment]
) -> Mapping[str, JudgedPassages]:
    """Return what answers each query, by more than half of its annotators.

    Args:
        questions: all of them.
        answers: all that were given; of each annotator the last one to a query counts.

    Returns:
        Query -> what is said of its passages; queries that nobody judged are left out.
    """
    given: defaultdict[str, list[Judgment]] = defaultdict(list)
    for one in latest(answers).values():
        if one.choice is not None:
            given[one.query].append(one)
    return {one.query: _judge(one, given[one.query]) for one in questions if given.get(one.query)}


def judge_agreement(
    questions: Sequence[Pool],
    answers: Iterable[Judgment],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
) -> PassageJudging:
    """Measure how far annotators tick the same passages.

    Args:
        questions: all of them.
        answers: all that were given; of each annotator the last one to a query counts.
        rng: of the draws of the interval.
        level: of the interval.
    """
    given = latest(answers)
    valid = {slot: one for slot, one in given.items() if one.choice is not None}
    units = [(one.query, passage.doc) for one in questions for passage in one.candidates]
    groups = [query for query, _ in units]
    annotators, table = rate_units(
        valid, groups, lambda answer, unit: units[unit][1] in answer.ticked
    )
    judged = judged_passages(questions, given.values())
    return PassageJudging(
        annotators=tuple(annotators),
        asked=len(questions),
        judged=len(judged),
        disputed=sum(doc in judged[query].disputed for query, doc in units if query in judged),
        cannot=len(given) - len(valid),
        alpha=krippendorff_alpha(table),
        interval=krippendorff_interval(table, rng, groups=groups, level=level),
    )


def latest(answers: Iterable[Judgment]) -> Mapping[tuple[str, str], Judgment]:
    """Return, by query and annotator, what they said last."""
    return {(one.query, one.worker): one for one in answers}


def rate_units(
    answers: Mapping[tuple[str, str], Judgment],
    units: Sequence[str],
    rating: Callable[[Judgment, int], float],
) -> tuple[list[str], NDArray[np.float64]]:
    """Tabulate what annotators say of units, as measures of agreement want it.

    Args:
        answers: by query and annotator.
        units: the query of each.
        rating: of an answer to the query of a unit, by its number.

    Returns:
        The annotators, and float64 of shape (annotators, units); NaN without an answer.
    """
    annotators = sorted({annotator for _, annotator in answers})
    table = np.full((len(annotators), len(units)), np.nan)
    for row, annotator in enumerate(annotators):
        for column, query in enumerate(units):
            if (query, annotator) in answers:
                table[row, column] = rating(answers[query, annotator], column)
    return annotators, table


def _judge(question: Pool, given: Sequence[Judgment]) -> JudgedPassages:
    ticks = Counter(doc for one in given for doc in one.ticked)
    named: defaultdict[int, list[str]] = defaultdict(list)
    for passage in question.candidates:
        side = int(np.sign(2 * ticks[passage.doc] - len(given)))
        named[side] += [passage.doc, *passage.same]
    return JudgedPassages(
        answering=tuple(sorted(named[1])),
        others=tuple(sorted(named[-1])),
        disputed=tuple(sorted(named[0])),
        annotators=len(given),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountShare:
    """So many of so many.

    Attributes:
        count: how many.
        of: of how many.
        share: of them, 0 to 1; `None` where there are none.
        low: lower end of the Wilson interval; `None` with `share`.
        high: its upper end.
        why: there is none, else "".
    """

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None
    why: str = ""


def share_of(count: int, of: int, *, level: float = 0.95, why: str) -> CountShare:
    """A share with its interval.

    Args:
        count: 0 to `of`.
        of: how many there are, >= 0.
        level: of the interval, in (0, 1).
        why: there are none, where there are none.
    """
    if not of:
        return CountShare(count=count, of=of, share=None, low=None, high=None, why=why)
    low, high = wilson(count, of, level=level)
    return CountShare(count=count, of=of, share=count / of, low=low, high=high)


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


def tabulate_shares(
    rows: Iterable[tuple[tuple[str, str], CountShare]], *, together: bool = False, **given: Any
) -> Table:
    """Shares of queries with their intervals.

    Args:
        rows: what stands in the first two columns, and the share.
        together: whether queries of several splits are counted together.
        given: the title, names of these columns, decimals of shares, and level of the intervals.
    """
    cells = tuple((*cells, one.count, one.share, one.low, one.high) for cells, one in rows)
    return write_table("discarded.shares", cells, together=together, **given)


def agreement_document(
    alpha: AgreementCoefficient, interval: tuple[float, float] | None, *, units: str
) -> dict[str, Any]:
    """Krippendorff's alpha and its interval for JSON.

    Args:
        alpha: of all units.
        interval: from drawing queries; `None` where undefined.
        units: what they are called, as `queries`.
    """
    low, high = interval or (None, None)
    document = {"alpha": alpha.value, "low": low, "high": high, units: alpha.units}
    if interval:
        return document
    why = "no interval: too few queries; draws are all alike, or alpha is undefined in one"
    if alpha.observed == 0:
        why = "no interval: annotators agree on all, so draws of queries do not vary"
    return document | {"why": alpha.why or why}


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeLabels:
    """A file of labels and its record.

    Attributes:
        record: what it is made of: `name`, `made` (`human`), how many `queries`, `answered` ones
            and `lines`, how many documents are `disputed` and have no line, what was `judged`, and
            the digest of the labels.
        qrels: its bytes.
    """

    record: Mapping[str, Any]
    qrels: bytes


def make_labels(
    name: str, judged: Mapping[str, JudgedPassages], source: Mapping[str, Any]
) -> MadeLabels:
    """Make a file of labels of what people judged, and its record.

    Queries are in the order of what people judged, documents of one by id; what they dispute has no
    line.

    Args:
        name: of the file.
        judged: query -> what annotators say of its passages.
        source: who judged what, for the record.
    """
    rows = [
        (query, doc, int(doc in one.answering))
        for query, one in judged.items()
        for doc in sorted((*one.answering, *one.others))
    ]
    qrels = "".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows).encode()
    record = {
        "schema": 1,
        "name": name,
        "made": "human",
        "queries": len({query for query, _, _ in rows}),
        "answered": len({query for query, _, grade in rows if grade}),
        "lines": len(rows),
        "disputed": sum(len(one.disputed) for one in judged.values()),
        "judged": source,
        "system": None,
        "qrels_sha256": digest_bytes(qrels),
    }
    return MadeLabels(record=record, qrels=qrels)
