"""README and every tutorial are followed: commands are typed, and what they print is compared.

What a page may hold:

- ```console: lines with `$ ` are typed, those below are the output, of standard output and standard
  error together. A command whose line ends in a backslash goes on in the next line.
- ```pycon: lines for Python, compared by doctest.
- `...` stands for anything within a line; alone on a line it stands for any lines.
- `<!-- exit 1 -->` before a block: its last command ends with this code.
- `<!-- file NAME -->` before a block: the reader edits that file, and the block is what it gets.
- `<!-- judge N -->` before a block of `heldout serve`: N questions are answered over HTTP on the
  pages that it serves, with the passages that the page quotes; then it is interrupted.

The clock stands still at the moment of the pages, so days and ids are those of the reader's page.
"""

import asyncio
import difflib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import httpx2
import pytest

import ports

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from page_judge import Ending, PageJudge, Question  # noqa: E402 - where benchmarks are

TUTORIALS = (ROOT / "docs" / "tutorials").glob("*.md")
PAGES = [ROOT / "README.md", *sorted(page for page in TUTORIALS if page.stem != "index")]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^\n]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
END = "--- end of a command:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page and the note before it."""

    kind: str
    note: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed, and what the page shows below it."""

    typed: str
    shown: list[str] = field(default_factory=list)


def read_blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer(page):
        yield Block(kind=found["kind"], note=found["note"] or "", text=found["text"])


def read_commands(text: str) -> list[Command]:
    commands: list[Command] = []
    goes_on = False
    for line in text.splitlines():
        if goes_on:
            commands[-1] = Command(f"{commands[-1].typed}\n{line}")
        elif line.startswith("$ "):
            commands.append(Command(line[2:]))
        else:
            commands[-1].shown.append(line)
        goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
    return commands


def as_pattern(shown: Sequence[str]) -> re.Pattern[str]:
    """What the lines match: themselves, with `...` for what differs or is left out."""
    parts = [
        "(?:.*\n)*?"
        if line.strip() == "..."
        else ".*?".join(re.escape(piece) for piece in line.rstrip().split("...")) + "\n"
        for line in shown
    ]
    return re.compile("".join(parts))


def compare(command: str, shown: Sequence[str], printed: str) -> None:
    lines = [line.rstrip() for line in printed.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    text = "".join(f"{line}\n" for line in lines)
    if not as_pattern(shown).fullmatch(text):
        diff = "\n".join(difflib.unified_diff(list(shown), lines, n=99, lineterm=""))
        pytest.fail(f"$ {command}\nthe page (-) shows something else than is printed (+):\n{diff}")


class Shell:
    """One bash, in which the commands of a page are typed."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.environment = environment
        self.process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input: IO[str] = self.process.stdin
        self._output: IO[str] = self.process.stdout
        self._timer = threading.Timer(300, self._kill)
        self._timer.start()

    def _kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    def run(self, command: str) -> tuple[str, int]:
        """Type a command; what it prints, and its exit code."""
        self._input.write(f"{{ {command}\n}} </dev/null; printf '\\n%s %d\\n' '{END}' $?\n")
        self._input.flush()
        printed: list[str] = []
        for line in self._output:
            if line.startswith(END):
                return "".join(printed), int(line.rpartition(" ")[2])
            printed.append(line)
        pytest.fail(f"$ {command}\nthe shell ended:\n{''.join(printed)}")

    def close(self) -> None:
        self._timer.cancel()
        self._kill()
        self.process.wait()
        self._input.close()
        self._output.close()


STARTER = """#!{python}
import sys
from datetime import UTC, datetime
import heldout.cli.context
heldout.cli.context.read_clock = lambda: datetime({moment}, tzinfo=UTC)
from heldout.cli import main
sys.exit(main())
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell of somebody who has installed heldout and nothing else, at home in a new folder."""
    programs, home = tmp_path / "programs", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    starter = programs / "heldout"
    starter.write_text(STARTER.format(python=sys.executable, moment="2026, 12, 1, 10, 0"), "utf-8")
    starter.chmod(0o755)
    (home / ".gitconfig").write_text(
        "[user]\nname = Reader\nemail = reader@home.example\n", "utf-8"
    )
    environment = {
        "HOME": str(home),
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1",
    }
    shell = Shell(home, environment)
    try:
        yield shell
    finally:
        shell.close()


