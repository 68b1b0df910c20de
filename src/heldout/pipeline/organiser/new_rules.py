"""Looks at a board.toml that was edited before it is logged: what is logged holds for good."""

import difflib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

import msgspec

from heldout.board.log.history import History
from heldout.board.rules.fixed_rules import (
    Difference,
    list_changed_keys,
    list_changed_terms,
    list_differences,
    list_moved_days,
)
from heldout.board.rules.held_out import list_open
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec, refuse_spec
from heldout.errors import InputError, Problem
from heldout.ids import digest_bytes
from heldout.pipeline.query_sets.public_files import EditedFile, find_edited, say_lines
from heldout.pipeline.query_sets.set_checks import check_sets
from heldout.pipeline.query_sets.sets import load_sets
from heldout.store.repository import SPEC, Repository
from heldout.store.vault import Vault

__all__ = ["RuleChange", "check_new_rules", "find_rule_change", "read_agreement_text"]

_LONGEST_AGREEMENT = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """What lies in the board's folder and is not what the log has.

    Attributes:
        texts: path -> (text in the log, text in the folder) of board.toml and the agreement.
        differences: the keys of board.toml that differ; none where only comments or layout do.
        files: public files that decide scores and are not what the log has; and how they differ,
            in words.
    """

    texts: dict[str, tuple[str, str]]
    differences: tuple[Difference, ...]
    files: tuple[tuple[EditedFile, str], ...] = ()

    def diff(self) -> tuple[str, ...]:
        """A unified diff, from what the log has to what lies there."""
        return tuple(
            line.rstrip("\n")
            for path, (before, after) in self.texts.items()
            for line in difflib.unified_diff(
                before.splitlines(), after.splitlines(), f"log/{path}", path, n=2, lineterm=""
            )
        )


def find_rule_change(repository: Repository, vault: Vault) -> RuleChange | None:
    """The rules in the board's folder that the log does not have, `None` where it has them all.

    Raises:
        InputError: board.toml is wrong, or the agreement is no text or too long.
        StoreError: the agreement that it names is missing.
    """
    history, text = vault.history(), repository.tree_rules()
    before, after = parse_spec(history.rules[-1][1].encode()), repository.tree_spec()
    texts = {}
    if text != history.rules[-1][1]:
        texts[SPEC] = (history.rules[-1][1], text)
    named = None if after.registration is None else after.registration.agreement
    if named is not None and history.closed is None:
        digest, agreement = read_agreement_text(repository, named)
        last = history.agreements[-1] if history.agreements else None
        if last is None or last.digest != digest:
            texts[named] = ("" if last is None else last.text, agreement)
    edited = tuple(
        (one, say_lines(repository, one)) for one in find_edited(repository, history, after)
    )
    if not texts and not edited:
        return None
    return RuleChange(texts=texts, differences=list_differences(before, after), files=edited)


def read_agreement_text(repository: Repository, path: str) -> tuple[str, str]:
    """An agreement's digest, and its text.

    Raises:
        InputError: it is no text or too long.
        StoreError: it is missing.
    """
    data = repository.file(path).read_bytes()
    if len(data) > _LONGEST_AGREEMENT:
        found = f"{len(data):,} bytes"
        expected = f"at most {_LONGEST_AGREEMENT:,} bytes"
        raise InputError(Problem(code="too-large", path=path, found=found, expected=expected))
    try:
        return str(digest_bytes(data)), data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            Problem(code="bad-utf8", path=path, found="bytes that are not UTF-8", expected="UTF-8")
        ) from None


def check_new_rules(repository: Repository, vault: Vault, *, now: datetime) -> None:
    """Refuse an edited board.toml, or public file, that cannot work or does not fit what was told.

    Where neither was edited nothing is looked at.

    Raises:
        InputError: it changes the organisers' keys, what released scores mean or what ranks them,
            moves a last day that is over, or names sets over which nothing can be scored.
        StoreError: a file that it names is missing.
    """
    history, text = vault.history(), repository.tree_rules()
    before = history.rules[-1][1]
    after = repository.tree_spec()
    edited = {one.path for one in find_edited(repository, history, after)}
    if text == before and not edited:
        return
    refuse_spec(list_changed_keys(parse_spec(before.encode()), after), text, path=SPEC)
    refuse_spec(list_changed_terms(history, after), text, path=SPEC)
    refuse_spec(list_moved_days(history, after, now=now), text, path=SPEC)
    _check_splits(history, after, edited)
    _check_sets(repository, vault, parse_spec(before.encode()), after, edited)
    _check_agreement(repository, history, after)


def _check_splits(history: History, after: BoardSpec, edited: AbstractSet[str]) -> None:
    """Refuse other queries of a split set: some would move from one part to the other."""
    told = {v for s in history.submissions.values() for v in (*s.scores, *s.untold)}
    split = {view.set for view in after.views if view.part is not None and view.name in told}
    problems = [
        Problem(
            code="edited-file",
            path=after.sets[name].queries,
            found="another file than the log has",
            expected=f"the file in the board's log, as '{name}' is split and scores are published",
            hint="its ids decide which queries are in which part: put it back with heldout rebuild "
            "--restore-rules, or give new queries a set of their own",
        )
        for name in sorted(split)
        if after.sets[name].queries in edited
    ]
    if problems:
        raise InputError(problems)


def _check_sets(
    repository: Repository,
    vault: Vault,
    before: BoardSpec,
    after: BoardSpec,
    edited: AbstractSet[str],
) -> None:
    """The sets that are new or read otherwise; others were looked at, or an old board has none."""
    fresh = {name for name, files in after.sets.items() if before.sets.get(name) != files}
    known = {view.name: view for view in before.views}
    fresh |= {view.set for view in after.views if known.get(view.name) != view}
    fresh |= {name for name in after.sets if not edited.isdisjoint(list_open(after, name))}
    if not fresh:
        return
    final = after.finalists_view
    if final is not None and final.set in fresh:  # no other set may have its queries
        fresh |= after.sets.keys()
    # Beside them all labels in the open: what is held out must not be among them.
    fresh |= {
        name
        for name, files in after.sets.items()
        if files.qrels is not None and repository.files.is_file(files.qrels)
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
        read_agreement_text(repository, registration.agreement)
