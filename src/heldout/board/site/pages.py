"""The pages as data: each template receives exactly the fields of its page, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from heldout.board.rules.spec import BoardSpec, Example
from heldout.board.site.columns import COLUMNS, Column, stated_columns
from heldout.board.site.figures import Figure, make_cost_figures, make_figures
from heldout.board.site.finals import FinalSection, make_final
from heldout.board.site.listings import (
    FurtherViews,
    Listing,
    further_views,
    make_further,
    make_listings,
)
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    add_marks,
    filled_columns,
    make_columns,
    make_row,
    public_rows,
)
from heldout.board.site.rules import (
    BoardFacts,
    Download,
    Rule,
    Step,
    list_downloads,
    list_rules,
    list_steps,
)
from heldout.board.site.sentences import say_standing
from heldout.board.site.trust import RankingTrust, TrustLine, make_ranking_trust
from heldout.board.site.words import Phrase, clean, count, plain, safe_link
from heldout.board.standings.standings import Row, Standings
from heldout.charts.axes import day_words
from heldout.charts.labels import cut


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
        task: what a system has to do.
        facts: short facts about the board, in their order.
        desk: how long a decision takes and how many wait, in words; may be empty.
        example: a query with its answer.
        standing: who leads.
        columns: the public views with a score, the one that ranks first.
        costs: what teams state of costs, as columns; none where nobody states any.
        heads: key -> column, for the headings and explanations of the other columns.
        links: heading of the links to papers and code, "" where no row has one.
        rows: the table.
        unranked: the entries without a rank.
        further: views of fairness and of parts of the queries, `None` where there is none.
        final: the section "Final", `None` before finalists are named.
        listings: the standings of views that list only some entries.
        bar: whether there are baselines that a trophy and a record have to be above.
        empty: whether there is no entry yet, baselines aside.
        types: the submission types among the rows, for the filter; none where no row has one.
        figures: the charts.
        record: whether it shows an old board, which takes nothing any more.
        closed: whether it was closed for good, and takes nothing any more either.
        steps: the commands of a participant.
        install: address from which heldout is installed, or "".
        submit: the organisers' own words on submitting.
        contact: where to reach them.
        rules: the board's rules in words.
        ranking_trust: the section "Confidence", `None` where the board tells nothing of it.
        trust: what others can check the organisers by, in order.
        downloads: its files.
        repository: address of its repository, or "".
        seasons: whether there is a page of seasons.
    """

    frame: Frame
    task: str
    facts: tuple[str, ...]
    desk: str
    example: Example | None
    standing: Phrase
    columns: tuple[ViewColumn, ...]
    costs: tuple[Column, ...]
    heads: Mapping[str, Column]
    links: str
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    further: FurtherViews | None
    final: FinalSection | None
    listings: tuple[Listing, ...]
    bar: bool
    empty: bool
    types: tuple[str, ...]
    figures: tuple[Figure, ...]
    record: bool
    closed: bool
    steps: tuple[Step, ...]
    install: str
    submit: str
    contact: str
    rules: tuple[Rule, ...]
    ranking_trust: RankingTrust | None
    trust: tuple[TrustLine, ...]
    downloads: tuple[Download, ...]
    repository: str
    seasons: bool


def make_board_page(standings: Standings, spec: BoardSpec, facts: BoardFacts) -> BoardPage:
    """The page of the whole board.

    Raises:
        SetupError: the `site` extra is not installed and there is a chart to draw.
    """
    shown = public_rows(standings)
    views = make_columns(spec)
    columns = tuple(c for c in filled_columns(views, shown) if c.key not in further_views(spec))
    every = tuple(make_row(row, columns) for row in shown)
    rows = add_marks([row for row in every if not row.unranked], standings)
    ranked = tuple(row for row in shown if not row.unranked)
    unranked = tuple(row for row in every if row.unranked)
    standing = say_standing(
        rows,
        columns[0],
        spec.opens,
        standings.as_of.date(),
        unranked=unranked,
        measured=standings.measured,
    )
    title = clean(spec.title)
    return BoardPage(
        frame=make_frame(
            title, plain(standing), root="", standings=standings, spec=spec, facts=facts
        ),
        task=clean(spec.task),
        facts=_facts(standings, shown, spec, facts),
        desk=_say_desk(standings),
        example=_example(facts.example),
        standing=standing,
        columns=columns,
        costs=stated_columns(ranked),
        heads={column.key: column for column in COLUMNS},
        links=_name_links(rows),
        rows=rows,
        unranked=unranked,
        further=make_further(ranked, views, spec),
        final=make_final(standings, spec),
        listings=make_listings(standings, spec),
        bar=spec.baselines.bar and any(row.baseline for row in shown),
        empty=all(row.baseline for row in every),
        types=tuple(dict.fromkeys(row.type for row in rows if row.type)),
        figures=(
            *make_figures(
                standings,
                ranked,
                columns,
                bar=spec.baselines.bar,
                one_by_one=spec.kind == "sequential",
            ),
            *make_cost_figures(ranked, columns),
        ),
        record=bool(shown) and all(row.imported for row in shown),
        closed=facts.closed is not None,
        steps=list_steps(spec),
        install=clean(spec.install),
        submit=clean(spec.submit),
        contact=clean(spec.contact),
        rules=list_rules(spec, facts.versions),
        ranking_trust=make_ranking_trust(standings, rows, spec, closed=facts.closed),
        trust=facts.trust,
        downloads=list_downloads(spec, facts),
        repository=safe_link(facts.repository),
        seasons=bool(spec.seasons),
    )


def make_frame(
    title: str, summary: str, *, root: str, standings: Standings, spec: BoardSpec, facts: BoardFacts
) -> Frame:
    """What stands around a page."""
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


def _facts(
    standings: Standings, rows: tuple[Row, ...], spec: BoardSpec, facts: BoardFacts
) -> tuple[str, ...]:
    return (
        *([f"Season {clean(standings.season)}"] if standings.season else []),
        _say_open(spec, standings.as_of.date(), facts.closed),
        _say_entries(rows),
        *_say_queries(spec, facts),
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


def _name_links(rows: Sequence[TableRow]) -> str:
    shown = [row.identity for row in rows if row.identity is not None]
    papers, code = any(who.paper for who in shown), any(who.code for who in shown)
    return ", ".join(word for word, there in (("paper", papers), ("code", code)) if there)


def _say_desk(standings: Standings) -> str:
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


def _example(example: Example | None) -> Example | None:
    if example is None:
        return None
    most = 280
    return Example(
        query=cut(clean(example.query), most),
        document=clean(example.document),
        text=cut(clean(example.text), most),
    )
