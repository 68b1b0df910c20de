"""Nothing that a user can meet is left out of the documentation, and nothing there is made up."""

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Formatter

import msgspec
import pytest

from heldout.board.log.event_fields import EVENTS
from heldout.board.rules import spec
from heldout.board.rules.release import ReleaseRule
from heldout.board.rules.spec_file import parse_spec

ROOT = Path(__file__).parents[2]
MESSAGES = tomllib.loads((ROOT / "src/heldout/messages.toml").read_text("utf-8"))
TEXTS = ("path", "found", "expected", "hint")
"""Parameters of a problem after its code."""
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}


@pytest.fixture(scope="module")
def trees(sources: dict[Path, str]) -> dict[Path, list[ast.AST]]:
    return {path: [*ast.walk(ast.parse(text))] for path, text in sources.items()}


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def first_cells(text: str) -> list[str]:
    """The first cell of every row of every table, without backquotes."""
    cells = [line.split("|")[1].strip().strip("`") for line in text.splitlines() if line[:1] == "|"]
    return [cell for cell in cells if not set(cell) <= set("- :")]


# error codes


def find_codes(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Problem codes: `code="…"`, an argument for a parameter `code`, a value assigned to `code`."""
    places = {"Problem": 0, "of": 0, **dict(_find_takers(nodes))}
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from _codes_of_call(node, places)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _codes_assigned(target, node.value)


def _find_takers(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
            if "code" in names:
                yield node.name, names.index("code")


def _codes_of_call(call: ast.Call, places: dict[str, int]) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg == "code":
            yield from _texts(keyword.value)
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in places and len(call.args) > places[name]:
        yield from _texts(call.args[places[name]])


def _codes_assigned(target: ast.expr, value: ast.expr) -> Iterator[str]:
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=True))
    for name, text in pairs:
        if isinstance(name, ast.Name) and name.id == "code":
            yield from _texts(text)


def _texts(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from [node.value] * bool(KEBAB.fullmatch(node.value))


def test_the_scan_finds_codes_in_each_form() -> None:
    tree = ast.parse(
        """
def _refuse(path, code): return Problem(code=code)
class A:
    def _tell(self, code, line): pass
    def f(self):
        Problem(path="x", code="by-keyword")
        Problem("first", "a path")
        raise InputError.of("one" if x else "other", "a path")
        self._tell("by-method", 3)
        _refuse("a path", "by-position")
        code, found = "by-tuple", "no"
        code = "by-name"
        Entry(code="")
"""
    )
    assert sorted(find_codes([*ast.walk(tree)])) == sorted(
        ["by-keyword", "first", "one", "other", "by-method", "by-position", "by-tuple", "by-name"]
    )


def test_every_error_code_is_documented(trees: dict[Path, list[ast.AST]]) -> None:
    found = {code: path.name for path, nodes in trees.items() for code in find_codes(nodes)}
    documented = first_cells(read_page("reference/errors.md"))
    assert len(found) > 50
    assert {c: place for c, place in found.items() if c not in documented} == {}


def test_the_codes_of_messages_are_documented_and_those_of_the_page_used_both_in_order(
    sources: dict[Path, str],
) -> None:
    text = "\n".join(sources.values())
    documented = first_cells(read_page("reference/errors.md"))[1:]
    assert list(MESSAGES) == sorted(set(MESSAGES) & {*documented})
    assert documented == sorted(set(documented))
    assert [code for code in documented if f'"{code}"' not in text] == []


def find_words(text: str) -> set[str]:
    """What stands in the braces of a message."""
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name}


def test_a_problem_without_texts_has_them_and_all_their_words_among_the_messages(
    trees: dict[Path, list[ast.AST]],
) -> None:
    for path, nodes in trees.items():
        for node in nodes:
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("Problem" | "InputError"), attr="of"),
                    args=[ast.Constant(str(code)), *texts],
                    keywords=named,
                ):
                    given = {*TEXTS[: len(texts)], *(one.arg for one in named)}
                    if "expected" in given or None in given:
                        continue
                    row = MESSAGES[code]
                    assert {"found", "expected"} <= {*given, *row}, (path, node.lineno)
                    needed = (text for key, text in row.items() if key not in given)
                    assert set().union(*map(find_words, needed)) <= given, (path, node.lineno)


def test_every_row_says_what_it_means_and_what_to_do() -> None:
    for line in read_page("reference/errors.md").splitlines():
        if line.startswith("| "):
            assert len([cell for cell in line.strip("|").split(" | ") if cell.strip()]) == 3, line


# board.toml

TABLES: dict[str, type[msgspec.Struct]] = {
    "": spec.BoardSpec,
    "runs.": spec.Runs,
    "sets.NAME.": spec.QuerySet,
    "views.": spec.View,
    "seasons.": spec.Season,
    "baselines.": spec.Baselines,
    "example.": spec.Example,
    "policy.": spec.Policy,
    "release.": ReleaseRule,
    "archive.": spec.Archive,
    "programs.": spec.Programs,
    "trust.": spec.Trust,
    "forge.": spec.ForgeSpec,
    "registration.": spec.Registration,
}
KEYS = {
    prefix + field.name: field
    for prefix, table in TABLES.items()
    for field in msgspec.structs.fields(table)
    if f"{prefix}{field.name}." not in TABLES and field.name != "sets"
}
BOARD = read_page("reference/board.md").split("## The board's folder")[0]
BOARD_ROWS = {
    cells[1].strip().strip("`"): [cell.strip() for cell in cells[2:-1]]
    for line in BOARD.splitlines()
    if len(cells := line.split("|")) > 4 and cells[1].strip().startswith("`")
}


def test_every_key_of_board_toml_is_documented_and_none_is_made_up() -> None:
    assert list(BOARD_ROWS) == list(KEYS)
    for table in (
        "[runs]",
        "[sets.NAME]",
        "[[views]]",
        "[baselines]",
        "[example]",
        "[policy]",
        "[release]",
        "[archive]",
    ):
        assert f"### `{table}`" in BOARD


@pytest.mark.parametrize("key", KEYS)
def test_the_default_of_a_key(key: str) -> None:
    _, documented, meaning = BOARD_ROWS[key]
    field = KEYS[key]
    assert meaning
    if field.default is msgspec.NODEFAULT:
        expected = "required"
    elif field.default is None:
        expected = "none"
    else:
        expected = msgspec.json.encode(field.default).decode().replace('","', '", "')
    assert documented.strip("`") == expected


def test_the_full_example_is_a_board_that_names_every_key() -> None:
    example = re.findall(r"```toml\n(.*?)```", BOARD, re.DOTALL)[0]
    rules = parse_spec(example.encode())
    assert [view.name for view in rules.views if not view.public] == ["eval-ndcg", "final"]
    for key in KEYS:
        assert re.search(rf"^{key.split('.')[-1]} = ", example, re.MULTILINE), key


def test_the_layout_of_both_folders_is_that_of_the_code() -> None:
    page = read_page("reference/board.md")
    for module, names in {
        "repository.py": ("board.toml", "queries/", "qrels/", "submissions/", "log.jsonl"),
        "vault.py": ("identities/", "labels/SET.qrels", "sealed/SHA256", "scores/ID.json"),
    }.items():
        source = (ROOT / "src/heldout/board/store" / module).read_text("utf-8")
        for name in names:
            assert name in source
            assert name in page


# the policy


def test_every_rule_is_documented_in_its_order_with_its_severity() -> None:
    text = read_page("reference/policy.md").split("## The rules")[1].split("## The quota")[0]
    assert first_cells(text)[1:] == list(spec.RULES)
    for name, rule in spec.RULES.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.strip("| ").split(" | ")[-1] == rule.severity


def test_findings_outside_the_table_are_documented() -> None:
    page = read_page("reference/policy.md")
    assert all(f"`{name}`" in page for name in ("sealed", "metadata"))


def test_the_policy_s_numbers_are_the_defaults() -> None:
    page = read_page("reference/policy.md")
    for key in ("quota", "quota_days", "embargo_months", "id_days"):
        assert f"`{key}` ({getattr(spec.Policy(), key)})" in page


# the log


def test_every_kind_of_event_is_documented_in_its_order() -> None:
    text = (
        read_page("reference/log.md").split("## The kinds of events")[1].split("## The fields")[0]
    )
    assert first_cells(text)[1:] == list(EVENTS)


def test_every_field_of_an_event_is_explained() -> None:
    kinds, _, fields = (
        read_page("reference/log.md").split("## The kinds of events")[1].partition("## The fields")
    )
    named = set()
    for line in kinds.splitlines():
        cells = line.split("|")
        if len(cells) == 7:
            named |= set(re.findall(r"`([\w.]+)`", cells[3] + cells[4]))
    assert named == set(first_cells(fields)[1:])


NAMED_TESTS = re.compile(r"`([a-z_]+/test_\w+\.py)(?:::(test_\w+))?`|`::(test_\w+)`")


def named_tests(page: str) -> Iterator[tuple[str, str]]:
    """Module and test, "" for a whole module; `::test` is of the module named before it."""
    module = ""
    for new, of_new, more in NAMED_TESTS.findall(read_page(page)):
        module = new or module
        yield module, of_new or more


@pytest.mark.parametrize(
    ("page", "least"), [("explanation/threat-model.md", 30), ("results/findings.md", 70)]
)
def test_a_page_names_tests_that_are_there(page: str, least: int) -> None:
    named = list(named_tests(page))
    assert len(named) >= least
    for module, function in named:
        nodes = ast.walk(ast.parse((ROOT / "tests" / module).read_text("utf-8")))
        tests = {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        assert not function or function in tests, (module, function)


def test_every_page_that_the_program_names_is_there(sources: dict[Path, str]) -> None:
    texts = (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.toml"))
    pages = re.compile(r"docs/[a-z-]+/[a-z0-9-]+\.md")
    named = {page for text in (*sources.values(), *texts) for page in pages.findall(text)}
    assert len(named) > 10
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []
