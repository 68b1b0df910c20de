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
        tries="to be counted twice",
        becomes="known" + SAME,
    )
    yield here.one(
        "a forge whose main line goes back",
        "test_a_forge_whose_main_line_goes_back",
        tries="to take events back",
        becomes="not followed" + SAME,
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
            "scenario/test_wrong_calls.py",
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
            "reported as an error",
        ),
        (
            "scenario/test_receipts.py",
            "a released number changed without an event",
            "test_a_released_number_that_changed_without_an_event_is_told",
            "to repair a score unseen",
            "reported as an error",
        ),
        (
            "scenario/test_at_once.py",
            "two organisers at once",
            "test_two_at_once_cannot_overshoot_a_quota",
            "to publish over the quota",
            "one of them is refused",
        ),
        (
            "scenario/test_hostile_vault_remote.py",
            "a vault remote with another history",
            "test_a_rewritten_history_is_refused",
            "to take events back",
            "refused; the vault is as it was",
        ),
        (
            "scenario/test_hostile_vault_remote.py",
            "a vault remote with a path out of it",
            "test_a_path_out_of_the_vault_is_refused",
            "to write beside the vault",
            "refused; the vault is as it was",
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
        tries="to poison the vault of the other organisers",
        becomes="refused; the vault is as it was",
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
        tries="to change unseen what was published or logged",
        becomes="told by `heldout audit`",
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
        tries="to have another organiser publish scores of one's own",
        becomes="not taken over and named; the true score is published, the remote is repaired",
        prefix="true scores rewritten at a vault's remote, before a publication of ",
    )
    for name, test, tries, becomes in (
        (
            "forged scores with an event of a dishonest organiser",
            "test_scores_logged_by_a_dishonest_signer_are_scored_anew",
            "to have them published as reviewed by oneself",
            "scored again before publication",
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
        becomes="made again from what is sealed; the copy is found",
        prefix="kept scores and signatures damaged: ",
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
            tries="to have the owner refused for good",
            becomes="the owner's metadata open, and take the place of the spoiled ones",
        )
    yield copies.one(
        "an id that differs in case from another's",
        "test_an_id_that_differs_in_case_from_a_submission_or_a_baseline_is_taken",
        tries="to be a second submission where a disk knows no case",
        becomes="refused as `id-taken`",
    )
