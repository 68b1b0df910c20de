"""A small campaign in a database, and its pages: as an application, and as a server."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl

import msgspec
import pytest
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.campaigns import Campaign, load_campaign, read_campaign
from heldout.judging.database.organiser import judgments
from heldout.judging.database.tables import open_database
from heldout.judging.pages.judge import make_app
from heldout.judging.platforms.links import personal_link

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTINGS = Settings(
    name="Best answers",
    consent="Your answers are published without your name.\n\nYou are at least 18 years old.",
    ethics="Approval 2026-17",
    contact="judging@example.org",
    completion_code="C0FFEE",
    reward=200,
    fee=40,
    links="open",
)
QUERY = "how do I remove an item from a list by value"
A = "Call remove with the value. The first item that equals it goes; without one, it is an error."
B = "Lists keep items in order. They grow at the end with append and shrink there with pop."
MTURK = {
    "assignmentId": "3ASG",
    "hitId": "3HIT",
    "workerId": "A1WORKER",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}
PROLIFIC = {"PROLIFIC_PID": "5f1a2b3c4d5e6f7a8b9c0d1e", "STUDY_ID": "s", "SESSION_ID": "t"}
"""What each platform's link says of who comes."""


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class Stage:
    """A campaign, and somebody who visits its pages."""

    database: Database
    campaign: Campaign
    clock: Clock
    app: FastAPI
    client: "Caller"
    roots: dict[str, str] = field(default_factory=dict)

    @property
    def link(self) -> str:
        return f"/j/{self.campaign.code}"

    def judgments(self) -> tuple[Judgment, ...]:
        """All that were recorded."""
        return judgments(self.database)

    def who(self, worker: str) -> dict[str, str]:
        """What the link of a worker says of who comes."""
        if not self.campaign.settings.signed:
            return {"worker": worker}
        link = personal_link("http://x", self.campaign.code, key=self.campaign.key, worker=worker)
        return dict(parse_qsl(link.partition("?")[2]))

    def begin(self, worker: str = "ada") -> str:
        """Consent, and the address of the assignment's pages."""
        page = self.client.get(self.link, params=self.who(worker))
        answer = self.client.post(f"{self.link}/consent", data=fields_of(page))
        assert answer.status_code == 303, answer.text
        self.roots[worker] = str(answer.headers["location"].rpartition("/item/")[0])
        return self.roots[worker]

    def answer(self, root: str, position: int, choice: str = "a", **more: str) -> Response:
        page = self.client.get(f"{root}/item/{position}")
        assert page.status_code == 200, page.text
        return self.post(f"{root}/item/{position}", {**fields_of(page), "choice": choice, **more})

    def post(self, address: str, fields: dict[str, str]) -> Response:
        return self.client.post(address, data=fields)

    def finish(self, root: str, items: int, **choices: str) -> Response:
        """Answer every item: with A unless `q4="b"` or the like says otherwise."""
        for position in range(1, items + 1):
            answer = self.answer(root, position, choices.get(f"q{position}", "a"))
            assert answer.status_code == 303, answer.text
        return self.client.get(f"{root}/done")


Make = Callable[..., Stage]
"""`Stages.make` of a test's own folder: the fixture `stage`."""


def fields_of(page: Response) -> dict[str, str]:
    """The hidden fields of a page's first form."""
    form = page.text.partition("<form")[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def shown_choice(page: Response) -> list[str]:
    """Which radio buttons are on."""
    rows = [row for row in page.text.split("<input") if " checked" in row and 'type="radio"' in row]
    return [row.partition('value="')[2].partition('"')[0] for row in rows]


def words_of(page: Response) -> str:
    """What a page says, without its tags."""
    body = page.text.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def campaign_tasks(
    *, tasks: int, items: int, query: str, texts: tuple[str, str]
) -> tuple[Any, Any]:
    """Tasks of as many items, the last but one a test with answer A; and pools with the texts."""
    pools, made = [], []
    for number in range(1, tasks + 1):
        rows = []
        for place in range(1, items + 1):
            name = f"q{number}-{place}"
            both = (f"{name}-a", f"{name}-b")
            candidates = tuple(
                Candidate(doc=doc, text=text) for doc, text in zip(both, texts, strict=True)
            )
            pools.append(Pool(query=name, text=query, candidates=candidates))
            answer = both[0] if place == items - 1 else None
            rows.append(Item(query=name, left=both[0], right=both[1], answer=answer))
        made.append(Task(task=f"t{number}", items=tuple(rows)))
    return tuple(pools), tuple(made)


class Caller:
    """Calls an application as HTTP would, without a server."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        transport = ASGITransport(app, raise_app_exceptions=False)
        self.client = AsyncClient(transport=transport, base_url="http://judging.example")
        self.portal = portal

    def call(self, method: str, address: str, **options: Any) -> Response:
        return self.portal.call(partial(self.client.request, method, address, **options))

    def get(self, address: str, **options: Any) -> Response:
        return self.call("GET", address, **options)

    def post(self, address: str, **options: Any) -> Response:
        return self.call("POST", address, **options)


class Stages:
    """Campaigns and their pages, until it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Stage] = []
        self.ends = ExitStack()
        self.portal = self.ends.enter_context(start_blocking_portal())

    def make(
        self,
        *,
        tasks: int = 2,
        items: int = 4,
        query: str = QUERY,
        texts: tuple[str, str] = (A, B),
        url: str = "",
        **changes: Any,
    ) -> Stage:
        """A campaign of tasks with so many items each, the last but one a test answered by A."""
        here = f"sqlite:///{self.folder}/campaign{len(self.made)}.sqlite"
        database = open_database(url or here)
        pools, made = campaign_tasks(tasks=tasks, items=items, query=query, texts=texts)
        settings = msgspec.structs.replace(SETTINGS, **changes)
        load_campaign(database, settings, pools, made, now=START)
        self.ends.callback(database.close)
        clock = Clock()
        app = make_app(database, clock=clock)
        campaign, caller = read_campaign(database), Caller(app, self.portal)
        self.made.append(Stage(database, campaign, clock, app, caller))
        return self.made[-1]

    def serve(self, app: FastAPI, **options: Any) -> str:
        """Serve an application on a free port of this machine; its address."""
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, **options
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()

        def end() -> None:
            server.should_exit = True
            thread.join(10)
            listener.close()

        self.ends.callback(end)
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.close()


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    """Campaigns in a folder of the test's own; a module takes it by name."""
    with Stages(tmp_path) as made:
        yield made


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
    """The same, by what makes them."""
    with Stages(tmp_path) as made:
        yield made.make


@pytest.fixture
def one(stage: Make) -> Stage:
    """A campaign as most tests want it."""
    return stage()


@pytest.fixture
def root(one: Stage) -> str:
    """Where its first judge works."""
    return one.begin()
