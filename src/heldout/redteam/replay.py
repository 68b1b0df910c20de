"""A board's history, played again through each release rule.

The table of a board holds means, days and teams, and no scores by query. So the means are taken as
the systems' true scores, and how far two systems' scores lie apart by query is an assumption, of
which three are played (`ASSUMED`). Whatever depends on which queries lie in a part, and on the
secret key, is drawn many times: a system's score on a part of n of N queries has the error of a
draw without replacement.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.entries import BoardEntry, fold_name, parse_entries
from heldout.answers.table import Column, Table, columns
from heldout.board.old_boards import parse_table, scores_of_old_table
from heldout.board.rules.release import CLEARLY, JITTER, ReleaseRule
from heldout.board.rules.template import SPLIT_ABOVE
from heldout.errors import InputError
from heldout.progress_bar import SILENT, Progress
from heldout.redteam.boards import Scores

DRAWS = 400
SEASON = 91
"""Days of a season: a quarter."""
BEHIND = 2.0
"""How far, in u, the best published score may lie below the best one sent."""
_INFORMS = "(for information only)"
_BASELINE = -1


@dataclass(frozen=True, slots=True)
class Assumed:
    """Standard deviations, over the queries, of the difference between two systems.

    Attributes:
        other: of systems of different teams.
        same: of systems of the same team.
        baseline: of a system and the best baseline.
    """

    other: float
    same: float
    baseline: float = 0.42

    def __str__(self) -> str:
        return f"{self.other:.2f} other teams, {self.same:.2f} same team"


ASSUMED = (Assumed(0.33, 0.20), Assumed(0.25, 0.15), Assumed(0.40, 0.25))
"""The usual one first; MS MARCO's reciprocal ranks may lie anywhere between the others."""

