"""What the judging pages read of who comes, and say: of a task, its end, and why there is none."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import quote

import msgspec

from heldout.errors import plural
from heldout.judging.campaign import judgments, questions, rows
from heldout.judging.campaign.settings import Platform, Settings, format_money
from heldout.judging.database.assignments import LONGEST_WORKER, Assignment, Shown, Worker
from heldout.judging.platforms.links import is_signed, personal_code
from heldout.web.pages import Study


class PageTexts(msgspec.Struct, frozen=True):
    """Short texts of the pages, as their file says."""

    missing: Mapping[str, str]
    choices: Mapping[str, str]
    no_task: Mapping[str, str]
    notices: Mapping[str, tuple[str, ...]]


_FILE = files("heldout.web") / "templates" / "judging.toml"
TEXTS = msgspec.toml.decode(_FILE.read_bytes(), type=PageTexts)

WORDS: Mapping[str, object] = {
    "plural": plural,
    "money": format_money,
    "amount_owed": rows.amount_owed,
    "reasons": judgments.REASONS,
    "missing": TEXTS.missing,
    "longest_worker": LONGEST_WORKER,
}
"""What every template of the judging pages knows."""


def study_of(settings: Settings) -> Study:
    """Return what every page says of the study."""
    return Study(name=settings.name, contact=settings.contact)


def say_end(held: Assignment) -> str:
    """Return the title of an assignment's end, whichever it was."""
    if held.state == "submitted":
        return f"Done: all {plural(held.items, 'question')}"
    return "You have stopped" if held.state == "exited" else "This task went to another person"


def ask_worker(settings: Settings) -> tuple[str, str]:
    """Ask somebody behind an open link who they are: the label, and what it means."""
    if settings.reward:
        return "Your worker id", "the id by which you are paid"
    return "Your name", "or any word: use the same one when you come back"


def split_paragraphs(text: str) -> tuple[str, ...]:
    """Return the paragraphs of a text that may be broken into lines anywhere within them."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return tuple(part for part in parts if part)


def completion_code(held: Assignment, key: bytes) -> str:
    """The platform's code, which all are given; without a platform, a code for each paid task.

    Nobody needs a code where nobody is paid. Where there is nothing but a link, who stopped and is
    owed something needs it as well. To Prolific it says that all is done; a part is paid there by
    a bonus.

    Args:
        held: an assignment that has ended.
        key: of the campaign, which makes codes.
    """
    settings = held.settings
    part = settings.platform == "link" and held.owed > 0
    if settings.platform == "mturk" or not (held.state == "submitted" or part):
        return ""
    if settings.platform == "link" and settings.reward and not settings.completion_code:
        return personal_code(key, held.id)
    return settings.completion_code


@dataclass(frozen=True, slots=True, kw_only=True)
class HandIn:
    """A form of hidden fields and one button.

    Attributes:
        action: where it is sent.
        fields: their names and values.
        button: what the button says.
    """

    action: str
    fields: Mapping[str, str]
    button: str


def hand_in(held: Assignment) -> HandIn | None:
    """The form back to Mechanical Turk: it pays nobody, nor a part, who did not hand one in."""
    worker = held.worker
    if held.settings.platform != "mturk" or worker.submit_to not in MTURK_HOSTS:
        return None
    if not held.owed and held.state != "submitted":
        return None
    return HandIn(
        action=f"{worker.submit_to}/mturk/externalSubmit",
        fields={"assignmentId": worker.session_id, "answered": str(held.answered)},
        button="Hand in on Mechanical Turk",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPassage:
    """A passage as it is shown.

    Attributes:
        value: what choosing it sends.
        name: `Passage A` or `Passage B`; or its number.
        text: all of it.
        ticked: whether it is, where several can be.
    """

    value: str
    name: str
    text: str
    ticked: bool = False


def show_passages(shown: Shown, sent: Mapping[str, str] | None) -> tuple[ShownPassage, ...]:
    """Return the passages as they are shown; those that are ticked, as sent or as answered."""
    if shown.assignment.settings.kind == "preference":
        named = zip("ab", ("Passage A", "Passage B"), shown.passages, strict=True)
        return tuple(ShownPassage(value=v, name=name, text=one.text) for v, name, one in named)
    given = shown.given.ticked if shown.given else ()
    return tuple(
        ShownPassage(
            value=str(number),
            name=f"Passage {number}",
            text=one.text,
            ticked=one.doc in given if sent is None else f"tick-{number}" in sent,
        )
        for number, one in enumerate(shown.passages, 1)
    )


def find_chosen(shown: Shown, sent: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what is chosen, and the reason: as sent, or else as it was answered."""
    given = shown.given
    if sent is not None:
        return sent.get("choice", ""), sent.get("reason", "")
    if given is None:
        return "", ""
    if given.side is None:
        pair = shown.assignment.settings.kind == "preference"
        return "none" if pair else questions.CANNOT, given.reason or ""
    return {"left": "a", "right": "b"}.get(given.side, given.side), ""


# Who comes: what each platform adds to the link, read from an address or a form.


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

    def extend(self, position: int) -> str:
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
    name, session_id, study, submit_to = (fields.get(name, "") for name in names)
    if platform == "mturk" and session_id == _PREVIEW:
        return LandingVisitor(fields=fields, worker=None, preview=True)
    if signed_with is not None:
        signature = values.get("sig", "")
        fields["sig"] = signature
        if not is_signed(signed_with, name, signature):
            return LandingVisitor(fields={}, worker=None, unsigned=True)
    worker = Worker(
        platform_id=name,
        session_id=session_id,
        study=study,
        submit_to=submit_to,
        signed=signed_with is not None,
    )
    return LandingVisitor(fields=fields, worker=worker if _is_known(platform, worker) else None)


def _is_known(platform: Platform, worker: Worker) -> bool:
    if platform == "mturk":
        return bool(worker.platform_id and worker.session_id) and worker.submit_to in MTURK_HOSTS
    if platform == "prolific":
        return _PROLIFIC_ID.fullmatch(worker.platform_id) is not None
    return worker.signed or worker.platform_id not in ("", _PLACEHOLDER)
