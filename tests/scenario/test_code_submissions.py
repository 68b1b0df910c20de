"""Programs in place of runs, from the draft to the page; every call is a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from containers_here import FAKE_IMAGE, Here, fake_engine, podman_here, why_no_podman
from lab import DAY, NEXT, TEAM, Answer, Lab, Patch, prepared
from trusting import read_files

from heldout.board.scores.session import organiser_session
from heldout.board.store import vault
from heldout.board.store.repository import Repository

RULES = "\n[programs]\nmemory = 64\ndisk = 8\nprocessors = 1\nprocesses = 32\nminutes = 1\n"
ANSWERS = (
    "for name in dev eval; do while read query text; do "
    'echo "$query Q0 d$query 1 2.5 x"; done < {0}/$name.tsv > {1}/$name.run; done'
)
IN_CONTAINER = ANSWERS.format("/queries", "/output")
IN_SCRIPT = ANSWERS.format("$IN", "$OUT")


@prepared
def lab(lab: Lab) -> None:
    """A lab whose board takes programs."""
    lab.rule(more=RULES)


@dataclass(frozen=True)
class Sent:
    """A lab where a program waits, and what runs it."""

    lab: Lab
    here: Here
    id: str


@prepared
def one(lab: Lab) -> None:
    """The same, where a program waits to be run."""
    lab.rule(more=RULES)
    send(lab, FAKE_IMAGE)


@pytest.fixture
def sent(one: Lab, tmp_path: Path) -> Sent:
    """A program that answers every query with its document."""
    return Sent(lab=one, here=fake_engine(tmp_path / "engine", IN_SCRIPT), id="20261102-one")


def send(
    lab: Lab,
    image: str,
    *,
    command: Sequence[str] = (),
    name: str = "one",
    now: str = DAY,
    **fields: Any,
) -> str:
    """Draft, fill in and submit a program, and take it in."""
    answer = lab.participant("draft", name, "--image", image, "--json", now=now).done()
    submission = str(answer.json["id"])
    program = {"image": image, "command": list(command)}
    lab.fill(submission, **TEAM, program=program, **fields)
    lab.participant("submit", submission, now=now).done()
    assert lab.take_in(now=now)["received"][0]["kind"] == "received"
    return submission


def run(lab: Lab, here: Here, submission: str) -> Answer:
    return lab.organiser("run", submission, *here.options, now=NEXT)


def test_a_program_goes_from_the_draft_to_the_page(sent: Sent) -> None:
    lab, here, submission = sent.lab, sent.here, sent.id
    lab.organiser("review", submission).declined(
        f"not-run: a program that has not been run: heldout run {submission}",
        f"image     {here.image}\ncommand   the one of the image\n",
        f"next      heldout run {submission}\n          heldout reject",
    )
    run(lab, here, submission).done(f"next      heldout review {submission}")
    assert here.containers() == []
    assert not (lab.vault / "running" / "files").exists()
    assert lab.publish(submission, now=NEXT).code == 0
    (row,) = [row for row in lab.rows() if row["id"] == submission]
    assert row["scores"] == {"dev": 1.0, "eval": 1.0}
    assert row["measured_latency_ms"] > 0
    assert lab.audit()["ok"]
    run(lab, here, submission).done("(run before)")


@pytest.mark.containers
@pytest.mark.skipif(bool(why_no_podman()), reason=f"no containers: {why_no_podman()}")
def test_a_program_in_a_container(lab: Lab) -> None:
    here = podman_here()
    submission = send(lab, here.image, command=["/bin/sh", "-c", IN_CONTAINER])
    run(lab, here, submission).done()
    assert here.containers() == []
    assert lab.publish(submission, now=NEXT).code == 0


def test_an_image_with_another_digest(sent: Sent, monkeypatch: Patch) -> None:
    lab, here, submission = sent.lab, sent.here, sent.id
    images = here.folder / "images"
    kinds = lab.kinds()
    images.joinpath(here.image).rename(images / "demo")
    run(lab, here, submission).refused("image-digest")
    images.joinpath("demo").unlink()
    assert "image-missing" in run(lab, here, submission).err
    assert "container-engine" in lab.organiser("run", submission, "--engine", "no").err
    monkeypatch.setattr(vault, "_FREE", 1 << 60)
    assert "vault-full" in run(lab, here, submission).err
    assert lab.kinds() == kinds
    assert lab.audit()["ok"]


def test_a_broken_run_is_refused_by_its_review_and_removed(sent: Sent) -> None:
    lab, here, submission = sent.lab, sent.here, sent.id
    (here.folder / "program").write_text("echo a b > $OUT/dev.run; echo c > $OUT/eval.run")
    assert run(lab, here, submission).code == 0
    lab.organiser("review", submission, now=NEXT).declined("reject    runs: dev")
    assert lab.publish(submission, now=NEXT).code == 1
    assert len([e["sealed"] for e in lab.events() if e["kind"] == "ran"]) == 1
    before = len([*(lab.vault / "sealed").iterdir()])
    assert lab.organiser("reject", submission, "--why", "broken runs", now=NEXT).code == 0
    assert len([*(lab.vault / "sealed").iterdir()]) == before - 3  # the tarball and both runs
    assert lab.audit()["ok"]
    lab.share()
    quota = lab.participant("check", lab.draft("two", now=NEXT), now=NEXT)
    assert "0 of 2 used" in quota.out


def test_an_organiser_who_runs_another_program_is_found_out(sent: Sent) -> None:
    lab, here, submission = sent.lab, sent.here, sent.id
    assert run(lab, here, submission).code == 0
    assert lab.audit()["ok"]
    said: dict[str, object] = {"runs": {}, "costs": {"seconds": 1, "query_latency_ms": 1}}
    said |= {"program": {"image": here.image.replace("1", "2")}, "engine": "podman"}
    now = datetime.fromisoformat(NEXT)
    with organiser_session(Repository(lab.board), lab.vault, clock=lambda: now) as session:
        session.log("ran", submission, sealed=said)
    faults = lab.audit()["faults"]
    assert f"the program that was run for {submission} is not the one that was sealed" in faults


def test_a_board_takes_programs_only_where_it_says_so(lab: Lab, tmp_path: Path) -> None:
    here = fake_engine(tmp_path / "engine", IN_SCRIPT)
    with_runs = lab.receive("runs")
    assert "no-program" in run(lab, here, with_runs).err
    lab.rule(more="required = true\n")
    late = lab.participant("check", lab.draft("late", now=NEXT, seed=2), now=NEXT)
    assert "this board takes programs alone" in late.out
    begins = "heldout draft my-system --image NAME@sha256:DIGEST"
    assert begins in (lab.clone / "README.md").read_text()
    assert begins in (lab.board / "leaderboard" / "index.html").read_text()
    lab.rule(("\n[programs]" + lab.edit().partition("\n[programs]")[2], ""))
    answer = lab.participant("draft", "one", "--image", here.image, "--json")
    lab.fill(answer.json["id"], **TEAM)
    assert "takes run files alone" in lab.participant("check", answer.json["id"]).out
    (lab.root / "dev.run").write_text("x")
    both = ("draft", "two", "--image", here.image, "--dev", lab.root / "dev.run")
    assert "program-and-runs" in lab.participant(*both).err
    bad = lab.participant("draft", "three", "--image", "demo")
    assert "wrong-field  --image\n" in bad.err


HIDDEN_SET = """
[[views]]
name = "secret"
set = "secret"
measure = "RR@10"

