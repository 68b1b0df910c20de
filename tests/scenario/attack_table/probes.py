"""Attacks by the runs themselves: made to read labels, to climb on noise, or to pass for others."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A run that is made to probe or to hide"


def attacks() -> Iterator[Attack]:
    yield Group(family=FAMILY, module="scenario/test_review_low_start.py").one(
        "runs of nonsense but for one query, after an honest entry",
        "test_single_labels_cannot_be_asked_for_after_an_honest_first_entry",
        tries="read single labels from rounded scores",
        becomes="each reported as `far-below`; needs a reason",
    )
    likeness = Group(family=FAMILY, module="board/test_likeness_rules.py")
    yield Group(family=FAMILY, module="scenario/test_likeness.py").one(
        "the organisers' own baseline run",
        "test_the_organisers_own_baseline_run_sent_by_a_team",
        tries="be ranked with another's run",
        becomes="reported as `others-run`; needs a reason",
    )
    similarity = Group(family=FAMILY, module="board/test_similarity.py")
    yield similarity.one(
        "a copy with made-up documents below the first three",
        "test_attack_copy_with_made_up_documents_below_the_first",
        tries="climb on RR by small hidden changes",
        becomes="reported as `small-change`; not if only two ranks are shared",
    )
    yield similarity.one(
        "a copy with other documents between its own, up to every second one",
        "test_attack_copy_interleaved_with_made_up_documents",
        tries="climb on RR by small hidden changes",
        becomes="reported as `small-change`",
    )
    yield similarity.one(
        "the same with the first three in another order",
        "test_attack_copy_interleaved_and_with_the_first_three_in_another_order",
        tries="climb on RR by small hidden changes",
        becomes="reported as `small-change`; not if they leave the top 10 in over 10% of queries",
    )
    yield likeness.one(
        "a variant of one's own behind many equal runs of others",
        "test_an_own_variant_does_not_hide_behind_equal_runs_of_others",
        tries="fall out of the list of nearest runs",
        becomes="reported as `small-change`: all similar runs are judged",
    )
    yield Group(family=FAMILY, module="board/test_sketches.py").one(
        "documents whose sketches are equal",
        "test_documents_whose_sketches_meet_hide_no_variant_and_make_none",
        tries="hide a copy, or accuse another run",
        becomes="the runs are compared in full; sketches depend on a random number in the vault",
    )