RULES = ("rounded", "clear, no season's end", "clear, seasons")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoardHistory:
    """Who sent how good a system, and when.

    Attributes:
        board: its name.
        first: the day of the first entry.
        days: of each entry, since then; baselines are no entries.
        means: score of each.
        teams: number of each entry's team.
        open: score of each on labels that its team has, such as dev; NaN where unknown.
        open_view: what that is called; "" where no entry has one.
        start: score of the best baseline, which the board begins with.
        start_name: its name.
        left_out: entries without a score that ranks, which cannot be played.
    """

    board: str
    first: date
    days: NDArray[np.intp]
    means: Scores
    teams: NDArray[np.intp]
    open: Scores
    open_view: str
    start: float
    start_name: str
    left_out: int

    def name_entries(self) -> tuple[list[int], int]:
        """The entry that each team names in each season, and how many are not the team's best.

        It is the team's best by the scores that it knows, else its latest.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        for entry, team in enumerate(self.teams.tolist()):
            groups.setdefault((int(self.days[entry]) // SEASON, team), []).append(entry)
        # Unknown scores last, of equal ones the later entry.
        known = np.where(np.isnan(self.open), -np.inf, self.open)
        named = [max(group, key=lambda entry: (known[entry], entry)) for group in groups.values()]
        pairs = zip(named, groups.values(), strict=True)
        return named, sum(bool(self.means[a] < self.means[group].max()) for a, group in pairs)


def read_history(data: bytes, *, path: str) -> BoardHistory:
    """Read the table of an MS MARCO leaderboard, or the `leaderboard.csv` of any board.

    Args:
        data: the file's bytes.
        path: its name, for errors.

    Raises:
        InputError: code `replay-empty`: there are no two entries with a score that ranks;
            `replay-table`: it is neither table; those of `parse_table` and `parse_entries`.
    """
    if data.startswith(b"rank,id,"):
        board, (entries, scores, known, view) = path, _read_own(data, path)
    else:
        old = scores_of_old_table(parse_table(data, path=path))
        board, entries, view = old.board, old.entries, "dev"
        scores, known = old.views["eval"].means, old.views["dev"].means
    played = [entry for entry in entries if entry.id in scores]
    best = max((e for e in played if e.baseline), key=lambda e: scores[e.id], default=None)
    sent = [entry for entry in played if not entry.baseline]
    first = sent[0] if best is None and sent else best
    sent = [entry for entry in sent if entry is not first]
    if first is None or not sent:
        raise InputError.of("replay-empty", path, f"{len(played)} of them")
    names = [fold_name(entry.team) or entry.id for entry in sent]
    teams = {team: number for number, team in enumerate(dict.fromkeys(names))}
    return BoardHistory(
        board=board,
        first=sent[0].day,
        days=np.array([(entry.day - sent[0].day).days for entry in sent], np.intp),
        means=np.array([scores[entry.id] for entry in sent]),
        teams=np.array([teams[name] for name in names], np.intp),
        open=np.array([known.get(entry.id, np.nan) for entry in sent]),
        open_view=view if any(entry.id in known for entry in sent) else "",
        start=scores[first.id],
        start_name=first.name if first.baseline else f"{first.name}, the first entry",
        left_out=len(entries) - len(played),
    )


def _read_own(
    data: bytes, path: str
) -> tuple[Sequence[BoardEntry], Mapping[str, float], Mapping[str, float], str]:
    """The entries, the scores that rank, and those of the next column of scores and its name."""
    text = data.decode("utf-8", "replace")
    entries = parse_entries(text, path=path)
    rows = list(csv.DictReader(StringIO(text, newline="")))
    header = list(rows[0]) if rows else []
    try:
        ranks, *others = header[header.index("type") + 1 : header.index("trophy")]
        view = others[0] if others else ""
        scores, known = (
            {row["id"]: float(row[column]) for row in rows if row.get(column)}
            for column in (ranks, view)
        )
    except ValueError as error:
        raise InputError.of("replay-table", path, str(error)) from None
    return entries, scores, known, view.removesuffix(_INFORMS).strip()


@dataclass(frozen=True, slots=True)
class ReplayFigure:
    """The mean over the draws, and the range of 95% of them; `None` where nothing was published."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLine:
    """What a rule would have published of a history.

    Attributes:
        rule: one of `RULES`.
        assumed: the standard deviations.
        figures: by the keys of `_ROWS`. `entries`, `teams`: how many have a score that ranks.
            `at_once`: share of the entries that have it on the day that they are sent. `days`,
            `days_90`, `longest_days`: from the day of sending to that score: median, 90%, longest.
            `silence`: most days without a new score that ranks, from the first entry on; an exact
            score at a season's end is new too. `behind`, `behind_score`: how far the best score
            published lay below the best one sent, at most, in u and in units of the measure.
            `behind_days`: most days on which that was more than `BEHIND` u.
    """

    rule: str
    assumed: Assumed
    figures: Mapping[str, ReplayFigure]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableReplay:
    """A history under every rule.

    Attributes:
        history: what was played.
        queries: of the held-out set.
        seasons: how many there are, each with a part of its own.
        feedback, part: queries of the feedback part, and of a season's part.
        lines: a rule's three lines one after the other, by `ASSUMED`.
    """

    history: BoardHistory
    queries: int
    seasons: int
    feedback: int
    part: int
    lines: tuple[ReplayLine, ...]

    @property
    def unit(self) -> float:
        """Of all queries: u by the usual assumption, in units of the measure."""
        return find_unit(ASSUMED[0], self.queries)

    @property
    def gap(self) -> float:
        """How far the best baseline lies below the best entry, in u."""
        return (float(self.history.means.max()) - self.history.start) / self.unit

    @property
    def document(self) -> dict[str, Any]:
        """The whole of it for JSON."""
        history, (named, worse) = self.history, self.history.name_entries()
        return {
            "answer": conclude_replay(self),
            "board": history.board,
            "first": history.first.isoformat(),
            "entries": len(history.means),
            "teams": len(set(history.teams.tolist())),
            "left_out": history.left_out,
            "baseline": history.start,
            "gap": self.gap,
            "queries": self.queries,
            "feedback": self.feedback,
            "seasons": self.seasons,
            "season_days": SEASON,
            "season_queries": self.part,
            "named": len(named),
            "named_not_best": worse,
            "draws": DRAWS,
            "lines": [
                {"rule": one.rule, "assumed": one.assumed, **one.figures} for one in self.lines
            ],
        }


