# The public names of heldout.survivorship, written by `python tools/api.py`.

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

__all__ = [
    "Annotation",
    "Annotations",
    "Triple",
    "annotate_run",
    "discarded_queries",
    "labels_at",
    "make_training_triples",
    "query_types",
    "read_annotations",
    "score_depths",
]
