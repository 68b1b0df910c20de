"""The runs of a comparison: the files of both sides, what they are called, and their scores."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from heldout.cli.score_source import (
    Source,
    load_measures,
    queries_with_several,
    read_judgments,
)
from heldout.errors import InputError, Problem
from heldout.measures.spec import parse_measure
from heldout.scoring.run_files import find_runs, name_paths, run_name
from heldout.scoring.scores import Scores
from heldout.trec.ranking import Order
from heldout.validity.first_ranks import Side

__all__ = ["ComparedRuns", "ComparedScores", "find_compared", "load_compared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """The files of both sides.

    Attributes:
        a: what stands as A, by the names of its runs.
        b: what stands as B.
        paths: by the run's name.
    """

    a: Side
    b: Side
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedScores:
    """The scores of all runs of both sides.

    Attributes:
        ranks: reciprocal ranks, which outcomes are counted from.
        measures: by the measures that were asked for, on the same queries.
        several: queries with more than one relevant document.
    """

    ranks: Scores
    measures: tuple[Scores, ...]
    several: frozenset[str]

    @property
    def size(self) -> int:
        """How many queries."""
        return self.ranks.size

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        measures = tuple(one.cut(queries) for one in self.measures)
        return replace(self, ranks=self.ranks.cut(queries), measures=measures)


def find_compared(a: str, b: str) -> ComparedRuns:
    """The files that stand as A and as B.

    Args:
        a: a path; or patterns and paths with commas between them, for runs that differ by seed.
        b: the same.

    Returns:
        Runs go by the names of their files, and by whole paths where names are the same.

    Raises:
        InputError: code `no-run`: a pattern names nothing; `same-run`: a file is named twice.
    """
    first, second = _find_side(a, "A"), _find_side(b, "B")
    _check_apart({"A": first, "B": second})
    paths = name_paths((*first, *second))
    names = {path: name for name, path in paths.items()}
    titles = _title(a, first), _title(b, second)
    if titles[0] == titles[1] or any(name != run_name(path) for name, path in paths.items()):
        titles = a, b
    return ComparedRuns(
        a=Side(name=titles[0], runs=tuple(names[path] for path in first)),
        b=Side(name=titles[1], runs=tuple(names[path] for path in second)),
        paths=paths,
    )


def load_compared(
    runs: ComparedRuns,
    *,
    qrels: str,
    order: Order | None,
    rel: int,
    k: int,
    measures: Sequence[str],
) -> ComparedScores:
    """Their scores, in one pass over each file.

    Args:
        runs: from `find_compared`.
        qrels: file of the judgments.
        order: how documents are ordered; `None` for what fits a run's columns.
        rel: lowest grade that is relevant.
        k: documents of each list that are looked at.
        measures: those that were asked for.

    Raises:
        InputError: a file has errors, or a measure has no value for some query.
    """
    source = Source(runs=tuple(runs.paths.values()), qrels=qrels, order=order)
    judgments = read_judgments(source)
    ranks = str(parse_measure(f"RR(rel={rel})@{k}", path="--rel"))
    loaded = load_measures(source, tuple(dict.fromkeys((ranks, *measures))), qrels=judgments)
    return ComparedScores(
        ranks=loaded[ranks],
        measures=tuple(loaded[measure] for measure in measures),
        several=queries_with_several(judgments, rel),
    )


def _find_side(words: str, side: str) -> tuple[str, ...]:
    """The files of one side: a path, else patterns and paths between commas."""
    parts = [part for part in words.split(",") if part]
    patterns = parts if parts and not Path(words).is_file() else [words]
    return tuple(find_runs(patterns, place=side))


def _check_apart(sides: Mapping[str, Sequence[str]]) -> None:
    places: dict[Path, str] = {}
    for side, paths in sides.items():
        for path in paths:
            place = Path(path).resolve()
            if place in places:
                twice = f"the same run as {places[place]} and as {side}"
                if places[place] == side:
                    twice = f"the same run twice in {side}"
                raise InputError(
                    Problem(code="same-run", path=path, found=twice, expected="different runs")
                )
            places[place] = side


def _title(words: str, paths: Sequence[str]) -> str:
    """The run's name; of a group its patterns without their folders."""
    if len(paths) == 1:
        return run_name(paths[0])
    return ", ".join(Path(part).name for part in words.split(",") if part)
