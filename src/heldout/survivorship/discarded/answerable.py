"""Could other systems have answered the queries that were discarded?

The first passages of several systems are pooled and shown in random order, without system or rank;
people say which of them answer the query. What no system found may still lie in the collection, so
that every share here is a lower bound.

A table of first ranks that others published is read too: scorer, query, document and rank divided
by tabs, with a header, `NA` where no passage answers.

Source: Gupta and MacAvaney 2022, §3 and table 2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, BinaryIO

import msgspec
import numpy as np

from heldout.answers.table import Cell, Column, Table
from heldout.errors import InputError, Problem, plural
from heldout.judging.campaign.pools import Pool, build_pools
from heldout.stats.rank_tests import compare_wins
from heldout.stats.results import Ask, holm
from heldout.survivorship.discarded.judging import (
    Judged,
    PassageJudging,
    Share,
    agreement_value,
    share_of,
    share_value,
)
from heldout.survivorship.discarded.questions import Question, ShownPassage
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import check_line, parse_integer
from heldout.trec.tops import Tops

FirstRanks = Mapping[str, Mapping[str, int | None]]
"""System -> query -> rank of its first passage that answers; `None` where none was found."""


class SystemTop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one system showed for one query; kept apart from what annotators see.

    Attributes:
        system: its name.
        query: its id.
        docs: best first, as deep as was pooled.
    """

    system: str
    query: str
    docs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReach:
    """How many discarded queries one system answers.

    Attributes:
        system: its name.
        none: queries without an answer in the pooled depth.
        within: depth -> queries with an answer that deep, the pooled depth first.
    """

    system: str
    none: Share
    within: Mapping[int, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How many discarded queries systems answer.

    Attributes:
        queries: how many were judged.
        depth: that was pooled.
        systems: in the order given.
        unanswered: queries that none of them answers.
    """

    queries: int
    depth: int
    systems: tuple[SystemReach, ...]
    unanswered: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPair:
    """Two systems on the same queries, to one depth.

    Attributes:
        a, b: their names.
        depth: an answer counts that stands there or above.
        a_only, b_only: queries that one of them alone answers.
        p: exact McNemar, two-sided; `None` where no query tells them apart.
        p_corrected: by Holm over all pairs and depths.
    """

    a: str
    b: str
    depth: int
    a_only: int
    b_only: int
    p: float | None
    p_corrected: float | None


def pool_questions(
    tops: Mapping[str, Tops],
    *,
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    rng: np.random.Generator,
) -> tuple[Question, ...]:
    """The pooled passages of each query, each text once, in random order.

    Args:
        tops: system -> query -> first documents, as deep as is pooled.
        queries: id -> text of the queries to be judged, in this order.
        documents: id -> text, of every document that is pooled.
        rng: of the order.

    Raises:
        InputError: codes `no-text`; `missing-query`: no system has a document for a query.
    """
    pools = build_pools(tops, {}, queries=queries, documents=documents)
    pooled = {one.query for one in pools}
    lost = [query for query in queries if query not in pooled]
    if lost:
        raise InputError(
            Problem(
                code="missing-query",
                path="runs",
                found=f"no document for {plural(len(lost), 'query', 'queries')}: {lost[0]}",
                expected="a document of some system for every query that is judged",
            )
        )
    return tuple(_shuffled(one, rng) for one in pools)


def first_ranks(judged: Mapping[str, Judged], tops: Iterable[SystemTop]) -> FirstRanks:
    """Where each system has its first passage that answers.

    Args:
        judged: as `judged_passages` gives it.
        tops: what each system showed.
    """
    shown: dict[str, dict[str, tuple[str, ...]]] = {}
    for top in tops:
        shown.setdefault(top.system, {})[top.query] = top.docs
    return {
        system: {
            query: _first(answered.get(query, ()), found.answering)
            for query, found in judged.items()
        }
        for system, answered in shown.items()
    }


def deepest_rank(ranks: FirstRanks) -> int:
    """The largest rank of a passage that answers; 0 where none does."""
    return max((rank for own in ranks.values() for rank in own.values() if rank), default=0)


def reach(
    ranks: FirstRanks, *, depth: int = 10, also: Sequence[int] = (3,), level: float = 0.95
) -> Answered:
    """How many queries each system answers within the pooled depth, and higher up: table 2.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled; an answer below it does not count.
        also: further depths, each less than `depth`.
        level: of the Wilson intervals.
    """
    size = len(next(iter(ranks.values()), {}))
    depths = (depth, *(one for one in also if one < depth))
    found = {system: [_within(own, k) for k in depths] for system, own in ranks.items()}
    anywhere = {query for sets in found.values() for query in sets[0]}
    return Answered(
        queries=size,
        depth=depth,
        systems=tuple(
            SystemReach(
                system=system,
                none=share_of(size - len(sets[0]), size, level=level),
                within={
                    k: share_of(len(hits), size, level=level)
                    for k, hits in zip(depths, sets, strict=True)
                },
            )
            for system, sets in found.items()
        ),
        unanswered=share_of(size - len(anywhere), size, level=level),
    )


def compare_reach(
    ranks: FirstRanks, *, depth: int = 10, also: Sequence[int] = (3,)
) -> tuple[SystemPair, ...]:
    """Which systems answer other queries than which: every pair at every depth.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled.
        also: further depths, each less than `depth`.

    Source: McNemar 1947, exact; Holm 1979.
    """
    ask = Ask(alternative="two-sided", level=0.95)
    counts = []
    for k in (depth, *(one for one in also if one < depth)):
        hits = {system: _within(own, k) for system, own in ranks.items()}
        for a, b in combinations(ranks, 2):
            counts.append((a, b, k, len(hits[a] - hits[b]), len(hits[b] - hits[a])))
    ps = [compare_wins(a_only, b_only, ask).p for *_, a_only, b_only in counts]
    return tuple(
        SystemPair(a=a, b=b, depth=k, a_only=a_only, b_only=b_only, p=p, p_corrected=corrected)
        for (a, b, k, a_only, b_only), p, corrected in zip(counts, ps, holm(ps), strict=True)
    )


def _shuffled(pool: Pool, rng: np.random.Generator) -> Question:
    order = rng.permutation(len(pool.candidates)).tolist()
    return Question(
        query=pool.query,
        text=pool.text,
        passages=tuple(
            ShownPassage(doc=one.doc, text=one.text, same=one.same)
            for one in (pool.candidates[place] for place in order)
        ),
    )


def _first(docs: Sequence[str], answering: Sequence[str]) -> int | None:
    wanted = set(answering)
    return next((rank for rank, doc in enumerate(docs, 1) if doc in wanted), None)


def _within(ranks: Mapping[str, int | None], depth: int) -> set[str]:
    return {query for query, rank in ranks.items() if rank is not None and rank <= depth}


_NONE = "no query is judged"
_LOWER_BOUND = (
    "Lower bounds: what lies below the pooled passages of these systems nobody looked at, and it "
    "may answer too."
)


def unseen_note(depth: int, deepest: int, *, path: str) -> str:
    """What to tell where answers are counted deeper than any was found; empty where they are not.

    Args:
        depth: to which answers are counted.
        deepest: rank of the deepest that was found; 0 without one.
        path: of the table of ranks.
    """
    if depth <= deepest:
        return ""
    return (
        f"No rank in {path} is above {deepest}; whether anybody looked down to {depth} it does not "
        "tell. Where nobody did, no answer means none down to where they looked."
    )


def facts(
    found: Answered, pairs: Sequence[SystemPair], *, note: str = ""
) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        note: what else has to be known; empty for nothing.
    """
    queries = plural(found.queries, "discarded query", "discarded queries")
    systems = plural(len(found.systems), "system")
    lines = [("queries", f"{queries}, the top {found.depth} of {systems}")]
    if not found.queries:
        return (*lines, ("nothing", "no query is judged yet"))
    if note:
        lines.append(("depth", note))
    several = len(found.systems) > 1
    best = max(found.systems, key=lambda one: one.within[found.depth].count)
    reach = best.within[found.depth]
    told = f"{best.system} answers {reach.count:,} ({reach.low:.0%} to {reach.high:.0%})"
    lines.append(("best" if several else "answered", told))
    none = found.unanswered
    lines.append(
        ("by none", f"{none.count:,} of {none.of:,} are answered by no system's top {found.depth}")
    )
    apart = [one for one in pairs if one.p_corrected is not None and one.p_corrected < 0.05]  # noqa: PLR2004 - the usual level
    told = f"{len(apart):,} of {plural(len(pairs), 'comparison')} significant at .05, corrected"
    return (*lines, *((("apart", told),) if pairs else ()))


def tables(
    found: Answered, pairs: Sequence[SystemPair], *, level: float, note: str = ""
) -> tuple[Table, ...]:
    """What each system answers, with intervals, and which systems differ; none without queries.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        level: of the intervals.
        note: what else has to be known; empty for nothing.
    """
    if not found.queries:
        return ()
    compared = (_pairs(pairs),) if pairs else ()
    return (_counts(found, note), _shares(found, level), *compared)


def value(
    found: Answered, pairs: Sequence[SystemPair], *, level: float, note: str = ""
) -> dict[str, Any]:
    """The whole result for JSON; shares are of the judged queries.

    Args:
        found: what each system answers.
        pairs: which systems differ.
        level: of the intervals.
        note: what else has to be known; empty for nothing.
    """
    return {
        "queries": found.queries,
        "depth": found.depth,
        "systems": [
            {
                "system": one.system,
                "no_answer": share_value(one.none, why=_NONE),
                "within": {
                    str(depth): share_value(share, why=_NONE) for depth, share in one.within.items()
                },
            }
            for one in found.systems
        ],
        "unanswered": share_value(found.unanswered, why=_NONE),
        "comparisons": [
            {**asdict(one), **({} if one.p is not None else {"why": "no query tells them apart"})}
            for one in pairs
        ],
        "interval": "Wilson",
        "level": level,
        "test": "McNemar, exact, two-sided",
        "correction": "holm",
        "family": len(pairs),
        "bound": "lower: passages below the pool are not judged",
        **({"note": note} if note else {}),
        **({} if found.queries else {"why": _NONE}),
    }


def judging_facts(found: PassageJudging) -> tuple[tuple[str, str], ...]:
    """Who judged, and how far they agree."""
    names = plural(len(found.annotators), "annotator")
    told = f"{names}; {found.judged:,} of {plural(found.asked, 'query', 'queries')} judged"
    lines = [("judges", told)]
    if found.disputed:
        passages = plural(found.disputed, "passage")
        lines.append(("disputed", f"{passages} ticked by just half of them; not taken for answers"))
    if found.cannot:
        lines.append(("cannot", f"{plural(found.cannot, 'answer')} that it can't be judged"))
    if found.alpha.value is not None:
        ends = found.interval
        between = f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else ""
        units = plural(found.alpha.units, "passage")
        lines.append(("agreement", f"alpha {found.alpha.value:.2f}{between} on {units}"))
    return tuple(lines)


def judging_value(found: PassageJudging) -> dict[str, Any]:
    """Who judged, and how far they agree, for JSON."""
    return {
        "annotators": list(found.annotators),
        "asked": found.asked,
        "judged": found.judged,
        "disputed": found.disputed,
        "cannot": found.cannot,
        "agreement": agreement_value(found.alpha, found.interval, units="passages"),
    }


def _rows(one: SystemReach) -> list[tuple[str, Share]]:
    none = (f"no answer in top {max(one.within)}", one.none)
    return [none, *((f"answer in top {depth}", share) for depth, share in one.within.items())]


def _counts(found: Answered, note: str) -> Table:
    by_system = [_rows(one) for one in found.systems]
    rows: list[tuple[Cell, ...]] = [
        (name, *(own[place][1].count for own in by_system))
        for place, (name, _) in enumerate(by_system[0])
    ]
    return Table(
        title="Discarded queries that systems could have answered",
        columns=(
            Column(name=""),
            *(Column(name=one.system, form="count") for one in found.systems),
        ),
        rows=tuple(rows),
        notes=(
            f"{found.unanswered.count:,} of {found.queries:,} are answered by none of them.",
            _LOWER_BOUND,
            *((note,) if note else ()),
        ),
    )


def _shares(found: Answered, level: float) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.system, name, share.count, share.share, share.low, share.high)
        for one in found.systems
        for name, share in _rows(one)
    ]
    none = found.unanswered
    name = f"no answer in top {found.depth}"
    rows.append(("all of them", name, none.count, none.share, none.low, none.high))
    return Table(
        title=f"As shares of {plural(found.queries, 'query', 'queries')}",
        columns=(
            Column(name="system"),
            Column(name="answer"),
            Column(name="queries", form="count"),
            Column(name="share", form="share", decimals=2),
            Column(name="low", form="share", decimals=2),
            Column(name="high", form="share", decimals=2),
        ),
        rows=tuple(rows),
        notes=(f"low, high: {level:.0%} by Wilson, each by itself.",),
    )


