"""An organiser's own run: scored like any other, shown without rank, trophy or quota."""

from collections.abc import Mapping
from pathlib import Path

from heldout.board.log.manifest import Identity
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, Problem
from heldout.ids import parse_submission_id
from heldout.pipeline.deciding.decide import Decision, publish_baseline
from heldout.pipeline.organiser.desk import Desk, note_held_out
from heldout.pipeline.query_sets.seeds import check_seeds
from heldout.pipeline.query_sets.sets import load_sets
from heldout.pipeline.scoring.rescoring import score_baseline

__all__ = ["add_baseline"]

_NAME = "organisers"


def add_baseline(desk: Desk, name: str, runs: Mapping[str, Path], *, description: str) -> Decision:
    """Score an organiser's runs and log them as a baseline.

    Args:
        desk: its lock is held.
        name: a submission id, yyyymmdd-name.
        runs: run (`SET`, `SET~2` and so on) -> its file, of each set of the board.
        description: the system, as the page shows it.

    Raises:
        InputError: a run is missing or has errors, or the name is taken.
    """
    parse_submission_id(name)
    note_held_out(desk)
    spec = desk.spec().on(desk.now.date())
    firsts = {name for name in runs if "~" not in name}
    problems = [_wrong_set(n, runs, spec) for n in sorted(firsts ^ set(spec.sets))]
    problems += check_seeds(runs, sets=spec.sets, most=spec.runs.seeds, path="baseline")
    problems += [_no_file(path) for path in runs.values() if not path.is_file()]
    if problems:
        raise InputError(problems)
    sets = load_sets(desk.repository, spec, vault=desk.vault)
    scored = score_baseline(spec, sets, runs)
    identity = Identity(
        team=_NAME, institution="", description=description, paper="", code="", training_data=""
    )
    return publish_baseline(desk, name, scored, identity)


def _wrong_set(name: str, runs: Mapping[str, Path], spec: BoardSpec) -> Problem:
    return Problem(
        code="missing-run",
        path="baseline",
        found=f"a run for '{name}'" if name in runs else f"no run for '{name}'",
        expected="one run for each of: " + ", ".join(spec.sets),
    )


def _no_file(path: Path) -> Problem:
    return Problem(
        code="unreadable-file",
        path=str(path),
        found="no such file",
        expected="a run file that can be read",
    )
