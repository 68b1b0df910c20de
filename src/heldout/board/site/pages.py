"""The pages of a board as data and as bytes: equal standings, rules and facts give equal files.

Each template receives exactly the fields of its page, and nothing else.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from heldout.answers.text import clean
from heldout.board.log.final import Measured
from heldout.board.rules.spec import BoardSpec, Example, QuerySet, Season
from heldout.board.rules.template import draft_command
from heldout.board.site import exports, rows, sections
from heldout.board.site.entries import EntryPage, EntrySource, digest_code, list_entry_sources
from heldout.board.site.figures import Figure, make_cost_figures, make_figures
from heldout.board.standings.standings import (
    Row,
    SeasonStandings,
    Standings,
    listing_views,
    rank_listed,
    read_pairs,
)
from heldout.charts.axes import day_words
from heldout.charts.svg import cut
from heldout.errors import plural

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPage:
    """`leaderboard/index.html`.

    Attributes:
        frame: around it.
        lead: what a system has to do, in a line or two.
        task: the same in full where that is longer, else "".
        facts: short facts about the board, in their order.
        waiting: how many submissions wait for a decision.
        example: a query with its answer.
        standing: who leads, as HTML.
        ends: what comes at the season's end, or came; `None` for nothing.
        table: the entries, or the first page of them.
        final: the section "Final", `None` before finalists are named.
        listings: the standings of views that list only some entries.
        empty: whether there is no entry yet, baselines aside.
        figures: the charts.
        record: whether it shows an old board, which takes nothing any more.
        closed: whether it was closed for good, and takes nothing any more either.
        spec: the board's rules.
        sets: its query sets, those of a known size.
        draft: the command by which a submission begins.
        rules: the board's rules in words.
        ranking_trust: the section "Confidence", `None` where the board tells nothing of it.
        trust: what others can check the organisers by, in order.
        repository: address of its repository, or "".
        seasons: whether there is a page of seasons.
    """

    frame: sections.Frame
    lead: str
    task: str
    facts: tuple[str, ...]
    waiting: int
    example: Example | None
    standing: str
    ends: sections.SeasonEndSection | None
    table: rows.StandingsTable
    final: sections.FinalSection | None
    listings: tuple[sections.Listing, ...]
    empty: bool
    figures: tuple[Figure, ...]
    record: bool
    closed: bool
    spec: BoardSpec
    sets: Mapping[str, QuerySet]
    draft: str
    rules: tuple[sections.RuleText, ...]
    ranking_trust: sections.RankingTrust | None
    trust: tuple[sections.TrustLine, ...]
    repository: str
    seasons: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPage:
    """`leaderboard/rows-2.html` and so on: how a long table goes on.

    It has nothing that every publication changes, as the day and the number of entries: one stays
    as it is until its own rows change.

    Attributes:
        frame: around it.
        table: the entries on this page.
        ranked, unranked: its rows as HTML, which a script beside the page has too; "" before that
            is made.
    """

    frame: sections.Frame
    table: rows.StandingsTable
    ranked: str = ""
    unranked: str = ""


def make_board_page(
    standings: Standings,
    spec: BoardSpec,
    facts: sections.BoardFacts,
    *,
    table: rows.StandingsTable | None = None,
) -> BoardPage:
    """The page of the whole board.

    Args:
        standings: of the board.
        spec: its rules.
        facts: its sizes and addresses.
        table: its `make_table`, where that is there already.

    Raises:
        SetupError: the `site` extra is not installed and there is a chart to draw.
    """
    table = rows.make_table(standings, spec) if table is None else table
    shown = rows.public_rows(standings)
    ranked = tuple(row for row in shown if not row.unranked)
    main = tuple(column for column in table.columns if not column.further)
    standing = say_standing(
        table.rows,
        main[0],
        spec.opens,
        standings.as_of.date(),
        unranked=table.unranked,
        measured=standings.measured,
    )
    title, task = clean(spec.title), clean(spec.task)
    lead = _first_sentences(task)
    return BoardPage(
        frame=sections.make_frame(title, standing.striptags(), standings, spec, facts),
        lead=lead,
        task="" if lead == task else task,
        facts=(
            *([f"Season {clean(standings.season)}"] if standings.season else []),
            _say_open(spec, standings.as_of.date(), facts.closed),
            _say_entries(shown),
            *_say_queries(spec, facts),
        ),
        waiting=standings.waiting,
        example=_example(facts.example),
        standing=standing,
        ends=sections.make_season_end(standings, spec),
        table=rows.cut_table(table)[0],
        final=sections.make_final(standings, spec),
        listings=sections.make_listings(standings, spec),
        empty=all(row.baseline for row in shown),
        figures=(
            *make_figures(
                standings,
                ranked,
                main,
                bar=spec.baselines.bar,
                one_by_one=spec.kind == "sequential",
            ),
            *make_cost_figures(ranked, main),
        ),
        record=rows.is_record(standings),
        closed=facts.closed is not None,
        spec=spec,
        sets={key: queries for key, queries in spec.sets.items() if key in facts.sets},
        draft=draft_command(
            map(clean, spec.sets), programs=spec.programs is not None and spec.programs.required
        ),
        rules=sections.list_rules(spec, facts.versions),
        ranking_trust=sections.make_ranking_trust(standings, table.rows, spec, closed=facts.closed),
        trust=facts.trust,
        repository=rows.safe_link(facts.repository),
        seasons=bool(spec.seasons),
    )


def make_rows_pages(
    table: rows.StandingsTable, standings: Standings, spec: BoardSpec, facts: sections.BoardFacts
) -> tuple[RowsPage, ...]:
    """The pages on which a long table goes on; none where it is short.

    Args:
        table: of the board.
        standings: of the board.
        spec: its rules.
        facts: its sizes and addresses.
    """
    title = clean(spec.title)
    return tuple(
        RowsPage(
            frame=sections.make_frame(
                f"{part.leaf.words} \u2013 {title}",
                f"Entries {part.leaf.words} by {part.columns[0].title}",
                standings,
                spec,
                facts,
            ),
            table=part,
        )
        for part in rows.cut_table(table)[1:]
        if part.leaf is not None
    )


def _say_open(spec: BoardSpec, today: date, closed: datetime | None) -> str:
    if closed is not None:
        return f"Closed for good on {day_words(closed)}"
    if today < spec.opens:
        return f"Opens on {day_words(spec.opens)}"
    if spec.closes is None:
        return f"Open since {day_words(spec.opens)}"
    if today <= spec.closes:
        return f"Open until {day_words(spec.closes)}"
    return f"Closed since {day_words(spec.closes)}"


def _say_entries(shown: tuple[Row, ...]) -> str:
    entries = [row for row in shown if not row.baseline]
    teams = {row.identity.team for row in entries if row.identity is not None}
    anonymous = sum(row.embargoed for row in entries)
    parts = [plural(len(entries), "entry", "entries")]
    if teams:
        parts.append(plural(len(teams), "team"))
    if anonymous:
        parts.append(f"{anonymous} anonymous")
    return ", ".join(parts)


def _say_queries(spec: BoardSpec, facts: sections.BoardFacts) -> list[str]:
    name = spec.view(spec.primary).set
    sizes = facts.sets.get(name)
    if sizes is None:
        return []
    judged = sizes.queries if sizes.judged is None else sizes.judged
    held = "held-out " if spec.sets[name].held_out else ""
    named = f" ({clean(name)})" if rows.make_columns(spec)[0].only_set else ""
    return [plural(judged, f"{held}query", f"{held}queries") + named]


def _first_sentences(task: str) -> str:
    """As many whole sentences as a line or two have room for, so that the table stays in sight."""
    most = 160
    if len(task) <= most:
        return task
    end = task.rfind(". ", 0, most)
    return cut(task, most) if end < 0 else task[: end + 1]


def _example(example: Example | None) -> Example | None:
    if example is None:
        return None
    most = 280
    return Example(
        query=cut(clean(example.query), most),
        document=clean(example.document),
        text=cut(clean(example.text), most),
    )


def say_standing(
    table: Sequence[rows.TableRow],
    column: rows.ViewColumn,
    opens: date,
    today: date,
    *,
    unranked: Sequence[rows.TableRow] = (),
    measured: Measured | None = None,
) -> "Markup":
    """Return who leads, by how much, and what that is worth, as HTML.

    Args:
        table: the table, best first, baselines in their places.
        column: the view that ranks.
        opens: the board's first day.
        today: the day of the page.
        unranked: the entries without a rank.
        measured: what was published of the ranking beside the scores.
    """
    entries = [row for row in table if not row.row.baseline]
    baseline = next((row for row in table if row.row.baseline), None)
    scores = [Decimal(row.primary.text) for row in entries[:2]]
    floor = None if baseline is None or not entries else Decimal(baseline.primary.text)
    made: Markup = rows.read_template("standing.html").module.standing(  # type: ignore[attr-defined]  # a template macro
        entries,
        baseline,
        unranked,
        column,
        opens,
        today,
        gap=scores[0] - scores[-1] if scores else None,
        unbeaten=floor is not None and scores[0] <= floor,
        lead=_compare_leader(entries, measured),
    )
    return made


def _compare_leader(entries: Sequence[rows.TableRow], measured: Measured | None) -> dict[str, Any]:
    """Return how many entries the leader was tested against, and how many it is ahead of.

    Also `tied`, the tested ones that may lead as well, and `like`, those that were not tested.
    """
    ranges = None if measured is None else measured.figures.ranges
    if measured is None or ranges is None or not entries or entries[0].id not in measured.entries:
        return {"tested": None, "untested": ranges is None}
    leader, ids = entries[0].id, measured.entries
    apart = read_pairs(measured.figures.alike, ids)[leader]
    tested, low = len(ids) - 1 - len(apart), dict(zip(ids, ranges.low, strict=True))
    first = [row for row in entries[1:] if low.get(row.id) == 1]
    return {
        "tested": tested,
        "ahead": len(ids) - ranges.high[ids.index(leader)],  # of so many, significantly
        "every": len(entries) == len(ids) == tested + 1,
        "tied": [row for row in first if row.id not in apart],
        "like": [row for row in first if row.id in apart],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonsPage:
    """`leaderboard/seasons.html`.

    Attributes:
        frame: around it.
        seasons: the latest first.
    """

    frame: sections.Frame
    seasons: tuple[sections.Listing, ...]


def make_seasons_page(
    seasons: Sequence[SeasonStandings],
    spec: BoardSpec,
    facts: sections.BoardFacts,
    *,
    standings: Standings,
) -> SeasonsPage:
    """The page of all seasons.

    Args:
        seasons: the latest first.
        spec: the board's rules.
        facts: its sizes and addresses.
        standings: of the season that runs.
    """
    said = f"{plural(len(seasons), 'season')} of {clean(spec.title)}"
    return SeasonsPage(
        frame=sections.make_frame(f"Seasons – {clean(spec.title)}", said, standings, spec, facts),
        seasons=tuple(_table(one, spec, facts) for one in seasons),
    )


def _season_path(season: Season) -> str:
    """Of a season's CSV and JSON, below `leaderboard/`, without `.csv` and `.json`."""
    return f"seasons/{season.name}"


