"""The workflow that a forge runs on every pull request of a board: it looks at the form only."""

from collections.abc import Mapping
from importlib.resources import files

from heldout.board.forge import ForgeKind

__all__ = ["WORKFLOW_PATHS", "format_workflow"]

WORKFLOW_PATHS: Mapping[ForgeKind, str] = {
    "github": ".github/workflows/submission.yml",
    "gitlab": ".gitlab-ci.yml",
    "forgejo": ".forgejo/workflows/submission.yml",
}
"""Forge -> path in the board; a folder and a bare repository run nothing."""


def format_workflow(kind: ForgeKind, *, version: str) -> bytes:
    """The workflow's YAML for a forge of `WORKFLOW_PATHS`.

    It needs no secret, runs nothing of the pull request and checks nothing of it out: the sealed
    files are fetched as objects, and the released heldout looks at their names and sizes.

    Args:
        kind: a key of `WORKFLOW_PATHS`.
        version: the heldout to install, as pip names it.
    """
    template = files("heldout.board").joinpath("templates", f"ci-{kind}.yml")
    return template.read_text("utf-8").replace("@VERSION@", version).encode()
