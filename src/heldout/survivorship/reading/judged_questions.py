"""Questions of triage, or of answerable, seen as annotations: passages shown, and those ticked.

Passages stand as the pages show them: of triage as the first annotators saw them, of answerable in
an order drawn at random, which is no ranking.
"""

from collections.abc import Mapping, Sequence

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.discarded.passage_judging import Judged
from heldout.survivorship.discarded.questions import Question

__all__ = ["annotate_questions"]


def annotate_questions(
    questions: Sequence[Question], judged: Mapping[str, Judged], *, source: str
) -> Annotations:
    """The annotations that answered questions amount to.

    Args:
        questions: all of the folder, in order.
        judged: query -> what people say of its passages.
        source: the folder, for messages and records.

    Returns:
        The queries that somebody judged; a query is discarded where no passage was ticked by more
        than half. The note `nothing-shown` says how many nobody judged.

    Raises:
        InputError: code `no-judgments`: nobody judged any.
    """
    records = tuple(_annotate(one, judged[one.query]) for one in questions if one.query in judged)
    if not records:
        raise InputError(
            Problem(
                code="no-judgments",
                path=source,
                found=f"no answer to {plural(len(questions), 'question')}",
                expected="at least one that counts",
                hint="`heldout survive triage` and `answerable` serve the pages",
            )
        )
    unseen = len(questions) - len(records)
    note = Problem(
        code="nothing-shown",
        path=source,
        found=f"{plural(unseen, 'question')} that nobody judged",
        expected="an answer to every question",
        hint="these were left out",
        severity="note",
    )
    return Annotations(
        source=source,
        records=records,
        depth=max(len(record.shown) for record in records),
        open_ended=False,
        counts_discarded=True,
        notes=(note,) if unseen else (),
    )


def _annotate(question: Question, judged: Judged) -> Annotation:
    shown = tuple(DocId(passage.doc) for passage in question.passages)
    return Annotation(
        query=QueryId(question.query),
        text=question.text,
        shown=shown,
        selected={doc: at for at, doc in enumerate(shown, 1) if doc in judged.answering},
        texts={DocId(passage.doc): passage.text for passage in question.passages},
    )
