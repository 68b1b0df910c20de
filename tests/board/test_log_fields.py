"""log.md: the fields that it lists are those of test logs, and its program verifies one."""

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from boardlog import RULES, BoardLog, make_manifest

from heldout.board.log.event_fields import EVENTS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "log.md").read_text("utf-8")


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
    log.mend_labels()
    log.baseline("bm25", "0.3")
    log.submit("20261101-a", make_manifest(embargo_until=date(2027, 1, 1)), "0.4")
    log.show_score("20261101-a")
    log.update("20261101-a", make_manifest(revision=2))
    log.correct("20261101-a", "0.3")
    log.amend("20261101-a", make_manifest(revision=3))
    log.propose("20261101-a", make_manifest(revision=4))
    log.decline("20261101-a")
    log.extend("20261101-a", date(2027, 2, 1))
    for name in ("20261101-b", "20261101-c"):
        log.receive(name)
        log.ask(name)
    log.reject("20261101-b")
    log.update("20261101-c", make_manifest(revision=2), withdrawn=True)
    log.import_table()
    log.import_entry("20200811a", date(2020, 8, 11), "0.4")
    log.rekey()
    log.measure("20261101-a")
    log.name_finalists("20261101-a")
    log.open_final({"20261101-a": "0.4"})
    log.close()
    beside = {"standard_errors": {"check": "0.01"}}
    seeds = {"seeds": {"runs": 3, "spreads": {"dev": "0.01"}}, **beside}
    held = {"untold": ["eval"], **seeds}
    bars = {"bars": {"eval": "20261101-b"}}
    kept = {"kept": {"scores": "0" * 64}}
    later = {"final": {"scores": {"reserve": "0.2"}, "queries": {"reserve": 9}}, **kept}
    against = {"compared": {"eval": "0" * 64}}
    log.publish("20261101-a", make_manifest(), "0.4", public=held, sealed=later | against)
    log.add("published", "20261101-a", {"type": "fullrank"}, bars)
    log.correct("20261101-a", "0.3", public=held, sealed=later | bars)
    log.add("baseline", "bm25-seeds", {"scores": {}, "type": "baseline", **seeds}, kept)
    log.add("reviewed", "20261101-a", {}, kept | {"evidence": {"eval": "0" * 64}})
    ran = {"program": {"image": "demo@sha256:0"}, "runs": {}, "costs": {}, "engine": ""}
    log.add("ran", "20261101-a", {}, ran)
    log.add("changed-agreement", None, {"path": "a.md", "sha256": "0" * 64, "text": ""})
    for kind in ("opened-board", "rekeyed"):
        log.add(kind, None, {"files": {}, "signers": {}})
    log.add("changed-rules", None, {"files": {}})
    registered = {"team": "", "statement": "", "signature": "", "source": ""}
    log.add("registered", None, registered, {"registrant": {}})
    log.add("revoked-registration", None, {"team": "", "why": ""})
    end = {"season": "", "view": "", "named": [], "luck": "", "why": ""}
    log.add("ended-season", None, {**end, "final_scores": {}, "queries": {}, "spreads": {}})
    written: dict[str, tuple[set[str], set[str]]] = {}
    for entry in log.entries:
        public, sealed = written.setdefault(entry.event.kind, (set(), set()))
        public |= set(entry.event.public)
        sealed |= set(entry.event.sealed)
    assert written == find_documented()


def test_the_page_has_every_kind_that_is_about_an_entry_and_what_may_follow_the_end() -> None:
    section = PAGE.split("## Which event may follow which?")[1].split("## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    named = [kind for row in rows for kind in re.findall(r"`([\w-]+)`", row[1])]
    assert sorted(named) == sorted(kind for kind, one in EVENTS.items() if one.after)
    after = section.split("After `closed-board`")[1].split("may come")[0]
    assert set(re.findall(r"`([\w-]+)`", after)) == {
        kind for kind, one in EVENTS.items() if one.late
    }


def test_a_stranger_s_program_verifies_a_log(tmp_path: Path) -> None:
    """The program in log.md, run as it stands there, on a log and on damaged copies of it."""
    program = tmp_path / "verify.py"
    program.write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], "utf-8")
    assert len(program.read_text("utf-8").splitlines()) <= 25
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest("Université „Ü“ ☃"), "0.403")
    file = tmp_path / "log.jsonl"

    def verify(data: bytes) -> subprocess.CompletedProcess[str]:
        file.write_bytes(data)
        command = [sys.executable, "-W", "ignore", str(program), str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole = verify(log.data)
    assert whole.stdout == f"verified, last event {log.entries[-1].hash}\n", whole.stderr
    lines = log.data.splitlines(keepends=True)
    for damaged in (
        log.data.replace(b'"0.403"', b'"0.503"', 1),
        log.data.replace("☃".encode(), b"x"),
        b"".join(lines[1:]),
        b"".join([lines[0], lines[2], lines[1], *lines[3:]]),
    ):
        assert damaged != log.data
        assert verify(damaged).returncode != 0
