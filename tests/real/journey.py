"""Real runs go the whole way of a submission, on a simulated calendar: draft to page."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from time import perf_counter
from typing import Literal

import msgspec
from real_collections import COLLECTIONS, Collection, Entry

from heldout.board.organiser.creation import create_board
from heldout.board.organiser.decide import Decision, publish
from heldout.board.organiser.inbox import ArrivalReceipt, receive
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.organiser.review import review
from heldout.board.participant.checks import check
from heldout.board.participant.draft import draft, draft_folder, draft_id, read_metadata
from heldout.board.participant.send import deliver, pack, submit
from heldout.board.rules.template import NewBoard
from heldout.board.scores.session import Session, accept_rules, begin_session
from heldout.board.scores.sets import load_sets
from heldout.board.store.arrivals import Arrival, find_in_folder, find_in_git
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.ids import SubmissionId
from heldout.trec.orders import Order

__all__ = [
    "OPENS",
    "PER_WINDOW",
    "WINDOW_DAYS",
    "Board",
    "Way",
    "decide",
    "look_at",
    "make_calendar",
    "open_board",
    "play",
    "play_all",
    "send",
    "take_in",
]

OPENS = date(2027, 1, 4)
WINDOW_DAYS = 30
PER_WINDOW = 2
INBOX_DAYS = 10  # an organiser looks every ten days
STARTS = 6  # days on which teams begin
Way = Literal["folder", "branch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board of a real collection, its vault, and where its participants work.

    Attributes:
        collection: what it was made from.
        repository: the board.
        vault_root: its vault.
        clone: the participants' clone.
        inbox: the folder that they may also send to.
        calendar: day -> the runs that arrive on it.
    """

    collection: Collection
    repository: Repository
    vault_root: Path
    clone: Repository
    inbox: Path
    calendar: Mapping[date, Sequence[Entry]]

    def ids(self) -> Mapping[SubmissionId, Entry]:
        """Every submission, in the order of the calendar."""
        return {
            draft_id(entry.run, today=day, embargoed=False): entry
            for day, entries in self.calendar.items()
            for entry in entries
        }

    def session(self, moment: datetime) -> Session:
        """The organiser's session at a moment."""
        vault = Vault.open(self.vault_root, board=self.repository.root)
        return begin_session(self.repository, vault, now=moment)


