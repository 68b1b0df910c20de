"""`--to https://…`: goes on after a cut, says why it was refused, and guards the token."""

from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import httpx2
import pytest
from team_stage import ONE, Place, files_of, make_place, place

from heldout.board.participant import server as client_side
from heldout.board.participant.server import Server, find_token, read_address, store_token
from heldout.board.store.repository import Repository
from heldout.board.store.uploads import TEAM_TOKEN
from heldout.errors import InputError, PushError, SetupError

__all__ = ["make_place", "place"]
BIG = 50_000


class Cuts(httpx2.BaseTransport):
    """A way to the server that breaks at the calls that it is told, before or after they arrive."""

    def __init__(self, breaks: dict[int, str]) -> None:
        self.inner = httpx2.HTTPTransport()
        self.breaks = breaks
        self.calls: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(f"{request.method} {request.url.raw_path.decode().partition('?')[0]}")
        how = self.breaks.get(len(self.calls), "")
        if how == "before":
            raise httpx2.ConnectError("cut")
        answer = self.inner.handle_request(request)
        if how == "after":
            answer.close()
            raise httpx2.ReadError("cut")
        return answer

    def close(self) -> None:
        """It is used again, over other connections."""
        self.inner.close()
        self.inner = httpx2.HTTPTransport()


def reach(place: Place, token: str, cuts: Cuts, slept: list[float]) -> Server:
    return Server(
        address=place.url,
        token=token,
        connect=lambda: httpx2.Client(transport=cuts, timeout=20),
        sleep=slept.append,
    )


def opened(files: dict[str, bytes]) -> dict[str, Callable[[], BytesIO]]:
    return {name: lambda data=data: BytesIO(data) for name, data in files.items()}  # type: ignore[misc]  # binds it now


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_side, "_PIECE", 20_000)


def test_an_upload_goes_on_whatever_call_is_cut(place: Place) -> None:
    """Every other call of a whole upload is cut: before it arrives, or before its answer does."""
    slept: list[float] = []
    token, cuts = place.join("team 0")[1], Cuts({})
    assert not reach(place, token, cuts, slept).upload(opened(files_of(f"{ONE}-0", BIG)))
    count = len(cuts.calls)
    assert count >= 1 + 3 * (1 + 3) + 1
    assert slept == []
    assert reach(place, token, cuts, slept).upload(opened(files_of(f"{ONE}-0", BIG)))  # is there
    sent = dict(files_of(f"{ONE}-0", BIG))
    for number, how in enumerate(("before", "after"), 1):
        files = files_of(f"{ONE}-{number}", BIG)
        breaks = dict.fromkeys(range(1, 3 * count, 3), how)
        waits: list[float] = []
        team = place.join(f"team {number}")[1]
        reach(place, team, Cuts(breaks), waits).upload(opened(files))
        assert waits
        assert max(waits) <= 32
        sent |= files
    assert place.delivered() == dict(sorted(sent.items()))


def test_a_server_that_stays_away_is_told_and_a_later_call_goes_on(place: Place) -> None:
    slept: list[float] = []
    token, files = place.join()[1], files_of(size=BIG)
    away = Cuts(dict.fromkeys(range(5, 100), "before"))
    with pytest.raises(PushError, match="it goes on from there") as told:
        reach(place, token, away, slept).upload(opened(files))
    assert token not in str(told.value)
    assert slept == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert sum(path.stat().st_size for path in place.uploads.glob(".parts/*/*")) > 0
    again = Cuts({})
    reach(place, token, again, slept).upload(opened(files))
    assert place.delivered() == files
    whole = sum(len(data) for data in files.values()) // 20_000 + 3
    assert sum(call.startswith("PATCH") for call in again.calls) < whole


def test_refusals_have_the_server_s_code_and_the_day(place: Place) -> None:
    slept: list[float] = []
    token = place.join()[1]
    server = reach(place, token, Cuts({}), slept)
    for number in (1, 2):
        server.upload(opened(files_of(f"{ONE}-{number}")))
    with pytest.raises(InputError) as refused:
        server.upload(opened(files_of(f"{ONE}-3")))
    (problem,) = refused.value.problems
    assert (problem.code, problem.path) == ("upload-quota", place.url)
    assert "21 December 2026" in problem.hint
    state = server.describe(f"{ONE}-1")
    assert state is not None
    assert (state.state, state.sent) == (
        "waiting for the organiser",
        datetime(2026, 11, 21, 12, tzinfo=UTC),
    )
    assert server.describe(f"{ONE}-9") is None
    wrong = reach(place, "x" * 40, Cuts({}), slept)
    with pytest.raises(InputError) as unknown:
        wrong.describe(ONE)
    assert unknown.value.code == "team-token"
    assert slept == []


def test_a_token_goes_over_https_alone_and_follows_no_redirect() -> None:
    assert read_address("../letters") is None
    assert read_address("https://Board.example/kb/") == "https://Board.example/kb"
    assert read_address("http://127.0.0.1:8000") == "http://127.0.0.1:8000"
    for address in ("http://board.example", "https://u:p@board.example", "https://", "https://b?x"):
        with pytest.raises(SetupError):
            read_address(address)
    asked: list[str] = []

    def elsewhere(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(
            307, headers={"location": "https://evil.example/"}, stream=httpx2.ByteStream(b"")
        )

    server = Server(
        address="https://board.example",
        token="t" * 40,
        connect=lambda: httpx2.Client(transport=httpx2.MockTransport(elsewhere)),
        sleep=lambda _: None,
    )
    with pytest.raises(Exception, match="is it the address of a board's server"):
        server.describe(ONE)
    assert [one for one in asked if "evil" in one] == []


def test_a_token_is_stored_for_its_owner_alone(tmp_path: Path) -> None:
    clone = Repository(tmp_path, tmp_path / "states")
    address, token = "https://board.example", "heldout_" + "a" * 40
    assert find_token(clone, address, {}) is None
    assert find_token(clone, address, {TEAM_TOKEN: f" {token}\n"}) == token
    stored = store_token(clone, address, token)
    assert stored.stat().st_mode & 0o777 == 0o600
    assert find_token(clone, address, {}) == token
    assert find_token(clone, "https://another.example", {}) is None
    stored.chmod(0o644)
    with pytest.raises(SetupError, match="others can read") as refused:
        find_token(clone, address, {})
    assert token not in str(refused.value)
    with pytest.raises(SetupError, match="no token of a team"):
        find_token(clone, address, {TEAM_TOKEN: "two words"})
