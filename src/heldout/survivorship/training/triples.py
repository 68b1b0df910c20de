"""Training triples that a shallower annotation would have left, and triples made of labels.

A triple is a query, a document that was selected for it, and one that was not. Had annotators seen
no more than the first r documents, the triples whose positive stood deeper would not be there. The
others stay as they are, in their order, so that two trainings differ in nothing but what was left
out.

Fewer triples are also worse triples for no other reason than that they are fewer. The control for
that is a random sample of all triples that is as small (`Sampler`). Every condition, depth,
sample or share, takes its triples out of the same sequence and leaves them in order.

Source: Gupta and MacAvaney 2022, §5.1.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import NamedTuple

import numpy as np

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotations

WHOLE = 1.0
"""The share of a condition that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which triples are trained on.

    Attributes:
        depth: only those whose positive was shown at this place or above; `None` for all that
            annotators selected.
        like: instead a random sample of all, as small as with this depth.
        share: of the labelled queries, a random part of this size, in (0, 1].
    """

    depth: int | None = None
    like: int | None = None
    share: float = WHOLE

    def __post_init__(self) -> None:
        """Refuse what is no condition."""
        sizes = [one for one in (self.depth, self.like) if one is not None]
        narrowed = len(sizes) + (self.share != WHOLE)
        if narrowed > 1 or not 0 < self.share <= 1 or min(sizes, default=1) < 1:
            raise ValueError(self)

    @property
    def name(self) -> str:
        """What it is called in tables: `r=1`, `all`, `all, as few as r=1`, `10%`."""
        if self.depth is not None:
            return f"r={self.depth}"
        if self.like is not None:
            return f"all, as few as r={self.like}"
        return "all" if self.share == WHOLE else f"{self.share:.12g} of all"

    @property
    def folder(self) -> str:
        """What its files are called: letters, digits, points and dashes."""
        if self.depth is not None:
            return f"r{self.depth}"
        if self.like is not None:
            return f"all-like-r{self.like}"
        return "all" if self.share == WHOLE else f"share-{self.share:.12g}"


ALL = Condition()
"""Everything that annotators selected."""


def paper_conditions(depths: Sequence[int], *, controls: Sequence[int]) -> tuple[Condition, ...]:
    """The depths in rising order, all, and the controls.

    Args:
        depths: places from 1.
        controls: depths whose size a random sample is to have.
    """
    return (
        *(Condition(depth=depth) for depth in sorted(set(depths))),
        ALL,
        *(Condition(like=depth) for depth in sorted(set(controls))),
    )


def share_conditions(shares: Sequence[float]) -> tuple[Condition, ...]:
    """A condition for each share of the labelled queries, in rising order."""
    return tuple(Condition(share=share) for share in sorted(set(shares)))


class Triple(NamedTuple):
    """One sample to train on, by ids."""

    query: QueryId
    positive: DocId
    negative: DocId


SelectedRanks = Mapping[QueryId, Mapping[DocId, int]]
"""Query -> selected document -> place at which it was shown, from 1."""


Label = tuple[QueryId, DocId]
"""A query and a document that was selected for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TripleCounts:
    """How much there is to learn from.

    Attributes:
        per_label: label -> how many triples it has, at least 1.
    """

    per_label: Mapping[Label, int]

    @property
    def triples(self) -> int:
        """All of them."""
        return sum(self.per_label.values())

    @property
    def labels(self) -> int:
        """Different pairs of a query and its positive."""
        return len(self.per_label)

    @property
    def queries(self) -> int:
        """Different queries."""
        return len({query for query, _ in self.per_label})


def ranks_of(annotations: Annotations) -> SelectedRanks:
    """Return where the selected documents of each query were shown."""
    return {record.query: record.selected for record in annotations.records if record.selected}


