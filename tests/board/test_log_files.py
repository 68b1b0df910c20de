"""The public log of a large board lies in several files, and reads as if it were one."""

import subprocess
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from certain import sure
from hypothesis import given
from hypothesis import strategies as st
from sample_boards import measured
from scored_board import QUERIES, ScoredBoard, make_board

from heldout.board.log import reading
from heldout.board.log import reading as logs
from heldout.board.log.events import Entry, format_entry
from heldout.board.log.history import read_history
from heldout.board.log.reading import list_log_files, open_log, plan_log_files, read_public_log
from heldout.board.organiser.rebuild import Rebuilt, rebuild
from heldout.board.scores import public_log
from heldout.board.scores.public_log import find_public_log, plan_public_log
from heldout.board.scores.session import is_behind
from heldout.board.standings.standings import project
from heldout.board.store import repository as repository_of_boards
from heldout.board.store.repository import Repository
from heldout.errors import StoreError
from heldout.intake.board import PublicBoard
from memory_folder import MemoryFolder

_IN_FILE = 4


@pytest.fixture(autouse=True)
def few_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four events in place of ten thousand, and all is remembered."""
    monkeypatch.setattr(logs, "IN_FILE", _IN_FILE)
    monkeypatch.setattr(public_log, "_MANY", 0)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """Three entries, one under an embargo, in git; nothing public was written yet."""
    board = make_board(tmp_path_factory.mktemp("files"))
    board.baseline("bm25", [0.3] * QUERIES)
    until = (board.now + timedelta(days=30)).date()
    board.enter("20261101-open", [0.5] * QUERIES, team="One")
    board.enter("20261101-hidden", [0.6] * QUERIES, team="Two", until=until)
    board.enter("20261101-third", [0.4] * QUERIES, team="Three")
    board.session.repository.git.init()
    return board


@pytest.fixture
def board(template: ScoredBoard, tmp_path: Path) -> ScoredBoard:
    """A copy, rebuilt."""
    copy = template.copy(tmp_path / "copy")
    forget()
    rebuild(copy.tick())
    return copy


def forget() -> None:
    """As a new process begins."""
    logs._LOGS.clear()
    public_log._KNOWN.clear()


def folder(board: ScoredBoard) -> Path:
    return board.root / "board"


def log_of(board: ScoredBoard) -> tuple[Entry, ...]:
    return project(board.vault.entries(), now=board.now)


def check(board: ScoredBoard) -> None:
    """The files are those that have to be there, each with its own events; git has them."""
    lines = [format_entry(entry) for entry in log_of(board)]
    planned = plan_log_files(len(lines))
    for name, first, end in planned:
        assert (folder(board) / name).read_bytes() == b"".join(lines[first:end])
    session = board.session
    assert list_log_files(session.repository.files) == tuple(name for name, _, _ in planned)
    assert session.repository.log() == log_of(board)
    for _ in range(2):
        log = find_public_log(session.repository, session.vault)
        assert [*log.lines()] == lines
        starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
        assert [log.find(number) for number in range(len(lines) + 1)] == starts
        assert not is_behind(session)
        assert log.history == read_history(log_of(board))
        plan = plan_public_log(session.repository, session.vault, now=session.now)
        assert (plan.changed, plan.new, plan.history) == ({}, (), log.history)
        forget()
    head = sure(session.repository.git.head())
    assert session.repository.log_at(head) == b"".join(lines)


def rebuilt(board: ScoredBoard) -> Rebuilt:
    """After an hour."""
    return rebuild(board.tick())


@given(
    parts=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.integers(0, 90), st.integers(-1, 30)), max_size=8),
)
def test_several_files_are_one_stream(parts: list[bytes], steps: list[tuple[int, int]]) -> None:
    files, whole = MemoryFolder(Path("/nowhere")), BytesIO(b"".join(parts))
    names = [f"log/{number}" for number in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        files.write_whole(name, part)
    with open_log(files, names) as stream:
        for offset, size in steps:
            assert stream.seek(offset) == whole.seek(offset)
            assert stream.read(size) == whole.read(size)
            assert stream.tell() == whole.tell()
        stream.seek(0)
        whole.seek(0)
        assert stream.readlines() == whole.readlines()


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (0, [("log.jsonl", 0, 0)]),
        (4, [("log.jsonl", 0, 4)]),
        (5, [("log/00000004.jsonl", 0, 4), ("log.jsonl", 4, 5)]),
        (8, [("log/00000004.jsonl", 0, 4), ("log.jsonl", 4, 8)]),
        (9, [("log/00000004.jsonl", 0, 4), ("log/00000008.jsonl", 4, 8), ("log.jsonl", 8, 9)]),
    ],
)
def test_a_file_closes_with_the_next(events: int, expected: list[tuple[str, int, int]]) -> None:
    assert [tuple(file) for file in plan_log_files(events)] == expected


@given(
    events=st.integers(0, 40),
    figures=st.dictionaries(st.integers(0, 39), st.integers(0, 40), max_size=8),
)
def test_figures_of_many_entries_count_for_more(events: int, figures: dict[int, int]) -> None:
    """No file has more than its room, but for one event that is longer; no boundary ever moves."""
    every = [
        measured(*map(str, range(entries)), event=number)
        for number, entries in sorted(figures.items())
    ]
    files = plan_log_files(events, [one for one in every if one.event < events])
    assert [first for _, first, _ in files] == [0, *(end for _, _, end in files[:-1])]
    assert (files[-1].name, files[-1].end) == ("log.jsonl", events)
    for _, first, end in files:
        weights = [1 + figures.get(number, 0) // 4 for number in range(first, end)]
        assert end > first or events == 0
        assert sum(weights) <= _IN_FILE or len(weights) == 1
    before = plan_log_files(events - 1, [one for one in every if one.event < events - 1])
    assert events == 0 or files[: len(before) - 1] == before[:-1]


def test_a_year_of_daily_figures_fits_a_forge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "IN_FILE", 10_000)
    every = [measured(*map(str, range(10_000)), event=number) for number in range(20, 365 * 50, 50)]
    files = plan_log_files(365 * 50, every)
    assert max(sum(first <= one.event < end for one in every) for _, first, end in files) <= 4
    assert len(files) < logs._MOST_FILES


def test_the_files_are_the_log_day_after_day(board: ScoredBoard) -> None:
    """New events, an embargo that ends, and days on which nothing happens."""
    check(board)
    for days in (0, 10, 21, 40):
        board.now += timedelta(days=days)
        if days != 21:
            board.reject(board.send(f"20261101-day-{days}", [0.2] * QUERIES).submission.id)
        assert rebuilt(board).revealed == (("20261101-hidden",) if days == 21 else ())
        check(board)
        assert rebuild(board.session).commit is None


def test_a_publication_touches_the_last_files_alone(board: ScoredBoard) -> None:
    head = board.session.repository.git.head() or ""
    closed = sorted((folder(board) / "log").iterdir())
    assert len(closed) > 1
    before = {path: path.stat() for path in closed}
    board.reject(board.send("20261101-late", [0.2] * QUERIES).submission.id)
    told = rebuilt(board)
    assert {path: path.stat() for path in closed} == before
    command = ["git", "diff", "--name-only", head, sure(told.commit), "--", "log", "log.jsonl"]
    changed = subprocess.run(command, cwd=folder(board), capture_output=True, text=True, check=True)
    *_, closed_last, last = (file.name for file in plan_log_files(len(log_of(board))))
    assert {last} <= {*changed.stdout.split()} <= {closed_last, last}


def test_an_end_of_an_embargo_writes_only_where_a_line_changes(board: ScoredBoard) -> None:
    names = [file.name for file in plan_log_files(len(log_of(board)))]
    before = {name: (folder(board) / name).stat() for name in names}
    board.now += timedelta(days=31)
    assert rebuilt(board).revealed == ("20261101-hidden",)
    after = {name: (folder(board) / name).stat() for name in names}
    assert 0 < sum(before[name] != after[name] for name in names) < len(names)


def one_file(root: Path) -> None:
    """As heldout wrote it before."""
    names = list_log_files(Repository(root).files)
    data = b"".join((root / name).read_bytes() for name in names)
    (root / "log.jsonl").write_bytes(data)


def killed(root: Path) -> None:
    """A file was closed, and log.jsonl not yet written."""
    closed = sorted((root / "log").iterdir())
    (root / "log.jsonl").write_bytes(closed[-1].read_bytes())


def cut_elsewhere(root: Path) -> None:
    first, second, *_ = sorted((root / "log").iterdir())
    line, *rest = second.read_bytes().splitlines(keepends=True)
    first.write_bytes(first.read_bytes() + line)
    second.write_bytes(b"".join(rest))


def with_a_hole(root: Path) -> None:
    (root / "log" / "00000008.jsonl").unlink()


def edited(root: Path) -> None:
    path = root / "log" / "00000008.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"by":"', b'"by":"x', 1))


@pytest.mark.parametrize("change", [one_file, killed, cut_elsewhere, with_a_hole, edited])
def test_a_rebuild_puts_the_files_right(board: ScoredBoard, change: object) -> None:
    assert callable(change)
    change(folder(board))
    forget()
    repository = board.session.repository
    if change in (cut_elsewhere, with_a_hole, edited):
        with pytest.raises(StoreError, match=r"log\.jsonl:\d+"):
            repository.log()
    else:
        log = repository.log()
        assert log == log_of(board)[: len(log)]
    rebuilt(board)
    check(board)


def test_other_files_in_the_folder_are_never_read(board: ScoredBoard) -> None:
    there = len(log_of(board))
    for name in ("notes.txt", "99999996.jsonl", f"{(there // _IN_FILE + 1) * _IN_FILE:08d}.jsonl"):
        (folder(board) / "log" / name).write_text("{}\n")
    check(board)


def test_a_first_line_that_lies_about_its_number_ends_in_an_error(board: ScoredBoard) -> None:
    path = folder(board) / "log.jsonl"
    data = path.read_bytes()
    path.write_bytes(b'{"event":{"seq":999999999999,' + data[data.index(b'"at"') :])
    with pytest.raises(StoreError, match=r"log\.jsonl:\d+"):
        board.session.repository.log()


def test_too_many_files_are_not_read(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_MOST_FILES", 1)
    repository = board.session.repository
    *_, closed, last = (file.name for file in plan_log_files(len(log_of(board))))
    assert list_log_files(repository.files) == (closed, last)
    with pytest.raises(StoreError, match=r"log\.jsonl:\d+"):
        repository.log()


def test_files_of_a_log_share_a_limit(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = board.session.repository
    head = repository.git.head() or ""
    whole = repository.log_at(head) or b""
    monkeypatch.setattr(repository_of_boards, "_MOST_LOG", len(whole))
    assert repository.log_at(head) == whole
    monkeypatch.setattr(repository_of_boards, "_MOST_LOG", len(whole) - 1)
    with pytest.raises(StoreError):
        repository.log_at(head)


def test_a_clone_and_the_server_have_the_whole_log(board: ScoredBoard, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(folder(board)), str(clone)], check=True)
    assert Repository(clone).newest_log() == log_of(board)
    view = PublicBoard(clone, clock=lambda: board.now).view()
    assert [*view.history.submissions] == [*board.vault.history().submissions]
    root = tmp_path / "unpacked"
    root.mkdir()
    (root / "archive.zip").write_bytes(view.archive().data)
    subprocess.run(["python3", "-m", "zipfile", "-e", "archive.zip", "."], cwd=root, check=True)
    assert Repository(root).log() == log_of(board)


@pytest.mark.parametrize("chunk", [1, 50, 700, 1 << 20])
def test_any_size_of_block(board: ScoredBoard, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """As by looking at every event."""
    monkeypatch.setattr(reading, "_CHUNK", chunk)
    log, entries = board.vault.log(), board.vault.entries()
    names = [*board.vault.history().submissions]
    kinds = sorted({entry.event.kind for entry in entries})

    def plain(*wanted: str) -> list[Entry]:
        return [entry for entry in entries if entry.event.kind in wanted]

    for some in ([], kinds[:1], kinds[:3], kinds, [*kinds, *(f"kind-{n}" for n in range(9))]):
        assert [*log.select(*some)] == plain(*some)
    for some in ([], names[:1], names[1:], [*names, *(f"20261101-{n}" for n in range(9))]):
        about = [entry for entry in entries if entry.event.submission in some]
        assert [*log.select_about(some)] == about
    assert [*log.about_board()] == [entry for entry in entries if entry.event.submission is None]
    assert [*log.holding("files")] == [e for e in entries if b'"files":' in format_entry(e)]
    texts = [(None, e.get("board.toml")) for e in entries if "board.toml" in e.event.public]
    assert [*log.public_texts("board.toml")] == texts
    assert texts


def test_no_log_is_no_file() -> None:
    files = MemoryFolder(Path("/nowhere"))
    assert list_log_files(files) == ()
    assert read_public_log(files.find) is None