def _table(one: SeasonStandings, spec: BoardSpec, facts: sections.BoardFacts) -> sections.Listing:
    here = spec.in_season(one.season)
    made = sections.make_listing(
        one.standings,
        here,
        anchor=f"season-{one.season.name}",
        title=clean(one.season.name),
        path=_season_path(one.season),
    )
    marked = rows.add_marks(made.rows, one.standings)
    entries = sum(not row.row.baseline for row in (*marked, *made.unranked))
    return replace(
        made,
        rows=marked,
        days=f"{_say_days(one.season)}; {plural(entries, 'entry', 'entries')}",
        trust=sections.make_ranking_trust(one.standings, marked, here, closed=facts.closed),
        ends=sections.make_season_end(one.standings, here),
    )


def _say_days(season: Season) -> str:
    if season.closes is None:
        return f"Since {day_words(season.opens)}"
    return f"{day_words(season.opens)} to {day_words(season.closes)}"


TEMPLATES: Mapping[type, str] = {
    BoardPage: "board.html",
    EntryPage: "entry.html",
    RowsPage: "rows.html",
    SeasonsPage: "seasons.html",
}

STATIC = ("heldout.css", "heldout.js")
"""Files that every page links to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """What some files of `leaderboard/` are made from.

    Attributes:
        paths: from the board's root.
        digest: of all that they depend on; b"" for files that every publication changes.
        make: makes them, path -> bytes.
    """

    paths: tuple[str, ...]
    digest: bytes
    make: Callable[[], Mapping[str, bytes]]


def render_board(
    standings: Standings,
    spec: BoardSpec,
    facts: sections.BoardFacts,
    *,
    seasons: Sequence[SeasonStandings] = (),
) -> dict[str, bytes]:
    """Every file of `leaderboard/`: path from the board's root -> bytes; see `list_sources`."""
    sources = list_sources(standings, spec, facts, seasons=seasons)
    return {path: data for one in sources for path, data in one.make().items()}


