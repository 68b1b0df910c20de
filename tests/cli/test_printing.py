"""Problems and failures as people see them."""

import io
import math
from dataclasses import asdict

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from heldout.cli import printing
from heldout.errors import InputError, Problem, SetupError, plural, printable

REPEATED = Problem(
    code="repeated-document",
    path="eval.trec.gz",
    line=48187,
    found="d04417 again for q0482, first on line 48150",
    expected="each document once per query",
    hint="remove repeats before cutting at 100",
)
LINK = Problem(
    code="not-a-link",
    path="metadata.json:paper",
    found='"arxiv.org/abs/2611.01234"',
    expected='an http or https address, or ""',
    hint='"https://arxiv.org/abs/2611.01234"',
)


def console(*, width: int = 80, terminal: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )


def text_of(used: Console) -> str:
    assert isinstance(used.file, io.StringIO)
    return used.file.getvalue()


def test_problems_look_as_designed() -> None:
    used = console()
    printing.print_problems(used, [REPEATED, LINK])
    assert text_of(used) == (
        "error  repeated-document  eval.trec.gz:48187\n"
        "       found     d04417 again for q0482, first on line 48150\n"
        "       expected  each document once per query\n"
        "       hint      remove repeats before cutting at 100\n"
        "error  not-a-link  metadata.json:paper\n"
        '       found     "arxiv.org/abs/2611.01234"\n'
        '       expected  an http or https address, or ""\n'
        '       hint      "https://arxiv.org/abs/2611.01234"\n'
    )


def test_what_is_hidden_is_counted_and_repeats_are_short() -> None:
    used = console()
    counts = {"repeated-document": 1002, "not-a-link": 1}
    printing.print_problems(used, [REPEATED, REPEATED, LINK], counts=counts)
    assert text_of(used).count("expected  each document once") == 1
    assert text_of(used).count("found     d04417") == 2
    assert text_of(used).endswith("       and 1,000 more of repeated-document\n")
    assert printing.count_errors([REPEATED, LINK], counts) == 1003
    note = Problem(code="n", path="p", found="f", expected="e", severity="note")
    assert printing.count_errors([note, LINK], {"n": 7}) == 1


def test_colour_only_on_a_terminal() -> None:
    used = console(terminal=True)
    printing.print_problems(used, [REPEATED])
    assert "\x1b[" in text_of(used)
    assert text_of(used).splitlines()[0].endswith("repeated-document  eval.trec.gz:48187")


def test_long_text_hangs_on_a_terminal_and_is_whole_in_a_pipe() -> None:
    long = "word " * 30
    narrow, pipe = console(width=40, terminal=True), console(width=40)
    for used in (narrow, pipe):
        printing.print_facts(used, [("queries", long), ("", "more")])
    lines = text_of(narrow).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert all(line.startswith(" " * 10) for line in lines[1:])
    assert text_of(pipe) == f"queries   {long.strip()}\n          more\n"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain é 文", "plain é 文"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202egnp", "\\u202egnp"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_plain(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_markup_is_not_read() -> None:
    used = console(terminal=True)
    printing.print_facts(used, [("team", "[red]x[/red] :smile:")])
    assert text_of(used) == "team      [red]x[/red] :smile:\n"


def test_no_value_of_a_template_begins_a_line() -> None:
    facts = printing.fill_facts("reported", missing=["a\nnext | b"], earlier=(), waiting=())
    assert [name for name, _ in facts] == ["warning"]


def test_table() -> None:
    used = console()
    printing.print_table(used, ["run", "RR@10"], [["a", "0.1"], ["longer", "10.25"]])
    assert text_of(used) == "run     RR@10\na         0.1\nlonger  10.25\n"


def test_words() -> None:
    assert (printing.number(None), printing.number(0.66666), printing.number(2, decimals=1)) == (
        "-",
        "0.6667",
        "2.0",
    )
    assert plural(1, "query", "queries") == "1 query"
    assert plural(1050, "query", "queries") == "1,050 queries"
    assert plural(0, "note") == "0 notes"


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        printing.print_json({"score": math.nan})


def test_problem_in_json() -> None:
    found = asdict(LINK)
    assert (found["code"], found["line"], found["severity"]) == ("not-a-link", None, "error")


def call(error: Exception, *arguments: str) -> tuple[int, str, BaseException | None]:
    @click.group()
    @click.option("--debug", is_flag=True)
    def main(*, debug: bool) -> None:
        del debug

    @main.command()
    @printing.reported_errors()
    def go() -> None:
        raise error

    done = CliRunner().invoke(main, [*arguments, "go"])
    return done.exit_code, done.stderr, done.exception


def test_errors_end_without_a_traceback() -> None:
    code, text, _ = call(InputError(LINK))
    assert (code, text.splitlines()[0]) == (2, "error  not-a-link  metadata.json:paper")
    code, text, _ = call(SetupError("no chromium; apt-get install chromium"))
    assert (code, text) == (2, "error  no chromium; apt-get install chromium\n")


def test_debug_lets_errors_through() -> None:
    _, text, raised = call(InputError(LINK), "--debug")
    assert text == ""
    assert isinstance(raised, InputError)


def test_bugs_go_through() -> None:
    _, _, raised = call(KeyError("bug"))
    assert isinstance(raised, KeyError)


def test_fail_with_another_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as caught:
        printing.fail(SetupError("x"), status=1)
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err == "error  x\n"
