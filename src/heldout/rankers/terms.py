"""Ranking by terms: from text to terms, their counts as sparse matrices, and models over them.

Terms are words, the parts of identifiers, stems, and character n-grams. The models are query
likelihood (a document is as good as its word model explains the query), TF-IDF with the cosine, and
BM25 as the library bm25s computes it, alone and with pseudo-relevance feedback (RM3).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from heldout.errors import SetupError
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit, RankingTask, Run, rank_scores

Tokeniser = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# English words of grammar rather than of content.
_GRAMMAR_WORDS = """
    a an and are as at be been but by can do does for from had has have he her his how i if
    in into is it its me my no nor not of on or our she should so such than that the their
    them then there these they this those to was we were what when where which who will with
    would you your
"""
_STOPWORDS = frozenset(_GRAMMAR_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """How text becomes terms; every ranker on words takes these.

    Identifiers are divided: `readInto_buffer` is `read`, `into` and `buffer`.

    Attributes:
        stem: reduce words to their stems with the Snowball stemmer for English; needs the
            extra `rankers`.
        stopwords: leave out English function words.
    """

    stem: bool = False
    stopwords: bool = False


def make_tokeniser(settings: TextSettings) -> Tokeniser:
    """A function from text to its terms, in the order of the text, repeats kept.

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.
    """
    stem = _stemmer() if settings.stem else None
    known: dict[str, list[str]] = {}

    def terms_of(word: str) -> list[str]:
        terms = [part.lower() for part in split_identifier(word)]
        if settings.stopwords:
            terms = [term for term in terms if term not in _STOPWORDS]
        return [stem(term) for term in terms] if stem else terms

    def tokenise(text: str) -> list[str]:
        result: list[str] = []
        for word in _WORD.findall(text):
            if word not in known:
                known[word] = terms_of(word)
            result.extend(known[word])
        return result

    return tokenise


def split_identifier(word: str) -> list[str]:
    """Parts of an identifier: at underscores and where lower case meets upper case.

    Args:
        word: letters, digits and underscores.

    Returns:
        Parts as written; joined they are the word without its underscores.
    """
    return [part for piece in word.split("_") if piece for part in _HUMP.split(piece)]


def character_ngrams(text: str, length: int) -> list[str]:
    """Character n-grams of each word, the word framed by blanks, in lower case.

    Args:
        text: any text.
        length: n, >= 1.

    Returns:
        The n-grams, repeats kept; a framed word shorter than n gives none.

    Source: McNamee and Mayfield, Information Retrieval 7, 2004 (n-grams for retrieval).
    """
    framed = [f" {word} " for word in _WORD.findall(text.lower())]
    return [
        word[start : start + length] for word in framed for start in range(len(word) - length + 1)
    ]


def _stemmer() -> Callable[[str], str]:
    try:
        import Stemmer  # noqa: PLC0415 - of the extra `rankers`
    except ImportError as error:
        raise SetupError("stems need PyStemmer: pip install 'heldout[rankers]'") from error
    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem


_BLOCK = 256
"""Queries scored at once: a dense block of 256 x 10,000 scores takes 20 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermIndex:
    """Term counts of the documents and queries of a task over one vocabulary.

    Attributes:
        documents: ids in ascending order, the rows of `document_counts`.
        queries: ids in the order of the task, the rows of `query_counts`.
        vocabulary: terms of the documents and their columns, by first occurrence.
        document_counts: float64, shape (documents, terms).
        query_counts: float64, shape (queries, terms); terms of no document are left out.
    """

    documents: tuple[DocId, ...]
    queries: tuple[QueryId, ...]
    vocabulary: dict[str, int]
    document_counts: csr_array
    query_counts: csr_array


def index_terms(task: RankingTask, tokenise: Tokeniser) -> TermIndex:
    """Count the terms of a task's documents and queries.

    Args:
        task: what to rank.
        tokenise: from text to terms.
    """
    documents = tuple(sorted(task.documents))
    terms = [tokenise(task.documents[document]) for document in documents]
    vocabulary = {term: column for column, term in enumerate(dict.fromkeys(chain(*terms)))}
    return TermIndex(
        documents=documents,
        queries=tuple(task.queries),
        vocabulary=vocabulary,
        document_counts=count_terms(terms, vocabulary),
        query_counts=count_terms([tokenise(text) for text in task.queries.values()], vocabulary),
    )


