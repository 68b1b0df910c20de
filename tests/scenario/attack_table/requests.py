"""Attacks by a pull request."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "A hostile pull request"
_FOREIGN = "refused: `foreign-change`; nothing is checked out"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_request.py")
    yield from here.cases(
        "test_pull_request",
        "the id of another team's entry",
        "the id of a submission that waits",
        tries="put their own files under another team's id",
        becomes="refused: `id-taken`" + SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "one sealed file of another team's entry",
        tries="break an entry, or open it under another key",
        becomes="refused: `missing-file`" + SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "new metadata for another team's entry",
        tries="rename another team's entry",
        becomes="refused: `untrusted` (sealed under another key)" + SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "another team's entry deleted",
        "ids that differ in case alone",
        "a symlink to the held-out labels",
        "a submodule whose address is a command",
        "a folder named as git's own",
        "one name twice in a folder",
        "a folder spelled with a look-alike letter",
        "a name with backslashes",
        "a name that is no UTF-8",
        "folders 500 deep",
        "a name that is a command",
        tries="change other files, or use a misleading name",
        becomes="refused: `foreign-change`" + SAME,
    )
    yield here.one(
        "a title, an author and a branch that are commands",
        "test_a_title_an_author_and_a_branch_that_are_commands",
        tries="run in a shell",
        becomes="treated as data; the files are received under the id in their names",
    )
    yield here.one(
        "a branch name that turns around",
        "test_a_branch_name_that_turns_around",
        tries="mislead readers of the terminal or the page",
        becomes="printed escaped; not on a page or in the log",
    )
    yield here.one(
        "tags and replacements that shadow the board",
        "test_tags_and_replacements_that_shadow_the_board",
        tries="pass for the board's main branch",
        becomes="not fetched" + SAME,
    )
    yield from _branches()
    yield from _around_requests()


def _branches() -> Iterator[Attack]:
    branches = Group(family=FAMILY, module="scenario/test_hostile_branches.py")
    arrivals = Group(family=FAMILY, module="board/test_arrivals.py")
    yield from arrivals.cases(
        "test_foreign_change",
        "an extra file",
        "an extra file at the top",
        "a deleted file",
        "a deleted log",
        "a changed board.toml",
        "a changed log",
        "a changed leaderboard",
        "a workflow",
        "attributes with a filter",
        "attributes beside the files",
        "gitmodules",
        "a symlink",
        "a symlink for the folder",
        "a submodule",
        "a submodule for a file",
        "an executable",
        "files of two submissions",
        "control characters in a name",
        "a newline in a name",
        "an id with shell characters",
        "an id with dots",
        "a folder deeper",
        "upper-case folder",
        "a file of the other form",
        "a right-to-left override",
        tries="change other files than the submission's own",
        becomes=_FOREIGN,
    )
    yield from branches.cases(
        "test_a_branch_of_a_hostile_name_stops_neither_inbox_nor_submit",
        "a name that is not UTF-8",
        "a line separator in a name",
        "a next-line character in a name",
        "spaces of other scripts",
        "a main line that is not UTF-8",
        tries="stop the inbox and every team's `submit`",
        becomes="reported without its name; all others are received",
        prefix="a branch: ",
    )
    yield branches.one(
        "a branch below another team's id, removed again",
        "test_a_branch_below_somebody_s_id_that_was_removed_again",
        tries="block that team's branch in the organisers' clone",
        becomes="removed there before the next fetch",
    )
    yield from _bombs(branches)
    yield from branches.cases(
        "test_a_program_that_a_clone_s_own_settings_name",
        "an upload-pack program",
        "an ssh command",
        "a credential helper",
        "a credential helper for one address",
        "a program that asks for passwords",
        "a proxy for git's own protocol",
        "a program for alternate refs",
        "a file that is included",
        "a remote whose name is an option",
        "filters that the clone's own attributes name",
        tries="start a program named in the clone's .git/config",
        becomes="not started; only global settings are followed",
        prefix="settings of the clone: ",
    )
    yield Group(family=FAMILY, module="scenario/test_merged_early.py").one(
        "a merged submission, and another request under its id",
        "test_a_merged_submission_and_somebody_else_s_of_the_same_id_are_for_an_organiser",
        tries="replace what somebody merged too early",
        becomes="both refused: `id-conflict`, until an organiser decides",
    )
    yield from branches.cases(
        "test_nothing_is_run_in_the_organisers_clone",
        "hooks",
        "fsmonitor",
        "hooks path",
        "clean and smudge filters",
        "external diff",
        "textconv",
        "signing program",
        "editor",
        "pager",
        tries="start a program named in git settings",
        becomes="refused; the program is not started",
        prefix="a trap in git: ",
    )
    for name, test, tries, becomes in (
        (
            "a huge blob",
            "test_a_file_that_is_too_large",
            "exhaust memory",
            "refused unread: `too-large`",
        ),
        (
            "hundreds of files",
            "test_many_files_are_reported_in_ten_problems",
            "flood the terminal",
            "refused in ten lines",
        ),
        (
            "a branch with a history of its own",
            "test_a_branch_that_does_not_descend_from_main",
            "replace the board",
            "refused: `foreign-history`",
        ),
    ):
        yield arrivals.one(name, test, tries=tries, becomes=becomes)
    for name, test, tries, becomes in (
        ("a path with ..", "test_path_with_dot_dot", "write beside the board", _FOREIGN),
        (
            "a huge file in a folder",
            "test_huge_file_in_a_folder",
            "exhaust memory",
            "refused unread: `too-large`",
        ),
        (
            "an id read on somebody's branch",
            "test_an_id_that_was_read_on_somebody_s_branch",
            "take another team's id by sorting first",
            "both refused: `id-conflict`, until an organiser decides",
        ),
        (
            "a request that names no commit",
            "test_pull_request_ref_that_names_no_commit",
            "stop the inbox",
            "skipped; the next request is received",
        ),
        (
            "a bad branch beside a good one",
            "test_a_bad_branch_does_not_stop_the_good_one",
            "block other submissions",
            "refused; the good one is received",
        ),
        (
            "garbage for sealed files",
            "test_garbage_for_sealed_files_is_refused_at_review",
            "crash the reader",
            "refused at review; no score",
        ),
        (
            "metadata alone of an id that nobody sent",
            "test_metadata_alone_of_an_id_that_nobody_sent",
            "reserve an id without a run",
            "refused: `nothing-to-update`",
        ),
        (
            "file names that are commands in a folder",
            "test_hostile_file_names_in_a_folder_are_no_submissions",
            "run in a shell, or leave the folder",
            "skipped as no submission",
        ),
        (
            "symlinks in a folder",
            "test_symlink_in_a_folder_is_not_followed",
            "have the held-out labels received",
            "skipped, not followed",
        ),
        (
            "a remote that is a command",
            "test_an_ext_remote_is_not_obeyed",
            "run by git's ext transport",
            "not contacted, and reported",
        ),
        (
            "git settings in the environment",
            "test_git_settings_of_the_environment_do_not_lead_astray",
            "redirect writes to another repository",
            "not followed",
        ),
    ):
        yield branches.one(name, test, tries=tries, becomes=becomes)


def _bombs(branches: Group) -> Iterator[Attack]:
    beside = "the submission beside it is received"
    for name, test, tries, becomes in (
        (
            "1,000,000,000 paths in a pack of 1 kB",
            "test_a_pack_that_names_a_thousand_million_paths",
            "keep the inbox busy for ever",
            "refused by the folder's name: `foreign-change` or, files left out, `not-fetched`",
        ),
        (
            "huge files under names that no submission has, at a remote that can leave files out",
            "test_no_file_of_a_branch_with_a_foreign_path_is_fetched",
            "exhaust memory or time",
            "refused by its paths before any file is fetched: `not-fetched`",
        ),
        (
            "a folder of 200,000 names",
            "test_a_folder_of_very_many_names",
            "exhaust memory",
            "refused: `not-fetched`",
        ),
        (
            "deltas that unpack to more than fits",
            "test_deltas_that_need_more_than_git_may_have",
            "exhaust memory or time",
            "git stops at its limit; refused: `not-fetched`, nothing stays",
        ),
        (
            "deltas that unpack to more than a submission has",
            "test_more_bytes_than_a_submission_may_bring",
            "fill the disk",
            "refused: `not-fetched`",
        ),
        (
            "a huge request that is sent again and again",
            "test_what_was_too_large_is_not_fetched_again",
            "waste time at each inbox",
            "remembered by its commit, not fetched again",
        ),
        (
            "many branches of deltas, first by name",
            "test_many_hostile_branches_delay_the_honest_one_by_seconds",
            "hold the inbox for hours",
            "each gets .1 s before any gets more; what is left waits and is listed",
        ),
    ):
        yield branches.one(name, test, tries=tries, becomes=f"{becomes}; {beside}")
    yield branches.one(
        "a remote that sends nothing, and a call that is ended",
        "test_an_inbox_that_is_ended_ends_what_it_started",
        tries="leave git running after SIGTERM or Ctrl-C",
        becomes="ended with the call",
    )
    yield Group(family=FAMILY, module="board/test_policy.py").one(
        "junk under the name of a team that may be hidden",
        "test_junk_under_a_name_is_not_refused_for_what_an_embargo_hides",
        tries="learn by a refused quota that the team has an embargoed entry",
        becomes="not refused; a person reviews what only organisers see",
    )
    yield Group(family=FAMILY, module="scenario/test_telling_texts.py").one(
        "a finding that is pasted into a public reason",
        "test_a_reason_ties_no_entry_to_one_that_an_embargo_hides",
        tries="make organisers name an entry beside an embargoed one",
        becomes="refused: `telling-text`",
    )
    yield Group(family=FAMILY, module="scenario/test_telling_texts.py").one(
        "a refusal that speaks of the quota of a name with hidden entries",
        "test_a_reason_does_not_speak_of_a_quota_that_a_hidden_entry_fills",
        tries="learn from a public reason that the team has an embargoed entry",
        becomes="refused: `telling-text`",
    )
    yield Group(family=FAMILY, module="envelope/test_bundle.py").one(
        "the size of sealed metadata and registrations",
        "test_the_size_of_sealed_words_does_not_tell_their_length",
        tries="learn how long the names of a hidden team are",
        becomes="a multiple of 4 KiB, whatever the length",
    )
    yield Group(family=FAMILY, module="scenario/test_hidden_team.py").one(
        "everything public of two boards that differ in the hidden team alone",
        "test_two_boards_that_differ_in_the_hidden_team_are_the_same",
        tries="learn anything about a hidden team",
        becomes="the same bytes and sizes",
    )
    yield branches.one(
        "zeros under the name of sealed runs",
        "test_a_push_that_unpacks_in_the_vault",
        tries="fill the vault by a push of a few kilobytes",
        becomes="refused, not stored: `not-sealed` or `too-large`",
    )
    yield branches.one(
        "a request that the forge removed",
        "test_a_request_that_the_forge_removed_goes_here_too",
        tries="survive as a ref in the organisers' clone",
        becomes="removed there, too",
    )
    yield branches.one(
        "a remote that never ends",
        "test_git_is_ended_with_all_that_it_started",
        tries="leave processes on the organisers' machine",
        becomes="ended at the time-out, with all child processes",
    )


def _around_requests() -> Iterator[Attack]:
    yield Group(family=FAMILY, module="board/test_forge_workflows.py").one(
        "a title for the workflow's shell",
        "test_no_text_of_the_request_gets_into_a_shell",
        tries="run where the form is checked",
        becomes="no text of a request enters a workflow's commands",
    )
    fetch = Group(family=FAMILY, module="board/test_forge_fetch.py")
    yield fetch.one(
        "a reply that is a link elsewhere",
        "test_a_reply_that_is_a_link_elsewhere_leaves_its_target_alone",
        tries="overwrite one of the organiser's files",
        becomes="the link is replaced, its target untouched",
    )
    yield fetch.one(
        "a reply that leaves its folder",
        "test_a_reply_never_leaves_its_folder",
        tries="write a file elsewhere",
        becomes="refused",
    )
    yield Group(family=FAMILY, module="board/test_forge_fetch.py").one(
        "a copy of somebody's request",
        "test_a_copied_request_comes_after_its_original_and_both_are_answered",
        tries="divert the answer of the copied request",
        becomes="the lower number counts; both are answered",
    )
