"""What depends on the day: quota, embargo, rules; and what must not come back: old files."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from town import OTHER_TEAM, TEAM, Town, environment, fresh_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"


town = fresh_town


def findings(town: Town, submission: str, *, now: str) -> dict[str, str]:
    (review,) = town.organiser("review", submission, "--json", now=now).json["reviews"]
    return {f["rule"]: f["evidence"] for f in review["findings"]}


def publish_at(town: Town, name: str, moment: str, seed: int) -> int:
    submission = town.send(name, now=moment, seed=seed)
    town.take_in(now=moment)
    return town.publish(submission, now=moment).code


def test_quota_slides_to_the_second(town: Town) -> None:
    """Two in 30 days: the third may come when the first is exactly 30 days old, not earlier."""
    assert publish_at(town, "first", "2026-11-02T10:00:07Z", 1) == 0
    assert publish_at(town, "second", "2026-11-05T09:00:00Z", 2) == 0
    early = town.draft("third", now="2026-12-02T10:00:06Z", seed=3)
    town.send_unchecked(early, now="2026-12-02T10:00:06Z")
    town.take_in(now="2026-12-02T10:00:06Z")
    found = findings(town, early, now="2026-12-02T10:00:06Z")
    assert set(found) == {"quota"}
    assert "02 Dec 2026 10:00:07 UTC" in found["quota"]
    told = town.publish(early, now="2026-12-02T10:00:06Z")
    assert told.code == 1
    assert "quota" in told.out
    assert "nothing was published" in told.out
    town.organiser("reject", early, "--why", found["quota"], now="2026-12-02T10:00:06Z")
    assert publish_at(town, "fourth", "2026-12-02T10:00:07Z", 4) == 0
    assert town.kinds().count("published") == 3


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


def public_bytes(town: Town) -> Iterator[tuple[str, bytes]]:
    """Every file of the board, and every git object of board and forge."""
    for path in town.board.rglob("*"):
        if path.is_file() and ".git" not in path.relative_to(town.board).parts:
            yield str(path), path.read_bytes()
    for repository in (town.board, town.forge):
        command = ["git", "cat-file", "--batch", "--batch-all-objects", "--buffer"]
        env = environment(town.root)
        done = subprocess.run(command, cwd=repository, env=env, capture_output=True, check=True)
        yield str(repository), done.stdout


def leaks(town: Town) -> set[str]:
    return {
        word for _, data in public_bytes(town) for word in WORDS if word.encode() in data.lower()
    }


def test_embargo_from_the_first_day_to_the_reveal(town: Town) -> None:
    submission = town.send("zanzibar-secret", now=DAY, team=SECRET, embargo="2026-12-10")
    assert re.fullmatch(r"20261102-anon-[0-9a-f]{8}", submission)
    commit = git(town.forge, "log", "-1", "--format=%an %ae", f"submission/{submission}")
    assert commit == "Anonymous anonymous@localhost"
    town.take_in(now=DAY)
    town.organiser("review", submission, "--score", now=DAY)
    town.organiser("ask", submission, "Is this a new model?", now=DAY)
    town.fill(submission, code="https://example.org/quokka-two")
    town.participant("amend", submission, now=DAY)
    town.take_in(now=DAY)
    assert town.publish(submission, "--why", "by zanzibar, fine", now=LATER).code == 0
    town.push()
    assert leaks(town) == set()
    (row,) = town.rows()
    assert (row["team"], row["embargoed"], row["rank"]) == (None, True, 1)
    assert row["scores"]["eval"] > 0
    eve = "2026-12-09T23:59:59Z"
    soon = town.organiser("inbox", "--json", now=eve).json
    assert soon["reveals"] == [{"id": submission, "date": "2026-12-10"}]
    town.organiser("rebuild", now=eve)
    assert leaks(town) == set()
    town.push()

    day = "2026-12-10T00:00:00Z"
    visitor = town.new_clone("visitor")
    town.participant("rebuild", now=day, clone=visitor)
    page = (visitor / "leaderboard" / "index.html").read_text().casefold()
    assert "reveal due" in page
    assert not any(word in page for word in WORDS)

    assert town.organiser("rebuild", now=day).code == 0
    (row,) = town.rows()
    assert (row["team"], row["description"]) == (SECRET["team"], SECRET["model_description"])
    assert row["code"] == "https://example.org/quokka-two"
    assert row["parameters"] == SECRET["efficiency"]["parameters"]
    feed = (town.board / "leaderboard" / "feed.xml").read_text()
    assert "<title>Revealed: a most xylophonic ranker" in feed
    assert (row["embargoed"], row["date"]) == (False, "2026-11-02")
    assert "xylophonic" in (town.board / "leaderboard" / "index.html").read_text()
    assert town.audit() == {"ok": True, "events": 8, "faults": [], "notes": []}


def test_an_embargo_is_extended_and_never_made_shorter_or_endless(town: Town) -> None:
    late = town.draft("late", now=DAY, team=SECRET, embargo="2027-08-02")
    town.fill(late, embargo_until="2027-08-03")
    town.send_unchecked(late, now=DAY)
    town.take_in(now=DAY)
    assert set(findings(town, late, now=DAY)) == {"embargo"}
    town.fill(late, embargo_until="2027-08-02")
    town.participant("amend", late, now=DAY)
    town.take_in(now=DAY)
    assert findings(town, late, now=DAY) == {}
    town.publish(late, now=DAY)
    day = "2027-08-01T00:00:00Z"
    for _ in range(2):
        town.organiser("extend", late, "2027-09-02", "--why", "slow reviewers", now=day).done()
    assert town.kinds().count("extended") == 1
    for slip in ("2027-08-20", "2026-09-02", "2027-09-01", "2028-05-02", "2099-09-02"):
        told = town.organiser("extend", late, slip, "--why", "a slip", now=day)
        assert (told.code, told.out) == (2, "")
        assert "embargo-day" in told.err
        assert "a day after 2027-09-02, up to 2028-05-01, 9 months from today" in told.err
    assert town.kinds().count("extended") == 1
    town.organiser("rebuild", now="2027-09-01T23:59:59Z")
    assert leaks(town) == set()
    town.organiser("rebuild", now="2027-09-02T00:00:00Z")
    assert town.rows()[0]["team"] == SECRET["team"]
    over = town.organiser("extend", late, "2027-12-02", "--why", "x", now="2027-09-03T00:00:00Z")
    assert "an embargo that ended on 2027-09-02" in over.err
    assert (over.code, over.out) == (2, "")


def test_rules_hold_from_their_day_on(town: Town) -> None:
    """A submission is judged by the rules of its day, though they changed since."""
    old = town.draft("old", now=DAY, team={**TEAM, "model_description": ""})
    town.send_unchecked(old, now=DAY)
    assert "refused" not in {r["kind"] for r in town.take_in(now=DAY)["received"]}
    rules = town.board / "board.toml"
    text = rules.read_text()
    rules.write_text(text.replace("off = []", 'off = ["description"]'))
    new = town.draft("new", now=LATER, seed=2, team={**OTHER_TEAM, "model_description": ""})
    assert town.organiser("rebuild", now=LATER).code == 0
    town.share()
    assert town.participant("submit", new, now=LATER).code == 0
    town.take_in(now=LATER)
    assert town.kinds() == ["opened-board", "received", "changed-rules", "received"]
    assert set(findings(town, old, now=LATER)) == {"description"}
    assert findings(town, new, now=LATER) == {}
    public = [json.loads(line) for line in (town.board / "log.jsonl").read_text().splitlines()]
    assert public[2]["event"]["public"]["board.toml"] == rules.read_text()


def amended_twice(town: Town) -> tuple[str, list[bytes]]:
    """A submission with three revisions of its metadata, all seen by anybody."""
    submission = town.send("one", now=DAY)
    file = town.clone / ".git/heldout" / "sealed" / f"{submission}-metadata.json.age"
    seen = [file.read_bytes()]
    town.take_in(now=DAY)
    for text in ("second", "third"):
        town.fill(submission, model_description=text)
        town.participant("amend", submission, now=DAY)
        town.take_in(now=DAY)
        seen.append(file.read_bytes())
    return submission, seen


def offer(town: Town, submission: str, files: dict[str, bytes]) -> list[str]:
    """Put files into a folder of a stranger; codes of what the inbox says of them."""
    folder = town.root / "stranger"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for ending, data in files.items():
        (folder / f"{submission}{ending}").write_bytes(data)
    taken = town.organiser("inbox", "--from", folder, "--json", now=LATER).json["received"]
    assert {receipt["kind"] for receipt in taken} <= {"refused"}
    return [problem["code"] for receipt in taken for problem in receipt["problems"]]


def sealed(town: Town, submission: str, ending: str) -> bytes:
    return (town.clone / ".git/heldout" / "sealed" / f"{submission}{ending}").read_bytes()


def test_an_old_metadata_file_sent_again_is_refused(town: Town) -> None:
    submission, seen = amended_twice(town)
    town.publish(submission, now=DAY)
    for old in seen[:2]:
        assert offer(town, submission, {"-metadata.json.age": old}) == ["stale-revision"]
    whole = {ending: sealed(town, submission, ending) for ending in (".tar.age", ".key.age")}
    offer(town, submission, {**whole, "-metadata.json.age": seen[0]})
    assert offer(town, submission, {**whole, "-metadata.json.age": seen[1]}) == ["stale-revision"]
    town.organiser("rebuild", now=LATER)
    assert town.rows()[0]["description"] == "third"
    assert town.kinds().count("updated") == 2


def test_metadata_of_somebody_else_is_refused(town: Town) -> None:
    submission = town.send("one", now=DAY)
    town.take_in(now=DAY)
    thief = town.new_clone("thief")
    draft = town.draft(submission, now=DAY, clone=thief, team=OTHER_TEAM)
    assert draft == submission
    town.participant("pack", submission, now=DAY, clone=thief)
    theirs = {
        ending: (thief / ".git/heldout" / "sealed" / f"{submission}{ending}").read_bytes()
        for ending in (".tar.age", ".key.age", "-metadata.json.age")
    }
    metadata = theirs["-metadata.json.age"]
    assert offer(town, submission, {"-metadata.json.age": metadata}) == ["untrusted"]
    assert offer(town, submission, theirs) == ["id-taken"]
    own = {ending: sealed(town, submission, ending) for ending in theirs}
    assert offer(town, submission, {**own, "-metadata.json.age": metadata}) == ["untrusted"]
    assert offer(town, submission, {**own, ".tar.age": theirs[".tar.age"]}) == ["id-taken"]
    assert offer(town, submission, {**own, ".key.age": theirs[".key.age"]}) == ["id-taken"]
    assert town.kinds() == ["opened-board", "received"]
    assert town.publish(submission, now=DAY).code == 0
    assert town.rows()[0]["team"] == TEAM["team"]


def test_files_swapped_between_ids_are_refused(town: Town) -> None:
    """Each sealed file is genuine, but of another submission of another team."""
    mine = town.send("mine", now=DAY)
    endings = (".tar.age", ".key.age", "-metadata.json.age")
    good = {ending: sealed(town, mine, ending) for ending in endings}
    theirs = town.draft("theirs", now=DAY, team=OTHER_TEAM, seed=2)
    town.participant("pack", theirs, now=DAY)
    other = {ending: sealed(town, theirs, ending) for ending in endings}
    swaps = [{**good, ending: other[ending]} for ending in endings] + [good]
    for number, files in enumerate(swaps):
        name = f"20261102-swap{number}"
        folder = town.root / name
        folder.mkdir()
        for ending, data in files.items():
            (folder / f"{name}{ending}").write_bytes(data)
        town.organiser("inbox", "--from", folder, "--no-fetch", now=DAY)
        answer = town.organiser("review", name, "--json", now=DAY)
        assert answer.code == 1
        (review,) = answer.json["reviews"]
        assert [f["rule"] for f in review["findings"]] == ["sealed"]
        assert [f["evidence"] for f in review["findings"]] == ["this submission cannot be opened"]
        assert town.publish(name, now=DAY).code == 1
    assert town.rows() == []


def test_changed_runs_need_a_new_id(town: Town) -> None:
    submission = town.send("one", now=DAY)
    town.take_in(now=DAY)
    run = town.clone / ".git/heldout/drafts" / submission / "eval.run"
    run.write_text((town.root / "eval.run").read_text().replace("n1-0", "n1-x"))
    assert town.participant("submit", submission, now=LATER).code == 0
    (receipt,) = town.take_in(now=LATER)["received"]
    assert [problem["code"] for problem in receipt["problems"]] == ["id-taken"]
    town.fill(submission, model_description="the key still holds")
    assert town.participant("amend", submission, now=LATER).code == 0
    assert town.publish(submission, now=LATER).code == 0


def test_no_withdrawal_after_publication(town: Town) -> None:
    assert publish_at(town, "first", DAY, 1) == 0
    (submission,) = (row["id"] for row in town.rows())
    town.participant("withdraw", submission, now=LATER)
    (receipt,) = town.take_in(now=LATER)["received"]
    assert receipt["kind"] == "refused"
    assert [problem["code"] for problem in receipt["problems"]] == ["published-stays"]
    assert [row["id"] for row in town.rows()] == [submission]
