"""Commands called in this process, as somebody types them."""

import json
from typing import Any

from click.testing import CliRunner, Result

from heldout.cli.program import main


def call(*words: object) -> Result:
    """Call a command, which may end in no other way than by its status."""
    result = CliRunner().invoke(main, [*map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def answer(*words: object) -> Any:
    """Return the document of a command that says all in JSON."""
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*words: object) -> str:
    """Return what a command says that is refused, and that prints nothing."""
    result = call(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Traceback" not in result.stderr
    return result.stderr
