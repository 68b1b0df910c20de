"""The rankers' formulas once more, word by word and without a matrix: the oracle of the tests."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from math import log, sqrt

from heldout.rankers.run import RankingTask

Terms = Callable[[str], list[str]]
Scores = dict[str, dict[str, float]]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def grams(length: int) -> Terms:
    def cut(text: str) -> list[str]:
        framed = [f" {word} " for word in re.findall(r"\w+", text.lower())]
        return [
            word[i : i + length]
            for word in framed
            for i in range(len(word))
            if i + length <= len(word)
        ]

    return cut


def tfidf_cosine(task: RankingTask, terms: Terms) -> Scores:
    documents = {str(key): Counter(terms(text)) for key, text in task.documents.items()}
    df = Counter(term for counts in documents.values() for term in counts)

    def vector(counts: Counter[str]) -> dict[str, float]:
        raw = {
            term: (1 + log(count)) * log(len(documents) / df[term])
            for term, count in counts.items()
            if term in df
        }
        length = sqrt(sum(value**2 for value in raw.values()))
        return {term: value / length for term, value in raw.items()} if length else {}

    def cosine(query: str, key: str) -> float:
        asked, found = vector(Counter(terms(query))), vector(documents[key])
        return sum(value * found.get(term, 0.0) for term, value in asked.items())

    return {q: {d: cosine(text, d) for d in documents} for q, text in task.queries.items()}


def query_likelihood(task: RankingTask, *, mu: float | None = None, lam: float = 0.5) -> Scores:
    """ln P(query | document) less what is equal for all documents: the collection's part."""
    documents = {key: Counter(words(text)) for key, text in task.documents.items()}
    total = sum(documents.values(), Counter[str]())

    def probability(term: str, counts: Counter[str]) -> float:
        background = total[term] / total.total()
        length = counts.total()
        if mu is not None:
            return (counts[term] + mu * background) / (length + mu)
        return (1 - lam) * (counts[term] / length if length else 0.0) + lam * background

    def score(query: str, counts: Counter[str]) -> float:
        asked = [term for term in words(query) if term in total]
        return sum(log(probability(t, counts)) - log(total[t] / total.total()) for t in asked)

    return {
        q: {d: score(text, counts) for d, counts in documents.items()}
        for q, text in task.queries.items()
    }


def bm25_weights(task: RankingTask, k1: float, b: float) -> dict[str, dict[str, float]]:
    documents = {key: Counter(words(text)) for key, text in task.documents.items()}
    df = Counter(term for counts in documents.values() for term in counts)
    size = len(documents)
    average = sum(counts.total() for counts in documents.values()) / size

    def weight(term: str, counts: Counter[str]) -> float:
        idf = log(1 + (size - df[term] + 0.5) / (df[term] + 0.5))
        return idf * counts[term] / (counts[term] + k1 * (1 - b + b * counts.total() / average))

    return {
        key: {term: weight(term, counts) for term in counts} for key, counts in documents.items()
    }


def bm25(task: RankingTask, *, k1: float, b: float) -> Scores:
    weights = bm25_weights(task, k1, b)
    return {
        q: {d: sum(found.get(t, 0.0) for t in words(text)) for d, found in weights.items()}
        for q, text in task.queries.items()
    }


def rm3(
    task: RankingTask, *, k1: float, b: float, documents: int, terms: int, original: float
) -> Scores:
    weights = bm25_weights(task, k1, b)
    counts = {str(key): Counter(words(text)) for key, text in task.documents.items()}
    df = Counter(term for one in counts.values() for term in one)
    rare = {term for term in df if df[term] <= max(1.0, 0.1 * len(counts))}
    result: Scores = {}
    for query, text in task.queries.items():
        asked = Counter(term for term in words(text) if term in df)
        first = {d: sum(asked[t] * w for t, w in found.items()) for d, found in weights.items()}
        best = sorted(sorted(first, reverse=True), key=first.__getitem__, reverse=True)[:documents]
        mass = sum(first[d] for d in best)
        model: defaultdict[str, float] = defaultdict(float)
        for d in best if mass else []:
            for term in counts[d].keys() & rare:
                model[term] += first[d] / mass * counts[d][term] / counts[d].total()
        kept = dict(sorted(model.items(), key=lambda item: -item[1])[:terms])
        mixed = {
            term: original * asked[term] / max(asked.total(), 1)
            + (1 - original) * kept.get(term, 0.0) / (sum(kept.values()) or 1.0)
            for term in {*asked, *kept}
        }
        result[query] = {
            d: sum(share * found.get(t, 0.0) for t, share in mixed.items())
            for d, found in weights.items()
        }
    return result