def count_terms(texts: Sequence[Sequence[str]], vocabulary: dict[str, int]) -> csr_array:
    """Return how often each term stands in each text.

    Args:
        texts: terms of each text; those outside the vocabulary are left out.
        vocabulary: column of each term.

    Returns:
        float64, shape (texts, max(1, terms)); columns of a row ascend, so that sums over
        them come out the same each time.
    """
    columns = [[vocabulary[term] for term in text if term in vocabulary] for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in columns])]).astype(np.int64)
    indices = np.fromiter(chain(*columns), dtype=np.int64, count=int(starts[-1]))
    shape = (len(texts), max(1, len(vocabulary)))
    counts = csr_array((np.ones(len(indices)), indices, starts), shape=shape)
    counts.sum_duplicates()
    return counts


def score_blocks(
    queries: csr_array, documents: csr_array
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Inner products of weighted queries and weighted documents, some queries at a time.

    Args:
        queries: shape (queries, terms).
        documents: shape (documents, terms).

    Yields:
        Number of the block's first query, and scores of shape (block, documents).
    """
    columns = csr_array(documents.T)
    for start in range(0, queries.shape[0], _BLOCK):
        yield start, (queries[start : start + _BLOCK] @ columns).toarray()


def rank_products(
    index: TermIndex,
    *,
    queries: csr_array,
    documents: csr_array,
    depth: int,
    offsets: NDArray[np.float64] | None = None,
) -> dict[QueryId, list[Hit]]:
    """Rank by inner products of weights.

    Args:
        index: says whose rows these are.
        queries: weights, shape (queries, terms).
        documents: weights, shape (documents, terms).
        depth: hits per query, >= 1.
        offsets: shape (documents,); added once per query term, by the query's sum of
            weights (length normalisation of language models). None adds nothing.
    """
    lengths = np.asarray(queries.sum(axis=1), dtype=np.float64)
    run: dict[QueryId, list[Hit]] = {}
    for start, block in score_blocks(queries, documents):
        for row, scores in enumerate(block, start):
            total = scores if offsets is None else scores + lengths[row] * offsets
            run[index.queries[row]] = rank_scores(index.documents, total, depth)
    return run


_MOST = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodSettings(TextSettings):
    """How a document's word model is smoothed with that of the collection.

    Attributes:
        smoothing: `dirichlet` or `jelinek-mercer`.
        mu: weight of the collection in words, above 0 and up to 1,000,000 (`dirichlet`).
        lam: share of the collection, in (0, 1) (`jelinek-mercer`).
    """

    smoothing: Literal["dirichlet", "jelinek-mercer"] = "dirichlet"
    mu: float = 200.0
    lam: float = 0.5

    def __post_init__(self) -> None:
        """Refuse weights that give no probability."""
        if not (0 < self.mu <= _MOST and 0 < self.lam < 1):
            raise ValueError("wanted: 0 < mu <= 1000000 and 0 < lam < 1")


def rank_likelihood(task: RankingTask, settings: LikelihoodSettings) -> Run:
    """Rank by the logarithm of the probability that a document's model gives the query.

    Scores leave out what is equal for all documents of a query: the sum of ln p(w) over its
    words under the collection's model. Query words of no document are left out.

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.

    Source: Zhai and Lafferty, TOIS 22(2), 2004, equations 6 and 7 and Table II.
    """
    index = index_terms(task, make_tokeniser(settings))
    weigh = _dirichlet if settings.smoothing == "dirichlet" else _jelinek_mercer
    weights, offsets = weigh(index, settings)
    return rank_products(
        index, queries=index.query_counts, documents=weights, depth=task.depth, offsets=offsets
    )


def _dirichlet(
    index: TermIndex, settings: LikelihoodSettings
) -> tuple[csr_array, NDArray[np.float64]]:
    counts = index.document_counts
    weights = counts.copy()
    weights.data = np.log1p(counts.data / (settings.mu * _collection_model(counts)[counts.indices]))
    return weights, np.log(settings.mu / (_lengths(counts) + settings.mu))


def _jelinek_mercer(
    index: TermIndex, settings: LikelihoodSettings
) -> tuple[csr_array, NDArray[np.float64]]:
    counts = index.document_counts
    lengths = np.repeat(_lengths(counts), np.diff(counts.indptr))
    odds = (1 - settings.lam) / settings.lam
    weights = counts.copy()
    model = _collection_model(counts)[counts.indices]
    weights.data = np.log1p(odds * counts.data / (lengths * model))
    return weights, np.full(counts.shape[0], np.log(settings.lam))


def _collection_model(counts: csr_array) -> NDArray[np.float64]:
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64)
    return totals / max(float(totals.sum()), 1.0)


def _lengths(counts: csr_array) -> NDArray[np.float64]:
    return np.asarray(counts.sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TfidfSettings(TextSettings):
    """TF-IDF takes the settings of its text and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramSettings:
    """The length of character n-grams.

    Attributes:
        length: n, >= 1.
    """

    length: int = 4

    def __post_init__(self) -> None:
        """Refuse a length that makes no n-gram."""
        if self.length < 1:
            raise ValueError("wanted: length >= 1")


def rank_tfidf(task: RankingTask, settings: TfidfSettings) -> Run:
    """Rank by the cosine of TF-IDF vectors of words.

    Weights are (1 + ln tf) ln(N / df) on both sides (`ltc.ltc`).

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.

    Source: Salton and Buckley, Information Processing & Management 24(5), 1988.
    """
    return _rank_cosine(task, index_terms(task, make_tokeniser(settings)))


def rank_char_ngrams(task: RankingTask, settings: NgramSettings) -> Run:
    """Rank by the cosine of TF-IDF vectors of character n-grams.

    Source: weights as `rank_tfidf`; n-grams as `text.character_ngrams`.
    """

    def ngrams(text: str) -> list[str]:
        return character_ngrams(text, settings.length)

    return _rank_cosine(task, index_terms(task, ngrams))


def _rank_cosine(task: RankingTask, index: TermIndex) -> Run:
    counts = index.document_counts
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log(counts.shape[0] / np.maximum(frequencies, 1))
    return rank_products(
        index,
        queries=_unit_rows(index.query_counts, rarity),
        documents=_unit_rows(counts, rarity),
        depth=task.depth,
    )


def _unit_rows(counts: csr_array, rarity: np.ndarray) -> csr_array:
    """Weighted rows of length one; a row without weight stays zero."""
    weights = counts.copy()
    weights.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    lengths = np.sqrt(np.asarray(weights.power(2).sum(axis=1)))
    return csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ weights)


