"""Views on labels that were made later: an entry of before is scored again on them.

All other rules hold for what came after them. A view that names labels of its own is different: it
asks nothing new of a run, and labels that grow are made for the runs that are there.
"""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache

import msgspec

from heldout.board.log.history import History, Submission
from heldout.board.rules.release import RuleName
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec

__all__ = ["add_label_views", "release_rule_at", "rules_told_by"]


def add_label_views(
    spec: BoardSpec, later: BoardSpec, *, named: Collection[str] | None = None
) -> BoardSpec:
    """Rules of a day with the views of later rules that name labels of their own.

    Under a Ladder a view that would tell a score of held-out labels is left out: every entry would
    be told, whether it rose or not.

    Args:
        spec: the rules of the day.
        later: later ones.
        named: add only views of these names; `None` for all.
    """
    known = {view.name for view in spec.views}
    climbs = {spec.release.rule, later.release.rule} != {"rounded"}
    added = tuple(
        view
        for view in later.views
        if view.labels is not None
        and view.name not in known
        and (named is None or view.name in named)
        and later.sets.get(view.set) == spec.sets.get(view.set)
        and not (view.public and climbs and spec.sets[view.set].held_out)
    )
    return msgspec.structs.replace(spec, views=(*spec.views, *added)) if added else spec


def release_rule_at(history: History, moment: datetime) -> RuleName:
    """The release rule for what was submitted at a moment."""
    return _release_rule(history.rules_at(moment))


@lru_cache(maxsize=64)
def _release_rule(text: str) -> RuleName:
    """Asked for with every entry of a log, which has few rules."""
    return parse_spec(text.encode()).release.rule


def rules_told_by(history: History, submission: Submission, named: Collection[str]) -> BoardSpec:
    """The rules that an entry's scores were told by: of its day, and on later labels.

    Args:
        history: up to what is looked at.
        submission: the entry.
        named: views that it was told in.
    """
    rules = parse_spec(history.rules_at(submission.received).encode())
    later = parse_spec(history.rules[-1][1].encode())
    return add_label_views(rules.on(submission.received.date()), later, named=named)
