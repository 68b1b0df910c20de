"""Where do two runs differ, query by query? Scores, rankings, labels, texts, and the page of them.

`compare_lists` needs no file, and knows of no board or vault; `failures_of_runs` reads runs.

The page has the answer, a picture and the queries that differ most, which can be read without its
script. The folder has the style, the script, the list of all queries, and rankings with texts in
chunks that the script loads as they are opened. Browsers do not let a page fetch files from a disk,
but let it run scripts, so every chunk is a script that hands over one value. All of it is somebody
else's text: templates escape it, the script only ever sets it as text, and no `<` is in the data.

Data lie in a folder named after their digest. The page is written last and in one step, so that it
always goes with its data; then the data of an earlier page are removed.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote as percent

import msgspec

from heldout.answers.notebook import to_html
from heldout.answers.table import Column, Table, columns
from heldout.answers.text import clean
from heldout.charts.axes import rank_axis, score_axis
from heldout.charts.plot import Plot, inline
from heldout.charts.svg import LINK, RECORD, RULE
from heldout.errors import InputError, StoreError, plural, quote
from heldout.files import durable, frames
from heldout.scoring.table import Better
from heldout.stats.exact import differences
from heldout.trec import answers, tops
from heldout.web.pages import load_templates

DEPTH = 10
"""Documents of each list that are shown, where nobody asks for more."""

MOST_DEPTH = answers.SIGNATURE_DEPTH
"""The most that can be asked for."""


Outcome = Literal["both", "A alone", "B alone", "neither"]
"""Which runs have a relevant document among the first k."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What one run says of a query.

    Attributes:
        documents: the first ones, best first.
        positions: rank of each judged document that the run lists, however deep.
        retrieved: how many documents it lists; 0 where it does not answer the query.
        score: by the measure.
        first: rank of the first relevant document among the first k, 0 where there is none.
    """

    documents: tuple[str, ...]
    positions: Mapping[str, int]
    retrieved: int
    score: float
    first: int

    def rank_of(self, document: str, *, judged: bool) -> int | None:
        """The rank of a document, 0 where the run does not list it, `None` where nobody knows.

        Only judged documents are looked for below the first ones.
        """
        if document in self.documents:
            return self.documents.index(document) + 1
        if judged:
            return self.positions.get(document, 0)
        return 0 if self.retrieved <= len(self.documents) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A relevant document that one of the lists shown lacks, or both.

    Attributes:
        document: its id.
        grade: its label.
        a: its rank in A, 0 where A does not list it.
        b: the same of B.
    """

    document: str
    grade: int
    a: int
    b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDifference:
    """A query as both runs answer it.

    Attributes:
        query: its id.
        text: `None` where nobody gave it.
        a: what A says.
        b: what B says.
        difference: score of B less that of A; 0 where they differ by less than 1e-12.
        gain: the same, above 0 where B is better: the other sign if lower scores are better.
        grades: label of each judged document.
        rel: lowest grade that is relevant.
    """

    query: str
    text: str | None
    a: Ranking
    b: Ranking
    difference: float
    gain: float
    grades: Mapping[str, int]
    rel: int

    @property
    def outcome(self) -> Outcome:
        """Which runs have a relevant document among the first k."""
        if self.a.first and self.b.first:
            return "both"
        if self.a.first:
            return "A alone"
        return "B alone" if self.b.first else "neither"

    @property
    def missed(self) -> tuple[Missed, ...]:
        """Relevant documents that are not in both lists shown: highest grade first, then rank."""
        found = (
            Missed(
                document=document,
                grade=grade,
                a=self.a.positions.get(document, 0),
                b=self.b.positions.get(document, 0),
            )
            for document, grade in self.grades.items()
            if grade >= self.rel
            and not (document in self.a.documents and document in self.b.documents)
        )
        return tuple(sorted(found, key=_by_grade_and_rank))


