"""What the tests of archives, receipts and changes of keys share."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab import NEXT, OTHER_TEAM, TEAM, Lab

REVEAL = "2027-02-01"
REVEALED = f"{REVEAL}T00:00:00Z"
ONE = "20261102-one"
BASELINE = "20261101-bm25"

Files = dict[str, bytes]
THIRD_TEAM = {**OTHER_TEAM, "team": "Harbour Group", "institution": "Harbour College"}
REFUSED_TEAM = {**OTHER_TEAM, "team": "Driftwood", "institution": "Driftwood Laboratory"}


def add_baseline(lab: Lab, *, seed: int = 9) -> None:
    lab.draft("runs", seed=seed)
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    args = ("board", "baseline", BASELINE, *runs, "--description", "BM25")
    assert lab.organiser(*args).code == 0


def settle(lab: Lab) -> Mapping[str, str]:
    """A board at its end: published, under an embargo, refused, withdrawn, a baseline."""
    add_baseline(lab)
    ids = {
        "one": lab.send("one", team={**TEAM, "open_runs": True}),
        "hidden": lab.send("hidden", seed=2, team=OTHER_TEAM, embargo=REVEAL),
        "refused": lab.send("refused", seed=3, team=REFUSED_TEAM),
        "withdrawn": lab.send("withdrawn", seed=4, team=THIRD_TEAM),
    }
    lab.take_in()
    assert lab.participant("withdraw", ids["withdrawn"]).code == 0
    lab.take_in()
    args = ("--why", "known people, another system", "--yes")
    lab.organiser("publish", ids["one"], ids["hidden"], *args, now=NEXT).done()
    lab.organiser("reject", ids["refused"], "--why", "not a team", now=NEXT).done()
    lab.push()
    return ids


def read_files(archive: Path) -> Files:
    with zipfile.ZipFile(archive) as source:
        return {member.filename: source.read(member) for member in source.infolist()}


def forge(archive: Path, change: Callable[[Files], object], target: Path) -> Path:
    """A changed archive whose manifest was made to fit: only what it means can give it away."""
    files = read_files(archive)
    manifest = json.loads(files.pop("MANIFEST.json"))
    before = dict(files)
    change(files)
    assert files != before
    manifest["files"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
    }
    rows = files["log.jsonl"].splitlines()
    if rows and rows[-1].startswith(b"{"):
        manifest["head"] = json.loads(rows[-1])["hash"]
        manifest["events"] = len(rows)
    with zipfile.ZipFile(target, "w") as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
        zipped.writestr("MANIFEST.json", json.dumps(manifest))
    return target


def change_scores(files: Files, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what an archive has of the scores of an entry."""
    file = f"scores/{name}.json"
    scores = json.loads(files[file])
    change(scores)
    files[file] = json.dumps(scores).encode()
