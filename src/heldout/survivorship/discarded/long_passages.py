"""Passages that are too long for people to read: they are shown, and told."""

from collections.abc import Iterable

from heldout.errors import Problem, plural
from heldout.survivorship.discarded.questions import Question
from heldout.trec.problems import show

__all__ = ["LONG_PASSAGE", "note_long_passages"]

LONG_PASSAGE = 100_000
"""Characters; some forty pages of a book."""


def note_long_passages(questions: Iterable[Question], *, path: str) -> tuple[Problem, ...]:
    """What to tell of passages of more than `LONG_PASSAGE` characters.

    Args:
        questions: that people will look at.
        path: of their file.

    Returns:
        One note, code `long-passage`, that names the longest; none where there is none.
    """
    sizes = [
        (len(one.text), one.doc, question.query)
        for question in questions
        for one in question.passages
        if len(one.text) > LONG_PASSAGE
    ]
    if not sizes:
        return ()
    size, doc, query = max(sizes)
    found = f"{plural(len(sizes), 'passage')}; {show(doc)} of query {show(query)} has {size:,}"
    return (
        Problem(
            code="long-passage",
            path=path,
            found=f"{found} characters",
            expected=f"passages that people can read, of up to {LONG_PASSAGE:,}",
            hint="they are shown whole; cut documents into passages first",
            severity="note",
        ),
    )
