"""Prints how large the house is and how its rooms depend on each other; holds its ceilings.

    python tools/house.py c85d544 HEAD
    python tools/house.py --check

One column for each commit; without any, the working tree. A line of code is one that holds more
than blanks, comments and docstrings. A room is a folder or module directly below `heldout`; wings
are the rooms of a subject. An option slot is one parameter of one command. Arrows up are held by
import-linter (`lint-imports`) and are not counted here.

`--check` ends with 1 where a figure is above its ceiling in `tools/ceilings.toml`, or where a
ceiling was raised and docs/decisions/0036-ceilings.md does not give the reason. `--lower` writes
the ceilings that are now too high.
"""

import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from journeys import measure_journeys

CEILINGS = Path("tools/ceilings.toml")
REASONS = Path("docs/decisions/0036-ceilings.md")
Figures = Mapping[str, Mapping[str, float]]
"""Group -> name -> figure, as in `CEILINGS`."""

WINGS = ("analyses", "board", "judging", "rankers", "redteam", "survivorship")
EVERYWHERE = ("errors", "ids")
"""Rooms from which everybody may take names."""

SLOTS = """
import json, click
from heldout.cli.program import main
def leaves(command, name=""):
    if not isinstance(command, click.Group):
        yield name, sum(isinstance(p, click.Option) for p in command.params)
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        yield from leaves(command.get_command(context, each), f"{name} {each}".strip())
print(json.dumps(dict(leaves(main))))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file of Python.

    Attributes:
        tree: what it says.
        code: lines of code.
        imports: how many of these are imports.
    """

    tree: ast.Module
    code: int
    imports: int


def main() -> None:
    """Print the table, or compare with the ceilings."""
    refs = sys.argv[1:]
    if refs in (["--check"], ["--lower"]):
        figures, ceilings = _measure_figures(Path("src")), _parse(CEILINGS.read_text("utf-8"))
        if refs == ["--lower"]:
            CEILINGS.write_text(_format(_lower(ceilings, figures)), "utf-8")
            return
        faults = [*_compare(figures, ceilings), *_unexplained()]
        sys.exit("\n".join(faults) if faults else 0)
    columns = [_measure(ref) for ref in refs] or [_describe(Path("src"))]
    print("\t".join(["what", *(refs or ["working tree"])]))
    for what in columns[0]:
        print("\t".join([what, *(column[what] for column in columns)]))


