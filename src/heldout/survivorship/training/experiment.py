"""What a training experiment is made of: conditions, seeds, and test sets to re-rank.

Each pair of a condition and a seed is a cell. Cells have nothing to do with each other, so they
can be computed in any order, by any number of processes, and more of them can be added later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

import msgspec

from heldout.ids import Digest, DocId, QueryId
from heldout.measures.spec import Measure
from heldout.rankers.cross_encoder import CrossEncoderSettings
from heldout.rankers.run import Run
from heldout.rankers.training import TextTriple, TrainingSettings
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.selections import Selection
from heldout.survivorship.training.triples import Triple

__all__ = [
    "Cell",
    "CellRecord",
    "RunRecord",
    "Start",
    "TestSet",
    "cell_digest",
    "input_digest",
    "texts_of",
]


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
        depth: how many documents of each query are scored anew, from 1.
        passage: words of a passage, and words from one to the next, where a document is as good
            as its best passage (MaxP); `None` where its beginning is scored.
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
    passage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What every training begins from.

    Attributes:
        model: the cross-encoder before training, with any seed.
        files: SHA-256 of its files where it lies in a folder, whose files can be replaced;
            `None` of a published name.
    """

    model: CrossEncoderSettings
    files: Digest | None = None


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


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run file of a cell.

    Attributes:
        file: SHA-256 of its bytes.
        inputs: `input_digest` of what it was made of.
    """

    file: Digest
    inputs: Digest


class CellRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a cell, as it is stored.

    Attributes:
        schema: of this record.
        digest: of what was trained on and how (`cell_digest`).
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


def cell_digest(
    cell: Cell,
    triples: Sequence[TextTriple],
    start: Start,
    training: TrainingSettings,
) -> Digest:
    """What a cell's model depends on, without loading it: to tell whether it is done.

    Args:
        cell: the cell.
        triples: its texts.
        start: with the cell's seed; the device plays no part, and is told beside the result.
        training: with the cell's seed.
    """
    settings = asdict(start.model)
    del settings["device"]
    found = sha256(repr((cell.condition, cell.seed, settings, asdict(training))).encode())
    found.update((start.files or "").encode())
    for triple in triples:
        found.update(repr(tuple(triple)).encode())
    return Digest(found.hexdigest())


def input_digest(test: TestSet) -> Digest:
    """What the run of a trained model depends on besides the model.

    Labels and measures play no part: they are asked of the run afterwards.

    Args:
        test: the test set; what it is called plays no part.
    """
    found = sha256(repr((test.depth, test.passage)).encode())
    for query, text in sorted(test.queries.items()):
        documents = [hit.document for hit in test.first[query]]
        texts = [test.documents[document] for document in documents[: test.depth]]
        found.update(repr((query, text, documents, texts)).encode())
    return Digest(found.hexdigest())


def texts_of(
    triples: Sequence[Triple], queries: Mapping[QueryId, str], documents: Mapping[DocId, str]
) -> tuple[TextTriple, ...]:
    """The triples in words.

    Raises:
        KeyError: an id without a text; `triple_checks` finds them beforehand.
    """
    return tuple(
        TextTriple(queries[one.query], documents[one.positive], documents[one.negative])
        for one in triples
    )