class Sampler:
    """A random sample of all triples, as small as some condition, drawn while they pass by.

    Three amounts are matched: how many queries have a label, which is what annotators are paid
    for and what discarding takes away; how many labels they have together; and how many
    different triples there are. The queries are drawn without regard to anything. Each keeps
    one of its labels at least, any of them; the rest is drawn from all their other labels. Of
    the triples as many stay as are wanted: the first one of each label, and of the others each is
    as likely to stay as any other.

    Attributes:
        labels: those whose triples may stay.
        triples: how many triples stay, at least one for each of the labels.
        missing: how many triples fewer there are than were wanted; 0 where the labels have
            enough.
        missing_labels: how many labels fewer there are, where the queries drawn have no more.
    """

    def __init__(self, wanted: TripleCounts, whole: TripleCounts, rng: np.random.Generator) -> None:
        """Draw queries and labels.

        Args:
            wanted: the condition that the sample is to be as small as, a part of `whole`.
            whole: of all triples that will pass by.
            rng: sole source of randomness; advanced in place.

        Raises:
            ValueError: the whole has fewer queries than are wanted, or none are.
        """
        documents: dict[QueryId, list[DocId]] = {}
        for query, document in sorted(whole.per_label):
            documents.setdefault(query, []).append(document)
        queries = list(documents)
        if not 0 < wanted.queries <= len(queries):
            raise ValueError((wanted.queries, len(queries)))
        drawn = rng.choice(len(queries), size=wanted.queries, replace=False).tolist()
        chosen = {queries[index]: documents[queries[index]] for index in sorted(drawn)}
        self.labels = _draw_labels(chosen, wanted.labels, rng)
        available = sum(whole.per_label[label] for label in self.labels)
        self.triples = min(wanted.triples, available)
        self.missing = wanted.triples - self.triples
        self.missing_labels = wanted.labels - len(self.labels)
        self._seen: set[Label] = set()
        self._left = available - len(self.labels)
        self._surplus = available - self.triples
        self._rng = rng

    def takes(self, triple: Triple) -> bool:
        """Check whether the next triple of the sequence is in the sample."""
        label = triple.query, triple.positive
        if label not in self.labels:
            return False
        if label not in self._seen:
            self._seen.add(label)
            return True
        # Knuth's selection sampling: of the `left` that are to come, `surplus` have to go.
        leaves = self._surplus > 0 and self._rng.random() * self._left < self._surplus
        self._left -= 1
        self._surplus -= leaves
        return not leaves


def _draw_labels(
    documents: Mapping[QueryId, Sequence[DocId]], wanted: int, rng: np.random.Generator
) -> frozenset[Label]:
    """So many labels of these queries, at least one of each; all where there are no more."""
    labels = [(query, document) for query, found in documents.items() for document in found]
    if wanted >= len(labels):
        return frozenset(labels)
    first = [(query, found[int(rng.integers(len(found)))]) for query, found in documents.items()]
    others = sorted(set(labels) - set(first))
    more = rng.choice(len(others), size=wanted - len(first), replace=False).tolist()
    return frozenset([*first, *(others[index] for index in more)])


ReadTriples = Callable[[], Iterable[Triple]]
"""Gives the same sequence from its beginning at each call; the annotations know each positive."""


@dataclass(slots=True, kw_only=True)
class TripleDraw:
    """What a condition takes, while the sequence passes by.

    Attributes:
        takes: whether it takes a triple.
        put: gets what it takes; `None` to hold it in `triples`.
        triples: what it has taken, without `put`.
        left: how many more it takes; `None` for all.
        missing: for a sample: how many triples it has too few.
        missing_labels: for a sample: how many labels.
        per_label: how many it has taken of each label.
    """

    takes: Callable[[Triple], bool]
    put: Callable[[Triple], object] | None = None
    triples: list[Triple] = field(default_factory=list)
    left: int | None = None
    missing: int = 0
    missing_labels: int = 0
    per_label: Counter[Label] = field(default_factory=Counter)

    def offer(self, triple: Triple) -> None:
        """Take a triple, where it is one of the condition's."""
        if self.takes(triple):
            (self.put or self.triples.append)(triple)
            self.per_label[triple.query, triple.positive] += 1
            self.left = None if self.left is None else self.left - 1

    @property
    def counts(self) -> TripleCounts:
        """How much it has taken."""
        return TripleCounts(per_label=self.per_label)


