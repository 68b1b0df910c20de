"""How far the best baseline lies below the best known run on dev, and what that lets leak.

Under `clear` an attacker climbs from the best baseline to the best run in steps that are published,
and each of them says something of the held-out labels (docs/explanation/redteam.md).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.describe import Unit, find_unit, list_counted
from heldout.board.scores.sets import SetData
from heldout.board.store.vault import Vault
from heldout.redteam.playing import read_dev_scores
from heldout.scoring.measures import Measure, parse_measure
from heldout.scoring.run_files import run_name
from heldout.scoring.score import Reading
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels

LEAKS = {0.0: 0.01, 8.0: 0.35, 16.0: 0.54, 32.0: 0.76, 48.0: 0.94}
"""Gap -> what the strongest attack gains under `clear`, both in u.

The larger of the means at 1,000 and 5,793 queries by `benchmarks/release_rules.py demo --table
attacks --release clear --attack staircase "staircase, last step free"` (docs/results/red-team.md).
"""

_UNEQUAL = 3.0
"""Gap in u from which two runs, if no others are known, are too unequal to give u."""

MOST = 8.0
"""Gap in u above which a better baseline lowers the leak more than a rule does."""


Known = Mapping[str, Mapping[str, float]]
"""Run -> dev query -> score, where it is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far a baseline lies below the best known run.

    Attributes:
        baseline, best: names of the two.
        scores: their means on dev.
        queries: how many held-out queries rank.
        unit: u on so many queries, with the two systems that it is taken from.
        size: the gap in u; 0 where the baseline is the best known run.
        leak: about the most that a cheat can gain, in u; beyond the last of `LEAKS`, that of the
            last.
    """

    baseline: str
    best: str
    scores: tuple[float, float]
    queries: int
    unit: Unit
    size: float
    leak: float


def score_known(files: Sequence[Path], qrels: Qrels, measure: Measure, *, order: Order) -> Known:
    """Score run files: name of the run, its path where two names are equal -> query -> score.

    Raises:
        InputError: what is wrong with a file.
    """
    runs = [str(file) for file in files]
    reading = Reading()
    names = [run_name(path) for path in runs]
    names = names if len(set(names)) == len(names) else runs
    scored = reading.score_whole(runs, qrels, [measure], order=order)
    return {
        name: {
            q: v for q, of in run.evaluation.per_query().items() if (v := of[measure]) is not None
        }
        for name, run in zip(names, scored, strict=True)
    }


def find_gap(known: Known, baselines: Collection[str], *, queries: int) -> Gap | None:
    """Measure the gap on the dev queries that all known runs have scores for.

    Args:
        known: runs whose scores are better when higher; the baselines are among them.
        baselines: names of those.
        queries: how many held-out queries rank, at least one.

    Returns:
        `None` without a baseline, or where no two runs are different enough to give u.
    """
    if not baselines:
        return None
    shared = set.intersection(*(set(scores) for scores in known.values()))
    rows = {name: {query: scores[query] for query in shared} for name, scores in known.items()}
    unit = find_unit(rows)
    if unit is None:
        return None
    means = {name: fmean(row.values()) for name, row in rows.items()}
    best, baseline = max(means, key=means.__getitem__), max(baselines, key=means.__getitem__)
    u = unit.size * (len(shared) / queries) ** 0.5
    size = (means[best] - means[baseline]) / u
    return Gap(
        baseline=baseline,
        best=best,
        scores=(means[baseline], means[best]),
        queries=queries,
        unit=Unit(size=u, a=unit.a, b=unit.b),
        size=size,
        leak=float(np.interp(size, list(LEAKS), list(LEAKS.values()))),
    )


def list_gaps(known: Known, *, queries: int) -> list[Gap]:
    """Measure the gap for each run as the best baseline, but for the best; the least gap first."""
    gaps = [gap for name in known if (gap := find_gap(known, [name], queries=queries)) is not None]
    return sorted((gap for gap in gaps if gap.size), key=lambda gap: gap.size)


def find_own_gap(
    vault: Vault, spec: BoardSpec, sets: Mapping[str, SetData], files: Sequence[Path]
) -> Gap | None:
    """Measure a board's gap: its best baseline below entries, other baselines and given runs.

    Args:
        vault: it has the dev scores of entries and baselines.
        spec: the rules of the day.
        sets: the query sets, with labels.
        files: further known runs over the dev queries.

    Raises:
        InputError: what is wrong with a file.
        StoreError: a file of scores is damaged.
    """
    measure = parse_measure(spec.view(spec.primary).measure)
    qrels = next((sets[n].qrels for n, one in spec.sets.items() if not one.held_out), None)
    if qrels is None:
        return None
    known: Known = read_dev_scores(vault, spec, measure)
    submissions = vault.history().submissions
    baselines = [name for name in known if submissions[name].baseline]
    if files:
        known = {**known, **score_known(files, qrels, measure, order=spec.runs.order)}
    return find_gap(known, baselines, queries=count_ranking(spec, sets))


def count_ranking(spec: BoardSpec, sets: Mapping[str, SetData]) -> int:
    """Count how many held-out queries rank, by the rules of the day."""
    view = spec.view(spec.primary)
    return len(list_counted(view, sets[view.set]))


def describe_gap(gap: Gap, *, subject: str, measure: str) -> str:
    """Say how wide it is and what that lets leak, as one sentence without a full stop.

    Args:
        gap: as measured.
        subject: what the baseline is called.
        measure: that of the scores.
    """
    low, high = (f"{score:.3f}" for score in gap.scores)
    if not gap.size:
        return f"{subject} is the best known run ({measure} {high} on dev)"
    of = {gap.unit.a, gap.unit.b}
    unequal = of == {gap.baseline, gap.best} and gap.size > _UNEQUAL
    more = (
        f"; more, in the u of two equal systems: name a run about as good as {gap.best}" * unequal
    )
    most = "more than" if gap.size > max(LEAKS) else "up to"
    unit = f"u = {gap.unit.size:.4f} of {gap.unit.a} and {gap.unit.b}"
    return (
        f"{subject} lies {gap.size:.1f} u below {gap.best} ({measure} {low} against {high} on "
        f"dev; {unit}, on {gap.queries:,} held-out queries): a cheat can gain {most} about "
        f"{gap.leak:.2f} u{more}"
    )