def _by_grade_and_rank(one: Missed) -> tuple[int, float, str]:
    return (
        -one.grade,
        min((rank for rank in (one.a, one.b) if rank), default=math.inf),
        one.document,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs.

    Attributes:
        name: what it is called.
        rankings: its first documents, and the places of all judged ones.
        scores: by query.
    """

    name: str
    rankings: tops.TopRankings
    scores: Mapping[str, float]


def compare_lists(
    a: Side,
    b: Side,
    judgments: Mapping[str, Mapping[str, int]],
    *,
    better: Better = "higher",
    k: int = 100,
    rel: int = 1,
    texts: Mapping[str, str] | None = None,
) -> tuple[QueryDifference, ...]:
    """The queries that both sides have scores for, largest loss of B first.

    Args:
        a: one run.
        b: the other.
        judgments: query -> document -> grade.
        better: which scores are better.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        texts: of the queries.
    """
    queries = [query for query in a.scores if query in b.scores]
    changes = differences(
        [a.scores[query] for query in queries], [b.scores[query] for query in queries]
    )
    sign = -1.0 if better == "lower" else 1.0
    found = []
    for query, change in zip(queries, changes.tolist(), strict=True):
        grades = judgments[query]
        relevant = frozenset(doc for doc, grade in grades.items() if grade >= rel)
        found.append(
            QueryDifference(
                query=query,
                text=(texts or {}).get(query),
                a=_ranking(a, query, relevant, k),
                b=_ranking(b, query, relevant, k),
                difference=change,
                gain=sign * change + 0.0,
                grades=grades,
                rel=rel,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.gain, one.query)))


def _ranking(side: Side, query: str, relevant: AbstractSet[str], k: int) -> Ranking:
    positions = side.rankings.positions.found.get(query, {})
    first = min((rank for doc, rank in positions.items() if doc in relevant), default=0)
    return Ranking(
        documents=side.rankings.tops.get(query, ()),
        positions=positions,
        retrieved=side.rankings.positions.retrieved.get(query, 0),
        score=side.scores[query],
        first=first if first <= k else 0,
    )


def documents_of(query: QueryDifference) -> Iterator[str]:
    """The documents that a page shows for a query, some of them twice."""
    yield from query.a.documents
    yield from query.b.documents
    yield from (one.document for one in query.missed[:MOST_MISSED])


MOST_MISSED = 20
"""Relevant documents of a query that are shown beside the lists."""


_ROOM = "heldout.analyses.outcomes"
_START = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="heldout compare --html">
"""
"""What the page begins with, and no other file: an earlier page may be replaced, nothing else."""

_DATA = re.compile("[0-9a-f]{16}")
_FILE = re.compile(r"page\.(?:css|js)|queries\.js|chunk-\d{1,6}\.js")
_ASIDE = re.compile(r"\.writing-[0-9a-f]{16}")
_SUFFIXES = (".html", ".htm")

_CHUNK = 200_000
"""Characters of a chunk, about: a second on a slow line, and few files."""

_STILL = 50
"""Largest losses, and gains, that can be read without the script."""

_BARS = 150
"""Bars of the picture: each at least two pixels wide on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures(frames.Framed):
    """Two runs query by query.

    Attributes:
        a: name of A.
        b: name of B.
        qrels: what the labels are called.
        measure: that queries are scored by.
        better: which of its scores are better.
        cutoff: the deepest rank that it looks at; `None` for the whole list.
        chosen: whether it was chosen here, since nobody named one.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        depth: documents of each list that are shown.
        queries: largest loss of B first, largest gain last; queries alike by id.
        texts: of the documents shown, as far as they were found; long ones are cut and end with an
            ellipsis.
        missing_texts: how many documents were looked for and not found; 0 where none were given.
    """

    a: str
    b: str
    qrels: str
    measure: str
    better: Better
    cutoff: int | None
    chosen: bool
    k: int
    rel: int
    depth: int
    queries: tuple[QueryDifference, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    missing_texts: int = 0

    @property
    def wins(self) -> int:
        """Queries on which B is better."""
        return sum(one.gain > 0 for one in self.queries)

    @property
    def losses(self) -> int:
        """Queries on which A is better."""
        return sum(one.gain < 0 for one in self.queries)

    @property
    def ties(self) -> int:
        """Queries on which neither is."""
        return len(self.queries) - self.wins - self.losses

    @property
    def mean_a(self) -> float:
        """Mean score of A."""
        return math.fsum(one.a.score for one in self.queries) / len(self.queries)

    @property
    def mean_b(self) -> float:
        """Mean score of B."""
        return math.fsum(one.b.score for one in self.queries) / len(self.queries)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """Number of queries with each outcome."""
        counts = Counter(one.outcome for one in self.queries)
        return {outcome: counts[outcome] for outcome in OUTCOMES}

    @property
    def unjudged(self) -> tuple[float, float]:
        """Share of the documents shown of A, and of B, without a label; 0 where none is shown."""
        return (
            _unjudged([(one.a.documents, one.grades) for one in self.queries]),
            _unjudged([(one.b.documents, one.grades) for one in self.queries]),
        )

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        return (
            f"B is better on {plural(self.wins, 'query', 'queries')}, worse on {self.losses:,} and "
            f"equal on {self.ties:,}. "
            f"Mean {self.measure}: A {self.mean_a:.4f}, B {self.mean_b:.4f}."
        )

    def __repr__(self) -> str:
        return f"A {self.a}\nB {self.b}\n{self.answer}"

    def _repr_html_(self) -> str:
        """Show the answer, the picture, the largest losses and gains in a notebook."""
        return to_notebook(self)

    def write(self, path: Path | str) -> Path:
        """Write the page, with its data in a folder beside it, or nothing.

        Args:
            path: ends in `.html`. Something is there only if an earlier call wrote it.

        Returns:
            The folder, as `out_files` for `out.html`, which the page needs.

        Raises:
            InputError: code `page-name`.
            StoreError: there is something else of either name.
        """
        return write_page(self, Path(path))

    def columns(self) -> dict[str, list[Any]]:
        """A row for each query, as columns; no first relevant document is `None`."""
        found = self.queries
        return {
            "query": [one.query for one in found],
            "text": [one.text for one in found],
            "a": [one.a.score for one in found],
            "b": [one.b.score for one in found],
            "difference": [one.difference for one in found],
            "outcome": [one.outcome for one in found],
            "first_a": [one.a.first or None for one in found],
            "first_b": [one.b.first or None for one in found],
        }

    def to_dict(self) -> dict[str, Any]:
        """The answer, what it rests on, and a row for each query."""
        rows = self.columns()
        return {
            "answer": self.answer,
            "a": self.a,
            "b": self.b,
            "measure": self.measure,
            "better": self.better,
            "k": self.k,
            "rel": self.rel,
            "mean": {"a": self.mean_a, "b": self.mean_b},
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "outcomes": dict(self.outcomes),
            "queries": [
                dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)
            ],
        }


def _unjudged(shown: Sequence[tuple[Sequence[str], Mapping[str, int]]]) -> float:
    total = sum(len(documents) for documents, _ in shown)
    known = sum(document in grades for documents, grades in shown for document in documents)
    return 1 - known / total if total else 0.0


def page_folder(path: Path) -> Path:
    """The folder that lies beside a page: `out_files` for `out.html`."""
    return path.with_name(f"{path.stem}_files")


def check_page(path: Path) -> None:
    """Refuse a name under which no page can be written, before anything is read.

    Raises:
        InputError: code `page-name`.
        StoreError: the name, or that of the folder, belongs to something that no earlier call
            wrote.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError.of("page-name", str(path), quote(path.name))
    if (path.is_symlink() or path.exists()) and not (path.is_file() and _begins(path)):
        raise StoreError(f"{path} is no page of heldout compare --html: give another name")
    folder = page_folder(path)
    if folder.is_symlink() or folder.exists():
        other = next(_others(folder), None)
        if other is not None:
            raise StoreError(
                f"{other} was not written by heldout compare --html, which owns the whole folder "
                f"{folder}: give the page another name"
            )


def _begins(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_START)) == _START


