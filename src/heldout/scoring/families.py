"""Measures that heldout does not compute itself, and who does: ir_measures, or trec_eval.

Sources: MacAvaney, Macdonald and Ounis, SIGIR 2022 (ir_measures); trec_eval 9 through pytrec_eval,
Van Gysel and de Rijke, SIGIR 2018.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Aggregate = Literal["mean", "sum", "geometric mean"]
"""What stands for all queries."""

Engine = Literal["ir_measures", "trec_eval"]
"""What computes a measure: the library, or trec_eval through the library pytrec_eval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A measure with all its parameters.

    Attributes:
        help: one line.
        range: lowest and highest score, in words where it has no bounds.
        aggregate: what stands for all queries.
        cutoff: whether it means something with a cutoff alone.
        subtopics: whether it asks for judgments by subtopic.
        cuts: the values that trec_eval takes where a name has none, as they stand in its output.
    """

    help: str
    range: str = "0 to 1"
    aggregate: Aggregate = "mean"
    cutoff: bool = False
    subtopics: bool = False
    cuts: tuple[str, ...] = ()


_UNBOUNDED = "0 upwards"

FAMILIES: Mapping[str, Family] = {
    "Accuracy": Family(
        help="chance that a relevant document of the list stands above one that is not relevant"
    ),
    "alpha_DCG": Family(
        help="gain discounted by position, and by what earlier documents said of each subtopic",
        range=_UNBOUNDED,
        cutoff=True,
        subtopics=True,
    ),
    "alpha_nDCG": Family(
        help="alpha_DCG over that of the best possible list", cutoff=True, subtopics=True
    ),
    "AP_IA": Family(help="AP of each subtopic, averaged", subtopics=True),
    "BPM": Family(help="rate of gain of a reader with a goal and limited patience"),
    "Compat": Family(help="rank-biased overlap with an ideal list, over the best possible"),
    "ERR_IA": Family(help="ERR of each subtopic, averaged", cutoff=True, subtopics=True),
    "infAP": Family(help="AP with pooled documents without a judgment (grade -1) estimated"),
    "INSQ": Family(help="rate of gain of a reader who expects to need T relevant documents"),
    "INST": Family(help="INSQ of a reader who learns from what the list has shown so far"),
    "IPrec": Family(help="highest precision at any depth with at least this recall"),
    "Judged": Family(help="share of the listed documents of the top k that has a judgment"),
    "NERR8": Family(help="ERR as a rate of gain, equation 8 of Azzopardi et al. 2021"),
    "NERR9": Family(help="ERR as a rate of gain, equation 9 of Azzopardi et al. 2021"),
    "NERR10": Family(help="ERR as a rate of gain, with the patience of RBP"),
    "NERR11": Family(help="ERR as a rate of gain, with the goal of INST"),
    "nERR_IA": Family(
        help="ERR_IA over that of the best possible list", cutoff=True, subtopics=True
    ),
    "nNRBP": Family(help="NRBP over that of the best possible list", subtopics=True),
    "NRBP": Family(help="RBP, less for what earlier documents said of a subtopic", subtopics=True),
    "NumQ": Family(help="number of answered queries", range=_UNBOUNDED, aggregate="sum"),
    "NumRel": Family(
        help="number of relevant documents of answered queries", range=_UNBOUNDED, aggregate="sum"
    ),
    "NumRet": Family(
        help="number of listed documents; with rel of relevant ones among them",
        range=_UNBOUNDED,
        aggregate="sum",
    ),
    "P_IA": Family(help="P of each subtopic, averaged", cutoff=True, subtopics=True),
    "Rprec": Family(help="precision at as many documents as are relevant"),
    "SDCG": Family(help="DCG over that of a list of the highest grade", cutoff=True),
    "SetAP": Family(help="SetP times SetR"),
    "SetF": Family(help="harmonic mean of SetP and SetR, R counting beta times"),
    "SetP": Family(help="share of the listed documents that is relevant"),
    "SetR": Family(help="share of the relevant documents that is listed"),
    "StRecall": Family(
        help="share of the subtopics with a relevant document", cutoff=True, subtopics=True
    ),
}
"""The families of ir_measures that heldout lacks, by the names it prints them under."""

ALIASES: Mapping[str, str] = {
    "MAP_IA": "AP_IA",
    "NumRelRet": "NumRet",
    "RPrec": "Rprec",
    "SetRelP": "SetP",
}
"""Other names that ir_measures reads -> the family."""

_DEPTHS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")

TREC_EVAL: Mapping[str, Family] = {
    "gm_map": Family(
        help="geometric mean of AP, of at least 0.00001 for each query", aggregate="geometric mean"
    ),
    "gm_bpref": Family(
        help="geometric mean of Bpref, of at least 0.00001 for each query",
        aggregate="geometric mean",
    ),
    "Rprec_mult": Family(
        help="precision at a multiple of the number of relevant documents",
        cuts=("0.20", "0.40", "0.60", "0.80", "1.00", "1.20", "1.40", "1.60", "1.80", "2.00"),
    ),
    "utility": Family(help="relevant minus other listed documents", range="any number"),
    "11pt_avg": Family(help="interpolated precision at recall 0, 0.1 to 1, averaged"),
    "binG": Family(help="AP with a logarithmic discount of documents that are not relevant"),
    "G": Family(help="graded AP with a logarithmic discount"),
    "ndcg_rel": Family(help="nDCG at each relevant document, averaged"),
    "Rndcg": Family(help="nDCG at as many documents as are relevant"),
    "relative_P": Family(help="precision over the highest possible at this depth", cuts=_DEPTHS),
    "num_nonrel_judged_ret": Family(
        help="number of listed documents judged and not relevant",
        range=_UNBOUNDED,
        aggregate="sum",
    ),
}
"""Measures of trec_eval that neither heldout nor ir_measures has, by trec_eval's names."""
