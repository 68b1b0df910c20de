"""The files that a new board begins with, as text; also the workflows that its forge runs.

One looks at the form of every pull request, the other puts the page on the web.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import msgspec

from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec import (
    BoardSpec,
    EnvelopeForm,
    Example,
    ForgeKind,
    ForgeSpec,
    Season,
    read_table,
)
from heldout.trec.orders import Order

if TYPE_CHECKING:
    import jinja2

WORKFLOW_PATHS: Mapping[ForgeKind, str] = {
    "github": ".github/workflows/submission.yml",
    "gitlab": ".gitlab-ci.yml",
    "forgejo": ".forgejo/workflows/submission.yml",
}
"""Forge -> path of the check in the board; a folder and a bare repository run nothing."""

PAGE_PATHS: Mapping[ForgeKind, str] = {
    "github": ".github/workflows/page.yml",
    "gitlab": WORKFLOW_PATHS["gitlab"],
}
"""Forge -> path of what puts the page on the web; GitLab has one file for all jobs."""


def workflow_files(forge: ForgeSpec | None, *, install: str) -> Mapping[str, bytes]:
    """Path in the board -> workflow; none where it has no forge that runs one.

    Args:
        forge: where submissions are opened.
        install: address of heldout; while it is not stated there is no workflow, for a runner
            would take whatever an index has under the name.
    """
    if forge is None or forge.kind not in WORKFLOW_PATHS or not install:
        return {}
    return {WORKFLOW_PATHS[forge.kind]: format_workflow(forge.kind, install=install)}


def page_files(forge: ForgeSpec | None, *, install: str) -> Mapping[str, bytes]:
    """Path in the board -> what puts the page on the web; arguments as in `workflow_files`."""
    if forge is None or forge.kind not in PAGE_PATHS or not install:
        return {}
    return {PAGE_PATHS[forge.kind]: format_page_workflow(forge.kind, install=install)}


def format_workflow(kind: ForgeKind, *, install: str) -> bytes:
    """The workflow's YAML for a forge of `WORKFLOW_PATHS`.

    It needs no secret, runs nothing of the pull request and checks nothing of it out: the sealed
    files are fetched as objects, and the released heldout looks at their names and sizes.

    Args:
        kind: a key of `WORKFLOW_PATHS`.
        install: the address that pip installs heldout from.
    """
    return _read_template(f"ci-{kind}.yml").replace(_INSTALL, install).encode()


def format_page_workflow(kind: ForgeKind, *, install: str) -> bytes:
    """The YAML for a forge of `PAGE_PATHS` that puts the page on the web.

    It builds the page from the public log, without secret or vault, and says what waits for these.

    Args:
        kind: a key of `PAGE_PATHS`.
        install: the address that pip installs heldout from.
    """
    return _read_template(_PAGES[kind]).replace(_INSTALL, install).encode()


def is_generated_page(kind: ForgeKind, data: bytes) -> bool:
    """Check whether heldout wrote a workflow of `PAGE_PATHS`: nobody has edited it."""
    parts = map(re.escape, _read_template(_PAGES[kind]).split(_INSTALL))
    return re.fullmatch(r"[^\s\"]+".join(parts).encode(), data) is not None


def find_home(forge: ForgeSpec) -> str:
    """Address of the page of a project on github.com; "" where only the forge knows it."""
    if forge.kind != "github" or forge.host != "https://github.com":
        return ""
    owner, name = forge.project.lower().split("/")
    site = f"https://{owner}.github.io/"
    return site if name == f"{owner}.github.io" else f"{site}{forge.project.split('/')[1]}/"


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


_INSTALL = "@INSTALL@"
_PAGES: Mapping[ForgeKind, str] = {"github": "page-github.yml", "gitlab": "ci-gitlab.yml"}


def _read_template(name: str) -> str:
    return files("heldout.board.rules").joinpath("templates", name).read_text("utf-8")


Stake = Literal["known", "open", "prize"]
"""What a board has to withstand: known teams, names that anybody can take, a prize."""

PRICES: Mapping[Stake, str] = read_table("words")["prices"]
"""What each choice costs, in plain words; docs/explanation/release.md has more."""

SPLIT_ABOVE = 1000
"""`clear` splits a set of more queries: the others would be too few to show a better system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBoard:
    """What an organiser says of a board that does not exist yet.

    Attributes:
        name: short name.
        title: heading of the page.
        task: what a system has to do.
        opens: first day.
        closes: last day, `None` where it is stated later.
        envelope: form of the sealed files.
        recipients: the organisers' public keys.
        measure: of every view.
        order: of documents.
        depth: most documents per query.
        sets: query set -> whether its labels are public, in the order of the views' columns.
        primary: the set whose view ranks.
        stake: what is at stake, which sets the release rule and the views that go with it.
        judged: number of queries of the primary set that have judgments.
        seasons: its seasons under `clear`, each with a view `SET-N` of its own; none for a board
            that ranks by one view.
        final: the set of the final view, `None` where there is none.
        example: a query with its answer, `None` for the first with public labels.
        forge: where submissions will be opened, `None` where git alone is asked.
        install: address from which heldout is installed, "" where it is stated later.
    """

    name: str
    title: str
    task: str
    opens: date
    envelope: EnvelopeForm
    recipients: Sequence[str]
    measure: str
    order: Order
    depth: int
    sets: Mapping[str, bool]
    primary: str
    stake: Stake = "known"
    judged: int = 0
    seasons: Sequence[Season] = ()
    final: str | None = None
    closes: date | None = None
    example: Example | None = None
    forge: ForgeSpec | None = None
    install: str = ""

    @property
    def feedback(self) -> float:
        """Share of the primary set's queries that is its feedback part, under `clear`."""
        return ReleaseRule().feedback if self.judged > SPLIT_ABOVE else 0

    @property
    def deciding(self) -> int:
        """Count its judged queries that decide, in the mean over keys of the set."""
        return self.judged - round(self.feedback * self.judged)