def _others(folder: Path) -> Iterator[Path]:
    """Yield what lies there and is no data of a page."""
    if folder.is_symlink() or not folder.is_dir():
        yield folder
        return
    for data in sorted(folder.iterdir()):
        if data.is_symlink() or not (data.is_dir() and _DATA.fullmatch(data.name)):
            yield data
            continue
        for file in data.iterdir():
            known = _FILE.fullmatch(file.name) or _ASIDE.fullmatch(file.name)
            if not known or file.is_symlink() or not file.is_file():
                yield file


def write_page(failures: Failures, path: Path) -> Path:
    """Write a page and its folder, or leave what is there as it is.

    Args:
        failures: what it shows.
        path: of the page; its folder is made where it is missing.

    Returns:
        The folder beside it.

    Raises:
        InputError, StoreError: as `check_page`.
        OSError: it cannot be written.
    """
    check_page(path)
    files = dict(data_files(failures))
    digest = sha256()
    for name, content in files.items():
        digest.update(name.encode() + content)
    current = digest.hexdigest()[:16]
    folder = durable.Folder(path.parent).below(page_folder(path).name)
    page = render_page(failures, data=f"{percent(page_folder(path).name)}/{current}")
    before = folder.names()
    try:
        for name, content in files.items():
            folder.write_whole(f"{current}/{name}", content)
        durable.write_whole(path, page)
    except BaseException:
        if current not in before:
            folder.delete_tree(current)
        with suppress(OSError):  # not empty: it belongs to an earlier page
            page_folder(path).rmdir()
        raise
    for name in before:
        if name != current:
            folder.delete_tree(name)
    return page_folder(path)


