"""The table of attacks: what each tries, what becomes of it, and the test that shows it.

Run as a program it prints the page attacks.md, or with `--tests` the tests it points at.
"""

import sys
from collections.abc import Sequence

from attack_table import (
    clocks,
    containers,
    forges,
    links,
    metadata,
    organisers,
    probes,
    registrations,
    replays,
    requests,
    signed,
    uploads,
)
from attack_table.attack import Attack

__all__ = ["ATTACKS", "format_page"]

ATTACKS: tuple[Attack, ...] = (
    *requests.attacks(),
    *metadata.attacks(),
    *containers.attacks(),
    *replays.attacks(),
    *probes.attacks(),
    *organisers.attacks(),
    *registrations.attacks(),
    *clocks.attacks(),
    *forges.attacks(),
    *links.attacks(),
    *signed.attacks(),
    *uploads.attacks(),
)

_INTRODUCTION = """\
# Attacks

What participants, organisers, forges, clocks and copies may do to a board, and what becomes of it.
Each line names a test below `tests/`; `tests/scenario/test_attacks_by_*.py` play {own} of them
through the command line, with canaries that would exist had anything been run, and compare vault
and board byte for byte where nothing may change. The table is `tests/scenario/attacks.py`, and a
test holds this page to it.

**{count} attacks, all refused or contained.**

    python -m pytest tests/scenario/test_attacks*.py -q     # plays {own}, prints their counts
    python tests/scenario/attacks.py --tests > attacks.txt
    python -m pytest -q @attacks.txt                        # all {count}
"""


def format_page(attacks: Sequence[Attack]) -> str:
    """The page docs/reference/attacks.md."""
    own = sum(attack.module.startswith("scenario/test_attacks_by_") for attack in attacks)
    parts = [_INTRODUCTION.format(count=len(attacks), own=own)]
    for family in dict.fromkeys(attack.family for attack in attacks):
        parts.append(f"\n## {family}\n\n| attack | tries | what becomes of it | test |\n")
        parts.append("| --- | --- | --- | --- |\n")
        parts += [_format_row(attack) for attack in attacks if attack.family == family]
    return "".join(parts)


def _format_row(attack: Attack) -> str:
    return f"| {attack.name} | {attack.tries} | {attack.becomes} | `{attack.test}` |\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--tests"]:
        tests = dict.fromkeys(attack.test for attack in ATTACKS)
        sys.stdout.write("".join(f"tests/{test}\n" for test in tests))
    else:
        sys.stdout.write(format_page(ATTACKS))