[sets.secret]
queries = "labels/secret.tsv"
"""


def test_secret_queries_are_seen_by_the_program_alone(lab: Lab, tmp_path: Path) -> None:
    script = IN_SCRIPT.replace("dev eval", "dev eval secret")
    here = fake_engine(tmp_path / "engine", script)
    lab.edit(more="required = true\n" + HIDDEN_SET)
    for kind, line in (("qrels", "s{0} 0 ds{0} 1\n"), ("tsv", "s{0}\twhat is secret {0}\n")):
        assert f"secret.{kind} is missing" in lab.organiser("rebuild").err
        text = "".join(line.format(number) for number in range(30))
        (lab.vault / "labels" / f"secret.{kind}").write_text(text)
    assert lab.organiser("rebuild").code == 0
    lab.share()
    submission = send(lab, here.image, open_runs=True)
    assert run(lab, here, submission).code == 0
    assert lab.publish(submission, now=NEXT).code == 0
    (row,) = [row for row in lab.rows() if row["id"] == submission]
    assert row["scores"]["secret"] == 1.0
    assert lab.audit()["ok"]
    lab.push()
    public = b"".join(f.read_bytes() for f in lab.board.rglob("*") if f.is_file())
    assert b"what is secret" not in public
    assert b"secret queries are secret" in public
    files = read_files(lab.archive(now=NEXT))
    assert "labels/secret.tsv" in files
    assert f"runs/{submission}/secret" in files


def test_secret_queries_need_programs(lab: Lab) -> None:
    lab.edit(more=HIDDEN_SET.replace("labels/secret.tsv", "labels/other.tsv"))
    answer = lab.organiser("rebuild")
    assert "labels/secret.tsv, in the vault" in answer.err
    assert "required = true in [programs]" in answer.err
