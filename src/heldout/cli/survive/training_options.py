"""The options of `heldout survive train`, in groups."""

from dataclasses import dataclass
from typing import Any, Literal

import click

from heldout.cli.options import DecimalRange, level_option, one_argument
from heldout.cli.survive.places import PLACES
from heldout.errors import InputError, Problem
from heldout.survivorship.training.conditions import Condition, paper_conditions, share_conditions

__all__ = [
    "ConditionChoice",
    "LearnerChoice",
    "TestChoice",
    "TripleChoice",
    "condition_options",
    "learner_options",
    "test_options",
    "triple_options",
]

_FEWEST_TRIALS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionChoice:
    """What is compared.

    Attributes:
        within: depths of annotation.
        controls: depths whose size a random sample of all has.
        curve: shares of the labelled queries, as text, for a learning curve instead; `None` for
            none.
        seeds: how many of each; `None` for 3, or 5 trials of a curve.
    """

    within: tuple[int, ...]
    controls: tuple[int, ...]
    curve: str | None
    seeds: int | None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """In the order of the table.

        Raises:
            click.UsageError: shares that are none.
        """
        if self.curve is None:
            return paper_conditions(self.within, controls=self.controls)
        try:
            shares = [float(part) for part in self.curve.split(",")]
            return share_conditions(shares)
        except ValueError:
            message = "--learning-curve wants shares above 0 and up to 1, as in 0.1,0.25,0.5,1"
            raise click.UsageError(message) from None

    @property
    def repetitions(self) -> int:
        """Seeds of each condition."""
        return self.seeds or (3 if self.curve is None else 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleChoice:
    """Where triples come from.

    Attributes:
        collection: texts, and where no annotations are named the labels too.
        triples: a file of triples; `None` to make them.
        negatives: for each label, where they are made.
        negatives_from: they are drawn from so many first documents of BM25.
        skip_unknown: whether triples whose positive the annotations do not know are left out.
        all_labels: whether each label of the collection trains, without annotators.
        split_seed: divides the queries of a collection into halves.
        seed: of what is drawn.
    """

    collection: str
    triples: str | None
    negatives: int
    negatives_from: int
    skip_unknown: bool
    all_labels: bool
    split_seed: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TestChoice:
    """What is re-ranked.

    Attributes:
        tests: collections, perhaps with measures behind an equals sign.
        measures: of those without.
        rerank: documents of each query to score anew.
        passage: words of a passage, where a document is as good as its best; `None` for none.
        stride: words from one passage to the next; `None` for half a passage.
        family: what is corrected together.
        level: of intervals.
    """

    __test__ = False  # pytest looks for classes of this name

    tests: tuple[str, ...]
    measures: tuple[str, ...]
    rerank: int
    passage: int | None
    stride: int | None
    family: Literal["measure", "all"]
    level: float

    @property
    def passages(self) -> tuple[int, int] | None:
        """Words of a passage, and from one to the next.

        Raises:
            InputError: code `rank-passage`: words would be left out.
        """
        if self.stride is not None and self.stride > (self.passage or 0):
            raise InputError(
                Problem(
                    code="rank-passage",
                    path="--stride",
                    found=f"{self.stride}, with --passage {self.passage or 'not given'}",
                    expected="a stride of at most --passage, so that no word is left out",
                )
            )
        if self.passage is None:
            return None
        return self.passage, self.stride or max(1, self.passage // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerChoice:
    """What is trained, and how.

    Attributes:
        model, kind, length, device, precision: of the cross-encoder.
        steps, batch, loss, rate, warmup, schedule: of its training.
        one_pass: whether a sequence that is short is not begun again.
        keep: whether trained models stay.
    """

    model: str
    kind: Literal["auto", "bert", "monot5"]
    length: int
    device: Literal["auto", "cpu", "cuda", "mps"]
    precision: Literal["auto", "float32", "bfloat16", "float16"]
    steps: int
    batch: int
    loss: Literal["pointwise", "pairwise"]
    rate: float | None
    warmup: float
    schedule: Literal["linear", "constant"]
    one_pass: bool
    keep: bool


def _counted(name: str, field: str, number: int, words: str) -> Any:
    return click.option(
        name, field, type=click.IntRange(min=1), default=number, show_default=True, help=words
    )


condition_options = one_argument(
    "choice",
    ConditionChoice,
    click.option(
        "-r",
        "--within",
        type=click.IntRange(min=1),
        multiple=True,
        default=(1, 5),
        show_default=True,
        metavar="R",
        help="Annotators who see R documents. Can be given many times.",
    ),
    click.option(
        "--control",
        "controls",
        type=click.IntRange(min=1),
        multiple=True,
        default=(1,),
        show_default=True,
        metavar="R",
        help="A random sample of all labels, as small as with R documents.",
    ),
    click.option(
        "--learning-curve",
        "curve",
        metavar="SHARES",
        help="Instead: random shares of the labels, as in 0.1,0.25,0.5,1.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        metavar="N",
        help="Trainings of each condition [3; 5 of a learning curve].",
    ),
)
"""`-r`, `--control`, `--learning-curve` and `--seeds`, as one `choice` argument."""

triple_options = one_argument(
    "material",
    TripleChoice,
    click.option(
        "--collection",
        default="stdlib-docs:eval",
        show_default=True,
        metavar="PLACE",
        help=f"Texts to train on, and without annotations its labels: {PLACES}.",
    ),
    click.option(
        "--all-labels",
        is_flag=True,
        help="Each label of the collection trains, without annotators; for --learning-curve.",
    ),
    click.option(
        "--split-seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Divides a collection's queries into :dev and :eval.",
    ),
    click.option("--triples", metavar="FILE", help="Triples; otherwise they are made of labels."),
    _counted("--negatives", "negatives", 8, "For each label, where triples are made."),
    _counted("--negatives-from", "negatives_from", 100, "First documents of BM25 to draw from."),
    click.option(
        "--skip-unknown",
        is_flag=True,
        help="Leave out triples whose positive the annotations do not know.",
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the triples."
    ),
)
"""What is trained on, as one `material` argument."""

test_options = one_argument(
    "test",
    TestChoice,
    click.option(
        "--test",
        "tests",
        multiple=True,
        default=("stdlib-docs:dev",),
        show_default=True,
        metavar="PLACE[=MEASURES]",
        help="What is re-ranked: a collection with labels, whose folder may hold first.run.gz; "
        "otherwise BM25 is re-ranked. Can be given many times.",
    ),
    click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        default=("RR@10", "nDCG@10"),
        show_default=True,
        metavar="MEASURE",
    ),
    _counted("--rerank", "rerank", 20, "Documents of each query that are scored anew."),
    click.option(
        "--passage",
        type=click.IntRange(min=1),
        metavar="WORDS",
        help="Long documents: as good as their best passage of so many words.",
    ),
    click.option(
        "--stride",
        type=click.IntRange(min=1),
        metavar="WORDS",
        help="From one passage to the next [half a passage].",
    ),
    click.option(
        "--family",
        type=click.Choice(["measure", "all"]),
        default="measure",
        show_default=True,
        help="What is corrected together: the comparisons on one measure of one test set, or all.",
    ),
    level_option,
)
"""What is re-ranked and how it is told, as one `test` argument."""

learner_options = one_argument(
    "learner",
    LearnerChoice,
    click.option(
        "--model",
        default="minilm",
        show_default=True,
        metavar="NAME|DIR",
        help="minilm (installed with the extra `neural`), a published name, or a folder.",
    ),
    click.option(
        "--kind", type=click.Choice(["auto", "bert", "monot5"]), default="auto", show_default=True
    ),
    click.option(
        "--length",
        type=click.IntRange(min=16),
        default=96,
        show_default=True,
        help="Tokens of query and document together.",
    ),
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "mps"]),
        default="auto",
        show_default=True,
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
        default="auto",
        show_default=True,
    ),
    _counted("--steps", "steps", 200, "Of each training."),
    _counted("--batch", "batch", 8, "Triples in a step."),
    click.option(
        "--loss",
        type=click.Choice(["pointwise", "pairwise"]),
        default="pointwise",
        show_default=True,
    ),
    click.option(
        "--learning-rate",
        "rate",
        type=DecimalRange(0, min_open=True),
        metavar="RATE",
        help="The highest [2e-5 of BERT, 5e-5 of monoT5].",
    ),
    click.option(
        "--warmup",
        type=DecimalRange(0, 1),
        default=0.1,
        show_default=True,
        help="Of the steps.",
    ),
    click.option(
        "--schedule",
        type=click.Choice(["linear", "constant"]),
        default="linear",
        show_default=True,
        help="What the rate does after warming up.",
    ),
    click.option(
        "--one-pass",
        is_flag=True,
        help="See each triple at most once; otherwise a short sequence begins again.",
    ),
    click.option("--keep-models", "keep", is_flag=True, help="Keep the trained models."),
)
"""What is trained and how, as one `learner` argument."""
