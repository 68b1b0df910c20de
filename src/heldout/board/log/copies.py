"""Which of several copies of one public log is the newest: remotes can be behind, as forks are."""

from collections.abc import Iterable, Iterator, Sequence

from heldout.board.log.events import Entry

__all__ = ["check_continues", "goes_on", "newest_copy"]


def goes_on(earlier: Sequence[Entry], later: Sequence[Entry]) -> bool:
    """Whether a verified log is another one with events added, at least one."""
    if len(later) <= len(earlier):
        return False
    return not earlier or later[len(earlier) - 1].hash == earlier[-1].hash


def newest_copy(here: Sequence[Entry], remotes: Iterable[Sequence[Entry]]) -> Sequence[Entry]:
    """The log to go by.

    Args:
        here: the copy of the clone that one works in.
        remotes: those of its remotes.

    Returns:
        The longest of the remotes' copies, or the one here where it goes on from that. Of two that
        are no longer one history the remotes' counts: others see it, too.
    """
    published = max(remotes, key=len, default=())
    return here if goes_on(published, here) else published


def check_continues(earlier: Sequence[Entry], later: Sequence[Entry]) -> Iterator[str]:
    """Tell where a log is not an earlier copy of it with events added.

    Args:
        earlier: a copy from before.
        later: the log of today.
    """
    for before, now in zip(earlier, later, strict=False):
        number = before.event.seq
        if before.hash != now.hash:
            yield f"event {number} is another one than in the earlier copy: history was rewritten"
            return
        if hidden := before.opened.keys() - now.opened.keys():
            yield f"event {number} showed {', '.join(sorted(hidden))} before, and hides it now"
    if len(later) < len(earlier):
        yield f"the last {len(earlier) - len(later)} events of the earlier copy were cut off"
