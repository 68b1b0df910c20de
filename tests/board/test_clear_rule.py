"""`clear` on a whole board: what is published, what a score is compared with, what leaves."""

import dataclasses
import json
import random
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from zipfile import ZipFile

import pytest
from boardlog import ranking
from scored_board import (
    BASE,
    HIGH,
    LOW,
    ONE,
    QUERIES,
    THREE,
    TWO,
    Row,
    ScoredBoard,
    above,
    archive,
    as_clear,
    faults,
    make_board,
    next_season,
    nudge,
    stand,
    text,
)

from heldout.board.audit.archive_audit import MANIFEST, audit_archive
from heldout.board.log.events import format_entry
from heldout.board.log.submission import Submission
from heldout.board.organiser import decide
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.rules import release
from heldout.board.rules.changes import format_key
from heldout.board.rules.release import NOISE, NOT_CLEAR, add_noise, draw_noise
from heldout.board.scores import releasing, stored
from heldout.board.scores.stored import Evidence, read_evidence
from heldout.board.site.exports import format_csv, format_json
from heldout.board.standings.standings import make_standings, project
from heldout.board.store.vault import Vault
from heldout.cli.board.reports import rebuilt_facts
from heldout.errors import InputError, StoreError
from heldout.files.zipped import write_zip
from heldout.ids import digest_bytes
from memory_git import MemoryGit

