"""The help of each option is a phrase that stands alone, in plain words."""

import re
from collections.abc import Iterator

import click
import pytest

from heldout.cli.program import main

# Words that lean on something that is not there: "Of intervals.", "The port there."
LEANS = re.compile(
    r"(?:of|for|as|with|than|to|by|it|that|this|these|those|they|their|from|in|on|at|when|whether"
    r"|what|where|which|who|how|you|your|the|a|an)\b",
    re.IGNORECASE,
)
PRIVATE = re.compile(
    r"\b(?:anew|told|tells?|kept|keeps?|mends?|found|there|somebody|nobody|neither)\b"
)


def list_options(group: click.Group, path: str = "heldout") -> Iterator[tuple[str, str]]:
    """`heldout evaluate --qrels` and its help, for every option of every command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from list_options(command, f"{path} {name}")
        else:
            for option in command.params:
                if isinstance(option, click.Option) and not option.hidden:
                    yield f"{path} {name} {option.opts[-1]}", option.help or ""


def test_each_help_is_a_whole_phrase() -> None:
    helps = list(list_options(main))
    assert len(helps) > 500
    wrong = {
        option: text
        for option, text in helps
        if not re.fullmatch(r"[A-Z].*[.\]]", text)
        or text.count(" ") < 1
        or LEANS.match(text)
        or PRIVATE.search(text.split("[")[0])
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "text", ["Of intervals.", "The port there.", "As --run dev=FILE.", "What it has to do."]
)
def test_half_phrases_are_seen(text: str) -> None:
    assert LEANS.match(text)
