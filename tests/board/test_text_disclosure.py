"""What a text in prose tells of a team, and what it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.policy.identity import mentions

TEAM, INSTITUTION = "Rival Lab", "North Coast University"
PAPER, CODE = "https://arxiv.org/abs/2011.01234", "https://github.com/rival/ranker"


@pytest.mark.parametrize(
    "text",
    [
        "Which dataset, Rival Lab?",
        "rival lab: which dataset?",
        "Please ask RIVAL.",
        "Are you (the rivals) two groups?",
        "R\u0131val, which dataset?",
        "Write to someone@rival.example",
        "Is this the same group of North Coast University?",
        "Is NCU your only institution?",
        "See https://arxiv.org/pdf/2011.01234v2.",
        "The code at <https://github.com/rival/ranker.git> does not run",
    ],
)
def test_a_text_that_tells_the_team_is_found(text: str) -> None:
    assert mentions(text, TEAM, INSTITUTION, links=(PAPER, CODE))


@pytest.mark.parametrize(
    "text",
    [
        "Which dataset did you train on?",
        "Which group of the institute is this?",
        "Your lab has another entry; which university is it?",
        "two labels were on wrong queries",
        "See https://arxiv.org/abs/2011.09999 and https://github.com/other/ranker",
        "",
    ],
)
def test_a_text_that_tells_nobody_is_left_alone(text: str) -> None:
    assert mentions(text, TEAM, INSTITUTION, links=(PAPER, CODE, "")) is None


@pytest.mark.parametrize("team", ["Deep Search Team", "AI", "The 1", "\u533f\u540d"])
def test_a_name_of_nothing_but_common_words_is_found_as_it_stands(team: str) -> None:
    assert mentions(f"Dear {team.lower()}, which run is it?", team) == f'it says "{team}"'
    assert mentions("Which deep run is it?", team) is None


NAMES = st.text(st.characters(categories=["L", "Nd", "Zs"]), min_size=1, max_size=30)


@given(name=NAMES, before=st.sampled_from(["", "Dear ", "(of "]), after=st.sampled_from(["", "?"]))
def test_every_name_with_a_letter_or_a_digit_is_found_in_a_text_that_has_it(
    name: str, before: str, after: str
) -> None:
    told = mentions(f"{before}{name}{after}", name)
    assert (told is not None) == any(map(str.isalnum, name))
