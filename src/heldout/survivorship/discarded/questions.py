"""Questions with passages that people look at, and what they answer: one form of two kinds.

`triage` asks why a discarded query was left without an answer (Gupta and MacAvaney 2022, §3);
`answerable` asks which of the passages that several systems found answer it (there, table 2). An
answer is never changed: a later one of the same annotator takes its place. Names and notes lose
characters that nobody sees; passages too long to read are shown, and reported.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from heldout.errors import Problem, plural
from heldout.judging.campaign.rows import Check, hidden_name, parse_rows
from heldout.trec.text import show

LONGEST_NAME = 60
"""Characters of an annotator's name."""

LONGEST_NOTE = 2000
"""Characters of a note."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT = frozenset("\n\t\u200c\u200d")  # joiners are a part of words and of pictograms


def annotator_name(typed: str) -> str:
    """The name that is stored: one for all ways in which somebody types it.

    Case, compatibility forms, accents' forms and blanks make no difference: whoever comes back as
    `Bob` or `bob` is one annotator and not two who agree.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", typed).casefold())
    return " ".join(folded.split())


def annotator_fault(name: str) -> str:
    """What is wrong with a name, in a sentence; empty where nothing is."""
    if not name:
        return "Please give your name, or any word by which your answers are known."
    if len(name) > LONGEST_NAME or not name.isprintable():
        return f"Please give a name of at most {LONGEST_NAME} visible characters."
    return ""


def visible_note(typed: str) -> str:
    """A note without what nobody sees: control characters, marks of direction, odd line ends."""
    lines = typed.replace("\r\n", "\n")
    return "".join(one for one in lines if not _is_hidden(one)).strip()


def note_fault(note: str) -> str:
    """What is wrong with a note, in a sentence; empty where nothing is."""
    if len(note) > LONGEST_NOTE:
        return f"Please shorten the note to {LONGEST_NOTE:,} characters; it has {len(note):,}."
    if any(map(_is_hidden, note)):
        return "Please take characters that nobody sees out of the note."
    return ""


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _KEPT


CANNOT = "cannot"
"""The choice of somebody who cannot judge; it is stored, and never counts."""

Ticks = Literal["some", "none", "any"]
"""How many passages are ticked with a choice."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


class ShownPassage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage as annotators see it.

    Attributes:
        doc: its id, which they do not see.
        text: all of it.
        same: ids of further documents with the same normalised text, sorted.
    """

    doc: str
    text: str
    same: tuple[str, ...] = ()


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query and its passages, in the order in which they are shown.

    Attributes:
        query: its id.
        text: its words.
        passages: at least one.
        split: the part of the collection that it is of, as `dev`; empty where there is one.
    """

    query: str
    text: str
    passages: tuple[ShownPassage, ...]
    split: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an annotator said of a question.

    Attributes:
        query: its id.
        annotator: their name.
        choice: a value of the form, or `CANNOT`.
        passages: ids of those ticked, in the order shown.
        note: what they remarked; may be empty.
        replaces: how many answers of theirs to this question came before.
        shown_at: when the page left the server, ISO 8601 in UTC.
        answered_at: when the answer came.
    """

    query: str
    annotator: str
    choice: str
    passages: tuple[str, ...] = ()
    note: str = ""
    replaces: Annotated[int, msgspec.Meta(ge=0)] = 0
    shown_at: str = ""
    answered_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the answers that a form offers.

    Attributes:
        value: as it is stored.
        name: as it is shown.
        meaning: when it is chosen.
        ticks: whether passages are ticked with it.
    """

    value: str
    name: str
    meaning: str
    ticks: Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What is asked of every question of a folder.

    Attributes:
        kind: its name.
        title: of the pages.
        order: how the passages stand, as the heading above them.
        asks: the question that the choices answer.
        tick: what ticking a passage says.
        choices: what can be answered; `CANNOT` is always the last.
    """

    kind: Literal["triage", "answerable"]
    title: str
    order: str
    asks: str
    tick: str
    choices: tuple[Choice, ...]

    def choice(self, value: str) -> Choice | None:
        """The choice of this value; `None` where there is none."""
        return next((one for one in self.choices if one.value == value), None)


_CANNOT = Choice(
    value=CANNOT,
    name="I can't judge this",
    meaning="For example, you don't know the language. The answer is stored and does not count.",
    ticks="any",
)

TRIAGE = Form(
    kind="triage",
    title="Why was it left without an answer?",
    order="Passages, in the order in which they were shown then",
    asks="Why was this question left without an answer?",
    tick="answers it, at least in part",
    choices=(
        Choice(
            value="no_ans",
            name="No answer here",
            meaning="The question is sound, and no passage answers it, not even in part.",
            ticks="none",
        ),
        Choice(
            value="partial_ans",
            name="Answered in part",
            meaning="A passage answers some of it, and none all of it. Tick those that do.",
            ticks="some",
        ),
        Choice(
            value="wrong_lab",
            name="Answered: wrongly discarded",
            meaning="A passage answers it fully. Tick those that do.",
            ticks="some",
        ),
        Choice(
            value="ill_form",
            name="Not a sound question",
            meaning="It says too little, or nothing could answer it.",
            ticks="none",
        ),
        _CANNOT,
    ),
)
"""Why a query was discarded: the four situations of Gupta and MacAvaney 2022, §3."""

