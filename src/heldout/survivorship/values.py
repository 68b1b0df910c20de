"""Survivorship on values: what a notebook calls. Each function gives what its command says.

Annotations are read once, or simulated from a run and labels; every question is asked of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from heldout.answers.answer import Answer
from heldout.collections.named import GivenQrels, open_qrels
from heldout.ids import DocId, QueryId
from heldout.scoring.given_runs import GivenRuns, read_given_positions, read_one_top
from heldout.survivorship.annotations import Annotation, Annotations, discarded_records
from heldout.survivorship.depths.study import DepthOptions, study_depths
from heldout.survivorship.depths.words import answer_depths
from heldout.survivorship.discarded.query_types import answer_types, compare_types, count_types
from heldout.survivorship.reading.depth_qrels import simulate_annotations
from heldout.survivorship.reading.records import add_kinds, no_common_query
from heldout.survivorship.reading.source import read_annotations as read_any_annotations
from heldout.survivorship.training.triples import Triple, make_triples, ranks_of

_NEGATIVES_FROM = 100


def read_annotations(path: str | PathLike[str], *, texts: bool = False) -> Annotations:
    """Read what annotators were shown and what they selected.

    Args:
        path: MS MARCO QnA, a folder of qrels for each depth, or passages shown.
        texts: whether the texts are read too.

    Raises:
        InputError: code `no-annotations`: nothing there has a known form; or a file has errors.
        SetupError: a library is missing.

    Example:
        annotations = heldout.survivorship.read_annotations("depth-qrels")
        annotations.survived, annotations.discarded
    """
    return read_any_annotations(Path(path), texts=texts)


def annotate_run(run: GivenRuns, qrels: GivenQrels, *, depth: int = 10) -> Annotations:
    """The annotation of a run: annotators see its first documents and select what is labelled.

    Args:
        run: one run.
        qrels: what they select; above 0 is relevant.
        depth: documents that they see, 1 to 100.

    Raises:
        InputError: a file has errors; codes `one-run`, `no-common-query`, `depth-beyond-list`.

    Example:
        heldout.survivorship.annotate_run({"bm25": "bm25.run"}, "dev.qrels").discarded
    """
    name, shown = read_one_top(run, depth=depth)
    labels = open_qrels(qrels).judgments
    words = f"the first {depth} of {name}"
    return simulate_annotations(shown, labels, depth=depth, source=words)


def discarded_queries(annotations: Annotations) -> list[Annotation]:
    """The queries for which annotators selected nothing.

    Args:
        annotations: of `read_annotations` or `annotate_run`.

    Raises:
        InputError: code `no-discarded`: the source leaves them out.

    Example:
        [one.query for one in heldout.survivorship.discarded_queries(annotations)]
    """
    return discarded_records(annotations)


def score_depths(
    annotations: Annotations,
    runs: GivenRuns | None = None,
    measure: str = "RR@10",
    *,
    depths: Sequence[int] = (),
    first_only: bool = False,
    to: int | None = None,
    trials: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """Scores of runs on the labels that a shallower annotation would have left.

    Args:
        annotations: of `read_annotations` or `annotate_run`.
        runs: which; without them the order that annotators saw.
        measure: of the runs.
        depths: to show; empty for all. Tests are corrected for all in any case.
        first_only: the first label of each query alone.
        to: depth to extrapolate to; 0 for none, `None` for twice the last.
        trials: bootstrap samples of the extrapolation.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: a run has errors; codes `depth-beyond-list`, `no-common-query`, `no-survivor`.

    Example:
        heldout.survivorship.score_depths(annotations, "runs/*.gz", "RR@10").to_pandas()
    """
    options = DepthOptions(
        measure=measure,
        depth=tuple(depths),
        first_only=first_only,
        to=to,
        trials=trials,
        level=level,
        seed=seed,
    )
    listed = None
    if runs is not None:
        wanted: dict[str, Sequence[str]] = {
            one.query: tuple(one.selected) for one in annotations.records if one.selected
        }
        listed = read_given_positions(runs, documents=wanted)
        for name, found in listed.items():
            if wanted and not found.found:
                raise no_common_query(name, f"none of the {len(wanted):,} queries with a label")
    return answer_depths(study_depths(annotations, listed, options))


def query_types(
    annotations: Annotations, kinds: Mapping[str, str] | None = None, *, level: float = 0.95
) -> Answer:
    """Compare how many queries of each type annotators could not answer, and left out.

    Args:
        annotations: with types, or with `kinds`.
        kinds: query -> type; `None` for the types of the annotations.
        level: of the intervals.

    Raises:
        InputError: codes `no-types`, `no-discarded`.

    Example:
        heldout.survivorship.query_types(annotations, {"q1": "who", "q2": "when"})
    """
    typed = annotations if kinds is None else add_kinds(annotations, kinds, path="kinds")
    return answer_types(compare_types(count_types(typed), level=level))


def make_training_triples(
    annotations: Annotations,
    run: GivenRuns,
    *,
    depth: int | None = None,
    negatives: int = 8,
    negatives_from: int = _NEGATIVES_FROM,
    seed: int = 0,
) -> Iterator[Triple]:
    """Training triples that an annotation of some depth would have left.

    Triples of a smaller depth are some of those of a larger one, in the same order: two trainings
    differ in nothing but what was left out.

    Args:
        annotations: with the place at which each document was shown.
        run: whose first documents are negatives.
        depth: only positives shown at this place or above; `None` for all.
        negatives: of each label.
        negatives_from: first documents of the run to draw from, 1 to 100.
        seed: of the draws.

    Yields:
        Query, positive, negative, by ids.

    Raises:
        InputError: the run has errors.

    Example:
        triples = list(heldout.survivorship.make_training_triples(annotations, "bm25.run", depth=1))
    """
    _, tops = read_one_top(run, depth=negatives_from)
    ranked = {QueryId(query): tuple(map(DocId, docs)) for query, docs in tops.items()}
    ranks = ranks_of(annotations)
    rng = np.random.default_rng(seed)
    for triple in make_triples(ranks, ranked, negatives=negatives, rng=rng):
        if depth is None or ranks[triple.query][triple.positive] <= depth:
            yield triple
