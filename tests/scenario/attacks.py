"""The table of attacks: what each tries, what becomes of it, and the test that shows it.

Run as a program it prints the page docs/attacks.md, or with `--tests` the tests it points at.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["ATTACKS", "Attack", "format_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack.

    Attributes:
        name: what it is; no other attack has the same.
        family: what kind of bad input it is, a heading of the page.
        tries: what it tries.
        becomes: what becomes of it.
        test: the test that shows it, `MODULE::FUNCTION` below tests/.
        case: its parameter there, "" where the test has none for it.
    """

    name: str
    family: str
    tries: str
    becomes: str
    test: str
    case: str = ""

    @property
    def module(self) -> str:
        """Path of the test's module below tests/."""
        return self.test.partition("::")[0]

    @property
    def function(self) -> str:
        """Name of the test."""
        return self.test.partition("::")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Attacks that one module's tests show: a test with its cases, or one test for each name."""

    family: str
    module: str

    def cases(
        self, test: str, *names: str, tries: str, becomes: str, prefix: str = ""
    ) -> Iterator[Attack]:
        """Attacks that are parameters of one test."""
        for name in names:
            yield self.one(prefix + name, test, tries=tries, becomes=becomes, case=name)

    def one(self, name: str, test: str, *, tries: str, becomes: str, case: str = "") -> Attack:
        """An attack with a test of its own."""
        where = f"{self.module}::{test}"
        return Attack(
            name=name, family=self.family, tries=tries, becomes=becomes, test=where, case=case
        )


_REQUEST = "A hostile pull request"
_METADATA = "Hostile metadata"
_CONTAINER = "A hostile container"
_REPLAY = "A replayed, swapped or changed file"
_ORGANISER = "Organisers who rewrite, hide or move"
_REGISTRATION = "A registration or signature that is not what it claims"
_CLOCK = "A clock that goes backwards"
_FORGE = "A forge that answers nonsense"

_FOREIGN = "refused as `foreign-change`; nothing is checked out"
_SAME = "; vault and board byte for byte as before"


def _requests() -> Iterator[Attack]:
    here = _Group(family=_REQUEST, module="scenario/test_attacks.py")
    yield from here.cases(
        "test_pull_request",
        "the id of another team's entry",
        "the id of a submission that waits",
        tries="to put files of one's own under somebody's id",
        becomes="refused as `id-taken`" + _SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "one sealed file of another team's entry",
        tries="to break an entry, or to open it under another key",
        becomes="refused as `missing-file`" + _SAME,
    )
    yield from here.cases(
        "test_pull_request",
        "new metadata for another team's entry",
        tries="to rename somebody's entry",
        becomes="refused as `untrusted`: it is sealed under another key" + _SAME,
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
        becomes="refused as `foreign-change`" + _SAME,
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
        becomes="not fetched" + _SAME,
    )
    yield from _branches()
    yield from _around_requests()


