"""board.toml: every mistake is told with its line."""

from datetime import date

import pytest
from boardlog import RULES

from heldout.board.policy.checks import CHECKS
from heldout.board.rules.spec import RULES as POLICY
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError, Problem


def find_problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        parse_spec(text.encode())
    return caught.value.problems


def line_of(text: str, what: str) -> int:
    (number,) = [n for n, line in enumerate(text.splitlines(), 1) if what in line]
    return number


def test_a_full_example_is_read() -> None:
    spec = parse_spec(RULES.encode())
    assert (spec.name, spec.title, spec.primary, spec.decimals) == (
        "kb",
        "Knowledge base",
        "eval",
        3,
    )
    assert (spec.opens, spec.closes) == (date(2026, 11, 1), date(2027, 12, 31))
    assert (spec.types, spec.envelope) == (("full ranking", "reranking"), "age")
    assert (spec.recipients, spec.contact) == (("age1example",), "organisers@example.org")
    assert spec.submit == "Open a pull request."
    runs = spec.runs
    assert (runs.order, runs.depth, runs.min_depth, runs.complete) == ("trec", 100, 1, True)
    assert list(spec.sets) == ["dev", "eval"]
    assert spec.sets["dev"].candidates == "candidates/dev.tsv"
    assert (spec.sets["dev"].held_out, spec.sets["eval"].held_out) == (False, True)
    assert [view.name for view in spec.public_views] == ["dev", "eval"]
    assert spec.view("eval").measure == "RR@10"
    policy = spec.policy
    numbers = (policy.quota, policy.quota_days, policy.embargo_months, policy.id_days)
    assert (*numbers, policy.off) == (2, 30, 9, 7, ())


def test_what_is_left_out_has_defaults() -> None:
    spec = parse_spec(
        b"""name = "kb"
title = "t"
task = "t"
opens = 2026-11-01
primary = "v"
recipients = ["k"]
[sets.eval]
queries = "q.tsv"
[[views]]
name = "v"
set = "eval"
measure = "nDCG@10"
"""
    )
    assert (spec.schema, spec.closes, spec.decimals, spec.envelope) == (1, None, 3, "age")
    assert (spec.runs.order, spec.runs.depth, spec.policy.quota) == ("msmarco", 1000, 2)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema = 1", "schema = 2", "1"),
        ('name = "kb"', 'name = "../kb"', "1 to 64 letters, digits, . _ -"),
        ('name = "kb"', 'name = ""', "1 to 64 letters, digits, . _ -"),
        ("closes = 2027-12-31", "closes = 2026-10-31", "a day from 2026-11-01 on"),
        ('primary = "eval"', 'primary = "test"', "the name of a view: dev, eval"),
        ("decimals = 3", "decimals = 0", "1 to 6"),
        ("decimals = 3", "decimals = 7", "1 to 6"),
        ('types = ["full ranking", "reranking"]', "types = []", "at least one submission type"),
        ('recipients = ["age1example"]', "recipients = []", "the public key of at least one"),
        ("min_depth = 1", "min_depth = 0", "1 to 100 (depth)"),
        ("min_depth = 1", "min_depth = 101", "1 to 100 (depth)"),
        ('queries = "queries/dev.tsv"', 'queries = "/etc/passwd"', "a path inside the board"),
        ('queries = "queries/dev.tsv"', 'queries = "a/../../b"', "a path inside the board"),
        ('qrels = "qrels/dev.qrels"', 'qrels = "../x"', "a path inside the board"),
        ('candidates = "candidates/dev.tsv"', 'candidates = ".."', "a path inside the board"),
        ("quota = 2", "quota = 0", "1 to 1,000"),
        ("quota_days = 30", "quota_days = 0", "1 to 3,660"),
        ("quota_days = 30", "quota_days = 1000000000", "1 to 3,660"),
        ("embargo_months = 9", "embargo_months = -1", "0 to 120"),
        ("embargo_months = 9", "embargo_months = 99999", "0 to 120"),
        ("id_days = 7", "id_days = -1", "0 to 3,660"),
        ("off = []", "off = []\n[release]\nfeedback = 1", "0 or more, below 1"),
        ("off = []", "off = []\n[release]\nfeedback = nan", "a number"),
        ("off = []", "off = []\n[release]\nsubmissions = 0", "1 to 1,000,000"),
        ("off = []", "off = []\n[release]\nsubmissions = 1000001", "1 to 1,000,000"),
        ("off = []", "off = []\n[programs]\nminutes = 0", "1 to 43,200"),
        ("off = []", "off = []\n[programs]\ndisk = 8193", "at most memory, 8,192"),
        ("off = []", "off = []\n[release]\nfeedback = true", "a number"),
        ("off = []", 'off = []\n[release]\nrule = "exact"', "rounded"),
        ("schema = 1", 'schema = 1\nkind = "two-shot"', "sequential"),
        ("closes = 2027-12-31", 'kind = "one-shot"', "a last day"),
        ("schema = 1", 'schema = 1\ndenominator = "some"', "counted"),
        ("public = true", 'labels = "a/b"', "a name of letters"),
        ("off = []", 'off = ["qouta"]', "one of board-open, post-hoc, id-date"),
    ],
)
def test_a_wrong_value_has_its_line(old: str, new: str, expected: str) -> None:
    text = RULES.replace(old, new)
    (problem,) = find_problems(text)
    assert problem.code == "board-spec"
    assert problem.line == line_of(text, new.splitlines()[-1])
    assert expected in problem.expected
    assert problem.path == "board.toml"


