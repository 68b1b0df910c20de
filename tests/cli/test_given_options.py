"""Options: each counts or is refused, none replaces another, and its help is a phrase."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from heldout.cli.program import GROUPS, main


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command of the program, with the words that call it."""
    waiting: list[tuple[str, click.Command]] = [("", main)]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                waiting.append((f"{words} {name}".strip(), below))


OPTIONS = [
    (words, max(option.opts, key=len), option)
    for words, command in commands()
    for option in command.params
    if isinstance(option, click.Option)
]
ONE_VALUE = [
    (words, name, option)
    for words, name, option in OPTIONS
    if not (option.multiple or option.is_flag or option.count)
]

# Words that lean on something that is not there: "Of intervals.", "The port there."
LEANS = re.compile(
    r"(?:of|for|as|with|than|to|by|it|that|this|these|those|they|their|from|in|on|at|when|whether"
    r"|what|where|which|who|how|you|your|the|a|an)\b",
    re.IGNORECASE,
)
PRIVATE = re.compile(
    r"\b(?:anew|told|tells?|kept|keeps?|mends?|found|there|somebody|nobody|neither)\b"
)


def call(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(main, list(arguments))
    return answer.exit_code, answer.output


def test_the_walk_finds_the_options_that_silently_took_the_last_value() -> None:
    known = {f"{words} {name}" for words, name, _ in ONE_VALUE}

    assert known >= {
        "evaluate --qrels",
        "evaluate --facet",
        "compare --qrels",
        "analyse stability --qrels",
        "prefer labels --measure",
        "prefer contests --judgments",
        "survive depths --qrels",
        "survive depths --annotations",
        "board new --eval",
    }


@pytest.mark.parametrize(
    ("words", "name", "option"), ONE_VALUE, ids=[f"{w} {n}" for w, n, _ in ONE_VALUE]
)
def test_an_option_of_one_value_is_refused_when_it_stands_twice(
    words: str, name: str, option: click.Option
) -> None:
    given = [name, *(f"value{place}" for place in range(option.nargs))]

    code, output = call(*words.split(), *given, *given)

    assert code == 2
    assert f"{name} is given 2 times, and takes one value: give it once" in output


def test_every_spelling_of_an_option_is_that_option() -> None:
    code, output = call("evaluate", "a.run", "--qrels=a", "-m", "RR", "--qrels", "b")
    assert (code, "--qrels is given 2 times" in output) == (2, True)
    code, output = call("prefer", "labels", "-mRR@10", "--measure", "RR")
    assert (code, "--measure is given 2 times" in output) == (2, True)


def test_flags_may_stand_twice_and_so_may_options_of_many_values() -> None:
    code, output = call(
        "evaluate", "none.run", "--json", "--json", "-m", "RR", "-m", "AP", "--qrels=none"
    )
    assert code == 2
    assert "none" in output
    assert "times" not in output


def test_a_value_that_looks_like_an_option_is_a_value() -> None:
    _, output = call("evaluate", "none.run", "-m", "--qrels", "--qrels", "none")
    assert "times" not in output


def test_h_asks_for_the_help_of_every_command() -> None:
    program = click.Context(main, **main.context_settings)
    names = [
        set(command.get_help_option_names(click.Context(command, parent=program)))
        for _, command in commands()
        if command is not main
    ]

    assert len(names) > len(main.list_commands(program))
    assert all(one == {"-h", "--help"} for one in names)
    assert CliRunner().invoke(main, ["-h"]).output.startswith("Usage: ")


def test_help_wins_over_what_stands_twice() -> None:
    assert call("evaluate", "--qrels", "a", "--qrels", "b", "--help")[0] == 0


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("eval", "evaluate"),
        ("evalaute", "evaluate"),
        ("re", "redteam or register or reject or rebuild or restore or review"),
        ("analyse stabilty", "stability"),
        ("prefer pols", "pool"),
        ("survive dephts", "depths"),
        ("board xyz", ""),
        ("Evaluate", "evaluate"),
        ("stability", "analyse stability"),
        ("stabilty", "analyse stability"),
        ("report", "analyse report or prefer report"),
        ("analyse eval", "heldout evaluate"),
        ("prefer stability", "heldout analyse stability"),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(words: str, near: str) -> None:
    code, output = call(*words.split())

    assert code == 2
    assert f"No such command '{words.rsplit(maxsplit=1)[-1]}'." in output
    assert ("Did you mean" in output) == bool(near)
    if near:
        named = output.split("Did you mean ")[1].strip().removesuffix("?")
        assert set(named.split(" or ")) == set(near.split(" or "))


def complete(line: str, *, shell: str = "bash") -> list[str]:
    """What the program offers for the last word of a line."""
    words = line.split(" ")
    given = {
        "_HELDOUT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    answer = CliRunner().invoke(main, [], env=given, prog_name="heldout")
    assert answer.exit_code == 0, answer.output
    return answer.output.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    answer = CliRunner().invoke(
        main, [], env={"_HELDOUT_COMPLETE": f"{shell}_source"}, prog_name="heldout"
    )

    assert answer.exit_code == 0
    assert f"_HELDOUT_COMPLETE={shell}_complete" in answer.output


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("heldout ev", ["plain,evaluate"]),
        ("heldout analyse st", ["plain,stability"]),
        ("heldout analyze st", ["plain,stability"]),
        ("heldout evaluate --per", ["plain,--per-query"]),
        ("heldout rank --queries d", ["plain,dev"]),
        ("heldout evaluate bm", ["file,bm"]),
        ("heldout evaluate --qrels d", ["file,d"]),
        ("heldout evaluate --qrels a --qrels b --per", ["plain,--per-query"]),
        ("heldout evil --per", []),
    ],
)
def test_a_shell_completes_what_is_not_finished(line: str, offered: list[str]) -> None:
    assert complete(line) == offered


def test_completion_offers_every_command() -> None:
    for group, table in GROUPS.items():
        offered = complete(f"heldout {group} ".replace("  ", " "))
        assert offered == [f"plain,{name}" for name in table]


def test_each_help_is_a_whole_phrase() -> None:
    helps = {f"{words} {name}": one.help or "" for words, name, one in OPTIONS if not one.hidden}
    assert len(helps) > 500
    assert not {
        option: text
        for option, text in helps.items()
        if not re.fullmatch(r"[A-Z].*[.\]]", text)
        or " " not in text
        or LEANS.match(text)
        or PRIVATE.search(text.split("[")[0])
    }