def _branches() -> Iterator[Attack]:
    branches = _Group(family=_REQUEST, module="scenario/test_hostile_branches.py")
    yield from branches.cases(
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
        ("a path with ..", "test_path_with_dot_dot", "to write beside the board", _FOREIGN),
        ("a huge blob", "test_huge_blob", "to fill memory", "refused as `too-large`, unread"),
        (
            "a huge file in a folder",
            "test_huge_file_in_a_folder",
            "to fill memory",
            "refused as `too-large`, unread",
        ),
        (
            "hundreds of files",
            "test_a_thousand_files_are_told_in_ten_lines",
            "to flood the terminal",
            "refused in ten lines",
        ),
        (
            "a branch with a history of its own",
            "test_branch_that_does_not_descend_from_main",
            "to replace the board",
            "refused as `foreign-history`",
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


def _around_requests() -> Iterator[Attack]:
    yield _Group(family=_REQUEST, module="store/test_forge_hosted.py").one(
        "a title with shell characters and escapes",
        "test_a_title_with_shell_characters_and_escapes_is_text",
        tries="to be run, or obeyed by a terminal",
        becomes="text, escaped and cut",
    )
    yield _Group(family=_REQUEST, module="store/test_forge_workflows.py").one(
        "a title for the workflow's shell",
        "test_no_text_of_the_request_gets_into_a_shell",
        tries="to be run where the form is checked",
        becomes="no text of a request is in a workflow's commands",
    )
    fetch = _Group(family=_REQUEST, module="store/test_forge_fetch.py")
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


def _metadata() -> Iterator[Attack]:
    here = _Group(family=_METADATA, module="scenario/test_attacks.py")
    kept = "received and reviewed in the log, no score, no entry" + _SAME
    yield from here.cases(
        "test_metadata_that_is_refused",
        "ten thousand fields",
        tries="to bury the organiser in findings",
        becomes="ten are named, the others counted; " + kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a javascript: link",
        "a data: link",
        "a link that ends its attribute",
        "a link with a name before its host",
        tries="to run a script, or to lead astray, from the page",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "bidi marks",
        "invisible characters",
        "terminal escapes",
        "a field whose name a terminal obeys",
        "a zero byte",
        tries="to show other text than it holds",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a string of 10 MB",
        "a string of 900 kB",
        "deep JSON",
        "not a number",
        "a number of 4,000 digits",
        "half a character",
        "another encoding",
        tries="to fill memory, or to crash a reader",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_refused",
        "a score of one's own",
        "the id of another submission",
        "the digests of other runs",
        "a type that the board does not have",
        tries="to be taken for what it is not",
        becomes=kept,
    )
    yield from here.cases(
        "test_metadata_that_is_shown_as_text",
        "HTML",
        "HTML that ends the page",
        "a formula",
        "a formula of another program",
        "a template",
        "shell characters",
        "the mark of a comment",
        "BibTeX that ends its field",
        "a field of another program's objects",
        tries="to be computed where it is shown",
        becomes="published as text: no element, no formula, nothing run",
    )
    yield from _words()


def _words() -> Iterator[Attack]:
    comment = _Group(family=_METADATA, module="store/test_forge_comment.py")
    yield comment.one(
        "Markdown in a comment",
        "test_nobodys_text_is_anything_but_code",
        tries="to link, to mention, to forge the mark of an event",
        becomes="a code span, whatever it holds",
    )
    yield comment.one(
        "a command to the forge in a comment",
        "test_no_line_is_a_command_and_nothing_invisible_is_left",
        tries="to merge or close by `/merge`",
        becomes="no line begins with it",
    )
    pages = _Group(family=_METADATA, module="site/test_site_pages.py")
    yield pages.one(
        "any text on the page of an entry",
        "test_no_text_changes_the_page_of_an_entry",
        tries="to become an element",
        becomes="the page has the elements of a harmless one",
    )
    yield _Group(family=_METADATA, module="site/test_site_exports.py").one(
        "any text in the CSV",
        "test_no_cell_starts_a_formula",
        tries="to be computed by a spreadsheet",
        becomes="a quote stands before it",
    )
    yield _Group(family=_METADATA, module="board/test_names.py").one(
        "a look-alike team name",
        "test_confusable_characters_look_like_the_name_they_imitate",
        tries="to be taken for another team, or to have its own quota",
        becomes="told at review, with the character",
    )
    yield _Group(family=_METADATA, module="scenario/test_import_msmarco.py").one(
        "hostile text in an old board's table",
        "test_hostile_text_of_an_old_board_is_contained",
        tries="markup, a formula, a script link, an id that climbs out of its folder",
        becomes="text; the id gets a file name of its own",
    )


def _containers() -> Iterator[Attack]:
    streams = _Group(family=_CONTAINER, module="trec/test_streams.py")
    for name, test in (
        ("a run that unpacks to more than is allowed", "test_a_bomb_is_refused_by_its_bytes"),
        ("a run that unpacks a thousandfold", "test_a_bomb_is_refused_by_its_ratio"),
    ):
        yield streams.one(name, test, tries="to fill memory", becomes="refused as `archive-bomb`")
    yield _Group(family=_CONTAINER, module="store/test_store_zipped.py").one(
        "a board's archive of many small members that unpack a thousandfold",
        "test_a_hostile_zip",
        tries="to fill a disk from 75 MB",
        becomes="refused as `archive-bomb` before anything is unpacked",
        case="a zip bomb of many small members",
    )
    archive = _Group(family=_CONTAINER, module="envelope/test_archive.py")
    yield from archive.cases(
        "test_hostile_tarball_is_refused",
        "pax-path-hidden-in-a-time",
        "pax-huge",
        "data-hidden-in-the-filling",
        "cut-in-a-run",
        "garbage-after-the-end",
        "second-tarball-after-the-end",
        "endless-zeros-after-the-end",
        tries="to leave its folder, to hide a second run, or to fill memory",
        becomes="refused; no byte is written to a disk",
        prefix="a tarball: ",
    )
    zipped = _Group(family=_CONTAINER, module="store/test_store_zipped.py")
    yield from zipped.cases(
        "test_a_hostile_zip",
        "a zip bomb",
        "a zip bomb of overlapping members",
        tries="to fill memory of whoever audits an archive",
        becomes="refused by its declared and by its read bytes",
    )


def _replays() -> Iterator[Attack]:
    here = _Group(family=_REPLAY, module="scenario/test_attacks.py")
    yield here.one(
        "the same files under another number",
        "test_the_same_files_under_another_number",
        tries="to be counted twice",
        becomes="known" + _SAME,
    )
    yield here.one(
        "a forge whose main line goes back",
        "test_a_forge_whose_main_line_goes_back",
        tries="to take events back",
        becomes="not followed" + _SAME,
    )
    for module, name, test, tries, becomes in (
        (
            "scenario/test_days.py",
            "an old metadata file",
            "test_an_old_metadata_file_sent_again_is_refused",
            "to undo an update",
            "refused as `stale-revision`",
        ),
        (
            "scenario/test_days.py",
            "somebody else's metadata",
            "test_metadata_of_somebody_else_is_refused",
            "to rename an entry",
            "refused as `untrusted` or `id-taken`",
        ),
        (
            "scenario/test_days.py",
            "files swapped between ids",
            "test_files_swapped_between_ids_are_refused",
            "to hand in another team's run",
            "refused at review: it cannot be opened",
        ),
        (
            "scenario/test_days.py",
            "changed runs under the same id",
            "test_changed_runs_need_a_new_id",
            "to try several runs for one",
            "refused as `id-taken`",
        ),
        (
            "envelope/test_vectors.py",
            "the runs of others",
            "test_the_runs_of_others_cannot_be_handed_in_again",
            "to hand in another team's run",
            "does not open",
        ),
        (
            "envelope/test_mutations.py",
            "any bit of a sealed file flipped",
            "test_age_flips_are_all_refused",
            "to change a run in its envelope",
            "refused, every one",
        ),
        (
            "envelope/test_mutations.py",
            "a sealed file cut anywhere",
            "test_age_cuts_are_all_refused",
            "to hide the end of a run",
            "refused, every one",
        ),
        (
            "envelope/test_mutations.py",
            "pieces of a sealed file in another order",
            "test_age_chunks_open_in_their_order_only",
            "to reorder a run",
            "refused",
        ),
        (
            "scenario/test_story.py",
            "an old copy of the vault",
            "test_another_boards_vault_or_an_old_copy_is_refused",
            "to make a second history",
            "refused: it lacks what is public",
        ),
        (
            "scenario/test_receipts.py",
            "a forged receipt",
            "test_a_forged_receipt",
            "to claim what was not sent",
            "told as a fault",
        ),
        (
            "scenario/test_receipts.py",
            "a released number changed without an event",
            "test_a_released_number_that_changed_without_an_event_is_told",
            "to mend a score unseen",
            "told as a fault",
        ),
        (
            "scenario/test_at_once.py",
            "two organisers at once",
            "test_two_at_once_cannot_overshoot_a_quota",
            "to publish over the quota",
            "one of them is refused",
        ),
        (
            "scenario/test_two_organisers.py",
            "a vault remote with another history",
            "test_a_rewritten_history_is_refused",
            "to take events back",
            "refused; the vault is as it was",
        ),
        (
            "scenario/test_two_organisers.py",
            "a vault remote with a path out of it",
            "test_a_path_out_of_the_vault_is_refused",
            "to write beside the vault",
            "refused; the vault is as it was",
        ),
    ):
        group = _Group(family=_REPLAY, module=module)
        yield group.one(name, test, tries=tries, becomes=becomes)
    yield from _shared_vault()
    yield from _Group(family=_REPLAY, module="scenario/test_two_organisers.py").cases(
        "test_hostile_contents_are_refused",
        "a link in place of a folder",
        "a private key slipped in",
        "a file under another's digest",
        "poisoned labels",
        "labels taken away",
        "the log taken away",
        "a torn log",
        "a log of nonsense",
        tries="to poison the vault of the other organisers",
        becomes="refused; the vault is as it was",
        prefix="a vault remote with ",
    )
    yield from _Group(family=_REPLAY, module="scenario/test_audit.py").cases(
        "test_a_tampered_file",
        "a sealed file",
        "sealed files swapped",
        "a score in the JSON",
        "a held-out label",
        "a score in the vault",
        "the vault's last event cut",
        tries="to change unseen what was published or logged",
        becomes="told by `heldout audit`",
        prefix="changed afterwards: ",
    )


def _shared_vault() -> Iterator[Attack]:
    """What somebody does who can write to a shared vault's remote, without an event."""
    here = _Group(family=_REPLAY, module="scenario/test_two_organisers.py")
    yield from here.cases(
        "test_true_scores_rewritten_at_the_remote_are_not_published",
        "the reviewer's",
        "another organiser's",
        tries="to have another organiser publish scores of one's own",
        becomes="not taken over and named; the true score is published, the remote is mended",
        prefix="true scores rewritten at a vault's remote, before a publication of ",
    )
    for name, test, tries, becomes in (
        (
            "forged scores with an event in another's name",
            "test_scores_logged_in_another_s_name_are_scored_anew",
            "to have them published as reviewed by oneself",
            "scored anew before publication",
        ),
        (
            "a mask slipped into a vault's remote",
            "test_a_mask_that_nobody_logged_hides_no_query",
            "to take queries out of the score",
            "not taken over and named",
        ),
        (
            "labels of a new set slipped into a vault's remote",
            "test_labels_of_a_new_set_that_nobody_logged_are_not_taken",
            "to have them committed to by somebody else",
            "not taken over and named",
        ),
        (
            "a stray sealed file in a vault's remote",
            "test_a_file_taken_without_an_event_is_named",
            "to leave something unseen",
            "named when it is taken over",
        ),
        (
            "a signature of junk in a vault's remote",
            "test_a_signature_of_junk_stops_no_later_publication",
            "to stop every later publication",
            "not taken over and named; the next publication goes on",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=becomes)
    yield from here.cases(
        "test_damaged_scores_and_signatures_are_made_anew",
        "junk",
        "half a file",
        "nothing",
        "taken away",
        tries="to hide that a later run is a copy",
        becomes="made anew from what is sealed; the copy is found",
        prefix="kept scores and signatures damaged: ",
    )


def _organisers() -> Iterator[Attack]:
    """What organisers do who have the log and a heldout of their own; every hash is right."""
    here = _Group(family=_ORGANISER, module="scenario/test_hostile_archives.py")
    test = "test_a_log_that_was_made_anew_with_sound_hashes"
    for tries, becomes, names in (
        (
            "to open other labels than those of the first day",
            "told as a fault of the archive",
            (
                "labels that new keys bring",
                "labels that a later event leaves out",
                "labels in the open",
                "labels that are committed to at the end",
            ),
        ),
        (
            "to let an entry carry invented scores",
            "told as a fault of the archive: labels in force, asked queries, possible scores",
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
            "told as a fault of the archive",
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
    moved = _Group(family=_ORGANISER, module="scenario/test_moved_deadline.py")
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
        becomes="ranks and shown scores stay; told as a fault",
    )
    yield _Group(family=_ORGANISER, module="scenario/test_sealed_errata.py").one(
        "an erratum only of those whose sealed score changed",
        "test_every_entry_that_is_scored_anew_has_an_erratum_whether_it_changed_or_not",
        tries="to read a bit of a sealed score from the log",
        becomes="every entry that is scored anew has an erratum",
    )
    rules = _Group(family=_ORGANISER, module="board/test_hostile_rules.py")
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


def _clocks() -> Iterator[Attack]:
    here = _Group(family=_CLOCK, module="scenario/test_attacks.py")
    for command in ("inbox", "review", "publish", "reject", "ask", "correct"):
        yield here.one(
            f"a clock that goes backwards: {command}",
            "test_a_clock_that_goes_backwards",
            tries="to date an event before the last",
            becomes="refused and told; board and log byte for byte as before",
            case=command,
        )
    yield here.one(
        "a clock that goes backwards: rekey",
        "test_a_clock_that_goes_backwards_in_the_middle_of_a_change_of_keys",
        tries="to lose a key half-way",
        becomes="refused and told; both keys are kept, the next call goes on",
    )
    yield _Group(family=_CLOCK, module="scenario/test_two_organisers.py").one(
        "a clock behind another organiser's",
        "test_a_clock_that_is_behind_the_other_s_is_told",
        tries="to date an event before the other's",
        becomes="refused, and whose event it is is told",
    )
    yield _Group(family=_CLOCK, module="scenario/test_days.py").one(
        "a submission one second early",
        "test_quota_slides_to_the_second",
        tries="to slip under the quota",
        becomes="refused; the window goes by the second of receipt",
    )


def _forges() -> Iterator[Attack]:
    here = _Group(family=_FORGE, module="scenario/test_attacks.py")
    yield from here.cases(
        "test_a_forge_that_answers_nonsense",
        "a page to sign in",
        "nothing at all",
        "an object for a list",
        "brackets without end",
        "9 MB",
        "a commit that is an option",
        "a commit that is nowhere",
        "half an answer",
        tries="to stop the inbox, or to have it believe",
        becomes="told or passed over; the rest goes on" + _SAME,
        prefix="a forge that answers with ",
    )
    yield here.one(
        "a forge that answers nonsense to a comment",
        "test_a_forge_that_answers_nonsense_to_a_comment",
        tries="to stop a publication",
        becomes="the event stands, the page follows",
    )
    hosted = _Group(family=_FORGE, module="store/test_forge_hosted.py")
    yield from hosted.cases(
        "test_nonsense_is_refused_in_one_line",
        "a page of HTML",
        "bytes that are no UTF-8",
        "half a document",
        "a list of numbers",
        "a list of nothing",
        "a number that is text",
        "a negative number",
        "a commit that is a path",
        "50 MB",
        "a small archive of a large text",
        "a teapot",
        "control characters in an error",
        tries="to crash or to mislead",
        becomes="refused in one printable line, on each of three forges",
        prefix="a hosted forge that says ",
    )
    copies = _Group(family=_REPLAY, module="scenario/test_hostile_copies.py")
    for name, test in (
        (
            "a copy of open files with spoiled metadata, read first",
            "test_a_copy_with_spoiled_metadata_does_not_shut_its_owner_out",
        ),
        (
            "such a copy beside its original",
            "test_a_copy_with_spoiled_metadata_is_no_rival_for_the_id",
        ),
        (
            "such a copy, rejected before the owner's files are read",
            "test_a_copy_that_was_rejected_does_not_shut_its_owner_out",
        ),
    ):
        yield copies.one(
            name,
            test,
            tries="to have the owner refused for good",
            becomes="the owner's metadata open, and take the place of the spoiled ones",
        )
    yield copies.one(
        "an id that differs in case from another's",
        "test_an_id_that_differs_in_case_from_a_submission_or_a_baseline_is_taken",
        tries="to be a second submission where a disk knows no case",
        becomes="refused as `id-taken`",
    )
    ladder = _Group(family=_METADATA, module="scenario/test_ladder_embargo.py")
    for name, test in (
        (
            "the bar of an embargoed entry, looked up on the page",
            "test_the_bar_of_an_embargoed_entry_does_not_name_its_team",
        ),
        (
            "an embargoed entry's score, looked up as the bar of an open one",
            "test_the_score_of_an_embargoed_entry_is_not_the_bar_of_an_open_one",
        ),
        ("the bar in an erratum", "test_an_erratum_does_not_tell_it_either"),
    ):
        yield ladder.one(
            name,
            test,
            tries="to learn whose an embargoed entry is",
            becomes="the page says that it is not above its bar; which, is told at the reveal",
        )
    names = _Group(family=_METADATA, module="scenario/test_hostile_names.py")
    for name, test, tries, becomes in (
        (
            "a published entry under another name",
            "test_an_entry_is_renamed_only_by_an_organiser",
            "to score first and put a name to it later",
            "waits as `proposed`; page, quota and Ladder know the old name until it is approved",
        ),
        (
            "a published entry without its description or name",
            "test_an_entry_cannot_take_back_what_it_had_to_say",
            "to take back what was said to be published",
            "refused by the rule that asked for it",
        ),
        (
            "the name of a victim, taken and left after publication",
            "test_the_name_of_a_victim_costs_it_nothing",
            "to use up another team's quota, or to raise its Ladder",
            "counts for nobody: no organiser approved it",
        ),
        (
            "the name of a victim, taken and left before publication",
            "test_a_name_that_was_left_before_publication_costs_its_owner_nothing",
            "to use up another team's quota",
            "an entry counts for the name it was published under",
        ),
        (
            "a new name while it waits",
            "test_a_new_name_while_it_waits_makes_no_room_in_the_quota",
            "to slip under the quota",
            "refused: it is held against every name that it was opened under",
        ),
        (
            "an entry renamed into a team whose quota is used",
            "test_an_entry_cannot_be_renamed_into_a_team_whose_quota_is_used",
            "to have a third entry in one window",
            "refused by the quota of the new name",
        ),
    ):
        yield names.one(name, test, tries=tries, becomes=becomes)
    yield _Group(family=_REQUEST, module="store/test_forge_fetch.py").one(
        "a copy of somebody's request",
        "test_a_copied_request_comes_after_its_original_and_both_are_answered",
        tries="to take the answer away from the request that it copies",
        becomes="the one with the lower number counts; both are answered",
    )
    for name, test, becomes in (
        ("a list without end", "test_a_list_without_end_is_given_up", "given up"),
        (
            "a page that comes again",
            "test_a_page_that_comes_again_and_again_ends_the_list",
            "the list ends",
        ),
        ("an answer that drips", "test_an_answer_that_drips_is_given_up", "given up after 120 s"),
        ("a limit that never ends", "test_a_limit_that_never_ends_is_given_up", "given up"),
        (
            "a redirect elsewhere",
            "test_a_redirect_never_takes_the_token_elsewhere",
            "not followed with the token",
        ),
        (
            "a next page elsewhere",
            "test_a_next_page_elsewhere_is_not_asked_with_the_token",
            "not asked with the token",
        ),
        (
            "a forge that says the token back",
            "test_a_forge_that_says_the_token_back_does_not_get_it_shown",
            "the token is not shown",
        ),
        (
            "an answer that is lost",
            "test_a_comment_whose_answer_is_lost_is_found_and_not_posted_again",
            "looked up, not posted again",
        ),
    ):
        yield hosted.one(
            name, test, tries="to hang, to learn the token, or to be told twice", becomes=becomes
        )


def _registrations() -> Iterator[Attack]:
    here = _Group(family=_REGISTRATION, module="scenario/test_registration_attacks.py")
    against = "stands against publication: `team-registered`"
    quiet = "; the log has no event of it"
    yield from here.cases(
        "test_a_signature",
        "of another submission",
        "for another board",
        "over another agreement",
        "of no team",
        tries="to take part without having agreed",
        becomes=against,
        prefix="a submission with a signature ",
    )
    for name, test, tries in (
        (
            "a replayed signature of another submission",
            "test_a_replayed_signature_of_another_submission",
            "to sign with what was signed before",
        ),
        ("another team's key", "test_another_team_s_key", "to use up another team's quota"),
        (
            "a registered team under another's name",
            "test_a_registered_team_under_another_s_name",
            "to use up another team's quota",
        ),
        (
            "metadata that was changed after it was signed",
            "test_metadata_that_was_changed_after_it_was_signed",
            "to have a team say what it did not",
        ),
        (
            "a signature that was taken off",
            "test_a_signature_that_was_taken_off",
            "to submit unsigned",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=against)
    yield here.one(
        "new metadata without the team's signature",
        "test_new_metadata_without_the_team_s_signature",
        tries="to change an entry with the key of its seal alone",
        becomes="refused as `bad-signature`",
    )
    for case, becomes in {
        "for another board": "bad-signature",
        "of somebody else's key": "bad-signature",
        "of a key of small order": "bad-signature",
        "without the agreement": "other-agreement",
        "for another agreement": "other-agreement",
        "for other names than it seals": "untrusted",
        "of no time": "not-a-registration",
        "of a key that is a path": "not-a-registration",
    }.items():
        yield here.one(
            f"a registration {case}",
            "test_a_registration",
            tries="to be registered without having signed for it",
            becomes=f"refused as `{becomes}`{quiet}",
            case=case,
        )
    for name, test, becomes in (
        ("an old registration sent again", "test_an_old_registration_sent_again", "stale"),
        ("a revoked registration sent again", "test_a_revoked_registration_sent_again", "revoked"),
    ):
        code = {"stale": "stale-registration", "revoked": "registration-revoked"}[becomes]
        yield here.one(
            name, test, tries="to undo what came after it", becomes=f"known, or refused as `{code}`"
        )
    for name, test, code in (
        ("sealed names that were swapped", "test_sealed_names_that_were_swapped", "untrusted"),
        ("the name of a registered team", "test_the_name_of_a_registered_team", "name-registered"),
        ("a key under a second name", "test_a_key_under_a_second_name", "name-registered"),
        ("a huge registration", "test_a_huge_registration", "too-large"),
        (
            "a registration after the last day",
            "test_a_registration_after_the_last_day",
            "registration-closed",
        ),
        (
            "a registration that brings more",
            "test_a_registration_that_brings_more",
            "foreign-change",
        ),
        (
            "a file that is no registration",
            "test_a_file_that_is_no_registration",
            "not-a-registration",
        ),
    ):
        yield here.one(
            name, test, tries="to misuse a registration", becomes=f"refused as `{code}`{quiet}"
        )
    yield from _registration_requests()
    story = _Group(family=_REGISTRATION, module="scenario/test_registration.py")
    yield story.one(
        "a revoked team that comes again under a new key",
        "test_who_was_revoked_and_comes_again_under_a_new_key_is_told_to_the_organisers",
        tries="to be somebody else",
        becomes="taken in; the organisers are told what it has in common with the revoked one",
    )
    yield story.one(
        "a reader who looks for one key under two submissions",
        "test_the_public_log_neither_names_a_team_nor_ties_its_submissions",
        tries="to find who is behind an embargoed entry",
        becomes="key and handle stand in the registration's event alone; names are sealed",
    )


def _registration_requests() -> Iterator[Attack]:
    """Requests, as the workflow on the forge looks at them."""
    here = _Group(family=_REGISTRATION, module="scenario/test_registration_forms.py")
    for name, test, code in (
        (
            "a registration beside another file",
            "test_a_registration_beside_another_file",
            "foreign-change",
        ),
        ("two registrations at once", "test_two_registrations_at_once", "foreign-change"),
        (
            "a registration that is no plain file",
            "test_a_registration_that_is_no_plain_file",
            "foreign-change",
        ),
        (
            "a registration that takes a file away",
            "test_a_registration_that_takes_a_file_away",
            "foreign-change",
        ),
        ("a registration without end", "test_a_registration_without_end", "too-large"),
        (
            "a statement that its key did not sign",
            "test_a_statement_that_its_key_did_not_sign",
            "bad-signature",
        ),
        (
            "a registration under a name that is not its team's",
            "test_a_registration_under_a_name_that_is_not_its_team_s",
            "bad-signature",
        ),
    ):
        yield here.one(
            name,
            test,
            tries="to pass for a registration in a pull request",
            becomes=f"refused as `{code}`, on the forge too",
        )
    yield _Group(family=_REGISTRATION, module="store/test_forge_registrations.py").one(
        "a registration whose request was closed",
        "test_an_open_registration_is_taken_in_and_answered_once_and_a_closed_one_is_not",
        tries="to be taken in though the request was withdrawn",
        becomes="not taken in",
    )


ATTACKS: tuple[Attack, ...] = (
    *_requests(),
    *_metadata(),
    *_containers(),
    *_replays(),
    *_organisers(),
    *_registrations(),
    *_clocks(),
    *_forges(),
)

_INTRODUCTION = """\
# Attacks

What participants, organisers, forges, clocks and copies may do to a board, and what becomes of it.
Each line names a test below `tests/`; `tests/scenario/test_attacks.py` plays {own} of them through
the command line, with canaries that would exist had anything been run, and compares vault and board
byte for byte where nothing may change. The table is `tests/scenario/attacks.py`, and a test holds
this page to it.

**{count} attacks, all refused or contained.**

    python -m pytest tests/scenario/test_attacks.py -q      # plays {own}, prints the count
    python tests/scenario/attacks.py --tests > attacks.txt
    python -m pytest -q @attacks.txt                        # all {count}
"""


def format_page(attacks: Sequence[Attack]) -> str:
    """The page docs/attacks.md."""
    own = sum(attack.module == "scenario/test_attacks.py" for attack in attacks)
    parts = [_INTRODUCTION.format(count=len(attacks), own=own)]
    for family in dict.fromkeys(attack.family for attack in attacks):
        parts.append(f"\n## {family}\n\n| attack | tries | what becomes of it | test |\n")
        parts.append("| --- | --- | --- | --- |\n")
        parts += [_format_row(attack) for attack in attacks if attack.family == family]
    return "".join(parts)


def _format_row(attack: Attack) -> str:
    return f"| {attack.name} | {attack.tries} | {attack.becomes} | `{attack.test}` |\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--tests"]:
        tests = dict.fromkeys(attack.test for attack in ATTACKS)
        sys.stdout.write("".join(f"tests/{test}\n" for test in tests))
    else:
        sys.stdout.write(format_page(ATTACKS))