def render_page(failures: Failures, *, data: str) -> bytes:
    """The page itself.

    Args:
        failures: what it shows.
        data: address of its data, relative to it.
    """
    page = load_templates(_ROOM, clean=clean).get_template("failures.html")
    losses = [one for one in failures.queries if one.gain < 0]
    gains = [one for one in reversed(failures.queries) if one.gain > 0]
    text: str = page.render(
        found=failures,
        data=data,
        qrels=Path(failures.qrels).name,
        without=sum(one.text is None for one in failures.queries),
        plural=plural,
        wide=inline(draw_changes(failures), 990),
        narrow=inline(draw_changes(failures), 350),
        tables=(
            ("Largest losses of B", losses[:_STILL], len(losses)),
            ("Largest gains of B", gains[:_STILL], len(gains)),
        ),
        number=_number,
    )
    return _START + text.encode()


def to_notebook(failures: Failures, *, shown: int = 5) -> str:
    """HTML for a notebook: the answer, the picture, the largest losses and gains."""
    ends = (
        ("Largest losses of B", [one for one in failures.queries if one.gain < 0][:shown]),
        ("Largest gains of B", [one for one in reversed(failures.queries) if one.gain > 0][:shown]),
    )
    tables = [
        Table(
            title=title,
            columns=(
                Column(name="query"),
                *columns("score", "A", "B"),
                *columns("difference", "B - A"),
            ),
            rows=tuple(
                (clean(one.text or one.query), one.a.score, one.b.score, one.difference)
                for one in queries
            ),
        )
        for title, queries in ends
        if queries
    ]
    return to_html(
        answer=failures.answer,
        summary=[("A", clean(failures.a)), ("B", clean(failures.b))],
        tables=tables,
        chart=draw_changes(failures),
        title=f"Difference of the two runs on each query: {failures.answer}",
    )


def _number(value: float, *, signed: bool = False) -> str:
    """Four decimals, with a minus sign and not a hyphen; a 0 has no sign."""
    text = f"{value:+.4f}" if signed and value else f"{value:.4f}"
    return text.replace("-", "\u2212")


