"""Writes docs/explanation/papers.md: each figure that the five papers print, and ours beside it.

    python tools/papers.py > docs/explanation/papers.md
    python tools/papers.py --check                list the rows that are refused; 1 if there are any

The figures stand in docs/explanation/papers/*.toml, each with its place, measure and kind. Ours are
computed here: by a command of heldout and a jq filter over its JSON, or by a test that is named. A
row that compares two measures is refused, and so is one that calls unequal figures equal.
"""

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jq
import msgspec
from click.testing import CliRunner

from heldout.cli.program import main as heldout

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/explanation/papers"
KINDS = {
    "equal": "the same measure on the paper's data: equal in each digit that it prints",
    "differs": "the same measure on the paper's data: another number, with the reason that we know",
    "other data": "the same measure on other data: nobody should expect the same number",
    "arithmetic": "follows from other counts of the paper: it shows that they fit, and no more",
    "cannot": "nobody outside can compute it, and why",
}
BECAUSE = {
    "chart": "only drawn, no number is printed",
    "data": "the data are public, but not among those that this project tests with",
    "labels": "the labels are not public",
    "past": "it was counted on a page of the web, which has changed since",
    "people": "it needs new judgments by people",
    "queries": "the held-out queries and their labels are not public",
    "runs": "the runs of the MS MARCO boards are not public",
    "sample": "which queries were drawn is not published",
    "training": "it needs models trained at a size that is not at hand here",
}
_LONG = 60  # characters of a filter that a cell has room for
_FEW = 8  # more numbers than these are counted in a list of what cannot be had
_HEAD = """\
<!-- Written by tools/papers.py from docs/explanation/papers/*.toml: change those. -->

# The papers' figures, ours beside them

heldout implements what [five papers](references.md) describe. This page lists every figure that
they print: what the paper says, what heldout computes, and the command or the test that shows it.
CI computes ours each time. A figure stands beside one of the same measure only.

"""


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a paper prints at one place, and how ours is computed."""

    place: str
    what: str
    measure: str  # of the paper; "" for counts, dates, prices
    printed: tuple[str, ...]
    kind: Literal["equal", "differs", "other data", "arithmetic", "cannot"]
    data: str = ""
    command: str = ""  # {data} is the folder of the shared data
    jq: str = ""
    format: str = ""
    note: str = ""
    because: str = ""
    test: str = ""
    ours: tuple[str, ...] = ()


class Mistake(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What we believe a paper got wrong."""

    place: str
    says: str
    find: str
    shown: str


class Paper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file."""

    paper: str
    title: str
    figure: tuple[Figure, ...]
    mistake: tuple[Mistake, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute all; print the page, or what is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="print what is refused, no page")
    parser.add_argument("--data", type=Path, help="folder of the real data; else HELDOUT_DATA")
    options = parser.parse_args(arguments)
    data = (options.data or Path(os.environ.get("HELDOUT_DATA") or "../shared/data")).absolute()
    papers, refused = read_papers(), 0
    for paper in papers if options.check else ():
        for one in paper.figure:
            try:
                fault = find_fault(one) or (compute_ours(one, data) and "")
            except ValueError as error:
                fault = str(error)
            if fault:
                sys.stdout.write(f"{paper.paper}, {one.place}, {one.what}: {fault}\n")
                refused += 1
    if not options.check:
        sys.stdout.write(format_page(papers, lambda one: compute_ours(one, data)))
    return min(refused, 1)


def read_papers() -> list[Paper]:
    """All files, in the order of years."""
    papers = [
        msgspec.toml.decode(path.read_bytes(), type=Paper) for path in sorted(FOLDER.glob("*.toml"))
    ]
    return sorted(papers, key=lambda one: (one.paper.rsplit(" ", 1)[1], one.paper))


def find_fault(one: Figure) -> str:
    """Which rule a row breaks, as far as its text tells; nothing if it breaks none."""
    alone = one.kind == "arithmetic" and not one.test
    ways = [bool(one.command), bool(one.test), alone, one.kind == "cannot"]
    asked = re.findall(r"-m (\S+)", re.sub("[\"']", "", one.command))
    fitting = [name for name in asked if _fits(one.measure, name)]
    reasons = BECAUSE if one.kind == "cannot" else {""}
    faults = {
        "the paper's numbers are missing": not one.printed,
        "one way to compute ours is wanted: command and jq, jq alone, a test, or none": (
            sum(ways) != 1 or (bool(one.command) or alone) != bool(one.jq)
        ),
        f"because is one of {', '.join(BECAUSE)}, for what cannot be computed": (
            one.because not in reasons
        ),
        "ours is computed, and not written down": bool(one.ours) and not one.test,
        "a note says why ours differs": one.kind == "differs" and not one.note,
        "data says which these are": one.kind == "other data" and not one.data,
        f"the paper's measure is {one.measure or 'none'}, the command's {', '.join(asked)}": (
            bool(asked) and not fitting
        ),
        f"of several measures, jq takes none of {', '.join(fitting)}": (
            len(asked) > 1 and not any(name in one.jq for name in fitting)
        ),
    }
    return next((text for text, wrong in faults.items() if wrong), _find_fault_of_test(one))


def _find_fault_of_test(one: Figure) -> str:
    """Whether the test that a row names exists, and has ours."""
    path, _, name = one.test.partition("::")
    if not path:
        return ""
    source = (ROOT / path).read_text("utf-8")
    lacking = [text for text in one.ours or one.printed if text.strip("%") not in source]
    if f"\ndef {name}(" not in source or lacking:
        return f"no such test, or it does not have {', '.join(lacking)}: {one.test}"
    return ""


def _fits(printed: str, ours: str) -> bool:
    """Whether the paper's measure is ours; it may leave the depth open, rel= fits the grades."""
    name = re.sub(r"\([^)]*\)", "", ours)
    return printed == name or ("@" not in printed and printed == name.partition("@")[0])


