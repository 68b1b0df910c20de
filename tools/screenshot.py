"""Take the picture of a board's page, as in docs/images/.

    python tools/screenshot.py BOARD_DIR OUT.png [--dark] [--width 390] [--height 900] [--full]

BOARD_DIR holds `leaderboard/index.html`. Needs Playwright and Chromium on the PATH.
"""

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu")


def main() -> int:
    """Read the arguments, take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("board", type=Path, help="folder that holds leaderboard/")
    parser.add_argument("out", type=Path, help="PNG file to write")
    parser.add_argument("--page", default="leaderboard/index.html", help="another page of it")
    parser.add_argument("--dark", action="store_true", help="the dark theme")
    parser.add_argument("--width", type=int, default=1180, help="width of the window")
    parser.add_argument("--height", type=int, default=1000, help="height of the picture")
    parser.add_argument("--full", action="store_true", help="the whole page, however long")
    parser.add_argument("--font", default="", help="an installed font instead of the system's")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    page = arguments.board / arguments.page
    if chromium is None or not page.is_file():
        missing = "chromium is not on the PATH" if chromium is None else f"{page} does not exist"
        sys.stderr.write(f"{missing}; nothing was written\n")
        return 2
    take_picture(page, arguments, chromium)
    return 0


def take_picture(page: Path, arguments: argparse.Namespace, chromium: str) -> None:
    """Open the page in Chromium and write the PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(_FLAGS))
        context = browser.new_context(
            viewport={"width": arguments.width, "height": arguments.height},
            color_scheme="dark" if arguments.dark else "light",
            device_scale_factor=2,
            bypass_csp=bool(arguments.font),
        )
        tab = context.new_page()
        tab.goto(page.resolve().as_uri())
        if arguments.font:
            tab.add_style_tag(content=f':root {{ --sans: "{arguments.font}" }}')
        tab.screenshot(path=arguments.out, full_page=arguments.full)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
