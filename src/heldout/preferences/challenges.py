"""Challenges: first documents of later runs against the best known answers, and what is open.

The queue of judgments is nowhere kept; it follows from runs, pools, tasks and judgments.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heldout.preferences.contests import stand_for
from heldout.preferences.drawing import Pair
from heldout.preferences.judgments import Judgment, counted, failed_tests
from heldout.preferences.maintenance import LeadRule, Maintained, is_challenge, list_votes
from heldout.preferences.pools import Candidate, Pool, build_pools, normalise
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Task
from heldout.trec.tops import Tops

__all__ = ["Challenge", "Outcome", "list_challenges", "pool_challengers", "seen_documents"]

Outcome = Literal["open", "won", "stays"]
"""Of a challenge: votes are missing; the challenger leads; the best known answer stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A challenger against one of the best known answers of a query.

    Attributes:
        query: its id.
        challenger: a document that came with a later run.
        incumbent: one of the best.
        ahead: votes for the challenger.
        behind: votes for the other.
        answers: of judges whose work counts, with those who could not judge.
        drawn: judgments that are in tasks and have not come yet.
        outcome: by the rule.
        lead: votes that the challenger has to lead by.
        wanted: judgments to ask for: as many as may decide it, less what is drawn.
    """

    query: str
    challenger: str
    incumbent: str
    ahead: int
    behind: int
    answers: int
    drawn: int
    outcome: Outcome
    lead: int
    wanted: int


def pool_challengers(
    tops: Mapping[str, Tops],
    pools: Sequence[Pool],
    challengers: Sequence[Pool],
    *,
    documents: Mapping[str, str] | None = None,
) -> tuple[Pool, ...]:
    """The documents of later runs that the pools lack, with those that were found before.

    A document with a text that is known is no challenger; it stands beside the id that is known, so
    that labels can name both.

    Args:
        tops: run -> query -> first documents. Queries without a pool are left out.
        pools: of the campaign.
        challengers: as this function gave them before.
        documents: id -> text; `None` where only ids are known.

    Returns:
        A row for each query with such a document.

    Raises:
        InputError: code `no-text`: such a document without a text.
    """
    asked, seen = {pool.query: pool.text for pool in pools}, seen_documents(pools, challengers)
    fresh: dict[str, Tops] = {
        run: {
            query: tuple(doc for doc in answers[query] if doc not in seen[query])
            for query in asked
            if query in answers
        }
        for run, answers in tops.items()
    }
    found = {p.query: p for p in build_pools(fresh, {}, queries=asked, documents=documents)}
    before = {pool.query: pool for pool in challengers}
    return tuple(
        _join(pool, before.get(pool.query), found.get(pool.query))
        for pool in pools
        if pool.query in before or pool.query in found
    )


def list_challenges(
    found: Maintained,
    pools: Sequence[Pool],
    challengers: Sequence[Pool],
    *,
    judgments: Sequence[Judgment],
    tasks: Sequence[Task],
    settings: Settings,
    rule: LeadRule,
) -> tuple[Challenge, ...]:
    """Every challenger against the best known answers of today.

    A challenger that did not win against one of the best asks for no more votes.

    Args:
        found: the best known answers, as challenges left them.
        pools: of the campaign.
        challengers: as `pool_challengers` gives them.
        judgments: all that were recorded.
        tasks: all that were drawn.
        settings: how many failed tests exclude.
        rule: when an answer is exchanged.
    """
    tally = _tally(pools, judgments, tasks, settings, rule)
    pooled = {pool.query: {one.doc for one in pool.candidates} for pool in pools}
    listed = []
    for row in challengers:
        best = found.best.get(row.query, ())
        met = list(found.challenged.get(row.query, ()))
        for one in row.candidates:
            if one.doc in pooled[row.query] or one.doc in best:
                continue
            if (one.doc, best) not in met:
                met.append((one.doc, best))
            lead = rule.needed(met.index((one.doc, best)) + 1)
            pairs = [(row.query, one.doc, b) for b in best]
            listed += _weigh(pairs, tally, lead, rule.cap)
    return tuple(listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """Votes by query, winner and loser; by pair answers that came, and judgments in tasks."""

    won: Mapping[tuple[str, str, str], int]
    answers: Mapping[Pair, int]
    drawn: Mapping[Pair, int]


def _tally(
    pools: Sequence[Pool],
    judgments: Sequence[Judgment],
    tasks: Sequence[Task],
    settings: Settings,
    rule: LeadRule,
) -> _Tally:
    same = stand_for(pools)
    given = [one for one in judgments if one.answer or is_challenge(one.pair, same)]
    votes = counted(given, exclusion=settings.exclusion, failures=settings.failures)
    pairs = (item.pair for task in tasks for item in task.items if item.answer is None)
    return _Tally(
        won=Counter((one.query, one.winner, one.loser) for one in list_votes(votes, rule)),
        answers=Counter(pair for *_, pair in _list_answers(given, settings)),
        drawn=Counter(pair for pair in pairs if is_challenge(pair, same)),
    )


def _list_answers(judgments: Sequence[Judgment], settings: Settings) -> set[tuple[str, str, Pair]]:
    """Worker, task and pair of each answer that counts, with those who could not judge."""
    failed = {place for place, n in failed_tests(judgments).items() if n >= settings.failures}
    workers = {worker for worker, _ in failed} if settings.exclusion == "worker" else set()
    return {
        (one.worker, one.task, one.pair)
        for one in judgments
        if one.answer is None
        and one.submitted
        and (one.worker, one.task) not in failed
        and one.worker not in workers
    }


def _weigh(
    pairs: Sequence[tuple[str, str, str]], tally: _Tally, lead: int, cap: int
) -> list[Challenge]:
    found = []
    for query, challenger, incumbent in pairs:
        pair = (query, min(challenger, incumbent), max(challenger, incumbent))
        ahead = tally.won.get((query, challenger, incumbent), 0)
        behind = tally.won.get((query, incumbent, challenger), 0)
        answers = tally.answers.get(pair, 0)
        drawn = max(0, tally.drawn.get(pair, 0) - answers)
        outcome = _decide(ahead, behind, answers, lead, cap)
        hopeless = (ahead - behind + cap - answers - lead) // 2 + 1  # votes against that decide it
        missing = min(lead - abs(ahead - behind), hopeless, cap - answers)
        found.append(
            Challenge(
                query=query,
                challenger=challenger,
                incumbent=incumbent,
                ahead=ahead,
                behind=behind,
                answers=answers,
                drawn=drawn,
                outcome=outcome,
                lead=lead,
                wanted=max(0, missing - drawn) if outcome == "open" else 0,
            )
        )
    if any(one.outcome == "stays" for one in found):
        return [replace(one, wanted=0) for one in found]
    return found


def _decide(ahead: int, behind: int, answers: int, lead: int, cap: int) -> Outcome:
    margin = ahead - behind
    if margin >= lead:
        return "won"
    hopeless = margin + cap - answers < lead
    return "stays" if hopeless or margin <= -lead else "open"


def seen_documents(pools: Sequence[Pool], challengers: Sequence[Pool]) -> Mapping[str, set[str]]:
    """Query of a pool -> every document that was looked at, or whose text was."""
    seen: dict[str, set[str]] = {pool.query: set() for pool in pools}
    for pool in (*pools, *challengers):
        seen[pool.query].update(doc for one in pool.candidates for doc in (one.doc, *one.same))
    return seen


def _join(pool: Pool, before: Pool | None, found: Pool | None) -> Pool:
    """One row of what was there and what is new; who says the same as another stands beside it."""
    rows = {} if before is None else {one.doc: one for one in before.candidates}
    known = {normalise(one.text): one for one in pool.candidates if one.text}
    known |= {normalise(one.text): one for one in rows.values() if one.text}
    for one in () if found is None else found.candidates:
        like = known.get(normalise(one.text)) if one.text else None
        old = one if like is None else rows.get(like.doc, like)
        same = {*old.same, *((one.doc, *one.same) if like is not None else ())}
        rows[old.doc] = Candidate(
            doc=old.doc,
            text=old.text,
            runs=tuple(sorted({*old.runs, *one.runs})),
            known=old.known,
            same=tuple(sorted(same)),
        )
        if one.text:
            known[normalise(one.text)] = rows[old.doc]
    ordered = tuple(sorted(rows.values(), key=lambda one: one.doc))
    return Pool(query=pool.query, text=pool.text, candidates=ordered)
