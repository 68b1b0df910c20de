"""All that is asked of depths of annotation: of run files, of given runs, or of the order shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.random import PCG64, Generator

from heldout.errors import InputError, plural
from heldout.options import Level, Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.run import Hit, write_run
from heldout.scoring import names, run_files
from heldout.scoring.options import RunOrder
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.extrapolation import FARTHEST, Outlook, extrapolate
from heldout.survivorship.depths.scores import (
    SHOWN,
    DepthScores,
    DepthTest,
    OrderAtDepth,
    ScoreChange,
    compare_nested,
    compare_survivors,
    nested_error,
    order_of_systems,
    pick_depths,
    score_depths,
    shown_documents,
    shown_ranks,
    split_change,
)
from heldout.survivorship.reading.records import no_common_document, no_common_query
from heldout.survivorship.reading.source import AnnotationSource, read_source, refuse_to_replace
from heldout.trec.orders import Order
from heldout.trec.reading import sources, streams
from heldout.trec.tops import RunPositions, read_positions

NO_QUERY = "no query has a label at this depth"
"""Why a score is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthOptions:
    """Which runs are scored at which depths, and how depths are compared."""

    runs: Annotated[
        tuple[str, ...],
        Opt(
            "Run files: a path, or a pattern in quotes [the order that annotators saw].",
            metavar="'GLOB'",
        ),
    ] = ()
    measure: Annotated[
        str, Opt("Measure of the runs.", names=("-m", "--measure"), metavar="MEASURE")
    ] = "RR@10"
    order: RunOrder = None
    depth: Annotated[
        tuple[int, ...],
        Opt("Depth to show, tested as if all were. Repeatable [all].", least=1, metavar="K"),
    ] = ()
    first_only: Annotated[bool, Opt("Only the first label of each query.")] = False
    to: Annotated[
        int | None,
        Opt(
            "Depth to extrapolate to, at most twice the last; 0 for none [twice].",
            least=0,
            metavar="K",
        ),
    ] = None
    write_shown: Annotated[
        Path | None,
        Opt("Run file for the order that annotators saw.", metavar="RUN", path="file"),
    ] = None
    level: Level = 0.95
    trials: Annotated[int, Opt("Number of bootstrap samples for the extrapolation.", least=100)] = (
        1000
    )
    seed: Seed = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthStudy:
    """What came out.

    Attributes:
        options: what was asked.
        source: where the annotations were read.
        discarded: queries without a label; `None` where the source leaves them out.
        of_shown: whether the one system is the order that annotators saw.
        compared: depths of which each has a test, shown or not: all but the last; by so many tests
            p is multiplied.
        scores: at the depths that were asked for.
        added: queries that each of them adds to the depth before it, shown or not.
        nested: the paper's test.
        survivors: queries with a label against those that have one only deeper.
        changes: what makes a score differ.
        orders: Kendall's tau between each depth and all labels.
        outlook: what deeper annotation might show; `None` where nobody asked.
    """

    options: DepthOptions
    source: str
    discarded: int | None
    of_shown: bool
    compared: int
    scores: DepthScores
    added: tuple[int, ...]
    nested: tuple[DepthTest, ...]
    survivors: tuple[DepthTest, ...]
    changes: tuple[ScoreChange, ...]
    orders: tuple[OrderAtDepth, ...]
    outlook: Outlook | None

    @property
    def adds_labels(self) -> bool:
        """Whether more labels of the same queries change a score."""
        return any(one.labels for one in self.changes)

    @property
    def why_last(self) -> str:
        """Why the last depth is compared with nothing."""
        return (
            "this is the depth that the others are compared with"
            if self.compared
            else "there is one depth alone"
        )

    def nested_error(self, depth: int) -> tuple[float | None, str]:
        """Return how often the paper's test errs where depth means nothing.

        Args:
            depth: place of the depth among those of `scores`.

        Returns:
            The share of samples with p below 1 - level, uncorrected, and ""; or `None`, and the
            reason why it is not known.
        """
        counts = self.scores.counts
        if depth == len(counts) - 1:
            return None, self.why_last
        if self.adds_labels:
            return None, "queries have several labels, and more of them change scores"
        if not counts[depth]:
            return None, NO_QUERY
        if counts[depth] == counts[-1]:
            return None, "the last depth has the same queries"
        return nested_error(counts[depth] / counts[-1], alpha=1 - self.options.level), ""


