"""`heldout prefer simulate`: what each way of judging finds, and what it costs."""

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.console import progress
from heldout.cli.options import DecimalRange
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, print_answer, seed_option
from heldout.preferences.simulation import DESIGNS, SPREAD, simulate_design
from heldout.report import simulation as report

__all__ = ["simulate"]


@click.command
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.IntRange(2, 200),
    default=(4, 6),
    show_default=True,
    help="Passages of a pool; can be given many times.",
)
@click.option(
    "--design",
    "designs",
    multiple=True,
    type=click.Choice(list(DESIGNS)),
    help="Ways of judging; can be given many times [all].",
)
@click.option(
    "--pools",
    type=click.IntRange(2, 1_000_000),
    default=2000,
    show_default=True,
    help="Made-up pools of each size for each design.",
)
@click.option(
    "--spread",
    type=DecimalRange(0, 10, min_open=True),
    default=SPREAD,
    show_default=True,
    help="Standard deviation of strengths, in logits; at 0.8 judges are right 69% of the time.",
)
@seed_option
@output_options
@reports_errors
def simulate(
    *,
    sizes: tuple[int, ...],
    designs: tuple[str, ...],
    pools: int,
    spread: float,
    seed: int,
    output: Output,
) -> None:
    """How often does each way of judging find the best passage, and for how many judgments?

    Judges are made up, with strengths of passages that are known; every design is played with the
    functions that campaigns use.

    \b
    Example:
      heldout prefer simulate --size 6 --design tournament-1 --design lead-3
    """
    chosen = [DESIGNS[name] for name in designs or DESIGNS]
    found = []
    with progress("playing pools", len(sizes) * len(chosen)) as done:
        for size in sizes:
            for place, design in enumerate(chosen):
                rng = np.random.Generator(np.random.PCG64([seed, size, place]))
                found.append(
                    simulate_design(design, size=size, pools=pools, rng=rng, spread=spread)
                )
                done()
    print_answer(
        Answer(
            facts=report.facts(found, spread=spread),
            tables=report.tables(found),
            value=report.value(found, spread=spread, seed=seed),
        ),
        output,
    )
