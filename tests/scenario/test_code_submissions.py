"""Programs in place of runs, from the draft to the page; every call is a command."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from containers_here import FAKE_IMAGE, Here, fake_engine, podman_here, why_no_podman
from town import TEAM, Answer, Town, copy_town, found_town
from trusting import read_files

from heldout.board.scores.session import organiser_session
from heldout.board.store import vault
from heldout.board.store.repository import Repository

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
RULES = "\n[programs]\nmemory = 64\ndisk = 8\nprocessors = 1\nprocesses = 32\nminutes = 1\n"
ANSWERS = (
    "for name in dev eval; do while read query text; do "
    'echo "$query Q0 d$query 1 2.5 x"; done < {0}/$name.tsv > {1}/$name.run; done'
)
IN_CONTAINER = ANSWERS.format("/queries", "/output")
IN_SCRIPT = ANSWERS.format("$IN", "$OUT")


@functools.cache
def town_of_programs() -> Town:
    """A town whose board takes programs; to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    town = found_town(folder)
    town.rule(now=DAY, more=RULES)
    return town


@functools.cache
def town_with_one() -> tuple[Town, str]:
    """The same, where a program waits to be run; to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    town = copy_town(town_of_programs(), folder)
    return town, send(town, FAKE_IMAGE)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A town whose board takes programs."""
    return copy_town(town_of_programs(), tmp_path)


@dataclass(frozen=True)
class Sent:
    """A town where a program waits, and what runs it."""

    town: Town
    here: Here
    id: str


@pytest.fixture
def sent(tmp_path: Path) -> Sent:
    """A program that answers every query with its document."""
    town, submission = town_with_one()
    here = fake_engine(tmp_path / "engine", IN_SCRIPT)
    return Sent(town=copy_town(town, tmp_path), here=here, id=submission)


def send(
    town: Town,
    image: str,
    *,
    command: Sequence[str] = (),
    name: str = "one",
    now: str = DAY,
    **fields: Any,
) -> str:
    """Draft, fill in and submit a program, and take it in."""
    answer = town.participant("draft", name, "--image", image, "--json", now=now).done()
    submission = str(answer.json["id"])
    program = {"image": image, "command": list(command)}
    town.fill(submission, **TEAM, program=program, **fields)
    town.participant("submit", submission, now=now).done()
    assert town.take_in(now=now)["received"][0]["kind"] == "received"
    return submission


def run(town: Town, here: Here, submission: str) -> Answer:
    return town.organiser("run", submission, *here.options, now=LATER)


def test_a_program_goes_from_the_draft_to_the_page(sent: Sent) -> None:
    town, here, submission = sent.town, sent.here, sent.id
    before = town.organiser("review", submission, now=DAY)
    assert before.code == 1
    assert f"not-run: a program that has not been run: heldout run {submission}" in before.out
    assert f"image     {here.image}\ncommand   the one of the image\n" in before.out
    assert f"next      heldout run {submission}\n          heldout reject" in before.out
    answer = run(town, here, submission).done()
    assert f"next      heldout review {submission}" in answer.out
    assert here.containers() == []
    assert not (town.vault / "running" / "files").exists()
    assert town.publish(submission, now=LATER).code == 0
    (row,) = [row for row in town.rows() if row["id"] == submission]
    assert row["scores"] == {"dev": 1.0, "eval": 1.0}
    assert row["measured_latency_ms"] > 0
    assert town.audit()["ok"]
    again = run(town, here, submission).done()
    assert "(run before)" in again.out


@pytest.mark.containers
@pytest.mark.skipif(bool(why_no_podman()), reason=f"no containers: {why_no_podman()}")
def test_a_program_in_a_container(town: Town) -> None:
    here = podman_here()
    submission = send(town, here.image, command=["/bin/sh", "-c", IN_CONTAINER])
    run(town, here, submission).done()
    assert here.containers() == []
    assert town.publish(submission, now=LATER).code == 0


