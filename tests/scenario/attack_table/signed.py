"""Attacks by who is no signer of a board, at the vault's remote and on the board's main branch."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "An event of a stranger"


def attacks() -> Iterator[Attack]:
    log = Group(family=FAMILY, module="board/test_signers.py")
    yield from log.cases(
        "test_a_log_with_an_event_of_a_stranger_is_refused",
        "a signature taken away",
        "a stranger who lets themselves in",
        "an end of signing",
        "a signature for another purpose",
        "a swapped score",
        "a stranger's key under a signer's signature",
        tries="log an event without an organiser's key",
        becomes="the whole log is refused, naming the line",
        prefix="in a log: ",
    )
    here = Group(family=FAMILY, module="scenario/test_signed_events.py")
    yield from here.cases(
        "test_a_shared_vault_takes_no_event_of_a_stranger",
        "no signature",
        "a stranger's key",
        "a signature of another event",
        "a signature of another board",
        "a swapped organiser",
        tries="reject a submission by a push to the vault's remote",
        becomes="refused by every organiser's next command" + SAME,
        prefix="a shared vault: ",
    )
    yield here.one(
        "a shared vault: a dropped signer's key",
        "test_a_shared_vault_takes_no_event_of_a_dropped_signer",
        tries="act as an organiser after leaving",
        becomes="refused; the vault is unchanged",
    )
    yield from here.cases(
        "test_a_public_log_that_a_writer_on_main_made_anew_is_found",
        "a score changed, without signatures",
        "a score changed, with a stranger's",
        "all of it made again by a stranger",
        tries="publish another score by a push to main",
        becomes="`status`, `check`, `submit`, `rebuild` and `audit` refuse the log",
        prefix="a public log: ",
    )
    for name in ("written again and signed", "changed at its end", "cut off", "cut off, gone on"):
        yield here.one(
            f"a public log that a signer has {name}",
            "test_a_log_that_a_signer_made_anew_is_found_after_a_pull",
            tries="change what a clone has seen",
            becomes="`status`, `submit` and `audit` refuse the log, also after a pull",
        )
    seals = Group(family=FAMILY, module="board/test_events.py")
    yield seals.one(
        "a second opening of a sealed field",
        "test_a_sealed_reason_has_one_opening",
        tries="replace a published reason under the same digest",
        becomes="refused: a salt has 32 digits",
    )
    yield Group(family=FAMILY, module="board/test_arrivals.py").one(
        "a refused branch with the fingerprint of another team's",
        "test_a_refused_branch_with_the_same_fingerprint_hides_no_submission",
        tries="have another team's submission skipped as a copy",
        becomes="refused; the other is received",
    )
