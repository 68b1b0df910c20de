"""Attacks by organisers on the board that is theirs."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "Organisers who rewrite, hide or move"


def attacks() -> Iterator[Attack]:
    """What organisers do who have the log and a heldout of their own; every hash is right."""
    here = Group(family=FAMILY, module="scenario/test_hostile_archives.py")
    test = "test_a_log_that_was_made_anew_with_sound_hashes"
    for tries, becomes, names in (
        (
            "to open other labels than those of the first day",
            "reported as an error of the archive",
            (
                "labels that new keys bring",
                "labels that a later event leaves out",
                "labels in the open",
                "labels that are committed to at the end",
            ),
        ),
        (
            "to let an entry carry invented scores",
            "reported as an error of the archive: labels in force, asked queries, possible scores",
            (
                "a score by labels that were in force no more",
                "scores of queries that nobody asked",
                "a score that the measure cannot give",
                "a final score of no view",
                "an erratum that does not say what it was told for",
            ),
        ),
        (
            "to withhold a score that the rules tell",
            "reported as an error of the archive",
            ("a score that is hidden where all are told", "a baseline whose score is hidden"),
        ),
        (
            "to tell what never happened",
            "the log is not read: no event comes after what it cannot come after",
            (
                "an erratum of what never was",
                "an entry that is published twice",
                "an entry that was never received",
                "an entry that was refused",
            ),
        ),
        (
            "to stop whoever audits it",
            "refused at once, in words",
            ("rules of dots", "rules of brackets"),
        ),
    ):
        yield from here.cases(test, *names, tries=tries, becomes=becomes, prefix="an archive with ")
    yield Group(family=FAMILY, module="scenario/test_forks.py").one(
        "events cut off on the board, which a fork still has",
        "test_events_cut_off_on_the_board_are_told_in_a_fork_that_had_them",
        tries="to take back what was published",
        becomes="told by `audit --receipt` in the fork's clone",
    )
    moved = Group(family=FAMILY, module="scenario/test_moved_deadline.py")
    yield moved.one(
        "the last day of a one-shot board moved after it was over",
        "test_a_last_day_that_is_over_is_not_moved",
        tries="to count a run that came late, or to hide scores again",
        becomes="refused; nothing is logged",
    )
    yield moved.one(
        "the same by a heldout of one's own",
        "test_an_organiser_whose_own_heldout_moves_it_changes_nothing_and_is_told",
        tries="to count a run that came late, or to hide scores again",
        becomes="ranks and shown scores stay; reported as an error",
    )
    yield from moved.cases(
        "test_scores_that_wait_for_the_last_day_are_not_opened_before_it",
        "another kind",
        "a last day in the past",
        tries="to show a friend the scores of others before the last day",
        becomes="refused; nothing is logged",
        prefix="a one-shot board opened before its day by ",
    )
    yield moved.one(
        "a one-shot board opened for a while by a heldout of one's own",
        "test_an_organiser_whose_own_heldout_opens_a_one_shot_board_for_a_while_is_told",
        tries="to let a run count as in time whose team has seen the scores",
        becomes="both changes are told as faults",
    )
    numbers = Group(family=FAMILY, module="scenario/test_fixed_rules.py")
    yield numbers.one(
        "numbers of another scale",
        "test_numbers_of_another_scale_do_not_come_to_stand_beside_those_that_were_told",
        tries="to rank one's own run first by telling it in more digits, or in steps",
        becomes="refused; nothing is logged",
    )
    yield Group(family=FAMILY, module="scenario/test_days.py").one(
        "an extension that ends an embargo early, or never",
        "test_an_embargo_is_extended_and_never_made_shorter_or_endless",
        tries="by a slip in the year, to name a team before its day",
        becomes="refused as `embargo-day`; nothing is logged",
    )
    wrong = Group(family=FAMILY, module="scenario/test_wrong_calls.py")
    yield from wrong.cases(
        "test_a_reason_that_says_nothing_is_none",
        *("reject", "correct", "extend", "ask", "publish"),
        *("board rekey", "board revoke", "archive"),
        tries="to decide in public without a reason",
        becomes="refused; nothing is logged",
        prefix="a reason of blanks: ",
    )
    yield Group(family=FAMILY, module="scenario/test_dishonest_organiser.py").one(
        "one entry alone scored by new labels",
        "test_a_friend_who_alone_is_scored_by_new_labels",
        tries="to rank a friend first, and every other entry by the earlier labels",
        becomes="the others are named by inbox and audit; no archive is made, and one that is "
        "made nevertheless has a fault",
    )
    yield Group(family=FAMILY, module="scenario/test_sealed_errata.py").one(
        "an erratum only of those whose sealed score changed",
        "test_every_entry_that_is_scored_anew_has_an_erratum_whether_it_changed_or_not",
        tries="to read a bit of a sealed score from the log",
        becomes="every entry that is scored again has an erratum",
    )
    rules = Group(family=FAMILY, module="board/test_hostile_rules.py")
    yield from rules.cases(
        "test_hostile_rules_are_refused_soon",
        "dots in one key",
        "dots in many headers",
        "dots in many keys",
        "brackets within brackets",
        "tables within tables",
        "more bytes than any board",
        "a line without end",
        "thousands of unknown keys",
        "digits without end",
        "hexadecimal digits",
        "a cutoff without end",
        "bytes that are no text",
        tries="to stop whoever reads a board's log",
        becomes="refused at once, by its line",
        prefix="a board.toml of ",
    )
    yield from _by_git()


def _by_git() -> Iterator[Attack]:
    """What somebody does who may push to the board's main and has no key of the organisers."""
    here = Group(family="A push to the board's main", module="scenario/test_rules_by_git.py")
    yield here.one(
        "a key added to board.toml by a push",
        "test_a_key_added_by_a_push",
        tries="to read what teams submit from now on",
        becomes="nothing is sealed for it, and no event takes it; the audit fails",
    )
    yield from here.cases(
        "test_rules_changed_by_a_push",
        "a quota of a thousand",
        "rules switched off",
        "a release that lets anybody try often",
        tries="to have other rules in force than the organisers chose",
        becomes="shown as a diff that needs a yes; nothing is logged, and the log counts",
        prefix="by a push: ",
    )
    yield from here.cases(
        "test_a_public_file_changed_by_a_push",
        "a dev label",
        "an eval query",
        tries="to have later scores made with other queries or labels",
        becomes="named with the lines that differ, and needs a yes; `draft`, `check` and `submit` "
        "refuse it, and the audit fails",
        prefix="changed by a push: ",
    )
    for name, test, tries, becomes in (
        (
            "an agreement changed by a push",
            "test_an_agreement_changed_by_a_push",
            "to let teams sign what no organiser has read",
            "shown as a diff that needs a yes; nothing is logged",
        ),
        (
            "a log that was rewritten on the remote",
            "test_a_remote_whose_history_was_rewritten_gets_nothing",
            "to give clones another log, with another key in it",
            "a clone that has seen the first one seals nothing",
        ),
        (
            "a log that was removed by a push",
            "test_without_its_log_a_clone_has_no_rules",
            "to let board.toml alone decide",
            "refused: without the log no rules hold",
        ),
        (
            "a title changed by a push",
            "test_a_page_made_in_a_clone_follows_the_log",
            "to put words on the page that readers make",
            "the page follows the log, and the difference is named",
        ),
        (
            "a forge changed by a push",
            "test_a_forge_changed_by_a_push_gets_no_token",
            "to be sent the organisers' token",
            "not sent, by REST or by git, even after a yes to the rules: the vault knows its host",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=becomes)
    yield from here.cases(
        "test_what_published_scores_fix_is_refused_in_a_clone_too",
        "runs.order",
        "decimals",
        "primary",
        tries="to let teams prepare runs by rules that no event can bring",
        becomes="refused by `check`, `submit` and `rebuild` in every clone",
        prefix="after the first score, by a push: another ",
    )
