"""The table of a board: its columns of scores, its rows in words, and its pages.

Everything a participant wrote passes `clean` once, before it reaches a template, a chart, a CSV
or a JSON file, so all of them say the same.

A table of many rows goes on in `rows-2.html`, `rows-3.html` and so on, which need no script. The
script of the first page filters and sorts all rows: it takes the others from `rows-2.js` and so on,
because a page that is opened from a folder may read no other page.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from heldout.answers.text import clean
from heldout.board.log.final import Measured
from heldout.board.log.manifest import LINKS, Efficiency, Identity
from heldout.board.rules.release import INDEPENDENT, name_part
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.columns import (
    COLUMNS,
    EntryCell,
    EntryColumn,
    Value,
    cost_columns,
    make_cell,
    read_table,
)
from heldout.board.standings.standings import Row, Standings, listing_views
from heldout.charts.axes import day_words
from heldout.charts.svg import cut
from heldout.errors import plural
from heldout.scoring.measures import parse_measure
from heldout.web.pages import load_templates

if TYPE_CHECKING:
    from jinja2 import Template

_NOT_IN_LINKS = re.compile(r"""[\s"<>\\^`{|}]""")
_PLAIN_LINK = re.compile("https?://[a-z0-9.-]+(/[A-Za-z0-9._~/-]*)?")
"""Most addresses; to take one apart takes longer than all else that is done with a row."""
_TIES = re.compile(r"(?<=[0-9]) (?=[A-Za-z])|(?<=[a-z]{2}) (?=[12][0-9]{3}\b)")


