"""What a training study is asked: its conditions, triples, test sets and learner."""

from dataclasses import dataclass
from typing import Annotated, Literal

from heldout.errors import OptionError
from heldout.options import Level, Opt, Seed
from heldout.survivorship.training.triples import Condition, paper_conditions, share_conditions

COLLECTIONS = (
    "stdlib-docs, irds:NAME, or a folder; NAME:dev and NAME:eval are halves of its queries"
)
"""What names a collection, in words."""

Within = Annotated[
    tuple[int, ...],
    Opt(
        "Depth of annotation: only what is selected among the first R documents shown. Repeatable.",
        names=("-r", "--within"),
        least=1,
        metavar="R",
    ),
]
"""`--within`; its default is (1, 5)."""

Controls = Annotated[
    tuple[int, ...],
    Opt(
        "Random sample of all, as small as with R documents. Repeatable.",
        names=("--control",),
        least=1,
        metavar="R",
    ),
]
"""`--control`."""

Negatives = Annotated[int, Opt("Number of negatives for each label.", least=1)]
"""`--negatives`; its default is 8."""

SkipUnknown = Annotated[bool, Opt("No triples whose positive the annotations do not know.")]
"""`--skip-unknown`; its default is `False`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionOptions:
    """What is compared."""

    within: Within = (1, 5)
    controls: Controls = (1,)
    learning_curve: Annotated[
        str | None,
        Opt(
            "Random shares of the labels instead of depths, such as 0.1,0.25,0.5,1.",
            metavar="SHARES",
        ),
    ] = None
    seeds: Annotated[
        int | None,
        Opt(
            "Number of trainings of each condition [3; 5 of a learning curve].",
            least=1,
            metavar="N",
        ),
    ] = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """In the order of the table.

        Raises:
            OptionError: the learning curve has no shares.
        """
        if self.learning_curve is None:
            return paper_conditions(self.within, controls=self.controls)
        try:
            return share_conditions([float(part) for part in self.learning_curve.split(",")])
        except ValueError:
            message = "--learning-curve wants shares above 0 and up to 1, as in 0.1,0.25,0.5,1"
            raise OptionError(message) from None

    @property
    def repetitions(self) -> int:
        """Seeds of each condition."""
        return self.seeds or (3 if self.learning_curve is None else 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleOptions:
    """Where triples come from."""

    collection: Annotated[
        str,
        Opt(
            f"Collection whose texts are trained on, with its labels if annotations are missing: "
            f"{COLLECTIONS}.",
            metavar="COLLECTION",
        ),
    ] = "stdlib-docs:eval"
    all_labels: Annotated[
        bool, Opt("Training on every label of the collection, for --learning-curve.")
    ] = False
    triples: Annotated[
        str | None, Opt("File of triples [they are made of the labels].", metavar="FILE")
    ] = None
    negatives: Negatives = 8
    negatives_from: Annotated[
        int, Opt("Number of BM25's first documents to draw negatives from.", least=1)
    ] = 100
    skip_unknown: SkipUnknown = False
    seed: Seed = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOptions:
    """What is re-ranked."""

    __test__ = False  # pytest looks for classes of this name

    tests: Annotated[
        tuple[str, ...],
        Opt(
            "Collection to re-rank: its folder may hold first.run.gz, otherwise BM25 is "
            "re-ranked. Repeatable.",
            names=("--test",),
            metavar="COLLECTION[=MEASURES]",
        ),
    ] = ("stdlib-docs:dev",)
    measures: Annotated[
        tuple[str, ...],
        Opt(
            "Measure of collections without their own. Repeatable.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ] = ("RR@10", "nDCG@10")
    rerank: Annotated[int, Opt("Number of documents of each query to re-rank.", least=1)] = 20
    passage: Annotated[
        int | None,
        Opt(
            "Number of words of a passage; a long document counts by its best passage.",
            least=1,
            metavar="WORDS",
        ),
    ] = None
    level: Level = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """What is trained, and how."""

    model: Annotated[
        str,
        Opt(
            "Model: minilm (all-MiniLM-L6-v2), a published name, or a folder.",
            metavar="NAME|DIR",
        ),
    ] = "minilm"
    length: Annotated[int, Opt("Number of tokens of query and document together.", least=16)] = 96
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"], Opt("Precision of matrix products.")
    ] = "auto"
    steps: Annotated[int, Opt("Number of training steps.", least=1)] = 200
    batch: Annotated[int, Opt("Number of triples in a step.", least=1)] = 8
    loss: Annotated[
        Literal["pointwise", "pairwise"],
        Opt("Loss over single documents, or over the two of a triple."),
    ] = "pointwise"
    learning_rate: Annotated[
        float | None, Opt("Highest learning rate [2e-5 of BERT, 5e-5 of T5].", above=0)
    ] = None
    keep_models: Annotated[bool, Opt("Trained models in FOLDER.")] = False
