"""What shallow annotation leaves out, in evaluation and in training (Gupta and MacAvaney 2022).

    annotations = heldout.survivorship.read_annotations("depth-qrels")
    heldout.survivorship.score_depths(annotations, "runs/*.gz", "RR@10")
    heldout.evaluate("runs/*.gz", heldout.survivorship.labels_at(annotations, 1), "RR@10")

A name is imported when it is used.
"""

from heldout.lazy import offer_names

_HOMES = {
    ".annotations": ("Annotation", "Annotations", "labels_at"),
    ".values": (
        *("annotate_run", "discarded_queries", "make_training_triples", "query_types"),
        *("read_annotations", "score_depths"),
    ),
    ".training.triples": ("Triple",),
}
"""Public names by the module that has them."""

__getattr__, __dir__, __all__ = offer_names(__name__, _HOMES)
