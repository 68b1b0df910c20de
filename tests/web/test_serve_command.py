"""`heldout serve`: a campaign's directory, served by the real program."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from click.testing import CliRunner
from judging_stage import QUERY, SETTINGS, START, A, B, campaign_tasks, fields_of

from heldout.cli.program import main
from heldout.cli.serving import find_token
from heldout.errors import SetupError
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.pools import Pool
from heldout.judging.campaign.rows import Task
from heldout.judging.database.campaigns import load_campaign, read_campaign
from heldout.judging.database.tables import open_database
from ports import await_server, free_port

TOML = f"""
name = "{SETTINGS.name}"
consent = "You are at least 18 years old."
links = "open"
reward = 200
fee = 40
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    folder = CampaignFolder(tmp_path)
    (tmp_path / "campaign.toml").write_text(TOML)
    pools, tasks = made()
    folder.write_pools(pools)
    folder.write_tasks(tasks)
    return tmp_path


def made(**changes: Any) -> tuple[tuple[Pool, ...], tuple[Task, ...]]:
    options: dict[str, Any] = {"tasks": 2, "items": 4, "query": QUERY, "texts": (A, B)}
    return campaign_tasks(**{**options, **changes})


@contextmanager
def served(*arguments: str, **environment: str) -> Iterator[tuple[httpx2.Client, list[str]]]:
    """The program, ready; its address, and what it has said."""
    port = free_port()
    command = [sys.executable, "-m", "heldout", "serve", *arguments, "--port", str(port)]
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        said: list[str] = []
        assert process.stderr
        for line in process.stderr:
            said.append(line.rstrip())
            if line.startswith("stop"):
                break
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                await_server(client, process)
                yield client, said
        finally:
            process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=60)[1].splitlines()
        assert process.returncode in (0, -signal.SIGINT), said


def serve(*arguments: str, **environment: str | None) -> tuple[int, str]:
    env = {"DATABASE_URL": None, **environment}
    result = CliRunner().invoke(main, ["serve", *arguments], env=env)
    return result.exit_code, " ".join(result.output.split())


def link_of(said: list[str]) -> str:
    (line,) = [line for line in said if line.startswith("judges")]
    return line.partition("/j/")[2].partition("?")[0]


def test_a_campaign_is_loaded_and_served_until_interrupted(campaign: Path) -> None:
    with served(str(campaign)) as (client, said):
        assert "study     Best answers" in said
        assert "loaded    2 new tasks" in said
        landing = f"/j/{link_of(said)}"
        page = client.get(landing, params={"worker": "ada"})
        assert "18 years" in page.text
        assert "server" not in page.headers
        answer = client.post(f"{landing}/consent", data=fields_of(page))
        item = client.get(answer.headers["location"])
        assert QUERY in item.text
        token = answer.headers["location"].split("/")[2]
    assert not any(token in line or "GET" in line for line in said)


def load(campaign: Path) -> str:
    """Load the campaign as a first start does; its link code."""
    folder = CampaignFolder(campaign)
    database = open_database(f"sqlite:///{folder.database}")
    load_campaign(database, folder.settings(), folder.pools(), folder.tasks(), now=START)
    code = read_campaign(database).code
    database.close()
    return code


@pytest.mark.night
def test_a_later_start_loads_what_is_new_and_keeps_the_link(campaign: Path) -> None:
    code = load(campaign)
    pools, (*before, new) = made(tasks=3)
    CampaignFolder(campaign).write_pools(pools)
    CampaignFolder(campaign).write_tasks([*before, msgspec.structs.replace(new, batch=2)])
    with (campaign / "campaign.toml").open("a") as settings:
        settings.write('question = "Which one?"\n')
    with served(str(campaign)) as (_, said):
        assert "loaded    1 new task" in said
        assert "note      tasks loaded before have their own question" in said
        assert link_of(said) == code


@pytest.mark.night
def test_a_database_alone_is_served_where_it_is_named(campaign: Path, tmp_path: Path) -> None:
    code = load(campaign)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    url = f"sqlite:///{campaign}/campaign.sqlite"
    with served(str(elsewhere), DATABASE_URL=url) as (_, said):
        assert link_of(said) == code
    assert list(elsewhere.iterdir()) == []


