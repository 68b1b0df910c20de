"""`heldout analyse report`: everything, for the organisers alone."""

from pathlib import Path
from typing import Annotated

import click

from heldout.analyses.analysis import Draws
from heldout.analyses.report import Heading, Kinds, render_report, write_chapters
from heldout.cli.analyses.score_source import BoardSource, load_alike, load_board
from heldout.cli.analyses.sources import Alike
from heldout.cli.options import dask_option, with_options
from heldout.cli.printing import answers, print_facts, print_json
from heldout.errors import StoreError, plural
from heldout.files.durable import Folder
from heldout.files.executors import open_executor
from heldout.options import Jobs, Json, Opt, Seed
from heldout.scoring.options import FacetSource
from heldout.scoring.query_facets import load_facet


@click.command
@with_options
@dask_option
def report(
    *,
    board: BoardSource,
    out: Annotated[Path, Opt("New folder, outside of the board.", path="folder", metavar="FOLDER")],
    facets: FacetSource,
    alike: Alike = True,
    jobs: Jobs = None,
    seed: Seed = 0,
    dask: str | None,
    as_json: Json = False,
) -> None:
    """Write every analysis of a board into a private folder, the reserve views too.

    A page (index.html), the same as report.md, every table as CSV and every picture as SVG. It
    holds true scores, so no folder of a public board takes it.

    \b
    Example:
      heldout analyse report --board kb --vault ../kb-vault --out ../kb-report
    """
    if board.folder is None:
        raise click.UsageError("which board? --board DIR --vault DIR")
    if facets.only:
        raise click.UsageError("the report is of all queries: leave --only away, or --facet")
    _check_folder(out)
    kinds = None
    if facets.facet is not None:
        kinds = Kinds(queries=load_facet(facets.facet, facets), least=facets.least)
    known = load_board(board)
    pairs = load_alike(board, known) if alike else None
    with open_executor(jobs=jobs, dask=dask) as executor:
        draws = Draws(seed=seed, executor=executor)
        chapters = tuple(
            write_chapters(known, alike=pairs, draws=draws, view=board.view, kinds=kinds)
        )
    heading = Heading(board=known.board, entries=len(known.entries), as_of=board.now, seed=seed)
    files = render_report(heading, chapters)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, data in files.items():
        Folder(out).write_whole(path, data, mode=0o600)
    if as_json:
        made = [
            {"name": c.name, "title": c.title, "made": c.answer is not None, "why": c.why_not}
            for c in chapters
        ]
        print_json({"folder": str(out), "files": sorted(files), "analyses": made})
        return
    written = sum(chapter.answer is not None for chapter in chapters)
    facts = [
        ("report", f"{plural(written, 'analysis', 'analyses')} in {plural(len(files), 'file')}"),
        *(("not made", f"{c.title}: {c.why_not}") for c in chapters if c.answer is None),
        ("open", str(out / "index.html")),
    ]
    print_facts(answers(), facts)


def _check_folder(out: Path) -> None:
    """Refuse a folder that git would publish, or that holds something.

    Raises:
        StoreError: it lies in a board or a clone of one, or is not empty.
    """
    whole = out.resolve()
    for folder in (whole, *whole.parents):
        if (folder / "board.toml").exists():
            raise StoreError(
                f"{out} lies in a public board ({folder}), where git would publish the report; "
                "name a folder outside of it"
            )
    if whole.is_dir() and any(whole.iterdir()):
        raise StoreError(f"{out} is not empty; name a folder that does not exist yet")
