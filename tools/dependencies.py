"""Writes docs/reference/dependencies.md: each runtime dependency with its newest release's date.

    python tools/dependencies.py    read the dates of today and write the page; needs `uv`

`uv lock` names the newest version of each package that fits, with the time of its upload. A test
reads the page: a dependency that had no release for 18 months must have a reason in `REASONS`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/dependencies.md"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROW = re.compile(r"\| (\S+) \| (\S+) \| (\S+) \| (\d{4}-\d\d-\d\d) \| (.*) \|")
_FOR_HELDOUT_ITSELF = {"docs", "test", "test-core"}

REASONS: Mapping[str, str] = {
    "itsdangerous": "Small, and nothing is missing; Pallets maintains it.",
    "Jinja2": "Pallets maintains it; 3.1.6 is a security release.",
}
"""Why a dependency stays although its newest release is older than 18 months."""

_HEAD = """\
# Dependencies

What heldout installs, base and extras: the newest version that fits, and the day of its release.
`tools/dependencies.py` read it on {read}. A test fails once a release is older than 18 months,
unless the last column says why the package stays.

| package | extra | version | released | why it stays |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A package that heldout installs.

    Attributes:
        name: as in pyproject.toml.
        extra: which brings it; `base` comes always.
        version: the newest that fits.
        released: the day on which its first file was uploaded.
        reason: why it stays although that is long ago, else empty.
    """

    name: str
    extra: str
    version: str
    released: date
    reason: str


def read_named(pyproject: Path = ROOT / "pyproject.toml") -> list[tuple[str, str]]:
    """Name and extra of every runtime dependency, in the order of pyproject.toml."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    groups = {"base": project["dependencies"], **project["optional-dependencies"]}
    return [
        (match[0], extra)
        for extra, requirements in groups.items()
        if extra not in _FOR_HELDOUT_ITSELF
        for requirement in requirements
        if (match := _NAME.match(requirement))
    ]


def read_page(text: str) -> list[Dependency]:
    """The rows of the page."""
    return [
        Dependency(
            name=name,
            extra=extra,
            version=version,
            released=date.fromisoformat(released),
            reason=reason,
        )
        for name, extra, version, released, reason in _ROW.findall(text)
    ]


def read_lock(text: str, named: Iterable[tuple[str, str]]) -> list[Dependency]:
    """The dependencies as a lock of uv has them; of several versions of one the newest."""
    newest: dict[str, tuple[date, str]] = {}
    for package in tomllib.loads(text)["package"]:
        files = [*package.get("wheels", ()), package.get("sdist", {})]
        times = [file["upload-time"] for file in files if "upload-time" in file]
        if times:
            day = datetime.fromisoformat(min(times)).date()
            found = newest.get(package["name"], (day, package["version"]))
            newest[package["name"]] = max(found, (day, package["version"]))
    return [
        Dependency(
            name=name,
            extra=extra,
            version=newest[_normalised(name)][1],
            released=newest[_normalised(name)][0],
            reason=REASONS.get(name, ""),
        )
        for name, extra in named
    ]


def format_page(dependencies: Iterable[Dependency], read: date) -> str:
    """The whole page."""
    rows = (
        f"| {one.name} | {one.extra} | {one.version} | {one.released} | {one.reason} |\n"
        for one in dependencies
    )
    return _HEAD.format(read=read) + "".join(rows)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _lock() -> str:
    uv = shutil.which("uv") or sys.exit("uv is not installed: pip install uv")
    with tempfile.TemporaryDirectory() as place:
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, place)
        subprocess.run([uv, "lock", "--quiet", "--upgrade"], cwd=place, check=True)
        return Path(place, "uv.lock").read_text("utf-8")


if __name__ == "__main__":
    PAGE.write_text(
        format_page(read_lock(_lock(), read_named()), datetime.now(UTC).date()), encoding="utf-8"
    )
    print(f"wrote {PAGE.relative_to(ROOT)}")
