"""Whom submissions are sealed for: a wrong key in board.toml would lock every later one."""

import re
from collections.abc import Iterator, Sequence

from heldout.board.rules.spec import BoardSpec
from heldout.envelope.bundle import Form, recipient_of, seal_key
from heldout.errors import InputError, Problem, SetupError
from heldout.store.repository import SPEC
from heldout.store.vault import Vault

__all__ = ["among", "check_recipients", "own_recipients", "plain"]

_PROBE = b"any key\n"


def own_recipients(form: Form, vault: Vault) -> Iterator[str]:
    """The public halves of the vault's keys that are of a form, in the order of their files."""
    for private in vault.identities():
        try:
            yield recipient_of(form, private)
        except SetupError:
            continue  # of the board's other form, kept for what was sealed under it


def among(key: str, keys: Sequence[str]) -> bool:
    """Whether a public key is one of others, blanks and line ends aside."""
    return plain(key) in {plain(other) for other in keys}


def plain(key: str) -> str:
    """Without the blanks and line ends that a text file may add to a key."""
    return "".join(key.split())


def check_recipients(spec: BoardSpec, rules: str, vault: Vault | None) -> None:
    """Refuse recipients that nothing can be sealed for, or none of which the vault can open.

    Args:
        spec: of a board.toml.
        rules: its text, for the line.
        vault: holds the organisers' keys; `None` where it is not at hand.

    Raises:
        InputError: with every recipient that is wrong.
    """
    wrong = list(_find_malformed(spec.envelope, spec.recipients))
    if not wrong and vault is not None and not _opens(spec, vault):
        found = "no recipient whose private key lies in the vault's identities/"
        wrong = [(found, "at least one: nobody could open what is sealed from now on")]
    if wrong:
        raise InputError(_problem(found, expected, rules) for found, expected in wrong)


def _find_malformed(form: Form, recipients: Sequence[str]) -> Iterator[tuple[str, str]]:
    expected = {"age": "age recipients (age1...)", "openssl": "one RSA public key in PEM"}[form]
    faults = [*filter(None, (_refusal(form, [recipient]) for recipient in recipients))]
    for fault in faults or filter(None, [_refusal(form, recipients)]):
        yield fault, f'{expected}, as envelope = "{form}" has it'


def _refusal(form: Form, recipients: Sequence[str]) -> str:
    """Why nothing can be sealed for these recipients; empty where it can."""
    try:
        seal_key(form, _PROBE, recipients)
    except SetupError as error:
        return str(error)
    return ""


def _opens(spec: BoardSpec, vault: Vault) -> bool:
    ours = {_plain(recipient) for recipient in own_recipients(spec.envelope, vault)}
    return any(_plain(recipient) in ours for recipient in spec.recipients)


def _plain(recipient: str) -> str:
    """Without the blanks and line ends that a text file may add to a key."""
    return "".join(recipient.split())


def _problem(found: str, expected: str, rules: str) -> Problem:
    key = re.search(r"^[ \t]*recipients[ \t]*=", rules, re.MULTILINE)
    return Problem(
        code="board-spec",
        path=SPEC,
        line=None if key is None else rules.count("\n", 0, key.start()) + 1,
        found=found,
        expected=expected,
        hint="keys/organisers.txt has those of the last rules that were in force",
    )
