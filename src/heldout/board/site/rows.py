"""Rows of the table: a row of the standings in words, with its marks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import quote

import msgspec

from heldout.answers.text import clean
from heldout.board.log.manifest import LINKS, Efficiency, Identity
from heldout.board.log.measured import Measured
from heldout.board.rules.parts import say_part
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.columns import COSTS, Cell, Column, cost_columns, make_cell
from heldout.board.site.words import Part, count, file_stem, name, safe_link
from heldout.board.standings.standings import Row, Standings
from heldout.charts.axes import day_words
from heldout.charts.svg import cut
from heldout.scoring.measures import parse_measure

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
    """

    column: ViewColumn
    text: str
    spread: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embargo:
    """When an anonymous entry gets its name, in the words for before and after that day."""

    until: str
    before: str
    after: str
    due: bool

    @property
    def words(self) -> str:
        """The words that hold on the day of the page."""
        return self.after if self.due else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One line of the leaderboard, cleaned.

    Attributes:
        rank: `None` for a baseline.
        ranks: first and last rank where a rank range was computed, else "".
        id: the entry's id.
        page: file name of its page, as it stands in a link.
        anchor: id of its element.
        day: date of submission, `2026-11-20`.
        day_words: the same to be read.
        system: the start of the description, which the entry's own page has in full; the id of an
            entry without one, and "Anonymous" under an embargo.
        identity: as the team wrote it, long names cut; `None` under an embargo.
        type: submission type.
        primary: the score that ranks.
        scores: the others, in the order of the columns.
        stated: key of each column of `COSTS` that is shown -> what the team states.
        seeds: "3 seeds" where the scores are means over several, else "".
        trophy: best when it was submitted.
        baseline: an organiser's baseline.
        corrected: an erratum was published that did more than publish a score on later labels.
        embargo: `None` where the identity is shown.
        unranked: why it has no rank, as a sentence begins; "" for what has one, and baselines.
        imported: an old board's entry: its day and its trophy are that board's claims.
        rule: what the rule says of its trophy, where that is not what the old board gave.
        star: `significant` or `noise` where it is published what the trophy was worth when it came.
        span: low, high and number of ranks, where a range is published.
        lead_end: whether the lead group ends below it.
    """

    rank: int | None
    ranks: str
    id: str
    page: str
    anchor: str
    day: str
    day_words: str
    system: str
    identity: Identity | None
    type: str
    primary: Score
    scores: tuple[Score, ...]
    stated: Mapping[str, Cell]
    seeds: str
    trophy: bool
    baseline: bool
    corrected: bool
    embargo: Embargo | None
    unranked: str
    imported: bool
    rule: str
    star: str = ""
    span: tuple[int, int, int] | None = None
    lead_end: bool = False


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


def public_rows(standings: Standings) -> tuple[Row, ...]:
    """All rows with all text cleaned; those without a rank come last."""
    if not _CLEANED or _CLEANED[0][0] is not standings:
        _CLEANED[:] = [(standings, tuple(map(public_row, standings.every)))]
    return _CLEANED[0][1]


_CLEANED: list[tuple[Standings, tuple[Row, ...]]] = []
"""The last ones: every page of a board asks for the same."""


def make_rows(standings: Standings, columns: tuple[ViewColumn, ...]) -> tuple[TableRow, ...]:
    """The lines of all `public_rows`, in their order."""
    shown = public_rows(standings)
    if not _MADE or _MADE[0][0] is not shown:
        _MADE[:] = [(shown, {})]
    made = _MADE[0][1]
    if columns not in made:
        costs = cost_columns(shown)
        made[columns] = tuple(make_row(row, columns, costs) for row in shown)
    return made[columns]


_MADE: list[tuple[tuple[Row, ...], dict[tuple[ViewColumn, ...], tuple[TableRow, ...]]]] = []
"""The last ones, by their columns: the table, the pages of entries and the feed ask for them."""


def make_row(
    row: Row, columns: tuple[ViewColumn, ...], costs: Sequence[Column] = COSTS
) -> TableRow:
    """One line of the table from a row of `public_rows`.

    Args:
        row: cleaned.
        columns: of scores.
        costs: those of `COSTS` that are shown.
    """
    first, *others = (
        Score(column, released(row.scores, column.key), released(row.spreads, column.key))
        for column in columns
    )
    stem, who = file_stem(row.id), row.identity
    if who is not None:
        team, institution = cut(who.team, _MOST), cut(who.institution, _MOST)
        who = msgspec.structs.replace(who, team=team, institution=institution)
    return TableRow(
        rank=row.rank,
        ranks=say_range(row.rank_low, row.rank_high),
        id=row.id,
        page=quote(stem) + ".html",
        anchor=f"entry-{stem}",
        day=row.received.date().isoformat(),
        day_words=day_words(row.received),
        system=short_name(row),
        identity=who,
        type=row.type,
        primary=first,
        scores=tuple(others),
        stated={column.key: make_cell(column, row) for column in costs},
        seeds=count(row.seeds, "seed") if row.seeds > 1 else "",
        trophy=row.trophy,
        baseline=row.baseline,
        corrected=row.corrected,
        embargo=_embargo(row),
        unranked=row.unranked[:1].upper() + row.unranked[1:],
        imported=row.imported,
        rule=_say_rule(row),
    )


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
    which = "" if view.part is None else f" in the {view.part} part"
    queries = f"{some}{which} of {clean(view.set)}"
    if exposure:
        fair = "How near the attention that groups of documents get comes to a target"
        return f"{fair} ({view.measure}), as a mean over {queries}"
    return {
        "mean": f"A mean over {queries}",
        "worst": f"The lowest mean of a group, perhaps another for each entry, of {queries}",
        "gap": f"The highest mean of a group less the lowest, of {queries}",
    }[view.summary]


def _say_use(view: View) -> str:
    if view.noise is not None:
        return (
            f"With noise of {view.noise:g} standard errors, a check that the run works. "
            "It does not affect the ranking."
        )
    if view.part == "feedback":
        return "Every score on this part is published. It does not affect the ranking."
    return ""


def _say_part(view: View) -> str:
    """What tells a view from one of the same measure on all queries, for all entries."""
    parts = [said] if (said := say_part(view)) else []
    if view.labels is not None:
        parts.append(f"labels {clean(view.labels)}")
    if view.queries is not None:
        parts.append(f"{clean(view.name)} queries")
    if view.summary != "mean":
        parts.append("worst group" if view.summary == "worst" else "gap between groups")
    if view.training_at_most is not None:
        parts.append(f"at most {count(view.training_at_most, 'training pair')}")
    return ", ".join(parts)


def public_row(row: Row) -> Row:
    """A row with all text cleaned."""
    identity = row.identity
    if identity is not None:
        stated = None if identity.efficiency is None else _clean_texts(identity.efficiency)
        identity = _clean_texts(identity)
        if stated is not identity.efficiency:
            identity = msgspec.structs.replace(identity, efficiency=stated)
    name, kind = clean(row.id), clean(row.type)
    if identity is row.identity and (name, kind) == (row.id, row.type):
        return row
    return replace(row, id=name, type=kind, identity=identity)


def name_system(row: Row) -> str:
    """What an entry is called: its description, or its id; an embargo withholds both."""
    return ANONYMOUS if row.identity is None else row.identity.description or row.id


def short_name(row: Row) -> str:
    """The same in a table, cut where it is long."""
    return cut(name_system(row), _MOST)


def _clean_texts(fields: _Texts) -> _Texts:
    """Every text of it, whatever fields there are: a link or words."""
    texts = {n: v for n, v in msgspec.structs.asdict(fields).items() if isinstance(v, str)}
    cleaned = {n: safe_link(text) if n in LINKS else clean(text) for n, text in texts.items()}
    return fields if cleaned == texts else msgspec.structs.replace(fields, **cleaned)


def _say_rule(row: Row) -> str:
    if row.trophy == row.trophy_by_rule:
        return ""
    return "no trophy by the rule" if row.trophy else "a trophy by the rule"


def say_range(low: int | None, high: int | None) -> str:
    """A range of ranks in words; "" where there is none."""
    if low is None or high is None:
        return ""
    return f"{low}" if low == high else f"{low}–{high}"


def _embargo(row: Row) -> Embargo | None:
    if not row.embargoed:
        return None
    until = row.embargo_until
    if until is None:
        return Embargo(until="", before=ANONYMOUS, after=ANONYMOUS, due=False)
    return Embargo(
        until=until.isoformat(),
        before=f"{ANONYMOUS} until {day_words(until)}",
        after=f"{ANONYMOUS}; reveal due since {day_words(until)}",
        due=row.reveal_due,
    )


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
            star=stars.get(row.id, "") if row.trophy else "",
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


def name_entry(row: TableRow) -> Part:
    """An entry as a sentence calls it: its system, or that it is anonymous."""
    href = f"entries/{row.page}"
    if row.embargo is not None:
        return Part(text="an anonymous entry", href=href)
    return name(row.system, href)


def capital(part: Part) -> Part:
    """An anonymous entry at the start of a sentence; names stay as they are written."""
    return part if part.name else replace(part, text=part.text[:1].upper() + part.text[1:])