def new_board_files(board: NewBoard) -> Mapping[str, bytes]:
    """Path in the board -> content: board.toml, README.md, .gitignore, the public keys."""
    forge = board.forge
    address = f"{forge.url.rstrip('/')}/{forge.project}" if forge and forge.hosted else ""
    return {
        **workflow_files(forge, install=board.install),
        **page_files(forge, install=board.install),
        "board.toml": fill_template("board.toml", board=board, repository=address),
        "README.md": _fill_readme(board.title, board.task, board.install, tuple(board.sets)),
        ".gitignore": b".writing-*\n",
        "keys/organisers.txt": format_recipients(board.recipients),
    }


def draft_command(sets: Iterable[str], *, programs: bool = False) -> str:
    """The command by which a submission begins, with the runs or the program of a board."""
    if programs:
        return "heldout draft my-system --image NAME@sha256:DIGEST"
    runs = " ".join(
        f"--{key} {key}.run.gz" if key in ("dev", "eval") else f"--run {key}={key}.run.gz"
        for key in sets
    )
    return f"heldout draft my-system {runs}"


def format_readme(spec: BoardSpec) -> bytes:
    """The README.md of a board by its rules."""
    sets = tuple(spec.sets)
    programs = spec.programs is not None and spec.programs.required
    return _fill_readme(
        spec.title, spec.task, spec.install, sets, home=spec.home, programs=programs
    )


def is_generated_readme(data: bytes, rules: Iterable[BoardSpec]) -> bool:
    """Check whether heldout wrote a README.md under one of these rules: nobody has edited it.

    Args:
        data: the file.
        rules: all that a board has had.
    """
    return any(
        data
        == _fill_readme(
            *(spec.title, spec.task, spec.install, tuple(spec.sets)), home=home, programs=programs
        )
        for spec in rules
        for programs in (False, True)
        for home in {spec.home, ""}  # that of a new board names none
    )


def _fill_readme(
    title: str,
    task: str,
    install: str,
    sets: tuple[str, ...],
    *,
    home: str = "",
    programs: bool = False,
) -> bytes:
    draft = draft_command(sets, programs=programs)
    return fill_template(
        "README.md", title=title, task=task, install=install, home=home, draft=draft
    )


def format_recipients(recipients: Sequence[str]) -> bytes:
    """`keys/organisers.txt`: a public key after the other, as `age -R` takes it."""
    return "".join(f"{recipient.strip()}\n" for recipient in recipients).encode()


def fill_template(file: str, /, **words: object) -> bytes:
    """A file of `templates/` with words in it; the filter `toml` writes a value as TOML."""
    return _load_templates().get_template(file).render(words).encode()


@cache
def _load_templates() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - most commands write no such file

    environment = jinja2.Environment(  # noqa: S701 - for TOML and Markdown
        loader=jinja2.PackageLoader("heldout.board.rules"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["toml"] = lambda value: msgspec.json.encode(value).decode()
    return environment
