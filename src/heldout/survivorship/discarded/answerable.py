"""Could other systems have answered the queries that were discarded?

The first passages of several systems are pooled and shown in random order, without system or rank;
people say which of them answer the query. What no system found may still lie in the collection, so
that every share here is a lower bound.

A table of first ranks that others published is read too: scorer, query, document and rank divided
by tabs, with a header, `NA` where no passage answers.

Source: Gupta and MacAvaney 2022, §3 and table 2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from operator import attrgetter
from typing import Any, BinaryIO

import msgspec
import numpy as np

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.errors import InputError, Problem, plural
from heldout.judging.campaign.pools import Pool, build_pools
from heldout.stats import rank_tests, results
from heldout.survivorship.discarded.judging import (
    CountShare,
    JudgedPassages,
    PassageJudging,
    agreement_document,
    share_of,
    tabulate_shares,
)
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, check_line, parse_integer, show
from heldout.trec.tops import Tops

_Fault = tuple[str, str, str]
"""Code, what was found, what is expected."""

FirstRanks = Mapping[str, Mapping[str, int | None]]
"""System -> query -> rank of its first passage that answers; `None` where none was found."""


class SystemTop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one system showed for one query; stored apart from what annotators see.

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
        no_answer: queries without an answer in the pooled depth.
        within: depth -> queries with an answer that deep, the pooled depth first.
    """

    system: str
    no_answer: CountShare
    within: Mapping[int, CountShare]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQueries:
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
    unanswered: CountShare


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPair:
    """Two systems on the same queries, to one depth.

    Attributes:
        a, b: their names.
        depth: an answer counts that stands there or above.
        a_only, b_only: queries that one of them alone answers.
        p: exact McNemar, two-sided; `None` where no query distinguishes them.
        p_corrected: by Holm over all pairs and depths.
        why: the reason why p is undefined, else "".
    """

    a: str
    b: str
    depth: int
    a_only: int
    b_only: int
    p: float | None
    p_corrected: float | None
    why: str


def pool_questions(
    tops: Mapping[str, Tops],
    *,
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    rng: np.random.Generator,
) -> tuple[Pool, ...]:
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
        found = f"no document for {plural(len(lost), 'query', 'queries')}: {lost[0]}"
        expected = "a document of some system for every query that is judged"
        raise InputError.of("missing-query", "runs", found, expected)
    order = [rng.permutation(len(one.candidates)).tolist() for one in pools]
    return tuple(
        msgspec.structs.replace(one, candidates=tuple(one.candidates[at] for at in own))
        for one, own in zip(pools, order, strict=True)
    )


def first_ranks(judged: Mapping[str, JudgedPassages], tops: Iterable[SystemTop]) -> FirstRanks:
    """Return where each system has its first passage that answers.

    Args:
        judged: as `judged_passages` gives it.
        tops: what each system showed.
    """
    ranks: dict[str, dict[str, int | None]] = {}
    for top in tops:
        listed = {doc: rank for rank, doc in reversed([*enumerate(top.docs, 1)])}
        shown = ranks.setdefault(top.system, dict.fromkeys(judged))
        if top.query in judged:
            found = (listed.get(doc) for doc in judged[top.query].answering)
            shown[top.query] = min((rank for rank in found if rank), default=None)
    return ranks


def reach(ranks: FirstRanks, *, depth: int = 10, level: float = 0.95) -> AnsweredQueries:
    """Count the queries that each system answers within the pooled depth, and within 3: table 2.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled; an answer below it does not count.
        level: of the Wilson intervals.
    """
    size = len(next(iter(ranks.values()), {}))
    share = partial(share_of, of=size, level=level, why=_NONE)
    depths = _depths(depth)
    found = {system: [_within(own, k) for k in depths] for system, own in ranks.items()}
    anywhere = {query for sets in found.values() for query in sets[0]}
    return AnsweredQueries(
        queries=size,
        depth=depth,
        systems=tuple(
            SystemReach(
                system=system,
                no_answer=share(size - len(sets[0])),
                within={k: share(len(hits)) for k, hits in zip(depths, sets, strict=True)},
            )
            for system, sets in found.items()
        ),
        unanswered=share(size - len(anywhere)),
    )


def compare_reach(ranks: FirstRanks, *, depth: int = 10) -> tuple[SystemPair, ...]:
    """Compare which queries systems answer: every pair at both depths.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled.

    Source: McNemar 1947, exact; Holm 1979.
    """
    ask = results.AskedTest(alternative="two-sided", level=0.95)
    counts: list[dict[str, Any]] = []
    for k in _depths(depth):
        hits = {system: _within(own, k) for system, own in ranks.items()}
        for a, b in combinations(ranks, 2):
            only = {"a_only": len(hits[a] - hits[b]), "b_only": len(hits[b] - hits[a])}
            counts.append({"a": a, "b": b, "depth": k, **only})
    ps = [rank_tests.compare_wins(one["a_only"], one["b_only"], ask).p for one in counts]
    return tuple(
        SystemPair(
            **found,
            p=p,
            p_corrected=corrected,
            why="no query distinguishes them" if p is None else "",
        )
        for found, p, corrected in zip(counts, ps, results.holm(ps), strict=True)
    )


def _depths(pooled: int) -> tuple[int, ...]:
    return (pooled, _TOP) if pooled > _TOP else (pooled,)


def _within(ranks: Mapping[str, int | None], depth: int) -> set[str]:
    return {query for query, rank in ranks.items() if rank is not None and rank <= depth}


_TOP = 3
_NONE = "no query is judged"


