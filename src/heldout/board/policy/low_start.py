"""A run that is far below every baseline, though its score would be told.

Whoever begins low on purpose is told every rise from there, under a Ladder too (docs/redteam.md,
sandbagging), and runs that are spoilt on most queries ask for single labels. A weak system may be
as low: a person asks.
"""

import math
import statistics
from collections.abc import Iterator, Mapping

from heldout.board.log.joined_names import list_renamed, names_of
from heldout.board.log.manifest import team_key
from heldout.board.policy.case import Case

__all__ = ["check_far_below", "paired_distance"]


def paired_distance(
    run: Mapping[str, float | None], baseline: Mapping[str, float | None], *, better: str
) -> float | None:
    """How many paired standard errors a run lies below a baseline.

    Args:
        run: query -> score, `None` where the measure is undefined.
        baseline: the same of the baseline.
        better: `higher` or `lower` scores.

    Returns:
        `None` where nothing can be said: less than two queries in common, or the difference is the
        same on all of them, so that it has no standard error.
    """
    pairs = [(run[query], baseline[query]) for query in run.keys() & baseline.keys()]
    gaps = [b - r for r, b in pairs if r is not None and b is not None]
    if len(set(gaps)) <= 1:
        return None
    errors = statistics.fmean(gaps) / (statistics.stdev(gaps) / math.sqrt(len(gaps)))
    return errors if better == "higher" else -errors


def check_far_below(case: Case) -> Iterator[str]:
    """A run whose score is told is not below the worst baseline by more than the Ladder's z.

    Under `rounded` that is every run: one that is spoilt on all queries but one says what that one
    is worth, the tenth as well as the first. Under `ladder` and `step` only a team's first low
    score is told, and under `ratchet` none.
    """
    if case.spec.release.rule == "ratchet":
        return
    bar = case.spec.held_out_release.threshold
    distances = sorted(case.distances, key=lambda one: (one.errors, one.baseline))
    if not distances or distances[0].errors <= bar:
        return
    if case.spec.release.rule != "rounded" and _was_told(case):
        return
    worst, best = distances[0], distances[-1]
    told = f"{worst.errors:.1f} paired standard errors below {worst.baseline}, the nearest baseline"
    if best is not worst:
        told += f", and {best.errors:.1f} below {best.baseline}"
    yield f"the run lies {told} (limit {bar:.2f})"


def _was_told(case: Case) -> bool:
    """Whether the team has an entry already, under any name that it has had."""
    names = names_of(list_renamed(case.history), [case.manifest.team])
    return any(
        submission.status == "published"
        and not submission.baseline
        and submission.id != case.id
        and not names.isdisjoint(map(team_key, submission.teams))
        for submission in case.history.submissions.values()
    )
