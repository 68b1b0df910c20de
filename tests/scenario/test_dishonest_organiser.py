"""Organisers who break their own release rule: the audit names entry, view, told and right."""

from pathlib import Path

from lab import LAST, NEXT, OTHER_TEAM, Lab, Patch, named, prepared, run_text
from trusting import BASELINE, ONE, add_baseline, read_files

from heldout.board.audit import archive
from heldout.board.organiser import decide
from heldout.board.scores import commitments

RIVAL = "20261102-rival"


@prepared
def lab(lab: Lab) -> None:
    """A board under `clear`, a baseline, one entry, one that waits."""
    lab.edit(('rule = "rounded"', 'rule = "clear"'), ("quota = 2", "quota = 9"))
    # A key that is there already is taken: so no test depends on chance.
    (lab.vault / "labels" / "eval.key").write_text(f"{'ab' * 32}\n")
    assert lab.organiser("rebuild").code == 0
    lab.share()
    add_baseline(lab, seed=3)
    lab.send("one", seed=2)
    lab.receive("rival", seed=5, team=OTHER_TEAM)
    assert publish(lab, ONE) == 0


def publish(lab: Lab, *names: str) -> int:
    return lab.organiser("publish", *names, "--why", "another system", "--yes").code


def audits(lab: Lab, patch: Patch, tmp_path: Path) -> list[list[str]]:
    """What the organisers' own audit finds, and what a stranger's finds in the archive."""
    live = lab.audit()["faults"]
    with patch.context() as only_here:
        only_here.setattr(archive, "check_closable", lambda _desk: None)
        only_here.setattr(archive, "rehearse", lambda _desk, _closing: None)
        lab.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).done()
    found = lab.participant("audit", tmp_path / "a.zip", "--json", now=LAST, clone=tmp_path)
    return [live, found.json["faults"]]


def test_an_honest_organiser_has_no_finding(lab: Lab, monkeypatch: Patch, tmp_path: Path) -> None:
    assert publish(lab, RIVAL) == 0
    for seed, team in ((6, named("Third")), (7, OTHER_TEAM), (8, named("Third"))):
        assert publish(lab, lab.receive(f"more{seed}", seed=seed, team=team)) == 0
    public = [event["public"] for event in lab.events() if event["kind"] == "published"]
    assert any("untold" in fields for fields in public)
    assert audits(lab, monkeypatch, tmp_path) == [[], []]
    told_of = lab.participant("audit", tmp_path / "a.zip", now=LAST, clone=tmp_path)
    assert "12 releases by the release rule of the day" in told_of.out


def test_labels_that_were_swapped_after_launch_tell_no_score(lab: Lab) -> None:
    swap_labels(lab)
    lab.organiser("publish", RIVAL, "--why", "x", "--yes").refused(
        "labels/eval.qrels in the vault: not what the log commits to"
    )
    assert lab.kinds()[-1] != "published"


def test_labels_that_were_swapped_for_one_score_and_back(
    lab: Lab, monkeypatch: Patch, tmp_path: Path
) -> None:
    """An organiser with a heldout of their own, which does not refuse."""
    before = swap_labels(lab)
    with monkeypatch.context() as once:
        once.setattr(decide, "commit_held_out", lambda _desk: None)
        assert publish(lab, RIVAL) == 0
    (lab.vault / "labels" / "eval.qrels").write_bytes(before)
    for faults in audits(lab, monkeypatch, tmp_path):
        assert any(
            f'"{RIVAL}", view eval: scored with other labels than were committed to' in fault
            for fault in faults
        )


def swap_labels(lab: Lab) -> bytes:
    labels = lab.vault / "labels" / "eval.qrels"
    before = labels.read_bytes()
    labels.write_bytes(before.replace(b"deval3 1", b"n3-17 1"))
    return before


def test_a_mask_that_comes_late_is_a_dated_event(lab: Lab) -> None:
    (lab.vault / "labels" / "eval.exclude").write_text("eval1\neval2\n")
    assert lab.audit()["notes"] == [
        "labels/eval.exclude in the vault is not committed to yet: heldout rebuild"
    ]
    assert "labels/eval.exclude in the vault" in lab.organiser("rebuild").out
    event = lab.events()[-1]
    assert event["kind"] == "changed-rules"
    assert event["public"]["why"] == commitments.FIRST_TIME
    assert set(event["sealed"]) == {"labels"}
    assert lab.organiser("rebuild").code == 0
    assert len(lab.events()) == event["seq"] + 1
    (lab.vault / "labels" / "eval.exclude").write_text("eval1\n")
    assert "labels/eval.exclude in the vault is not the file" in lab.audit()["faults"][0]
    assert lab.organiser("publish", RIVAL, "--why", "x", "--yes").code == 2
    # An entry that was scored without the mask has other queries: it is corrected first.
    assert lab.organiser("correct", ONE, BASELINE, "--why", "a mask").code == 0
    assert publish(lab, RIVAL) == 0
    assert lab.audit()["ok"]


def test_labels_of_a_new_view_are_committed_to_with_its_rules(
    lab: Lab, tmp_path: Path, monkeypatch: Patch
) -> None:
    (lab.vault / "labels" / "graded.qrels").write_text("eval1 0 deval1 1\n")
    view = '\n[[views]]\nname = "graded"\nset = "eval"\nmeasure = "RR@10"\nlabels = "graded"\n'
    rules = lab.board / "board.toml"
    text = rules.read_text()
    at = text.index("[[views]]")
    rules.write_text(text[:at] + view.lstrip() + "public = false\n\n" + text[at:])
    assert lab.organiser("rebuild").code == 0
    last = lab.events()[-1]
    assert (last["kind"], set(last["sealed"])) == ("changed-rules", {"labels"})
    assert publish(lab, RIVAL) == 0
    assert audits(lab, monkeypatch, tmp_path) == [[], []]
    assert "labels/graded.qrels" not in read_files(tmp_path / "a.zip")


def relabel(lab: Lab, entry: str) -> None:
    """Labels that a friend's first documents please, and nobody else's scored again by them."""
    labels = lab.vault / "labels" / "eval.qrels"
    liked = {line.split()[0]: line.split()[1] for line in run_text("eval", 5).splitlines()[::5]}
    labels.write_text("".join(f"{query} 0 {document} 1\n" for query, document in liked.items()))
    lab.organiser("correct", entry, "--why", "labels were checked again", now=NEXT).done()


def test_a_friend_who_alone_is_scored_by_new_labels(
    lab: Lab, monkeypatch: Patch, tmp_path: Path
) -> None:
    assert publish(lab, RIVAL) == 0
    relabel(lab, RIVAL)
    told_of = f"view eval: {BASELINE}, {ONE} scored with earlier labels than others beside them"
    assert [told_of in note for note in lab.audit()["notes"]] == [True]
    inbox = lab.organiser("inbox", now=NEXT)
    assert told_of in " ".join(inbox.out.split())
    assert f'heldout correct {BASELINE} {ONE} --why "…"' in inbox.out
    page = " ".join((lab.board / "leaderboard" / "index.html").read_text("utf-8").split())
    assert f"1 earlier score computed again since, but not those of {BASELINE}, {ONE}" in page
    told = lab.organiser("inbox", "--json", now=NEXT).json
    assert told["earlier_labels"] == {"eval": [BASELINE, ONE]}
    lab.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).refused("nothing was archived")
    live, archived = audits(lab, monkeypatch, tmp_path)
    assert live == []
    assert [told_of in fault for fault in archived] == [True]
