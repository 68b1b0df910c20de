"""Attacks by a pull request."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "A hostile pull request"
_FOREIGN = "refused as `foreign-change`; nothing is checked out"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_request.py")
    yield from here.cases(
        "test_pull_request",
        "the id of another team's entry",
        "the id of a submission that waits",
        tries="to put files of one's own under somebody's id",
        becomes="refused as `id-taken`" + SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "one sealed file of another team's entry",
        tries="to break an entry, or to open it under another key",
        becomes="refused as `missing-file`" + SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "new metadata for another team's entry",
        tries="to rename somebody's entry",
        becomes="refused as `untrusted`: it is sealed under another key" + SAME,
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
        tries="to bring more than sealed files of its own, or under a name that misleads",
        becomes="refused as `foreign-change`" + SAME,
    )
    yield here.one(
        "a title, an author and a branch that are commands",
        "test_a_title_an_author_and_a_branch_that_are_commands",
        tries="to be run by a shell",
        becomes="read as data, its files taken in under the id of their names; nothing is run",
    )
    yield here.one(
        "a branch name that turns around",
        "test_a_branch_name_that_turns_around",
        tries="to mislead whoever reads the terminal or the page",
        becomes="printed escaped, and neither on a page nor in the log",
    )
    yield here.one(
        "tags and replacements that shadow the board",
        "test_tags_and_replacements_that_shadow_the_board",
        tries="to be taken for the board's main line",
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
        tries="to change more than the sealed files of its own submission",
        becomes=_FOREIGN,
    )
    yield from branches.cases(
        "test_a_branch_of_a_hostile_name_stops_neither_inbox_nor_submit",
        "a name that is not UTF-8",
        "a line separator in a name",
        "a next-line character in a name",
        "spaces of other scripts",
        "a main line that is not UTF-8",
        tries="to stop the inbox, and every team's submit",
        becomes="told as a branch, without its name; all others are taken in",
        prefix="a branch: ",
    )
    yield branches.one(
        "a branch below another team's id, removed again",
        "test_a_branch_below_somebody_s_id_that_was_removed_again",
        tries="to keep that team's branch out of the organisers' clone",
        becomes="removed there, too, before the next is fetched",
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
        tries="to have a program started that the clone's own .git/config names",
        becomes="not started; what the user's global settings name is",
        prefix="settings of the clone: ",
    )
    yield Group(family=FAMILY, module="scenario/test_merged_early.py").one(
        "a merged submission, and another request under its id",
        "test_a_merged_submission_and_somebody_else_s_of_the_same_id_are_for_an_organiser",
        tries="to take the place of what somebody merged too early",
        becomes="both refused as `id-conflict` until an organiser decides",
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
        tries="to have a program started that git settings name",
        becomes="refused; the program, which would leave a trace, is not started",
        prefix="a trap in git: ",
    )
    for name, test, tries, becomes in (
        (
            "a huge blob",
            "test_a_file_that_is_too_large",
            "to fill memory",
            "refused as `too-large`, unread",
        ),
        (
            "hundreds of files",
            "test_many_files_are_reported_in_ten_problems",
            "to flood the terminal",
            "refused in ten lines",
        ),
        (
            "a branch with a history of its own",
            "test_a_branch_that_does_not_descend_from_main",
            "to replace the board",
            "refused as `foreign-history`",
        ),
    ):
        yield arrivals.one(name, test, tries=tries, becomes=becomes)
    for name, test, tries, becomes in (
        ("a path with ..", "test_path_with_dot_dot", "to write beside the board", _FOREIGN),
        (
            "a huge file in a folder",
            "test_huge_file_in_a_folder",
            "to fill memory",
            "refused as `too-large`, unread",
        ),
        (
            "an id read on somebody's branch",
            "test_an_id_that_was_read_on_somebody_s_branch",
            "to take another team's id by sorting first",
            "both refused as `id-conflict`, until an organiser decides",
        ),
        (
            "a request that names no commit",
            "test_pull_request_ref_that_names_no_commit",
            "to stop the inbox",
            "passed over; the next request is taken in",
        ),
        (
            "a bad branch beside a good one",
            "test_a_bad_branch_does_not_stop_the_good_one",
            "to keep others from submitting",
            "refused; the good one is taken in",
        ),
        (
            "garbage for sealed files",
            "test_garbage_for_sealed_files_is_refused_at_review",
            "to crash whoever opens it",
            "refused at review; no score",
        ),
        (
            "metadata alone of an id that nobody sent",
            "test_metadata_alone_of_an_id_that_nobody_sent",
            "to hold an id without a run",
            "refused as `nothing-to-update`",
        ),
        (
            "file names that are commands in a folder",
            "test_hostile_file_names_in_a_folder_are_no_submissions",
            "to be run by a shell, or to leave the folder",
            "passed over as no submission",
        ),
        (
            "symlinks in a folder",
            "test_symlink_in_a_folder_is_not_followed",
            "to have the held-out labels received",
            "passed over, not followed",
        ),
        (
            "a remote that is a command",
            "test_an_ext_remote_is_not_obeyed",
            "to be run by git's ext transport",
            "not asked, and said so",
        ),
        (
            "git settings in the environment",
            "test_git_settings_of_the_environment_do_not_lead_astray",
            "to have another repository written",
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
            "to keep the inbox walking through folders for ever",
            "refused as `foreign-change` by the folder's name, none is walked",
        ),
        (
            "a folder of 200,000 names",
            "test_a_folder_of_very_many_names",
            "to fill memory",
            "refused as `not-fetched`",
        ),
        (
            "deltas that unpack to more than fits",
            "test_deltas_that_need_more_than_git_may_have",
            "to use up memory or time",
            "git ends at its bound; refused as `not-fetched`, nothing of it stays",
        ),
        (
            "deltas that unpack to more than a submission has",
            "test_more_bytes_than_a_submission_may_bring",
            "to fill the disk",
            "refused as `not-fetched`",
        ),
        (
            "a huge request that is sent again and again",
            "test_what_was_too_large_is_not_fetched_again",
            "to use up time at each inbox",
            "remembered by its commit, not fetched again",
        ),
    ):
        yield branches.one(name, test, tries=tries, becomes=f"{becomes}; {beside}")
    yield Group(family=FAMILY, module="board/test_policy.py").one(
        "junk under the name of a team that may be hidden",
        "test_junk_under_a_name_is_not_refused_for_what_an_embargo_hides",
        tries="to learn by a refused quota that the team has an entry under embargo",
        becomes="not refused for it; a person looks at what only the organisers see",
    )
    yield Group(family=FAMILY, module="scenario/test_telling_texts.py").one(
        "a finding that is pasted into a public reason",
        "test_a_reason_ties_no_entry_to_one_that_an_embargo_hides",
        tries="to have the organisers name an entry beside one that an embargo hides",
        becomes="refused as `telling-text`",
    )
    yield branches.one(
        "zeros under the name of sealed runs",
        "test_a_push_that_unpacks_in_the_vault",
        tries="to fill the vault with a push of a few kilobytes",
        becomes="refused as `not-sealed` or `too-large`, not stored",
    )
    yield branches.one(
        "a request that the forge removed",
        "test_a_request_that_the_forge_removed_goes_here_too",
        tries="to go on as a ref in the organisers' clone",
        becomes="removed there, too",
    )
    yield branches.one(
        "a remote that never ends",
        "test_git_is_ended_with_all_that_it_started",
        tries="to leave processes behind on the organisers' machine",
        becomes="ended at the time-out with all that git started",
    )


def _around_requests() -> Iterator[Attack]:
    yield Group(family=FAMILY, module="board/test_forge_workflows.py").one(
        "a title for the workflow's shell",
        "test_no_text_of_the_request_gets_into_a_shell",
        tries="to be run where the form is checked",
        becomes="no text of a request is in a workflow's commands",
    )
    fetch = Group(family=FAMILY, module="board/test_forge_fetch.py")
    yield fetch.one(
        "a reply that is a link elsewhere",
        "test_a_reply_that_is_a_link_elsewhere_leaves_its_target_alone",
        tries="to have the organiser write into a file of theirs",
        becomes="the link is replaced, its target left alone",
    )
    yield fetch.one(
        "a reply that leaves its folder",
        "test_a_reply_never_leaves_its_folder",
        tries="to have a file written elsewhere",
        becomes="refused",
    )
    yield Group(family=FAMILY, module="board/test_forge_fetch.py").one(
        "a copy of somebody's request",
        "test_a_copied_request_comes_after_its_original_and_both_are_answered",
        tries="to take the answer away from the request that it copies",
        becomes="the one with the lower number counts; both are answered",
    )
