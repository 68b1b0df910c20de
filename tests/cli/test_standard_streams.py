"""Standard output that is closed, full, or of another encoding; Ctrl-C inside a library."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from heldout.cli.program import GROUPS, CommandRow, main

EVALUATE = ("evaluate", "a.tsv", "--qrels", "a.qrels", "-m", "RR@10")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("q1\td1\t1\n")
    Path("a.qrels").write_text("q1 0 d1 1\n")


def shell(redirection: str, *arguments: str, **more: str) -> tuple[int, str]:
    """Exit code and standard error of the program under a redirection of the shell."""
    settings = [f"{name}={value}" for name, value in more.items()]
    words = ["env", *settings, sys.executable, "-m", "heldout", *arguments]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_full_disk_behind_standard_output_is_told() -> None:
    for unbuffered, place, where in (
        ("", "standard output: ", ""),
        ("1", "", " (--debug shows where)"),
    ):
        code, said = shell("> /dev/full", *EVALUATE, PYTHONUNBUFFERED=unbuffered)
        assert code == 2
        assert said == f"error     {place}No space left on device{where}\n"


def test_what_fails_elsewhere_is_not_laid_to_standard_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command
    def doctor() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    module = type(sys)("heldout.cli.elsewhere")
    vars(module)["doctor"] = doctor
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = CommandRow(module="elsewhere", group="start", help="")
    monkeypatch.setattr(main, "table", {**GROUPS[""], "doctor": entry})
    done = CliRunner().invoke(main, ["doctor"])
    assert (done.exit_code, done.stderr) == (
        2,
        "error     Input/output error (--debug shows where)\n",
    )
    monkeypatch.setattr(sys, "argv", ["heldout", "--debug", "doctor"])
    assert isinstance(CliRunner().invoke(main, ["--debug", "doctor"]).exception, OSError)


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-"])
def test_a_closed_standard_output_takes_nothing_and_ends_nothing(redirection: str) -> None:
    assert shell(redirection, *EVALUATE) == (0, "")


def test_what_the_encoding_lacks_is_written_as_an_escape() -> None:
    Path("sömething.tsv").write_text("q1\td1\t1\n")
    words = ["sömething.tsv", *EVALUATE[2:]]
    done = subprocess.run(
        ["env", "PYTHONIOENCODING=ascii", sys.executable, "-m", "heldout", "evaluate", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "s\\xf6mething" in done.stdout


def test_ctrl_c_inside_a_library_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    @click.command
    def doctor() -> None:
        try:
            interrupt()
        except KeyboardInterrupt as error:
            raise ImportError("half a library") from error

    module = type(sys)("heldout.cli.interrupted")
    vars(module)["doctor"] = doctor
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = CommandRow(module="interrupted", group="start", help="")
    monkeypatch.setattr(main, "table", {**GROUPS[""], "doctor": entry})
    done = CliRunner().invoke(main, ["doctor"])
    assert (done.exit_code, done.stderr) == (1, "Aborted!\n")


def test_a_process_ends_without_freeing_its_memory() -> None:
    program = (
        "import atexit, sys, heldout.cli.program as program\n"
        "class Held:\n"
        "    def __del__(self): print('freed')\n"
        "def main():\n"
        "    sys.held = Held()\n"
        "    atexit.register(print, 'handlers are called', end='')\n"
        "    sys.exit(int(sys.argv[1]))\n"
        "program.main = main\n"
        "program.run()\n"
    )
    for status in (0, 1, 2):
        words = [sys.executable, "-c", program, str(status)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (status, "handlers are called")


def test_a_traceback_ends_as_any_other() -> None:
    program = "import heldout.cli.program as program; program.main = lambda: 1 / 0; program.run()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1][:17]) == (1, b"ZeroDivisionError")
