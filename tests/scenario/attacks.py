"""The attacks of docs/reference/attacks.md. Run as a program it prints the tests that they name."""

import sys
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "attacks.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A line of the page.

    Attributes:
        name: the attack.
        module: path of its test's module below tests/.
        function: name of the test.
    """

    name: str
    module: str
    function: str


def _read_page() -> tuple[Attack, ...]:
    """The lines of all tables of the page; a ditto mark repeats the cell above."""
    found, above = list[Attack](), [""] * 3
    for line in PAGE.read_text("utf-8").splitlines():
        if not line.startswith("| ") or line.startswith(("| attack |", "| --- |")):
            continue
        name, *cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
        above = [last if cell == "″" else cell for cell, last in zip(cells, above, strict=True)]
        module, _, function = above[-1].strip("`").partition("::")
        found.append(Attack(name=name, module=module, function=function))
    return tuple(found)


ATTACKS = _read_page()

if __name__ == "__main__":
    tests = dict.fromkeys(f"tests/{attack.module}::{attack.function}\n" for attack in ATTACKS)
    sys.stdout.write("".join(tests))
