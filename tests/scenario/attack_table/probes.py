"""Attacks by the runs themselves: made to read labels, to climb on noise, or to pass for others."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A run that is made to probe or to hide"


def attacks() -> Iterator[Attack]:
    yield Group(family=FAMILY, module="scenario/test_review_low_start.py").one(
        "runs of nonsense but for one query, after an honest entry",
        "test_single_labels_cannot_be_asked_for_after_an_honest_first_entry",
        tries="to read single labels out of rounded scores",
        becomes="told at review as `far-below`, each of them; a reason is asked for",
    )
    likeness = Group(family=FAMILY, module="board/test_likeness_rules.py")
    yield Group(family=FAMILY, module="scenario/test_likeness.py").one(
        "the organisers' own baseline run",
        "test_the_organisers_own_baseline_run_sent_by_a_team",
        tries="to be ranked with a run of somebody else's",
        becomes="told at review as `others-run`, with the baseline; a reason is asked for",
    )
    yield Group(family=FAMILY, module="board/test_similarity.py").one(
        "a copy with made-up documents below the first three",
        "test_attack_copy_with_made_up_documents_below_the_first",
        tries="to climb on a reciprocal rank by small changes that nobody sees",
        becomes="told as `small-change`; what is kept to the second rank is not: detection.md",
    )
    yield Group(family=FAMILY, module="scenario/test_trust_figures.py").one(
        "a run with other ranks everywhere and one query's documents exchanged",
        "test_a_run_with_other_ranks_and_one_other_query_does_not_read_its_label",
        tries="to read that query's label from the outcomes of neighbours",
        becomes="what is published is the same, whichever the label is",
    )
    yield Group(family=FAMILY, module="board/test_measuring.py").one(
        "one exchanged query, over several events and beside third entries",
        "test_a_probe_s_outcomes_are_the_same_whichever_the_label_is",
        tries="to read that query's label from differences and sums of counts",
        becomes="the probe has the counts of the run that it copies, in bins, in every event",
    )
    yield likeness.one(
        "a variant of one's own behind many equal runs of others",
        "test_an_own_variant_does_not_hide_behind_equal_runs_of_others",
        tries="to be left out of a list of the nearest",
        becomes="told as `small-change`: all that is alike is judged, whosever it is",
    )
