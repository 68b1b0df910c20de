"""The command line: arguments, printing, exit codes; a module per group of commands."""

from heldout.cli.program import main, run

__all__ = ["main", "run"]
