"""What a worker who comes back has ended before: at a platform's place, or at all."""

from sqlalchemy import Connection, or_, select

from heldout.store.judging.database import Database
from heldout.store.judging.sittings import Sitting, Visitor
from heldout.store.judging.standing import read_sitting
from heldout.store.judging.tables import assignments, workers

__all__ = ["ended_at", "last_ended"]


def ended_at(database: Database, visitor: Visitor) -> int | None:
    """The assignment that a worker has submitted or exited at this place; reads only.

    A place is a platform's own sitting: each is paid once, and so holds one task.

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


def last_ended(database: Database, worker: str) -> Sitting | None:
    """The latest assignment of a worker that takes no answers any more; reads only.

    Args:
        database: of the campaign.
        worker: the platform's id.

    Returns:
        `None` where there is none.

    Raises:
        DatabaseError: see `Fault`.
    """

    def find(connection: Connection) -> Sitting | None:
        closed = (assignments.c.state == "expired") & assignments.c.failed.is_not(None)
        found = connection.execute(
            select(assignments.c.id)
            .join(workers, workers.c.id == assignments.c.worker)
            .where(workers.c.platform_id == worker)
            .where(or_(assignments.c.state.in_(("submitted", "exited")), closed))
            .order_by(assignments.c.id.desc())
            .limit(1)
        ).scalar_one_or_none()
        return None if found is None else read_sitting(connection, found)

    return database.read(find)