@pytest.mark.parametrize(
    "number", [n for n, line in enumerate(RULES.splitlines()) if " = " in line]
)
def test_a_value_of_another_kind_has_its_line(number: int) -> None:
    lines = RULES.splitlines()
    lines[number] = lines[number].split(" = ")[0] + " = [[1.5]]"
    (problem,) = find_problems("\n".join(lines))
    assert (problem.code, problem.line) == ("board-spec", number + 1)


@pytest.mark.parametrize(
    ("old", "new", "index"),
    [
        ('name = "dev"', 'name = "a b"', 0),
        ('name = "eval"', 'name = "dev"', 1),
        ('set = "dev"', 'set = "train"', 0),
        ('set = "eval"\nmeasure = "RR@10"', 'set = "eval"\nmeasure = "MRRR"', 1),
        ('set = "eval"\nmeasure = "RR@10"', 'set = "eval"\nmeasure = "nDCG(x"', 1),
    ],
)
def test_a_wrong_view_has_its_line(old: str, new: str, index: int) -> None:
    text = RULES.replace('primary = "eval"', 'primary = "dev"').replace(old, new)
    text = text.replace('primary = "dev"', 'primary = "a b"') if "a b" in new else text
    (problem,) = find_problems(text)
    key = new.splitlines()[-1].split(" = ")[0]
    heads = [n for n, line in enumerate(text.splitlines(), 1) if line == "[[views]]"]
    assert problem.found.startswith(f"views[{index}].{key} = ")
    assert problem.line == heads[index] + {"name": 1, "set": 2, "measure": 3}[key]


def test_a_hidden_view_cannot_rank() -> None:
    text = RULES.replace("public = true", "public = false")
    (problem,) = find_problems(text)
    assert (problem.line, problem.expected) == (line_of(text, "primary ="), "a public view")


SEASONS = RULES.replace(
    "[policy]",
    """[sets.next]
queries = "queries/next.tsv"

[[views]]
name = "next"
set = "next"
measure = "RR@10"

[[seasons]]
name = "one"
view = "eval"
opens = 2026-11-01
closes = 2026-11-30

[[seasons]]
name = "two"
view = "next"
opens = 2026-12-01

[policy]""",
)


def test_a_season_may_open_on_the_day_after_the_last() -> None:
    one, two = parse_spec(SEASONS.encode()).seasons
    assert (one.closes, two.opens, two.closes) == (date(2026, 11, 30), date(2026, 12, 1), None)


@pytest.mark.parametrize("closes", ["", "closes = 2026-12-01\n", "closes = 2027-06-30\n"])
def test_a_season_has_to_end_before_the_next_opens(closes: str) -> None:
    text = SEASONS.replace("closes = 2026-11-30\n", closes)
    (problem,) = find_problems(text)
    assert problem.found == 'seasons[1].opens = "2026-12-01"'
    assert problem.expected == "a day after season 'one' closes"
    assert problem.line == line_of(text, "opens = 2026-12-01")


def test_a_season_does_not_end_before_it_opens() -> None:
    text = SEASONS.replace("opens = 2026-12-01\n", "opens = 2026-12-01\ncloses = 2026-11-30\n")
    (problem,) = find_problems(text)
    assert problem.found == 'seasons[1].closes = "2026-11-30"'
    assert problem.expected == "a day from 2026-12-01 on"


