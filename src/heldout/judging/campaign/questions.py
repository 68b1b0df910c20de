"""Questions about a query with its passages: why it was discarded, and which of them answer it.

`triage` asks why a discarded query was left without an answer (Gupta and MacAvaney 2022, §3);
`answerable` asks which of the passages that several systems found answer it (there, table 2).
"""

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Literal

import msgspec

from heldout.judging.campaign.settings import Kind

CANNOT = "cannot"
"""What a form sends where somebody cannot judge; the judgment has the reason `other`."""

Ticks = Literal["some", "none"]
"""Whether passages are ticked with a choice."""


class FormChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One of the answers that a form offers.

    Attributes:
        value: as it is stored.
        name: as it is shown.
        meaning: when it is chosen.
        ticks: whether passages are ticked with it; `None` where it does not matter.
    """

    value: str
    name: str
    meaning: str
    ticks: Ticks | None = None


class QuestionForm(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of every query of a campaign.

    Attributes:
        kind: of the campaign.
        order: how the passages stand, as the heading above them.
        asks: the question that the choices answer.
        tick: what ticking a passage says.
        choices: what can be answered; `CANNOT` is always the last.
    """

    kind: Kind
    order: str
    asks: str
    tick: str
    choices: tuple[FormChoice, ...]

    def choice(self, value: str) -> FormChoice | None:
        """Return the choice of this value; `None` where there is none."""
        return next((one for one in self.choices if one.value == value), None)


_FILE = files("heldout.judging.campaign") / "templates" / "questions.toml"
_READ = msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, tuple[QuestionForm, ...]])
FORMS: Mapping[Kind, QuestionForm] = {one.kind: one for one in _READ["forms"]}
"""By the kind of a campaign; none for preferences."""

TRIAGE, ANSWERABLE = FORMS["triage"], FORMS["answerable"]


def find_answer_fault(form: QuestionForm, choice: str, ticked: Collection[str]) -> str:
    """Return what is wrong with an answer, in a sentence for who gives it; empty for nothing.

    Args:
        form: what was asked.
        choice: a value of the form.
        ticked: the passages that were ticked.
    """
    found = form.choice(choice)
    if found is None:
        return f"Please choose an answer to: {form.asks}"
    if found.ticks == "some" and not ticked:
        return f"“{found.name}”: please tick the passages by which it is."
    if found.ticks == "none" and ticked:
        return f"“{found.name}”, and a passage is ticked: please take away one or the other."
    return ""
