"""How far a submission lies below the baselines, by scores that never leave the vault."""

from collections.abc import Iterator

from heldout.board.log.history import History
from heldout.board.policy.case import Distance
from heldout.board.policy.low_start import paired_distance
from heldout.board.rules.spec import BoardSpec
from heldout.measures.spec import parse_measure
from heldout.pipeline.scoring.score_files import ScoreFile, read_scores
from heldout.store.vault import Vault

__all__ = ["list_distances"]


def list_distances(
    vault: Vault, history: History, spec: BoardSpec, scores: ScoreFile
) -> tuple[Distance, ...]:
    """The distance of a submission from each baseline, in the view that ranks.

    Args:
        vault: has the baselines' scores.
        history: the organisers'.
        spec: the rules of the submission's day.
        scores: the submission's; without that view nothing can be said.

    Returns:
        In the order of the log. Baselines that were scored with other labels are left out.
    """
    return tuple(_distances(vault, history, spec, scores))


def _distances(
    vault: Vault, history: History, spec: BoardSpec, scores: ScoreFile
) -> Iterator[Distance]:
    view = spec.view(spec.primary)
    own = scores.views.get(view.name)
    if own is None:
        return
    better = parse_measure(view.measure).kind.better
    labels = f"{view.set}/{view.labels}" if view.labels else view.set
    for submission in history.submissions.values():
        kept = read_scores(vault, submission.id) if submission.baseline else None
        theirs = None if kept is None else kept.views.get(view.name)
        if kept is None or theirs is None or kept.labels.get(labels) != scores.labels.get(labels):
            continue
        errors = paired_distance(own.per_query, theirs.per_query, better=better)
        if errors is not None:
            yield Distance(baseline=submission.id, errors=errors)