ANSWERABLE = Form(
    kind="answerable",
    title="Which passages answer it?",
    order="Passages, in random order",
    asks="Is the question answered?",
    tick="answers the question",
    choices=(
        Choice(
            value="answered",
            name="By the passages that I ticked",
            meaning="Each of them answers it fully; those without a tick do not.",
            ticks="some",
        ),
        Choice(
            value="none",
            name="None of these answers it",
            meaning="I have read them all, and no passage answers it fully.",
            ticks="none",
        ),
        _CANNOT,
    ),
)
"""Which of the pooled passages answer a query: Gupta and MacAvaney 2022, table 2."""


def parse_questions(data: bytes, *, path: str) -> tuple[Question, ...]:
    """The questions of a folder.

    Args:
        data: JSON lines.
        path: for messages.

    Raises:
        InputError: codes `bad-row`, `repeated-query`, `empty-pool`: no passage, and
            `repeated-document`: an id twice in a question.
    """
    return parse_rows(data, Question, path=path, check=_question_check())


def parse_answers(
    data: bytes, questions: Sequence[Question], form: Form, *, path: str
) -> tuple[Answer, ...]:
    """All answers of a folder, in the order in which they came.

    Args:
        data: JSON lines.
        questions: that they answer.
        form: what was asked.
        path: for messages.

    Raises:
        InputError: code `bad-row`; code `bad-answer`: what `answer_fault` finds, a query that the
            folder does not have, or an answer that does not follow the annotator's last.
    """
    return parse_rows(data, Answer, path=path, check=_answer_check(questions, form))


def latest(answers: Iterable[Answer]) -> Mapping[tuple[str, str], Answer]:
    """(Query, annotator) -> what they said last."""
    return {(one.query, one.annotator): one for one in answers}


def answer_fault(form: Form, *, choice: str, passages: Collection[str], note: str = "") -> str:
    """What is wrong with an answer, in a sentence for who gives it; empty where nothing is.

    Args:
        form: what was asked.
        choice: a value of the form.
        passages: ids of those ticked.
        note: what was remarked.
    """
    found = form.choice(choice)
    if found is None:
        return f"Please choose an answer to: {form.asks}"
    if found.ticks == "some" and not passages:
        return f"“{found.name}”: please tick the passages by which it is."
    if found.ticks == "none" and passages:
        return f"“{found.name}”, and a passage is ticked: please take away one or the other."
    return note_fault(note)


def _question_check() -> Check[Question]:
    seen: set[str] = set()

    def check(question: Question, path: str, line: int) -> Problem | None:
        names = [doc for one in question.passages for doc in (one.doc, *one.same)]
        code = expected = ""
        if question.query in seen:
            code, expected = "repeated-query", "each query once"
        elif not question.passages:
            code, expected = "empty-pool", "a question of at least one passage"
        elif len(set(names)) < len(names):
            code, expected = "repeated-document", "each document of a question once"
        seen.add(question.query)
        if code:
            found = show(question.query)
            return Problem(code=code, path=path, line=line, found=found, expected=expected)
        return hidden_name((question.query, question.split, *names), path=path, line=line)

    return check


def _answer_check(questions: Sequence[Question], form: Form) -> Check[Answer]:
    shown = {one.query: {passage.doc for passage in one.passages} for one in questions}
    given: dict[tuple[str, str], int] = {}

    def check(answer: Answer, path: str, line: int) -> Problem | None:
        place = (answer.query, answer.annotator)
        fault = _fault(answer, shown, form)
        if not fault and answer.replaces != given.get(place, 0):
            fault = f"it follows {answer.replaces} answers, and {given.get(place, 0)} are there"
        given[place] = given.get(place, 0) + 1
        if not fault:
            return None
        return Problem(
            "bad-answer",
            path,
            line=line,
            found=f"{show(answer.query)} by {show(answer.annotator)}: {fault}",
            expected=f"an answer to a question of this folder ({form.kind})",
            hint="lines are only added, by the pages; restore the file, or begin another folder",
        )

    return check


def _fault(answer: Answer, shown: Mapping[str, Collection[str]], form: Form) -> str:
    docs = shown.get(answer.query)
    if docs is None:
        return "no question of this folder"
    if not set(answer.passages) <= set(docs) or len(set(answer.passages)) < len(answer.passages):
        return "passages that it was not shown with, or one twice"
    if not all(
        time == "" or _TIME.fullmatch(time) for time in (answer.shown_at, answer.answered_at)
    ):
        return "a time that is none in UTC"
    return annotator_fault(answer.annotator) or answer_fault(
        form, choice=answer.choice, passages=answer.passages, note=answer.note
    )


LONG_PASSAGE = 100_000
"""Characters; some forty pages of a book."""


def note_long_passages(questions: Iterable[Question], *, path: str) -> tuple[Problem, ...]:
    """A note on passages of more than `LONG_PASSAGE` characters.

    Args:
        questions: that people will look at.
        path: of their file.

    Returns:
        One note, code `long-passage`, that names the longest; none where there is none.
    """
    sizes = [
        (len(one.text), one.doc, question.query)
        for question in questions
        for one in question.passages
        if len(one.text) > LONG_PASSAGE
    ]
    if not sizes:
        return ()
    size, doc, query = max(sizes)
    found = f"{plural(len(sizes), 'passage')}; {show(doc)} of query {show(query)} has {size:,}"
    return (
        Problem(
            "long-passage",
            path,
            found=f"{found} characters",
            expected=f"passages that people can read, of up to {LONG_PASSAGE:,}",
            hint="they are shown whole; cut documents into passages first",
            severity="note",
        ),
    )
