"""What a training experiment is made of: conditions, seeds, and test sets to re-rank.

Each pair of a condition and a seed is a cell. Cells have nothing to do with each other, so they
can be computed in any order, and more of them can be added later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

import msgspec

from heldout.errors import InputError, plural
from heldout.ids import Digest, DocId, QueryId
from heldout.rankers.neural.cross_encoder import CrossEncoderSettings
from heldout.rankers.neural.training import TextTriple, TrainingSettings
from heldout.rankers.run import Run
from heldout.scoring.measures import Measure
from heldout.survivorship.training.triple_files import (
    ReadTriples,
    Selection,
    no_triples,
    select_triples,
    share_queries,
)
from heldout.survivorship.training.triples import Condition, Label, SelectedPlaces, TripleCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """Queries that trained models re-rank.

    Attributes:
        name: letters, digits, points, dashes and underscores; names its files.
        documents: text of every document of `first`.
        queries: text of every query of `first`.
        first: the run to re-rank.
        first_name: what it is called in tables.
        qrels: grade by query and document.
        measures: what is measured.
        depth: how many documents of each query are scored again, from 1.
        passage: words of a passage, where a document is as good as its best passage (MaxP);
            `None` where its beginning is scored.
    """

    __test__ = False  # pytest looks for classes of this name

    name: str
    documents: Mapping[DocId, str]
    queries: Mapping[QueryId, str]
    first: Run
    first_name: str
    qrels: Mapping[str, Mapping[str, int]]
    measures: tuple[Measure, ...]
    depth: int
    passage: int | None = None

    @property
    def inputs(self) -> Digest:
        """What the run of a trained model depends on besides the model.

        Labels and measures play no part: they are asked of the run afterwards. Nor does what the
        test set is called.
        """
        digest = sha256(repr((self.depth, self.passage)).encode())
        for query, text in sorted(self.queries.items()):
            documents = [hit.document for hit in self.first[query]]
            texts = [self.documents[document] for document in documents[: self.depth]]
            digest.update(repr((query, text, documents, texts)).encode())
        return Digest(digest.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model to train.

    Attributes:
        condition: on what.
        seed: of the head, of dropout, and of what a condition draws.
        selection: the condition's triples.
    """

    condition: Condition
    seed: int
    selection: Selection

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.condition.folder}-seed{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A cell with all that its model depends on.

    Attributes:
        cell: the cell.
        triples: its texts.
        model: the cross-encoder before training, with the cell's seed.
        files: SHA-256 of its files where it lies in a folder; `None` of a published name.
        settings: how, with the cell's seed.
    """

    cell: Cell
    triples: Sequence[TextTriple]
    model: CrossEncoderSettings
    files: Digest | None
    settings: TrainingSettings

    @property
    def digest(self) -> Digest:
        """Of all of it, without loading the model: to know whether the cell is done.

        The device plays no part, and stands beside the result.
        """
        model = asdict(self.model)
        del model["device"]
        made_of = (self.cell.condition, self.cell.seed, model, asdict(self.settings))
        digest = sha256(repr(made_of).encode())
        digest.update((self.files or "").encode())
        for triple in self.triples:
            digest.update(repr(tuple(triple)).encode())
        return Digest(digest.hexdigest())


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run file of a cell.

    Attributes:
        file: SHA-256 of its bytes.
        inputs: `TestSet.inputs` of what it was made of.
    """

    file: Digest
    inputs: Digest


class CellRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a cell, as it is stored.

    Attributes:
        schema: of this record.
        digest: of what was trained on and how (`Training.digest`).
        condition: its name.
        seed: its seed.
        triples: different triples that it could train on.
        labels: different pairs of a query and its positive among them.
        queries: different queries among them.
        missing: for a control: how many triples fewer than the condition it follows.
        steps: how often its weights were changed.
        passes: how often it saw each triple on average.
        first_loss: mean loss of the first tenth of the steps.
        last_loss: of the last tenth.
        seconds: that training took, without those before a kill.
        peak_mib: most memory that the process had by then, in MiB.
        device: where it ran.
        precision: of its matrix products.
        runs: test set -> its run file, as far as they are written.
    """

    schema: int = 1
    digest: Digest
    condition: str
    seed: int
    triples: int
    labels: int
    queries: int
    missing: int
    steps: int
    passes: float
    first_loss: float
    last_loss: float
    seconds: float
    peak_mib: float
    device: str
    precision: str
    runs: dict[str, RunRecord] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be trained.

    Attributes:
        cells: a whole seed before the next, so that early ends compare.
        counts: of the sequence that all of them train on.
    """

    cells: tuple[Cell, ...]
    counts: TripleCounts


def plan_cells(
    read: ReadTriples,
    places: SelectedPlaces,
    conditions: Sequence[Condition],
    *,
    seeds: int,
    seed: int,
    limit: int,
    source: str,
) -> Plan:
    """Every seed of every condition.

    Args:
        read: the sequence of triples.
        places: where selected documents were shown.
        conditions: in the order of the tables.
        seeds: how many of each, from 1.
        seed: added to each, for what is drawn at random.
        limit: how many triples there are steps for.
        source: where labels come from, for messages.

    Raises:
        InputError: code `no-triples`: a condition leaves none.
    """
    wanted = [(condition, number) for number in range(seeds) for condition in conditions]
    found = select_triples(
        read, places, [(condition, seed + number) for condition, number in wanted], limit=limit
    )
    cells = tuple(
        Cell(condition=condition, seed=number, selection=selection)
        for (condition, number), selection in zip(wanted, found.selections, strict=True)
    )
    for cell in cells:
        if not cell.selection.triples:
            raise no_triples(cell.condition, source)
    return Plan(cells=cells, counts=found.counts)


def check_shares(plan: Plan, read: ReadTriples, *, seed: int, batch: int) -> None:
    """Make sure that the shares of a learning curve differ, and that all their labels are seen.

    Where steps end before each label was seen once, a larger share has no more labels than a
    smaller one, nor all that the smaller one has.

    Args:
        plan: of shares only.
        read: the sequence of triples.
        seed: as for `plan_cells`.
        batch: triples in a step, for the hint.

    Raises:
        InputError: code `curve-steps` or `equal-shares`.
    """
    shares: dict[tuple[int, int], Condition] = {}
    # The largest share first: it wants the most steps.
    for cell in sorted(plan.cells, key=lambda one: -one.condition.share):
        queries = share_queries(plan.counts, cell.condition.share, seed=seed + cell.seed)
        labels = sum(query in queries for query, _ in plan.counts.per_label)
        if cell.selection.labels < labels:
            steps = -(-_triples_until_all(read, queries) // batch)
            name = cell.condition.name
            raise InputError.of(
                "curve-steps",
                "--steps",
                found=f"{cell.selection.labels:,} of {labels:,} labels of {name} are seen",
                expected="steps enough to see each label once",
                hint=f"--steps {steps} or more, with --batch {batch}; or smaller shares",
            )
        other = shares.setdefault((cell.seed, len(queries)), cell.condition)
        if other != cell.condition:
            raise InputError.of(
                "equal-shares",
                "--learning-curve",
                found=f"{other.name} and {cell.condition.name} have the same "
                f"{plural(len(queries), 'query', 'queries')}",
                expected="shares that differ by a query at least",
            )


def _triples_until_all(read: ReadTriples, queries: frozenset[QueryId]) -> int:
    """How many triples of these queries there are up to the one that has the last new label."""
    seen: set[Label] = set()
    number = last = 0
    for triple in read():
        label = triple.query, triple.positive
        if triple.query in queries:
            number += 1
            if label not in seen:
                seen.add(label)
                last = number
    return last
