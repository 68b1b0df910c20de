"""Pools: per query, the passages that may be its best answer.

The first documents of the runs and the known answer, each text once (Arabzadeh et al. 2021, §4.1;
once per text: a judge who is shown the same words twice can only guess).
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from heldout.errors import InputError, Problem, quote
from heldout.ids import find_near, say_near
from heldout.judging.campaign.rows import Check, Item, hidden_name, raise_problems
from heldout.trec.text import show
from heldout.trec.tops import Tops


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A passage of a pool.

    Attributes:
        doc: its id; of several documents with one text the known answer's, else the least.
        text: shown to judges; empty where no texts were given.
        runs: whose tops hold it or a document of the same text, sorted.
        known: it is the known answer, or says the same.
        same: other ids of the pool with the same normalised text, sorted.
    """

    doc: str
    text: str = ""
    runs: tuple[str, ...] = ()
    known: bool = False
    same: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id with its text, its own first."""
        return (self.doc, *self.same)


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The passages of one query.

    Attributes:
        query: its id.
        text: shown to judges.
        candidates: by id; of a query that is shown with all of them in the order shown.
        split: part of the collection that the query is of, such as `dev`; may be empty.
    """

    query: str
    text: str = ""
    candidates: tuple[Candidate, ...]
    split: str = ""

    @property
    def pairs(self) -> int:
        """How many pairs of passages there are."""
        size = len(self.candidates)
        return size * (size - 1) // 2

    @property
    def known(self) -> Candidate | None:
        """The known answer; `None` where the query has none."""
        return next((one for one in self.candidates if one.known), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """How large pools are.

    Attributes:
        queries: pools.
        histogram: passages -> pools of that size, by size.
        mean: passages of a pool; `None` without a pool.
        median: the same, in the middle.
        single: pools of one passage, where nothing is left to judge.
        pairs: of all pools together.
    """

    queries: int
    histogram: Mapping[int, int]
    mean: float | None
    median: float | None
    single: int
    pairs: int


def normalise(text: str) -> str:
    """A text as it is compared: compatibility forms, case and blanks make no difference."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def build_pools(
    tops: Mapping[str, Tops],
    known: Mapping[str, Sequence[str]],
    *,
    queries: Mapping[str, str],
    documents: Mapping[str, str] | None = None,
) -> tuple[Pool, ...]:
    """Pool the tops of runs and the known answers.

    Args:
        tops: run -> query -> first documents, as deep as is pooled.
        known: query -> relevant documents in the order of their file; the first is the known
            answer, as in the study, whatever the runs say.
        queries: id -> text of the queries that are pooled, in this order.
        documents: id -> text; `None` where only ids are known: then nothing is deduplicated.

    Returns:
        A pool for each query that has a passage.

    Raises:
        InputError: code `no-text`: pooled documents without a text, the first twenty of them.
    """
    holders = _holders(tops, queries)
    for query in queries:
        for doc in known.get(query, ())[:1]:
            holders[query].setdefault(doc, set())
    if documents is not None:
        _check_texts(holders, documents)
    return tuple(
        Pool(
            query=query,
            text=text,
            candidates=_candidates(holders[query], known.get(query, ())[:1], documents),
        )
        for query, text in queries.items()
        if holders[query]
    )


def stand_for(pools: Iterable[Pool]) -> Mapping[str, Mapping[str, str]]:
    """Query -> document -> the document that stands for its text in the pool."""
    return {
        pool.query: {doc: one.doc for one in pool.candidates for doc in one.ids} for pool in pools
    }


def pool_check() -> Check[Pool]:
    """A check of the pools of one file, in order.

    Returns:
        A function that finds `repeated-query`, `empty-pool`, `repeated-document` (ids of one text
        count too), `repeated-answer`: two known answers, and `bad-row`: an id that nobody sees
        whole.
    """
    seen: set[str] = set()

    def check(pool: Pool, path: str, line: int) -> Problem | None:
        names = [doc for one in pool.candidates for doc in one.ids]
        twice = [doc for doc, count in Counter(names).items() if count > 1]
        code = found = expected = ""
        if pool.query in seen:
            code, found, expected = "repeated-query", pool.query, "a pool for each query once"
        elif not pool.candidates:
            code, found, expected = "empty-pool", pool.query, "a pool of at least one passage"
        elif twice:
            code, found, expected = "repeated-document", twice[0], "each document of a pool once"
        elif sum(one.known for one in pool.candidates) > 1:
            code, found, expected = "repeated-answer", pool.query, "one known answer in a pool"
        seen.add(pool.query)
        if code:
            return Problem.of(code=code, path=path, line=line, found=show(found), expected=expected)
        return hidden_name((pool.query, pool.split, *names), path=path, line=line)

    return check


def sizes(pools: Iterable[Pool]) -> PoolSizes:
    """Sizes of pools (Arabzadeh et al. 2021, figures 3 and 4)."""
    found = [len(pool.candidates) for pool in pools]
    return PoolSizes(
        queries=len(found),
        histogram=dict(sorted(Counter(found).items())),
        mean=float(np.mean(found)) if found else None,
        median=float(np.median(found)) if found else None,
        single=found.count(1),
        pairs=sum(size * (size - 1) // 2 for size in found),
    )


def sample_pools(
    pools: Sequence[Pool], *, count: int, rng: np.random.Generator
) -> tuple[Pool, ...]:
    """A random sample of the pools with at least two passages, in their order.

    Raises:
        InputError: code `too-few-pools`: there are not so many.
    """
    fit = [pool for pool in pools if pool.pairs]
    if count > len(fit):
        raise InputError.of(
            "too-few-pools", "pool", f"{len(fit):,} pools of two or more passages", count=count
        )
    chosen = rng.choice(len(fit), size=count, replace=False)
    return tuple(fit[index] for index in sorted(chosen.tolist()))


def _holders(
    tops: Mapping[str, Tops], queries: Collection[str]
) -> defaultdict[str, dict[str, set[str]]]:
    """Query -> document -> runs whose top it is in."""
    holders: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    for run, answers in tops.items():
        for query in queries:
            for doc in answers.get(query, ()):
                holders[query].setdefault(doc, set()).add(run)
    return holders


def _check_texts(holders: Mapping[str, Mapping[str, object]], documents: Mapping[str, str]) -> None:
    missing = sorted({d for found in holders.values() for d in found if not documents.get(d)})
    if missing:
        near = say_near(find_near(missing, documents.keys() - set().union(*holders.values())))
        hint = f"{near}: write the ids alike in all files" if near else ""
        raise_problems(Problem.of("no-text", "documents", hint=hint, name=doc) for doc in missing)


def _candidates(
    holders: Mapping[str, set[str]], known: Sequence[str], documents: Mapping[str, str] | None
) -> tuple[Candidate, ...]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for doc in sorted(holders, key=lambda doc: (doc not in known, doc)):
        groups[normalise(documents[doc]) if documents is not None else doc].append(doc)
    found = [
        Candidate(
            doc=first,
            text="" if documents is None else documents[first],
            runs=tuple(sorted(set().union(*(holders[doc] for doc in (first, *same))))),
            known=first in known,
            same=tuple(sorted(same)),
        )
        for first, *same in groups.values()
    ]
    return tuple(sorted(found, key=lambda one: one.doc))


# The texts of queries and passages, as pools give them: one for each id.


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts by id.

    Attributes:
        queries: of queries.
        docs: of passages.
        shown: passages of each query that is shown with all of them, in that order.
    """

    queries: Mapping[str, str]
    docs: Mapping[str, str]
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def docs_of(self, item: Item) -> Sequence[str]:
        """Return the ids of the passages that an item shows."""
        return (item.left, item.right) if item.left else self.shown.get(item.query, ())


def gather_texts(pools: Iterable[Pool]) -> Texts:
    """The texts of pools, without empty ones; a NUL, which no database takes, becomes U+FFFD.

    Raises:
        InputError: code `changed-text`: two pools give one id two texts.
    """
    asked: dict[str, str] = {}
    docs: dict[str, str] = {}
    shown: dict[str, tuple[str, ...]] = {}
    problems = []
    for number, pool in enumerate(pools, 1):
        shown[pool.query] = tuple(one.doc for one in pool.candidates)
        texts = [(asked, pool.query, pool.text)]
        texts += [(docs, candidate.doc, candidate.text) for candidate in pool.candidates]
        for known, name, raw in texts:
            text = raw.replace("\0", "\ufffd")
            if text and known.setdefault(name, text) != text:
                problems.append(changed_text(name, number))
    raise_problems(problems)
    return Texts(queries=asked, docs=docs, shown=shown)


def changed_text(name: str, line: int | None = None) -> Problem:
    """The problem of an id with a second text.

    Args:
        name: the id, of a query or passage.
        line: of the pools, where it is known.
    """
    expected = "one text for each query and passage"
    hint = "judgments are of the text that was shown; give another text another id"
    found = f"another text of {quote(name)} than before"
    return Problem.of("changed-text", "pool.jsonl", found, expected, hint, line=line)


def missing_texts(items: Iterable[Item], texts: Texts) -> list[Problem]:
    """A problem for each query and passage that items show without a text: `text-missing`."""
    shown = list(items)
    missing = {one.query for one in shown if not texts.queries.get(one.query)}
    missing |= {doc for one in shown for doc in texts.docs_of(one) if not texts.docs.get(doc)}
    return [
        Problem.of("text-missing", "pool.jsonl", f"no text of {quote(name)}, which a task shows")
        for name in sorted(missing)
    ]