def find_unit(assumed: Assumed, queries: int) -> float:
    """Return u over so many queries, in units of the measure."""
    return float(assumed.other / np.sqrt(queries))


def replay(
    history: BoardHistory, queries: int, *, seed: int = 0, progress: Progress = SILENT
) -> TableReplay:
    """Play a history through every rule.

    Args:
        history: the board's.
        queries: of its held-out set; with more than a thousand a quarter is the feedback part.
        seed: of all draws.
        progress: hears of each line.

    Raises:
        InputError: code `replay-queries`: they are fewer than two for each season.
    """
    feedback = round(queries * ReleaseRule().feedback) if queries > SPLIT_ABOVE else 0
    seasons = int(history.days.max()) // SEASON + 1
    part = (queries - feedback) // seasons
    if part < 2:  # noqa: PLR2004 - one query has no deviation
        raise InputError.of("replay-queries", "--queries", queries=queries, seasons=seasons)
    lines = []
    with progress.steps("rules", len(RULES) * len(ASSUMED)) as done:
        for rule, ranking in zip(RULES, (0, queries - feedback, part), strict=True):
            for assumed in ASSUMED:
                rng = np.random.default_rng(seed)
                shown = np.broadcast_to(history.days.astype(float), (DRAWS, len(history.days)))
                if ranking:
                    ends = rule == RULES[-1]
                    sizes = ranking, queries
                    shown = publish(history, assumed, sizes, rng, seasons=seasons if ends else 0)
                lines.append(_summarise(history, shown, rule, assumed, queries))
                done()
    return TableReplay(
        history=history,
        queries=queries,
        seasons=seasons,
        feedback=feedback,
        part=part,
        lines=tuple(lines),
    )


def publish(
    history: BoardHistory,
    assumed: Assumed,
    sizes: tuple[int, int],
    rng: np.random.Generator,
    *,
    seasons: int,
    jitter: float = JITTER,
) -> NDArray[np.float64]:
    """The day on which `clear` publishes a score that ranks of each entry, in each of `DRAWS`.

    Each season begins at the best baseline. On the day after its last one each team's named entry
    gets its score.

    Args:
        history: the board's.
        assumed: standard deviations of differences.
        sizes: the number of queries that rank (those of a season's part), and of all.
        rng: draws parts and jitter.
        seasons: how many; 0 for the whole time as one part, without an end.
        jitter: standard errors of the difference from the baseline, in the mean.

    Returns:
        Days since the first entry, shape (draws, entries); NaN where nothing is published.
    """
    n, every = sizes
    root = np.sqrt(n)
    count = len(history.means)
    # Own, team's and baseline's deviations make the differences as large as they are assumed.
    own, shared = assumed.same**2 / 2, (assumed.other**2 - assumed.same**2) / 2
    alone = max(0.0, assumed.baseline**2 - own - shared)
    scale = np.sqrt((1 - n / every) / n)
    shown = np.full((DRAWS, count), np.nan)
    season = history.days // SEASON if seasons else np.zeros(count, np.intp)
    for number in range(max(1, seasons)):
        of_teams = rng.normal(0, np.sqrt(shared), (DRAWS, int(history.teams.max()) + 1))
        best = history.start + scale * rng.normal(0, np.sqrt(alone), DRAWS)
        holder = np.full(DRAWS, _BASELINE)
        for entry in np.flatnonzero(season == number).tolist():
            team = int(history.teams[entry])
            luck = of_teams[:, team] + rng.normal(0, np.sqrt(own), DRAWS)
            score = history.means[entry] + scale * luck
            spread = np.where(holder == team, assumed.same, assumed.other)
            spread = np.where(holder == _BASELINE, assumed.baseline, spread)
            drawn = jitter * rng.exponential(size=DRAWS) * assumed.baseline
            clearly = score - best > (CLEARLY * spread + drawn) / root
            shown[clearly, entry] = history.days[entry]
            holder = np.where(score > best, team, holder)
            best = np.maximum(score, best)
    if seasons:
        named, _ = history.name_entries()
        ends = (season[named] + 1.0) * SEASON
        shown[:, named] = np.where(np.isnan(shown[:, named]), ends, shown[:, named])
    return shown


