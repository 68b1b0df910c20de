"""Names that are one team's: those that an approved new name of a published entry joins.

A team is known by its name. Where an organiser approves another name for an entry of it, the old
name and the new one are of one team from then on, with all entries under either. A name that
somebody only writes joins nothing.
"""

from collections.abc import Iterable
from datetime import date

from heldout.board.log.history import History, Submission
from heldout.board.log.manifest import team_key

__all__ = ["hides_tie", "list_renamed", "names_of"]


def list_renamed(history: History) -> tuple[Submission, ...]:
    """The published entries that count for more than one name.

    Args:
        history: by the public log alone those under an embargo are not seen.
    """
    return tuple(
        submission
        for submission in history.submissions.values()
        if submission.status == "published" and len(submission.counts_for) > 1
    )


def names_of(renamed: Iterable[Submission], teams: Iterable[str]) -> frozenset[str]:
    """Every name of the teams that some names belong to, as `team_key` folds them.

    Args:
        renamed: as `list_renamed` gives them.
        teams: names as teams write them; their own keys are among those returned.
    """
    found = set(map(team_key, teams))
    joined = [frozenset(map(team_key, submission.counts_for)) for submission in renamed]
    while more := [keys for keys in joined if keys & found and not keys <= found]:
        found.update(*more)
    return frozenset(found)


def hides_tie(
    renamed: Iterable[Submission], teams: Iterable[str], other: Submission, *, day: date
) -> bool:
    """Whether that an entry is of some team too follows only from names that an embargo hides.

    Args:
        renamed: as `list_renamed` gives them.
        teams: names of the team.
        other: the entry.
        day: an embargo that ends later hides its entry, and the names that it joins.
    """
    renamed, teams = tuple(renamed), tuple(teams)
    open_ones = (submission for submission in renamed if not submission.is_hidden(day))
    theirs = set(map(team_key, other.counts_for))
    return not theirs.isdisjoint(names_of(renamed, teams)) and theirs.isdisjoint(
        names_of(open_ones, teams)
    )
