"""A board.toml may come in an enemy's log: whatever it is, it is refused soon and in words."""

import time

import pytest
from boardlog import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError

SOON = 5  # seconds; each took minutes, or ended in a traceback, before there were limits
HOSTILE = {
    "dots in one key": f"a{'.a' * 30_000} = 1",
    "dots in many headers": "".join(f"[b{i}{'.a' * 64}]\n" for i in range(450)),
    "dots in many keys": "".join(f"b{i}{'.a' * 64} = 1\n" for i in range(450)),
    "brackets within brackets": "a = " + "[\n" * 30_000,
    "tables within tables": f"a = {'{b = ' * 1_000}1{'}' * 1_000}",
    "more bytes than any board": f"{RULES}# {'x' * 70_000}",
    "a line without end": f'title = "{"x" * 60_000}"',
    "thousands of unknown keys": "".join(f"k{i}=1\n" for i in range(7_000)),
    "digits without end": RULES.replace("quota = 2\n", f"quota = {'9' * 5_000}\n"),
    "hexadecimal digits": RULES.replace("quota = 2\n", f"quota = 0x{'F' * 2_900}\n"),
    "a cutoff without end": RULES.replace("RR@10", f"RR@{'9' * 2_900}"),
    "bytes that are no text": RULES + "\udcff",
    "nothing": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rules_are_refused_soon(name: str) -> None:
    start = time.process_time()
    with pytest.raises(InputError) as told:
        parse_spec(HOSTILE[name].encode("utf-8", "surrogateescape"))
    assert time.process_time() - start < SOON
    assert 1 <= len(told.value.problems) <= 50
    assert max(len(str(problem)) for problem in told.value.problems) < 5_000


@settings(deadline=1_000)
@given(st.lists(st.sampled_from([*"[]{}=.\",'\n #-_a1", "[[", '"""', "a = ", "1e9"]), max_size=60))
def test_any_text_is_read_or_refused(parts: list[str]) -> None:
    with pytest.raises(InputError):
        parse_spec("".join(parts).encode())


def test_what_people_write_is_far_from_the_limits() -> None:
    task = "One sentence. " * 60
    recipients = "".join(f'"age1{"q" * 58}", ' for _ in range(40))
    text = RULES.replace('"Find the passage that answers the question."', f'"{task}"')
    text = text.replace('["age1example"]', f"[{recipients}]")
    spec = parse_spec(text.encode())
    assert (spec.task, len(spec.recipients)) == (task, 40)