def _summarise(
    history: BoardHistory, shown: NDArray[np.float64], rule: str, assumed: Assumed, queries: int
) -> ReplayLine:
    """The figures of a line from the days of publication."""
    unit = find_unit(assumed, queries)
    found: dict[str, list[float]] = {key: [] for key, _, _ in _ROWS}
    named = history.name_entries()[0] if rule == RULES[-1] else []
    ends = ((history.days[named] // SEASON + 1) * SEASON).tolist()
    last = max([int(history.days.max()), *ends])
    sent = _best_by_day(history.start, history.days, history.means, last)
    for days in shown:
        public = np.flatnonzero(~np.isnan(days))
        when = days[public].astype(np.intp)
        waits = when - history.days[public]
        behind = sent - _best_by_day(history.start, when, history.means[public], last)
        found["entries"].append(len(public))
        found["teams"].append(len(set(history.teams[public].tolist())))
        found["at_once"].append(float((waits == 0).sum()) / len(days))
        if len(public):
            found["days"].append(float(np.median(waits)))
            found["days_90"].append(float(np.quantile(waits, 0.9)))
            found["longest_days"].append(float(waits.max()))
        found["silence"].append(float(np.diff(np.unique([0, *when.tolist(), *ends, last])).max()))
        found["behind_score"].append(float(behind.max()))
        found["behind"].append(float(behind.max()) / unit)
        found["behind_days"].append(_longest(behind > BEHIND * unit))
    figures = {key: _make_figure(values) for key, values in found.items()}
    return ReplayLine(rule=rule, assumed=assumed, figures=figures)


def _best_by_day(start: float, days: NDArray[np.intp], means: Scores, last: int) -> Scores:
    """The best score so far at the end of each day."""
    best = np.full(last + 1, start)
    np.maximum.at(best, days, means)
    return np.maximum.accumulate(best)


def _longest(flags: NDArray[np.bool_]) -> float:
    """Return how many days one after the other are true, at most."""
    steps = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False]))))
    return float((steps[1::2] - steps[::2]).max(initial=0))


def _make_figure(values: Sequence[float]) -> ReplayFigure:
    if not values:
        return ReplayFigure(None, None, None)
    low, high = np.quantile(values, (0.025, 0.975))
    return ReplayFigure(float(np.mean(values)), float(low), float(high))


_ROWS = (
    ("entries", "entries with a score that ranks", 1),
    ("teams", "teams with one", 1),
    ("at_once", "share published at once", 3),
    ("days", "days from sending to it, median", 0),
    ("days_90", "90%", 0),
    ("longest_days", "longest", 0),
    ("silence", "longest silence, days", 0),
    ("behind", "best sent above best published, u", 1),
    ("behind_score", "in the measure", 4),
    ("behind_days", f"most days above {BEHIND:g} u", 0),
)


def conclude_replay(found: TableReplay) -> str:
    """Return what a season's end changes, in a sentence."""
    plain, seasons = (found.lines[len(ASSUMED) * n].figures for n in (1, 2))
    teams = f"{seasons['teams'].mean:.0f} of {found.history.teams.max() + 1} teams"
    return (
        f"With a season's end each quarter {teams} have a score that ranks, without one "
        f"{plain['teams'].mean:.1f}; the longest silence is {seasons['silence'].mean:.0f} days "
        f"instead of {plain['silence'].mean:.0f}."
    )


def tabulate_replay(found: TableReplay) -> list[Table]:
    """Return a table for each assumption."""
    return [
        Table(
            title=f"Assumed deviations: {assumed}",
            columns=(Column(name=""), *columns("score", *RULES)),
            rows=tuple(
                (
                    name,
                    *(_say(one.figures[key], digits) for one in found.lines[row :: len(ASSUMED)]),
                )
                for key, name, digits in _ROWS
            ),
        )
        for row, assumed in enumerate(ASSUMED)
    ]


def _say(figure: ReplayFigure, digits: int) -> str:
    if figure.mean is None:
        return "-"
    low, high = f"{figure.low:.{digits}f}", f"{figure.high:.{digits}f}"
    mean = f"{figure.mean:.{digits}f}"
    return mean if low == high else f"{mean} ({low} to {high})"
