"""Measures what the tests catch: changes one small thing in the code, and runs the tests of it.

    pip install "mutmut>=3.8,<4" coverage
    python tools/mutation.py sample --seed 1 --count 300 src/heldout/trec src/heldout/stats >MUTANTS
    python tools/mutation.py run MUTANTS tests/trec tests/stats >RESULTS

`sample` draws from all changes that mutmut's operators make inside functions. The operators of
strings are left out: they would ask whether every text is tested. A mutant is known by the name of
its function and the lines that change, so `run` finds it after the function has moved to another
module or has got an underscore.

`run` imports everything once and puts each mutant into a forked child. The child runs the tests
that execute the changed lines, the quickest first, and stops at the first that fails. Tests that
fail without any change are left out. What tests do in processes of their own is not seen.
"""

import argparse
import gc
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from operator import eq
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import coverage
import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

SOURCE = Path("src")
OPERATORS = [(kind, make) for kind, make in mutation_operators if make is not operator_string]
MEMORY = 24 << 30
PATIENCE = 20.0
"""Seconds that a child may take, beyond four times what its tests took without the mutant."""

Key: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""Function, lines before, lines after, and which of the places in it that change so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function or method, but for those inside of functions."""

    name: str
    node: cst.FunctionDef
    line: int  # of its first decorator, or of `def`
    skipped: int  # lines before that one which libcst counts as part of the node
    module: cst.Module
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one function."""

    key: Key
    function: Function
    changed: cst.FunctionDef
    lines: range

    def compile(self) -> CodeType:
        """The code of the changed function."""
        tree = self.function.module.deep_replace(self.function.node, self.changed)
        source = cst.ensure_type(tree, cst.Module).code
        codes = [compile(source, str(self.function.path), "exec", dont_inherit=True)]
        for code in codes:
            if self._is_of(code):
                return code
            codes += [part for part in code.co_consts if isinstance(part, CodeType)]
        raise SyntaxError(self.key)

    def apply(self) -> None:
        """Put it into every such function of this process."""
        code = self.compile()
        functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        for one in functions:
            if self._is_of(one.__code__) and Path(one.__code__.co_filename) == code_path(self):
                one.__code__ = code

    def _is_of(self, code: CodeType) -> bool:
        return (code.co_qualname, code.co_firstlineno) == (self.function.name, self.function.line)


def code_path(mutant: Mutant) -> Path:
    """The file as Python names it in what it has imported."""
    return mutant.function.path.resolve()


