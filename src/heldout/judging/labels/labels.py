"""Preference labels: per query the best passages of its pool, as judged; and versions of them.

Each query's tournament gives its labels; a query that nobody judged keeps its known answer, or
gets none where it had none (Arabzadeh et al. 2021, §5.1).

A version says what it was made of, so that it can be made again byte for byte. Judgments only grow,
and a version says up to when they counted. Labels are never edited: who wants others makes another
version.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from heldout.errors import InputError, StoreError, plural, quote
from heldout.files.durable import Folder
from heldout.ids import Digest, digest_bytes
from heldout.judging.campaign import rows, settings
from heldout.judging.campaign.judgments import (
    Judgment,
    PairVotes,
    Votes,
    count_votes,
    counted,
    format_judgments,
    judgments_at,
)
from heldout.judging.campaign.pools import Pool, stand_for
from heldout.judging.labels.contests import PASSAGE_PRIOR, rank_passages
from heldout.trec.qrels import format_qrels
from heldout.trec.text import show

CLOSE = 1e-6
"""Strengths that differ by no more are the same, but for rounding."""

_Duel = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tournament:
    """How a query's best passage was found.

    Attributes:
        best: ids, sorted; one, or those that tie to the end.
        rounds: passages left in each round, with the pairings that each won among them.
        cycle: the best are several, and each beats one of the others and loses to another.
        unjudged: pairs of the pool without a vote.
        drawn: pairs with as many votes on each side.
    """

    best: tuple[str, ...]
    rounds: tuple[Mapping[str, int], ...]
    cycle: bool
    unjudged: int
    drawn: int


Find = Callable[[Sequence[str], Mapping[_Duel, PairVotes]], Tournament]
"""How the best passages of a pool are found: from its ids, at least one, and the votes on its
pairs, the lesser id first; votes on others are left out."""


def play(passages: Sequence[str], votes: Mapping[_Duel, PairVotes]) -> Tournament:
    """Find who won most pairings, with elimination rounds.

    Where several have won most, the others are dropped and wins are counted again among those
    alone; where nobody can be dropped any more all of them are best: they beat each other in a
    circle (Arabzadeh et al. 2021, §5.1). A pair with as many votes on each side, or none, is won by
    neither.
    """
    left, duels = sorted(passages), votes_within(passages, votes)
    won = {pair: found.winner(pair) for pair, found in duels.items()}
    rounds = []
    while True:
        wins = dict.fromkeys(left, 0)
        for pair, winner in won.items():
            if winner is not None and wins.keys() >= set(pair):
                wins[winner] += 1
        rounds.append(wins)
        most = max(wins.values())
        first = [passage for passage in left if wins[passage] == most]
        if len(first) in (1, len(left)):
            return _conclude(passages, duels, first, rounds, cycle=_is_cycle(first, won))
        left = first


def find_unbeaten(passages: Sequence[str], votes: Mapping[_Duel, PairVotes]) -> Tournament:
    """Find who lost the fewest duels of a search, and of those won the most.

    After a whole search that is the one that never lost, whatever the order was. Before its end
    passages that were never shown are left out. Where the pairs come from no search (a search shows
    a new passage in each duel) losses mean nothing, since who is better is shown more often; then
    the strongest is the best.
    """
    duels = votes_within(passages, votes)
    shown = sorted({one for pair in duels for one in pair} or set(passages))
    if len(duels) >= len(shown):
        return find_strongest(passages, duels)
    won, lost = Counter[str](), Counter[str]()
    for pair, found in duels.items():
        winner = found.winner(pair)
        if winner is not None:
            won[winner] += 1
            lost[pair[winner == pair[0]]] += 1
    fewest = min((lost[one], -won[one]) for one in shown)
    best = [one for one in shown if (lost[one], -won[one]) == fewest]
    return _conclude(passages, duels, best, [{one: won[one] for one in sorted(passages)}])


def find_strongest(
    passages: Sequence[str], votes: Mapping[_Duel, PairVotes], *, prior: float = PASSAGE_PRIOR
) -> Tournament:
    """Find the strongest by Bradley and Terry; those that are as strong as each other are all best.

    Passages without a vote are left out, unless none has one.

    Args:
        passages: see `Find`.
        votes: see `Find`.
        prior: precision of the normal prior: who is in few pairs is drawn to the mean by it.
    """
    duels = votes_within(passages, votes)
    strengths = rank_passages(duels, prior=prior) or dict.fromkeys(passages, 0.0)
    most = max(strengths.values())
    winners = Counter(found.winner(pair) for pair, found in duels.items())
    return _conclude(
        passages,
        duels,
        sorted(one for one, value in strengths.items() if value > most - CLOSE),
        [{one: winners[one] for one in sorted(passages)}],
    )


def votes_within(
    passages: Sequence[str], votes: Mapping[_Duel, PairVotes]
) -> Mapping[_Duel, PairVotes]:
    """The votes on pairs of these passages."""
    known = set(passages)
    return {pair: found for pair, found in votes.items() if known >= set(pair)}


def _conclude(
    passages: Sequence[str],
    duels: Mapping[_Duel, PairVotes],
    best: Sequence[str],
    rounds: Sequence[Mapping[str, int]],
    *,
    cycle: bool = False,
) -> Tournament:
    return Tournament(
        best=tuple(best),
        rounds=tuple(rounds),
        cycle=cycle,
        unjudged=len(passages) * (len(passages) - 1) // 2 - len(duels),
        drawn=sum(found.first == found.second for found in duels.values()),
    )


def _is_cycle(best: Sequence[str], won: Mapping[tuple[str, str], str | None]) -> bool:
    among = [(pair, winner) for pair, winner in won.items() if set(best) >= set(pair) and winner]
    winners = {winner for _, winner in among}
    losers = {one for pair, winner in among for one in pair if one != winner}
    return len(best) > 1 and winners == losers == set(best)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceLabels:
    """New labels.

    Attributes:
        labels: query -> best passages, sorted; with every id that has a best passage's text.
        tournaments: query -> how its best were found, of the queries with votes.
        unvoted: queries without a vote, which keep the labels they had.
    """

    labels: Mapping[str, tuple[str, ...]]
    tournaments: Mapping[str, Tournament]
    unvoted: tuple[str, ...]

    @property
    def cycles(self) -> int:
        """Queries whose best passages beat each other in a circle."""
        return sum(found.cycle for found in self.tournaments.values())

    @property
    def several(self) -> int:
        """Queries with more than one best passage, in a circle or tied otherwise."""
        return sum(len(found.best) > 1 for found in self.tournaments.values())

    @property
    def count(self) -> int:
        """Labels of the queries with votes, each text once: 592 of 500 queries in the study."""
        return sum(len(found.best) for found in self.tournaments.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairings:
    """How labels did in the pairs that were judged.

    Attributes:
        won: judged pairs with a label that a label won; a pair of two labels is one pair.
        pairs: judged pairs with at least one label.
        label_won: pairings won, counted for each label.
        label_pairings: pairings, counted for each label: a pair of two labels twice.
    """

    won: int
    pairs: int
    label_won: int
    label_pairings: int


def make_labels(pools: Sequence[Pool], votes: Votes, *, find: Find = play) -> PreferenceLabels:
    """Find the best passages of each query.

    Args:
        pools: the passages of each query; a query without votes keeps its known answer.
        votes: those that count, by the documents that stand for their texts; those on passages
            that the pool does not have are left out.
        find: how the best are found.
    """
    labels: dict[str, tuple[str, ...]] = {}
    tournaments: dict[str, Tournament] = {}
    unvoted = []
    for pool in pools:
        docs = [one.doc for one in pool.candidates]
        found = votes_within(docs, votes.get(pool.query, {}))
        if found:
            tournament = find(docs, found)
            tournaments[pool.query] = tournament
            labels[pool.query] = _spread(pool, tournament.best)
        else:
            unvoted.append(pool.query)
            if pool.known is not None:
                labels[pool.query] = _spread(pool, (pool.known.doc,))
    return PreferenceLabels(labels=labels, tournaments=tournaments, unvoted=tuple(unvoted))


def label_pool(
    pool: Pool, votes: Mapping[_Duel, PairVotes] | None, find: Find = play
) -> tuple[str, ...]:
    """Labels of one query, as `make_labels` makes them; none where nobody judged or knew.

    Args:
        pool: its passages.
        votes: on its pairs.
        find: how the best are found.
    """
    labels = make_labels([pool], {pool.query: votes} if votes else {}, find=find).labels
    return labels.get(pool.query, ())


def count_pairings(labels: Mapping[str, Sequence[str]], votes: Votes) -> Pairings:
    """Return how often labels won the pairs they were in (Arabzadeh et al. 2021, §5.1).

    The study's 91.8% and 46.6% leave open how a pair of two labels counts: both ways are given.

    Args:
        labels: query -> labels, by the documents that stand for their texts.
        votes: those that count; a pair with as many votes on each side is won by neither.
    """
    won = pairs = label_won = label_pairings = 0
    for query, found in votes.items():
        mine = set(labels.get(query, ()))
        for pair, count in found.items():
            among = mine & set(pair)
            if among:
                winner = count.winner(pair)
                won += winner in among
                pairs += 1
                label_won += winner in among
                label_pairings += len(among)
    return Pairings(won=won, pairs=pairs, label_won=label_won, label_pairings=label_pairings)


def _spread(pool: Pool, best: Sequence[str]) -> tuple[str, ...]:
    """The best passages under every id that has their text."""
    chosen = [one for one in pool.candidates if one.doc in best]
    return tuple(sorted(doc for one in chosen for doc in one.ids))


# Versions: what labels are made of.

Algorithm = Literal["tournament", "sequential", "bradley-terry"]
"""How the best passages of a pool are found from its votes: most pairings won; not beaten, where
each passage met the best so far; the greatest strength."""

ALGORITHMS: Mapping[Algorithm, Find] = {
    "tournament": play,
    "sequential": find_unbeaten,
    "bradley-terry": find_strongest,
}
"""Every algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How labels are made from judgments.

    Attributes:
        algorithm: finds the best of a pool.
        exclusion: what a failed test excludes.
        failures: so many failed tests in a task exclude.
        until: only answers up to this time, ISO 8601 in UTC; `None` for all there are.
        prior: of `bradley-terry`, the precision of its prior; `None` for the usual one.
    """

    algorithm: Algorithm = "tournament"
    exclusion: settings.Exclusion = "task"
    failures: int = 1
    until: str | None = None
    prior: float | None = None


def find_by(rules: Rules) -> Find:
    """Return how the best passages of a pool are found by rules."""
    if rules.algorithm == "bradley-terry" and rules.prior is not None:
        return partial(find_strongest, prior=rules.prior)
    return ALGORITHMS[rules.algorithm]


class LabelVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a label version is made of.

    Attributes:
        name: its name; its labels lie in NAME.qrels.
        parent: the version that it follows; `None` for the first.
        algorithm: how the best passages were found.
        exclusion: what a failed test excluded.
        failures: so many failed tests in a task excluded.
        until: the last answer that could count, ISO 8601 in UTC; `None` where answers have no time.
        recorded: judgments up to then.
        counted: those of them that counted.
        queries: with a label.
        labels: of the queries with votes, each text once.
        unvoted: queries without a vote, which keep their known answer.
        several: queries with more than one label.
        cycles: those where the best beat each other in a circle.
        unjudged: pairs of the judged pools without a vote.
        drawn: pairs with as many votes on each side.
        judgments_sha256: of the recorded judgments, as JSON lines.
        pools_sha256: of the pools, as JSON lines.
        qrels_sha256: of NAME.qrels.
        prior: of `bradley-terry`, the precision of its prior; `None` with other algorithms.
    """

    name: str
    parent: str | None
    algorithm: Algorithm
    exclusion: settings.Exclusion
    failures: int
    until: str | None
    recorded: int
    counted: int
    queries: int
    labels: int
    unvoted: int = msgspec.field(name="kept")
    several: int
    cycles: int
    unjudged: int
    drawn: int
    judgments_sha256: Digest
    pools_sha256: Digest
    qrels_sha256: Digest
    prior: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Labels made of judgments.

    Attributes:
        version: what they are made of.
        qrels: the bytes of their file.
        labels: the labels themselves.
        votes: those that counted, by the documents that stand for their texts.
        rules: that they were made by.
    """

    version: LabelVersion
    qrels: bytes
    labels: PreferenceLabels
    votes: Votes
    rules: Rules

    def __repr__(self) -> str:
        queries = plural(self.version.queries, "query", "queries")
        return f"<Made: labels {self.version.name!r} of {queries}, by {self.version.algorithm}>"

    @property
    def grades(self) -> Mapping[str, Mapping[str, int]]:
        """Judgments as measures take them, query -> best passage -> 1."""
        labels = self.labels.labels.items()
        return {query: dict.fromkeys(docs, 1) for query, docs in sorted(labels) if docs}


def make_version(
    name: str,
    pools: Sequence[Pool],
    judgments: Sequence[Judgment],
    rules: Rules,
    *,
    parent: str | None = None,
) -> Made:
    """Make labels.

    Args:
        name: of the version.
        pools: the passages of each query.
        judgments: all that were recorded, in their order.
        rules: how labels are made.
        parent: the version that this one follows.

    Returns:
        The same bytes for the same arguments, whatever came after `rules.until`. Judgments without
        a time came before everything.

    Raises:
        InputError: code `label-id`: an id cannot stand in qrels.
    """
    until = rules.until or max((one.answered_at for one in judgments), default="") or None
    seen = judgments_at(judgments, until)
    valid = counted(seen, exclusion=rules.exclusion, failures=rules.failures)
    votes = count_votes(valid, same=stand_for(pools))
    labels = make_labels(pools, votes, find=find_by(rules))
    qrels = format_labels(labels.labels)
    played = labels.tournaments.values()
    prior = rules.prior if rules.algorithm == "bradley-terry" else None
    version = LabelVersion(
        name=name,
        parent=parent,
        **asdict(replace(rules, until=until, prior=prior)),
        recorded=len(seen),
        counted=len(valid),
        queries=len(labels.labels),
        labels=labels.count,
        unvoted=len(labels.unvoted),
        several=labels.several,
        cycles=labels.cycles,
        unjudged=sum(one.unjudged for one in played),
        drawn=sum(one.drawn for one in played),
        judgments_sha256=digest_bytes(format_judgments(seen)),
        pools_sha256=digest_bytes(rows.format_rows(pools)),
        qrels_sha256=digest_bytes(qrels),
    )
    return Made(version=version, qrels=qrels, labels=labels, votes=votes, rules=rules)


def format_labels(labels: Mapping[str, Sequence[str]]) -> bytes:
    """A qrels file of labels without grades, by query; those without a label are left out.

    Raises:
        InputError: code `label-id`: an id would be another row of qrels, or none.
    """
    found = [(query, docs) for query, docs in sorted(labels.items()) if docs]
    for one in (name for query, docs in found for name in (query, *docs)):
        if not one or not one.isprintable() or len(one.split()) != 1 or one != one.strip():
            raise InputError.of("label-id", "judgments", show(one))
    return format_qrels({query: dict.fromkeys(docs, 1) for query, docs in found})


# Label versions on disk: NAME.qrels with the labels, NAME.json with what they are made of.

_PRIVATE = 0o600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def newest_version(folder: Path) -> LabelVersion | None:
    """The last version of a folder, which is no other's parent; `None` where there is none.

    Raises:
        InputError: as `read_version`.
        StoreError: a parent is missing.
    """
    names = (name for name in Folder(folder).names() if name.endswith(".json"))
    found = [read_version(folder, name.removesuffix(".json")) for name in names]
    parents = {one.parent for one in found if one.parent is not None}
    if lost := parents - {one.name for one in found}:
        raise StoreError(f"{folder / min(lost)}.json is missing, which another version names")
    return next((one for one in found if one.name not in parents), None)


def read_version(folder: Path, name: str) -> LabelVersion:
    """A version, whose labels are there and as they were written.

    Raises:
        InputError: code `bad-row`: this is no description of a label version.
        StoreError: it is missing, or its labels are missing or were changed.
    """
    check_label_name(name)
    path, labels = (Folder(folder).file(f"{name}.{suffix}") for suffix in ("json", "qrels"))
    for file in (path, labels):
        if not file.is_file():
            raise StoreError(f"{file} is missing; `heldout prefer labels` makes label versions")
    data = path.read_bytes()
    try:
        version = msgspec.json.decode(data, type=LabelVersion)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        expected = "the description of a label version"
        raise InputError.of("bad-row", str(path), show(data[:80]), expected, str(error)) from None
    if digest_bytes(labels.read_bytes()) != version.qrels_sha256:
        raise StoreError(f"{labels} was changed since it was made; make another version instead")
    return version


def write_version(folder: Path, made: Made) -> bool:
    """Write a version; whether anything was written.

    Raises:
        InputError: code `label-name`.
        StoreError: there is another version of this name.
    """
    name = made.version.name
    check_label_name(name)
    files = Folder(folder)
    path = files.file(f"{name}.json")
    if path.is_file():
        if read_version(folder, name) == made.version:
            return False
        raise StoreError(f"{path} is another version; versions are never changed: name another")
    files.write_whole(f"{name}.qrels", made.qrels, mode=_PRIVATE)
    description = msgspec.json.format(msgspec.json.encode(made.version), indent=2) + b"\n"
    path.write_whole(description, mode=_PRIVATE)
    return True


def check_label_name(name: str, path: str = "--name") -> None:
    """Refuse a name of labels that is not that of a file.

    Args:
        name: of the version, or of the labels.
        path: the option that has the name.

    Raises:
        InputError: code `label-name`.
    """
    if not _NAME.fullmatch(name):
        raise InputError.of("label-name", path, quote(name))
