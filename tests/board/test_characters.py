"""The tables of Unicode that names are compared by: as generated, and beside those of 15.1."""

import re
import runpy
import unicodedata
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from confusable_homoglyphs import categories
from confusable_homoglyphs import confusables as older

from heldout.board.policy.names import prototypes, script, skeleton

ROOT = Path(__file__).parents[2]
tool = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "confusables.py")))
MARK = "\u200e"  # stands around right-to-left characters in the older package

CONFUSABLES = """\
# confusables.txt
# Date: 2026-08-06, 01:05:35 GMT
# © 2026 Unicode®, Inc.
# Version: 18.0.0

0430 ;\t0061 ;\tMA\t# CYRILLIC SMALL LETTER A
0251 ;\t0061 ;\tMA\t# LATIN SMALL LETTER ALPHA
FB04 ;\t0066 0066 006C ;\tMA\t# ( ﬄ → ffl )
"""
SCRIPTS = """\
# Scripts-18.0.0.txt
# Date: 2026-06-29, 15:25:26 GMT
# © 2026 Unicode®, Inc.

0041..005A    ; Latin # L&  [26] LATIN CAPITAL LETTER A..LATIN CAPITAL LETTER Z
005B          ; Latin # one more beside them
0030..0039    ; Common # Nd  [10] DIGIT ZERO..DIGIT NINE
03B1          ; Greek # L& GREEK SMALL LETTER ALPHA
"""


def files(**other: str) -> dict[str, bytes]:
    texts = {"confusables.txt": CONFUSABLES, "Scripts.txt": SCRIPTS} | other
    return {name: text.encode() for name, text in texts.items()}


def test_the_tool_reduces_both_files() -> None:
    table = tool.format_table(files())
    assert "Unicode 18.0.0, reduced" in table
    assert "# confusables.txt of 2026-08-06, SHA-256 " in table
    rows = [line for line in table.splitlines() if line and not line.startswith("#")]
    assert rows == ["61; 251 430", "66+66+6C; FB04", "Greek; 3B1", "Latin; 41-5B"]


def test_the_tool_refuses_files_of_two_versions() -> None:
    with pytest.raises(ValueError, match=r"one version wanted, not of 17\.0\.0 and 18\.0\.0"):
        tool.format_table(files(**{"Scripts.txt": SCRIPTS.replace("18.0.0", "17.0.0")}))
    with pytest.raises(ValueError, match=r"confusables\.txt: no line like"):
        tool.format_table(files(**{"confusables.txt": "nothing"}))


def test_the_table_says_where_it_comes_from() -> None:
    head = tool.TABLE.read_text("utf-8").split("\n\n")[0]
    assert re.search(r"Unicode \d+\.0\.0, reduced", head)
    assert len(re.findall(r"SHA-256 [0-9a-f]{64}$", head, re.MULTILINE)) == 2
    notice = re.search(r"LICENSES/\S+", head)
    assert notice
    assert "Unicode, Inc." in (ROOT / notice[0]).read_text("utf-8")


def test_every_prototype_stands_for_itself() -> None:
    found = prototypes()
    assert len(found) > 6000
    assert [code for code, text in found.items() if text.translate(found) != text] == []


def test_no_range_of_a_script_meets_another() -> None:
    _, ranges = tool.TABLE.read_text("utf-8").split("\n\n")[1:]
    found = []
    for line in ranges.splitlines()[1:]:
        for codes in line.partition(";")[2].split():
            first, _, last = codes.partition("-")
            found.append((int(first, 16), int(last or first, 16)))
    assert all(one[1] < two[0] for one, two in pairwise(sorted(found)))


# The package knows Unicode 15.1 and reads its own copy of the files.


def older_pairs() -> list[tuple[str, str]]:
    """Every character of 15.1 that looks like an ASCII letter or digit, with that.

    Without those that names lose before (NFKC), such as the long s, which becomes an s.
    """
    pairs = [
        (source.replace(MARK, ""), other["c"].replace(MARK, ""))
        for source, others in older.confusables_data.items()
        for other in others
    ]
    return [
        (source, other)
        for source, other in pairs
        if len(source) == 1 and not source.isascii() and other.isascii() and other.isalnum()
        if unicodedata.normalize("NFKC", source) == source
    ]


def test_what_looked_like_ascii_in_an_older_unicode_still_does() -> None:
    pairs = older_pairs()
    assert len(pairs) > 400
    lost = {source for source, other in pairs if skeleton(source) != skeleton(other)}
    # Unicode 18 took both back: a letter of Elbasan for C, one of Warang Citi for z.
    assert lost == {"\U0001051c", "\U000118c4"}


def test_scripts_are_those_of_an_older_unicode() -> None:
    shared = {"COMMON", "INHERITED", "Unknown"}
    assigned = [
        character
        for character in map(chr, range(0x20000))
        if unicodedata.category(character) not in {"Cn", "Cs"}
    ]
    found = {
        character: (was, script(character))
        for character in assigned
        if (was := categories.alias(character)) not in shared
    }
    assert len(found) > 50_000
    changed = {
        character: name for character, (was, name) in found.items() if (name or "").upper() != was
    }
    assert changed == {}
