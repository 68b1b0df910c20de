"""Pages for judges as values, and how they become HTML. Words live here and in the templates.

Every value is escaped where it is put into a page; passages are shown as text, whatever they hold.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from markupsafe import Markup

from heldout.web.jinja import load_templates

LONGEST_RUN = 10_000
"""Characters without a blank between two positions where a line may be broken."""

_MARKS = 100
_LONG = re.compile(rf"\S{{{LONGEST_RUN + 1},}}")
_JOINER = "\u200d"


def render_template(name: str, page: object) -> str:
    """A page as HTML.

    Args:
        name: of the template, below `web/templates`.
        page: what the template knows as `page`; all of it is shown as text.
    """
    return load_templates("heldout.web", break_runs=break_runs).get_template(name).render(page=page)


def break_runs(text: str) -> Markup:
    """A text as HTML, with `<wbr>` in runs without a blank that are longer than `LONGEST_RUN`.

    Browsers take time with the square of such a run: minutes for a million letters. What is seen
    and copied stays the same.
    """
    ends = [0, *_cuts(text), len(text)]
    return Markup("<wbr>").join(text[start:end] for start, end in pairwise(ends))


def _cuts(text: str) -> Iterator[int]:
    for run in _LONG.finditer(text):
        for position in range(run.start() + LONGEST_RUN, run.end(), LONGEST_RUN):
            near = range(position, min(position + _MARKS, run.end()))
            yield next((cut for cut in near if not _joins(text, cut)), position)


def _joins(text: str, position: int) -> bool:
    """Whether the character at this position is drawn together with the one before."""
    joined = unicodedata.category(text[position]).startswith("M")
    return joined or _JOINER in text[position - 1 : position + 1]


MISSING: Mapping[Literal["choice", "reason"], str] = {
    "choice": "Please choose Passage A, Passage B, or that you can't judge this.",
    "reason": "Please choose the reason why you can't judge this.",
}
"""What a form says that came without what it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What every page says of the study.

    Attributes:
        name: its title.
        contact: whom to write to; may be empty.
    """

    name: str = ""
    contact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where to go on.

    Attributes:
        href: the address.
        text: what it says.
    """

    href: str
    text: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a task ended, for somebody who comes back.

    Attributes:
        told: how much is answered, and the amount.
        code: to be taken back to the platform; empty where there is none.
    """

    told: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentPage:
    """The landing page, before any pair.

    Attributes:
        study: the study.
        title: of the window.
        length: how many questions there are.
        pay: what is paid, and when.
        time: how long a place is kept.
        stopping: what happens on stopping early.
        ethics: reference of the approval; may be empty.
        paragraphs: what is agreed to.
        action: where the form is sent.
        fields: who comes, as the platform said, and the batch; sent back with the consent.
        button: what the button says.
        note: what is said below it.
        asks: the label of the worker's id and what it means, where it has to be typed.
        longest_worker: most characters of that id.
        preview: the platform only shows the task; nothing can be begun.
        problem: what has to be repaired; empty at first.
        last: how the task before this one ended; `None` where there was none.
    """

    study: Study
    title: str = "Before you begin"
    length: str
    pay: str
    time: str
    stopping: str
    ethics: str = ""
    paragraphs: tuple[str, ...] = ()
    action: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    button: str = "I agree, begin"
    note: str = ""
    asks: tuple[str, str] | None = None
    longest_worker: int
    preview: bool = False
    problem: str = ""
    last: Ended | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """A query and two passages.

    Attributes:
        study: the study.
        position: of the item, from 1.
        total: items of the task.
        query: its text.
        question: what is asked of the two.
        language: of query and passages, BCP 47.
        passages: A, then B.
        choice: what is chosen already; empty at first.
        reason: why it could not be judged; empty where it could.
        reasons: those to choose from, with their words.
        token: of the assignment.
        stamp: signed `Stamp` of this showing.
        action: where the form is sent.
        next: where a saved answer leads.
        place: under which the browser keeps a choice that is not saved yet.
        replaces: revision of the answer that stands; 0 where there is none.
        keep: where the lease is lengthened.
        left: seconds until it ends.
        back: the item before; empty on the first.
        exit: the page that stops.
        stop: what the link there says.
        note: how long the place is kept, and what the button does.
        problem: what has to be repaired, or what was found; empty at first.
    """

    study: Study
    position: int
    total: int
    query: str
    question: str
    language: str
    passages: tuple[Passage, ...]
    choice: str = ""
    reason: str = ""
    reasons: Mapping[str, str]
    token: str
    stamp: str
    action: str
    next: str
    place: str
    replaces: int = 0
    keep: str
    left: int
    back: str = ""
    exit: str
    stop: str
    note: str = ""
    problem: str = ""

    @property
    def title(self) -> str:
        """Of the window."""
        return f"Question {self.position} of {self.total}"

    @property
    def button(self) -> str:
        """What the button says."""
        return "Next" if self.position < self.total else "Finish"

    @property
    def missing(self) -> Mapping[Literal["choice", "reason"], str]:
        """What is said where nothing, or no reason, is chosen."""
        return MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage(ItemPage):
    """A query, its passages and what can be said of them.

    Attributes:
        form: what is asked.
    """

    form: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitPage:
    """Before somebody stops: what is theirs.

    Attributes:
        study: the study.
        owed: how many questions are answered, and the amount.
        after: what stopping means.
        token: of the assignment.
        action: where the form is sent.
        back: the item to go on with.
        go_on: what the link back says.
        button: what the button says.
        title: of the window.
    """

    study: Study
    owed: str
    after: str
    token: str
    action: str
    back: str
    go_on: str
    button: str = "Stop and be paid"
    title: str = "Stop here?"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPage:
    """A page that says one thing: an ending, or why nothing can be done.

    Attributes:
        study: the study.
        title: the heading.
        paragraphs: what there is to say.
        code: to be taken back to the platform; empty where there is none.
        hand_in: a form, where something is to be sent.
        link: where to go on.
    """

    study: Study = field(default_factory=Study)
    title: str
    paragraphs: tuple[str, ...] = ()
    code: str = ""
    hand_in: HandIn | None = None
    link: Link | None = None


Page = ConsentPage | ItemPage | ExitPage | EndPage

_TEMPLATES: Mapping[type, str] = {
    ConsentPage: "consent.html",
    ItemPage: "item.html",
    QuestionPage: "question.html",
    ExitPage: "exit.html",
    EndPage: "end.html",
}


def render(page: Page) -> str:
    """The page as HTML."""
    return render_template(_TEMPLATES[type(page)], page)