def join_names(texts: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`, cleaned."""
    *most, last = map(clean, texts)
    return f"{', '.join(most)} and {last}" if most else last


def safe_link(text: str) -> str:
    """The address if it is http or https with a host and nothing odd in it, else "".

    Odd: white space, control characters, a user name, and what RFC 3986 allows nowhere.
    """
    if _PLAIN_LINK.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return ""
    odd = text != clean(text) or _NOT_IN_LINKS.search(text)
    if odd or parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    return text


@lru_cache(maxsize=1 << 15)  # each page of a board asks for most of them
def file_stem(submission: str) -> str:
    """A file name without its ending for an id; ids of submissions stay as they are."""
    return quote(clean(submission), safe="")


def tie(text: str) -> str:
    """Our own words with no-break spaces where a line should not end: `20 Nov 2026`, `7 days`."""
    return _TIES.sub("\u00a0", text)


def read_template(name: str) -> "Template":
    """A template of a page, with the words that it may need as filters.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    environment = load_templates("heldout.board.site", tie=tie)
    environment.globals["INDEPENDENT"] = INDEPENDENT
    environment.filters |= {"clean": clean, "count": plural, "day": day_words, "names": join_names}
    return environment.get_template(name)


ANONYMOUS = "Anonymous"
"""What an entry is called while an embargo hides who sent it."""

_PIECE = re.compile(r"[(]?[^(,]+,?|[(,]")

_MOST = 120  # characters of a name in a table or a sentence
_Texts = TypeVar("_Texts", Identity, Efficiency)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)

STARS: Mapping[bool | None, str] = {True: "significant", False: "noise", None: ""}
"""Whether a record was significant when it came -> its star."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """A public view as a column.

    Attributes:
        key: the view's name.
        measure: `RR@10`.
        set: name of its query set.
        held_out: whether its labels are held out.
        primary: whether it ranks.
        only_set: whether the board shows scores on no other query set.
        final: whether its scores are published after the last day.
        part: what of the set's queries or of the entries it shows, in words; "" for all.
        falls: whether lower is better.
        further: whether it is one of fairness, of other labels or of parts of the queries, which
            stand in the table where they are asked for.
        says: what its scores are, in words.
        use: what a score for information only is good for, in a sentence; "" for others.
    """

    key: str
    measure: str
    set: str
    held_out: bool
    primary: bool
    only_set: bool
    final: bool = False
    part: str = ""
    falls: bool = False
    further: bool = False
    says: str = ""
    use: str = ""

    @property
    def title(self) -> str:
        """What a sentence calls it: `eval RR@10`, or `RR@10` where there is only one set."""
        whole = self.measure if self.only_set else f"{self.set} {self.measure}"
        return f"{whole}, {self.part}" if self.part else whole

    @property
    def for_information(self) -> bool:
        """Whether it only informs: feedback, or a score with noise."""
        return bool(self.use)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The measure in the pieces into which a narrow heading may break it."""
        return tuple(_PIECE.findall(self.measure))


@dataclass(frozen=True, slots=True)
class Score:
    """A released score in its column.

    Attributes:
        column: where it stands.
        text: its digits, "" where the entry has none.
        spread: standard deviation over the entry's seeds, "" for a single run.
        error: standard error of a score for information only, "" for others.
    """

    column: ViewColumn
    text: str
    spread: str
    error: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the leaderboard.

    A large board shows few of its rows on the pages that it makes again, so what a line says is
    made when it is asked for.

    Attributes:
        row: of `public_rows`.
        columns: of scores, the one that ranks first.
        whole: whether names stand in full, as on the entry's own page.
        star: `significant` or `noise` where it is published what the trophy was worth when it came.
        span: low, high and number of ranks, where a range is published.
        lead_end: whether the lead group ends below it.
    """

    row: Row
    columns: tuple[ViewColumn, ...]
    _: KW_ONLY
    whole: bool = False
    star: str = ""
    span: tuple[int, int, int] | None = None
    lead_end: bool = False

    @property
    def rank(self) -> int | None:
        """`None` for a baseline, and for an entry without a rank."""
        return self.row.rank

    @property
    def ranks(self) -> str:
        """First and last rank where a rank range was computed, else ""."""
        return say_range(self.row.rank_low, self.row.rank_high)

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.row.id

    @property
    def page(self) -> str:
        """File name of its page, as it stands in a link."""
        return quote(file_stem(self.row.id)) + ".html"

    @property
    def anchor(self) -> str:
        """Id of its element."""
        return f"entry-{file_stem(self.row.id)}"

    @property
    def day(self) -> str:
        """Date of submission, `2026-11-20`."""
        return self.row.received.date().isoformat()

    @property
    def day_words(self) -> str:
        """The same to be read."""
        return day_words(self.row.received)

    @property
    def system(self) -> str:
        """The start of the description, which the entry's own page has in full.

        The id of an entry without one, and "Anonymous" under an embargo.
        """
        return name_system(self.row) if self.whole else short_name(self.row)

    @property
    def identity(self) -> Identity | None:
        """As the team wrote it, long names cut; `None` under an embargo."""
        who = self.row.identity
        if who is None or self.whole:
            return who
        team, institution = cut(who.team, _MOST), cut(who.institution, _MOST)
        return msgspec.structs.replace(who, team=team, institution=institution)

    @property
    def primary(self) -> Score:
        """The score that ranks."""
        return self._score(self.columns[0])

    @property
    def scores(self) -> tuple[Score, ...]:
        """The others, in the order of the columns."""
        return tuple(map(self._score, self.columns[1:]))

    @property
    def seeds(self) -> str:
        """How many, `3 seeds`, where the scores are means over several, else ""."""
        return plural(self.row.seeds, "seed") if self.row.seeds > 1 else ""

    @property
    def unranked(self) -> str:
        """Why it has no rank, as a sentence begins; "" for what has one, and baselines."""
        return self.row.unranked[:1].upper() + self.row.unranked[1:]

    @property
    def rule(self) -> str:
        """What the rule says of its trophy, where that is not what the old board gave."""
        if self.row.trophy == self.row.trophy_by_rule:
            return ""
        return "no trophy by the rule" if self.row.trophy else "a trophy by the rule"

    def cell(self, column: EntryColumn) -> EntryCell:
        """Return what it has in a column of `COSTS`."""
        return make_cell(column, self.row)

    def _score(self, column: ViewColumn) -> Score:
        row = self.row
        texts = (row.scores, row.spreads, row.standard_errors)
        return Score(column, *(released(one, column.key) for one in texts))


def make_columns(spec: BoardSpec) -> tuple[ViewColumn, ...]:
    """The public views, the one that ranks first, then those published after the last day."""
    views = [
        *sorted(spec.public_views, key=lambda view: view.name != spec.primary),
        *spec.final_views,
    ]
    only_set = len({view.set for view in views}) == 1
    return tuple(_column(view, spec, only_set=only_set) for view in views)


def filled_columns(columns: tuple[ViewColumn, ...], rows: Sequence[Row]) -> tuple[ViewColumn, ...]:
    """The columns in which a row has a score, and the one that ranks."""
    return tuple(c for c in columns if c.primary or any(c.key in row.scores for row in rows))


class _Shown:
    """What all pages and files of some standings are made from, each made once."""

    def __init__(self, standings: Standings) -> None:
        self.standings = standings

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(map(public_row, self.standings.every))

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        return tuple(hashlib.sha256(_write(row)).digest() for row in self.rows)

    @cached_property
    def values(self) -> Mapping[str, Sequence[Value]]:
        return {column.key: [*map(column.of, self.rows)] for column in COLUMNS}


_LAST: list[_Shown] = []
"""The last ones: every page and file of a board asks for the same."""


def _shown(standings: Standings) -> _Shown:
    if not _LAST or _LAST[0].standings is not standings:
        _LAST[:] = [_Shown(standings)]
    return _LAST[0]


def public_rows(standings: Standings) -> tuple[Row, ...]:
    """All rows with all text cleaned; those without a rank come last."""
    return _shown(standings).rows


def digest_rows(standings: Standings) -> tuple[bytes, ...]:
    """A digest of all that each of `public_rows` holds, but for its rank."""
    return _shown(standings).digests


def read_columns(standings: Standings) -> Mapping[str, Sequence[Value]]:
    """Key of each of `COLUMNS` -> what each of `public_rows` has in it."""
    return _shown(standings).values


_ALL_BUT_RANK = attrgetter(*(field.name for field in fields(Row) if field.name != "rank"))


def _write(row: Row) -> bytes:
    values = _ALL_BUT_RANK(row)
    try:
        return msgspec.msgpack.encode(values, order="deterministic")
    except UnicodeEncodeError:  # some text is cleaned only where it is written into the page
        return repr(values).encode("utf-8", "surrogatepass")


def make_rows(standings: Standings, columns: tuple[ViewColumn, ...]) -> tuple[TableRow, ...]:
    """The lines of all `public_rows`, in their order."""
    return tuple(TableRow(row, columns) for row in public_rows(standings))


def released(scores: Mapping[str, str], view: str) -> str:
    """The released digits of a score or a spread on a view, "" where there are none.

    Raises:
        ValueError: they are no number; that is a bug upstream.
    """
    text = scores.get(view, "")
    if text and not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return text


def _column(view: View, spec: BoardSpec, *, only_set: bool) -> ViewColumn:
    kind = parse_measure(view.measure).kind
    return ViewColumn(
        key=view.name,
        measure=view.measure,
        set=view.set,
        held_out=spec.sets[view.set].held_out,
        primary=view.name == spec.primary,
        only_set=only_set,
        final=view.final,
        part=_say_part(view),
        falls=view.summary == "gap" or kind.better == "lower",
        further=view.name != spec.primary
        and (bool(view.files) or view.labels is not None or view.training_at_most is not None),
        says=_say_scores(view, exposure=kind.exposure),
        use=_say_use(view),
    )


def _say_scores(view: View, *, exposure: bool) -> str:
    some = "some of the judged queries" if view.queries is not None else "the judged queries"
    which = "" if view.part is None else f" in {name_part(view.part)}"
    queries = f"{some}{which} of {clean(view.set)}"
    says: str = read_table("scores")["exposure" if exposure else view.summary]
    return says.format(queries=queries, measure=view.measure)


def _say_use(view: View) -> str:
    kind = "noise" if view.noise is not None else "feedback" if view.part == "feedback" else ""
    use: str = read_table("use")[kind] if kind else ""
    return use.format(noise=f"{view.noise or 0:g}")


def _say_part(view: View) -> str:
    """Return what tells a view from one of the same measure on all queries, for all entries."""
    parts = [said] if (said := view.part_words) else []
    if view.labels is not None:
        parts.append(f"labels {clean(view.labels)}")
    if view.queries is not None:
        parts.append(f"{clean(view.name)} queries")
    if view.summary != "mean":
        parts.append("worst group" if view.summary == "worst" else "gap between groups")
    if view.training_at_most is not None:
        parts.append(f"at most {plural(view.training_at_most, 'training pair')}")
    return ", ".join(parts)


def _is_clean(row: Row) -> bool:
    """Check whether cleaning changes no text: all words at once, which is quicker than each."""
    words, links = [row.id, row.type], list[str]()
    who = row.identity
    for one in () if who is None else (who, who.efficiency):
        if one is not None:
            for name, text in zip(one.__struct_fields__, msgspec.structs.astuple(one), strict=True):
                if isinstance(text, str):
                    (links if name in LINKS else words).append(text)
    whole = " ".join(filter(None, words))
    return clean(whole) == whole and all(safe_link(link) == link for link in links if link)


def public_row(row: Row) -> Row:
    """A row with all text cleaned."""
    if _is_clean(row):
        return row
    identity = row.identity
    if identity is not None:
        stated = None if identity.efficiency is None else _clean_texts(identity.efficiency)
        identity = _clean_texts(identity)
        if stated is not identity.efficiency:
            identity = msgspec.structs.replace(identity, efficiency=stated)
    return replace(row, id=clean(row.id), type=clean(row.type), identity=identity)


def name_system(row: Row) -> str:
    """Return what an entry is called: its description, or its id; an embargo withholds both."""
    return ANONYMOUS if row.identity is None else row.identity.description or row.id


def short_name(row: Row) -> str:
    """The same in a table, cut where it is long."""
    return cut(name_system(row), _MOST)


def _clean_texts(stated: _Texts) -> _Texts:
    """Every text of it, whatever fields there are: a link or words."""
    texts = {n: v for n, v in msgspec.structs.asdict(stated).items() if isinstance(v, str)}
    cleaned = {n: safe_link(text) if n in LINKS else clean(text) for n, text in texts.items()}
    return stated if cleaned == texts else msgspec.structs.replace(stated, **cleaned)


def say_range(low: int | None, high: int | None) -> str:
    """A range of ranks in words; "" where there is none."""
    if low is None or high is None:
        return ""
    return f"{low}" if low == high else f"{low}–{high}"


def add_marks(rows: Sequence[TableRow], standings: Standings) -> tuple[TableRow, ...]:
    """The rows of the table with stars, bars of ranges and the end of the lead group.

    Args:
        rows: best first.
        standings: whose rows they are.
    """
    measured = standings.measured
    if measured is None:
        return tuple(rows)
    stars = stars_of(measured)
    of = sum(row.rank is not None for row in standings.rows)
    spans = {
        r.id: (r.rank_low or 1, r.rank_high or 1, of)
        for r in standings.rows
        if r.rank_low is not None
    }
    marked = [
        replace(
            row,
            star=stars.get(row.id, "") if row.row.trophy else "",
            span=spans.get(row.id),
        )
        for row in rows
    ]
    end = _find_lead_end([row for row in marked if row.rank is not None])
    return tuple(replace(row, lead_end=row.id == end) for row in marked)


def stars_of(measured: Measured | None) -> Mapping[str, str]:
    """Id -> `significant` or `noise`, of records whose significance is defined."""
    steps = () if measured is None else measured.figures.progress or ()
    return {step.entry: STARS[step.significant] for step in steps}


def _find_lead_end(ranked: Sequence[TableRow]) -> str:
    """The last entry of the lead group, where that is an unbroken block of at least two."""
    leads = [row.span is not None and row.span[0] == 1 for row in ranked]
    size = leads.index(False) if False in leads else len(leads)
    return ranked[size - 1].id if 1 < size < len(ranked) and not any(leads[size:]) else ""


_ONE_PAGE = 150
"""Most rows on the only page of a table; MS MARCO's document board has 117."""

_ROWS = 100
"""Rows on each page of a longer one: at most 300 kB, whatever a board shows of an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A page of a long table.

    Attributes:
        number: from 1.
        href: its file in `leaderboard/`.
        words: which rows it has: `101–200`.
    """

    number: int
    href: str
    words: str

    @property
    def script(self) -> str:
        """The file that has its rows for the script of the first page."""
        return f"rows-{self.number}.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingsTable:
    """The table, or one page of it.

    Attributes:
        columns: the public views with a score, the one that ranks first, further ones last.
        costs: what teams state of costs, as columns; none where nobody states any.
        heads: key -> column, for the headings and explanations of the other columns.
        links: heading of the links to papers and code, "" where no row has one.
        ranged: whether a row has a range of ranks.
        rows: entries with a rank, and baselines.
        unranked: the entries without a rank, after all others.
        types: the submission types among the rows, for the filter; none where no row has one.
        trophies, stars, seeds: whether a row has one, so that it is said what it means.
        bar: whether there are baselines that a trophy has to be above.
        record: whether it shows an old board, whose trophies and days are that board's claims.
        leaf: the page that this is; `None` for a table on a single page.
        leaves: all pages; none for a table on a single page.
        total: how many rows all pages have, those without a rank too.
    """

    columns: tuple[ViewColumn, ...]
    costs: tuple[EntryColumn, ...]
    heads: Mapping[str, EntryColumn]
    links: str
    ranged: bool
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    types: tuple[str, ...]
    trophies: bool
    stars: bool
    seeds: bool
    bar: bool
    record: bool
    total: int
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()

    @property
    def further(self) -> bool:
        """Whether there are columns of fairness, of other labels or of parts of the queries."""
        return any(column.further for column in self.columns)


def make_table(standings: Standings, spec: BoardSpec) -> StandingsTable:
    """The whole table, before it is cut into pages.

    Args:
        standings: of the board or season.
        spec: its rules.
    """
    shown = public_rows(standings)
    ranked = [row for row in shown if not row.unranked]
    own = {view.name for view in listing_views(spec)}  # they have standings of their own
    filled = [c for c in filled_columns(make_columns(spec), shown) if c.key not in own]
    columns = tuple(sorted(filled, key=lambda column: column.further))
    every = make_rows(standings, columns)
    rows = add_marks([line for line in every if not line.row.unranked], standings)
    return StandingsTable(
        columns=columns,
        costs=cost_columns(ranked),
        heads={column.key: column for column in COLUMNS},
        links=_name_links(ranked),
        ranged=any(row.rank_low is not None and row.rank_high is not None for row in ranked),
        rows=rows,
        unranked=tuple(line for line in every if line.row.unranked),
        types=tuple(dict.fromkeys(row.type for row in ranked if row.type)),
        trophies=any(row.row.trophy and not row.star for row in rows),
        stars=any(row.star for row in rows),
        seeds=any(row.seeds > 1 for row in ranked),
        bar=spec.baselines.bar and any(row.baseline for row in shown),
        record=is_record(standings),
        total=len(every),
    )


def is_record(standings: Standings) -> bool:
    """Check whether it is the record of an old board, which takes nothing any more."""
    return bool(standings.every) and all(row.imported for row in standings.every)


def cut_table(table: StandingsTable) -> tuple[StandingsTable, ...]:
    """Its pages; a table that is short enough is its own only one."""
    leaves = _list_leaves(table.total)
    if not leaves:
        return (table,)
    every = (*table.rows, *table.unranked)
    return tuple(
        replace(
            table,
            rows=tuple(line for line in part if not line.row.unranked),
            unranked=tuple(line for line in part if line.row.unranked),
            leaf=leaf,
            leaves=leaves,
        )
        for leaf in leaves
        for part in (every[(leaf.number - 1) * _ROWS : leaf.number * _ROWS],)
    )


def file_of_row(position: int, total: int) -> str:
    """The file in `leaderboard/` that has a row.

    Args:
        position: its own, from 0, in the order of `public_rows`.
        total: how many rows there are.
    """
    return _file_of_page(position // _ROWS + 1 if is_long(total) else 1)


def is_long(total: int) -> bool:
    """Check whether a table of so many rows goes on over several pages."""
    return total > _ONE_PAGE


def say_block(rank: int) -> str:
    """The ranks, of a hundred each, that a rank is among."""
    first = (rank - 1) // _ROWS * _ROWS + 1
    return f"{first:,}–{first + _ROWS - 1:,}"


def _file_of_page(number: int) -> str:
    return "index.html" if number == 1 else f"rows-{number}.html"


def _list_leaves(total: int) -> tuple[Leaf, ...]:
    if total <= _ONE_PAGE:
        return ()
    return tuple(
        Leaf(
            number=number,
            href=_file_of_page(number),
            words=f"{start + 1:,}\u2013{min(start + _ROWS, total):,}",
        )
        for number, start in enumerate(range(0, total, _ROWS), 1)
    )


def _name_links(rows: Sequence[Row]) -> str:
    shown = [row.identity for row in rows if row.identity is not None]
    papers, code = any(who.paper for who in shown), any(who.code for who in shown)
    return ", ".join(word for word, there in (("paper", papers), ("code", code)) if there)
