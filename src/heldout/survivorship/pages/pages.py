"""The annotators' pages as values, and how they become HTML; every value is escaped there."""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.survivorship.discarded.questions import LONGEST_NAME, LONGEST_NOTE, Form
from heldout.web.pages import Study, render_template


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPage:
    """Who is there?

    Attributes:
        study: of the window.
        title: the heading.
        name: what was typed before.
        problem: what has to be corrected; empty at first.
    """

    study: Study
    title: str
    name: str = ""
    problem: str = ""

    @property
    def longest_name(self) -> int:
        """Characters of a name."""
        return LONGEST_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A question in the list of all.

    Attributes:
        href: its page.
        text: the query.
        answer: what the annotator said; empty where nothing yet.
    """

    href: str
    text: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage:
    """All questions, for one annotator.

    Attributes:
        study: of the window.
        title: the heading.
        annotator: who is there.
        paragraphs: above the list.
        next: the first question without an answer; empty where there is none.
        button: what the link to it says.
        lines: every question.
    """

    study: Study
    title: str
    annotator: str
    paragraphs: tuple[str, ...]
    next: str
    button: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is shown.

    Attributes:
        number: its place, from 1; what ticking it sends.
        text: all of it.
        ticked: whether it is.
    """

    number: int
    text: str
    ticked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """A query, its passages and what can be said of them.

    Attributes:
        study: of the window.
        form: what is asked.
        position: of the question, from 1.
        total: questions.
        query: its words.
        passages: in the order shown.
        choice: what is chosen already; empty at first.
        note: what was remarked.
        token: of the annotator.
        shown: signed stamp of this showing.
        action: where the form is sent.
        next: where a saved answer leads.
        place: under which the browser keeps what is not saved yet.
        replaces: answers that stand.
        back: the question before; empty on the first.
        all: the list of questions.
        problem: what has to be corrected; empty at first.
    """

    study: Study
    form: Form
    position: int
    total: int
    query: str
    passages: tuple[Passage, ...]
    choice: str
    note: str
    token: str
    shown: str
    action: str
    next: str
    place: str
    replaces: int
    back: str
    all: str
    problem: str

    @property
    def title(self) -> str:
        """Of the window."""
        return f"Question {self.position} of {self.total}"

    @property
    def button(self) -> str:
        """What the button says."""
        return "Save, next" if self.position < self.total else "Save"

    @property
    def longest_note(self) -> int:
        """Characters of a note."""
        return LONGEST_NOTE


_TEMPLATES: Mapping[type, str] = {
    AnnotatorPage: "annotator.html",
    OverviewPage: "questions.html",
    QuestionPage: "question.html",
}


def render_annotating(page: AnnotatorPage | OverviewPage | QuestionPage) -> str:
    """The page as HTML."""
    return render_template(_TEMPLATES[type(page)], page)
