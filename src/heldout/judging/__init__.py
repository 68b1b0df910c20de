"""Preference judging: from shallow pools to better labels.

    judged = heldout.judging.read_judgments("judgments.tsv", qrels="dev.qrels")
    heldout.judging.contests(judged, "runs/*.gz")
    labels = heldout.judging.make_labels(judged)
    heldout.judging.rescore(judged, labels, "runs/*.gz", "RR@10")

A name is imported when it is used. How far judges agree: `heldout.agreement`.
"""

from heldout.lazy import offer_names

_HOMES = {
    ".campaign.judgments": ("Judgment",),
    ".campaign.pools": ("Pool",),
    ".labels.labels": ("Made",),
    ".labels.source": ("Judged",),
    ".services.values": (
        *("bias", "build_pools", "compare_labels", "contests", "make_labels"),
        *("read_judgments", "read_ratings", "rescore", "strengths"),
    ),
}
"""Public names by the module that has them."""

__getattr__, __dir__, __all__ = offer_names(__name__, _HOMES)