def unseen_note(ranks: FirstRanks, depth: int, *, path: str) -> str:
    """Return what to say where answers are counted deeper than any was found; else "".

    Args:
        ranks: of a table.
        depth: to which answers are counted.
        path: of the table.
    """
    deepest = max((rank for own in ranks.values() for rank in own.values() if rank), default=0)
    if depth <= deepest:
        return ""
    return (
        f"No rank in {path} is above {deepest}. The file does not say whether anybody looked down "
        f"to {depth}; where nobody did, no answer means none down to {deepest}."
    )


def report_reach(
    ranks: FirstRanks,
    *,
    depth: int,
    level: float,
    note: str = "",
    judging: PassageJudging | None = None,
) -> Answer:
    """Report how many queries each system answers to a depth and in its top 3, and who differs.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled.
        level: of the intervals.
        note: what else has to be known; empty for nothing.
        judging: who judged the passages; `None` where nobody knows.
    """
    found = reach(ranks, depth=depth, level=level)
    pairs = compare_reach(ranks, depth=depth)
    compared = (_pairs(pairs),) if pairs else ()
    tables = (_counts(found, note), _shares(found, level), *compared)
    document = to_document(found) | {
        "comparisons": [to_document(one) for one in pairs],
        "interval": "Wilson",
        "level": level,
        "test": "McNemar, exact, two-sided",
        "correction": "holm",
        "family": len(pairs),
        "bound": "lower: passages below the pool are not judged",
    }
    if note:
        document["note"] = note
    if not found.queries:
        document["why"] = _NONE
    judges: tuple[tuple[str, str], ...] = ()
    if judging is not None:
        judges = write_facts("discarded.reach_judging", found=judging)
        said = to_document(judging)
        del said["alpha"], said["interval"]
        agreement = agreement_document(judging.alpha, judging.interval, units="passages")
        document["judging"] = said | {"agreement": agreement}
    return Answer(
        answer=_headline(found),
        summary=(
            *judges,
            *((("depth", note),) if note and found.queries else ()),
        ),
        tables=tables if found.queries else (),
        document=document,
    )


def _headline(found: AnsweredQueries) -> str:
    """Say how many of the discarded queries some system answers, and which answers most."""
    best = max(found.systems, key=lambda one: one.within[found.depth].count, default=None)
    return write("discarded.reach_headline", found=found, best=best)


def _rows(one: SystemReach) -> list[tuple[str, CountShare]]:
    none = (f"no answer in top {max(one.within)}", one.no_answer)
    return [none, *((f"answer in top {depth}", share) for depth, share in one.within.items())]


def _counts(found: AnsweredQueries, note: str) -> Table:
    by_system = [_rows(one) for one in found.systems]
    rows: list[tuple[Cell, ...]] = [
        (name, *(own[index][1].count for own in by_system))
        for index, (name, _) in enumerate(by_system[0])
    ]
    return write_table("discarded.reach_counts", tuple(rows), found=found, note=note)


def _shares(found: AnsweredQueries, level: float) -> Table:
    rows = [((one.system, name), share) for one in found.systems for name, share in _rows(one)]
    rows.append((("all of them", f"no answer in top {found.depth}"), found.unanswered))
    return tabulate_shares(
        rows,
        title=f"As shares of {plural(found.queries, 'query', 'queries')}",
        names=("system", "answer"),
        decimals=2,
        level=level,
    )


def _pairs(pairs: Sequence[SystemPair]) -> Table:
    shown = attrgetter("a", "b", "depth", "a_only", "b_only", "p", "p_corrected")
    return write_table("discarded.reach_pairs", tuple(map(shown, pairs)), count=len(pairs))


_HEADER = ["scorer", "query_id", "doc_id", "rank"]
_NO_RANK = b"NA"


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
            text = line.rstrip(b"\r")
            problem = check_line(text, path=path, number=number, prose=True)
            if problem is None and (fault := _add(found, text, head=number == 1)):
                problem = Problem.of(fault[0], path, fault[1], fault[2], line=number)
            if problem is not None:
                log.add(problem)
    if not log.errors and not found:
        log.add(Problem.of("empty-file", path, "no rank", "a line for each"))
    queries = {query: None for ranks in found.values() for query in ranks}
    lost = [(one, query) for one, ranks in found.items() for query in queries if query not in ranks]
    for system, query in lost if not log.errors else ():
        expected = "the same queries for every system, NA where none was found"
        what = f"no rank of {show(system)} for {show(query)}"
        log.add(Problem.of("missing-query", path, what, expected))
    log.raise_errors()
    return found


def _add(found: dict[str, dict[str, int | None]], line: bytes, *, head: bool) -> _Fault | None:
    """Add a row; return what is wrong with it."""
    cells = line.split(b"\t")
    names = ", ".join(_HEADER)
    if head:
        expected = f"a header: {names}, with tabs between"
        return None if line.decode().split() == _HEADER else ("wrong-columns", show(line), expected)
    if len(cells) != len(_HEADER):
        text = f"{plural(len(cells), 'column')} in {show(line)}"
        return "wrong-columns", text, f"4 columns with tabs between: {names}"
    system, query = (cell.decode() for cell in cells[:2])
    rank = None if cells[3] == _NO_RANK else parse_integer(cells[3])
    if cells[3] != _NO_RANK and (rank is None or rank < 1):
        expected = "a whole number from 1, or NA where no passage answers"
        return "rank-not-a-number", f"rank {show(cells[3])}", expected
    ranks = found.setdefault(system, {})
    if query in ranks:
        again = f"{show(query)} of {show(system)} again"
        return "repeated-query", again, "each query of a system once"
    ranks[query] = rank
    return None