def test_no_campaign_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    code, said = serve(str(tmp_path))
    assert code == 2
    assert "is no campaign; `heldout prefer pool` begins one" in said
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_without_tasks_is_told(campaign: Path) -> None:
    (campaign / "tasks.jsonl").unlink()
    code, said = serve(str(campaign))
    assert code == 2
    assert "database-empty" in said
    assert "`heldout prefer tasks`" in said
    assert "load them" not in said


def test_what_people_saw_cannot_be_changed(campaign: Path) -> None:
    load(campaign)
    CampaignFolder(campaign).write_pools(made(texts=(A, "another text"))[0])
    code, said = serve(str(campaign))
    assert code == 2
    assert "changed-text" in said


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "not an address", "postgresql://\0"])
def test_an_address_that_is_none_is_told(campaign: Path, url: str) -> None:
    code, said = serve(str(campaign), "--database", url)
    assert code == 2
    assert "Traceback" not in said
    assert "database" in said


def test_a_port_in_use_is_told(campaign: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "heldout", "serve", str(campaign), "--port", str(port)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"port {port} of 127.0.0.1 is in use; choose another with --port" in done.stderr
    assert "/j/" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (campaign / "campaign.sqlite").exists()


def test_a_host_that_is_not_this_one_is_told(campaign: Path) -> None:
    code, said = serve(str(campaign), "--host", "192.0.2.1")
    assert code != 0
    assert "cannot listen at 192.0.2.1" in said


@pytest.mark.parametrize("proxied", [pytest.param(True, marks=pytest.mark.night), False])
def test_who_calls_is_taken_from_a_proxy_that_was_named_and_from_nobody_else(
    campaign: Path, *, proxied: bool
) -> None:
    """Wrong tokens from made-up addresses, so that none of them has to wait."""
    options = ["--proxy", "127.0.0.1"] if proxied else []
    with served(str(campaign), *options) as (client, _):
        for number in range(7):
            address = {"X-Forwarded-For": f"198.51.100.{number}"}
            answer = client.post("/admin/sign-in", data={"token": "wrong"}, headers=address)
    assert (answer.status_code == 429) != proxied


@pytest.mark.night
def test_the_organiser_signs_in_with_the_token_that_is_printed(campaign: Path) -> None:
    with served(str(campaign), "--paused", "--workers", "2") as (client, said):
        (token,) = [line.split()[1] for line in said if line.startswith("token")]
        assert any(line.startswith("paused") for line in said)
        landing = f"/j/{link_of(said)}?worker=ada"
        assert "The study is not open at the moment" in client.get(landing).text
        assert client.post("/admin/sign-in", data={"token": "x" * 20}).status_code == 403
        assert client.post("/admin/sign-in", data={"token": token}).status_code == 303
        for _ in range(10):  # whichever process answers
            page = client.get("/admin")
            assert "Launch: up to $4.80" in page.text
        form = fields_of(page)
        assert client.post("/admin/launch", data=form).status_code == 303
        assert "18 years" in client.get(landing).text
        assert not any("admin" in line and "POST" in line for line in said)


@pytest.mark.night
def test_an_unpaid_campaign_promises_nothing_when_it_is_served(campaign: Path) -> None:
    (campaign / "campaign.toml").write_text(TOML.replace("reward = 200\nfee = 40\n", ""))
    with served(str(campaign)) as (client, said):
        assert not any(line.startswith("pay ") for line in said)
        assert "None: taking part is voluntary." in client.get(f"/j/{link_of(said)}").text


def test_a_token_is_made_and_printed_or_given_and_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HELDOUT_ADMIN_TOKEN", raising=False)
    token, lines = find_token()
    assert lines == [("token", token)]
    monkeypatch.setenv("HELDOUT_ADMIN_TOKEN", " sixteen-letters-x ")
    assert find_token() == ("sixteen-letters-x", [])
    monkeypatch.setenv("HELDOUT_ADMIN_TOKEN", "short")
    with pytest.raises(SetupError, match="at least 16"):
        find_token()