@pytest.mark.parametrize("gone", ["name", "title", "task", "opens", "primary", "recipients"])
def test_a_key_that_must_be_there(gone: str) -> None:
    text = "\n".join(line for line in RULES.splitlines() if not line.startswith(gone + " = "))
    text = text if gone != "name" else RULES.replace('name = "kb"\n', "")
    (problem,) = find_problems(text)
    assert (problem.found, bool(problem.expected)) == (f"no {gone}", True)


@pytest.mark.parametrize(
    ("old", "new", "found", "expected", "hint"),
    [
        ("quota = 2", "qouta = 2", "policy.qouta, an unknown key", "one of quota, ", "quota?"),
        ('task = "Find', 'tsak = "Find', "tsak, an unknown key", "one of schema, ", "task?"),
        ("quota = 2", "colour = 2", "policy.colour, an unknown key", "one of quota", "remove it"),
        ("quota = 2", 'quota = "2"', 'policy.quota = "2"', "a whole number", ""),
        ("decimals = 3", "decimals = 3.5", "decimals = 3.5", "a whole number", ""),
        ('name = "kb"', "name = 7", "name = 7", "text in quotes", ""),
        ("complete = true", "complete = 1", "runs.complete = 1", "true or false", ""),
        ("closes = 2027-12-31", "closes = 1", "closes = 1", "a day as 2026-11-01", ""),
        ('order = "trec"', 'order = "best"', 'runs.order = "best"', '"trec", "trec9"', ""),
        ('envelope = "age"', "envelope = 1", "envelope = 1", 'one of "age", "openssl"', ""),
        ("off = []", "off = [1]", "policy.off[0] = 1", "text in quotes", ""),
        ("off = []", 'off = "quota"', 'policy.off = "quota"', "a list in brackets", ""),
        ("[policy]", "[[policy]]", "policy = [{", "a table [policy]", ""),
        ("[[views]]", "[views]", "views = {", "a table [[views]] for each", ""),
    ],
)
def test_a_wrong_key_or_kind_is_told_in_words(
    old: str, new: str, found: str, expected: str, hint: str
) -> None:
    text = RULES.replace(old, new, 1)
    if new == "[views]":
        text = text[: text.rindex("[[views]]")] + text[text.index("[policy]") :]
    (problem,) = find_problems(text)
    assert problem.found.startswith(found)
    assert expected in problem.expected
    assert hint in problem.hint
    assert "`" not in str(problem)


def test_every_wrong_kind_is_told_at_once() -> None:
    text = RULES.replace("decimals = 3", 'decimals = "3"').replace("quota = 2", "qouta = 2")
    text = text.replace('queries = "queries/eval.tsv"\n', "")
    assert [problem.found for problem in find_problems(text)] == [
        'decimals = "3"',
        "no sets.eval.queries",
        "policy.qouta, an unknown key",
    ]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"name = \n", 1),
        (b'name = "a"\ntitle "b"\n', 2),
        (b'name = "a"\nname = "b"\n', 2),
        (b'name = "a"\n[runs\n', 2),
        (b'name = "a"\ntask = "unended\n', 2),
        (b'name = "a"\ntask = """unended\n\n', 3),
        (b'name = "a"\ntask = "\xff"\n', 2),
        (b"\x00", 1),
        (b'\xef\xbb\xbfname = "a"\n', 1),
    ],
)
def test_what_is_no_toml_has_its_line(data: bytes, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(data)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("not-toml", line)
    assert "(at" not in problem.found
    assert "codec" not in problem.found


def test_every_rule_can_be_switched_off_by_name() -> None:
    assert list(CHECKS) == list(POLICY)
    off = ", ".join(f'"{name}"' for name in tuple(POLICY))
    spec = parse_spec(RULES.replace("off = []", f"off = [{off}]").encode())
    assert spec.policy.off == tuple(POLICY)


@pytest.mark.parametrize(
    "file",
    [
        *("log.jsonl", "./log.jsonl", "LOG.jsonl", "leaderboard/terms.md", "labels/eval.qrels"),
        *("submissions/a/b", "board.toml", ".git/config", "."),
    ],
)
def test_an_agreement_is_no_file_of_heldout_s_own(file: str) -> None:
    text = RULES + f'\n[registration]\nagreement = "{file}"\n'
    (problem,) = find_problems(text)
    assert problem.line == line_of(text, "agreement =")
    assert problem.expected == "a file of the agreement's own"
    parse_spec(text.replace(f'"{file}"', '"terms/labels.md"').encode())