def follow(block: Block, shell: Shell) -> None:
    expected = int(block.note.removeprefix("exit ")) if block.note.startswith("exit ") else 0
    *_, last = commands = read_commands(block.text)
    for command in commands:
        printed, code = shell.run(command.typed)
        compare(command.typed, command.shown, printed)
        assert code == (expected if command is last else 0), f"$ {command.typed}\n{printed}"


def follow_python(block: Block, shell: Shell, folder: Path) -> None:
    (folder / "typed.txt").write_text(block.text, "utf-8")
    printed, code = shell.run("python -W error -m doctest -o ELLIPSIS ../typed.txt")
    assert code == 0, printed


def follow_judging(block: Block, shell: Shell, page: str) -> None:
    """Serve, judge, interrupt; the port of the page may be taken here."""
    port, folder = str(ports.free_port()), shell.run("pwd")[0].strip()
    (command,) = read_commands(block.text.replace("8765", port))
    with subprocess.Popen(
        command.typed.split(),
        cwd=folder,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        printed = ""
        try:
            for line in server.stdout:
                printed += line
                if line.startswith("stop"):
                    break
            compare(command.typed, command.shown, printed)
            await_server(int(port))
            ending = asyncio.run(judge(printed, page))
            assert (ending.status, f"judge {ending.answered}") == (200, block.note), ending
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0


def await_server(port: int) -> None:
    """Until it listens: it says how to stop it a moment before."""
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("nobody listens at the port that the page names")


async def judge(printed: str, page: str) -> Ending:
    """Follow the link; prefer whichever passage the page quotes the beginning of."""
    link = re.search(r"(http://\S+?)(/j/\S+)$", printed, re.MULTILINE)
    assert link is not None, printed

    def decide(question: Question) -> Literal["a", "b"]:
        quoted = re.findall(r'^- "(.+?)"', page, re.MULTILINE)
        return "a" if question.a.startswith(tuple(quoted)) else "b"

    async with httpx2.AsyncClient(base_url=link[1], timeout=30) as client:
        return await PageJudge(client=client, link=f"{link[2]}?worker=me", decide=decide).visit()


def follow_page(page: Path, shell: Shell, folder: Path) -> None:
    text = page.read_text("utf-8")
    for block in read_blocks(text):
        if block.note.startswith("file "):
            (folder / "home" / block.note.removeprefix("file ")).write_text(block.text, "utf-8")
        elif block.note.startswith("judge "):
            follow_judging(block, shell, text)
        elif block.kind == "console":
            follow(block, shell)
        elif block.kind == "pycon":
            follow_python(block, shell, folder)
        elif block.kind != "sh":  # installing it
            pytest.fail(f"{page.name}: nobody follows a block of {block.kind}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [PAGES[0], *(pytest.param(page, marks=pytest.mark.night) for page in PAGES[1:])],
    ids=lambda page: page.stem,
)
def test_a_tutorial_prints_what_it_shows(page: Path, shell: Shell, tmp_path: Path) -> None:
    follow_page(page, shell, tmp_path)


@pytest.mark.slow
@pytest.mark.real
def test_a_trec_collection_becomes_a_board(
    shell: Shell, tmp_path: Path, data: Callable[[str], Path]
) -> None:
    for name in ("doc-text.trec.gz", "query-text.trec", "qrels"):
        shutil.copy(data("small-collections/vaswani") / name, tmp_path / "home")
    follow_page(ROOT / "docs" / "how-to" / "raw-collection.md", shell, tmp_path)


def test_what_differs_is_shown() -> None:
    (command,) = read_commands("$ a \\\n  b\none ... 3\n...\nlast\n")
    assert command == Command("a \\\n  b", ["one ... 3", "...", "last"])
    compare("", command.shown, "one 2 3\nx\ny\nlast\n\n")
    compare("", command.shown, "one 3 3\nlast")
    with pytest.raises(pytest.fail.Exception, match=r"-last\n\+first"):
        compare("", ["same", "last"], "same\nfirst\n")
