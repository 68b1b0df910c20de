"""Holds the labels of an archive, and all else that was held out, against what its log commits to.

The first event commits; what changes later is an event `changed-rules`, and nothing else is. A
score has to be made with the versions that were in force when it was told last.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from heldout.board.log.history import Submission
from heldout.board.rules.held_out import held_out_file, is_commitment, names_of_view
from heldout.board.rules.spec import View
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import quote
from heldout.pipeline.auditing.opening import EARLIER
from heldout.pipeline.auditing.unpacked import Unpacked
from heldout.pipeline.organiser.commitments import list_broken_keys
from heldout.pipeline.scoring.evidence import make_evidence
from heldout.pipeline.scoring.score_files import ScoreFile

__all__ = ["check_labels", "labels_in_force", "say_labels", "tell_labels", "uses_labels_in_force"]

_COMMITTING = ("opened-board", "changed-rules")
_SCORING = ("published", "corrected", "baseline", "reviewed")


def check_labels(unpacked: Unpacked) -> Iterator[str]:
    """What is wrong with the commitments, or with the files that they are to."""
    faults = [*_check_events(unpacked), *_check_dropped(unpacked)]
    faults += list_broken_keys(unpacked.history)
    yield from faults or _check_files(unpacked)


def _check_events(unpacked: Unpacked) -> Iterator[str]:
    for entry in unpacked.log:
        place = f"event {entry.event.seq}"
        if "labels" not in entry.event.sealed:
            continue
        if entry.event.kind not in _COMMITTING:
            yield f"{place}, {entry.event.kind}, names labels, which only changed rules can"
        elif not is_commitment(entry.get("labels")):
            yield f"the labels' digests in {place} are not opened, or are none"


def _check_dropped(unpacked: Unpacked) -> Iterator[str]:
    """Labels that were committed to once are in every later commitment; all are from the start."""
    first = parse_spec(unpacked.history.rules[0][1].encode())
    held_out = {name for name, files in first.sets.items() if files.held_out} & unpacked.labels
    known = [(one.event, one.files or {}) for one in unpacked.history.commitments]
    if not known or known[0][0]:
        known = [(0, {}), *known]
    for (_, before), (event, after) in pairwise([(0, dict.fromkeys(held_out, "")), *known]):
        for name in sorted(name for name in before.keys() - after.keys() if "." not in name):
            yield f"event {event} does not commit to labels/{held_out_file(name)}"


def _check_files(unpacked: Unpacked) -> Iterator[str]:
    known, ever = unpacked.history.labels, _list_ever(unpacked)
    for name in sorted(unpacked.labels):
        file = f"labels/{held_out_file(name)}"
        if file not in unpacked.names:
            if "." not in name or name in known:
                yield f"{file} is missing"
        elif name in ever and unpacked.digest(file) != known.get(name):
            yield f"{file} is not what the organisers committed to"
    digests = frozenset[str]().union(*ever.values())
    for file in sorted(name for name in unpacked.names if name.startswith(EARLIER)):
        digest = file.removeprefix(EARLIER)
        if digest not in digests or unpacked.digest(file) != digest:
            yield f"{quote(file)} is nothing that the organisers committed to"


def _list_ever(unpacked: Unpacked) -> Mapping[str, frozenset[str]]:
    """Name -> every digest that was ever committed to under it."""
    ever: dict[str, frozenset[str]] = {}
    for commitment in unpacked.history.commitments:
        for name, digest in (commitment.files or {}).items():
            ever[name] = ever.get(name, frozenset()) | {digest}
    return ever


def labels_in_force(unpacked: Unpacked, submission: Submission) -> Mapping[str, str]:
    """What was committed to when an entry was told, or scored anew, for the last time."""
    *_, last = (
        entry.event.seq
        for entry in unpacked.log
        if entry.event.submission == submission.id and entry.event.kind in _SCORING
    )
    before = [one.files for one in unpacked.history.commitments if one.event < last]
    return (before[-1] if before else None) or {}


def uses_labels_in_force(
    unpacked: Unpacked, submission: Submission, view: View, scores: ScoreFile
) -> bool:
    """Whether scores were made with just those versions, as far as they say with which.

    Args:
        unpacked: the archive; its commitments are sound.
        submission: whose scores.
        view: which of them.
        scores: as the archive has them.
    """
    force, ever = labels_in_force(unpacked, submission), _list_ever(unpacked)
    wanted = {**_first_versions(unpacked), **force}
    if any(wanted.get(n, d) != d for n, d in _labels_of_before(view, scores).items()):
        return False
    if not scores.held_out and view.name not in submission.evidence:
        return True  # from before every file was noted
    names = names_of_view(view) & unpacked.labels
    given = make_evidence(submission.id, view, scores).labels
    needed = {name: digest for name, digest in force.items() if name in names}
    return needed == {name: digest for name, digest in given.items() if name in ever}


def _first_versions(unpacked: Unpacked) -> dict[str, str]:
    """What was committed to first, for older boards have told scores before they did."""
    versions: dict[str, str] = {}
    for commitment in unpacked.history.commitments:
        for name, digest in (commitment.files or {}).items():
            versions.setdefault(name, digest)
    return versions


def _labels_of_before(view: View, scores: ScoreFile) -> dict[str, str]:
    """The labels of a view as they were noted before every file was."""
    digest = scores.labels.get(f"{view.set}/{view.labels}" if view.labels else view.set)
    return {} if digest is None else {view.labels or view.set: digest}


def tell_labels(unpacked: Unpacked) -> Iterator[str]:
    """Every later commitment, and the files that nobody committed to."""
    ever = _list_ever(unpacked)
    for file in sorted(held_out_file(name) for name in unpacked.labels - ever.keys()):
        if f"labels/{file}" in unpacked.names:
            yield f"the organisers never committed to labels/{file}"
    for before, after in pairwise(unpacked.history.commitments):
        old, new = before.files or {}, after.files or {}
        names = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
        listed = ", ".join(map(held_out_file, names)) or "none is another one"
        yield f"labels were changed on {after.at:%d %b %Y}, for: {quote(after.why)} ({listed})"


def say_labels(unpacked: Unpacked) -> tuple[str, ...]:
    """What was checked of them, in words; nothing where nobody committed to anything."""
    commitments = unpacked.history.commitments
    files = unpacked.labels & unpacked.history.labels.keys()
    held = [name for name in files if f"labels/{held_out_file(name)}" in unpacked.names]
    if not held:
        return ()
    many = "1 held-out file" if len(held) == 1 else f"{len(held)} held-out files"
    first = f"the commitment of {commitments[0].at:%d %b %Y}"
    later = len(commitments) - 1
    changes = f", as changed by {later} later event{'s' * (later > 1)}" if later else ""
    return (f"{many} against {first}{changes}",)
