"""Attacks by a clock."""

from collections.abc import Iterator

from attack_table.attack import SAME, Attack, Group

__all__ = ["attacks"]

FAMILY = "A clock that is wrong"


def attacks() -> Iterator[Attack]:
    here = Group(family=FAMILY, module="scenario/test_attacks_by_clock.py")
    for command in ("inbox", "review", "publish", "reject", "ask", "correct"):
        yield here.one(
            f"a clock that goes backwards: {command}",
            "test_a_clock_that_goes_backwards",
            tries="date an event before the last one",
            becomes="refused; board and log unchanged",
            case=command,
        )
    yield here.one(
        "a clock that goes backwards: rekey",
        "test_a_clock_that_goes_backwards_in_the_middle_of_a_change_of_keys",
        tries="lose a key half-way",
        becomes="refused; both keys stay, the next call continues",
    )
    yield Group(family=FAMILY, module="scenario/test_two_organisers_apart.py").one(
        "a clock behind another organiser's",
        "test_a_clock_that_is_behind_the_other_s_is_told",
        tries="date an event before the other's",
        becomes="refused, naming whose event is last",
    )
    yield Group(family=FAMILY, module="scenario/test_days.py").one(
        "a submission one second early",
        "test_quota_slides_to_the_second",
        tries="evade the quota",
        becomes="refused; the window slides by the second",
    )
    ahead = Group(family=FAMILY, module="scenario/test_clock_ahead.py")
    yield from ahead.cases(
        "test_a_clock_ahead_reveals_nobody",
        "a typing error",
        "one year",
        tries="reveal a team early",
        becomes="refused until a person confirms the clock" + SAME,
        prefix="a clock ahead by ",
    )
    yield from ahead.cases(
        "test_a_clock_ahead_dates_no_event",
        *("inbox", "review", "publish", "reject", "ask", "extend", "rekey"),
        tries="date an event so late that none can follow",
        becomes="refused until a person confirms the clock" + SAME,
        prefix="a clock ahead: ",
    )
    yield ahead.one(
        "a publication after a reveal by a wrong clock",
        "test_after_a_reveal_by_a_wrong_clock_the_right_one_logs_nothing_and_says_what_to_do",
        tries="be logged, yet end with an error",
        becomes="refused before anything is logged",
    )
    yield ahead.one(
        "a page of a day before its own events",
        "test_no_page_is_made_of_a_day_before_its_own_events",
        tries="show a ranking that never existed",
        becomes="refused, with and without the vault" + SAME,
    )
