"""Upload over real HTTP: from a form, from a script, and from somebody who means harm."""

import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import grimp
import httpx2
import pytest
from judging_stage import Stages, words_of
from team_stage import ENDINGS, ONE, TEAM, MakePlace, Place, files_of, make_place, parts

from heldout.board.store.arrivals import find_in_folder
from heldout.intake.app import intake_parts
from heldout.intake.form import Pace
from heldout.intake.pages import UPLOAD as ADDRESS
from heldout.intake.uploads import IntakeLimits
from heldout.judging.pages.judge import make_app

__all__ = ["make_place"]

BOUNDARY = "frontier"
FORM = f"multipart/form-data; boundary={BOUNDARY}"
OTHERS = ("intake.sqlite", ".parts")
"""What lies in the folder of uploads and nobody sent."""


def body_of(files: dict[str, bytes], *, end: bool = True) -> bytes:
    """A form as a browser would send it, with names that no browser would."""
    pieces = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n".encode()
        + data
        + b"\r\n"
        for name, data in files.items()
    ]
    return b"".join(pieces) + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


def enter(place: Place, name: str = TEAM) -> tuple[httpx2.Client, str]:
    """The browser of somebody of a new team, and where its form is sent."""
    browser = place.browser()
    browser.post("/sign-in", data={"token": place.join(name)[1]})
    found = re.search(r'action="([^"]+)"', browser.get(ADDRESS).text)
    assert found
    return browser, unescape(found[1])


