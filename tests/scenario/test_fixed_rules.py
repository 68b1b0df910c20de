"""What an organiser's edit of board.toml cannot do: rename told scores, or put rules that fail."""

from pathlib import Path

import pytest
from town import FOUNDED, OTHER_TEAM, Town, call, copy_of, found_town, write_inputs

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
FURTHER = '[[views]]\nname = "deep"\nset = "eval"\nmeasure = "nDCG@10"\n\n[baselines]'


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board with two views of the held-out set, one entry, and one submission that waits."""
    town = found_town(tmp_path_factory.mktemp("started"))
    edit(town, "[baselines]", FURTHER)
    assert town.organiser("rebuild", now=DAY).code == 0
    town.enter("first", now=DAY)
    return town


town = copy_of("started")


def edit(town: Town, before: str, after: str) -> None:
    """Edit board.toml; the last place counts, that of the held-out set's views."""
    file = town.board / "board.toml"
    head, found, tail = file.read_text("utf-8").rpartition(before)
    assert found
    file.write_text(head + after + tail, "utf-8")


def refused(town: Town, *commands: str, now: str = NEXT) -> str:
    """What commands say that are refused alike, and log nothing."""
    events = town.kinds()
    told = set()
    for command in commands or ("rebuild", "inbox"):
        answer = town.organiser(command, now=now)
        assert answer.code == 2, answer
        told.add(answer.err)
    assert town.kinds() == events
    (text,) = told
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
    town: Town, before: str, after: str, missing: str
) -> None:
    waits = town.send("second", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    kept = (town.board / "board.toml").read_text("utf-8")
    edit(town, before, after)
    text = refused(town)
    assert missing in text
    assert "backup" not in text
    (town.board / "board.toml").write_text(kept, "utf-8")
    assert town.publish(waits, now=NEXT).code == 0


def test_a_deadline_that_is_over_is_not_put_off(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    edit(town, "primary = ", 'closes = 2026-11-10\nkind = "one-shot"\nprimary = ')
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    town.enter("first", now=DAY)
    edit(town, "2026-11-10", "2026-11-12")  # before it is over anybody knows of it in time
    assert town.organiser("rebuild", now=NEXT).code == 0
    assert town.organiser("rebuild", now="2026-11-13T00:00:00Z").code == 0
    edit(town, "2026-11-12", "2026-12-31")
    text = refused(town, now="2026-11-14T00:00:00Z")
    assert 'closes = "2026-12-31"' in text
    assert "2026-11-12, as before" in text
    edit(town, 'closes = 2026-12-31\nkind = "one-shot"\n', "closes = 2026-11-12\n")
    assert "kind = " in refused(town, now="2026-11-14T00:00:00Z")


def found(folder: Path, *sets: str | Path) -> str:
    """What `board new` says that founds nothing."""
    told = ("board", "new", folder / "board", "--vault", folder / "vault")
    answer = call(folder, *told, *sets, "--now", FOUNDED)
    assert answer.code == 2, answer
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


def test_labels_that_were_changed_after_a_score_are_told_until_they_are_logged(town: Town) -> None:
    labels = town.vault / "labels/eval.qrels"
    kept = labels.read_bytes()
    labels.write_bytes(b"".join(kept.splitlines(keepends=True)[:5]))
    events = town.kinds()
    for command in ("rebuild", "inbox"):
        answer = town.organiser(command, now=NEXT).done()
        assert (
            "changed   labels/eval.qrels in the vault: no score is computed with it" in answer.out
        )
        assert 'heldout correct ID --why "…"' in answer.out
    assert town.organiser("rebuild", "--json", now=NEXT).json["unlogged"] == ["labels/eval.qrels"]
    assert town.kinds() == events
    assert town.organiser("correct", "20261102-first", "--why", "a copy", now=NEXT).code == 0
    answer = town.organiser("rebuild", now=NEXT)
    assert "in the vault" not in answer.out
