"""What an organiser's edit of board.toml cannot do: rename told scores, or put rules that fail."""

from pathlib import Path

import pytest
from lab import FOUNDED, NEXT, OTHER_TEAM, Lab, call, prepared, write_inputs

FURTHER = '[[views]]\nname = "deep"\nset = "eval"\nmeasure = "nDCG@10"\n\n[baselines]'


@prepared
def lab(lab: Lab) -> None:
    """A board with two views of the held-out set, one entry, and one submission that waits."""
    edit(lab, "[baselines]", FURTHER)
    assert lab.organiser("rebuild").code == 0
    lab.enter("first")


def edit(lab: Lab, before: str, after: str) -> None:
    """Edit board.toml; the last place counts, that of the held-out set's views."""
    file = lab.board / "board.toml"
    head, found, tail = file.read_text("utf-8").rpartition(before)
    assert found
    file.write_text(head + after + tail, "utf-8")


def refused(lab: Lab, *commands: str, now: str = NEXT) -> str:
    """What commands say that are refused alike, and log nothing."""
    events = lab.kinds()
    said = set()
    for command in commands or ("rebuild", "inbox"):
        said.add(lab.organiser(command, now=now).refused().err)
    assert lab.kinds() == events
    (text,) = said
    return text


@pytest.mark.parametrize(
    ("before", "after", "missing"),
    [
        (
            "[baselines]",
            FURTHER.replace("deep", "strict").replace("[base", 'labels = "strict"\n\n[base'),
            "board.toml names held-out labels 'strict'; put them there",
        ),
        (
            "[[views]]",
            '[sets.next]\nqueries = "queries/next.tsv"\n\n[[views]]',
            "board.toml names held-out labels 'next'; put them there",
        ),
        (
            "[[views]]",
            '[sets.next]\nqueries = "queries/dev.tsv"\nqrels = "next.qrels"\n\n[[views]]',
            "board.toml names next.qrels, but there is no such file in the board",
        ),
    ],
)
def test_rules_are_not_logged_before_what_they_name_is_there(
    lab: Lab, before: str, after: str, missing: str
) -> None:
    waits = lab.receive("second", seed=2, team=OTHER_TEAM)
    left = (lab.board / "board.toml").read_text("utf-8")
    edit(lab, before, after)
    text = refused(lab)
    assert missing in text
    assert "backup" not in text
    (lab.board / "board.toml").write_text(left, "utf-8")
    assert lab.publish(waits, now=NEXT).code == 0


def found(folder: Path, *sets: str | Path) -> str:
    """What `board new` says that founds nothing."""
    args = ("board", "new", folder / "board", "--vault", folder / "vault")
    answer = call(folder, *args, *sets, "--now", FOUNDED).refused()
    assert not (folder / "board").exists()
    assert not (folder / "vault").exists()
    return answer.err


def test_no_board_is_founded_that_can_give_no_score(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    files = [tmp_path / f"{name}" for name in ("eval.tsv", "dev.qrels")]
    text = found(tmp_path, "--eval", *files)
    assert "undefined-score  view eval" in text
    assert "0 of 30 queries are judged and count" in text
    files[1].write_text("".join(f"eval{i} 0 d{i} 0\n" for i in range(30)))
    assert "no relevant document for any of 30 judged queries" in found(tmp_path, "--eval", *files)


@pytest.mark.parametrize("kept", [30, 3])
def test_no_board_is_founded_whose_held_out_labels_are_in_the_open(
    tmp_path: Path, kept: int
) -> None:
    write_inputs(tmp_path)
    dev = [tmp_path / f"dev.{kind}" for kind in ("tsv", "qrels")]
    held_out = tmp_path / "part.qrels"
    held_out.write_text("".join(dev[1].read_text().splitlines(keepends=True)[:kept]))
    text = found(tmp_path, "--dev", *dev, "--eval", dev[0], held_out)
    assert "open-labels  view eval" in text
    assert "every label of 'eval' is also one of 'dev', in the open" in text


def test_labels_that_were_changed_after_a_score_are_told_until_they_are_logged(lab: Lab) -> None:
    labels = lab.vault / "labels/eval.qrels"
    left = labels.read_bytes()
    labels.write_bytes(b"".join(left.splitlines(keepends=True)[:5]))
    events = lab.kinds()
    for command in ("rebuild", "inbox"):
        lab.organiser(command, now=NEXT).done(
            "changed   labels/eval.qrels in the vault: no score is computed with it",
            'heldout correct ID --why "…"',
        )
    assert lab.organiser("rebuild", "--json", now=NEXT).json["unlogged"] == ["labels/eval.qrels"]
    assert lab.kinds() == events
    assert lab.organiser("correct", "20261102-first", "--why", "a copy", now=NEXT).code == 0
    assert "in the vault" not in lab.organiser("rebuild", now=NEXT).out
