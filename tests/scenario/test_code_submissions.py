"""Programs in place of runs, from the draft to the page; every call is a command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from containers_here import Here, fake_engine, podman_here, why_no_podman
from town import TEAM, Answer, Town, found_town

DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
RULES = "\n[programs]\nmemory = 64\ndisk = 8\nprocessors = 1\nprocesses = 32\nminutes = 1\n"
ANSWERS = (
    "for name in dev eval; do while read query text; do "
    'echo "$query Q0 d$query 1 2.5 x"; done < {0}/$name.tsv > {1}/$name.run; done'
)
IN_CONTAINER = ANSWERS.format("/queries", "/output")
IN_SCRIPT = ANSWERS.format("$IN", "$OUT")


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A town whose board takes programs."""
    town = found_town(tmp_path)
    rules = town.board / "board.toml"
    rules.write_text(rules.read_text() + RULES)
    assert town.organiser("rebuild", now=DAY).code == 0
    town.push()
    town.pull()
    return town


def send(
    town: Town,
    image: str,
    *,
    command: Sequence[str] = (),
    port: int | None = None,
    name: str = "one",
    **fields: Any,
) -> str:
    """Draft, fill in and submit a program, and take it in."""
    answer = town.participant("draft", name, "--image", image, "--json", now=DAY)
    assert answer.code == 0, answer
    submission = str(answer.json["id"])
    program = {"image": image, "command": list(command), "port": port}
    town.fill(submission, **TEAM, program=program, **fields)
    answer = town.participant("submit", submission, now=DAY)
    assert answer.code == 0, answer
    assert town.take_in(now=DAY)["received"][0]["kind"] == "received"
    return submission


def run(town: Town, here: Here, submission: str) -> Answer:
    return town.organiser("run", submission, *here.options, now=LATER)


def test_a_program_goes_from_the_draft_to_the_page(town: Town, tmp_path: Path) -> None:
    here = fake_engine(tmp_path / "engine", IN_SCRIPT)
    submission = send(town, here.image)
    before = town.organiser("review", submission, now=DAY)
    assert before.code == 1
    assert f"not-run: a program that has not been run: heldout run {submission}" in before.out
    answer = run(town, here, submission)
    assert answer.code == 0, answer
    assert f"next      heldout review {submission}" in answer.out
    assert here.containers() == []
    assert not (town.vault / "running" / "files").exists()
    assert town.publish(submission, now=LATER).code == 0
    (row,) = [row for row in town.rows() if row["id"] == submission]
    assert row["scores"] == {"dev": 1.0, "eval": 1.0}
    assert row["measured_latency_ms"] > 0
    assert town.audit()["ok"]
    again = run(town, here, submission)
    assert again.code == 0
    assert "(run before)" in again.out


@pytest.mark.skipif(bool(why_no_podman()), reason=f"no containers: {why_no_podman()}")
def test_a_program_in_a_container(town: Town) -> None:
    here = podman_here()
    submission = send(town, here.image, command=["/bin/sh", "-c", IN_CONTAINER])
    answer = run(town, here, submission)
    assert answer.code == 0, answer
    assert here.containers() == []
    assert town.publish(submission, now=LATER).code == 0
