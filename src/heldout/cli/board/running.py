"""`heldout run`: run a program that was sent in place of runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import click

from heldout.cli.context import Identifier, OrganiserPlace, ended_in_order, next_facts, persist
from heldout.cli.options import with_options
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.log.manifest import Costs
    from heldout.board.organiser.running import Ran, RunPlan


@click.command()
@with_options
def run(
    *,
    submission: Identifier,
    engine: Annotated[
        str,
        Opt(
            "Program that runs containers, with its options [podman, else docker].",
            env="HELDOUT_ENGINE",
            metavar="COMMAND",
        ),
    ] = "",
    container_flags: Annotated[
        str,
        Opt(
            "Further options of the container, such as a device.",
            env="HELDOUT_CONTAINER_FLAGS",
            metavar="OPTIONS",
        ),
    ] = "",
    place: OrganiserPlace,
) -> None:
    """Run the program of a submission on the board's queries; what it writes becomes its runs.

    The program runs in a container without a network, within the limits of [programs] in
    board.toml. The image must be on this machine under the digest that the team sealed: nothing is
    fetched.
    Runs and measured costs are logged. Whatever fails leaves no event, and uses no quota.

    \b
    Example:
      heldout run 20261120-lighthouse-monot5
    """
    from heldout.board.organiser.containers import find_engine
    from heldout.board.organiser.running import find_meter, plan_run, record_run, run_plan

    def read() -> RunPlan | None:
        with place.session() as session:
            return plan_run(session, submission)

    plan = persist(read)
    if plan is None:
        _report(place, submission, None)
        return
    with ended_in_order():
        ran = run_plan(plan, find_engine(engine, container_flags, os.environ), meter=find_meter())

    def record() -> None:
        with place.session() as session:
            record_run(session, plan, ran)

    persist(record)
    _report(place, submission, ran)


def _report(place: OrganiserPlace, submission: str, ran: Ran | None) -> None:
    """Say what was written and what it cost, or that it was run before."""
    facts = [("ran", f"{submission}{'   (run before)' if ran is None else ''}")]
    if ran is not None:
        facts += [("wrote", f"{name}: {len(data):,} bytes") for name, data in ran.runs.items()]
        facts += [("measured", _say_costs(ran.costs)), ("with", ran.engine)]
    document = {
        "id": submission,
        "done_before": ran is None,
        "runs": None if ran is None else {name: len(data) for name, data in ran.runs.items()},
        "costs": None if ran is None else ran.costs,
        "engine": None if ran is None else ran.engine,
    }
    place.answer(document, [*facts, *next_facts(place.board(), [f"heldout review {submission}"])])


def _say_costs(costs: Costs) -> str:
    parts = [f"{costs.seconds:,.10g} s, {costs.query_latency_ms:,g} ms a query"]
    if costs.processor_seconds is not None:
        parts.append(f"{costs.processor_seconds:,.10g} s of processors")
    if costs.memory_mib is not None:
        parts.append(f"{costs.memory_mib:,.10g} MiB of memory")
    energy = (
        "no counter of energy here" if costs.energy_kwh is None else f"{costs.energy_kwh:g} kWh"
    )
    return ", ".join([*parts, energy])
