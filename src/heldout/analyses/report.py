"""The organisers' own report: every analysis of a board, the reserve views too, in one folder.

It holds true scores and the reserve views, so it belongs to no public folder. The page needs no
other file and no network. Its last section says which analyses could not be made, and why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from heldout.analyses import by_facet, views
from heldout.analyses.analysis import ANALYSES, Analysis, Draws, Source, load_analysis
from heldout.analyses.entries import AlikeRuns, BoardScores, Dated, ViewScores
from heldout.analyses.facets import ScoresByKind
from heldout.answers.answer import Answer
from heldout.answers.files import (
    facts_markdown,
    missing_markdown,
    plain_markdown,
    render_alone,
    table_csv,
)
from heldout.answers.table import to_markdown
from heldout.answers.text import clean
from heldout.charts.plot import stand_alone
from heldout.errors import InputError
from heldout.scoring.sources import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One analysis of one view, or of all.

    Attributes:
        name: of its files; lower case, digits and hyphens.
        title: its heading.
        answer: what there is to say, `None` where the analysis cannot be made.
        why_not: why it cannot; "" where it can.
    """

    name: str
    title: str
    answer: Answer | None
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Kinds of query, by some facet.

    Attributes:
        queries: by kind.
        least: fewest queries of a kind that is looked at.
    """

    queries: Mapping[str, AbstractSet[str]]
    least: int = 20


def write_chapters(
    board: BoardScores,
    *,
    draws: Draws,
    alike: Iterable[AlikeRuns] | None = None,
    view: str | None = None,
    kinds: Kinds | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Chapter]:
    """The chapters, one after the other: view by view, by measure, then of all views.

    Args:
        board: entries and scores.
        draws: seed and executor.
        alike: pairs of nearly identical runs of different teams; `None` where no runs are known.
        view: whose progress, drift and teams; `None` for the view that ranks.
        kinds: of queries; `None` where no facet is named.
        options: of an analysis by its name, where they are others than its own.

    Raises:
        InputError: code `no-view`.
    """

    def make(analysis: Analysis[Any, Any], give: Callable[[], Any]) -> Answer:
        given = give()
        choose = analysis.report_options
        own = analysis.options() if choose is None else choose(given)
        return analysis.answer(given, options.get(analysis.name, own), draws)

    official = board.view(view)
    for number, shown in enumerate(board.views.values(), start=1):
        for one in _load("scores", "kinds"):
            if one.source == "scores" or kinds is not None:
                title = f"{one.chapter}: {_say_view(shown)}"
                give = partial(_give_view, one.source, shown, kinds)
                yield _attempt(f"view-{number}-{one.name}", title, partial(make, one, give))
    if kinds is None:
        why = "no facet is named; this needs --facet FACET"
        for one in _load("kinds"):
            yield Chapter(name=one.name, title=one.chapter, answer=None, why_not=why)
    measures = dict.fromkeys(shown.measure for shown in board.views.values())
    for number, measure in enumerate(measures, start=1):
        for one in _load("measure"):
            title = f"{one.chapter} {measure}"
            yield _attempt(f"scale-{number}", title, partial(make, one, partial(str, measure)))
    known = None if alike is None else tuple(alike)
    for one in _load("views", "dates", "dates-dev", "dates-reserve"):
        given = partial(_give_board, one.source, board, official, known)
        yield _attempt(one.name, one.chapter, partial(make, one, given))


def _load(*sources: Source) -> Iterator[Analysis[Any, Any]]:
    """The analyses of these sources that have a chapter."""
    for name in ANALYSES:
        analysis = load_analysis(name)
        if analysis.chapter and analysis.source in sources:
            yield analysis


def _attempt(name: str, title: str, make: Callable[[], Answer]) -> Chapter:
    try:
        return Chapter(name=name, title=title, answer=make())
    except InputError as error:
        return Chapter(name=name, title=title, answer=None, why_not=by_facet.say_why(error))


def _say_view(view: ViewScores) -> str:
    words = f"{view.title}, {'public' if view.public else 'reserve'}"
    return words + ", for information only" * view.for_information


def _give_view(source: Source, view: ViewScores, kinds: Kinds | None) -> Scores | ScoresByKind:
    if view.table is None:
        raise InputError.of("no-query-scores", f"view {view.view}")
    scores = Scores(table=view.table, measure=view.measure, better=view.better)
    if source == "scores" or kinds is None:
        return scores
    return ScoresByKind(scores=scores, kinds=kinds.queries, least=kinds.least)


def _give_board(
    source: Source,
    board: BoardScores,
    official: ViewScores,
    alike: tuple[AlikeRuns, ...] | None,
) -> Dated | views.LoadedViews:
    if source == "views":
        return views.LoadedViews(views=views.views_of_board(board), facts=())
    given = Dated(board=board, views=(), alike=alike)
    return given.beside(official.view, _SECOND.get(source))


_SECOND: Mapping[Source, Literal["dev", "reserve"]] = {
    "dates-dev": "dev",
    "dates-reserve": "reserve",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What stands above the report.

    Attributes:
        board: its name.
        entries: how many were analysed.
        as_of: the moment, UTC.
        seed: of all draws.
    """

    board: str
    entries: int
    as_of: datetime
    seed: int

    @property
    def words(self) -> str:
        """One line on what it rests on."""
        return (
            f"{self.entries:,} entries, as of {self.as_of:%Y-%m-%d %H:%M} UTC; seed {self.seed}. "
            "Private: it holds true scores, also of views that are never shown."
        )


def render_report(heading: Heading, chapters: Sequence[Chapter]) -> dict[str, bytes]:
    """Every file of the report's folder.

    Args:
        heading: what it is of.
        chapters: in the order of the page.

    Returns:
        `index.html`, `report.md`, `tables/*.csv`, `charts/*.svg`: path -> bytes.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    made = [one for one in chapters if one.answer is not None]
    left_out = [one for one in chapters if one.answer is None]
    page = render_alone("report.html", heading=heading, made=made, left_out=left_out)
    files = {"index.html": page, "report.md": _markdown(heading, chapters)}
    for chapter in chapters:
        if chapter.answer is not None:
            files |= _files(chapter.name, chapter.answer)
    return files


def _files(name: str, answer: Answer) -> dict[str, bytes]:
    files = {
        f"tables/{name}-{number}.csv": table_csv(table)
        for number, table in enumerate(answer.tables, start=1)
    }
    if answer.chart is not None:
        files[_chart_name(name)] = stand_alone(answer.chart(), title=clean(answer.title)).encode()
    return files


def _chart_name(name: str) -> str:
    return f"charts/{name}.svg"


def _markdown(heading: Heading, chapters: Sequence[Chapter]) -> bytes:
    parts = [f"# {plain_markdown(heading.board)}\n\n{heading.words}\n"]
    for chapter in chapters:
        if chapter.answer is None:
            continue
        parts.append(f"## {plain_markdown(chapter.title)}\n")
        parts.append(f"{plain_markdown(chapter.answer.answer)}\n")
        parts += filter(None, [facts_markdown(chapter.answer.summary)])
        if chapter.answer.chart is not None:
            parts.append(
                f"![{plain_markdown(chapter.answer.title)}]({_chart_name(chapter.name)})\n"
            )
        parts += map(to_markdown, chapter.answer.tables)
    reasons = [(one.title, one.why_not) for one in chapters if one.answer is None]
    parts += filter(None, [missing_markdown(reasons)])
    return "\n".join(parts).encode()