class Door:
    """A folder, the server before it, and somebody of a team who signed in."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.folder = place.uploads
        self.url = place.url
        self.client, self.where = enter(place)
        self.cookie = self.client.cookies["heldout-team"]

    @property
    def address(self) -> tuple[str, int]:
        found = httpx2.URL(self.url)
        return found.host, found.port or 0

    def head(self, length: int | str) -> bytes:
        """The head of a request with a form of so many bytes."""
        lines = (
            f"POST {self.where} HTTP/1.1",
            "Host: x",
            f"Cookie: heldout-team={self.cookie}",
            f"Content-Type: {FORM}",
            f"Content-Length: {length}",
        )
        return "\r\n".join((*lines, "", "")).encode()

    def send(self, files: dict[str, bytes]) -> httpx2.Response:
        return self.client.post(self.where, files=parts(files))

    def raw(self, body: bytes, **headers: str) -> httpx2.Response:
        told = {"content-type": FORM, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.client.post(self.where, content=body, headers=told)

    def lying(self) -> dict[str, bytes]:
        inside = [path for one in self.folder.glob("delivery-*") for path in one.iterdir()]
        beside = [p for p in self.folder.iterdir() if not p.name.startswith("delivery-")]
        return {
            path.name: path.read_bytes() if path.is_file() else b"?"
            for path in (*inside, *beside)
            if not path.name.startswith(OTHERS)
        }

    def wait_until_quiet(self) -> None:
        """Until no form is under way."""
        end = time.monotonic() + 10
        while self.place.intake.forms.total():
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.fixture
def make(make_place: MakePlace) -> Iterator[Callable[..., Door]]:
    doors: list[Door] = []

    def door(
        *,
        silence: float = 20.0,
        longest: float = 60.0,
        grace: float = 30.0,
        rate: float = 1 << 14,
        file_bytes: int = 1 << 20,
        room: int = 20 << 30,
    ) -> Door:
        pace = Pace(silence=silence, longest=longest, grace=grace, rate=rate)
        most = IntakeLimits(free_bytes=0, bytes=room)
        doors.append(Door(make_place(pace=pace, file_bytes=file_bytes, most=most)))
        return doors[-1]

    yield door
    for one in doors:
        one.wait_until_quiet()


@pytest.fixture
def door(make: Callable[..., Door]) -> Door:
    return make()


def code_of(answer: httpx2.Response) -> str:
    return str(answer.headers["x-error-code"])


def test_a_form_sends_three_files_and_gets_a_receipt(door: Door) -> None:
    answer = door.send(files_of())
    assert answer.status_code == 201
    assert "Your submission is here" in words_of(answer)
    assert ONE in words_of(answer)
    assert "21 November 2026, 12:00:00 UTC" in words_of(answer)
    assert door.lying() == files_of()
    (arrival,) = find_in_folder(door.folder, "age")
    assert (arrival.id, arrival.problems) == (ONE, ())


def test_a_registration_is_sent_alone_and_gets_a_receipt_of_its_own(door: Door) -> None:
    team = "team-0123456789abcdef"
    sent = {f"{team}.json": b"{}"}
    answer = door.send(sent)
    assert answer.status_code == 201
    assert "Your registration is here" in words_of(answer)
    assert team in words_of(answer)
    assert door.send(sent).status_code == 200
    assert code_of(door.send({**files_of(), **sent})) == "upload-set"
    assert door.lying() == sent


@pytest.mark.parametrize(
    ("files", "status", "code"),
    [
        ({}, 422, "upload-set"),
        ({"": b"x"}, 422, "upload-set"),
        ({f"{ONE}{ENDINGS[0]}": b"x"}, 422, "upload-set"),
        ({"../../board.toml": b"x"}, 422, "upload-name"),
        ({f"../{ONE}{ENDINGS[0]}": b"x"}, 422, "upload-name"),
        ({f"/{ONE}{ENDINGS[0]}": b"x"}, 422, "upload-name"),
        ({f"{ONE}{ENDINGS[0]}\x00.txt": b"x"}, 422, "upload-name"),
        ({"<script>alert(1)</script>.age": b"x"}, 422, "upload-name"),
        ({"\u202eega.rat.x-12116202": b"x"}, 422, "upload-name"),
        ({f"{ONE}{ENDINGS[1]}": b""}, 422, "upload-set"),
    ],
)
def test_what_is_no_sealed_submission_is_refused_with_its_reason(
    door: Door, files: dict[str, bytes], status: int, code: str
) -> None:
    answer = door.raw(body_of(files))
    assert (answer.status_code, code_of(answer)) == (status, code)
    page = door.raw(body_of(files))
    assert page.status_code == status
    assert "Nothing was stored" in words_of(page)
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert door.lying() == {}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", FORM),
        (b"{}", "application/json"),
        (b"files=x", "application/x-www-form-urlencoded"),
        (b"x", "multipart/form-data"),
        (b"x", "multipart/form-data; boundary="),
        (b"no boundary here", FORM),
        (b"--frontier\r\nno header\r\n\r\nx\r\n--frontier--\r\n", FORM),
        (b"--frontier\r\n" + b"a" * 9000 + b": x\r\n\r\nx\r\n--frontier--\r\n", FORM),
        (body_of(files_of(), end=False), FORM),
        (body_of({f"n{n}": b"x" for n in range(500)}), FORM),
        (b"x", "multipart/form-data; boundary=" + "b" * 5000),
    ],
)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # a file without its end
def test_what_is_no_form_is_refused(door: Door, body: bytes, kind: str) -> None:
    answer = door.raw(body, content_type=kind)
    assert answer.status_code in (400, 422)
    assert code_of(answer) in ("upload-form", "upload-cut", "upload-name", "upload-set")
    assert door.lying() == {}


def test_other_fields_are_skipped(door: Door) -> None:
    fields = {"note": "hello", "files": "no file"}
    answer = door.client.post(door.where, files=parts(files_of()), data=fields)
    assert answer.status_code == 201
    assert door.lying() == files_of()


def test_an_oversize_file_is_refused_and_the_reason_arrives(door: Door) -> None:
    big = {**files_of(), f"{ONE}{ENDINGS[0]}": b"x" * ((1 << 20) + 1)}
    answer = door.send(big)
    assert (answer.status_code, code_of(answer)) == (413, "upload-too-large")
    assert door.lying() == {}


@pytest.mark.parametrize("length", [str(1 << 40), "9" * 18, "9" * 4000])
def test_a_body_that_says_it_is_huge_is_refused_unread(door: Door, length: str) -> None:
    with socket.create_connection(door.address, timeout=10) as line:
        line.sendall(door.head(length))
        said = line.recv(1 << 16)
    assert said.split(b" ")[1] in (b"413", b"400")
    assert door.lying() == {}


def test_an_endless_body_without_a_length_ends(make: Callable[..., Door]) -> None:
    small = make(file_bytes=1000)

    def endless() -> Iterator[bytes]:
        yield body_of({f"{ONE}{ENDINGS[0]}": b""}, end=False)[:-2]
        for _ in range(200):
            yield b"x" * 10_000

    try:
        answer = small.client.post(small.where, content=endless(), headers={"content-type": FORM})
        assert (answer.status_code, code_of(answer)) == (413, "upload-too-large")
    except (httpx2.WriteError, httpx2.ReadError, httpx2.RemoteProtocolError):
        pass  # the server closed before all of it was sent
    small.wait_until_quiet()
    assert small.lying() == {}


def test_a_cut_connection_leaves_nothing(door: Door) -> None:
    body = body_of(files_of(size=5000))
    for cut in (10, 200, len(body) // 2, len(body) - 3):
        with socket.create_connection(door.address, timeout=10) as line:
            line.sendall(door.head(len(body)) + body[:cut])
    door.wait_until_quiet()
    assert door.lying() == {}
    assert door.send(files_of()).status_code == 201


def test_silence_ends_an_upload(make: Callable[..., Door]) -> None:
    impatient = make(silence=0.2)
    body = body_of(files_of())
    with socket.create_connection(impatient.address, timeout=10) as line:
        line.sendall(impatient.head(len(body)) + body[:100])
        said = line.recv(1 << 16)
    assert said.startswith(b"HTTP/1.1 400")
    impatient.wait_until_quiet()
    assert impatient.lying() == {}


@pytest.mark.parametrize(
    ("size", "pace"),
    [(10, {"longest": 0.4}), (1000, {"grace": 0.3, "rate": 1e6})],
    ids=["too long", "fewer bytes than others could send in that place"],
)
def test_a_trickle_does_not_hold_a_place_for_ever(
    make: Callable[..., Door], size: int, pace: dict[str, float]
) -> None:
    door = make(silence=60, **pace)
    body = body_of(files_of(size=size))
    with socket.create_connection(door.address, timeout=50) as line:
        line.sendall(door.head(len(body)))
        begun = time.monotonic()
        for place in range(400):
            try:
                line.sendall(body[place : place + 1])
            except OSError:
                break
            if select.select([line], [], [], 0.02)[0]:  # refused: what follows is not read
                break
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 400")
    assert time.monotonic() - begun < 50  # it was not silence that ended it
    door.wait_until_quiet()
    assert door.send(files_of(size=size)).status_code == 201


def test_too_many_at_once_are_asked_to_wait(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.intake.service._FORMS", 1)
    narrow = door
    body = body_of(files_of())
    with socket.create_connection(narrow.address, timeout=10) as line:
        line.sendall(narrow.head(len(body)) + body[:100])
        end = time.monotonic() + 10
        while not narrow.place.intake.forms.total():
            assert time.monotonic() < end
            time.sleep(0.01)
        answer = narrow.send(files_of("20261121-second"))
        assert (answer.status_code, code_of(answer)) == (503, "upload-busy")
        assert int(answer.headers["retry-after"]) > 0
    narrow.wait_until_quiet()
    assert narrow.send(files_of()).status_code == 201


def test_every_answer_is_locked_down_and_nothing_can_be_read_back(door: Door) -> None:
    door.send(files_of())
    for answer in (door.client.get("/sign-in"), door.send(files_of()), door.send({})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers
    name = next(iter(files_of()))
    for address in (f"{ADDRESS}/{name}", f"{ADDRESS}/", f"/{name}", f"/static/../{name}"):
        assert door.client.get(address).status_code == 404
    for method in ("PUT", "DELETE", "PATCH"):
        assert door.client.request(method, ADDRESS).status_code == 405


def test_a_folder_that_is_gone_is_told_without_its_path(door: Door) -> None:
    gone = door.folder.rename(door.folder.with_name("moved"))
    answer = door.send(files_of())
    assert answer.status_code == 503
    assert str(door.folder) not in answer.text
    gone.rename(door.folder)


def test_no_key_and_no_vault_is_within_reach_of_the_upload() -> None:
    graph = grimp.build_graph("heldout")
    reached = graph.find_upstream_modules("heldout.intake.app")
    assert "heldout.board.store.uploads" in reached
    forbidden = (
        *("heldout.envelope", "heldout.board.store.vault", "heldout.board.scores"),
        *("heldout.board.organiser", "heldout.board.participant", "heldout.board.audit"),
        "heldout.cli",
    )
    assert all(any(one.startswith(room) for one in graph.modules) for room in forbidden)
    assert [name for name in reached if name.startswith(forbidden)] == []


def test_a_campaign_and_uploads_are_served_together(door: Door, tmp_path: Path) -> None:
    with Stages(tmp_path) as stages:
        stage = stages.make()
        routers, mounts = intake_parts(door.place.intake)
        url = stages.serve(make_app(stage.database, routers=routers, mounts=mounts))
        with httpx2.Client(base_url=url, cookies={"heldout-team": door.cookie}) as client:
            assert client.post(door.where, files=parts(files_of())).status_code == 201
            assert client.get(stage.link, params={"worker": "ada"}).status_code == 200
    assert len(list(find_in_folder(door.folder, "age"))) == 1
