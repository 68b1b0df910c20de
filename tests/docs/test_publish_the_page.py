"""docs/how-to/publish-the-page.md: its files are those that heldout writes, its command works."""

import re
import subprocess
from pathlib import Path

from heldout.board.rules import template
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.bundle import new_identity

PAGE = (Path(__file__).parents[2] / "docs/how-to/publish-the-page.md").read_text("utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_workflow_is_the_one_that_is_written() -> None:
    (install,) = set(re.findall(r"git\+https://github\.com/\S+?@v[0-9.]+", block("yaml")))
    assert block("yaml").encode() == template.format_page_workflow("github", install=install)


def test_the_example_s_rules_hold_and_its_steps_are_those_that_are_printed() -> None:
    key = new_identity("age").recipient
    spec = parse_spec(block("toml").replace("age1…", key).encode())
    assert spec.forge is not None
    plan = template.NewBoard(
        name=spec.name,
        title=spec.title,
        task=spec.task,
        opens=spec.opens,
        envelope=spec.envelope,
        recipients=["age1…"],
        measure="RR@10",
        order=spec.runs.order,
        depth=spec.runs.depth,
        sets={"dev": True, "eval": False},
        primary=spec.primary,
        forge=spec.forge,
        install=spec.install,
    )
    written = template.new_board_files(plan)["board.toml"].decode()
    lines = [line for line in written.splitlines() if line and not line.startswith("#")]
    shown = [line for line in block("toml").splitlines() if line]
    assert [line for line in lines if "home" not in line] == [
        line for line in shown if "home" not in line
    ]
    assert spec.home == template.find_home(spec.forge)
    assert all(step in PAGE for step in template.list_steps(spec.forge, home=""))


def test_the_folder_can_be_pushed_as_a_branch(tmp_path: Path) -> None:
    (command,) = re.findall(r"^(git push --force origin .*)$", PAGE, re.MULTILINE)
    board = tmp_path / "board"
    (board / "leaderboard" / "entries").mkdir(parents=True)
    for name in ("index.html", "entries/one.html"):
        (board / "leaderboard" / name).write_text(name)
    script = f"""
    git init -q --bare -b main ../server && git init -q -b main && git remote add origin ../server
    git config user.name x && git config user.email x@localhost
    git add . && git commit -qm page && {command} && {command}
    git -C ../server ls-tree -r --name-only pages && git -C ../server rev-list --count pages
    """
    made = subprocess.run(
        ["bash", "-e", "-c", script], cwd=board, capture_output=True, text=True, check=False
    )
    assert made.stdout.split() == ["entries/one.html", "index.html", "1"], made.stderr