def list_functions(path: Path) -> Iterator[Function]:
    """The functions of a file, in order."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text("utf-8")))
    module, positions = wrapper.module, wrapper.resolve(PositionProvider)

    def visit(body: Sequence[cst.CSTNode], outer: str) -> Iterator[Function]:
        for node in body:
            if isinstance(node, cst.ClassDef):
                yield from visit(node.body.body, f"{outer}{node.name.value}.")
            elif isinstance(node, cst.FunctionDef):
                first = node.decorators[0] if node.decorators else node
                yield Function(
                    name=outer + node.name.value,
                    node=node,
                    line=positions[first].start.line,
                    skipped=len(node.leading_lines),
                    module=module,
                    path=path,
                )

    yield from visit(module.body, "")


def list_mutants(function: Function) -> Iterator[Mutant]:
    """All changes of a function."""
    old = function.module.code_for_node(function.node).splitlines()
    seen: Counter[tuple[str, ...]] = Counter()
    for node in _walk(function.node.body):
        for replacement in _replace(node):
            changed = cst.ensure_type(
                function.node.deep_replace(node, replacement), cst.FunctionDef
            )
            new = function.module.code_for_node(changed).splitlines()
            head = _count_same(old, new)
            tail = _count_same(old[head:][::-1], new[head:][::-1])
            before, after = (_strip(lines[head : len(lines) - tail]) for lines in (old, new))
            first = function.line - function.skipped + head
            key = (function.name, before, after, seen[*before, "", *after])
            seen[*before, "", *after] += 1
            lines = range(first, first + max(1, len(before)))
            yield Mutant(key=key, function=function, changed=changed, lines=lines)


def _count_same(old: Sequence[str], new: Sequence[str]) -> int:
    return len(list(takewhile(bool, map(eq, old, new))))


def _strip(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines)


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if not isinstance(node, cst.Annotation | cst.Decorator):
        yield node
        for child in node.children:
            yield from _walk(child)


def _replace(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, make in OPERATORS:
        if isinstance(node, kind):
            yield from make(node)


def sample(roots: Sequence[Path], *, count: int, seed: int) -> list[dict[str, Any]]:
    """Draw mutants at random from all of the files below some folders."""
    paths = sorted(path for root in roots for path in root.rglob("*.py"))
    all_ = [m for path in paths for f in list_functions(path) for m in list_mutants(f)]
    random.Random(seed).shuffle(all_)  # noqa: S311 - a sample, no secret
    found: list[dict[str, Any]] = []
    while all_ and len(found) < count:
        mutant = all_.pop()
        try:
            mutant.compile()
        except SyntaxError:
            continue
        found.append({"key": mutant.key, "file": str(mutant.function.path)})
    return found


class Runner:
    """A plugin that runs mutants in place of the tests."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys
        self.results: list[dict[str, Any]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find the tests of every line, then try every mutant."""
        with tempfile.TemporaryDirectory() as folder:
            seconds, tests = _map_tests(session, Path(folder))
        by_name = defaultdict(list)
        for path in sorted(SOURCE.rglob("*.py")):
            for function in list_functions(path):
                by_name[_plain(function.name)].append(function)
        list_cached = cache(lambda name: [m for f in by_name[name] for m in list_mutants(f)])
        for key in self.keys:
            same = [m for m in list_cached(_plain(key[0])) if m.key[1:] == key[1:]]
            names = _find_tests(same[0], tests, seconds) if same else []
            begun = time.monotonic()
            result = _try(session, same[0], names, seconds) if same else "lost"
            took = round(time.monotonic() - begun, 2)
            self.results.append({"key": key, "result": result, "tests": len(names), "took": took})
            print(len(self.results), result, len(names), took, key, file=sys.stderr, flush=True)
        return True


def _plain(name: str) -> str:
    return ".".join(part.lstrip("_") for part in name.split("."))


def _find_tests(
    mutant: Mutant, tests: Mapping[str, Mapping[int, list[str]]], seconds: Mapping[str, float]
) -> list[str]:
    """Tests of the changed lines, or of the nearest before them that one is known of."""
    of_lines = tests.get(str(code_path(mutant)), {})
    found = {name for line in mutant.lines for name in of_lines.get(line, [])}
    for line in range(mutant.lines.start, mutant.function.line, -1):
        found = found or set(of_lines.get(line, []))
    return sorted(found & seconds.keys(), key=lambda name: seconds[name])


def _map_tests(
    session: pytest.Session, folder: Path
) -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
    """How long each test takes that passes, and which tests run a line of a file."""
    data, times = folder / "coverage", folder / "times"

    def run() -> int:
        measured = coverage.Coverage(data_file=str(data), source=[str(SOURCE)], config_file=False)
        measured.start()
        ran = _run(session, session.items, measured.switch_context)
        seconds = {name: took for name, passed, took in ran if passed}
        measured.stop()
        measured.save()
        times.write_text(json.dumps(seconds))
        return 0

    if _fork(run, patience=36_000) != 0:
        raise SystemExit("the tests could not be run")
    found = coverage.CoverageData(str(data))
    found.read()
    tests = {file: found.contexts_by_lineno(file) for file in found.measured_files()}
    return json.loads(times.read_text()), tests


def _try(
    session: pytest.Session, mutant: Mutant, names: list[str], seconds: Mapping[str, float]
) -> str:
    order = {name: number for number, name in enumerate(names)}
    items = sorted((i for i in session.items if i.nodeid in order), key=lambda i: order[i.nodeid])

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        mutant.apply()
        return int(not all(passed for _, passed, _ in _run(session, items)))

    patience = PATIENCE + 4 * sum(seconds[name] for name in names)
    return "caught" if items and _fork(run, patience=patience) != 0 else "survived"


def _run(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    before: Callable[[str], object] = lambda _: None,
) -> Iterator[tuple[str, bool, float]]:
    for item, following in zip(items, [*items[1:], None], strict=True):
        before(item.nodeid)
        failed, begun = session.testsfailed, time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item.nodeid, session.testsfailed == failed, time.monotonic() - begun


def _fork(work: Callable[[], int], *, patience: float) -> int:
    """Run something in a child, quietly; its exit code, or the signal that ended it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            code = work()
        finally:
            os._exit(code)
    end = time.monotonic() + patience
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(0.01)
    return ended[1]


def main() -> None:
    """Read the command line; one JSON document on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    sampling = commands.add_parser("sample")
    sampling.add_argument("roots", nargs="+", type=Path)
    sampling.add_argument("--count", type=int, default=300)
    sampling.add_argument("--seed", type=int, default=1)
    running = commands.add_parser("run")
    running.add_argument("mutants", type=Path)
    running.add_argument("tests", nargs="+")
    given = parser.parse_args()
    if given.command == "sample":
        found = sample(given.roots, count=given.count, seed=given.seed)
        print(json.dumps(found, indent=1))
        return
    drawn = json.loads(given.mutants.read_text())
    keys = [
        (name, tuple(old), tuple(new), nth) for name, old, new, nth in (m["key"] for m in drawn)
    ]
    runner = Runner(keys)
    output = os.dup(1)
    os.dup2(2, 1)
    pytest.main(["-q", "-p", "no:cacheprovider", *given.tests], plugins=[runner])
    counts = Counter(result["result"] for result in runner.results)
    document = {"counts": counts, "results": runner.results}
    os.write(output, (json.dumps(document, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
