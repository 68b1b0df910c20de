"""What depends on the day: quota, embargo, rules; and what must not come back: old files."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

from lab import DAY, NEXT, OTHER_TEAM, TEAM, Lab, environment, findings, fresh_lab, git

lab = fresh_lab


def publish_at(lab: Lab, name: str, moment: str, seed: int) -> int:
    submission = lab.receive(name, now=moment, seed=seed)
    return lab.publish(submission, now=moment).code


def test_quota_slides_to_the_second(lab: Lab) -> None:
    """Two in 30 days: the third may come when the first is exactly 30 days old, not earlier."""
    assert publish_at(lab, "first", "2026-11-02T10:00:07Z", 1) == 0
    assert publish_at(lab, "second", "2026-11-05T09:00:00Z", 2) == 0
    early = lab.draft("third", now="2026-12-02T10:00:06Z", seed=3)
    lab.send_unchecked(early, now="2026-12-02T10:00:06Z")
    lab.take_in(now="2026-12-02T10:00:06Z")
    found = findings(lab, early, now="2026-12-02T10:00:06Z")
    assert set(found) == {"quota"}
    assert "02 Dec 2026 10:00:07 UTC" in found["quota"]
    lab.publish(early, now="2026-12-02T10:00:06Z").declined("quota", "nothing was published")
    lab.organiser("reject", early, "--why", found["quota"], now="2026-12-02T10:00:06Z")
    assert publish_at(lab, "fourth", "2026-12-02T10:00:07Z", 4) == 0
    assert lab.kinds().count("published") == 3


SECRET = {
    **TEAM,
    "team": "Zanzibar Searchers",
    "institution": "Quagga University",
    "model_description": "a most xylophonic ranker",
    "paper": "https://example.org/zyzzyva",
    "code": "https://example.org/quokka",
    "training_data": "kumquat logs",
    "efficiency": {"parameters": 987_654_321, "hardware": "a narwhal cluster"},
}
WORDS = ("zanzibar", "quagga", "xylophonic", "zyzzyva", "quokka", "kumquat", "narwhal")


def public_bytes(lab: Lab) -> Iterator[tuple[str, bytes]]:
    """Every file of the board, and every git object of board and forge."""
    for path in lab.board.rglob("*"):
        if path.is_file() and ".git" not in path.relative_to(lab.board).parts:
            yield str(path), path.read_bytes()
    for repository in (lab.board, lab.forge):
        command = ["git", "cat-file", "--batch", "--batch-all-objects", "--buffer"]
        env = environment(lab.root)
        done = subprocess.run(command, cwd=repository, env=env, capture_output=True, check=True)
        yield str(repository), done.stdout


def leaks(lab: Lab) -> set[str]:
    return {
        word for _, data in public_bytes(lab) for word in WORDS if word.encode() in data.lower()
    }


def test_embargo_from_the_first_day_to_the_reveal(lab: Lab) -> None:
    submission = lab.send("zanzibar-secret", team=SECRET, embargo="2026-12-10")
    assert re.fullmatch(r"20261102-anon-[0-9a-f]{8}", submission)
    commit = git(lab.forge, "log", "-1", "--format=%an %ae", f"submission/{submission}")
    assert commit == "Anonymous anonymous@localhost"
    lab.take_in()
    lab.organiser("review", submission, "--score")
    lab.organiser("ask", submission, "Is this a new model?")
    lab.fill(submission, code="https://example.org/quokka-two")
    lab.participant("amend", submission)
    lab.take_in()
    assert lab.publish(submission, "--why", "by zanzibar, fine", now=NEXT).code == 0
    lab.push()
    assert leaks(lab) == set()
    (row,) = lab.rows()
    assert (row["team"], row["embargoed"], row["rank"]) == (None, True, 1)
    assert row["scores"]["eval"] > 0
    eve = "2026-12-09T23:59:59Z"
    soon = lab.organiser("inbox", "--json", now=eve).json
    assert soon["reveals"] == [{"id": submission, "date": "2026-12-10"}]
    lab.organiser("rebuild", now=eve)
    assert leaks(lab) == set()
    lab.push()

    day = "2026-12-10T00:00:00Z"
    visitor = lab.new_clone("visitor")
    lab.participant("rebuild", now=day, clone=visitor)
    page = (visitor / "leaderboard" / "index.html").read_text().casefold()
    assert "reveal due" in page
    assert not any(word in page for word in WORDS)

    assert lab.organiser("rebuild", now=day).code == 0
    (row,) = lab.rows()
    assert (row["team"], row["description"]) == (SECRET["team"], SECRET["model_description"])
    assert row["code"] == "https://example.org/quokka-two"
    assert row["parameters"] == SECRET["efficiency"]["parameters"]
    feed = (lab.board / "leaderboard" / "feed.xml").read_text()
    assert "<title>Revealed: a most xylophonic ranker" in feed
    assert (row["embargoed"], row["date"]) == (False, "2026-11-02")
    assert "xylophonic" in (lab.board / "leaderboard" / "index.html").read_text()
    assert lab.audit() == {"ok": True, "events": 8, "faults": [], "notes": []}


def test_an_embargo_is_extended_and_never_made_shorter_or_endless(lab: Lab) -> None:
    late = lab.draft("late", team=SECRET, embargo="2027-08-02")
    lab.fill(late, embargo_until="2027-08-03")
    lab.send_unchecked(late)
    lab.take_in()
    assert set(findings(lab, late, now=DAY)) == {"embargo"}
    lab.fill(late, embargo_until="2027-08-02")
    lab.participant("amend", late)
    lab.take_in()
    assert findings(lab, late, now=DAY) == {}
    lab.publish(late)
    day = "2027-08-01T00:00:00Z"
    for _ in range(2):
        lab.organiser("extend", late, "2027-09-02", "--why", "slow reviewers", now=day).done()
    assert lab.kinds().count("extended") == 1
    for slip in ("2027-08-20", "2026-09-02", "2027-09-01", "2028-05-02", "2099-09-02"):
        lab.organiser("extend", late, slip, "--why", "a slip", now=day).refused(
            "embargo-day", "a day after 2027-09-02, up to 2028-05-01, 9 months from today"
        )
    assert lab.kinds().count("extended") == 1
    lab.organiser("rebuild", now="2027-09-01T23:59:59Z")
    assert leaks(lab) == set()
    lab.organiser("rebuild", now="2027-09-02T00:00:00Z")
    assert lab.rows()[0]["team"] == SECRET["team"]
    lab.organiser("extend", late, "2027-12-02", "--why", "x", now="2027-09-03T00:00:00Z").refused(
        "an embargo that ended on 2027-09-02"
    )


def test_rules_hold_from_their_day_on(lab: Lab) -> None:
    """A submission is judged by the rules of its day, though they changed since."""
    old = lab.draft("old", team={**TEAM, "model_description": ""})
    lab.send_unchecked(old)
    assert "refused" not in {r["kind"] for r in lab.take_in()["received"]}
    rules = lab.edit(("off = []", 'off = ["description"]'))
    new = lab.draft("new", now=NEXT, seed=2, team={**OTHER_TEAM, "model_description": ""})
    assert lab.organiser("rebuild", now=NEXT).code == 0
    lab.share()
    assert lab.participant("submit", new, now=NEXT).code == 0
    lab.take_in(now=NEXT)
    assert lab.kinds() == ["opened-board", "received", "changed-rules", "received"]
    assert set(findings(lab, old, now=NEXT)) == {"description"}
    assert findings(lab, new, now=NEXT) == {}
    public = [json.loads(line) for line in (lab.board / "log.jsonl").read_text().splitlines()]
    assert public[2]["event"]["public"]["board.toml"] == rules


def amended_twice(lab: Lab) -> tuple[str, list[bytes]]:
    """A submission with three revisions of its metadata, all seen by anybody."""
    submission = lab.send("one")
    file = lab.clone / ".git/heldout" / "sealed" / f"{submission}-metadata.json.age"
    seen = [file.read_bytes()]
    lab.take_in()
    for text in ("second", "third"):
        lab.fill(submission, model_description=text)
        lab.participant("amend", submission)
        lab.take_in()
        seen.append(file.read_bytes())
    return submission, seen


def offer(lab: Lab, submission: str, files: dict[str, bytes]) -> list[str]:
    """Put files into a folder of a stranger; codes of what the inbox says of them."""
    folder = lab.root / "stranger"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for ending, data in files.items():
        (folder / f"{submission}{ending}").write_bytes(data)
    taken = lab.organiser("inbox", "--from", folder, "--json", now=NEXT).json["received"]
    assert {receipt["kind"] for receipt in taken} <= {"refused"}
    return [problem["code"] for receipt in taken for problem in receipt["problems"]]


def sealed(lab: Lab, submission: str, ending: str) -> bytes:
    return (lab.clone / ".git/heldout" / "sealed" / f"{submission}{ending}").read_bytes()


def test_an_old_metadata_file_sent_again_is_refused(lab: Lab) -> None:
    submission, seen = amended_twice(lab)
    lab.publish(submission)
    for old in seen[:2]:
        assert offer(lab, submission, {"-metadata.json.age": old}) == ["stale-revision"]
    whole = {ending: sealed(lab, submission, ending) for ending in (".tar.age", ".key.age")}
    offer(lab, submission, {**whole, "-metadata.json.age": seen[0]})
    assert offer(lab, submission, {**whole, "-metadata.json.age": seen[1]}) == ["stale-revision"]
    lab.organiser("rebuild", now=NEXT)
    assert lab.rows()[0]["description"] == "third"
    assert lab.kinds().count("updated") == 2


def test_metadata_of_somebody_else_is_refused(lab: Lab) -> None:
    submission = lab.receive("one")
    thief = lab.new_clone("thief")
    draft = lab.draft(submission, clone=thief, team=OTHER_TEAM)
    assert draft == submission
    lab.participant("pack", submission, clone=thief)
    theirs = {
        ending: (thief / ".git/heldout" / "sealed" / f"{submission}{ending}").read_bytes()
        for ending in (".tar.age", ".key.age", "-metadata.json.age")
    }
    metadata = theirs["-metadata.json.age"]
    assert offer(lab, submission, {"-metadata.json.age": metadata}) == ["untrusted"]
    assert offer(lab, submission, theirs) == ["id-taken"]
    own = {ending: sealed(lab, submission, ending) for ending in theirs}
    assert offer(lab, submission, {**own, "-metadata.json.age": metadata}) == ["untrusted"]
    assert offer(lab, submission, {**own, ".tar.age": theirs[".tar.age"]}) == ["id-taken"]
    assert offer(lab, submission, {**own, ".key.age": theirs[".key.age"]}) == ["id-taken"]
    assert lab.kinds() == ["opened-board", "received"]
    assert lab.publish(submission).code == 0
    assert lab.rows()[0]["team"] == TEAM["team"]


def test_files_swapped_between_ids_are_refused(lab: Lab) -> None:
    """Each sealed file is genuine, but of another submission of another team."""
    mine = lab.send("mine")
    endings = (".tar.age", ".key.age", "-metadata.json.age")
    good = {ending: sealed(lab, mine, ending) for ending in endings}
    theirs = lab.draft("theirs", team=OTHER_TEAM, seed=2)
    lab.participant("pack", theirs)
    other = {ending: sealed(lab, theirs, ending) for ending in endings}
    swaps = [{**good, ending: other[ending]} for ending in endings] + [good]
    for number, files in enumerate(swaps):
        name = f"20261102-swap{number}"
        folder = lab.root / name
        folder.mkdir()
        for ending, data in files.items():
            (folder / f"{name}{ending}").write_bytes(data)
        lab.organiser("inbox", "--from", folder, "--no-fetch")
        (review,) = lab.organiser("review", name, "--json").declined().json["reviews"]
        assert [f["rule"] for f in review["findings"]] == ["sealed"]
        assert [f["evidence"] for f in review["findings"]] == ["this submission cannot be opened"]
        assert lab.publish(name).code == 1
    assert lab.rows() == []