def _pairs(pairs: Sequence[SystemPair]) -> Table:
    return Table(
        title="Which systems answer others' queries",
        columns=(
            Column(name="A"),
            Column(name="B"),
            Column(name="top", form="count"),
            Column(name="A alone", form="count"),
            Column(name="B alone", form="count"),
            Column(name="p", form="p"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(
            (one.a, one.b, one.depth, one.a_only, one.b_only, one.p, one.p_corrected)
            for one in pairs
        ),
        notes=(f"p: exact McNemar, two-sided; corrected: Holm over {len(pairs):,} comparisons.",),
    )


_HEADER = ["scorer", "query_id", "doc_id", "rank"]
_FIRST_RANKS_NONE = b"NA"


def read_first_ranks(source: BinaryIO, *, path: str) -> FirstRanks:
    """Read such a table to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        path: its name for messages.

    Returns:
        System -> query -> rank, from 1, systems and queries in the order of the file.

    Raises:
        InputError: codes `wrong-columns`, also of the first line;
            `rank-not-a-number`: neither a rank from 1 nor NA; `repeated-query`: of one system;
            `missing-query`: a system lacks a query of another; `empty-file`, `bad-utf8`,
            `control-character`; and those of `TextReader`.
    """
    limits = Limits()
    log = ProblemLog(limits.problems)
    found: dict[str, dict[str, int | None]] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line.rstrip(b"\r"), path=path, number=number, prose=True)
            if problem is None and number == 1:
                problem = _check_header(line, path)
            elif problem is None:
                problem = _add(found, line, path, number)
            if problem is not None:
                log.add(problem)
    if not log.errors:
        log.extend(_missing(found, path))
    log.raise_errors()
    return found


def _check_header(line: bytes, path: str) -> Problem | None:
    if line.decode().split() == _HEADER:
        return None
    return Problem(
        code="wrong-columns",
        path=path,
        line=1,
        found=show(line),
        expected=f"a header: {', '.join(_HEADER)}, with tabs between",
    )


def _add(
    found: dict[str, dict[str, int | None]], line: bytes, path: str, number: int
) -> Problem | None:
    columns = line.rstrip(b"\r").split(b"\t")
    if len(columns) != len(_HEADER):
        return Problem(
            code="wrong-columns",
            path=path,
            line=number,
            found=f"{plural(len(columns), 'column')} in {show(line)}",
            expected="4 columns with tabs between: scorer, query, document, rank",
        )
    system, query = (column.decode() for column in columns[:2])
    rank = None if columns[3] == _FIRST_RANKS_NONE else parse_integer(columns[3])
    if columns[3] != _FIRST_RANKS_NONE and (rank is None or rank < 1):
        return Problem(
            code="rank-not-a-number",
            path=path,
            line=number,
            found=f"rank {show(columns[3])}",
            expected="a whole number from 1, or NA where no passage answers",
        )
    ranks = found.setdefault(system, {})
    if query in ranks:
        return Problem(
            code="repeated-query",
            path=path,
            line=number,
            found=f"{show(query)} of {show(system)} again",
            expected="each query of a system once",
        )
    ranks[query] = rank
    return None


def _missing(found: dict[str, dict[str, int | None]], path: str) -> list[Problem]:
    if not found:
        return [Problem(code="empty-file", path=path, found="no rank", expected="a line for each")]
    queries = {query: None for ranks in found.values() for query in ranks}
    return [
        Problem(
            code="missing-query",
            path=path,
            found=f"no rank of {show(system)} for {show(query)}",
            expected="the same queries for every system, NA where none was found",
        )
        for system, ranks in found.items()
        for query in queries
        if query not in ranks
    ]
