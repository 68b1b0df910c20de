"""Questions about a query with its passages: why it was discarded, and which of them answer it.

`triage` asks why a discarded query was left without an answer (Gupta and MacAvaney 2022, §3);
`answerable` asks which of the passages that several systems found answer it (there, table 2).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from heldout.judging.campaign.settings import Kind

CANNOT = "cannot"
"""What a form sends where somebody cannot judge; the judgment has the reason `other`."""

Ticks = Literal["some", "none"]
"""Whether passages are ticked with a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChoice:
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
    ticks: Ticks | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
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


_CANNOT = FormChoice(
    value=CANNOT,
    name="I can't judge this",
    meaning="For example, you don't know the language. The answer is stored and does not count.",
    ticks=None,
)

TRIAGE = QuestionForm(
    kind="triage",
    order="Passages, in the order in which they were shown then",
    asks="Why was this question left without an answer?",
    tick="answers it, at least in part",
    choices=(
        FormChoice(
            value="no_ans",
            name="No answer here",
            meaning="The question is sound, and no passage answers it, not even in part.",
            ticks="none",
        ),
        FormChoice(
            value="partial_ans",
            name="Answered in part",
            meaning="A passage answers some of it, and none all of it. Tick those that do.",
            ticks="some",
        ),
        FormChoice(
            value="wrong_lab",
            name="Answered: wrongly discarded",
            meaning="A passage answers it fully. Tick those that do.",
            ticks="some",
        ),
        FormChoice(
            value="ill_form",
            name="Not a sound question",
            meaning="It says too little, or nothing could answer it.",
            ticks="none",
        ),
        _CANNOT,
    ),
)
"""Why a query was discarded: the four situations of Gupta and MacAvaney 2022, §3."""

ANSWERABLE = QuestionForm(
    kind="answerable",
    order="Passages, in random order",
    asks="Is the question answered?",
    tick="answers the question",
    choices=(
        FormChoice(
            value="answered",
            name="By the passages that I ticked",
            meaning="Each of them answers it fully; those without a tick do not.",
            ticks="some",
        ),
        FormChoice(
            value="unanswered",
            name="None of these answers it",
            meaning="I have read them all, and no passage answers it fully.",
            ticks="none",
        ),
        _CANNOT,
    ),
)
"""Which of the pooled passages answer a query: Gupta and MacAvaney 2022, table 2."""

FORMS: Mapping[Kind, QuestionForm] = {one.kind: one for one in (TRIAGE, ANSWERABLE)}
"""By the kind of a campaign; none for preferences."""


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
