"""Sentences of the section "Can I trust this ranking?"."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from heldout.board.log.figures import Drift, LeftOut, Outcome
from heldout.board.log.measured import Measured
from heldout.board.ranking.standings import Standings
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.trust import TrustPart, due_day, say_after
from heldout.charts.days import day_words
from heldout.site.ranking_facets import note_facets
from heldout.site.rows import TableRow
from heldout.site.sentences import name_entry
from heldout.site.wording import Phrase, count, join_names, phrase

__all__ = [
    "list_notes",
    "say_apart",
    "say_coming",
    "say_drift",
    "say_lead",
    "say_left_out",
    "say_verdict",
]

_PARTS: Mapping[TrustPart, str] = {
    "ranges": "ranges of ranks",
    "stability": "how often ranks stay when queries are drawn anew",
    "progress": "which records were significant when they came",
    "drift": "official against dev scores over time",
    "outcomes": "what neighbours in the ranking find that the other does not",
    "facets": "ranks on each kind of query",
}
_WHY = (
    "Until then nothing of it is: each such figure says something about labels that only the "
    "organisers have."
)
_LEFT_OUT: Mapping[LeftOut, str] = {
    "near": " (nearly the same as others)",
    "incomplete": " (no score for each query)",
    "withheld": " (an embargo withholds why)",
}
_PARTS_UNDEFINED = "No {part}: {why}."


def say_coming(standings: Standings, spec: BoardSpec, closed: datetime | None) -> tuple[str, ...]:
    """What is not told yet and when it will be.

    Args:
        standings: of the board or season.
        spec: its rules.
        closed: when the board was closed for good.
    """
    trust, measured = spec.trust, standings.measured
    if trust is None or not trust.show:
        return ()
    covered = frozenset[str]() if measured is None else measured.covered
    wait = [r for r in standings.rows if r.rank is not None and r.id not in covered]
    last = spec.last_day_of(standings.season)
    when = say_after(trust, last=last)
    end = None if closed is None else closed.date()
    days = [due_day(trust, r.published.date(), last=last, closed=end) for r in wait]
    past = sorted(day for day in days if day is not None and day <= standings.as_of.date())
    parts = _join([_PARTS[part] for part in trust.show])
    if measured is None:
        said = [f"Told {when}: {parts}. {_WHY}"]
    else:
        newer = count(len(wait), "newer entry is", "newer entries are")
        said = [f"{newer} not compared yet; that comes {when}."] if wait else []
    if len(past) + len(covered) > 1 and past:
        said.append(
            f"Due since {day_words(past[0])}: it comes when the organisers rebuild the page."
        )
    return tuple(said)


def _join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def say_lead(measured: Measured, known: Mapping[str, TableRow]) -> Phrase:
    """Who may be the first, by the ranges; empty without them."""
    ranges = measured.figures.ranges
    if ranges is None:
        return ()
    lows = dict(zip(measured.entries, ranges.low, strict=True))
    group = [row for row in known.values() if lows.get(row.id) == 1]
    if len(group) == 1:
        return phrase(name_entry(group[0]), " is told apart from every other compared entry.")
    if len(group) == len(measured.entries):
        return phrase("No entry can be told apart from the first: any may lead on other queries.")
    most = 4
    if len(group) > most:
        return phrase(f"{len(group)} of {len(measured.entries)} compared entries may be the first.")
    return phrase(
        "Of those compared, ", join_names(map(name_entry, group)), " may each be the first."
    )


def say_drift(drift: Drift | None) -> str:
    """Official against dev scores, "" where not told."""
    if drift is None:
        return ""
    if drift.ratio is None or drift.gap is None:
        return f"Drift: {drift.verdict}; {drift.why}."
    trend = ""
    if drift.per_year is not None:
        trend = f" The difference moves by {drift.per_year:+.3f} a year"
        if drift.low is not None and drift.high is not None:
            trend += f" (95% interval {drift.low:+.3f} to {drift.high:+.3f})"
        trend += "."
    said = (
        f"Official scores are {drift.ratio:.3f} of {drift.dev} scores in the median, and differ by "
        f"{drift.gap:+.3f}.{trend} {drift.verdict.capitalize()}: {drift.why}."
    )
    return said.replace(" -", " \u2212")


def say_verdict(pair: Outcome, known: Mapping[str, TableRow]) -> Phrase:
    """Which of two neighbours is the better, if one is."""
    if not pair.better:
        return phrase("No verdict: neither is shown to be the better one.")
    better = known[pair.a if pair.better == "A" else pair.b]
    how = (
        "finds more and ranks it higher"
        if pair.verdict == "strict"
        else "is better and does no harm"
    )
    return phrase(name_entry(better), f" {how}.")


def list_notes(measured: Measured) -> list[str]:
    """Tests, corrections and families of what is told, and why a part is not."""
    figures, n = measured.figures, len(measured.entries)
    notes = []
    if figures.ranges is not None:
        one = figures.ranges
        notes.append(
            f"Ranges: from 1 + entries significantly better to {n} − entries significantly worse. "
            f"All hold together in {one.level:.0%} of samples of queries: paired sign flips "
            f"({one.flips:,} drawn), max-t over one family of {2 * one.pairs:,} hypotheses, "
            f"{count(one.pairs, 'pair')} in both directions. Among all entries of the "
            "table the range is wider by one rank for each that was not compared."
        )
    if figures.stability is not None:
        notes.append(
            f"Shares: {figures.stability.trials:,} resamplings of "
            f"{count(figures.queries, 'query', 'queries')}; of equal means the earlier entry ranks "
            "higher. They describe, and are no statement of confidence: for that read the ranges."
        )
    if figures.outcomes:
        notes.append(
            f"Outcomes: within the first {figures.k} documents; exact binomial test, and "
            f"signed-rank of search length where both find one; Holm over one family of "
            f"{2 * len(figures.outcomes):,} hypotheses, {count(len(figures.outcomes), 'pair')} of "
            "neighbours."
        )
        if figures.step:
            notes.append(
                f"Counts of queries are ranges of {figures.step:,} queries, because an exact count "
                "can reveal a hidden label. An entry that finds nearly the same queries as an "
                "earlier one (fewer than 10 differ) has the earlier one's counts, and the two get "
                "no verdict about each other."
            )
    if figures.alike:
        notes.append(
            "Entries that are nearly the same: each is compared with all others, and not with its "
            "like, for what two such entries differ in tells the labels of a few queries. Towards "
            "each other they keep the order of their scores in the shares, and no range tells them "
            "apart."
        )
    notes += note_facets(figures.facets)
    notes += [
        _PARTS_UNDEFINED.format(part=words, why=figures.why[part])
        for part, words in _PARTS.items()
        if part in figures.why
    ]
    return notes


def say_left_out(measured: Measured, known: Mapping[str, TableRow]) -> list[Phrase]:
    """The entries that are not compared, each with its reason."""
    return [
        phrase(name_entry(known[name]), _say_left_out(why, measured))
        for name, why in measured.left_out.items()
        if name in known
    ]


def _say_left_out(why: LeftOut, measured: Measured) -> str:
    """The reason in brackets; events of old compared the earlier of near entries."""
    if why == "near" and measured.figures.alike is None:
        return " (nearly the same as an earlier entry)"
    return _LEFT_OUT[why]


def say_apart(measured: Measured, known: Mapping[str, TableRow]) -> list[Phrase]:
    """The pairs that are nearly the same, and so not compared with each other."""
    return [
        phrase(name_entry(known[one]), " and ", name_entry(known[other]))
        for one, other in measured.figures.alike or ()
        if one in known and other in known
    ]
