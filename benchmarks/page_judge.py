"""A judge that reads the judging pages and fills in their forms, over HTTP, as a browser would.

It knows no more than the pages show. Who judges is a function of what is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal

import httpx2

_VOID = frozenset({"input", "meta", "link", "br", "hr"})
_SEE_OTHER = 303


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a judge reads.

    Attributes:
        query: the heading.
        a: text of passage A.
        b: text of passage B.
    """

    query: str
    a: str
    b: str


Decide = Callable[[Question], Literal["a", "b", "none"]]
"""Which passage answers better; `none` for "I can't judge this"."""


@dataclass(slots=True)
class ReadPage:
    """What stands on a page.

    Attributes:
        heading: text of the `h1`.
        passages: `a` and `b` -> text.
        actions: addresses of its forms.
        fields: of each form, name -> value, what is not chosen yet left out.
        code: the completion code; empty where there is none.
    """

    heading: str = ""
    passages: dict[str, str] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    fields: list[dict[str, str]] = field(default_factory=list)
    code: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = ReadPage()
        self._into: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.page.actions.append(found.get("action", ""))
            self.page.fields.append({})
        elif tag == "input":
            self._take(found)
        if tag not in _VOID:
            self._into.append(self._part(tag, found))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and self._into:
            self._into.pop()

    def handle_data(self, data: str) -> None:
        part = next((part for part in reversed(self._into) if part), "")
        if part == "h1":
            self.page.heading += data
        elif part == "code":
            self.page.code += data
        elif part:
            self.page.passages[part] = self.page.passages.get(part, "") + data

    def _take(self, found: Mapping[str, str]) -> None:
        chosen = found.get("type") not in {"radio", "checkbox"} or "checked" in found
        if self.page.fields and "name" in found and chosen:
            self.page.fields[-1][found["name"]] = found.get("value", "")

    @staticmethod
    def _part(tag: str, found: Mapping[str, str]) -> str:
        if tag == "label" and "passage" in found.get("class", "").split():
            return found.get("for", "").removeprefix("choice-")
        return tag if tag in {"h1", "code"} else ""


def read_page(text: str) -> ReadPage:
    """What stands on a page of the judging pages."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a visit ended.

    Attributes:
        status: of the last page.
        heading: of the last page.
        code: the completion code; empty where there is none.
        answered: answers that the server took.
        token: of the assignment; empty where no task was given.
    """

    status: int
    heading: str
    code: str
    answered: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJudge:
    """Somebody who follows the link.

    Attributes:
        client: knows the server's address, and follows no redirect by itself.
        link: the path that they were sent, as `/j/CODE?worker=ID&sig=…`.
        decide: how they judge.
    """

    client: httpx2.AsyncClient
    link: str
    decide: Decide

    async def visit(self, *, stop_after: int | None = None) -> Ending:
        """Consent and do one task.

        Args:
            stop_after: stop and be paid after so many answers; `None` for the whole task.

        Raises:
            httpx2.HTTPError: the server could not be reached.
        """
        landing = await self.client.get(self.link)
        page = read_page(landing.text)
        if not page.actions:
            return self._end(landing, answered=0)
        answer = await self.client.post(page.actions[0], data=page.fields[0])
        answered = 0
        while answer.status_code == _SEE_OTHER and "/item/" in answer.headers["location"]:
            if answered == stop_after:
                return await self._stop(answer.headers["location"], answered)
            shown = await self.client.get(answer.headers["location"])
            answer = await self._answer(read_page(shown.text))
            answered += answer.status_code == _SEE_OTHER
        if answer.status_code == _SEE_OTHER:
            answer = await self.client.get(answer.headers["location"])
        return self._end(answer, answered=answered)

    async def _answer(self, page: ReadPage) -> httpx2.Response:
        question = Question(query=page.heading, a=page.passages["a"], b=page.passages["b"])
        choice = self.decide(question)
        fields = page.fields[0] | {"choice": choice}
        if choice == "none":
            fields["reason"] = "same"
        return await self.client.post(page.actions[0], data=fields)

    async def _stop(self, item: str, answered: int) -> Ending:
        asked = await self.client.get(item[: item.index("/item/")] + "/exit")
        page = read_page(asked.text)
        done = await self.client.post(page.actions[0], data=page.fields[0])
        last = await self.client.get(done.headers["location"])
        return self._end(last, answered=answered)

    @staticmethod
    def _end(answer: httpx2.Response, *, answered: int) -> Ending:
        page, parts = read_page(answer.text), answer.url.path.split("/")
        return Ending(
            status=answer.status_code,
            heading=page.heading.strip(),
            code=page.code,
            answered=answered,
            token=parts[2] if parts[1] == "a" else "",
        )
