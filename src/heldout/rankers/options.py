"""The options of `heldout rank`. Importing them loads no ranker: `--help` does not wait for one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from heldout.options import Opt

DEFAULT_FIRST = "bm25"
"""The first stage where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """How a first stage is re-ranked."""

    first: Annotated[
        str | None,
        Opt(
            "First stage to re-rank: another method, or a run file [bm25 for methods that "
            "only re-rank].",
            metavar="METHOD|FILE",
        ),
    ] = None
    rerank_depth: Annotated[
        int | None,
        Opt(
            "Documents per query that are re-ranked; the others stay below [100; 20 for duot5, "
            "which asks k (k - 1) questions of k documents].",
            least=1,
        ),
    ] = None
    passage: Annotated[
        int | None,
        Opt(
            "Words of a passage; documents are re-ranked by their best one [whole documents].",
            least=1,
            metavar="WORDS",
        ),
    ] = None
    stride: Annotated[
        int | None,
        Opt("Words from one passage to the next [half a passage].", least=1, metavar="WORDS"),
    ] = None
    resume: Annotated[
        bool,
        Opt(
            "Go on with a killed run (OUT.partial, OUT.vectors), or start again.",
            names=("--resume/--fresh",),
        ),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """What is asked about a run."""

    compare: Annotated[
        bool | None,
        Opt(
            "Comparison with BM25 on the labels of the collection [without --method, and "
            "with --qrels].",
            names=("--compare/--no-compare",),
        ),
    ] = None
    qrels: Annotated[
        Path | None, Opt("Labels to compare on [those of the collection].", metavar="Q")
    ] = None
    measure: Annotated[
        str | None,
        Opt(
            "Measure to compare by [that of --curve, else nDCG@10].",
            names=("--measure", "-m"),
            metavar="MEASURE",
        ),
    ] = None
    gain: Annotated[
        float,
        Opt(
            "Smallest gain that is worth having, over BM25 and over the baseline of --curve.",
            above=0,
            most=1,
        ),
    ] = 0.02
    curve: Annotated[
        Path | None,
        Opt(
            "Learning curve that says whether fine-tuning would pay: the folder of "
            "`heldout survive train --learning-curve`.",
            metavar="DIR",
        ),
    ] = None

    def compares(self, method: str | None) -> bool:
        """Whether to compare: where no method is named, and where it or labels are."""
        if self.compare is not None:
            return self.compare
        return method is None or self.qrels is not None
