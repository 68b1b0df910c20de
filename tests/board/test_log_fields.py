"""The builder of test logs writes the fields that docs/log.md lists, and no others."""

import re
from datetime import date
from pathlib import Path

from boardlog import RULES, BoardLog, make_manifest

PAGE = (Path(__file__).parents[2] / "docs" / "log.md").read_text("utf-8")


def find_documented() -> dict[str, tuple[set[str], set[str]]]:
    rows = {}
    for line in PAGE.split("## The kinds of events")[1].splitlines():
        if match := re.match(r"\| `([\w-]+)` \|(.*)\|", line):
            cells = match[2].split(" |")
            if len(cells) == 4:
                rows[match[1]] = (names_in(cells[1]), names_in(cells[2]))
    return rows


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", cell))


def test_the_builder_writes_what_is_documented() -> None:
    log = BoardLog().open()
    log.change_rules(RULES + "\n")
    log.baseline("bm25", "0.3")
    log.submit("20261101-a", make_manifest(embargo_until=date(2027, 1, 1)), "0.4")
    log.show_score("20261101-a")
    log.update("20261101-a", make_manifest(revision=2))
    log.correct("20261101-a", "0.3")
    log.extend("20261101-a", date(2027, 2, 1))
    for name in ("20261101-b", "20261101-c"):
        log.receive(name)
        log.ask(name)
    log.reject("20261101-b")
    log.update("20261101-c", make_manifest(revision=2), withdrawn=True)
    written = {e.event.kind: (set(e.event.public), set(e.event.sealed)) for e in log.entries}
    assert written == find_documented()