HIGHER = above(HIGH, 0.1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """A board under `clear`, with a baseline; its noise is fixed, since some rounds to nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda size: bytes(range(size)))
        board = as_clear(make_board(tmp_path_factory.mktemp("clear") / "town"))
    board.baseline(BASE, LOW)
    return board


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """A board that publishes every score."""
    return make_board(tmp_path_factory.mktemp("rounded") / "town")


@pytest.fixture
def board(begun: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    return begun.in_memory(tmp_path)


def number(board: ScoredBoard, values: Row, *before: str, view: str = "eval") -> str:
    """What is published of an entry's scores, after those numbers."""
    drawn = draw_noise(board.vault.set_key(view), view, values)
    noisy = add_noise(values, LOW, errors=NOISE, drawn=drawn, decimals=3)
    return max(noisy, *(f"{float(one) + 0.001:.3f}" for one in (text(LOW), *before)))


def said(board: ScoredBoard) -> dict[str, str]:
    """Entry -> what everybody reads of its score."""
    rows = stand(board).every
    return {row.id: row.scores.get("eval") or NOT_CLEAR * ("eval" in row.untold) for row in rows}


def bar(board: ScoredBoard, name: str) -> str:
    """The run with which an entry was compared."""
    return str(board.published(name)["bars"]["eval"])


def test_a_score_clearly_above_every_run_is_published(board: ScoredBoard) -> None:
    board.enter(ONE, HIGH)
    assert said(board) == {BASE: text(LOW), ONE: number(board, HIGH)}
    assert bar(board, ONE) == BASE
    assert faults(board) == ()


def test_the_same_run_again_is_never_published(board: ScoredBoard) -> None:
    board.enter(ONE, HIGH)
    board.enter(TWO, HIGH, team="Other Team")
    board.enter(THREE, nudge(HIGH, 3), team="Third Team")
    withheld = dict.fromkeys((TWO, THREE), NOT_CLEAR)
    assert said(board) == {BASE: text(LOW), ONE: number(board, HIGH), **withheld}
    assert [bar(board, name) for name in (TWO, THREE)] == [ONE, ONE]
    assert faults(board) == ()


def test_the_order_of_numbers_is_that_of_the_scores_for_all_their_noise(board: ScoredBoard) -> None:
    """An erratum leaves it so, where entries are corrected in the order of their publication."""
    names = [f"20261102-run{number:02}" for number in range(8)]
    rises = [above(LOW, 0.02 * (number + 1)) for number in range(8)]
    for name, values in zip(names, rises, strict=True):
        board.enter(name, values)
    numbers = [said(board)[name] for name in names]
    alone = [number(board, values) for values in rises]
    assert numbers == sorted(set(numbers))
    assert numbers != alone  # the noise would have changed their order
    board.relabel()
    for name, values in zip(names, rises, strict=True):
        board.correct(name, above(values, 0.01))
    again = [said(board)[name] for name in names]
    assert again == sorted(set(again)) != numbers
    assert text(LOW) < min(again)
    assert faults(board) == ()


def test_a_run_that_was_withdrawn_before_it_was_published_is_no_bar(board: ScoredBoard) -> None:
    board.send(ONE, HIGHER)
    board.tick().log("withdrawn", ONE, public={"files": {}}, sealed={"revision": 2})
    board.enter(TWO, HIGH)
    assert bar(board, TWO) == BASE
    assert said(board)[TWO] == number(board, HIGH)
    assert faults(board) == ()


def test_few_files_are_read_of_many(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        board.enter(f"202611{number + 10}-nr", nudge(LOW, number, 0.1 + number / 100))
    read: list[str] = []

    def count(vault: Vault, digest: str) -> Evidence:
        read.append(digest)
        return read_evidence(vault, digest)

    monkeypatch.setattr(stored, "read_evidence", count)
    board.enter(ONE, HIGH)
    assert 1 <= len(set(read)) <= 3  # the last, the best before it, and the best baseline
    assert bar(board, ONE) == "20261117-nr"
    assert faults(board) == ()


def test_nothing_about_the_best_run_leaves(board: ScoredBoard) -> None:
    hidden = nudge(LOW, 5)
    board.enter(ONE, hidden)
    board.enter(TWO, nudge(LOW, 6, 0.3), team="Other Team")
    session = board.tick()
    public = project(session.vault.entries(), now=datetime(2030, 1, 1, tzinfo=UTC))
    for entry in public:
        if entry.event.kind == "published":
            assert entry.event.public["untold"] == ["eval"]
            known = {**entry.event.public, **{n: one.value for n, one in entry.opened.items()}}
            assert known.keys().isdisjoint(("bars", "compared", "evidence"))
            assert {"bars", "compared"} <= entry.event.sealed.keys()
            assert known["scores"].keys() == known["queries"].keys() == {"dev"}
    bring_up_to_date(session)
    spec = session.spec()
    standings = make_standings(public, spec, now=session.now)
    assert standings == make_standings(session.vault.entries(), spec, now=session.now)
    exact = text(hidden)
    files = board.session.repository.files
    pages = [name for name, _ in files.walk("leaderboard") if name.endswith(".html")]
    texts = [
        b"".join(map(format_entry, public)).decode(),
        format_json(standings, spec).decode(),
        format_csv(standings, spec).decode(),
        *(files.read(page).decode() for page in pages),
    ]
    assert not [one for one in texts if exact in one]
    assert {one["id"]: one for one in json.loads(texts[1])["rows"]}[ONE]["scores"]["eval"] is None
    assert NOT_CLEAR in texts[1]
    assert NOT_CLEAR in " ".join(texts[3:])


def test_an_embargo_shows_neither_more_nor_less(board: ScoredBoard) -> None:
    board.enter(ONE, nudge(LOW, 5), until=date(2027, 3, 1))
    board.enter(TWO, nudge(LOW, 6, 0.3))
    assert said(board) == {BASE: text(LOW), ONE: NOT_CLEAR, TWO: NOT_CLEAR}
    hidden, open_ = (board.published(name) for name in (ONE, TWO))
    fields = ("scores", "queries", "untold")
    assert {n for n in fields if n in hidden} == {n for n in fields if n in open_}
    for when in (board.now, datetime(2027, 6, 1, tzinfo=UTC)):
        for entry in project(board.vault.entries(), now=when):
            assert entry.opened.keys().isdisjoint(("bars", "compared"))
    assert faults(board) == ()


def test_a_correction_publishes_what_was_published_and_nothing_else(board: ScoredBoard) -> None:
    board.enter(ONE, HIGH)
    board.enter(TWO, nudge(HIGH, 0), team="Other Team")
    board.relabel()
    board.correct(ONE, above(HIGH, 0.05))
    # Clearly above everything now, and still not published: nothing is decided again.
    board.correct(TWO, above(HIGHER, 0.1))
    board.correct(BASE, nudge(LOW, 2))
    now = number(board, above(HIGH, 0.05))
    assert said(board) == {BASE: text(nudge(LOW, 2)), ONE: now, TWO: NOT_CLEAR}
    assert faults(board) == ()
    board.enter(THREE, HIGHER, team="Third Team")
    assert bar(board, THREE) == TWO
    assert said(board)[THREE] == NOT_CLEAR
    assert faults(board) == ()


def test_other_scores_by_same_labels(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    board.enter(ONE, nudge(LOW, 0))
    board.correct(ONE, nudge(LOW, 0), anyway=False)
    assert board.vault.entries()[-1].event.kind == "published"
    board.correct(ONE, nudge(LOW, 1), anyway=False)
    assert board.vault.entries()[-1].event.kind == "corrected"
    assert faults(board) == ()
    with monkeypatch.context() as patch:
        patch.setattr(decide, "_by_labels_alone", lambda *_: True)
        board.correct(ONE, LOW, anyway=False)
    assert board.vault.entries()[-1].event.kind == "reviewed"
    assert any(ONE in fault and "in silence" in fault for fault in faults(board))


def test_while_labels_are_mixed_nothing_new_is_published(board: ScoredBoard) -> None:
    board.enter(ONE, nudge(LOW, 0))
    board.enter(TWO, nudge(LOW, 1), team="Other Team")
    board.relabel()
    for corrected in (None, TWO, BASE):
        if corrected is not None:
            board.correct(corrected, LOW)
        wait = [name for name in (BASE, ONE, TWO) if corrected is None or name != TWO]
        wait = [name for name in wait if corrected != BASE or name == ONE]
        with pytest.raises(StoreError) as caught:
            board.enter(f"20261103-new{corrected or ''}"[:20], HIGH, team="Third Team")
        assert f'heldout correct {" ".join(wait)} --why "…"' in str(caught.value)
    board.correct(ONE, nudge(LOW, 9))
    board.enter(THREE, HIGH, team="Third Team")
    assert said(board)[THREE] == number(board, HIGH)
    assert bar(board, THREE) == ONE
    assert faults(board) == ()


def test_scores_that_are_missing_are_named(board: ScoredBoard) -> None:
    board.enter(ONE, nudge(LOW, 0))
    digest = board.session.history().submissions[ONE].evidence["eval"]
    board.vault.files.delete(f"sealed/{digest}")
    with pytest.raises(StoreError, match=f"sealed/{digest} is missing or damaged"):
        board.enter(TWO, HIGH)


def test_without_a_baseline_no_score_is_published(rounded: ScoredBoard, tmp_path: Path) -> None:
    board = as_clear(rounded.in_memory(tmp_path))
    sent = board.send(ONE, HIGH)
    with pytest.raises(InputError) as caught:
        board.publish(sent)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("no-baseline", "view eval")
    warned = bring_up_to_date(board.tick())
    assert warned.no_baseline == ("eval",)
    assert "no baseline in eval" in str(rebuilt_facts(warned))
    assert "heldout board baseline" in problem.hint
    assert board.session.history().submissions[ONE].status == "reviewed"
    board.baseline(BASE, LOW)
    assert bring_up_to_date(board.tick()).no_baseline == ()
    board.publish(sent)
    assert said(board)[ONE] == number(board, HIGH)
    assert faults(board) == ()


def test_the_mean_over_seeds_decides_and_has_no_spread(board: ScoredBoard) -> None:
    """The spread of two seeds says exactly which is the luckier, and by how much."""
    seeds = above(LOW, 0.1), above(LOW, 0.3)
    mean = [(a + b) / 2 for a, b in zip(*seeds, strict=True)]
    board.enter(ONE, seeds)
    board.enter(TWO, (nudge(HIGH, 0, 0.4), nudge(HIGH, 1, -0.1)), team="Other Team")
    assert said(board)[ONE] == number(board, mean)
    assert said(board)[TWO] == NOT_CLEAR
    one, two = (board.published(name)["seeds"] for name in (ONE, TWO))
    assert one["spreads"].keys() == two["spreads"].keys() == {"dev"}
    assert faults(board) == ()


def test_new_rules_begin_at_the_best_run_so_far(rounded: ScoredBoard, tmp_path: Path) -> None:
    board = rounded.in_memory(tmp_path)
    board.baseline(BASE, LOW)
    board.enter(ONE, HIGH)
    board.enter(TWO, nudge(HIGH, 0))  # the best so far, and not clearly
    board.enter("20261103-four", nudge(LOW, 0), team="Other Team")
    waits = board.send("20261103-five", nudge(LOW, 1), team="Fifth Team")
    board.rules(('rule = "rounded"', 'rule = "clear"'))
    # By the rules of its day; scored again, as a review does once a set has its key.
    scores = board.scores(nudge(LOW, 1), dict(waits.scores.files))
    board.publish(dataclasses.replace(waits, scores=scores))
    assert "bars" not in board.published("20261103-five")
    board.enter(THREE, HIGHER, team="Third Team")
    assert bar(board, THREE) == TWO
    board.rules(('rule = "clear"', 'rule = "rounded"'))
    assert said(board)[TWO] == text(nudge(HIGH, 0))
    board.enter("20261104-six", above(HIGHER, 0.02), team="Sixth Team")
    board.rules(('rule = "rounded"', 'rule = "clear"'))
    board.enter("20261105-seven", above(HIGHER, 0.01), team="Seventh Team")
    assert bar(board, "20261105-seven") == "20261104-six"
    assert said(board)["20261105-seven"] == NOT_CLEAR
    assert faults(board) == ()


def test_each_season_has_a_bar_and_a_key_of_its_own(board: ScoredBoard) -> None:
    board.enter(ONE, HIGHER)
    next_season(board, closes=date(2026, 11, 3))
    assert board.vault.set_key("next") != board.vault.set_key("eval")
    board.now = datetime(2026, 11, 5, tzinfo=UTC)
    sent = board.send("20261105-two", HIGH)
    with pytest.raises(InputError, match="view next"):
        board.publish(sent)
    board.baseline("20261105-base", LOW)
    board.publish(sent)
    event = board.published("20261105-two")
    assert event["bars"] == {"next": "20261105-base"}
    assert event["scores"]["next"] == number(board, HIGH, view="next")
    assert faults(board) == ()


_FINAL = ranking("reserve", "eval", public=False, final=True)


def test_a_final_view_has_no_bar(board: ScoredBoard) -> None:
    board.rules(more=f"\n{_FINAL}")
    board.enter(ONE, nudge(LOW, 0))
    event = board.published(ONE)
    assert event["bars"].keys() == {"eval"}
    assert event["final"]["scores"] == {"reserve": text(nudge(LOW, 0))}
    assert faults(board) == ()


def test_the_archive_has_every_bar_and_jitter_again(board: ScoredBoard, tmp_path: Path) -> None:
    board.enter(ONE, nudge(LOW, 0), until=date(2027, 3, 1))
    board.enter(TWO, HIGH, team="Other Team")
    board.relabel()
    board.correct(BASE, LOW)
    board.correct(ONE, above(HIGH, 0.05), anyway=False)
    board.correct(TWO, HIGH)
    board.enter(THREE, HIGHER, team="Third Team")
    assert bar(board, THREE) == ONE
    found = audit_archive(archive(board, tmp_path))
    assert found.faults == ()
    assert not [note for note in found.notes if "embargo" not in note and "labels" not in note]


def test_an_archive_with_another_key_is_not_sound(board: ScoredBoard, tmp_path: Path) -> None:
    board.enter(ONE, nudge(LOW, 0))
    file = archive(board, tmp_path)
    assert audit_archive(file).faults == ()
    for key in (None, format_key(bytes(32))):
        forged = tmp_path / "forged.zip"
        forged.unlink(missing_ok=True)
        repack(file, forged, {"labels/eval.key": key})
        assert any("labels/eval.key" in fault for fault in audit_archive(forged).faults)


def repack(file: Path, forged: Path, changes: Mapping[str, bytes | None]) -> None:
    """The same archive with other files, whose list fits."""
    with ZipFile(file) as source:
        members = {name: source.read(name) for name in source.namelist() if name != MANIFEST}
        listed = json.loads(source.read(MANIFEST))
    members = {n: d for n, d in (members | dict(changes)).items() if d is not None}
    digests = {n: {"bytes": len(d), "sha256": str(digest_bytes(d))} for n, d in members.items()}
    listed["files"] = digests
    write_zip(forged, [*members.items(), (MANIFEST, json.dumps(listed).encode())])


Change = Callable[[ScoredBoard, pytest.MonkeyPatch], None]


def begin_low(board: ScoredBoard, patch: pytest.MonkeyPatch) -> None:
    """A lower bar is taken than the best run: that of the baseline."""
    digest = board.session.history().submissions[BASE].evidence["eval"]

    def lower(*_: object) -> releasing.Best:
        base = read_evidence(board.vault, digest)
        return releasing.Best(run=base, digest=digest, baseline=base)

    patch.setattr(releasing, "find_best", lower)


def mix_labels(board: ScoredBoard, patch: pytest.MonkeyPatch) -> None:
    """Labels have changed, and the runs before are not scored by them."""
    board.relabel()
    patch.setattr(releasing, "_are_in_force", lambda *_: True)


def put(owner: object, name: str, value: object) -> Change:
    return lambda _, patch: patch.setattr(owner, name, value)


FRAUDS: Mapping[str, tuple[Change, Row, str]] = {
    "published": (
        put(release, "draw_jitter", lambda *_: -100.0),
        nudge(LOW, 1, 0.3),
        f'but the rule gives "{NOT_CLEAR}"',
    ),
    "withheld": (
        put(release, "draw_jitter", lambda *_: 1e9),
        HIGH,
        f'published "{NOT_CLEAR}", but the rule gives "0.',
    ),
    "lower bar": (
        begin_low,
        above(HIGH, 0.1),
        f'compared with "{BASE}", but the rule gives "{ONE}"',
    ),
    "exact": (put(stored, "NOISE", 0.0), HIGH, f'published "{text(HIGH)}", but the rule gives "0.'),
    "mixed labels": (mix_labels, HIGH, f'"{BASE}" was not scored with the labels of that day'),
}


@pytest.mark.parametrize("case", FRAUDS)
def test_what_the_rule_does_not_give_is_a_fault(
    board: ScoredBoard, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, values, told = FRAUDS[case]
    board.enter(ONE, nudge(LOW, 0))
    with monkeypatch.context() as patch:
        change(board, patch)
        board.enter(TWO, values, team="Other Team")
    found = faults(board)
    assert any(TWO in fault and told in fault for fault in found), found


def test_a_score_by_another_key_s(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    file = board.vault.files.file("labels/eval.key")
    right = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("heldout.board.scores.commitments.check_keys", lambda _held: None)
        patch.setattr("heldout.board.scores.commitments.check_unchanged", lambda _held: None)
        sent = board.send(ONE, HIGH)
        file.write_whole(format_key(bytes(32)))
        sent = dataclasses.replace(sent, scores=board.scores(HIGH, dict(sent.scores.files)))
        patch.setattr(decide, "commit_held_out", lambda _desk: None)
        board.publish(sent)
    file.write_whole(right)
    assert any("eval.key" in fault for fault in faults(board))


def test_runs_without_scores_by_query_are_compared_with_nothing() -> None:
    day = datetime(2026, 11, 1, tzinfo=UTC)
    entry = Submission(id=ONE, received=day, files={}, status="published", scores={"eval": "0.4"})
    assert releasing.is_answered(entry, "eval")
    assert not releasing.is_answered(entry, "dev")
    assert not releasing.is_answered(dataclasses.replace(entry, status="imported"), "eval")
    assert not releasing.is_answered(dataclasses.replace(entry, status="rejected"), "eval")
    old = dataclasses.replace(entry, baseline=True)
    assert not releasing.is_answered(old, "eval")
    assert releasing.is_answered(dataclasses.replace(old, runs={"eval": "digest"}), "eval")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.night)])
def test_the_bar_is_the_best_of_all_runs_whatever_happens(board: ScoredBoard, seed: int) -> None:
    """Few files are read for it; here it is held against the definition."""
    rng = random.Random(seed)  # noqa: S311 - made-up scores, not keys
    answered = {BASE: list(LOW)}
    rule = "clear"

    def draw() -> list[float]:
        level = rng.choice([0.0, 0.05, 0.1, 0.15])  # equal means among them
        mixed = [min(max(v + level + rng.uniform(-0.1, 0.1), 0), 1) for v in LOW]
        return [v + level for v in LOW] if rng.random() < 0.3 else mixed

    for number in range(30):
        name, values = f"202611{number // 3 + 2:02}-nr{number}", draw()
        others = ("baseline", "reject", "wait", "again", "relabel", "rules")
        what = rng.choice(["enter"] * 5 + [*others])
        if what == "enter":
            board.enter(name, values, team=f"Team {rng.randrange(5)}")
            right = max(answered, key=lambda one: sum(Fraction(v) for v in answered[one]))
            if rule == "clear":
                assert bar(board, name) == right, (number, what)
            answered[name] = values
        elif what == "baseline":
            board.baseline(name, values)
            answered[name] = values
        elif what in ("reject", "wait"):
            board.send(name, [1.0] * QUERIES)
            {"reject": board.reject}.get(what, str)(name)
        elif what == "again":
            name = rng.choice(list(answered))
            answered[name] = values
            board.correct(name, values, anyway=rng.random() < 0.5)
        elif what == "relabel":
            board.relabel()
            for known in rng.sample(list(answered), len(answered)):
                answered[known] = draw()
                board.correct(known, answered[known], anyway=rng.random() < 0.5)
        else:
            new = "rounded" if rule == "clear" else "clear"
            board.rules((f'rule = "{rule}"', f'rule = "{new}"'))
            rule = new
    assert faults(board) == ()


_RANDOM_TEXT = re.compile(rb"[0-9a-f]{10,}|[A-Za-z0-9+/]{40,}={0,2}")


def public_steps(board: ScoredBoard, values: Row) -> list[tuple[str, bytes]]:
    """What git gets of a board at each step: an entry, one that follows, an erratum of the first.

    Hashes and signatures are blotted out in their length; trees are of hashes alone.
    """
    sent = board.send(ONE, values)
    bring_up_to_date(board.tick())
    board.publish(sent)
    bring_up_to_date(board.tick())
    board.enter(TWO, HIGHER, team="Other Team")
    bring_up_to_date(board.tick())
    board.correct(ONE, values)
    bring_up_to_date(board.tick())
    git = board.session.repository.git
    assert isinstance(git, MemoryGit)
    return [
        (kind, b"" if kind == "tree" else _RANDOM_TEXT.sub(lambda m: b"#" * len(m[0]), data))
        for kind, data in git.objects.values()
    ]


WITHHELD: Mapping[str, Row] = {
    "just below the best": nudge(LOW, 0, -0.01),
    "just above it": nudge(LOW, 0),
    "the same run": LOW,
    "far below": [0.0] * QUERIES,
}


@pytest.fixture(scope="module")
def first_steps(
    begun: ScoredBoard, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, bytes]]:
    board = begun.in_memory(tmp_path_factory.mktemp("first"))
    return public_steps(board, nudge(LOW, 1, 0.1))


@pytest.mark.parametrize("values", WITHHELD.values(), ids=WITHHELD)
def test_the_trace_of_a_withheld_score_is_the_same_whatever_it_is(
    board: ScoredBoard, first_steps: list[tuple[str, bytes]], values: Row
) -> None:
    """Files that change, their sizes and bytes, commits and times, before and after it."""
    assert public_steps(board, values) == first_steps


def test_a_published_score_has_its_trace(
    board: ScoredBoard, first_steps: list[tuple[str, bytes]]
) -> None:
    assert public_steps(board, HIGH) != first_steps
