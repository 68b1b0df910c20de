"""Maintenance: labels that grow as new runs come (Arabzadeh et al. 2021, §6).

A new run's first document that nobody has judged challenges the best known answer of its query. It
takes its place once it leads by so many votes: one vote would wrongly exchange answers a third of
the time. A lead that is enough for one challenger is not enough for many: `LeadRule.budget` bounds
how often equally good ones ever replace a query's first answer. Everything follows from pools and
judgments, so any day's labels can be made again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb
from typing import Literal

import msgspec

from heldout.errors import InputError
from heldout.judging.campaign.drawing import Pair
from heldout.judging.campaign.judgments import Judgment, count_votes, counted, honest_answers
from heldout.judging.campaign.pools import Candidate, Pool, build_pools, normalise, stand_for
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.labels import ALGORITHMS, Algorithm, make_labels
from heldout.trec.tops import Tops

LEAD = 3
"""Votes that a challenger has to lead by, if nothing else is asked for."""

CAP = 21
"""Votes on a challenge at most, if nothing else is asked for."""

BUDGET = 0.1
"""How often equally good challengers may ever replace a query's first answer, likewise."""

Best = Mapping[str, tuple[str, ...]]
"""Query -> its best known answers, by the documents that stand for their texts; mostly one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadRule:
    """When a challenger takes the place of the best known answer.

    Attributes:
        lead: with so many votes more, at least.
        cap: after so many votes without that the answer stays.
        algorithm: finds the best of a pool before any challenge.
        budget: chance that challengers that are all as good as a query's first answer ever replace
            it, however many come; 0: not controlled, `lead` is enough for each of them.
    """

    lead: int = LEAD
    cap: int = 7
    algorithm: Algorithm = "tournament"
    budget: float = 0.0

    def needed(self, number: int) -> int:
        """The lead that a query's challenge of this number needs; more than `cap`: none is enough.

        The k-th challenge may spend budget / (k (k + 1)), which adds up to the budget over any
        number of them. Votes between equals are tosses of a coin, so the lead is exact.

        Args:
            number: of the challenge among those of its query that have a vote, from 1.
        """
        if not self.budget:
            return self.lead
        share = self.budget / (number * (number + 1))
        enough = (n for n in range(self.lead, self.cap + 1) if chance_of_lead(n, self.cap) <= share)
        return next(enough, self.cap + 1)

    def __post_init__(self) -> None:
        """Refuse a rule by which nothing could ever be exchanged.

        Raises:
            InputError: code `bad-lead`.
        """
        hint = ""
        if not 1 <= self.lead <= self.cap:
            name, value = "lead", f"{self.lead}"
            expected = f"1 to {self.cap} (--cap)"
        elif not 0 <= self.budget < 1 or self.needed(1) > self.cap:
            name, value = "budget", f"{self.budget:g}"
            expected = "0 (no control), or one that a challenger can meet with all the votes"
            hint = "allow more votes (--cap)"
        else:
            return
        found = f"a {name} of {value} within {self.cap} votes"
        raise InputError.of("bad-lead", f"--{name}", found, expected, hint)


@cache
def chance_of_lead(lead: int, cap: int) -> float:
    """Return how often one of two equals ever leads by so many votes, within the cap.

    Args:
        lead: at least 1.
        cap: votes, each a toss of a fair coin.
    """

    def at_least(margin: int) -> int:
        return sum(comb(cap, won) for won in range(cap + 1) if 2 * won - cap >= margin)

    return float((at_least(lead) + at_least(lead + 1)) / 2**cap)  # the reflection principle


class Replacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A best known answer that was replaced.

    Attributes:
        query: its id.
        before: what was best.
        after: the challenger.
        at: when the vote came that decided, ISO 8601; empty where unknown.
    """

    query: str
    before: tuple[str, ...]
    after: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """The best known answers after all challenges.

    Attributes:
        best: of each query.
        replaced: in the order they were decided.
        challenged: query -> challengers, each with the best answers that it met, in the order of
            their first votes: the number that `LeadRule.needed` goes by.
    """

    best: Best
    replaced: tuple[Replacement, ...]
    challenged: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]


def is_challenge(pair: Pair, same: Mapping[str, Mapping[str, str]]) -> bool:
    """Check whether a pair has a document that its query's pool lacks.

    Args:
        pair: query and two documents.
        same: query -> document -> the one that stands for its text, as `stand_for` gives it.
    """
    query, *documents = pair
    return not same.get(query, {}).keys() >= set(documents)


