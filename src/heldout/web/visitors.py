"""Who comes: what each platform adds to the link, read from an address or a form."""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.preferences.settings import Platform
from heldout.store.judging.sittings import Visitor

__all__ = ["MTURK_HOSTS", "Visit", "read_visit"]

MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
"""Where a form may be handed in; any other address came from somebody else."""

_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_NAMES: Mapping[Platform, tuple[str, str, str, str]] = {
    "link": ("worker", "", "", ""),
    "mturk": ("workerId", "assignmentId", "hitId", "turkSubmitTo"),
    "prolific": ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID", ""),
}
"""What each calls the worker, the sitting, the study, and where to hand in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody at the landing page.

    Attributes:
        fields: what the platform said, by its own names.
        visitor: who it is; `None` where that was not said.
        preview: the platform only shows the task.
    """

    fields: Mapping[str, str]
    visitor: Visitor | None
    preview: bool = False


def read_visit(platform: Platform, values: Mapping[str, str]) -> Visit:
    """Read who comes; anything else among the values is dropped, and what cannot be printed.

    Args:
        platform: of the campaign.
        values: of an address or a form.
    """
    names = _NAMES[platform]
    given = {name: values.get(name, "").strip() for name in names if name}
    fields = {name: value for name, value in given.items() if value and value.isprintable()}
    worker, place, study, submit_to = (fields.get(name, "") for name in names)
    if platform == "mturk" and place == _PREVIEW:
        return Visit(fields=fields, visitor=None, preview=True)
    known = worker and (platform != "mturk" or (place and submit_to in MTURK_HOSTS))
    visitor = Visitor(worker=worker, place=place, study=study, submit_to=submit_to)
    return Visit(fields=fields, visitor=visitor if known else None)
