"""A folder of questions and its pages, and somebody who answers there."""

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from fastapi import FastAPI
from httpx2 import Response
from judging_stage import Caller, Clock, Stages

from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import TRIAGE, Answer, Form, Question, ShownPassage
from heldout.survivorship.pages.annotating import Annotating, make_annotating_app

TOKEN = "a token of sixteen characters"  # noqa: S105 - of the tests
QUERY = "how long do I boil an egg"
TEXTS = (
    "An egg that boils for six minutes has a soft yolk; after ten minutes it is hard.",
    "Hens lay about three hundred eggs in a year, fewer when days are short.",
    "Boiling water is hotter than steam of the same pressure feels on the skin, by much.",
)


def asked(number: int, *texts: str, query: str = QUERY) -> Question:
    """A question of these passages."""
    name = f"q{number}"
    return Question(
        query=name,
        text=query,
        passages=tuple(
            ShownPassage(doc=f"{name}-d{place}", text=text) for place, text in enumerate(texts)
        ),
    )


@dataclass
class Session:
    """A folder, its pages, and a caller."""

    folder: QuestionFolder
    questions: tuple[Question, ...]
    clock: Clock
    app: FastAPI
    client: Caller

    def answers(self) -> tuple[Answer, ...]:
        return self.folder.answers()

    def begin(self, name: str = "ada") -> str:
        """The address of an annotator's pages."""
        came = self.client.post("/", data={"name": name, "token": TOKEN})
        assert came.status_code == 303, came.text
        return str(came.headers["location"])

    def fields(self, root: str, position: int) -> dict[str, str]:
        """The hidden fields of a question's form."""
        page = self.client.get(f"{root}/question/{position}")
        assert page.status_code == 200, page.text
        return hidden(page)

    def answer(
        self, root: str, position: int, choice: str, *ticked: int, note: str = ""
    ) -> Response:
        sent = {**self.fields(root, position), "choice": choice, "note": note}
        return self.post(root, position, sent, *ticked)

    def post(self, root: str, position: int, sent: dict[str, str], *ticked: int) -> Response:
        values = {**sent, "passage": [str(number) for number in ticked]}
        return self.client.post(f"{root}/question/{position}", data=values)


def hidden(page: Response) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
    return {name: unescape(value) for name, value in found}


def make_desk(
    stages: Stages,
    *,
    form: Form = TRIAGE,
    count: int = 3,
    questions: tuple[Question, ...] = (),
    folder: Path | None = None,
) -> Session:
    """A folder of so many questions, or of these, and its pages."""
    place = QuestionFolder(folder or stages.folder / f"{form.kind}{len(stages.made)}", form)
    made = questions or tuple(asked(number, *TEXTS) for number in range(1, count + 1))
    if not place.exists():
        place.add(made)
    clock = Clock()
    app = make_annotating_app(Annotating(folder=place, key=place.key(), token=TOKEN, clock=clock))
    return Session(place, place.questions(), clock, app, Caller(app, stages.portal))
