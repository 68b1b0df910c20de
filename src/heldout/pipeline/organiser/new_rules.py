"""Looks at a board.toml that was edited before it is logged: what is logged holds for good."""

from datetime import datetime

import msgspec

from heldout.board.log.history import History
from heldout.board.rules.fixed_rules import list_changed_terms, list_moved_days
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec, refuse_spec
from heldout.pipeline.query_sets.set_checks import check_sets
from heldout.pipeline.query_sets.sets import load_sets
from heldout.store.repository import SPEC, Repository
from heldout.store.vault import Vault

__all__ = ["check_new_rules"]


def check_new_rules(repository: Repository, vault: Vault, *, now: datetime) -> None:
    """Refuse an edited board.toml that cannot work, or does not fit what was told.

    Where it was not edited nothing is looked at.

    Raises:
        InputError: it changes what told scores mean or what ranks them, moves a last day that is
            over, or names sets over which nothing can be scored.
        StoreError: a file that it names is missing.
    """
    history, text = vault.history(), repository.rules()
    before = history.rules[-1][1]
    if text == before:
        return
    after = repository.spec()
    refuse_spec(list_changed_terms(history, after), text, path=SPEC)
    refuse_spec(list_moved_days(history, after, now=now), text, path=SPEC)
    _check_sets(repository, vault, parse_spec(before.encode()), after)
    _check_agreement(repository, history, after)


def _check_sets(repository: Repository, vault: Vault, before: BoardSpec, after: BoardSpec) -> None:
    """The sets that are new or read otherwise; others were looked at, or an old board has none."""
    fresh = {name for name, files in after.sets.items() if before.sets.get(name) != files}
    known = {view.name: view for view in before.views}
    fresh |= {view.set for view in after.views if known.get(view.name) != view}
    if not fresh:
        return
    # Beside them all labels in the open: what is held out must not be among them.
    fresh |= {
        name
        for name, files in after.sets.items()
        if files.qrels is not None and (repository.root / files.qrels).is_file()
    }
    part = msgspec.structs.replace(
        after,
        sets={name: files for name, files in after.sets.items() if name in fresh},
        views=tuple(view for view in after.views if view.set in fresh),
    )
    sets = load_sets(repository, part, vault=vault)
    check_sets(part, sets)


def _check_agreement(repository: Repository, history: History, after: BoardSpec) -> None:
    registration = after.registration
    if registration is not None and registration.agreement is not None and not history.closed:
        repository.file(registration.agreement)
