"""What shallow annotation leaves out, in evaluation and in training (Gupta and MacAvaney 2022).

    annotations = heldout.survivorship.read_annotations("depth-qrels")
    heldout.survivorship.score_depths(annotations, "runs/*.gz", "RR@10")
    heldout.evaluate("runs/*.gz", heldout.survivorship.labels_at(annotations, 1), "RR@10")

A name is imported when it is used.
"""

from typing import TYPE_CHECKING, Any

from heldout.lazy import import_name

if TYPE_CHECKING:
    from heldout.survivorship.annotations import Annotation as Annotation
    from heldout.survivorship.annotations import Annotations as Annotations
    from heldout.survivorship.annotations import labels_at as labels_at
    from heldout.survivorship.training.triples import Triple as Triple
    from heldout.survivorship.values import annotate_run as annotate_run
    from heldout.survivorship.values import discarded_queries as discarded_queries
    from heldout.survivorship.values import make_training_triples as make_training_triples
    from heldout.survivorship.values import query_types as query_types
    from heldout.survivorship.values import read_annotations as read_annotations
    from heldout.survivorship.values import score_depths as score_depths

_HOMES = {
    ".annotations": ("Annotation", "Annotations", "labels_at"),
    ".values": (
        *("annotate_run", "discarded_queries", "make_training_triples", "query_types"),
        *("read_annotations", "score_depths"),
    ),
    ".training.triples": ("Triple",),
}
"""Public names by the module that has them."""

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605 - a list of strings

if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        found = globals()[name] = import_name(__name__, _HOMES, name)
        return found

    def __dir__() -> list[str]:
        return __all__