def make_calendar(entries: Sequence[Entry], *, primary: str) -> Mapping[date, Sequence[Entry]]:
    """Days and who submits on them: no team more than twice in any 30 days.

    Teams whose best run is weaker start earlier, so that there is progress to see; a team's third
    and fourth runs come 30 days after its first, and so on.
    """
    best: dict[str, float] = defaultdict(float)
    for entry in entries:
        best[entry.team] = max(best[entry.team], float(entry.scores[primary]))
    teams = sorted(best, key=lambda team: (best[team], team))
    days: dict[date, list[Entry]] = defaultdict(list)
    sent: dict[str, int] = defaultdict(int)
    for entry in sorted(entries, key=lambda entry: entry.run):
        start = INBOX_DAYS * (STARTS * teams.index(entry.team) // len(teams))
        later = WINDOW_DAYS * (sent[entry.team] // PER_WINDOW)
        days[OPENS + timedelta(days=start + later)].append(entry)
        sent[entry.team] += 1
    return dict(sorted(days.items()))


def open_board(
    collection: Collection,
    data: Path,
    folder: Path,
    *,
    entries: Sequence[Entry] | None = None,
    order: Order = "trec9",
) -> Board:
    """Found a board of a collection, edit its rules, clone it.

    Args:
        collection: topics, judgments, measures.
        data: the shared real data.
        folder: where board, vault, clone and inbox are made.
        entries: runs to be submitted; all by default.
        order: how the board orders documents.
    """
    root = folder / collection.name
    now = datetime.combine(OPENS, time(8), UTC)
    plan = NewBoard(
        name=collection.name,
        title=collection.title,
        task="Rank the documents of the collection for each topic.",
        opens=OPENS,
        envelope="age",
        recipients=(),
        measure=collection.views[collection.primary],
        order=order,
        depth=collection.depth,
        sets={"eval": False},
        primary="eval",
    )
    vault_root = folder / f"{collection.name}-vault"
    session = create_board(root, vault_root, plan, {"eval": collection.given(data)}, now=now)
    rules = _edited_rules(session.rules(), collection)
    (root / "board.toml").write_text(rules, encoding="utf-8")
    with session.vault.locked():
        accept_rules(session)
        bring_up_to_date(session)
    clone = folder / f"{collection.name}-clone"
    subprocess.run(["git", "clone", "-q", root, clone], check=True)
    given = collection.entries(data) if entries is None else entries
    return Board(
        collection=collection,
        repository=session.repository,
        vault_root=vault_root,
        clone=Repository(clone),
        inbox=folder / f"{collection.name}-inbox",
        calendar=make_calendar(given, primary=collection.primary),
    )


def _edited_rules(text: str, collection: Collection) -> str:
    """What an organiser edits by hand: figures of 4 decimals, short runs, several measures."""
    types = msgspec.json.encode(list(collection.types)).decode()
    views = "\n".join(
        f'[[views]]\nname = "{name}"\nset = "eval"\nmeasure = "{measure}"\n'
        for name, measure in collection.views.items()
    )
    head, _, rest = text.partition("[[views]]")
    policy = rest[rest.index("[policy]") :]
    edits = {
        "decimals = 3": "decimals = 4",
        "complete = true": "complete = false",
        'primary = "eval"': f'primary = "{collection.primary}"',
        'types = ["full ranking", "reranking"]': f"types = {types}",
    }
    for before, after in edits.items():
        if before not in head:
            raise ValueError(before)
        head = head.replace(before, after)
    return f"{head}{views}\n{policy}"


def play_all(data: Path, folder: Path) -> Mapping[str, tuple[Board, Mapping[str, float]]]:
    """All 188 runs, and 24 of them whole: collection -> its board and what took how long.

    Runs of TREC-COVID arrive in a folder, those of the Deep Learning track on git branches.
    """
    found = {}
    for name, collection in COLLECTIONS.items():
        board = open_board(collection, data, folder)
        way: Way = "branch" if name == "trec-dl-2021-passage" else "folder"
        found[name] = (board, play(board, way=way))
    return found


def play(board: Board, *, way: Way) -> Mapping[str, float]:
    """Every day of the calendar: teams seal and send, the organiser decides.

    Returns:
        Part of the way -> seconds that it took in all.
    """
    seconds: dict[str, float] = defaultdict(float)
    for day, entries in board.calendar.items():
        morning = datetime.combine(day, time(7), UTC)
        with _timed(seconds, "draft, check, seal, send"):
            ids = [send(board, entry, now=morning, way=way) for entry in entries]
        with _timed(seconds, "receive"):
            receipts = take_in(board, now=morning + timedelta(hours=2), way=way)
        _require({r.id for r in receipts if r.kind == "received"} == set(ids), receipts)
        with _timed(seconds, "open, scan, score, judge"):
            look_at(board, ids, now=morning + timedelta(hours=4))
        with _timed(seconds, "publish, rebuild"):
            decisions = decide(board, ids, now=morning + timedelta(hours=10))
        _require(all(decision.done for decision in decisions), decisions)
    return dict(seconds)


def send(board: Board, entry: Entry, *, now: datetime, way: Way) -> SubmissionId:
    """A team's part: draft, metadata, check, seal, send."""
    clone = board.clone
    name = draft_id(entry.run, today=now.date(), embargoed=False)
    draft(clone, name, {"eval": entry.path}, embargo_until=None)
    manifest = msgspec.structs.replace(
        read_metadata(clone, name),
        team=entry.team,
        institution=board.collection.title.split(",")[0],
        description=entry.run,
        type=entry.type,
        training_data="not told in the official table",
    )
    draft_folder(clone, name).write_whole("metadata.json", msgspec.json.encode(manifest))
    found = check(clone, name, now=now)
    _require(found.ok and found.manifest is not None, found)
    packed = pack(clone, name, manifest)
    if way == "folder":
        deliver(clone, packed, board.inbox)
    else:
        branch = submit(clone, name, packed, embargoed=False, now=now)
        clone.git.push("origin", f"+refs/heads/{branch}:refs/heads/{branch}")
    return name


def take_in(board: Board, *, now: datetime, way: Way) -> Sequence[ArrivalReceipt]:
    """The organiser's inbox: log what has arrived, bring the public log up to date."""
    session = board.session(now)
    with session.vault.locked():
        receipts = receive(session, _arrivals(board, way))
        bring_up_to_date(session)
    return receipts


def look_at(board: Board, ids: Sequence[SubmissionId], *, now: datetime) -> None:
    """The organiser reviews: opens, scans, scores, judges."""
    session = board.session(now)
    with session.vault.locked():
        sets = load_sets(session.repository, session.repository.spec(), vault=session.vault)
        for name in ids:
            review(session, sets, name)


def decide(board: Board, ids: Sequence[SubmissionId], *, now: datetime) -> Sequence[Decision]:
    """The organiser publishes what no finding stands against, and rebuilds once."""
    session = board.session(now)
    with session.vault.locked():
        sets = load_sets(session.repository, session.repository.spec(), vault=session.vault)
        why = "an official run of a shared task"
        decisions = [publish(session, review(session, sets, name), why=why) for name in ids]
        bring_up_to_date(session)
    return decisions


def _arrivals(board: Board, way: Way) -> Iterator[Arrival]:
    git = board.repository.git
    form = board.repository.spec().envelope
    if way == "folder":
        return find_in_folder(board.inbox, form)
    head = git.head()
    if head is None:
        raise ValueError(board.repository.root)
    return find_in_git(git, form, main=head)


@contextmanager
def _timed(sums: dict[str, float], part: str) -> Iterator[None]:
    """Adds the seconds of a block to a part's sum."""
    start = perf_counter()
    yield
    sums[part] += perf_counter() - start


def _require(holds: object, about: object) -> None:
    """A step of the journey that fails stops it, with what it said."""
    if not holds:
        raise RuntimeError(repr(about)[:4000])
