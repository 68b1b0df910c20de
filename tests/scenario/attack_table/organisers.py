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
            "open other labels than the committed ones",
            "reported as an error",
            (
                "labels that new keys bring",
                "labels that a later event leaves out",
                "labels in the open",
                "labels that are committed to at the end",
            ),
        ),
        (
            "give an entry invented scores",
            "reported as an error",
            (
                "a score by labels that were in force no more",
                "scores of queries that nobody asked",
                "a score that the measure cannot give",
                "a final score of no view",
                "an erratum that does not say what it was told for",
            ),
        ),
        (
            "withhold a score that the rules publish",
            "reported as an error",
            ("a score that is hidden where all are told", "a baseline whose score is hidden"),
        ),
        (
            "log what never happened",
            "refused: the event cannot follow",
            (
                "an erratum of what never was",
                "an entry that is published twice",
                "an entry that was never received",
                "an entry that was refused",
            ),
        ),
        (
            "stop the auditor",
            "refused at once",
            ("rules of dots", "rules of brackets"),
        ),
    ):
        yield from here.cases(test, *names, tries=tries, becomes=becomes, prefix="an archive with ")
    yield Group(family=FAMILY, module="scenario/test_forks.py").one(
        "events cut off on the board, which a fork still has",
        "test_events_cut_off_on_the_board_are_told_in_a_fork_that_had_them",
        tries="remove what was published",
        becomes="reported by `audit --receipt` in the fork's clone",
    )
    moved = Group(family=FAMILY, module="scenario/test_moved_deadline.py")
    yield moved.one(
        "the last day of a one-shot board moved after it was over",
        "test_a_last_day_that_is_over_is_not_moved",
        tries="count a late run, or hide scores again",
        becomes="refused; nothing is logged",
    )
    yield moved.one(
        "the same by a heldout of one's own",
        "test_an_organiser_whose_own_heldout_moves_it_changes_nothing_and_is_told",
        tries="count a late run, or hide scores again",
        becomes="ranks and scores stay; reported as an error",
    )
    yield from moved.cases(
        "test_scores_that_wait_for_the_last_day_are_not_opened_before_it",
        "another kind",
        "a last day in the past",
        tries="show others' scores early",
        becomes="refused; nothing is logged",
        prefix="a one-shot board opened before its day by ",
    )
    yield moved.one(
        "a one-shot board opened for a while by a heldout of one's own",
        "test_an_organiser_whose_own_heldout_opens_a_one_shot_board_for_a_while_is_told",
        tries="count a run whose team has seen the scores",
        becomes="both changes are reported as errors",
    )
    numbers = Group(family=FAMILY, module="board/test_released_terms.py")
    yield numbers.one(
        "numbers of another scale",
        "test_a_view_that_has_released_scores_stays_what_it_is",
        tries="rank a run first by more digits",
        becomes="refused",
    )
    yield Group(family=FAMILY, module="scenario/test_days.py").one(
        "an extension that ends an embargo early, or never",
        "test_an_embargo_is_extended_and_never_made_shorter_or_endless",
        tries="reveal a team early by a slip in the year",
        becomes="refused: `embargo-day`; nothing is logged",
    )
    wrong = Group(family=FAMILY, module="scenario/test_wrong_calls.py")
    yield from wrong.cases(
        "test_a_reason_that_says_nothing_is_none",
        *("reject", "correct", "extend", "ask", "publish"),
        *("board rekey", "board revoke", "archive"),
        tries="decide without a public reason",
        becomes="refused; nothing is logged",
        prefix="a reason of blanks: ",
    )
    yield Group(family=FAMILY, module="scenario/test_dishonest_organiser.py").one(
        "one entry alone scored by new labels",
        "test_a_friend_who_alone_is_scored_by_new_labels",
        tries="rank a friend first by new labels",
        becomes="`inbox` and `audit` name the others; no archive is made",
    )
    yield Group(family=FAMILY, module="scenario/test_sealed_errata.py").one(
        "an erratum only of those whose sealed score changed",
        "test_every_entry_that_is_scored_anew_has_an_erratum_whether_it_changed_or_not",
        tries="read a bit of a sealed score from the log",
        becomes="every entry scored again gets an erratum",
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
        tries="stop readers of the log",
        becomes="refused at once, naming the line",
        prefix="a board.toml of ",
    )
    yield from _by_git()


def _by_git() -> Iterator[Attack]:
    """What somebody does who may push to the board's main and has no key of the organisers."""
    here = Group(family="A push to the board's main", module="scenario/test_rules_by_git.py")
    yield here.one(
        "a key added to board.toml by a push",
        "test_a_key_added_by_a_push",
        tries="read future submissions",
        becomes="nothing is sealed for it; the audit fails",
    )
    yield from here.cases(
        "test_rules_changed_by_a_push",
        "a quota of a thousand",
        "rules switched off",
        "a release that lets anybody try often",
        tries="change the organisers' rules",
        becomes="shown as a diff that needs a yes; the log decides",
        prefix="by a push: ",
    )
    yield from here.cases(
        "test_a_public_file_changed_by_a_push",
        "a dev label",
        "an eval query",
        tries="score with other queries or labels",
        becomes="named, and needs a yes; `check` and `submit` refuse it, the audit fails",
        prefix="changed by a push: ",
    )
    for name, test, tries, becomes in (
        (
            "an agreement changed by a push",
            "test_an_agreement_changed_by_a_push",
            "make teams sign an unread text",
            "shown as a diff that needs a yes; nothing is logged",
        ),
        (
            "a log that was rewritten on the remote",
            "test_a_remote_whose_history_was_rewritten_gets_nothing",
            "give clones another log with another key",
            "clones that saw the first log seal nothing",
        ),
        (
            "a log that was removed by a push",
            "test_without_its_log_a_clone_has_no_rules",
            "make board.toml alone decide",
            "refused: no rules without the log",
        ),
        (
            "a title changed by a push",
            "test_a_page_made_in_a_clone_follows_the_log",
            "put words on a rebuilt page",
            "the page follows the log; the difference is named",
        ),
        (
            "a forge changed by a push",
            "test_a_forge_changed_by_a_push_gets_no_token",
            "receive the organisers' token",
            "not sent: the vault knows the token's host",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=becomes)
    yield from here.cases(
        "test_what_published_scores_fix_is_refused_in_a_clone_too",
        "runs.order",
        "decimals",
        "primary",
        tries="make teams prepare runs for impossible rules",
        becomes="refused by `check`, `submit` and `rebuild` in every clone",
        prefix="after the first score, by a push: another ",
    )
