"""Sentences of the section "Confidence"."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from heldout.board.log.figures import Drift, LeftOut, Outcome
from heldout.board.log.measured import Measured
from heldout.board.ranking.comparable import read_pairs
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
    "stability": "how often each rank occurs on resampled queries",
    "progress": "which records were significant when they came",
    "drift": "official against dev scores over time",
    "outcomes": "how many queries neighbours in the ranking answer alone",
    "facets": "ranks on each kind of query",
}
_WHY = "They are held back because they reveal something about the hidden labels."
_LEFT_OUT: Mapping[LeftOut, str] = {
    "near": " (nearly the same as others)",
    "incomplete": " (no score for each query)",
    "withheld": " (an embargo withholds why)",
}
_MOST_NAMED = 4
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
    last, today = spec.last_day_of(standings.season), standings.as_of.date()
    end = None if closed is None else closed.date()
    days = [due_day(trust, r.published.date(), last=last, closed=end) for r in wait]
    past = sorted(day for day in days if day is not None and day <= today)
    when = say_after(trust, today, last=last)
    if measured is None:
        parts = _join([_PARTS[part] for part in trust.show])
        said = [f"{parts[:1].upper()}{parts[1:]} appear here {when}. {_WHY}"]
    else:
        newer = count(len(wait), "newer entry is", "newer entries are")
        said = [f"{newer} not compared yet. They will be {when}."] if wait else []
        if len(wait) == 1:
            said = [f"{newer} not compared yet. It will be {when}."]
    if len(past) + len(covered) > 1 and past:
        said.append(
            f"Due since {day_words(past[0])}: they appear when the organisers rebuild the page."
        )
    return tuple(said)


def _join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def say_lead(measured: Measured, known: Mapping[str, TableRow]) -> Phrase:
    """Who may be the first, by the ranges; empty without them."""
    ranges = measured.figures.ranges
    if ranges is None:
        return ()
    ids = measured.entries
    lows, highs = (dict(zip(ids, ends, strict=True)) for ends in (ranges.low, ranges.high))
    group = [row for row in known.values() if lows.get(row.id) == 1]
    like = read_pairs(measured.figures.alike or (), [row.id for row in group])
    if len(group) == len(ids):
        return phrase("No compared entry is significantly better than another.")
    if len(group) > _MOST_NAMED:
        return phrase(
            f"For {len(group)} of {len(ids)} compared entries, no other is significantly better."
        )
    names = join_names(map(name_entry, group))
    if len(group) == 1 and highs[group[0].id] == 1:
        return phrase(names, " is significantly better than every other compared entry.")
    if len(group) == 1 or any(like.values()):
        any_of = "any of " * (len(group) > 1)
        return phrase(f"No compared entry is significantly better than {any_of}", names, ".")
    return phrase(names, " are statistically tied for first place.")


def say_drift(drift: Drift | None) -> str:
    """Official against dev scores, "" where not told."""
    if drift is None:
        return ""
    verdict = "no verdict" if drift.verdict == "undefined" else drift.verdict
    if drift.ratio is None or drift.gap is None:
        return f"Drift: {verdict}; {drift.why}."
    trend = ""
    if drift.per_year is not None:
        trend = f" The difference changes by {drift.per_year:+.3f} a year"
        if drift.low is not None and drift.high is not None:
            trend += f" (95% interval {drift.low:+g} to {drift.high:+g})"
        trend += "."
    why = drift.why
    if drift.verdict == "no drift" and drift.low is not None:
        gap = f"the gap between official and {drift.dev} scores"
        why = f"{gap} shows no significant trend (95% confidence)"
    said = (
        f"The median ratio of official to {drift.dev} scores is {drift.ratio:.3f}, the median "
        f"difference {drift.gap:+.3f}.{trend} {verdict.capitalize()}: {why}."
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
            f"{count(one.pairs, 'pair')} in both directions. Each entry that was not compared "
            "may stand anywhere, so it makes every range wider by one rank at its end."
        )
    if figures.stability is not None:
        notes.append(
            f"Shares: {figures.stability.trials:,} resamplings of "
            f"{count(figures.queries, 'query', 'queries')}; of equal means the earlier entry ranks "
            "higher. An entry that was not compared keeps its rank. Shares describe, and are no "
            "statement of confidence: for that read the ranges."
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
            "like, because their difference would reveal the labels of a few queries. In the "
            "shares the two keep the order of their scores, and no range separates them."
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
