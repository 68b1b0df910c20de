"""The workflow that a forge runs on every pull request of a board: it looks at the form only."""

from collections.abc import Mapping
from importlib.resources import files

from heldout.board.rules.forge import ForgeKind, ForgeSpec

__all__ = ["WORKFLOW_PATHS", "format_workflow", "workflow_files"]

WORKFLOW_PATHS: Mapping[ForgeKind, str] = {
    "github": ".github/workflows/submission.yml",
    "gitlab": ".gitlab-ci.yml",
    "forgejo": ".forgejo/workflows/submission.yml",
}
"""Forge -> path in the board; a folder and a bare repository run nothing."""


def workflow_files(forge: ForgeSpec | None, *, install: str) -> Mapping[str, bytes]:
    """Path in the board -> workflow; none where it has no forge that runs one.

    Args:
        forge: where submissions are opened.
        install: address of heldout; while it is not stated there is no workflow, for a runner
            would take whatever an index has under the name.
    """
    path = None if forge is None else WORKFLOW_PATHS.get(forge.kind)
    if forge is None or path is None or not install:
        return {}
    return {path: format_workflow(forge.kind, install=install)}


def format_workflow(kind: ForgeKind, *, install: str) -> bytes:
    """The workflow's YAML for a forge of `WORKFLOW_PATHS`.

    It needs no secret, runs nothing of the pull request and checks nothing of it out: the sealed
    files are fetched as objects, and the released heldout looks at their names and sizes.

    Args:
        kind: a key of `WORKFLOW_PATHS`.
        install: the address that pip installs heldout from.
    """
    template = files("heldout.board").joinpath("templates", f"ci-{kind}.yml")
    return template.read_text("utf-8").replace("@INSTALL@", install).encode()
