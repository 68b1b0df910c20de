"""A hosted forge as heldout sees it, and the server behind it.

A test module takes the fixtures it needs: `client = forge_clients.client`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from forge_server import KINDS, PROJECTS, TOKEN, Forge, Kind, serve

from heldout.board.rules.spec import ForgeSpec
from heldout.board.store.forges import Handle, HostedForge, Surroundings, open_forge
from heldout.board.store.git import Git
from heldout.ids import digest_bytes

EVENT = digest_bytes(b"an event")


OTHER = digest_bytes(b"another event")


ONE = Handle("1")


NOW = 1_795_000_000.0


@dataclass
class Clock:
    """Time that passes only in `sleep`, and by `step` with every look."""

    now: float = NOW
    step: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Client:
    """A forge as heldout sees it, and the server behind it."""

    forge: HostedForge
    server: Forge
    clock: Clock


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Forge]:
    kind: Kind = request.param
    with serve(kind) as forge:
        yield forge


@pytest.fixture(scope="module")
def clients() -> Iterator[Mapping[bool, httpx2.Client]]:
    """A patient client and a hasty one; both follow redirects, as a careless caller's would."""
    with (
        httpx2.Client(timeout=20, follow_redirects=True, trust_env=False) as patient,
        httpx2.Client(timeout=0.6, follow_redirects=True, trust_env=False) as hasty,
    ):
        yield {False: patient, True: hasty}


@pytest.fixture
def http(request: pytest.FixtureRequest, clients: Mapping[bool, httpx2.Client]) -> httpx2.Client:
    return clients["no answer in time" in request.node.name]


@pytest.fixture
def client(server: Forge, http: httpx2.Client) -> Client:
    return connect(server, http)


def connect(
    server: Forge, http: httpx2.Client, *, token: str = TOKEN, project: str | None = None
) -> Client:
    clock = Clock()
    forge = open_forge(
        ForgeSpec(kind=server.kind, url=server.url, project=project or PROJECTS[server.kind]),
        Git(Path("/nonexistent")),
        "age",
        main="HEAD",
        world=Surroundings(
            client=http,
            environ={"HELDOUT_FORGE_TOKEN": token},
            clock=clock,
            sleep=clock.sleep,
            token_host=server.url,
        ),
    )
    assert isinstance(forge, HostedForge)
    return Client(forge=forge, server=server, clock=clock)