def list_sources(
    standings: Standings,
    spec: BoardSpec,
    facts: sections.BoardFacts,
    *,
    seasons: Sequence[SeasonStandings] = (),
) -> Iterator[PageSource]:
    """List what every file of `leaderboard/` is made from; others that lie there are old.

    Args:
        standings: the rows of the day, of the latest season if there are any; what an embargo
            hides is withheld whatever they hold.
        spec: the board's rules.
        facts: its sizes and addresses.
        seasons: those that have begun, the latest first.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    here = spec.in_season(seasons[0].season) if seasons else spec
    table = rows.make_table(standings, here)
    files = {
        **_render_standings("leaderboard", standings, here),
        "index.html": _render(make_board_page(standings, here, facts, table=table)),
        **_figures_file(standings),
    }
    for view in listing_views(here):
        own = rank_listed(standings, view)
        files |= _render_standings(sections.listing_path(view), own, sections.rules_of(here, view))
    if seasons:
        page = make_seasons_page(seasons, spec, facts, standings=standings)
        files["seasons.html"] = _render(page)
    boards = [(one.standings, spec.in_season(one.season)) for one in seasons]
    boards = boards or [(standings, here)]
    files[exports.FEED] = exports.format_feed(boards, spec, facts)
    for one, (_, rules) in zip(seasons, boards, strict=False):
        files |= _figures_file(one.standings)
        files |= _render_standings(_season_path(one.season), one.standings, rules)
    for name in STATIC:
        files[f"static/{name}"] = _read(name)
    files[".nojekyll"] = b""  # else GitHub, for a branch with these files, would run Jekyll on it
    yield _source(b"", lambda: files, *files)
    yield from _list_rows(table, standings, here, facts)
    shown: set[str] = set()  # a baseline may be in several seasons: its page is of the latest
    for own, rules in boards:
        for entry in list_entry_sources(own, spec=rules, facts=facts):
            if entry.id not in shown:
                path = f"entries/{rows.file_stem(entry.id)}.html"
                yield _source(entry.digest, partial(_render_entry, path, entry), path)
        shown.update(row.id for row in own.every)


def _source(digest: bytes, make: Callable[[], Mapping[str, bytes]], *paths: str) -> PageSource:
    """Return what makes some files, by their paths in `leaderboard/`."""
    return PageSource(
        paths=tuple(f"leaderboard/{path}" for path in paths),
        digest=digest,
        make=lambda: {f"leaderboard/{path}": data for path, data in make().items()},
    )


def _render_standings(path: str, standings: Standings, spec: BoardSpec) -> dict[str, bytes]:
    return {
        f"{path}.csv": exports.format_csv(standings, spec),
        f"{path}.json": exports.format_json(standings, spec),
    }


def _figures_file(standings: Standings) -> dict[str, bytes]:
    data = sections.format_figures(standings)
    return {} if data is None else {sections.figures_file(standings): data}


def _render_entry(path: str, entry: EntrySource) -> dict[str, bytes]:
    return {path: _render(entry.make())}


def _list_rows(
    table: rows.StandingsTable, standings: Standings, spec: BoardSpec, facts: sections.BoardFacts
) -> Iterator[PageSource]:
    """List how a long table goes on: pages, and the same rows for the script of the first page.

    A page opened from a folder may read no other page, but a script.
    """
    pages = make_rows_pages(table, standings, spec, facts)
    if not pages:
        return
    ids = (row.id for row in rows.public_rows(standings))
    digests = dict(zip(ids, rows.digest_rows(standings), strict=True))
    common = _digest_table(pages[0].table)
    for page in pages:
        if (leaf := page.table.leaf) is not None:
            digest = _digest_page(page, digests, common)
            yield _source(digest, partial(_render_rows, page, leaf), leaf.href, leaf.script)


def _render_rows(page: RowsPage, leaf: rows.Leaf) -> dict[str, bytes]:
    macros = rows.read_template("table.html").module
    ranked, unranked = macros.rows_of(page.table), macros.unranked_of(page.table)  # type: ignore[attr-defined]  # template macros
    texts = (msgspec.json.encode(str(part)).decode() for part in (ranked, unranked))
    return {
        leaf.href: _render(replace(page, ranked=ranked, unranked=unranked)),
        leaf.script: f"heldoutRows({leaf.number}, {', '.join(texts)});\n".encode(),
    }


def _digest_table(table: rows.StandingsTable) -> bytes:
    """Of what all pages of a table have in common; `table` is one of them."""
    common = {field.name: getattr(table, field.name) for field in fields(table)}
    common |= {"rows": (), "unranked": (), "leaf": None}
    # What the pages do not have: which rows the last one has, and the total.
    common |= {"leaves": [leaf.href for leaf in table.leaves], "total": 0}
    data = msgspec.msgpack.encode(common, enc_hook=lambda _code: None, order="deterministic")
    return hashlib.sha256(digest_code() + data).digest()


def _digest_page(page: RowsPage, digests: Mapping[str, bytes], common: bytes) -> bytes:
    """Of all that a page of rows and its script depend on.

    Args:
        page: it has neither the day nor the head of the log.
        digests: id -> a digest of what the row holds, but for its rank.
        common: `_digest_table`.
    """
    table, frame = page.table, page.frame
    listed = [
        (digests[row.id], row.rank, row.star, row.span, row.lead_end)
        for row in (*table.rows, *table.unranked)
    ]
    head = (table.leaf, frame.title, frame.summary, frame.board, len(table.unranked))
    data = msgspec.msgpack.encode((common, *head, listed))
    return hashlib.sha256(data).digest()


def _render(page: BoardPage | EntryPage | RowsPage | SeasonsPage) -> bytes:
    """The template of the page gets the page's fields by their names."""
    template = rows.read_template(TEMPLATES[type(page)])
    text: str = template.render({field.name: getattr(page, field.name) for field in fields(page)})
    return text.encode()


def _read(name: str) -> bytes:
    room = "heldout.answers" if name == "heldout.css" else "heldout.board.site"
    return resources.files(room).joinpath("static", name).read_bytes()
