"""The page on the web: the workflow that is written, and what its shell does to a real board."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import DAY, Lab, fresh_lab, git

pytestmark = pytest.mark.night
ENDS, AFTER = "2026-12-10", "2026-12-11T03:23:00Z"
INSTALL = "https://example.org/heldout.whl"
FORGES = {
    "github": ("https://github.com", "Lab/kb", ".github/workflows/page.yml"),
    "gitlab": ("https://git.example.org", "ir/lab/kb", ".gitlab-ci.yml"),
}


lab = fresh_lab


def edit(lab: Lab, text: str, *, install: str = INSTALL) -> None:
    """Edit board.toml, and have the organiser log it."""
    lab.edit(('install = ""', f'install = "{install}"'), more=text)
    assert lab.organiser("rebuild").code == 0


def forge_table(kind: str) -> str:
    url, project, _ = FORGES[kind]
    return f'\n[forge]\nkind = "{kind}"\nurl = "{url}"\nproject = "{project}"\n'


def publish_page(lab: Lab) -> Any:
    return lab.participant("board", "publish-page", clone=lab.board)


@pytest.mark.parametrize("kind", FORGES)
def test_the_workflow_is_written_once_and_the_next_steps_are_named(lab: Lab, kind: str) -> None:
    url, project, path = FORGES[kind]
    edit(lab, forge_table(kind))
    answer = publish_page(lab).done()
    assert path in git(lab.board, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert git(lab.board, "status", "--porcelain") == ""
    assert f"{url}/{project}/" in answer.out
    assert "git push" in answer.out
    if kind == "github":
        assert 'home = "https://lab.github.io/kb/"' in answer.out
    assert "(done before)" in publish_page(lab).out
    newer = (lab.board / path).read_text("utf-8").replace(INSTALL, "https://example.org/old.whl")
    (lab.board / path).write_text(newer, "utf-8")
    assert publish_page(lab).code == 0
    assert INSTALL in (lab.board / path).read_text("utf-8")


def test_an_edited_workflow_is_left_alone(lab: Lab) -> None:
    edit(lab, forge_table("github"))
    assert publish_page(lab).code == 0
    path = lab.board / FORGES["github"][2]
    own = path.read_text("utf-8").replace("ubuntu-24.04", "our-runner")
    path.write_text(own, "utf-8")
    answer = publish_page(lab)
    assert (answer.code, path.read_text("utf-8")) == (2, own)
    assert "page-workflow" in answer.err


# The shell of the workflows, run as a runner does.


def stand_in(folder: Path, *, now: str) -> Path:
    """A `python3` whose `venv` has a pip that does nothing, and this heldout at a moment."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    call = f'#!/bin/sh\nexec "{sys.executable}" -m heldout "$@" --now {now}\n'
    files = {"pip": "#!/bin/sh\n", "heldout": call}
    files["python3"] = (
        f'#!/bin/sh\nmkdir -p "$3/bin"\ncp "{tools}/pip" "{tools}/heldout" "$3/bin"\n'
    )
    for name, text in files.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    return tools


def run(script: str, folder: Path, lab: Lab, *, now: str, **more: str) -> tuple[int, str]:
    """Run a step with the shell's options of GitHub, which end at the first failure only."""
    tools = stand_in(lab.root, now=now)
    result = subprocess.run(
        [str(shutil.which("bash")), "-e", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(lab.root),
            "BOARD": lab.forge.as_uri(),
            **more,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def build(lab: Lab, kind: str, *, now: str) -> tuple[Path, str]:
    """Build the page as a forge does: its folder, and what is due."""
    place = lab.root / f"runner-{len(list(lab.root.glob('runner-*')))}"
    place.mkdir()
    table: Mapping[str, Any] = yaml.safe_load((lab.board / FORGES[kind][2]).read_text("utf-8"))
    if kind == "gitlab":
        script = "\n".join(table["pages"]["script"]).replace("/tmp/", f"{place}/")  # noqa: S108 - what is replaced
        project = {"CI_PROJECT_DIR": str(place), "BRANCH": "main"}
        code, said = run(script, place, lab, now=now, **project)
        assert code == 0, said
        return place / "public", (place / "due.txt").read_text()
    output = place / "output"
    for step in table["jobs"]["build"]["steps"]:
        if "run" in step:
            given = {"RUNNER_TEMP": str(place), "GITHUB_OUTPUT": str(output)}
            code, said = run(step["run"], place, lab, now=now, **given)
            assert code == 0, said
    due = re.fullmatch(r"due<<([0-9a-f]{32})\n(.*)\1\n", output.read_text(), re.DOTALL)
    assert due is not None, "a mark that nobody can foresee ends the output"
    return place / "board" / "leaderboard", due[2]


def alarm(lab: Lab, kind: str, page: Path, due: str) -> tuple[int, str]:
    """Run the job that says what is due."""
    table = yaml.safe_load((lab.board / FORGES[kind][2]).read_text("utf-8"))
    if kind == "gitlab":
        return run("\n".join(table["due"]["script"]), page.parent, lab, now=AFTER)
    (step,) = table["jobs"]["due"]["steps"]
    return run(step["run"], page.parent, lab, now=AFTER, DUE=due)


@pytest.mark.parametrize("kind", ["github", pytest.param("gitlab", marks=pytest.mark.night)])
def test_a_forge_builds_the_page_and_says_which_embargo_waits_for_the_vault(
    lab: Lab, kind: str
) -> None:
    hidden = lab.enter("x", embargo=ENDS)
    edit(lab, forge_table(kind))
    assert publish_page(lab).code == 0
    lab.push()

    page, due = build(lab, kind, now=DAY)
    assert (due, hidden in (page / "index.html").read_text("utf-8")) == ("", True)
    clone = page if kind == "github" else page.parent / "board" / "leaderboard"
    assert not (clone.parent / "submissions").exists()

    page, due = build(lab, kind, now=AFTER)
    assert due.startswith(f"the name behind {hidden}, due since 10 Dec 2026")
    assert "Lighthouse" not in (page / "index.html").read_text("utf-8")
    assert "reveal due since" in (page / "index.html").read_text("utf-8")
    code, said = alarm(lab, kind, page, due)
    assert (code, hidden in said, "heldout rebuild --vault DIR" in said) == (1, True, True)
    waits = lab.organiser("inbox", "--no-fetch", now=AFTER)
    assert f"due       the name behind {hidden}" in waits.out
    assert "heldout rebuild" in waits.out

    lab.pull()
    for moment, said in ((DAY, "your names appear on 10 Dec"), (AFTER, "over since 10 Dec 2026")):
        assert said in lab.participant("status", hidden, now=moment).out
    (due_now,) = lab.participant("status", "--json", now=AFTER).json["due"]
    assert due_now == {"what": f"the name behind {hidden}", "since": ENDS}

    assert lab.organiser("rebuild", now=AFTER).code == 0
    lab.push()
    page, due = build(lab, kind, now=AFTER)
    assert (due, "Lighthouse" in (page / "index.html").read_text("utf-8")) == ("", True)
    assert "due" not in lab.organiser("inbox", "--no-fetch", now=AFTER).out
    lab.pull()
    assert "embargo" not in lab.participant("status", hidden, now=AFTER).out
