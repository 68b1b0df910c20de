"""`heldout analyse scales`: which values a measure can take, and how they are spaced."""

import re

import click

from heldout.answers.answer import Answer
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.measures.spec import parse_measure
from heldout.report.scales import facts, spec, tables, title, value
from heldout.validity.attainable import universe_of
from heldout.validity.scales import describe_scale

__all__ = ["scales"]

_GRADE = re.compile(r"\s*(\d{1,3})\s*(?::\s*(\d{1,6})\s*)?", re.ASCII)


@click.command
@click.option(
    "-m",
    "--measure",
    required=True,
    metavar="MEASURE",
    help="For example RR@3.",
)
@click.option(
    "--length",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Documents of each list [the measure's cutoff].",
)
@click.option(
    "--grades",
    default="1",
    show_default=True,
    metavar="G[:COUNT],...",
    help="Grades above 0, and how many documents have them [as many as a list is long].",
)
@output_options
@reports_errors
def scales(*, measure: str, length: int | None, grades: str, output: Output) -> None:
    """Which values can a measure take, and are they an interval scale?

    \b
    Example:
      heldout analyse scales -m RR@3
      heldout analyse scales -m nDCG@5 --grades 1:4,2:2,3:1 --chart ndcg.svg
    """
    parsed = parse_measure(measure, path="-m")
    depth = length or parsed.cutoff
    if depth is None:
        raise click.UsageError(f"{parsed} has no cutoff: how long are the lists? --length N")
    judged = _read_grades(grades, depth)
    scale = describe_scale(universe_of(parsed, length=depth, judged=judged))
    answer = Answer(
        facts=facts(scale),
        tables=tables(scale),
        value=value(scale),
        chart=lambda: spec(scale),
        title=title(scale),
    )
    print_answer(answer, output)


def _read_grades(text: str, length: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in text.split(","):
        match = _GRADE.fullmatch(part)
        if match is None or int(match[1]) == 0 or int(match[1]) in found:
            raise click.UsageError(f"--grades {text}: write grades above 0, as in 1,2 or 1:5,2:3")
        found[int(match[1])] = length if match[2] is None else int(match[2])
    return found
