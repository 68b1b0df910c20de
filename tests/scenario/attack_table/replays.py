"""Attacks by what was sent before, or was changed afterwards."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "A replayed, swapped or changed file"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_request.py")
    yield here.one(
        "the same files under another number",
        "test_the_same_files_under_another_number",
        tries="count twice",
        becomes="known" + SAME,
    )
    yield here.one(
        "a forge whose main line goes back",
        "test_a_forge_whose_main_line_goes_back",
        tries="remove events",
        becomes="not followed" + SAME,
    )
    for module, name, test, tries, becomes in (
        (
            "scenario/test_days.py",
            "an old metadata file",
            "test_an_old_metadata_file_sent_again_is_refused",
            "undo an update",
            "refused: `stale-revision`",
        ),
        (
            "scenario/test_days.py",
            "somebody else's metadata",
            "test_metadata_of_somebody_else_is_refused",
            "rename an entry",
            "refused: `untrusted` or `id-taken`",
        ),
        (
            "scenario/test_days.py",
            "files swapped between ids",
            "test_files_swapped_between_ids_are_refused",
            "submit another team's run",
            "refused at review: cannot be opened",
        ),
        (
            "scenario/test_days.py",
            "changed runs under the same id",
            "test_changed_runs_need_a_new_id",
            "try several runs for one",
            "refused: `id-taken`",
        ),
        (
            "envelope/test_vectors.py",
            "the runs of others",
            "test_the_runs_of_others_cannot_be_handed_in_again",
            "submit another team's run",
            "does not open",
        ),
        (
            "envelope/test_mutations.py",
            "any bit of a sealed file flipped",
            "test_age_flips_are_all_refused",
            "change a sealed run",
            "all refused",
        ),
        (
            "envelope/test_mutations.py",
            "a sealed file cut anywhere",
            "test_age_cuts_are_all_refused",
            "hide the end of a run",
            "all refused",
        ),
        (
            "envelope/test_mutations.py",
            "pieces of a sealed file in another order",
            "test_age_chunks_open_in_their_order_only",
            "reorder a run",
            "refused",
        ),
        (
            "scenario/test_wrong_calls.py",
            "an old copy of the vault",
            "test_another_boards_vault_or_an_old_copy_is_refused",
            "create a second history",
            "refused: it lacks public events",
        ),
        (
            "scenario/test_receipts.py",
            "a forged receipt",
            "test_a_forged_receipt",
            "claim what was not sent",
            "reported as an error",
        ),
        (
            "scenario/test_receipts.py",
            "a released number changed without an event",
            "test_a_released_number_that_changed_without_an_event_is_told",
            "change a score secretly",
            "reported as an error",
        ),
        (
            "scenario/test_at_once.py",
            "two organisers at once",
            "test_two_at_once_cannot_overshoot_a_quota",
            "exceed the quota",
            "one of them is refused",
        ),
        (
            "scenario/test_hostile_vault_remote.py",
            "a vault remote with another history",
            "test_a_rewritten_history_is_refused",
            "remove events",
            "refused; the vault is unchanged",
        ),
        (
            "scenario/test_hostile_vault_remote.py",
            "a vault remote with a path out of it",
            "test_a_path_out_of_the_vault_is_refused",
            "write beside the vault",
            "refused; the vault is unchanged",
        ),
    ):
        group = Group(family=FAMILY, module=module)
        yield group.one(name, test, tries=tries, becomes=becomes)
    yield from _shared_vault()
    yield from Group(family=FAMILY, module="scenario/test_hostile_vault_remote.py").cases(
        "test_hostile_contents_are_refused",
        "a link in place of a folder",
        "a private key slipped in",
        "a file under another's digest",
        "poisoned labels",
        "labels taken away",
        "the log taken away",
        "a torn log",
        "a log of nonsense",
        tries="poison the other organisers' vaults",
        becomes="refused; the vault is unchanged",
        prefix="a vault remote with ",
    )
    yield from Group(family=FAMILY, module="scenario/test_audit.py").cases(
        "test_a_tampered_file",
        "a sealed file",
        "sealed files swapped",
        "a score in the JSON",
        "a held-out label",
        "a score in the vault",
        "the vault's last event cut",
        tries="change published or logged data secretly",
        becomes="reported by `heldout audit`",
        prefix="changed afterwards: ",
    )
    yield from _copies()


def _shared_vault() -> Iterator[Attack]:
    """What somebody does who can write to a shared vault's remote, without an event."""
    here = Group(family=FAMILY, module="scenario/test_hostile_vault_remote.py")
    yield from here.cases(
        "test_true_scores_rewritten_at_the_remote_are_not_published",
        "the reviewer's",
        "another organiser's",
        tries="make another organiser publish false scores",
        becomes="reported; the true score is published",
        prefix="true scores rewritten at a vault's remote, before a publication of ",
    )
    for name, test, tries, becomes in (
        (
            "forged scores with an event of a dishonest organiser",
            "test_scores_logged_by_a_dishonest_signer_are_scored_anew",
            "have them published as reviewed",
            "scored again before publication",
        ),
        (
            "a mask slipped into a vault's remote",
            "test_a_mask_that_nobody_logged_hides_no_query",
            "exclude queries from the score",
            "not accepted, and reported",
        ),
        (
            "labels of a new set slipped into a vault's remote",
            "test_labels_of_a_new_set_that_nobody_logged_are_not_taken",
            "make another organiser commit to them",
            "not accepted, and reported",
        ),
        (
            "a stray sealed file in a vault's remote",
            "test_a_file_taken_without_an_event_is_named",
            "leave something unnoticed",
            "reported when it arrives",
        ),
        (
            "a signature of junk in a vault's remote",
            "test_a_signature_of_junk_stops_no_later_publication",
            "stop all later publications",
            "reported; the next publication continues",
        ),
    ):
        yield here.one(name, test, tries=tries, becomes=becomes)
    yield from Group(family=FAMILY, module="scenario/test_junk_in_vault.py").cases(
        "test_no_command_fails_on_it_or_publishes_another_score",
        "a huge file",
        "another file",
        "a named pipe",
        "a folder",
        "half of it",
        tries="stop an organiser, or have another score published",
        becomes="a message, or the true score",
        prefix="in place of a vault's file: ",
    )
    yield from here.cases(
        "test_damaged_scores_and_signatures_are_made_anew",
        "junk",
        "half a file",
        "nothing",
        "taken away",
        tries="hide that a later run is a copy",
        becomes="computed again; the copy is detected",
        prefix="stored scores and signatures damaged: ",
    )


def _copies() -> Iterator[Attack]:
    """Copies of what another team sent."""
    copies = Group(family=FAMILY, module="scenario/test_hostile_copies.py")
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
            tries="get the owner refused for good",
            becomes="the owner's metadata replace the spoiled ones",
        )
    yield copies.one(
        "an id that differs in case from another's",
        "test_an_id_that_differs_in_case_from_a_submission_or_a_baseline_is_taken",
        tries="pass for a second submission on some disks",
        becomes="refused: `id-taken`",
    )
