"""A campaign with judges who did this and that, and its organiser's pages."""

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from judging_stage import Caller, Clock, Stage, Stages

from heldout.judging.database.tables import open_database
from heldout.judging.pages.admin import Admin, admin_routes
from heldout.judging.pages.judge import make_app

TOKEN = "an organiser's token"  # noqa: S105 - of the tests


def organised(stage: Stage, **options: Any) -> FastAPI:
    """The campaign's pages and the organiser's."""
    admin = Admin(database=stage.database, token=TOKEN, clock=stage.clock, **options)
    return make_app(stage.database, clock=stage.clock, routers=[admin_routes(admin)])


def worked(stages: Stages, **options: Any) -> Stage:
    """Ada finished, Bob failed the test, Cy stopped after one question, Di is at work."""
    stage = stages.make(tasks=6, **options)
    ada, bob, cy, di = map(stage.begin, ("ada", "bob", "cy", "=di()"))
    stage.finish(ada, 4)
    stage.clock.pass_by(minutes=3)
    stage.finish(bob, 4, q3="b")
    stage.answer(cy, 1, "none", reason="same")
    stage.post(f"{cy}/exit", {"token": cy.removeprefix("/a/")})
    stage.answer(di, 1, "b")
    return stage


@pytest.fixture(scope="module")
def under_way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Such a campaign, for all tests of a module."""
    with Stages(tmp_path_factory.mktemp("under_way")) as made:
        yield worked(made)


def copied(stage: Stage, stages: Stages) -> Stage:
    """The same campaign in a database of its own."""
    stage.database.close()
    before = Path(str(stage.database.engine.url.database))
    after = stages.folder / f"copy{len(stages.made)}.sqlite"
    shutil.copy(before, after)
    database = open_database(f"sqlite:///{after}")
    stages.ends.callback(database.close)
    clock = Clock(stage.clock.now)
    app = make_app(database, clock=clock)
    caller = Caller(app, stages.portal)
    stages.made.append(Stage(database, stage.campaign, clock, app, caller, dict(stage.roots)))
    return stages.made[-1]


class Organiser:
    """Somebody at the organiser's pages, with a browser's memory for cookies."""

    def __init__(self, stage: Stage, portal: Any, **options: Any) -> None:
        self.stage = stage
        self.caller = Caller(organised(stage, **options), portal)

    def sign_in(self, token: str = TOKEN) -> Response:
        return self.caller.post("/admin/sign-in", data={"token": token})

    def get(self, address: str) -> Response:
        return self.caller.get(address)

    def form_token(self) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.get("/admin").text)
        assert found
        return unescape(found.group(1))

    def post(self, address: str, **fields: str) -> Response:
        return self.caller.post(address, data={"form_token": self.form_token(), **fields})

    def words(self, address: str) -> str:
        page = self.get(address)
        assert page.status_code == 200, page.text
        body = page.text.partition("<body")[2].partition(">")[2]
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
