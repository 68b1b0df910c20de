"""Everything public, made again from the log and the time: a crash in it costs nothing.

`rebuild` logs nothing. `bring_up_to_date` first logs what the rules ask for by now.

A public file is known by a digest of all that it is made from, and by its mark (`Folder.marks`): as
long as both are the same, it is neither made nor read again. The vault remembers them. A file that
somebody else changed has another mark, and is written again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

from heldout.board.log.events import check_clock, format_entry
from heldout.board.log.history import History
from heldout.board.log.reading import CLOSED, LOG, Log, read_log
from heldout.board.organiser.finals import EndStep, end_season
from heldout.board.participant.checks import check_tree_rules
from heldout.board.rules import changes, spec_file, template
from heldout.board.rules.spec import BoardSpec, Example
from heldout.board.scores import public_log, releasing
from heldout.board.scores.session import (
    NotedRules,
    Session,
    is_behind,
    list_unlogged,
    note_held_out,
)
from heldout.board.standings.overdue import (
    Overdue,
    list_due_ends,
    list_due_figures,
    list_overdue_at,
)
from heldout.board.standings.standings import Standings, current_standings, list_seasons, project
from heldout.board.store.git import AS_IT_IS, ATTRIBUTES, Author
from heldout.board.store.repository import (
    KEYS,
    LEADERBOARD,
    README,
    SPEC,
    TIMESTAMPS,
    Repository,
    WrittenPages,
)
from heldout.board.store.vault import Vault
from heldout.files.durable import Folder, Mark

if TYPE_CHECKING:
    from heldout.board.site.sections import BoardFacts

_MEMORY = "files"
_MANY = 100


class _Rendered(msgspec.Struct, frozen=True):
    """File -> what it was made from, and its mark then."""

    files: dict[str, bytes]


class KnownFiles:
    """The public files of a board in one rebuild."""

    def __init__(self, files: Folder, vault: Vault) -> None:
        """Recall what the last rebuild left.

        Args:
            files: the board's folder.
            vault: remembers.
        """
        self._files, self._vault = files, vault
        self._before = _recall(vault)
        self._folder, self._marks = "", dict[str, Mark]()
        self._made: dict[str, bytes] = {}
        self.same: set[str] = set()

    def is_same(self, path: str, made_of: bytes) -> bool:
        """Check that a file needs not be made again; notes what it is made from.

        Args:
            path: in the board.
            made_of: digest of everything that its bytes depend on.
        """
        known, mark = self._before.get(path), self._mark_of(path)
        same = known is not None and mark is not None and known == made_of + mark
        if same:
            self.same.add(path)
        else:
            self._made[path] = made_of
        return same

    def _mark_of(self, path: str) -> Mark | None:
        folder, _, name = path.rpartition("/")
        if folder != self._folder:  # files are asked about folder by folder
            self._folder, self._marks = folder, self._files.marks(folder)
        return self._marks.get(name)

    def remember(self) -> None:
        """Remember every file that was asked about; once all of them are written.

        One that was written just now is left out, and made again at the next call.
        """
        found = {path: self._before[path] for path in self.same}
        for path, made_of in self._made.items():
            if (mark := self._files.mark(path)) is not None:
                found[path] = made_of + mark
        if found != self._before and len(found) >= _MANY:
            self._vault.remember(_MEMORY, msgspec.msgpack.encode(_Rendered(found)))


def _recall(vault: Vault) -> dict[str, bytes]:
    try:
        data = vault.recall(_MEMORY)
        return {} if data is None else msgspec.msgpack.decode(data, type=_Rendered).files
    except (msgspec.MsgspecError, ValueError):
        return {}


_PUBLIC = (
    *(SPEC, README, ".gitignore", ATTRIBUTES, "keys", "queries", "qrels", "candidates"),
    *("submissions", LOG, CLOSED, LEADERBOARD, TIMESTAMPS),
    *template.WORKFLOW_PATHS.values(),
    *template.PAGE_PATHS.values(),
)
KEEPER = Author(name="heldout", email="heldout@localhost")
"""Author of a commit where git knows no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild left.

    Attributes:
        standings: the leaderboard of the moment.
        changed: how many public files changed.
        commit: the new commit, `None` where nothing differed.
        revealed: entries whose embargo has ended since the last commit.
        rules: the edited board.toml that this call logged, `None` where it logged none.
        unlogged: held-out files that are others than the log commits to, and wait for a reason.
        differences: the keys of board.toml that are not what the log has, where no vault is here.
        unknown: files in `leaderboard/` that heldout did not write; they are left alone.
        no_baseline: views in which no score can be published before they have a baseline.
        overdue: what only the vault can open although its day has come, where no vault is here.
        ends: the seasons whose end was logged by this call, or is due and waits.
    """

    standings: Standings
    changed: int
    commit: str | None
    revealed: tuple[str, ...] = ()
    rules: NotedRules | None = None
    unlogged: tuple[str, ...] = ()
    differences: tuple[changes.Difference, ...] = ()
    unknown: tuple[str, ...] = ()
    no_baseline: tuple[str, ...] = ()
    overdue: tuple[Overdue, ...] = ()
    ends: tuple[EndStep, ...] = ()


def end_due_seasons(session: Session) -> tuple[EndStep, ...]:
    """Publish the exact scores of every season that is over; what has to wait changes nothing.

    Args:
        session: its lock is held.
    """
    due = list_due_ends(session.history(), session.spec(), session.now.date())
    return tuple(end_season(session, ending) for ending in due)


def bring_up_to_date(session: Session) -> Rebuilt:
    """Log what is due by now, then make everything public again.

    Due are the commitment to held-out files that are new, the exact scores of seasons that are
    over, and the figures of the ranking that the rules let be published by now. An edit of
    board.toml is left alone.

    Args:
        session: its lock is held, and its clock was looked at (`organiser_session`).
    """
    rules = note_held_out(session) or session.accepted
    ends = end_due_seasons(session)
    if session.spec().trust is not None:
        public = public_log.plan_public_log(
            session.repository, session.vault, now=session.now
        ).history
        due = [*list_due_figures(session.history(), public, session.spec(), now=session.now)]
        if due:
            from heldout.board.scores.measuring import (  # noqa: PLC0415 - 0.3 s, mostly nothing is due
                log_figures,
            )

            log_figures(session, due)
    return replace(rebuild(session, rules=rules), ends=ends)


def rebuild(session: Session, *, rules: NotedRules | None = None) -> Rebuilt:
    """Make everything public again: sealed files, log, page, one commit. Nothing is logged.

    An embargo that ended is revealed here. The rules are those of the log.

    Args:
        session: its lock is held, and its clock was looked at (`organiser_session`).
        rules: edited rules that this call has logged, for `Rebuilt.rules`.
    """
    repository, vault = session.repository, session.vault
    committed = public_log.find_committed_log(repository, vault)
    public = public_log.plan_public_log(repository, vault, now=session.now)
    changed = int(
        repository.write_file(KEYS, template.format_recipients(session.spec().recipients))
    )
    changed += _write_missing(repository, session.spec())
    changed += _write_readme(session)
    known = KnownFiles(repository.files, vault)
    changed += _write_submissions(session, session.history(), known)
    standings, pages = _write_pages(repository, session.spec(), public, session.now, known)
    # Before the log is written: of the one that lies there only what is asked for is read.
    revealed = () if committed is None else public_log.list_revealed(committed, public)
    message = _message(session, committed, public, revealed)
    # The log comes last: that it is whole and committed says that all the rest is (is_behind).
    changed += public_log.write_public_log(repository, vault, public)
    commit = _commit(session, message, without=pages.unknown)
    known.remember()
    return Rebuilt(
        standings=standings,
        changed=changed + pages.changed,
        commit=commit,
        revealed=revealed,
        rules=rules,
        unlogged=list_unlogged(session),
        unknown=pages.unknown,
        no_baseline=releasing.list_without_baseline(session),
    )


def catch_up(session: Session, *, news: bool) -> Rebuilt:
    """Bring up to date where there is news or the public side is behind; else change nothing."""
    ends = end_due_seasons(session)
    if news or any(one.end for one in ends) or is_behind(session):
        rebuilt = bring_up_to_date(session)
        return replace(rebuilt, ends=ends or rebuilt.ends)
    public = public_log.plan_public_log(session.repository, session.vault, now=session.now)
    public_log.remember_public_log(session.vault, public)
    standings, _ = current_standings(public.history, session.spec(), now=session.now)
    return Rebuilt(
        standings=standings,
        changed=0,
        commit=None,
        unlogged=list_unlogged(session),
        no_baseline=releasing.list_without_baseline(session),
        ends=ends,
    )


def rebuild_public(repository: Repository, *, now: datetime) -> Rebuilt:
    """The page alone, from the public log: what anybody with a clone can make.

    What is sealed stays so; an embargo past its day is shown as `reveal due`. The rules are those
    of the log.

    Raises:
        InputError: board.toml contradicts what the log fixes, as `check_tree_rules` has it.
        StoreError: the public log is missing or damaged, or the clock is before its last event.
    """
    public = repository.log()
    spec = repository.spec()
    differences = check_tree_rules(repository, public)
    check_clock(public[-1], now)
    shown = project(public, now=now)
    log = read_log(lambda: BytesIO(b"".join(map(format_entry, shown))), path=LOG)
    standings, pages = _write_pages(repository, spec, log, now)
    return Rebuilt(
        standings=standings,
        changed=pages.changed,
        commit=None,
        differences=differences,
        unknown=pages.unknown,
        overdue=list_overdue_at(public, now=now),
    )


def _write_missing(repository: Repository, spec: BoardSpec) -> int:
    """Return what a board has beside its data; a file that lies there may be the organisers' own.

    The forge's check, and that every clone gets the files as they are.
    """
    files = {ATTRIBUTES: AS_IT_IS, **template.workflow_files(spec.forge, install=spec.install)}
    return sum(
        repository.write_file(path, text)
        for path, text in files.items()
        if not repository.files.exists(path)
    )


def _write_readme(session: Session) -> int:
    """README.md by the rules of today, unless an organiser has edited or removed it."""
    files = session.repository.files
    if not files.exists(README):
        return 0
    rules = [spec_file.parse_spec(text.encode()) for _, text in session.history().rules]
    if not template.is_generated_readme(files.read(README), rules):
        return 0
    return int(session.repository.write_file(README, template.format_readme(session.spec())))


def _write_submissions(session: Session, history: History, known: KnownFiles) -> int:
    """The sealed files of published submissions, as they were received."""
    return sum(
        session.repository.write_file(path, session.vault.sealed(digest).read_bytes())
        for submission in history.submissions.values()
        if submission.status == "published"
        for name, digest in submission.files.items()
        if not known.is_same(path := f"submissions/{name}", bytes.fromhex(digest))
    )


def _write_pages(
    repository: Repository,
    spec: BoardSpec,
    public: Log | public_log.PublicLog,
    now: datetime,
    known: KnownFiles | None = None,
) -> tuple[Standings, WrittenPages]:
    # With the charts a seventh of all that a command loads, and mostly nothing is drawn.
    from heldout.board.site.pages import list_sources  # noqa: PLC0415 - drawing pages is slow to load

    history = public.history
    seasons = list_seasons(history, spec, now=now)
    standings, here = current_standings(history, spec, now=now)
    facts = _facts(repository, here, public, standings)
    pages: dict[str, bytes] = {}
    same: set[str] = set()
    for one in list_sources(standings, spec, facts, seasons=seasons):
        found = [known.is_same(path, one.digest) for path in one.paths if known and one.digest]
        if found and all(found):
            same.update(one.paths)
        else:
            pages |= one.make()
    return standings, repository.write_leaderboard(pages, same=same)


def _facts(
    repository: Repository,
    spec: BoardSpec,
    public: Log | public_log.PublicLog,
    standings: Standings,
) -> "BoardFacts":
    from heldout.board.site import sections  # noqa: PLC0415 - drawing pages is slow to load

    counts = _count_judged(spec, standings)
    sets = {
        name: sections.SetFacts(
            queries=len(repository.queries(files.queries).texts),
            judged=counts.get(name),
        )
        for name, files in spec.sets.items()
        if repository.files.is_file(files.queries)  # the record of an old board has none
    }
    history = public.history
    return sections.BoardFacts(
        sets=sets,
        events=len(public),
        head=public.chain.hash,
        example=spec.example or _example(repository, spec),
        repository=spec.repository,
        home=spec.home,
        trust=sections.list_trust(public.about_board(), heads=public.heads),
        closed=history.closed,
        versions=tuple(_list_versions(history, standings)),
    )


def _list_versions(history: History, standings: Standings) -> Iterator[tuple[date, BoardSpec]]:
    """The rules that held while somebody submitted, those of the first submission first."""
    received = [one.received for one in history.submissions.values() if not one.baseline]
    first = min(received, default=None)
    if first is None:
        return
    ended = [moment for moment, _ in history.rules[1:]]
    for (moment, text), end in zip_longest(history.rules, ended):
        spec = spec_file.parse_spec(text.encode(), path="the rules in the log")
        season = next((one for one in spec.seasons if one.name == standings.season), None)
        if end is None or end > first:
            yield moment.date(), spec if season is None else spec.in_season(season)


def _count_judged(spec: BoardSpec, standings: Standings) -> Mapping[str, int]:
    """Query set -> queries that a mean is taken over, by the view that ranks or the set's first.

    Another view of the same set may be of some of its queries only.
    """
    ranks = next(view for view in spec.views if view.name == spec.primary)
    others = [view for view in spec.views if view.name != spec.primary and view.set != ranks.set]
    return {
        view.set: row.counts[view.name]
        for view in (*reversed(others), ranks)
        for row in standings.every
        if view.name in row.counts
    }


def _example(repository: Repository, spec: BoardSpec) -> Example | None:
    """The first query with public labels that has a relevant document."""
    for files in spec.sets.values():
        if files.qrels is None or not repository.files.is_file(files.qrels):
            continue
        qrels = repository.qrels(files.qrels).judgments
        for query, text in repository.queries(files.queries).texts.items():
            relevant = [d for d, grade in qrels.get(query, {}).items() if grade > 0]
            if relevant:
                return Example(query=text, document=relevant[0])
    return None


def _public_paths(spec: BoardSpec) -> tuple[str, ...]:
    paths = (*_PUBLIC, *changes.list_open(spec))
    registration = spec.registration
    if registration is None or registration.agreement is None:
        return paths
    return (*paths, registration.agreement)


def _message(
    session: Session,
    before: Log | None,
    after: public_log.PublicLog,
    revealed: tuple[str, ...],
) -> str:
    """Return what a commit brings, told from the logs: the same after a crash."""
    parts = [f"revealed {', '.join(revealed)}"] if revealed else []
    fresh = () if before is None else tuple(after.whole.entries(len(before)))
    if fresh:
        last = fresh[-1].event
        same = {e.event.submission for e in fresh if e.event.kind == last.kind}
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        about = last.submission or session.spec().name
        parts.append(f"{last.kind} {about}{more} (event {last.seq})")
    return "; ".join(parts) or f"rebuilt {session.spec().name}"


def _commit(session: Session, message: str, *, without: Sequence[str]) -> str | None:
    git = session.repository.git
    if not git.is_repository():
        return None
    author = git.configured_author() or KEEPER
    return git.commit_paths(
        _public_paths(session.spec()),
        without=without,
        message=message,
        author=author,
        at=session.now,
    )
