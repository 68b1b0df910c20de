"""Faults put into the intake by hand, and whether its random test finds them.

    python tests/intake/intake_faults.py [NAME ...]

Each fault is a text of the source and what replaces it, in a copy of `src`. The random test runs as
in CI, with as many examples, but looks for no shorter one. Exit 1 where a fault is not found.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

FAULTS: Mapping[str, tuple[str, str, str]] = {
    "no quota check": (
        "uploads.py",
        "    if quota is not None:\n        check_quota(connection, team, quota, now=now)\n",
        "",
    ),
    "no quota check at the end": (
        "uploads.py",
        "            _check_new(connection, team, found.owner, quota, now=now)\n",
        "            pass\n",
    ),
    "quota one too many": (
        "quota.py",
        "    if state.next_allowed <= now:",
        "    if state.next_allowed <= now or len(state.used) <= state.limit:",
    ),
    "quota counts the open window only by day": (
        "quota.py",
        "limit=quota.limit)\n    since",
        "limit=quota.limit + 1)\n    since",
    ),
    "no digest check": (
        "hand_over.py",
        "if digest != file.digest:",
        "if False:",
    ),
    "digest of the first file alone": (
        "hand_over.py",
        "if digest != file.digest:",
        "if digest != file.digest and file.name.endswith('.key.age'):",
    ),
    "no check of a taken id": (
        "uploads.py",
        "    if logged or connection.execute(taken).first() is not None:",
        "    if False:",
    ),
    "no check of missing bytes": (
        "uploads.py",
        "if file.received != file.size:",
        "if False:",
    ),
    "no check of the offset": (
        "uploads.py",
        "        if offset != here:",
        "        if False:",
    ),
    "no check of the declared size": (
        "uploads.py",
        "        if self.received + len(data) > self._size:",
        "        if False:",
    ),
    "uploads of other teams": (
        "uploads.py",
        "select(uploads.c.id).where(uploads.c.id == name, uploads.c.team == team)",
        "select(uploads.c.id).where(uploads.c.id == name)",
    ),
    "an invitation works twice": (
        "teams.py",
        "    if row.used_at is not None:",
        "    if False:",
    ),
    "an invitation never ends": (
        "teams.py",
        "    if row.expires_at <= now:",
        "    if False:",
    ),
    "a cancelled upload is completed": (
        "uploads.py",
        '        if found.state != "open":\n            raise _ended(found.state)\n        for',
        "        for",
    ),
    "replaced deliveries stay": (
        "hand_over.py",
        "        for replaced in replaced_uploads(connection, upload):",
        "        for replaced in ():",
    ),
    "nothing is swept": (
        "uploads.py",
        "        old = connection.execute(old_ones).scalars().all()",
        "        old = []",
    ),
    "a new token leaves sessions": (
        "teams.py",
        "        connection.execute(update(tokens).where(held).values(revoked_at=now))\n",
        "",
    ),
    "a new token leaves identities": (
        "teams.py",
        "        connection.execute(remove(identities).where(identities.c.team == team))\n",
        "",
    ),
    "a closed team enters": (
        "teams.py",
        "row.team))\n    return None if team.closed is not None else team",
        "row.team))\n    return team",
    ),
}
"""Name -> module of `heldout.intake`, a text that stands in it once, and what takes its place."""

_RUN = """
import logging, sys, time
sys.path[:0] = [{intake!r}, {tests!r}]
logging.disable(logging.CRITICAL)
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from test_intake_random import RandomUploads, TestRandomUploads
as_in_ci = TestRandomUploads.settings
try:
    run_state_machine_as_test(RandomUploads, settings=settings(
        max_examples=as_in_ci.max_examples, stateful_step_count=as_in_ci.stateful_step_count,
        phases=[Phase.generate], derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    ))
except BaseException as error:
    print(f"found    {{time.process_time():.1f} s", type(error).__name__)
    sys.exit(1)
print(f"nothing  {{time.process_time():.1f} s")
""".replace("{{", "{")


def run_random(source: Path) -> subprocess.CompletedProcess[str]:
    """The random test over a copy of `src`: exit 1 where it finds something."""
    program = _RUN.replace("{intake!r}", repr(str(ROOT / "tests" / "intake")))
    program = program.replace("{tests!r}", repr(str(ROOT / "tests")))
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def try_fault(name: str, folder: Path) -> bool:
    """Whether the random test finds a fault."""
    module, old, new = FAULTS[name]
    source = folder / name.replace(" ", "-")
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    path = source / "heldout" / "intake" / module
    text = path.read_text("utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{name}: the text stands {text.count(old)} times in {module}")
    path.write_text(text.replace(old, new), "utf-8")
    done = run_random(source)
    sys.stdout.write(f"{name:44} {done.stdout.strip() or done.stderr[-300:]}\n")
    shutil.rmtree(source)
    return done.returncode == 1 and done.stdout.startswith("found")


def main(names: list[str]) -> int:
    """Try faults by name, or all of them, after the code as it is."""
    with tempfile.TemporaryDirectory(prefix="heldout-faults-") as folder:
        if run_random(ROOT / "src").returncode:
            sys.stdout.write("the code as it is fails\n")
            return 2
        found = [try_fault(name, Path(folder)) for name in names or FAULTS]
    sys.stdout.write(f"{sum(found)} of {len(found)} found\n")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
