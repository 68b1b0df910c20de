"""The commands of analyses: `heldout analyse NAME`, a report of them all, `heldout compare`."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.by_facet import Loaded, answer_each
from heldout.analyses.facets import Subset, cut_subset
from heldout.analyses.outcomes.comparison import find_comparison
from heldout.analyses.outcomes.options import CompareOptions
from heldout.analyses.report import Heading, Kinds, render_report, write_chapters
from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one
from heldout.answers.table import Column, Table
from heldout.cli import printing
from heldout.cli.analyses import sources
from heldout.cli.options import Dask, command
from heldout.collections.named import load_qrels
from heldout.errors import StoreError, plural
from heldout.files import durable, executors, frames
from heldout.options import Jobs, Json, Opt, Seed
from heldout.scoring import query_facets, score, table_files
from heldout.scoring.options import FacetSource
from heldout.scoring.table import cut_table


def write_subset(source: sources.KindSource, facets: FacetSource, folder: Path) -> Answer:
    """Write the queries of `--only` into a folder: what there is of texts, judgments and scores.

    Args:
        source: judgments, and scores where a table or a board is named.
        facets: which queries, and their texts.
        folder: where to.

    Returns:
        What was written.

    Raises:
        click.UsageError: no queries are named, or nothing that could be written.
        InputError: code `no-facet`, or a file has errors.
    """
    chosen = query_facets.load_only(facets)
    if chosen is None:
        raise click.UsageError("which queries should be written? --only FACET=KIND")
    subset = _cut(source, facets, chosen)
    files, written = subset.files(), list[str]()
    if source.table is not None or source.board.folder is not None:
        # Judgments are for the files here; the scores have theirs behind them.
        scores = sources.load_scores(replace(source, qrels=None)).table
        columns = source.table is not None and source.table.lower().endswith(frames.PARQUET)
        table = cut_table(scores, chosen)
        written = [str(folder / ("scores.parquet" if columns else "scores.csv"))]
        table_files.write_table(table, written[0])
    if not files and not written:
        raise click.UsageError("nothing to write: name --queries, --qrels or --scores")
    for file, data in files.items():
        durable.write_whole(folder / file, data)
    written = [*(str(folder / file) for file in files), *written]
    name = " and ".join(facets.only)
    counts = {
        "queries": len(subset.texts),
        "judged queries": len(subset.judgments),
        "queries with a training pair": len({query for query, _ in subset.pairs}),
        "training pairs": len(subset.pairs),
    }
    return Answer(
        answer=(
            f"{plural(len(chosen), 'query', 'queries')} of {name_one(name)} written to "
            f"{plural(len(written), 'file')}."
        ),
        summary=(("only", name), ("written", ", ".join(written))),
        tables=(
            Table(
                title=f"The subset {name}",
                columns=(Column(name="what"), Column(name="count", form="count")),
                rows=tuple(counts.items()),
                notes=(
                    f"Training pair: a query with a document of grade {subset.relevant} or more.",
                ),
            ),
        ),
        document={
            "only": name,
            "relevant": subset.relevant,
            "files": written,
            **{what.replace(" ", "_"): count for what, count in counts.items()},
        },
    )


def _cut(source: sources.KindSource, facets: FacetSource, chosen: frozenset[str]) -> Subset:
    texts = query_facets.load_texts(facets) if facets.texts else {}
    judgments: Mapping[str, Mapping[str, int]] = {}
    if source.qrels is not None:
        judgments = load_qrels(source.qrels).judgments
    return cut_subset(texts, judgments, chosen, relevant=source.relevant)


def print_each(
    facets: FacetSource,
    output: printing.Output,
    loaded: Loaded,
    analyse: Callable[[Loaded], Answer],
) -> None:
    """Analyse what was loaded, as a whole or each kind of query apart, and print it.

    Args:
        facets: which queries.
        output: in which form.
        loaded: scores on all queries.
        analyse: the analysis; called once for each kind.

    Raises:
        click.UsageError: a chart is asked for of each kind, or a file is missing.
        InputError: a file has errors; too few queries are left; or nothing can be said of any kind.
    """
    if facets.facet is not None and output.chart is not None:
        raise click.UsageError(
            "a chart shows one kind of query: --only FACET=KIND instead of --facet"
        )
    part = _select_only(facets, loaded)
    with printing.waiting("computing"):
        if facets.facet is None:
            answer = analyse(part)
        else:
            kinds = query_facets.load_facet(facets.facet, facets)
            answer = answer_each(facets.facet, kinds, part, analyse, least=facets.least)
    if facets.only:
        part_of = f"{' and '.join(facets.only)}: {part.size:,} of {loaded.size:,} queries"
        answer = replace(
            answer,
            summary=(*answer.summary, ("only", part_of)),
            document={**answer.document, "only": list(facets.only)},
        )
    printing.print_answer(answer, output)


def _select_only(facets: FacetSource, loaded: Loaded) -> Loaded:
    queries = query_facets.load_only(facets)
    if queries is None:
        return loaded
    part = loaded.cut(queries)
    query_facets.check_size(part.size, facets.least, path="--only")
    return part


_ALL = FacetSource()


def make_command(analysis: Analysis[Any, Any]) -> click.Command:
    """`heldout analyse NAME`."""
    whole = analysis.source == "measure"  # it has no queries, so nothing can be cut out of it

    def run(
        *,
        source: Any,
        facets: Any = _ALL,
        options: Any,
        output: Any,
        seed: int = 0,
        dask: str | None = None,
    ) -> None:
        if analysis.source == "kinds" and source.write is not None:
            printing.print_answer(write_subset(source, facets, source.write), output)
            return
        given = source.load(analysis, facets)
        with executors.open_executor(jobs=source.jobs, dask=dask) as executor:
            draws = Draws(seed=seed, executor=executor)

            def analyse(part: Any) -> Answer:
                return analysis.answer(part, options, draws)

            if whole:
                printing.print_answer(analyse(given), output)
            else:
                apart = None if analysis.source == "kinds" else facets.facet
                print_each(replace(facets, facet=apart), output, given, analyse)

    declared: dict[str, Any] = {"source": sources.SOURCES[analysis.source]}
    declared |= {} if whole else {"facets": FacetSource}
    declared["options"] = analysis.options
    declared |= {"seed": (Seed, 0)} if analysis.seeded else {}
    declared |= {"dask": (Dask, None)} if analysis.parallel else {}
    run.__doc__ = analysis.help
    return command(run, **declared, output=printing.Output)


@command
def compare(*, options: CompareOptions, seed: Seed = 0, output: printing.Output) -> None:
    """Is B better than A? By a measure, and by which queries each answers and how high.

    A and B are run files. Each may be a group of runs that differ in their random seed: a pattern
    in quotes, or paths with commas between them.

    With -m the answer is the difference in the mean of that measure, with its interval and its p.
    Without -m the answer is a verdict on the first relevant document of each query: which run
    finds it, and how high. That verdict is for labels with one relevant document per query.

    --html writes a page that shows where the two runs differ, query by query, with both rankings
    side by side. --queries and --documents give it the texts.

    \b
    Examples:
      heldout compare dense.run monot5.run --qrels dev.qrels
      heldout compare dense.run monot5.run --qrels dev.qrels -m nDCG@10 -m RR@10
      heldout compare 'ours-seed*.run' 'theirs-seed*.run' --qrels dev.qrels -k 10
      heldout compare dense.run monot5.run --qrels dev.qrels --queries dev.tsv --html out.html
    """
    comparison = find_comparison(options, seed)
    reading = score.find_reading(os.environ, progress=printing.TERMINAL)
    if options.page.html is not None:
        comparison.check_page(options.page.html)
    scores = comparison.load(reading)
    printing.print_notes_last(scores.ranks.notes)
    if options.page.html is not None:
        folder = comparison.list_failures(reading).write(options.page.html)
        printing.TERMINAL.note("page", f"{options.page.html}; its data are in {folder}")
    print_each(options.facets, output, scores, comparison.answer)


@command
def report(
    *,
    board: sources.BoardSource,
    out: Annotated[Path, Opt("New folder, outside of the board.", path="folder", metavar="FOLDER")],
    facets: FacetSource,
    jobs: Jobs = None,
    seed: Seed = 0,
    as_json: Json = False,
    dask: Dask = None,
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
        kinds = Kinds(queries=query_facets.load_facet(facets.facet, facets), least=facets.least)
    known = sources.load_board(board)
    with executors.open_executor(jobs=jobs, dask=dask) as executor:
        draws = Draws(seed=seed, executor=executor)
        pairs, view = sources.load_alike(board, known), board.view
        chapters = tuple(write_chapters(known, alike=pairs, draws=draws, view=view, kinds=kinds))
    heading = Heading(board=known.board, entries=len(known.entries), as_of=board.now, seed=seed)
    files = render_report(heading, chapters)
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, data in files.items():
        durable.Folder(out).write_whole(path, data, mode=0o600)
    if as_json:
        made = [
            {"name": c.name, "title": c.title, "made": c.answer is not None, "why": c.why_not}
            for c in chapters
        ]
        printing.print_json({"folder": str(out), "files": sorted(files), "analyses": made})
        return
    written = sum(chapter.answer is not None for chapter in chapters)
    facts = [
        ("report", f"{plural(written, 'analysis', 'analyses')} in {plural(len(files), 'file')}"),
        *(("not made", f"{c.title}: {c.why_not}") for c in chapters if c.answer is None),
        ("open", str(out / "index.html")),
    ]
    printing.print_facts(printing.answers(), facts)


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