def test_an_image_with_another_digest(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    town, here, submission = sent.town, sent.here, sent.id
    images = here.folder / "images"
    kinds = town.kinds()
    images.joinpath(here.image).rename(images / "demo")
    answer = run(town, here, submission)
    assert answer.code == 2
    assert "image-digest" in answer.err
    images.joinpath("demo").unlink()
    assert "image-missing" in run(town, here, submission).err
    assert "container-engine" in town.organiser("run", submission, "--engine", "no", now=DAY).err
    monkeypatch.setattr(vault, "_FREE", 1 << 60)
    assert "vault-full" in run(town, here, submission).err
    assert town.kinds() == kinds
    assert town.audit()["ok"]


def test_a_broken_run_is_refused_by_its_review_and_removed(sent: Sent) -> None:
    town, here, submission = sent.town, sent.here, sent.id
    (here.folder / "program").write_text("echo a b > $OUT/dev.run; echo c > $OUT/eval.run")
    assert run(town, here, submission).code == 0
    answer = town.organiser("review", submission, now=LATER)
    assert answer.code == 1
    assert "reject    runs: dev" in answer.out
    assert town.publish(submission, now=LATER).code == 1
    runs = [e["sealed"] for e in town.events() if e["kind"] == "ran"]
    assert len(runs) == 1
    before = len([*(town.vault / "sealed").iterdir()])
    assert town.organiser("reject", submission, "--why", "broken runs", now=LATER).code == 0
    assert len([*(town.vault / "sealed").iterdir()]) == before - 3  # the tarball and both runs
    assert town.audit()["ok"]
    town.share()
    quota = town.participant("check", town.draft("two", now=LATER), now=LATER)
    assert "0 of 2 used" in quota.out


def test_an_organiser_who_runs_another_program_is_found_out(sent: Sent) -> None:
    town, here, submission = sent.town, sent.here, sent.id
    assert run(town, here, submission).code == 0
    assert town.audit()["ok"]
    said: dict[str, object] = {"runs": {}, "costs": {"seconds": 1, "query_latency_ms": 1}}
    said |= {"program": {"image": here.image.replace("1", "2")}, "engine": "podman"}
    now = datetime.fromisoformat(LATER)
    with organiser_session(Repository(town.board), town.vault, clock=lambda: now) as session:
        session.log("ran", submission, sealed=said)
    faults = town.audit()["faults"]
    assert f"the program that was run for {submission} is not the one that was sealed" in faults


def test_a_board_takes_programs_only_where_it_says_so(town: Town, tmp_path: Path) -> None:
    here = fake_engine(tmp_path / "engine", IN_SCRIPT)
    rules = town.board / "board.toml"
    with_runs = town.send("runs", now=DAY)
    town.take_in(now=DAY)
    assert "no-program" in run(town, here, with_runs).err
    rules.write_text(rules.read_text() + "required = true\n")
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    late = town.participant("check", town.draft("late", now=LATER, seed=2), now=LATER)
    assert "this board takes programs alone" in late.out
    begins = "heldout draft my-system --image NAME@sha256:DIGEST"
    assert begins in (town.clone / "README.md").read_text()
    assert begins in (town.board / "leaderboard" / "index.html").read_text()
    rules.write_text(rules.read_text().partition("\n[programs]")[0])
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    answer = town.participant("draft", "one", "--image", here.image, "--json", now=DAY)
    town.fill(answer.json["id"], **TEAM)
    assert "takes run files alone" in town.participant("check", answer.json["id"], now=DAY).out
    (town.root / "dev.run").write_text("x")
    both = ("draft", "two", "--image", here.image, "--dev", town.root / "dev.run")
    assert "program-and-runs" in town.participant(*both, now=DAY).err
    bad = town.participant("draft", "three", "--image", "demo", now=DAY)
    assert "wrong-field  --image\n" in bad.err


HIDDEN_SET = """
[[views]]
name = "secret"
set = "secret"
measure = "RR@10"

[sets.secret]
queries = "labels/secret.tsv"
"""


def test_secret_queries_are_seen_by_the_program_alone(town: Town, tmp_path: Path) -> None:
    script = IN_SCRIPT.replace("dev eval", "dev eval secret")
    here = fake_engine(tmp_path / "engine", script)
    rules = town.board / "board.toml"
    rules.write_text(rules.read_text() + "required = true\n" + HIDDEN_SET)
    for kind, line in (("qrels", "s{0} 0 ds{0} 1\n"), ("tsv", "s{0}\twhat is secret {0}\n")):
        assert f"secret.{kind} is missing" in town.organiser("rebuild", now=DAY).err
        text = "".join(line.format(number) for number in range(30))
        (town.vault / "labels" / f"secret.{kind}").write_text(text)
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    submission = send(town, here.image, open_runs=True)
    assert run(town, here, submission).code == 0
    assert town.publish(submission, now=LATER).code == 0
    (row,) = [row for row in town.rows() if row["id"] == submission]
    assert row["scores"]["secret"] == 1.0
    assert town.audit()["ok"]
    town.push()
    public = b"".join(f.read_bytes() for f in town.board.rglob("*") if f.is_file())
    assert b"what is secret" not in public
    assert b"secret queries are secret" in public
    archive = tmp_path / "kb.zip"
    town.organiser("archive", archive, "--yes", now=LATER).done()
    files = read_files(archive)
    assert "labels/secret.tsv" in files
    assert f"runs/{submission}/secret" in files
    found = town.participant("audit", archive, "--json", now=LATER, clone=tmp_path)
    assert (found.code, found.json["faults"]) == (0, [])


def test_secret_queries_need_programs(town: Town) -> None:
    rules = town.board / "board.toml"
    rules.write_text(
        rules.read_text() + HIDDEN_SET.replace("labels/secret.tsv", "labels/other.tsv")
    )
    answer = town.organiser("rebuild", now=DAY)
    assert "labels/secret.tsv, in the vault" in answer.err
    assert "required = true in [programs]" in answer.err
