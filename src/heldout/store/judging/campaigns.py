"""A campaign in its database: settings, pools and tasks, loaded once and added to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from heldout.preferences.pools import Pool
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Task
from heldout.store.judging.database import Database

__all__ = ["Campaign", "Loaded", "load_campaign", "read_campaign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What the pages need to know of it.

    Attributes:
        code: random, part of the link that workers are sent: `/j/CODE`.
        key: random, signs tokens; never shown.
        settings: of the newest batch.
        batches: terms of every batch, by its number.
    """

    code: str
    key: bytes
    settings: Settings
    batches: dict[int, Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was new.

    Attributes:
        tasks: how many tasks.
        batches: numbers of the batches they are of.
    """

    tasks: int
    batches: tuple[int, ...]


def load_campaign(
    database: Database,
    settings: Settings,
    pools: Iterable[Pool],
    tasks: Iterable[Task],
    *,
    now: datetime,
) -> Loaded:
    """Add what the database does not have yet; what is there is left as it is.

    A batch keeps the settings it was loaded with: wording and prices may change for later ones.

    Raises:
        InputError: codes `changed-setting`, `changed-consent`, `changed-text`, `changed-task`,
            `old-batch`: what people saw would change; `no-text`: a task names a query or passage
            without a text; `repeated-task`, `task-name`.
    """
    raise NotImplementedError


def read_campaign(database: Database) -> Campaign:
    """The campaign.

    Raises:
        DatabaseError: code `database-empty`: nothing was loaded yet.
    """
    raise NotImplementedError
