"""Runs a program that never ends, to be killed: `killed_program.py VAULT IMAGE OPTIONS…`."""

import os
import sys
from pathlib import Path

from heldout.board.log.manifest import Program
from heldout.board.organiser.containers import find_engine
from heldout.board.organiser.running import RunPlan, run_plan
from heldout.board.rules.spec import Programs
from heldout.board.store.vault import Vault

vault, image, _, words, _, flags = sys.argv[1:]
plan = RunPlan(
    id="20261102-one",
    program=Program(image=image, command=("sleep", "1000")),
    files={},
    programs=Programs(memory=48, disk=4, processors=1, processes=24, minutes=60),
    queries={"dev": {"q1": "a"}},
    candidates={},
    depth=10,
    vault=Vault(Path(vault)),
)
run_plan(plan, find_engine(words, flags, os.environ))
