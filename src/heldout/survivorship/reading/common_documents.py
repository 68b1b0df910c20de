"""Runs whose document ids are not those of the annotations: they would score 0, or teach it."""

from heldout.errors import InputError, Problem, plural
from heldout.survivorship.annotations import Annotations


def no_common_document(annotations: Annotations, path: str) -> InputError:
    """What is said of a run that lists none of the documents that were annotated.

    Such a run is hardly ever that bad: it names the documents by the ids of another collection.

    Args:
        annotations: that were read.
        path: the run.

    Returns:
        An error with code `no-common-document`.
    """
    known = sum(len({*record.shown, *record.selected}) for record in annotations.records)
    return InputError(
        Problem(
            code="no-common-document",
            path=path,
            found=f"none of the {plural(known, 'document')} that were shown or selected",
            expected=f"the document ids of {annotations.source}",
            hint="are both of one collection? MS MARCO QnA has no ids: --documents FILE gives them",
        )
    )
