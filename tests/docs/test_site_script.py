"""The script of the documentation site copies what a reader types, and nothing else."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import chromium

browser = chromium.browser
SCRIPT = Path(__file__).parents[2] / "docs" / "static" / "site.js"
PAGE = """<!doctype html><title>x</title><aside class="sidebar-drawer"></aside>
<div class="highlight"><pre>$ heldout compare a b \\
    --qrels q
B is better
$ heldout doctor
</pre></div>
<div class="highlight"><pre>&gt;&gt;&gt; import heldout as ho
&gt;&gt;&gt; ho.compare("a",
...            "b").answer
'B is better'
</pre></div>
<div class="highlight"><pre style="overflow: auto; width: 9em">q1 Q0 d7 1 12.5 a-long-name
</pre></div>
<script src="site.js"></script>"""
COPIED = [
    "heldout compare a b \\\n    --qrels q\nheldout doctor",
    'import heldout as ho\nho.compare("a",\n           "b").answer',
    "q1 Q0 d7 1 12.5 a-long-name",
]


@pytest.mark.browser
def test_what_is_typed_is_copied_and_what_scrolls_has_the_focus(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "site.js").write_text(SCRIPT.read_text("utf-8"), "utf-8")
    (tmp_path / "page.html").write_text(PAGE, "utf-8")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())

    copied = []
    for button in page.locator("button.copy").all():
        button.click()
        copied.append(page.evaluate("navigator.clipboard.readText()"))
    assert copied == COPIED
    focus = page.locator("pre").evaluate_all("all => all.map((one) => one.tabIndex)")
    assert focus == [-1, -1, 0]
    assert page.get_by_role("complementary", name="Site").count() == 1