def draw_triples(
    read: ReadTriples,
    selected: SelectedRanks,
    wanted: Sequence[tuple[Condition, int]],
    *,
    source: str,
    limit: int | None = None,
    open_target: Callable[[Condition], Callable[[Triple], object]] | None = None,
) -> tuple[tuple[TripleDraw, ...], TripleCounts]:
    """Let the sequence pass by, and give each condition its triples in their order.

    Depths need one pass; random samples and shares need a second, since what they draw from is
    known only at the end of the first.

    Args:
        read: the sequence.
        selected: where selected documents were shown.
        wanted: conditions, each with the seed of what is drawn at random. With one seed a larger
            share holds the smaller ones. A depth is drawn once, whatever its seeds.
        source: where the triples come from, for messages.
        limit: how many triples each takes at most. A control is as small as what is left of the
            condition it follows.
        open_target: gives what gets the triples of a condition; `None` to hold them in memory.

    Returns:
        What each took, in the order of `wanted`; and how much the whole sequence has.

    Raises:
        InputError: code `no-triples`: a condition leaves none.
    """

    def find_target(condition: Condition) -> Callable[[Triple], object] | None:
        return None if open_target is None else open_target(condition)

    asked = dict.fromkeys(one.depth for one, _ in wanted if _is_depth(one))
    followed = dict.fromkeys(one.like for one, _ in wanted if one.like not in (None, *asked))
    shallow = {
        depth: TripleDraw(
            takes=_shown_until(depth, selected),
            put=find_target(Condition(depth=depth)) if depth in asked else len,
            left=limit,
        )
        for depth in (*asked, *followed)
    }
    whole = TripleDraw(takes=lambda _: True, put=len)
    _pass_by(read, [whole, *shallow.values()])
    _check_drawn(((Condition(depth=depth), found) for depth, found in shallow.items()), source)
    drawn = {}
    for condition, seed in wanted:
        if condition.like is not None:
            like, rng = shallow[condition.like].counts, np.random.default_rng(seed)
            sample = Sampler(like, whole.counts, rng)
            drawn[condition, seed] = TripleDraw(
                takes=sample.takes,
                put=find_target(condition),
                left=sample.triples,
                missing=sample.missing,
                missing_labels=sample.missing_labels,
            )
        elif not _is_depth(condition):
            queries = share_queries(whole.counts, condition.share, seed=seed)
            drawn[condition, seed] = TripleDraw(
                takes=_is_of(queries), put=find_target(condition), left=limit
            )
    _pass_by(read, drawn.values())
    _check_drawn(((condition, found) for (condition, _), found in drawn.items()), source)
    draws = (drawn.get(pair) or shallow[pair[0].depth] for pair in wanted)
    return tuple(draws), whole.counts


def _pass_by(read: ReadTriples, draws: Collection[TripleDraw]) -> None:
    """Let the sequence pass by until each has as many triples as it may have."""
    waiting = [one for one in draws if one.left != 0]
    for triple in read() if waiting else ():
        for one in waiting:
            one.offer(triple)
        if any(one.left == 0 for one in waiting):
            waiting = [one for one in waiting if one.left != 0]
            if not waiting:
                break


def share_queries(counts: TripleCounts, share: float, *, seed: int) -> frozenset[QueryId]:
    """Draw the queries of a random share of the labels.

    Args:
        counts: of the whole sequence.
        share: of its queries, in (0, 1]; with one seed a larger share holds the smaller ones.
        seed: of the draw.
    """
    queries = sorted({query for query, _ in counts.per_label})
    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    return frozenset(queries[index] for index in islice(order, ceil(share * len(queries))))


def _is_depth(condition: Condition) -> bool:
    """Return whether nothing is drawn at random."""
    return condition.like is None and condition.share == WHOLE


def _shown_until(depth: int | None, selected: SelectedRanks) -> Callable[[Triple], bool]:
    return lambda one: depth is None or selected[one.query][one.positive] <= depth


def _is_of(queries: frozenset[QueryId]) -> Callable[[Triple], bool]:
    return lambda triple: triple.query in queries


def _check_drawn(found: Iterable[tuple[Condition, TripleDraw]], source: str) -> None:
    """Refuse a condition that leaves no triple: code `no-triples`."""
    for condition, draw in found:
        if not draw.per_label:
            what = f"no triple for {condition.name}"
            raise InputError.of("no-triples", source, what)


def make_triples(
    labels: SelectedRanks,
    ranked: Mapping[QueryId, Sequence[DocId]],
    *,
    negatives: int,
    rng: np.random.Generator,
) -> tuple[Triple, ...]:
    """Triples for labels that have none: negatives are drawn from a run.

    Each label has its negatives without a repetition. The sequence goes in rounds: each round
    has every label once, in an order of its own, with its next negative; so the beginning of
    the sequence knows all labels.

    Args:
        labels: where the selected documents of each query were shown.
        ranked: the top of a run for each query; selected documents are never drawn.
        negatives: how many for each label, at least 1; fewer where the run has fewer.
        rng: sole source of randomness; advanced in place.

    Returns:
        The triples of the labels that have a negative; a query that the run does not answer
        has none.
    """
    drawn = []
    for query, own in labels.items():
        pool = [document for document in ranked.get(query, ()) if document not in own]
        for positive in own:
            others = [pool[at] for at in rng.permutation(len(pool))[:negatives].tolist()]
            drawn.append((query, positive, others))
    triples: list[Triple] = []
    for turn in range(negatives):
        for index in rng.permutation(len(drawn)).tolist():
            query, positive, others = drawn[index]
            if turn < len(others):
                triples.append(Triple(query, positive, others[turn]))
    return tuple(triples)
