"""Boards and analyses need no other wing: without them modules load and texts are found."""

import subprocess
import sys

SCRIPT = """
import sys
from importlib import import_module
from pkgutil import walk_packages

for name in ("judging", "survivorship", "rankers", "redteam"):
    sys.modules[f"heldout.{name}"] = None  # importing it fails
loaded = []
for name in ("heldout.board", "heldout.analyses"):
    package = import_module(name)
    for found in walk_packages(package.__path__, f"{name}."):
        loaded.append(import_module(found.name))
from heldout.answers import texts
assert texts._load().get_template("stability.txt").blocks
print(len(loaded))
"""


def test_each_module_of_boards_and_analyses_loads_without_the_other_wings() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60