def first_best(
    pools: Sequence[Pool], votes: Iterable[Judgment], *, algorithm: Algorithm = "tournament"
) -> Best:
    """The best of each pool as judged before any challenge, or its known answer.

    Args:
        pools: of the campaign.
        votes: those that count; only votes on pairs of the pools are looked at.
        algorithm: finds the best of a pool.
    """
    same = stand_for(pools)
    pooled = [one for one in votes if not is_challenge(one.pair, same)]
    find = ALGORITHMS[algorithm]
    played = make_labels(pools, count_votes(pooled, same=same), find=find).tournaments
    best = {}
    for pool in pools:
        if pool.query in played:
            best[pool.query] = played[pool.query].best
        elif pool.known is not None:
            best[pool.query] = (pool.known.doc,)
    return best


def follow_challenges(best: Best, votes: Iterable[Judgment], rule: LeadRule) -> Maintained:
    """Go over the votes on challenges as they came.

    A challenger has to lead against each of the best where there are several: then it stands alone.
    Of votes on a pair those beyond the cap say nothing. Who meets other best answers than before is
    another challenge.

    Args:
        best: before any challenge.
        votes: those that count, on challenges.
        rule: when an answer is exchanged.
    """
    now, replaced = dict(best), []
    won: Counter[tuple[str, str, str]] = Counter()
    challenged: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for vote, challenger, other in _list_votes(votes, rule):
        query = vote.query
        won[query, challenger, other] += 1
        mine = now.get(query, ())
        if (challenger in mine) == (other in mine):
            continue
        met = (other if challenger in mine else challenger, mine)
        if met not in challenged[query]:
            challenged[query].append(met)
        if challenger in mine:
            continue
        margins = [won[query, challenger, b] - won[query, b, challenger] for b in mine]
        if min(margins) >= rule.needed(challenged[query].index(met) + 1):
            now[query] = (challenger,)
            replaced.append(
                Replacement(query=query, before=mine, after=challenger, at=vote.answered_at)
            )
    return Maintained(
        best=now,
        replaced=tuple(replaced),
        challenged={query: tuple(found) for query, found in challenged.items()},
    )


def _list_votes(votes: Iterable[Judgment], rule: LeadRule) -> Iterator[tuple[Judgment, str, str]]:
    """Votes with winner and loser as they came, of each pair no more than the cap."""
    cast: Counter[Pair] = Counter()
    for one in sorted(votes, key=lambda one: one.answered_at):
        if one.preferred is not None and one.other is not None and cast[one.pair] < rule.cap:
            cast[one.pair] += 1
            yield one, one.preferred, one.other


def spread_labels(
    best: Best, pools: Sequence[Pool], challengers: Sequence[Pool]
) -> Mapping[str, tuple[str, ...]]:
    """The best under every id that has their text, sorted."""
    ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pool in (*pools, *challengers):
        for one in pool.candidates:
            ids[pool.query, one.doc].update(one.ids)
    return {
        query: tuple(sorted(set().union(*(ids[query, doc] for doc in documents))))
        for query, documents in best.items()
    }


# Challenges: first documents of later runs against the best known answers, and what is open.
#
# The queue of judgments is nowhere kept; it follows from runs, pools, tasks and judgments.

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
    honest = honest_answers(given, exclusion=settings.exclusion, failures=settings.failures)
    answers = {(one.worker, one.task, one.pair) for one in honest if one.answer is None}
    pairs = (item.pair for task in tasks for item in task.items if item.answer is None)
    return _Tally(
        won=Counter((one.query, a, b) for one, a, b in _list_votes(votes, rule)),
        answers=Counter(pair for *_, pair in answers),
        drawn=Counter(pair for pair in pairs if is_challenge(pair, same)),
    )


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
        seen[pool.query].update(doc for one in pool.candidates for doc in one.ids)
    return seen


def _join(pool: Pool, before: Pool | None, found: Pool | None) -> Pool:
    """One row of what was there and what is new; who says the same as another stands beside it."""
    rows = {} if before is None else {one.doc: one for one in before.candidates}
    known = {normalise(one.text): one for one in pool.candidates if one.text}
    known |= {normalise(one.text): one for one in rows.values() if one.text}
    for one in () if found is None else found.candidates:
        like = known.get(normalise(one.text)) if one.text else None
        old = one if like is None else rows.get(like.doc, like)
        same = {*old.same, *(one.ids if like is not None else ())}
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
