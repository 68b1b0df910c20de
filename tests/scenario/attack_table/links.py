"""Attacks by symlinks."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["BOARD", "CLONE", "VAULT", "attacks"]

FAMILY = "A symlink that leads out of a board, a vault or a clone"
_STAYS = "refused by name; its target is untouched"
_KINDS = ("elsewhere", "the vault", "nothing", "itself")


def _in_turn(*names: str, kinds: tuple[str, ...] = _KINDS) -> tuple[tuple[str, str], ...]:
    return tuple((name, kinds[number % len(kinds)]) for number, name in enumerate(names))


ID = "20261102-second"
_OWN = ".git/heldout"
# Every placement with one kind of target, and `leaderboard`, whose old pages go, with all.
BOARD = (
    *_in_turn(
        *("leaderboard", "submissions", "keys", "queries", "qrels", ".git/heldout"),
        *("board.toml", "log.jsonl", ".gitattributes", "keys/organisers.txt", "queries/dev.tsv"),
        *("qrels/dev.qrels", ".git/heldout/lock", "leaderboard/entries", "leaderboard/static"),
        *("leaderboard/index.html", "leaderboard/manifest.json", "leaderboard/leaderboard.json"),
    ),
    *(("leaderboard", kind) for kind in _KINDS[1:]),
)
CLONE = _in_turn(
    *("leaderboard", "leaderboard/entries", "leaderboard/index.html", _OWN, f"{_OWN}/drafts"),
    *(f"{_OWN}/drafts/{ID}{below}" for below in ("", "/dev.run", "/metadata.json")),
    "queries",
    *(f"{_OWN}/{name}" for name in ("keys", "sealed", "packed", "receipts")),
    *(f"{_OWN}/{name}" for name in (f"keys/{ID}", f"packed/{ID}.json", f"receipts/{ID}.json")),
)
VAULT = _in_turn(
    *("identities", "labels", "sealed", "scores", "signatures", "events.jsonl", "lock"),
    *("identities/organiser.txt", "labels/eval.qrels"),
    kinds=("nothing", "elsewhere"),
)


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_links.py")
    for where, test, tries, places in (
        (
            "a board",
            "test_a_symlink_in_the_organisers_board",
            "redirect organisers' commands",
            BOARD,
        ),
        (
            "a clone",
            "test_a_symlink_in_a_clone",
            "redirect participants' commands",
            CLONE,
        ),
        (
            "a vault",
            "test_a_symlink_in_the_vault",
            "redirect organisers' commands",
            VAULT,
        ),
    ):
        for name, kind in places:
            yield here.one(
                f"{where} in which {name} is a symlink to {kind}",
                test,
                tries=f"{tries} elsewhere",
                becomes=_STAYS,
            )
    yield here.one(
        "a clone whose leaderboard leads into the reader's home",
        "test_a_reader_rebuilds_in_a_hostile_clone",
        tries="make `rebuild` delete the reader's files",
        becomes=_STAYS,
    )
    for command in ("rebuild", "inbox", "publish"):
        yield here.one(
            f"a leaderboard that leads into the vault, pulled before {command}",
            "test_an_organiser_pulls_a_leaderboard_that_leads_into_the_vault",
            tries="delete key, labels and log",
            becomes=_STAYS,
        )
    yield here.one(
        "a manifest that names files outside the page",
        "test_only_pages_that_heldout_wrote_are_removed",
        tries="make `rebuild` delete them",
        becomes="only plain files in `leaderboard/` are deleted",
    )
    for moment in ("it was listed", "its digest was taken"):
        yield here.one(
            f"an upload swapped for a symlink to the labels after {moment}",
            "test_an_upload_that_is_swapped_for_the_labels",
            tries="read the labels' digest in the public log",
            becomes="refused: `missing-file` or `changed-file`; not logged",
        )
