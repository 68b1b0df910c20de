"""The standing of a board in one generated sentence or two."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from heldout.board.log.measured import Measured
from heldout.board.site.rows import TableRow, ViewColumn
from heldout.board.site.words import Part, Phrase, clean, count, join_names, name, phrase
from heldout.board.standings.standings import read_pairs
from heldout.charts.axes import day_words


def say_standing(
    rows: Sequence[TableRow],
    column: ViewColumn,
    opens: date,
    today: date,
    *,
    unranked: Sequence[TableRow] = (),
    measured: Measured | None = None,
) -> Phrase:
    """Who leads, by how much, and what that is worth.

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
    if not entries and unranked:
        return _say_unranked(unranked)
    if not entries:
        return _say_empty(baseline, column, opens, today)
    if len(entries) == 1:
        return _say_single(entries[0], baseline, column)
    return phrase(
        _say_lead(entries, column), _say_worth(entries, measured), _say_below(entries[0], baseline)
    )


def name_entry(row: TableRow) -> Part:
    """An entry as a sentence calls it: its system, or that it is anonymous."""
    href = f"entries/{row.page}"
    if row.embargo is not None:
        return Part(text="an anonymous entry", href=href)
    return name(row.system, href)


def _say_empty(baseline: TableRow | None, column: ViewColumn, opens: date, today: date) -> Phrase:
    verb = "opened" if opens <= today else "opens"
    opening = f"the board {verb} on {day_words(opens)}."
    if baseline is None:
        return phrase("No entries yet; ", opening)
    score = _strong(baseline)
    on = f" on {clean(column.title)}; "
    return phrase(
        "No entries yet. The baseline ", name_entry(baseline), " stands at ", score, on, opening
    )


def _say_unranked(unranked: Sequence[TableRow]) -> Phrase:
    """No entry has a rank: mostly a one-shot board before its deadline."""
    reasons = dict.fromkeys(clean(row.unranked[:1].lower() + row.unranked[1:]) for row in unranked)
    none = "not ranked" if len(unranked) == 1 else "none ranked"
    said = count(len(unranked), "entry", "entries")
    return phrase(f"{said}, {none} yet: {'; '.join(reasons)}.")


def _say_single(entry: TableRow, baseline: TableRow | None, column: ViewColumn) -> Phrase:
    start = phrase(_capital(name_entry(entry)), " is the only entry, with ", _strong(entry))
    on = f" on {clean(column.title)}: too few to compare."
    return phrase(start, on, _say_below(entry, baseline))


def _say_lead(entries: Sequence[TableRow], column: ViewColumn) -> Phrase:
    leader, second = entries[0], entries[1]
    gap = Decimal(leader.primary.text) - Decimal(second.primary.text)
    start = phrase(_capital(name_entry(leader)), " leads with ", _strong(leader))
    if not gap:
        return phrase(start, f" on {column.title}; ", name_entry(second), " has the same, later.")
    rest = f" on {column.title}, {gap} ahead of "
    return phrase(start, rest, name_entry(second), ".")


def _say_worth(entries: Sequence[TableRow], measured: Measured | None) -> Phrase:
    """What the lead is worth, as far as it was tested."""
    if measured is None or measured.figures.ranges is None:
        return phrase(" Whether such gaps are more than luck has not been tested here.")
    leader, ids = entries[0].id, measured.entries
    if leader not in ids:
        return phrase(
            " The leader was not compared with the other entries, so its lead may be luck."
        )
    apart = read_pairs(measured.figures.alike or (), ids)[leader]
    tested = len(ids) - 1 - len(apart)
    low = dict(zip(ids, measured.figures.ranges.low, strict=True))
    ahead = len(ids) - measured.figures.ranges.high[ids.index(leader)]  # of so many, significantly
    tied = [row for row in entries[1:] if low.get(row.id) == 1 and row.id not in apart]
    said = _say_tested(tied, tested, ahead, every=len(entries) == len(ids) == tested + 1)
    like = [row for row in entries if row.id in apart and low[row.id] == 1]
    return phrase(said, _say_like(like))


def _say_tested(tied: Sequence[TableRow], tested: int, ahead: int, *, every: bool) -> Phrase:
    if not tested:
        return phrase()
    if ahead == tested:
        others = "the other entry" if tested == 1 else f"all {tested} other entries"
        few = f" The leader is significantly better than {others} that it was compared with."
        return phrase(" The lead is significant." if every else few)
    shown = 3
    if len(tied) == tested - ahead <= shown:
        verb = " is not significant." if len(tied) == 1 else " are not significant."
        start = " The difference to " if len(tied) == 1 else " The differences to "
        return phrase(start, join_names(map(name_entry, tied)), verb)
    return phrase(
        f" The lead over {tested - ahead} of the {count(tested, 'entry', 'entries')} that the "
        "leader was compared with is not significant."
    )


def _say_like(like: Sequence[TableRow]) -> Phrase:
    """The entries that may lead as well and were not compared with the leader."""
    if not like:
        return phrase()
    shown = 3
    names = [name_entry(row) for row in like]
    few = len(like) <= shown
    who = join_names([_capital(names[0]), *names[1:]]) if few else f"{len(like)} entries"
    verb = "is" if len(like) == 1 else "are"
    return phrase(" ", who, f" {verb} nearly the same as the leader, so not compared with it.")


def _say_below(leader: TableRow, baseline: TableRow | None) -> Phrase:
    if baseline is None or Decimal(leader.primary.text) > Decimal(baseline.primary.text):
        return phrase()
    return phrase(
        " The baseline ", name_entry(baseline), " has not been beaten: ", _strong(baseline), "."
    )


def _strong(row: TableRow) -> Part:
    return Part(text=row.primary.text, strong=True)


def _capital(part: Part) -> Part:
    """An anonymous entry at the start of a sentence; names stay as they are written."""
    if part.name:
        return part
    return Part(text=part.text[:1].upper() + part.text[1:], href=part.href)
