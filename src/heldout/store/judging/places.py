"""Places: a platform's own sittings, of which each is paid once, and so holds one task."""

from sqlalchemy import Connection, select

from heldout.store.judging.database import Database
from heldout.store.judging.sittings import Visitor
from heldout.store.judging.tables import assignments, workers

__all__ = ["ended_at"]


def ended_at(database: Database, visitor: Visitor) -> int | None:
    """The assignment that a worker has submitted or exited at this place; reads only.

    Args:
        database: of the campaign.
        visitor: who comes, and where.

    Returns:
        The latest; `None` where there is none, and where the platform names no places.

    Raises:
        DatabaseError: see `Fault`.
    """
    if not visitor.place:
        return None

    def find(connection: Connection) -> int | None:
        return connection.execute(
            select(assignments.c.id)
            .join(workers, workers.c.id == assignments.c.worker)
            .where(
                workers.c.platform_id == visitor.worker,
                assignments.c.place == visitor.place,
                assignments.c.state.in_(("submitted", "exited")),
            )
            .order_by(assignments.c.id.desc())
            .limit(1)
        ).scalar_one_or_none()

    return database.read(find)
