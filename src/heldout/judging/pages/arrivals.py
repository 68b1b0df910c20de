"""Who comes: what each platform adds to the link, read from an address or a form."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from heldout.judging.campaign.settings import Platform
from heldout.judging.database.assignments import Worker
from heldout.judging.platforms.links import is_signed

# Where an assignment's pages are.


@dataclass(frozen=True, slots=True)
class Addresses:
    """The pages of one assignment.

    Attributes:
        token: of the assignment.
    """

    token: str

    def item(self, position: int) -> str:
        """The page of an item."""
        return f"{self._root}/item/{position}"

    def keep(self, position: int) -> str:
        """Return where the wish for more time is sent."""
        return f"{self.item(position)}/keep"

    @property
    def exit(self) -> str:
        """The page that stops."""
        return f"{self._root}/exit"

    @property
    def done(self) -> str:
        """The page of the end."""
        return f"{self._root}/done"

    @property
    def _root(self) -> str:
        return f"/a/{quote(self.token, safe='')}"


MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
"""Where a form may be handed in; any other address came from somebody else."""

_PROLIFIC_ID = re.compile(r"[0-9a-f]{24}")
_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_PLACEHOLDER = "ID"
"""Stands in the link that the organiser reads, where each judge's own id belongs."""

_NAMES: Mapping[Platform, tuple[str, str, str, str]] = {
    "link": ("worker", "", "", ""),
    "mturk": ("workerId", "assignmentId", "hitId", "turkSubmitTo"),
    "prolific": ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID", ""),
}
"""What each calls the worker, the assignment, the study, and where to hand in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingVisitor:
    """Somebody at the landing page.

    Attributes:
        fields: what the platform said, by its own names.
        worker: who it is; `None` where that was not said.
        preview: the platform only shows the task.
        unsigned: an id, or none, without the signature that it needs here.
    """

    fields: Mapping[str, str]
    worker: Worker | None
    preview: bool = False
    unsigned: bool = False


def read_arrival(
    platform: Platform, values: Mapping[str, str], *, signed_with: bytes | None = None
) -> LandingVisitor:
    """Read who comes; anything else among the values is dropped, and what cannot be printed.

    Args:
        platform: of the campaign.
        values: of an address or a form.
        signed_with: the campaign's secret where only ids that it signed are let in.

    Returns:
        Without a worker where the id cannot be one of the platform's, such as a placeholder that
        it did not fill in, or where a form is to be handed in to somebody else.
    """
    names = _NAMES[platform]
    given = {name: values.get(name, "").strip() for name in names if name}
    fields = {name: value for name, value in given.items() if value and value.isprintable()}
    if "turkSubmitTo" in fields:
        fields["turkSubmitTo"] = fields["turkSubmitTo"].removesuffix("/")
    name, place, study, submit_to = (fields.get(name, "") for name in names)
    if platform == "mturk" and place == _PREVIEW:
        return LandingVisitor(fields=fields, worker=None, preview=True)
    if signed_with is not None:
        signature = values.get("sig", "")
        fields["sig"] = signature
        if not is_signed(signed_with, name, signature):
            return LandingVisitor(fields={}, worker=None, unsigned=True)
    worker = Worker(
        platform_id=name,
        place=place,
        study=study,
        submit_to=submit_to,
        signed=signed_with is not None,
    )
    return LandingVisitor(fields=fields, worker=worker if _is_known(platform, worker) else None)


def _is_known(platform: Platform, worker: Worker) -> bool:
    if platform == "mturk":
        return bool(worker.platform_id and worker.place) and worker.submit_to in MTURK_HOSTS
    if platform == "prolific":
        return _PROLIFIC_ID.fullmatch(worker.platform_id) is not None
    return worker.signed or worker.platform_id not in ("", _PLACEHOLDER)