_MOST_K1 = 1000.0
_COMMON = 0.1
"""A term in a larger share of the documents expands no query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Settings(TextSettings):
    """The free parameters of BM25.

    Attributes:
        k1: how much repetition of a term counts, 0 to 1,000.
        b: how much the length of a document is held against it, in [0, 1].
        stem: as in `TextSettings`, but on.
    """

    k1: float = 0.9
    b: float = 0.4
    stem: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters outside their ranges."""
        if not (0 <= self.k1 <= _MOST_K1 and 0 <= self.b <= 1):
            raise ValueError("wanted: k1 in 0..1000, b in 0..1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rm3Settings(TextSettings):
    """BM25 twice: as asked, then with the words of the best documents.

    Attributes:
        k1: how much repetition of a term counts, 0 to 1,000.
        b: how much the length of a document is held against it, in [0, 1].
        documents: how many best documents are taken as relevant, >= 1.
        terms: how many of their terms are added to the query, >= 1.
        original: weight of the words that were asked, in [0, 1].
        stem: as in `TextSettings`, but on.
    """

    k1: float = 0.9
    b: float = 0.4
    documents: int = 5
    terms: int = 20
    original: float = 0.7
    stem: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters outside their ranges."""
        if not (0 <= self.k1 <= _MOST_K1 and 0 <= self.b <= 1 and 0 <= self.original <= 1):
            raise ValueError("wanted: k1 in 0..1000, b and original in 0..1")
        if self.documents < 1 or self.terms < 1:
            raise ValueError("wanted: documents and terms of at least 1")


def rank_bm25(task: RankingTask, settings: Bm25Settings) -> Run:
    """Rank by BM25.

    A query's score is the sum of its terms' weights, each as often as it is asked.

    Raises:
        SetupError: bm25s (or, with `stem`, PyStemmer) is not installed.

    Source: Robertson and Zaragoza, FnTIR 3(4), 2009; the variant of Lucene: Kamphuis et al., ECIR
    2020, as implemented in Lu, arXiv:2407.03618, 2024.
    """
    index = index_terms(task, make_tokeniser(settings))
    weights = _weights(index.document_counts, settings)
    return rank_products(index, queries=index.query_counts, documents=weights, depth=task.depth)


def rank_rm3(task: RankingTask, settings: Rm3Settings) -> Run:
    """Rank by BM25 with the query mixed with a relevance model of its own best documents.

    The model of a query is the mean of the word distributions of its best documents,
    weighted by their BM25 scores; terms in more than a tenth of all documents are left out,
    the heaviest kept and made to sum to 1, and mixed with the query's own words.

    Raises:
        SetupError: bm25s (or, with `stem`, PyStemmer) is not installed.

    Source: Lavrenko and Croft, SIGIR 2001; the mixture RM3: Abdul-Jaleel et al., TREC 2004.
    """
    index = index_terms(task, make_tokeniser(settings))
    weights = _weights(index.document_counts, Bm25Settings(k1=settings.k1, b=settings.b))
    first = rank_products(
        index, queries=index.query_counts, documents=weights, depth=settings.documents
    )
    expansion = _heaviest(_feedback(index, first) @ _distributions(index), settings.terms)
    asked = _unit_sums(index.query_counts)
    mixed = csr_array(settings.original * asked + (1 - settings.original) * expansion)
    return rank_products(index, queries=mixed, documents=weights, depth=task.depth)


def _weights(counts: csr_array, settings: Bm25Settings) -> csr_array:
    """BM25 weight of each term in each document, shape (documents, terms)."""
    try:
        with catch_warnings():  # its progress bar misses ipywidgets in a notebook; we show none
            filterwarnings("ignore", message="IProgress not found")
            import bm25s  # noqa: PLC0415 - of the extra `rankers`
    except ImportError as error:
        raise SetupError("BM25 needs bm25s: pip install 'heldout[rankers]'") from error
    if counts.nnz == 0:
        return counts
    model = bm25s.BM25(k1=settings.k1, b=settings.b, method="lucene", dtype="float64")
    # Our own numbering of terms: that of bm25s goes through a set, so by hash seed.
    columns = {column: column for column in range(counts.shape[1])}
    model.index((_token_lists(counts), columns), create_empty_token=False, show_progress=False)
    scores = model.scores
    return csr_array(
        csc_array((scores["data"], scores["indices"], scores["indptr"]), shape=counts.shape)
    )


def _token_lists(counts: csr_array) -> list[list[int]]:
    """The documents again as lists of columns, each as often as it occurs."""
    repeated = np.repeat(counts.indices, counts.data.astype(np.int64))
    ends = np.cumsum(np.asarray(counts.sum(axis=1), dtype=np.int64))
    return [part.tolist() for part in np.split(repeated, ends[:-1])]


def _feedback(index: TermIndex, run: Run) -> csr_array:
    """Share of each document in each query's model, shape (queries, documents)."""
    rows = {document: row for row, document in enumerate(index.documents)}
    hits = [run[query] for query in index.queries]
    indices = [rows[hit.document] for ranking in hits for hit in ranking]
    values = np.array([hit.score for ranking in hits for hit in ranking], dtype=np.float64)
    starts = np.cumsum([0, *(len(ranking) for ranking in hits)])
    shape = (len(hits), len(index.documents))
    return _unit_sums(csr_array((values, np.array(indices, np.int64), starts), shape=shape))


def _distributions(index: TermIndex) -> csr_array:
    """Word distribution of each document, without the terms that are too common."""
    counts = index.document_counts
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    rare = (frequencies <= max(1.0, _COMMON * counts.shape[0])).astype(np.float64)
    return csr_array(_unit_sums(counts) @ diags_array(rare))


def _heaviest(weights: csr_array, terms: int) -> csr_array:
    """The `terms` heaviest of each row, made to sum to 1; ties go to the lower column."""
    weights = csr_array(weights)
    weights.sort_indices()
    for start, end in zip(weights.indptr, weights.indptr[1:], strict=False):
        row = weights.data[start:end]
        row[np.argsort(-row, kind="stable")[terms:]] = 0
    weights.eliminate_zeros()
    return _unit_sums(weights)


def _unit_sums(matrix: csr_array) -> csr_array:
    """Rows scaled to sum to 1; a row without weight stays zero."""
    sums: NDArray[np.float64] = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    return csr_array(diags_array(1 / np.where(sums > 0, sums, 1)) @ matrix)
