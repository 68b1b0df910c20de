"""Attacks by files in a board's tree that have the names of a clone's own."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["ARCHIVES", "LOGS", "OVERWRITTEN", "SPELLINGS", "attacks"]

FAMILY = "A tree that brings what is a clone's own"
_REFUSED = "refused: `private-path`; keys, drafts and pin are byte for byte as before"

LOGS = ("a fitting .heldout/pinned.json", "no pinned.json", "a fitting .git/heldout/pinned.json")
# What was in a clone's tree before: its name in `.git/heldout` is the same, without `.heldout/`.
OVERWRITTEN = (
    *("keys/ID", "receipts/ID.json", "packed/ID.json", "team/key", "tokens/HOST"),
    *("a draft's metadata", ".heldout as a symlink", ".heldout as a submodule"),
    *("drafts as a file", "both as symlinks"),
)
SPELLINGS = (".HELDOUT", "Drafts", ".heldout ", ".heldout.", "drafts::$DATA", "HELDOU~1")
ARCHIVES = ("a fitting .heldout/pinned.json", "a .git folder with a fitting pinned.json")


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_pull.py")
    for names, test, start, tries, becomes in (
        (
            LOGS,
            "test_a_log_of_another_board_is_pulled",
            "git pull of another board's log and keys, with ",
            "have submissions sealed for the attacker",
            "refused: the log is of another board; nothing is sealed",
        ),
        (
            OVERWRITTEN,
            "test_a_pull_overwrites_nothing_of_a_clone",
            "git pull of ",
            "replace or delete a participant's files",
            _REFUSED,
        ),
        (
            SPELLINGS,
            "test_a_pull_in_another_spelling",
            "git pull of a folder ",
            "reach a clone's files on a disk that knows no upper case",
            _REFUSED,
        ),
        (
            ARCHIVES,
            "test_a_hostile_board_zip_over_an_unpacked_board",
            "a board.zip of another board, unpacked over the first, with ",
            "have submissions sealed for the attacker",
            "refused; nothing is sealed",
        ),
    ):
        for name in names:
            yield here.one(start + name, test, tries=tries, becomes=becomes)
    for name, test, tries, becomes in (
        (
            "git checkout of a branch with .heldout and drafts",
            "test_a_branch_is_checked_out",
            "replace a participant's files",
            _REFUSED,
        ),
        (
            "a key of a team, pulled, and left in the tree by git reset",
            "test_what_a_reset_leaves_is_not_taken_for_ones_own",
            "have a team sign with the attacker's key",
            "never moved to the clone's own files",
        ),
        (
            "the same in a clone where no command was called before",
            "test_what_a_reset_leaves_in_a_new_clone_is_not_taken_for_ones_own",
            "have a team sign with the attacker's key",
            "never moved to the clone's own files",
        ),
        (
            "a main branch with .heldout that was not pulled",
            "test_a_main_branch_that_was_not_pulled",
            "show another log",
            "refused: `private-path`; nothing is sent",
        ),
        (
            "an organiser pulls .heldout as a symlink to the vault",
            "test_an_organiser_pulls_a_link_to_the_vault",
            "write into the vault",
            "refused: `private-path`; the vault is untouched",
        ),
        (
            "a submission's branch that brings .heldout/pinned.json",
            "test_a_branch_of_a_submission_brings_a_pin",
            "have it merged",
            "refused: `private-path`; not logged",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=becomes)
