"""The answers that stand, among all that were recorded."""

from sqlalchemy import ColumnElement, FromClause, and_, exists

from heldout.store.judging.tables import judgments

__all__ = ["is_newest", "of_item"]


def is_newest() -> ColumnElement[bool]:
    """No later revision of this judgment is there."""
    later = judgments.alias()
    return ~exists().where(
        later.c.assignment == judgments.c.assignment,
        later.c.position == judgments.c.position,
        later.c.revision > judgments.c.revision,
    )


def of_item(items: FromClause) -> ColumnElement[bool]:
    """This judgment is of that item.

    Args:
        items: the table of items.
    """
    return and_(items.c.task == judgments.c.task, items.c.position == judgments.c.position)
