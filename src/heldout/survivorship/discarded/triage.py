"""Why were queries discarded? A sample of them for people to look at, and what they found.

Source: Gupta and MacAvaney 2022, §3 and table 1.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Row, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.errors import InputError, Problem, plural
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.stats.agreement import (
    AgreementCoefficient,
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_interval,
)
from heldout.survivorship.annotations import Annotation, Annotations, discarded_records
from heldout.survivorship.discarded import judging
from heldout.trec.text import show

TriageLabel = Literal["no_ans", "partial_ans", "wrong_lab", "ill_form"]
"""Nothing shown answers it; something does in part; something does fully; the query is unsound."""

_LABELS: tuple[TriageLabel, ...] = get_args(TriageLabel)
_NAMES: tuple[str, ...] = _LABELS
_SHOWN = 20
_NO_LABEL = "no query has a label"
_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageCounts:
    """Why the queries of one split were discarded.

    Attributes:
        split: its name; empty where there is one; `all` for all together.
        labels: label -> its share of the queries with a label.
        total: queries with a label.
        disputed: queries on which as many annotators say another thing.
        open: queries that nobody has labelled.
    """

    split: str
    labels: Mapping[TriageLabel, judging.CountShare]
    total: int
    disputed: int
    open: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageResult:
    """What people found.

    Attributes:
        splits: in the order of their first query.
        all: all splits together, which weighs each by how many were drawn from it.
        labels: query -> the label that most annotators gave, where there is one.
        annotators: those with an answer that counts, sorted.
        cannot: answers of people who could not judge.
    """

    splits: tuple[TriageCounts, ...]
    all: TriageCounts
    labels: Mapping[str, TriageLabel]
    annotators: tuple[str, ...]
    cannot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageAgreement:
    """How far annotators agree.

    Attributes:
        alpha: Krippendorff's, nominal, over queries.
        interval: of alpha, from drawing queries; `None` where undefined.
        kappa: Cohen's, of each two annotators with queries in common.
    """

    alpha: AgreementCoefficient
    interval: tuple[float, float] | None
    kappa: Mapping[tuple[str, str], AgreementCoefficient]


def draw_discarded(
    annotations: Annotations,
    *,
    count: int,
    rng: np.random.Generator,
    split: str = "",
    known: Collection[str] = (),
) -> tuple[Pool, ...]:
    """A random sample of the discarded queries, in the order drawn.

    Whoever stops early has then seen a random sample too. Queries of which no passage was shown
    are left out: there is nothing to look at. Two draws of the same seed, the second one with the
    first as `known`, are one draw of as many.

    Args:
        annotations: with texts.
        count: how many queries, >= 1.
        rng: where the draw comes from.
        split: what the sample is of, as `dev`.
        known: queries that were drawn before, and are not drawn again.

    Raises:
        InputError: codes `no-discarded`: the source leaves discarded queries out; `no-text`: a
            drawn query or passage has none; `too-few-queries`: there are not so many.
    """
    fit = [one for one in discarded_records(annotations) if one.shown]
    order = rng.permutation(len(fit)).tolist()
    left = [fit[index] for index in order if str(fit[index].query) not in known]
    if count > len(left):
        found = f"{plural(len(left), 'discarded query', 'discarded queries')} with passages"
        if len(left) < len(fit):
            found += f", besides {len(fit) - len(left):,} that are drawn already"
        raise InputError.of(
            "too-few-queries", annotations.source, found=found, expected=f"{count:,} to draw"
        )
    drawn = left[:count]
    _check_texts(annotations.source, drawn)
    return tuple(
        Pool(
            query=str(one.query),
            text=one.text or "",
            candidates=tuple(Candidate(doc=str(doc), text=one.texts[doc]) for doc in one.shown),
            split=split,
        )
        for one in drawn
    )


def count_labels(
    questions: Sequence[Pool], answers: Iterable[Judgment], *, level: float = 0.95
) -> TriageResult:
    """Count why queries were discarded, by split: table 1.

    Of several annotators most decide; where as many say another thing, the query is disputed and
    has no label.

    Args:
        questions: all of the sample.
        answers: all that were given; of each annotator the last one to a query counts.
        level: of the intervals.
    """
    given = judging.latest(answers)
    valid = [one for one in given.values() if one.choice is not None]
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in valid:
        votes[one.query][one.choice or ""] += 1
    labels = {query: label for query, cast in votes.items() if (label := _most(cast)) is not None}

    def count(split: str, some: Sequence[Pool]) -> TriageCounts:
        found = Counter(labels[one.query] for one in some if one.query in labels)
        total, opened = found.total(), sum(one.query not in votes for one in some)
        shares = {
            one: judging.share_of(found[one], total, level=level, why=_NO_LABEL) for one in _LABELS
        }
        disputed = len(some) - total - opened
        return TriageCounts(split=split, labels=shares, total=total, disputed=disputed, open=opened)

    splits = dict.fromkeys(one.split for one in questions)
    return TriageResult(
        splits=tuple(
            count(name, [one for one in questions if one.split == name]) for name in splits
        ),
        all=count("all", questions),
        labels=labels,
        annotators=tuple(sorted({one.worker for one in valid})),
        cannot=len(given) - len(valid),
    )


def sound_queries(questions: Sequence[Pool], result: TriageResult) -> tuple[Pool, ...]:
    """The questions that are sound and were rightly discarded: what table 2 is drawn from."""
    return tuple(
        one for one in questions if result.labels.get(one.query) in ("no_ans", "partial_ans")
    )


def triage_agreement(
    answers: Iterable[Judgment], rng: np.random.Generator, *, level: float = 0.95
) -> TriageAgreement:
    """Measure how far annotators give queries the same label.

    Args:
        answers: all that were given; of each annotator the last one to a query counts.
        rng: of the draws of the interval.
        level: of the interval.
    """
    given = {slot: one for slot, one in judging.latest(answers).items() if one.choice is not None}
    queries = sorted({query for query, _ in given})
    annotators, table = judging.rate_units(
        given, queries, lambda one, _: _NAMES.index(one.choice or "")
    )
    return TriageAgreement(
        alpha=krippendorff_alpha(table),
        interval=krippendorff_interval(table, rng, level=level),
        kappa={
            (annotators[i], annotators[j]): cohen_kappa(
                [_LABELS[int(table[i, index])] for index in both],
                [_LABELS[int(table[j, index])] for index in both],
            )
            for i, j in combinations(range(len(annotators)), _TWO)
            if len(both := np.flatnonzero(~np.isnan(table[i]) & ~np.isnan(table[j])))
        },
    )


def _most(cast: Counter[str]) -> TriageLabel | None:
    """The label with most votes, if it is one alone."""
    best = max(cast.values())
    found = [label for label in _LABELS if cast[label] == best]
    return found[0] if len(found) == 1 else None


def _check_texts(source: str, drawn: Sequence[Annotation]) -> None:
    missing = [str(one.query) for one in drawn if not one.text]
    missing += [str(doc) for one in drawn for doc in one.shown if doc not in one.texts]
    if missing:
        shown = [Problem.of("no-text", source, name=show(name)) for name in missing[:_SHOWN]]
        raise InputError(shown, counts={"no-text": len(missing)})


_MEANS = {
    "no_ans": "no passage shown answers it",
    "partial_ans": "a passage answers it in part",
    "wrong_lab": "a passage answers it fully",
    "ill_form": "it is no sound question",
}


def report_triage(found: TriageResult, agreement: TriageAgreement, *, level: float) -> Answer:
    """Counts by split, the shares of all, and how far annotators agree.

    Args:
        found: what people found.
        agreement: how far they agree.
        level: of the intervals.
    """
    kappa = (_kappa(agreement),) if agreement.kappa else ()
    return Answer(
        answer=write("discarded.triage_headline", found=found),
        summary=write_facts("discarded.triage_summary", found=found, agreement=agreement),
        tables=(_counts(found), _shares(found, level), *kappa),
        document={
            "splits": [to_document(one) for one in found.splits],
            "all": to_document(found.all),
            "interval": "Wilson",
            "level": level,
            "annotators": list(found.annotators),
            "cannot": found.cannot,
            "agreement": {
                **judging.agreement_document(agreement.alpha, agreement.interval, units="queries"),
                "kappa": [
                    {"a": a, "b": b, "kappa": one.value, "queries": one.units, "why": one.why}
                    for (a, b), one in agreement.kappa.items()
                ],
            },
        },
    )


def _counts(found: TriageResult) -> Table:
    rows: tuple[Row, ...] = tuple(
        (_split(one), *(share.count for share in one.labels.values()), one.total)
        for one in _shown(found)
    )
    return write_table("discarded.triage_counts", rows, means=_MEANS)


def _shown(found: TriageResult) -> tuple[TriageCounts, ...]:
    """Each split and all together; one split alone by its own name, where it has one."""
    if len(found.splits) == 1 and found.splits[0].split:
        return found.splits
    return (*(found.splits if len(found.splits) > 1 else ()), found.all)


def _split(one: TriageCounts) -> str:
    return one.split or "(none)"


def _shares(found: TriageResult, level: float) -> Table:
    rows = [
        ((_split(one), label), share)
        for one in _shown(found)
        for label, share in one.labels.items()
    ]
    return judging.tabulate_shares(
        rows,
        title="As shares of the queries with a label",
        names=("split", "label"),
        decimals=3,
        level=level,
        together=len(found.splits) > 1,
    )


def _kappa(agreement: TriageAgreement) -> Table:
    rows = tuple((a, b, one.units, one.value) for (a, b), one in agreement.kappa.items())
    return write_table("discarded.kappa", rows)
