"""The pages as data: each template receives exactly the fields of its page, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from heldout.answers.text import clean
from heldout.board.log.final import Measured
from heldout.board.rules.spec import BoardSpec, Example, QuerySet
from heldout.board.rules.template import draft_command
from heldout.board.site.figures import Figure, make_cost_figures, make_figures
from heldout.board.site.rows import (
    StandingsTable,
    TableRow,
    ViewColumn,
    cut_table,
    is_record,
    make_columns,
    make_table,
    public_rows,
)
from heldout.board.site.rules import (
    BoardFacts,
    RuleText,
    TrustLine,
    list_rules,
)
from heldout.board.site.sections import (
    FinalSection,
    Listing,
    RankingTrust,
    SeasonEndSection,
    make_final,
    make_listings,
    make_ranking_trust,
    make_season_end,
    say_label_changes,
)
from heldout.board.site.words import (
    count,
    read_template,
    safe_link,
)
from heldout.board.standings.standings import Row, Standings, read_pairs
from heldout.charts.axes import day_words
from heldout.charts.svg import cut

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What every page has around its content.

    Attributes:
        title: of the browser's tab.
        summary: one sentence for search engines and previews.
        root: the way from the page to `leaderboard/`, "" or "../".
        board: title of the board.
        as_of: day of the standings, in words.
        moment: the same as `2026-11-20T17:10:00Z`.
        events: length of the public log, in words.
        head: hash of its last event.
    """

    title: str
    summary: str
    root: str
    board: str
    as_of: str
    moment: str
    events: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPage:
    """`leaderboard/index.html`.

    Attributes:
        frame: around it.
        lead: what a system has to do, in a line or two.
        task: the same in full where that is longer, else "".
        facts: short facts about the board, in their order.
        decision_times: how long a decision takes and how many wait, in words; may be empty.
        example: a query with its answer.
        standing: who leads, as HTML.
        ends: what comes at the season's end, or came; `None` for nothing.
        table: the entries, or the first page of them.
        changes: what other labels change in the ranking, in sentences.
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

    frame: Frame
    lead: str
    task: str
    facts: tuple[str, ...]
    decision_times: str
    example: Example | None
    standing: str
    ends: SeasonEndSection | None
    table: StandingsTable
    changes: tuple[str, ...]
    final: FinalSection | None
    listings: tuple[Listing, ...]
    empty: bool
    figures: tuple[Figure, ...]
    record: bool
    closed: bool
    spec: BoardSpec
    sets: Mapping[str, QuerySet]
    draft: str
    rules: tuple[RuleText, ...]
    ranking_trust: RankingTrust | None
    trust: tuple[TrustLine, ...]
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

    frame: Frame
    table: StandingsTable
    ranked: str = ""
    unranked: str = ""


def make_board_page(
    standings: Standings, spec: BoardSpec, facts: BoardFacts, *, table: StandingsTable | None = None
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
    table = make_table(standings, spec) if table is None else table
    shown = public_rows(standings)
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
        frame=make_frame(title, standing.striptags(), standings, spec, facts),
        lead=lead,
        task="" if lead == task else task,
        facts=(
            *([f"Season {clean(standings.season)}"] if standings.season else []),
            _say_open(spec, standings.as_of.date(), facts.closed),
            _say_entries(shown),
            *_say_queries(spec, facts),
        ),
        decision_times=_say_decision_times(standings),
        example=_example(facts.example),
        standing=standing,
        ends=make_season_end(standings, spec),
        table=cut_table(table)[0],
        changes=say_label_changes(ranked, spec),
        final=make_final(standings, spec),
        listings=make_listings(standings, spec),
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
        record=is_record(standings),
        closed=facts.closed is not None,
        spec=spec,
        sets={key: queries for key, queries in spec.sets.items() if key in facts.sets},
        draft=draft_command(
            map(clean, spec.sets), programs=spec.programs is not None and spec.programs.required
        ),
        rules=list_rules(spec, facts.versions),
        ranking_trust=make_ranking_trust(standings, table.rows, spec, closed=facts.closed),
        trust=facts.trust,
        repository=safe_link(facts.repository),
        seasons=bool(spec.seasons),
    )


def make_rows_pages(
    table: StandingsTable, standings: Standings, spec: BoardSpec, facts: BoardFacts
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
            frame=make_frame(
                f"{part.leaf.words} \u2013 {title}",
                f"Entries {part.leaf.words} by {part.columns[0].title}",
                standings,
                spec,
                facts,
            ),
            table=part,
        )
        for part in cut_table(table)[1:]
        if part.leaf is not None
    )


def make_frame(
    title: str,
    summary: str,
    standings: Standings,
    spec: BoardSpec,
    facts: BoardFacts,
    *,
    root: str = "",
) -> Frame:
    """Return what stands around a page."""
    moment = standings.as_of.astimezone(UTC)
    return Frame(
        title=title,
        summary=summary,
        root=root,
        board=clean(spec.title),
        as_of=day_words(moment),
        moment=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        events=count(facts.events, "event"),
        head=facts.head,
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


def _say_entries(rows: tuple[Row, ...]) -> str:
    entries = [row for row in rows if not row.baseline]
    teams = {row.identity.team for row in entries if row.identity is not None}
    anonymous = sum(row.embargoed for row in entries)
    parts = [count(len(entries), "entry", "entries")]
    if teams:
        parts.append(count(len(teams), "team"))
    if anonymous:
        parts.append(f"{anonymous} anonymous")
    return ", ".join(parts)


def _say_queries(spec: BoardSpec, facts: BoardFacts) -> list[str]:
    name = spec.view(spec.primary).set
    sizes = facts.sets.get(name)
    if sizes is None:
        return []
    judged = sizes.queries if sizes.judged is None else sizes.judged
    held = "held-out " if spec.sets[name].held_out else ""
    named = f" ({clean(name)})" if make_columns(spec)[0].only_set else ""
    return [count(judged, f"{held}query", f"{held}queries") + named]


def _say_decision_times(standings: Standings) -> str:
    said = []
    if standings.decision_days is not None:
        said.append(f"median decision {_say_days(standings.decision_days)}")
    if standings.waiting:
        said.append(f"{standings.waiting} waiting")
    return ", ".join(said)


def _say_days(days: float) -> str:
    """Days to one digit below two, whole from there on."""
    if days < 1:
        return "within a day"
    text = f"{days:.0f}" if days >= 2 else f"{days:.1f}".removesuffix(".0")  # noqa: PLR2004 - two days, said above
    return f"{text} day" if text == "1" else f"{text} days"


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
    rows: Sequence[TableRow],
    column: ViewColumn,
    opens: date,
    today: date,
    *,
    unranked: Sequence[TableRow] = (),
    measured: Measured | None = None,
) -> "Markup":
    """Return who leads, by how much, and what that is worth, as HTML.

    Args:
        rows: the table, best first, baselines in their places.
        column: the view that ranks.
        opens: the board's first day.
        today: the day of the page.
        unranked: the entries without a rank.
        measured: what was published of the ranking beside the scores.
    """
    entries = [row for row in rows if not row.baseline]
    baseline = next((row for row in rows if row.baseline), None)
    scores = [Decimal(row.primary.text) for row in entries[:2]]
    floor = None if baseline is None or not entries else Decimal(baseline.primary.text)
    made: Markup = read_template("standing.html").module.standing(  # type: ignore[attr-defined]  # a template macro
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


def _compare_leader(entries: Sequence[TableRow], measured: Measured | None) -> dict[str, Any]:
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
