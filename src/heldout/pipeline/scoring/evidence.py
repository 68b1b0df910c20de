"""What a score was told for: scores by query and the labels they were made with, kept for good.

Each lies in the vault as a file named by its digest, and the event that tells the score holds that
digest, sealed. So neither can be changed afterwards, and whoever gets to see the files can go over
every release: the organisers at any time, everybody in the archive.
"""

from collections.abc import Iterable, Mapping

import msgspec

from heldout.board.log.events import Entry
from heldout.board.rules.held_out import is_key, names_of_view
from heldout.board.rules.parts import add_noise, draw_noise
from heldout.board.rules.release import score_vector
from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import StoreError, quote
from heldout.ids import digest_bytes
from heldout.pipeline.scoring.score import ViewScore
from heldout.pipeline.scoring.score_files import ScoreFile
from heldout.store.vault import Vault

__all__ = [
    "Evidence",
    "digest_evidence",
    "first_baseline",
    "follows_on",
    "keep_evidence",
    "keep_told",
    "make_evidence",
    "make_noisy",
    "parse_evidence",
    "read_evidence",
]


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one score was told, or withheld, for.

    Attributes:
        id: the submission or baseline.
        view: name of the view.
        score: by query.
        labels: held-out file, as `board.held_out` names it -> SHA-256, as it was scored with.
    """

    id: str
    view: str
    score: ViewScore
    labels: dict[str, str]

    @property
    def scored_with(self) -> dict[str, str]:
        """The same files without the key: it never changes, and a run may be older than it."""
        return {name: digest for name, digest in self.labels.items() if not is_key(name)}


def make_evidence(submission: str, view: View, scores: ScoreFile) -> Evidence:
    """Out of what the vault knows of a submission; the view must be among its scores."""
    names = names_of_view(view)
    return Evidence(
        id=submission,
        view=view.name,
        score=scores.views[view.name],
        labels={n: digest for n, digest in scores.held_out.items() if n in names},
    )


def follows_on(told: Evidence, now: Evidence, committed: Mapping[str, str]) -> bool:
    """Whether scores of today are those that were told, or made anew by mended labels.

    Args:
        told: what the last event about them was told for.
        now: what is kept as their scores.
        committed: what the log commits to today.
    """
    if told.scored_with == now.scored_with:
        return (told.id, told.view, told.score) == (now.id, now.view, now.score)
    return committed.items() >= now.labels.items()


def keep_evidence(vault: Vault, evidence: Evidence) -> str:
    """Store it by its digest, which is given back."""
    return vault.keep_sealed(_encode(evidence))


def digest_evidence(evidence: Evidence) -> str:
    """The digest under which `keep_evidence` stores it."""
    return digest_bytes(_encode(evidence))


def _encode(evidence: Evidence) -> bytes:
    return msgspec.json.encode(evidence, order="deterministic")


def keep_told(
    vault: Vault, submission: str, spec: BoardSpec, scores: ScoreFile
) -> Mapping[str, str]:
    """Store what every view was told for that is released now or later; view -> digest."""
    views: Iterable[View] = (*spec.public_views, *spec.final_views)
    return {
        view.name: keep_evidence(vault, make_evidence(submission, view, scores))
        for view in views
        if view.name in scores.views
    }


def parse_evidence(data: bytes, *, path: str) -> Evidence:
    """Read such a file.

    Raises:
        StoreError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Evidence)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        told = f"{path} does not say what a score was told for: {quote(str(error))}"
        raise StoreError(told) from None


def read_evidence(vault: Vault, digest: str) -> Evidence:
    """What a score was told for, by the digest in its event.

    Raises:
        StoreError: the vault does not have it, or it is none.
    """
    return parse_evidence(vault.sealed(digest).read_bytes(), path=f"sealed/{digest}")


def first_baseline(entries: Iterable[Entry], view: str) -> Entry | None:
    """The event that first tells a baseline's score in a view; `None` before there is one."""
    baselines = set()
    for entry in entries:
        if entry.event.kind == "baseline":
            baselines.add(entry.event.submission)
        if entry.event.submission in baselines and view in (entry.get("scores") or ()):
            return entry
    return None


def make_noisy(
    spec: BoardSpec,
    view: View,
    score: ViewScore,
    first: ViewScore,
    *,
    key: bytes,
) -> str:
    """A score with the noise of its view, as the text that leaves the vault.

    Args:
        spec: the rules of its day.
        view: one with `noise`.
        score: the true score.
        first: that of the first baseline, as it was published first: if the unit of the noise
            changed later, two texts with the same noise would give the true score away.
        key: the secret key of the view's set.

    Raises:
        StoreError: the scores give no noise.
    """
    values, unit = (score_vector(one.per_query, n=one.n) for one in (score, first))
    drawn = draw_noise(key, view.name, values)
    try:
        return add_noise(values, unit, errors=view.noise or 0, drawn=drawn, decimals=spec.decimals)
    except ValueError as error:
        raise StoreError(f"view {view.name} publishes scores with noise: {error}") from None
