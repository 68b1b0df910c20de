"""Attacks by a clock."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "A clock that goes backwards"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_clock.py")
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
    yield Group(family=FAMILY, module="scenario/test_two_organisers_apart.py").one(
        "a clock behind another organiser's",
        "test_a_clock_that_is_behind_the_other_s_is_told",
        tries="to date an event before the other's",
        becomes="refused, and whose event it is is told",
    )
    yield Group(family=FAMILY, module="scenario/test_days.py").one(
        "a submission one second early",
        "test_quota_slides_to_the_second",
        tries="to slip under the quota",
        becomes="refused; the window goes by the second of receipt",
    )
