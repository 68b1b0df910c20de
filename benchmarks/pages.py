"""How heavy a board's pages are, and where the first row of the table stands on three screens.

    python benchmarks/pages.py OUT --csv msmarco-doc-leaderboard.csv
    python benchmarks/pages.py OUT --no-axe

The boards, in new folders below OUT: synthetic ones of 10 and 2,000 entries, from the code that
the tests of the page use, and the imported record of MS MARCO where its CSV file is given. A weight
is in kB of 1,000 bytes, raw and as gzip sends it; "before charts" is without the SVG. Needs
Chromium on the PATH and Playwright; axe too, unless --no-axe.
"""

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

__all__ = ["main"]

_TESTS = Path(__file__).parents[1] / "tests" / "board"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")
_SCREENS = ((390, 844), (768, 1024), (1440, 900))
_SIZES = (10, 2_000)
_CHART = re.compile(rb"<svg.*?</svg>", re.DOTALL)
_PLACES = """() => {
  const top = css => Math.round(document.querySelector(css).getBoundingClientRect().top);
  const rows = [...document.querySelectorAll("#board tbody tr")];
  const shown = rows.filter(row => row.getBoundingClientRect().bottom <= innerHeight);
  const heights = rows.map(row => row.getBoundingClientRect().height).sort((a, b) => a - b);
  return [top("#board"), top("#board tbody tr"), shown.length,
    Math.round(heights[Math.floor(heights.length / 2)])];
}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the boards, measure their pages, print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path, help="new folder for the boards")
    parser.add_argument("--csv", type=Path, help="leaderboard file of MS MARCO")
    parser.add_argument("--tests", type=Path, default=_TESTS, help="folder with sample_boards.py")
    parser.add_argument("--no-axe", action="store_true", help="measure weight and place alone")
    options = parser.parse_args(arguments)
    boards = {f"{size:,} entries": options.out / str(size) for size in _SIZES}
    for size, folder in zip(_SIZES, boards.values(), strict=True):
        make_board(folder, size, options.tests)
    if options.csv is not None:
        import_record(options.csv, options.out / "msmarco")
        boards["MS MARCO record"] = options.out / "msmarco" / "board"
    print_weights(boards)
    print_places(boards, axe=not options.no_axe)
    return 0


def make_board(folder: Path, size: int, tests: Path) -> None:
    """Render a synthetic board and say how much processor that took."""
    sys.path.insert(0, str(tests))
    from sample_boards import busy, facts, spec  # noqa: PLC0415 - lies with the tests

    from heldout.board.site.pages import render_board  # noqa: PLC0415 - may be another version

    begun = time.process_time()
    files = render_board(busy(size), spec(), facts())
    took = time.process_time() - begun
    sys.stdout.write(
        f"{size:,} entries: {len(files):,} files rendered in {took:.1f} s of processor\n"
    )
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def import_record(table: Path, folder: Path) -> None:
    """Import the old board; its page is part of that."""
    words = ("-m", "heldout", "board", "import-msmarco", table, folder / "board")
    subprocess.run(
        [sys.executable, *map(str, words), "--vault", str(folder / "vault")],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def print_weights(boards: Mapping[str, Path]) -> None:
    """A line for each board: its first page, and the heaviest of all pages."""
    _print("board", "page", "kB", "gzipped", "before charts")
    for name, folder in boards.items():
        pages = {path: path.read_bytes() for path in (folder / "leaderboard").rglob("*.html")}
        first = folder / "leaderboard" / "index.html"
        heaviest = max(pages, key=lambda path: len(_CHART.sub(b"", pages[path])))
        for path in dict.fromkeys((first, heaviest)):
            data = pages[path]
            sizes = (data, gzip.compress(data, mtime=0), _CHART.sub(b"", data))
            _print(name, path.name, *(f"{len(one) / 1_000:,.0f}" for one in sizes))
    sys.stdout.write("\n")


def print_places(boards: Mapping[str, Path], *, axe: bool) -> None:
    """A line for each board and screen: where the table begins, and what axe finds."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stdout.write("no chromium on the PATH: places and axe are not measured\n")
        return
    _print("board", "screen", "table at", "first row", "rows shown", "row height", "axe")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(_FLAGS))
        for name, folder in boards.items():
            for words in _list_places(browser, folder / "leaderboard/index.html", axe=axe):
                _print(name, *words)
        browser.close()


def _list_places(browser: Browser, path: Path, *, axe: bool) -> Iterator[Sequence[object]]:
    for width, height in _SCREENS:
        found = [_run_axe(_open(browser, path, width, height, "dark"))] if axe else []
        page = _open(browser, path, width, height, "light")
        places = page.evaluate(_PLACES)
        found += [_run_axe(page)] if axe else []
        said = f"{sum(found)} in light and dark" if axe else "not run"
        yield (f"{width} x {height}", *places, said)
        page.context.close()


def _open(browser: Browser, path: Path, width: int, height: int, theme: Any) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, bypass_csp=False
    )
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    return page


def _run_axe(page: Page) -> int:
    """Violations of WCAG 2.2 A and AA and of best practice."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - only where asked for

    found = Axe().run(page, options={"rules": {"target-size": {"enabled": True}}, "preload": False})
    return int(found.violations_count)


def _print(*cells: object) -> None:
    widths = (17, 14, 10, 10, 13, 10, 20)
    line = "  ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=False))
    sys.stdout.write(line.rstrip() + "\n")


if __name__ == "__main__":
    sys.exit(main())
