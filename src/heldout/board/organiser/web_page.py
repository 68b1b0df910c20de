"""Puts the page of a board on the web: writes the workflow by which its forge publishes it."""

from dataclasses import dataclass
from datetime import datetime

from heldout.board.organiser.rebuild import KEEPER
from heldout.board.rules.spec import BoardSpec, ForgeSpec
from heldout.board.rules.template import PAGE_PATHS, is_generated_page, page_files
from heldout.board.store.repository import Repository
from heldout.errors import InputError

_DOCS = "docs/how-to/publish-the-page.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePublication:
    """How a board's page gets on the web.

    Attributes:
        path: of the workflow in the board.
        commit: that brought it, `None` where the board has it already or is no git repository.
        changed: whether it was written now.
        home: address of the page, "" where it is not known.
        steps: what is left to a person, in order.
    """

    path: str
    commit: str | None
    changed: bool
    home: str
    steps: tuple[str, ...]


def publish_page(repository: Repository, *, now: datetime) -> PagePublication:
    """Write the workflow, and commit it. No vault is needed, and nothing is pushed.

    Args:
        repository: the board; its lock is held.
        now: time of the commit, UTC.

    Raises:
        InputError: code `page-workflow`: the board's forge has no pages that heldout knows,
            `install` is not stated, or somebody has edited the workflow.
        StoreError: the log is missing or damaged.
    """
    spec = repository.spec()
    forge = _require_forge(spec)
    ((path, data),) = page_files(forge, install=spec.install).items()
    there = repository.files.find(path)
    if there not in (None, data) and not is_generated_page(forge.kind, there or b""):
        raise InputError.of(
            code="page-workflow",
            path=path,
            found="a file that heldout did not write, or that was edited",
            expected="the file of heldout, or none",
            hint=f"remove it and call again, or add the jobs yourself: {_DOCS}",
        )
    changed = repository.write_file(path, data)
    git = repository.git
    commit = None
    if git.is_repository():
        author = git.configured_author() or KEEPER
        message = "Publish the page"
        commit = git.commit_paths([path], message=message, author=author, at=now)
    return PagePublication(
        path=path,
        commit=commit,
        changed=changed,
        home=spec.home or find_home(forge),
        steps=list_steps(forge, home=spec.home),
    )


def find_home(forge: ForgeSpec) -> str:
    """Address of the page of a project on github.com; "" where only the forge knows it."""
    if forge.kind != "github" or forge.host != "https://github.com":
        return ""
    owner, name = forge.project.lower().split("/")
    site = f"https://{owner}.github.io/"
    return site if name == f"{owner}.github.io" else f"{site}{forge.project.split('/')[1]}/"


def _require_forge(spec: BoardSpec) -> ForgeSpec:
    forge = spec.forge
    if forge is None or forge.kind not in PAGE_PATHS:
        raise InputError.of(
            code="page-workflow",
            path="board.toml:forge",
            found="no [forge]" if forge is None else f"kind = {forge.kind}",
            expected=f"a project on one of: {', '.join(PAGE_PATHS)}",
            hint=f"any web server can show the folder leaderboard: {_DOCS}",
        )
    if not spec.install:
        raise InputError.of(
            code="page-workflow",
            path="board.toml:install",
            found='""',
            expected="the address from which the forge installs heldout",
            hint="state it, then: heldout rebuild --vault DIR, and call again",
        )
    return forge


def list_steps(forge: ForgeSpec, *, home: str) -> tuple[str, ...]:
    """Return what a person does once, so that a forge of `PAGE_PATHS` publishes the page.

    Args:
        forge: the board's.
        home: address of the page that board.toml states, or "".
    """
    project = f"{forge.url.rstrip('/')}/{forge.project}"
    if forge.kind == "gitlab":
        return (
            f"add a schedule for every day: {project}/-/pipeline_schedules/new",
            f"see the address of the page: {project}/pages",
            *["state it in board.toml: home"] * (not home),
        )
    address = find_home(forge)
    known = f'home = "{address}"' if address else "home"
    return (
        f"turn GitHub Pages on: {project}/settings/pages, Source: GitHub Actions",
        *[f"state the address of the page in board.toml: {known}"] * (not home),
    )