def draw_changes(failures: Failures) -> Plot:
    """The difference on each query, from the largest loss of B to its largest gain.

    Where there are more queries than bars have room, a bar is the mean of neighbours.
    """
    queries = failures.queries
    size = -(-len(queries) // _BARS)
    foot = "Queries, from the largest loss of B to its largest gain"
    if size > 1:
        foot += f"; each bar is the mean of {size}"
    parts = [queries[start : start + size] for start in range(0, len(queries), size)]
    means = [sum(one.difference for one in part) / len(part) for part in parts]
    plot = Plot(
        x=rank_axis(len(queries)),
        y=score_axis([0.0, *means]),
        head=f"B \u2212 A, {failures.measure}",
        foot=foot,
        height=200,
    )
    for number, (part, mean) in enumerate(zip(parts, means, strict=True)):
        if not mean:
            continue
        colour = LINK if (mean > 0) == (failures.better == "higher") else RECORD
        left = 0.5 + number * size
        tip = f"{_number(mean, signed=True)}"
        if size == 1:
            tip = f"{part[0].text or part[0].query}: {tip}"
        gap = 0.15 * len(part)
        low, high = sorted((0.0, mean))
        plot.box((left, left + len(part) - gap), (low, high), colour, tip)
    plot.line([(plot.x.low, 0.0), (plot.x.high, 0.0)], RULE, thin=True)
    plot.key("box", "B better", LINK)
    plot.key("box", "A better", RECORD)
    return plot


def data_files(failures: Failures) -> Iterator[tuple[str, bytes]]:
    """The files beside the page, by name: style, script, the list of queries, chunks."""
    yield "page.css", _read("heldout.answers", "heldout.css") + _read(_ROOM, "failures.css")
    yield "page.js", _read(_ROOM, "failures.js")
    starts = []
    for number, chunk in enumerate(_chunks(failures)):
        starts.append(chunk.start)
        yield f"chunk-{number}.js", _call(number, chunk.document)
    yield (
        "queries.js",
        _call(
            "queries",
            {
                "a": clean(failures.a),
                "b": clean(failures.b),
                "depth": failures.depth,
                "cutoff": failures.cutoff,
                "k": failures.k,
                "chunks": starts,
                "queries": [_line(one) for one in failures.queries],
            },
        ),
    )


def _read(room: str, name: str) -> bytes:
    return resources.files(room).joinpath(f"static/{name}").read_bytes()


def _call(name: int | str, document: object) -> bytes:
    """A script that hands one value to the page; it has no character that could end it early."""
    data = msgspec.json.encode([name, document])
    for char, escape in _ESCAPES:
        data = data.replace(char, escape)
    return b"heldout.take(..." + data + b");\n"


_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def _line(one: QueryDifference) -> list[object]:
    """A query in the list: id, text, score of A and B, difference, gain, first relevant ranks."""
    return [
        clean(one.query),
        None if one.text is None else clean(one.text),
        _short(one.a.score),
        _short(one.b.score),
        _short(one.difference),
        (one.gain > 0) - (one.gain < 0),
        one.a.first,
        one.b.first,
    ]


def _short(value: float) -> float:
    """Six decimals: the page shows four."""
    return round(value, 6) + 0.0


@dataclass(slots=True)
class _Chunk:
    """Queries that follow each other, and the documents that they show, each once.

    Attributes:
        start: number of the first query.
        size: characters, about.
        documents: id and text, `None` where there is none.
        queries: what is shown of each.
        known: number of each document.
    """

    start: int
    size: int = 0
    documents: list[tuple[str, str | None]] = field(default_factory=list)
    queries: list[dict[str, Any]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        return {"documents": self.documents, "queries": self.queries}

    def add(self, one: QueryDifference, texts: Mapping[str, str]) -> None:
        missed = one.missed
        shown = missed[:MOST_MISSED]
        self.queries.append(
            {
                "a": self._list(one, one.a, one.b, texts),
                "b": self._list(one, one.b, one.a, texts),
                "listed": [one.a.retrieved, one.b.retrieved],
                "missed": [
                    [self._number(miss.document, texts), miss.grade, miss.a, miss.b]
                    for miss in shown
                ],
                "more": len(missed) - len(shown),
            }
        )
        self.size += 20 * (len(one.a.documents) + len(one.b.documents) + len(shown))

    def _list(
        self, one: QueryDifference, own: Ranking, other: Ranking, texts: Mapping[str, str]
    ) -> list[list[object]]:
        """Number, grade (`None` without a label) and rank in the other run of each document."""
        return [
            [
                self._number(document, texts),
                one.grades.get(document),
                other.rank_of(document, judged=document in one.grades),
            ]
            for document in own.documents
        ]

    def _number(self, document: str, texts: Mapping[str, str]) -> int:
        if document not in self.known:
            text = texts.get(document)
            self.known[document] = len(self.documents)
            self.documents.append((clean(document), None if text is None else clean(text)))
            self.size += len(document) + len(text or "")
        return self.known[document]


def _chunks(failures: Failures) -> Iterable[_Chunk]:
    chunk = _Chunk(start=0)
    for number, one in enumerate(failures.queries):
        if chunk.size > _CHUNK:
            yield chunk
            chunk = _Chunk(start=number)
        chunk.add(one, failures.texts)
    yield chunk
