"""Do the judged queries rank runs as all queries do?

Both scores are on the labels there were: the sample is compared with the whole, and not with what
people preferred (shallow-pooling, section 4.1, figure 5).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from heldout.errors import InputError, Problem
from heldout.preferences.label_scores import ScoredLabels, score_labels
from heldout.preferences.rescoring import means_of
from heldout.preferences.tau_ranges import Both, TauRange, find_taus
from heldout.trec.places import Places

__all__ = ["SampleScore", "SampleScores", "score_sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScore:
    """A run's scores.

    Attributes:
        run: its name.
        every: mean over all labelled queries.
        sample: mean over the judged ones.
    """

    run: str
    every: float
    sample: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScores:
    """All runs on all queries and on a sample of them.

    Attributes:
        measure: what is computed.
        labels: name of the labels.
        queries: with labels.
        judged: of these, those in the sample.
        runs: in the order of their scores on all queries, the best first.
        taus: between both orders, among all runs and the best ten.
    """

    measure: str
    labels: str
    queries: int
    judged: int
    runs: tuple[SampleScore, ...]
    taus: tuple[TauRange, ...]


def score_sample(
    runs: Mapping[str, Places], wanted: ScoredLabels, sample: Collection[str]
) -> SampleScores:
    """Score runs on all labelled queries, and on those of a sample.

    Args:
        runs: by name; an unanswered query counts 0.
        wanted: labels and measure.
        sample: the queries that were judged.

    Raises:
        InputError: code `no-common-query`: no query of the sample has labels, or none has been
            left out of it; and those of `score_labels`.
    """
    queries = sorted(query for query, grades in wanted.labels.items() if grades)
    inside = [place for place, query in enumerate(queries) if query in set(sample)]
    if not 0 < len(inside) < len(queries):
        raise InputError(
            Problem(
                code="no-common-query",
                path=wanted.name,
                found=f"{len(inside):,} judged of {len(queries):,} labelled queries",
                expected="a sample: some of the labelled queries, and not all",
            )
        )
    values = score_labels(runs, wanted, queries=queries)
    sign = 1.0 if wanted.measure.kind.better == "higher" else -1.0
    means = Both(before=sign * means_of(values), after=sign * means_of(values[:, inside]))
    found = [
        SampleScore(run=run, every=sign * every, sample=sign * part)
        for run, every, part in zip(runs, means.before.tolist(), means.after.tolist(), strict=True)
    ]
    taus = find_taus(tuple(runs), means)
    return SampleScores(
        measure=str(wanted.measure),
        labels=wanted.name,
        queries=len(queries),
        judged=len(inside),
        runs=tuple(sorted(found, key=lambda one: -sign * one.every)),
        taus=tuple(replace(one, name=one.name.replace("before", "on all")) for one in taus),
    )
