"""The table of attacks: what each attempts, its result, and its test.

Run as a program it prints the page attacks.md, or with `--tests` the tests that it names.
"""

import sys
from collections.abc import Iterator, Sequence

from attack_table import (
    clocks,
    containers,
    forges,
    links,
    metadata,
    organisers,
    probes,
    pulls,
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
    *pulls.attacks(),
    *signed.attacks(),
    *uploads.attacks(),
)

_INTRODUCTION = """\
# Which attacks are tested?

**{count} attacks, all refused or contained.** Each line names its test below `tests/`; ″ is the same as in the line above.
*Unchanged*: vault and board are byte for byte as before. {own} attacks are played through the command line; their tests check that
nothing was run. The [threat model](../explanation/threat-model.md) says what an attacker can still do.

    python -m pytest tests/scenario/test_attacks*.py -q     # plays {own}, prints their counts
    python tests/scenario/attacks.py --tests > attacks.txt
    python -m pytest -q @attacks.txt                        # all {count}

`tests/scenario/attacks.py` writes this page.
"""  # noqa: E501 - lines of the page

_DITTO = "″"


def format_page(attacks: Sequence[Attack]) -> str:
    """The page docs/reference/attacks.md."""
    own = sum(attack.module.startswith("scenario/test_attacks_by_") for attack in attacks)
    parts = [_INTRODUCTION.format(count=len(attacks), own=own)]
    for family in dict.fromkeys(attack.family for attack in attacks):
        parts.append(f"\n## {family}\n\n| attack | attempt | result | test |\n")
        parts.append("| --- | --- | --- | --- |\n")
        parts += _format_rows([attack for attack in attacks if attack.family == family])
    return "".join(parts)


def _format_rows(attacks: Sequence[Attack]) -> Iterator[str]:
    """A row for each attack; a cell that repeats the one above is a ditto mark."""
    above = ("", "", "")
    for attack in attacks:
        cells = (attack.tries, attack.becomes, f"`{attack.test}`")
        shown = [_DITTO if cell == last else cell for cell, last in zip(cells, above, strict=True)]
        yield f"| {attack.name} | {' | '.join(shown)} |\n"
        above = cells


if __name__ == "__main__":
    if sys.argv[1:] == ["--tests"]:
        tests = dict.fromkeys(attack.test for attack in ATTACKS)
        sys.stdout.write("".join(f"tests/{test}\n" for test in tests))
    else:
        sys.stdout.write(format_page(ATTACKS))