def study_depths(
    annotations: Annotations, runs: Mapping[str, RunPositions] | None, options: DepthOptions
) -> DepthStudy:
    """Score runs at each depth, and compare the depths.

    Args:
        annotations: what was selected, and where.
        runs: by name, where each lists the selected documents; `None` for the order shown.
        options: what is asked; their run files are not read.

    Raises:
        InputError: codes `no-survivor`, `depth-beyond-list`, `missing-scores`; without runs
            `no-shown`.
    """
    to = _depths_beyond(annotations.depth, options.to)
    scored = {SHOWN: shown_ranks(annotations)} if runs is None else runs
    measure = names.read_own_measure(options.measure, path="--measure")
    every = score_depths(annotations, scored, measure, first_only=options.first_only)
    scores = pick_depths(every, options.depth or every.depths)
    level = options.level
    added = np.diff((0, *every.counts)).tolist()
    asked = {every.depths.index(depth): at for at, depth in enumerate(scores.depths)}

    def shown(tests: tuple[DepthTest, ...]) -> tuple[DepthTest, ...]:
        return tuple(replace(one, depth=asked[one.depth]) for one in tests if one.depth in asked)

    outlook = None
    if to:
        outlook = extrapolate(
            every,
            Generator(PCG64(options.seed)),
            discarded=annotations.discarded,
            to=to,
            trials=options.trials,
            level=level,
        )
    return DepthStudy(
        options=options,
        source=annotations.source,
        discarded=annotations.discarded,
        of_shown=runs is None,
        compared=len(every.depths) - 1,
        scores=scores,
        added=tuple(added[index] for index in asked),
        nested=shown(compare_nested(every, level=level)),
        survivors=shown(compare_survivors(every, level=level)),
        changes=split_change(scores),
        orders=order_of_systems(scores),
        outlook=outlook,
    )


def _depths_beyond(last: int, to: int | None) -> tuple[int, ...]:
    """Half way to a depth beyond the last and all the way; none where nobody asks."""
    if to == 0:
        return ()
    deepest = 2 * last if to is None else to
    if not last < deepest <= FARTHEST * last:
        expected = f"a depth above {last}, at most {FARTHEST * last:,}; or 0 for no extrapolation"
        raise InputError.of("depth-beyond-list", "--to", f"depth {deepest:,}", expected)
    return tuple(sorted({last + (deepest - last + 1) // 2, deepest}))


def study_runs(
    source: AnnotationSource, options: DepthOptions, *, progress: Progress = SILENT
) -> DepthStudy:
    """Score the runs of files at each depth, and compare the depths.

    Args:
        source: annotations.
        options: runs and depths; the order shown is written where they ask for it.
        progress: counts the runs.

    Raises:
        OptionError: a file would be written over what is read.
        InputError: a file has errors; codes `depth-beyond-list`, `no-common-query`,
            `no-common-document`.
    """
    if options.write_shown is not None:
        runs = run_files.name_runs(options.runs).values() if options.runs else ()
        read = (*source.inputs(), *map(Path, runs))
        refuse_to_replace(options.write_shown, "--write-shown", read)
    annotations = read_source(source, progress=progress)
    if options.write_shown is not None:
        # Scores count down, since annotators saw none
        run = {
            query: [Hit(doc, float(len(docs) - at)) for at, doc in enumerate(docs)]
            for query, docs in shown_documents(annotations).items()
        }
        write_run(run, options.write_shown, form="trec", tag=SHOWN)
        progress.note("wrote", str(options.write_shown))
    return study_depths(annotations, _read_runs(annotations, options, progress), options)


def _read_runs(
    annotations: Annotations, options: DepthOptions, progress: Progress
) -> Mapping[str, RunPositions] | None:
    if not options.runs:
        return None
    wanted: dict[str, Sequence[str]] = {
        one.query: tuple(one.selected) for one in annotations.records if one.selected
    }
    paths = run_files.name_runs(options.runs)
    runs: dict[str, RunPositions] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for name, path in paths.items():
            runs[name] = _read_run(path, wanted, annotations, options.order)
            done()
    return runs


def _read_run(
    path: str, wanted: Mapping[str, Sequence[str]], annotations: Annotations, order: Order | None
) -> RunPositions:
    read = partial(sources.read_file, read_positions, path, order=order, limits=streams.OWN_FILES)
    listed: RunPositions = read(documents=wanted)
    if not wanted:
        return listed
    if not listed.found:
        queries = plural(len(wanted), "query", "queries")
        raise no_common_query(path, f"none of the {queries} with a label")
    if not any(listed.found.values()):
        # A run without any selected document may be that bad if it lists some that were shown
        known: dict[str, Sequence[str]] = {
            one.query: (*one.shown, *one.selected) for one in annotations.records
        }
        if not any(read(documents=known).found.values()):
            raise no_common_document(annotations, path)
    return listed