def compute_ours(one: Figure, data: Path) -> tuple[str, ...]:
    """Ours, as the page has it.

    Raises:
        ValueError: the command fails, jq finds nothing, or unequal figures are called equal.
    """
    if one.kind == "cannot":
        return ()
    if one.test:
        return one.ours or one.printed
    found = jq.compile(one.jq).input_value(ask(one.command, data) if one.command else None).all()
    values = [value for part in found for value in (part if isinstance(part, list) else [part])]
    if not values or None in values:
        raise ValueError(f"{one.place}, {one.what}: jq finds {values}")
    ours = tuple(format(value, one.format) if one.format else str(value) for value in values)
    if one.kind in {"equal", "arithmetic"} and [*map(_strip, ours)] != [*map(_strip, one.printed)]:
        raise ValueError(f"{one.place}, {one.what}: printed {one.printed}, ours {ours}")
    return ours


def _strip(text: str) -> str:
    return text.replace(",", "").replace(" ", "").removeprefix("0")


@cache
def ask(command: str, data: Path) -> Any:
    """The JSON that a command of heldout prints.

    Raises:
        ValueError: it fails.
    """
    words: list[str] = []
    for word in shlex.split(command):
        name = word.removeprefix("{data}/")
        # heldout itself reads the pattern of an option.
        several = "*" in word and not words[-1].startswith("--")
        files = [str(path) for path in sorted(data.glob(name))] if several else []
        words += files or [word.replace("{data}", str(data))]
    done = CliRunner().invoke(heldout, [*words, "--json"])
    if done.exit_code:
        raise ValueError(f"heldout {command}: {done.output}")
    return json.loads(done.stdout)


def format_page(papers: Sequence[Paper], compute: Callable[[Figure], tuple[str, ...]]) -> str:
    """The page as Markdown."""
    figures = [one for paper in papers for one in paper.figure]
    ways = [*dict.fromkeys(one.command or one.test for one in figures if one.command or one.test)]
    numbers = {way: number for number, way in enumerate(ways, 1)}
    text = [_HEAD, *_format_counts(papers)]
    for paper in papers:
        text += [f"\n## {paper.paper}: {paper.title}\n\n"]
        text += _format_row("place", "what", "measure", "printed", "ours", "kind", "shown by")
        text += _format_row(*["---"] * 7)
        shown = [one for one in paper.figure if one.kind != "cannot"]
        text += [format_figure(one, compute(one), numbers) for one in shown]
        text += _format_missing([one for one in paper.figure if one.kind == "cannot"])
    text += ["\n## What we believe the papers got wrong\n\n"]
    text += _format_row("paper", "place", "it says", "we find", "shown by")
    text += _format_row(*["---"] * 5)
    for paper in papers:
        for wrong in paper.mistake:
            text += _format_row(paper.paper, wrong.place, wrong.says, wrong.find, wrong.shown)
    text += [
        "\n## The commands and tests\n\n`DATA` is the folder of the shared data. The filter of "
    ]
    text += [
        "each row, in the language of jq, stands in the project's `docs/explanation/papers/`.\n"
    ]
    for way, number in numbers.items():
        shell = f"heldout {way.replace('{data}', 'DATA')} --json"
        text_of = f"`{way}`" if "::" in way else f"\n\n```sh\n{shell}\n```"
        text += [f"\n(papers-{number})=\n**{number}.** {text_of}\n"]
    return "".join(text).rstrip("\n") + "\n"


def format_figure(one: Figure, ours: Sequence[str], numbers: Mapping[str, int]) -> str:
    """The row of one figure."""
    mine = "equal" if one.kind == "equal" else ", ".join(ours)
    mine += f" ({one.note})" if one.note else ""
    by = f"`{one.jq}`" if len(one.jq) <= _LONG else "its filter"
    if way := one.command or one.test:
        name = "test" if one.test else "command"
        by = f"[{name} {numbers[way]}](#papers-{numbers[way]})"
    kind = f"{one.kind}: {one.data}" if one.kind == "other data" else one.kind
    (row,) = _format_row(
        one.place, one.what, one.measure or "–", ", ".join(one.printed), mine, kind, by
    )
    return row


def _format_counts(papers: Sequence[Paper]) -> list[str]:
    """How many printed numbers are of which kind."""
    text = [f"- *{kind}*: {meaning}\n" for kind, meaning in KINDS.items()]
    text += ["\n", *_format_row("printed numbers", *(f"*{kind}*" for kind in KINDS))]
    text += _format_row("---", *["--:"] * len(KINDS))
    for paper in papers:
        counts = [
            sum(len(one.printed) for one in paper.figure if one.kind == kind) for kind in KINDS
        ]
        text += _format_row(paper.paper, *map(str, counts))
    return text


def _format_missing(figures: Sequence[Figure]) -> list[str]:
    """What cannot be computed, by reason."""
    text = []
    for because, meaning in BECAUSE.items():
        these = [one for one in figures if one.because == because]
        text += [f"\nCannot be computed, because {meaning}:\n\n"] if these else []
        for one in these:
            numbers = ", ".join(one.printed)
            few = numbers if len(one.printed) <= _FEW else f"{len(one.printed)} numbers"
            measure = f" ({one.measure})" * bool(one.measure)
            note = f" ({one.note})" * bool(one.note)
            text += [f"- {one.place}: {one.what}{measure}: {few}{note}\n"]
    return text


def _format_row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"]


if __name__ == "__main__":
    sys.exit(main())