def _asks(node: ast.AST) -> bool:
    """Check whether a function's docstring begins with "What" or "Whether", and not with a verb."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if any("property" in ast.unparse(one) for one in node.decorator_list):
        return False
    return (ast.get_docstring(node) or "").split(" ", 1)[0] in _ASKING


_ASKING = frozenset(("What", "Whether", "How", "Where", "Why", "When", "Who", "Which", "Whose"))


def _measure_figures(source: Path) -> Figures:
    modules = _read_modules(source)
    rooms: Counter[str] = Counter()
    for name, module in modules.items():
        rooms[_room(name) or "heldout"] += module.code
    classes = Counter(
        node.name
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )
    code = rooms.total()
    journeys = measure_journeys()
    return {
        "house": {
            "modules": len(modules),
            "lines of code": code,
            "imports, percent of code": round(
                100 * sum(module.imports for module in modules.values()) / code, 1
            ),
            "class names of several classes": sum(count > 1 for count in classes.values()),
            "modules in circles": _in_circles(_pairs(modules)),
            "docstrings of functions that ask": sum(
                _asks(node) for module in modules.values() for node in ast.walk(module.tree)
            ),
        },
        "lines of code": dict(sorted(rooms.items())),
        "modules of a journey": {name: len(each.modules) for name, each in journeys.items()},
        "pairs that call each other both ways": {
            name: len(each.both_ways) for name, each in journeys.items()
        },
    }


def _compare(figures: Figures, ceilings: Figures) -> Iterator[str]:
    """A line for each figure above its ceiling, and each ceiling without a figure."""
    for group, names in figures.items():
        for name, figure in names.items():
            ceiling = ceilings.get(group, {}).get(name)
            if ceiling is None:
                yield f"{CEILINGS}: [{group}] has no ceiling for {name}, which is {figure}"
            elif figure > ceiling:
                yield f"{group}, {name}: {figure} is above the ceiling of {ceiling}"
    for group, names in ceilings.items():
        for name in names.keys() - figures.get(group, {}).keys():
            yield f"{CEILINGS}: remove {name} from [{group}]: nothing has this name"


def _unexplained() -> Iterator[str]:
    """A line for each ceiling that a commit raised without a reason in `REASONS`."""
    commits = _run("git", "log", "--format=%H", "--", str(CEILINGS)).decode().split()
    texts = [CEILINGS.read_text("utf-8")]
    texts += [_run("git", "show", f"{commit}:{CEILINGS}").decode() for commit in commits]
    reasons = REASONS.read_text("utf-8")
    for new, old in pairwise(map(_parse, texts)):
        for group, names in new.items():
            for name, ceiling in names.items():
                before = old.get(group, {}).get(name)
                if before is None or ceiling <= before:
                    continue
                row = f"| {group}, {name} | {before} | {ceiling} |"
                if row not in reasons:
                    yield f"{REASONS}: give the reason in a row that begins with {row}"


def _lower(ceilings: Figures, figures: Figures) -> Figures:
    return {
        group: {
            name: min(figure, ceilings.get(group, {}).get(name, figure))
            for name, figure in names.items()
        }
        for group, names in figures.items()
    }


def _parse(text: str) -> Figures:
    return tomllib.loads(text)


def _format(ceilings: Figures) -> str:
    lines = ["# At most this much: `tools/house.py --check`. To lower: `tools/house.py --lower`."]
    for group, names in ceilings.items():
        lines += ["", f"[{json.dumps(group)}]"]
        lines += [f"{json.dumps(name)} = {figure}" for name, figure in names.items()]
    return "\n".join(lines) + "\n"


def _measure(ref: str) -> Mapping[str, str]:
    packed = _run("git", "archive", ref, "src")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return _describe(Path(folder, "src"))


def _describe(source: Path) -> Mapping[str, str]:
    modules = _read_modules(source)
    code = sum(module.code for module in modules.values())
    taken = {name: list(_taken(module.tree, modules)) for name, module in modules.items()}
    pairs = _pairs(modules)
    wings = Counter(
        (_room(a), _room(b))
        for a, b in pairs
        if _room(a) != _room(b) and {_room(a), _room(b)} <= {*WINGS}
    )
    crossing = {
        (name, other, what)
        for name, names in taken.items()
        for other, what in names
        if _room(name) != _room(other) and _room(other) not in EVERYWHERE
    }
    cli = {name: module for name, module in modules.items() if _room(name) == "cli"}
    silent = [name for name, module in cli.items() if not _has_command(module.tree)]
    slots = _option_slots(source)
    most = max(slots, key=slots.__getitem__)
    return {
        "modules": f"{len(modules)}",
        "lines of code": f"{code:,}",
        "imports, share of code": f"{sum(m.imports for m in modules.values()) / code:.1%}",
        "lines of code in cli": f"{sum(module.code for module in cli.values()):,}",
        "modules in cli without a command": f"{len(silent)} of {len(cli)}",
        "pairs of modules, wing to wing": f"{wings.total()}: "
        + ", ".join(f"{a} > {b} {count}" for (a, b), count in sorted(wings.items())),
        "names imported across walls": f"{len(crossing):,}",
        "modules in circles": f"{_in_circles(pairs)}",
        "longest module, lines of code": f"{max(module.code for module in modules.values())}",
        "commands; option slots": f"{len(slots)}; {sum(slots.values())}",
        "most option slots": f"{slots[most]} ({most})",
    }


def _read_modules(source: Path) -> Mapping[str, Module]:
    return {_name(path.relative_to(source)): _read(path) for path in sorted(source.rglob("*.py"))}


def _pairs(modules: Mapping[str, Module]) -> set[tuple[str, str]]:
    """Every module with each other one that it imports."""
    return {
        (name, other)
        for name, module in modules.items()
        for other, _ in _taken(module.tree, modules)
        if name != other
    }


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def _read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    apart = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in apart and token.string:
            lines.update(range(token.start[0], token.end[0] + 1))
    nodes = list(ast.walk(tree))
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # a docstring
                lines.difference_update(_lines_of(node))
    imports = {
        line
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in _lines_of(node)
    }
    return Module(tree=tree, code=len(lines), imports=len(imports & lines))


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _taken(tree: ast.Module, modules: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Modules of heldout that it imports, each with a name out of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, "") if inner in modules else (node.module or "", alias.name)


def _has_command(tree: ast.Module) -> bool:
    """Whether one of its functions is a command, or it makes commands of a table."""
    marks = (
        mark.func if isinstance(mark, ast.Call) else mark
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
    )
    return any(getattr(mark, "attr", getattr(mark, "id", "")) == "command" for mark in marks)


def _in_circles(pairs: set[tuple[str, str]]) -> int:
    """Modules from which a way of imports leads back."""
    left: dict[str, set[str]] = {}
    for name, other in pairs:
        left.setdefault(name, set()).add(other)
        left.setdefault(other, set())
    while True:
        entered = {other for others in left.values() for other in others}
        ends = {name for name, others in left.items() if not others or name not in entered}
        if not ends:
            return len(left)
        left = {name: others - ends for name, others in left.items() if name not in ends}


def _option_slots(source: Path) -> Mapping[str, int]:
    printed = _run(sys.executable, "-c", SLOTS, PYTHONPATH=str(source.resolve()))
    slots: dict[str, int] = json.loads(printed)
    return slots


def _run(*command: str, **environment: str) -> bytes:
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
