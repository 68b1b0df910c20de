"""Annotations of labels that exist: a folder of qrels for each depth, or a run and its labels.

The files of a folder are called `dev-1.qrels`, `dev-2.qrels`, …, `dev-all.qrels`, plain or
compressed. What depth N has and depth N - 1 lacks was selected at place N. `dev.discarded.txt` may
list the queries that were discarded. The files do not say what annotators were shown, only what
they selected, and where.

Simulated annotators see the first documents of one system and select what is labelled, so labels
that exist stand for what people would choose (Gupta and MacAvaney 2022, §4.1).

Source: the labels published with Gupta and MacAvaney 2022.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.records import no_common_query, show_some
from heldout.trec import groups, qrels, text, tops
from heldout.trec.reading.sources import open_input, read_file
from heldout.trec.reading.streams import Limits, TextReader, read_lines

_NAME = re.compile(r"(?P<set>.*?)(?P<depth>[0-9]{1,4}|all)\.qrels(?:\.(?:gz|bz2|zst))?")
_DISCARDED = re.compile(r".*(?<![^-_.])discarded\.txt(?:\.(?:gz|bz2|zst))?")

Grades = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Depth:
    """The labels of one depth.

    Attributes:
        rank: where a document stands that is first selected here.
        path: its file.
        grades: by query and document.
        notes: how it was read, where that is worth reporting.
    """

    rank: int
    path: Path
    grades: Grades
    notes: tuple[Problem, ...]


def has_depth_qrels(folder: Path) -> bool:
    """Return whether a file in the folder has the name of such labels."""
    return any(_NAME.fullmatch(path.name) for path in folder.iterdir())


def read_depth_qrels(folder: Path) -> Annotations:
    """Read a folder of labels at each depth.

    Args:
        folder: holds `SET1.qrels`, `SET2.qrels`, … up to any depth and perhaps `SETall.qrels`,
            each plain or compressed, of one set; perhaps a list of the queries that were
            discarded.

    Returns:
        Queries in the order of the last depth, then the discarded ones by id. What only `all` has
        stands at the place after the last depth, and that place means "this deep or deeper". Notes
        as `read_qrels`, of each code the one of the shallowest depth.

    Raises:
        InputError: code `depth-files`: no such file, depths that do not follow each other, or
            several sets; `depth-not-nested`: a label that the next depth lacks;
            `conflicting-judgment`: a grade that changes with depth; `query-lists`: a query
            of the list has a label; and what is wrong with a file.
    """
    paths, open_ended = _find_depths(folder)
    depths = [_read(rank, path) for rank, path in enumerate(paths, 1)]
    _check_nested(depths)
    discarded = _read_discarded(folder)
    records = _records(depths)
    known = {record.query for record in records}
    if discarded is not None:
        path, listed = discarded
        labelled = sorted(one.query for one in records if one.selected and one.query in listed)
        if labelled:
            queries = plural(len(labelled), "query", "queries")
            found = f"{queries} with a label in {depths[-1].path.name}: {show_some(labelled)}"
            raise InputError.of("query-lists", str(path), found)
    notes = [note for depth in reversed(depths) for note in depth.notes]
    left_out = () if discarded is None else sorted(discarded[1] - known)
    return Annotations(
        source=str(folder),
        records=(*records, *(Annotation(query=QueryId(query)) for query in left_out)),
        depth=depths[-1].rank,
        open_ended=open_ended,
        counts_discarded=discarded is not None,
        notes=tuple({note.code: note for note in notes}.values()),
    )


def _find_depths(folder: Path) -> tuple[list[Path], bool]:
    """The files, the shallowest first, and whether the last one is that of all labels."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    named = [(match, path) for path in files if (match := _NAME.fullmatch(path.name))]
    if not named:
        raise _wrong_files(folder, "no file of labels", hint="one file each: 1.qrels, 2.qrels, …")
    if len(sets := {match["set"] for match, _ in named}) > 1:
        found = f"labels of {len(sets)} sets: {', '.join(map(text.show, sorted(sets)))}"
        raise _wrong_files(folder, found, hint="one set in a folder")
    whole = [path for match, path in named if match["depth"] == "all"]
    numbered = sorted((int(match["depth"]), path) for match, path in named if path not in whole)
    numbers = [number for number, _ in numbered]
    if not numbers or numbers != list(range(1, len(numbers) + 1)) or len(whole) > 1:
        given = ", ".join([*map(str, numbers), *(["all"] * len(whole))])
        hint = "without every depth nobody knows the places"
        raise _wrong_files(folder, f"depths {given}", hint=hint)
    return [*(path for _, path in numbered), *whole], bool(whole)


def _wrong_files(folder: Path, found: str, *, hint: str) -> InputError:
    return InputError.of("depth-files", str(folder), found, hint=hint)


def _read(rank: int, path: Path) -> _Depth:
    found = read_file(qrels.read_qrels, path)
    return _Depth(rank=rank, path=path, grades=found.judgments, notes=tuple(found.notes))


def _check_nested(depths: Sequence[_Depth]) -> None:
    """Refuse labels that a deeper annotation lacks or contradicts."""
    log = text.ProblemLog(Limits().problems)
    for shallow, deep in pairwise(depths):
        for query, doc, grade in _labels(shallow.grades):
            other = deep.grades.get(query, {}).get(doc)
            if other == grade:
                continue
            code, there = "conflicting-judgment", f"grade {other}"
            if other is None:
                code, there = "depth-not-nested", "no such line"
            found = f"{text.show(doc)} for {text.show(query)}, grade {grade}; "
            found += f"{deep.path.name} has {there}"
            expected = "each label again, with its grade, at every greater depth"
            line = _find_line(shallow.path, query, doc)
            log.add(Problem.of(code, str(shallow.path), found, expected, line=line))
    log.raise_errors()


def _labels(grades: Grades) -> Iterator[tuple[str, str, int]]:
    return ((query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items())


def _find_line(path: Path, query: str, doc: str) -> int | None:
    """The line of a label; only for messages."""
    wanted = [query.encode(), doc.encode()]
    with (
        open_input(path) as file,
        TextReader(file, path=str(path), limits=Limits()) as reader,
    ):
        return next((at for at, line in read_lines(reader) if line.split()[:3:2] == wanted), None)


def _records(depths: Sequence[_Depth]) -> list[Annotation]:
    """The queries of the last depth; a document stands at the first depth that selects it."""
    selected: defaultdict[str, dict[DocId, int]] = defaultdict(dict)
    for depth in depths:
        for query, doc, grade in _labels(depth.grades):
            if grade > 0:
                selected[query].setdefault(DocId(doc), depth.rank)
    return [
        Annotation(query=QueryId(query), selected=selected.get(query, {}))
        for query in depths[-1].grades
    ]


def _read_discarded(folder: Path) -> tuple[Path, frozenset[str]] | None:
    paths = [path for path in sorted(folder.iterdir()) if _DISCARDED.fullmatch(path.name)]
    if len(paths) > 1:
        found = f"{len(paths)} lists of what was discarded: {', '.join(one.name for one in paths)}"
        raise _wrong_files(folder, found, hint="one set in a folder")
    if not paths:
        return None
    return paths[0], read_file(groups.read_query_list, paths[0])


def simulate_annotations(
    shown: tops.Tops, labels: Mapping[str, Mapping[str, int]], *, depth: int, source: str
) -> Annotations:
    """Simulate what would have become of each query that has labels.

    Args:
        shown: query -> first documents of the system, best first; a query it does not answer is
            shown nothing, and discarded.
        labels: query -> document -> grade; above 0 is relevant.
        depth: documents that annotators see, >= 1.
        source: what this was made of, for messages and records.

    Returns:
        The queries in the order of `labels`; those without a relevant document have no record,
        since nobody could have selected one.

    Raises:
        InputError: code `no-common-query`: no query with a relevant document has a document shown;
            `depth-beyond-list`: no query has as many documents as annotators are to see.
    """
    answers = {
        query: {doc for doc, grade in grades.items() if grade > 0}
        for query, grades in labels.items()
    }
    answerable = {query: docs for query, docs in answers.items() if docs}
    _check(shown, answerable, depth, source)
    records = []
    for query, docs in answerable.items():
        seen = tuple(map(DocId, shown.get(query, ())[:depth]))
        selected = {doc: rank for rank, doc in enumerate(seen, 1) if doc in docs}
        records.append(Annotation(query=QueryId(query), shown=seen, selected=selected))
    return Annotations(source=source, records=tuple(records), depth=depth)


def reselect(
    annotations: Annotations, labels: Mapping[str, Mapping[str, int]], *, path: str
) -> Annotations:
    """The same passages shown to annotators who select what these labels call relevant.

    Args:
        annotations: that say what was shown.
        labels: query -> document -> grade; above 0 is relevant.
        path: where they were read, for messages.

    Returns:
        The queries that have labels, in the order of `annotations`. Notes are `unlabelled-query`
        and `label-not-shown`.

    Raises:
        InputError: code `no-common-query`: none has labels; `nothing-shown`: the annotations say
            only what was selected.
    """
    if not any(record.shown for record in annotations.records):
        raise InputError.of("nothing-shown", annotations.source)
    records = [
        _select(one, labels[one.query]) for one in annotations.records if one.query in labels
    ]
    if not records:
        queries = plural(len(labels), "query", "queries")
        found = f"labels of {queries}, none of which was annotated"
        raise no_common_query(path, found, "labels of annotated queries")
    relevant = sum(grade > 0 for one in records for grade in labels[one.query].values())
    lost = relevant - sum(len(one.selected) for one in records)
    left = len(annotations.records) - len(records)
    notes = [
        Problem.of(code, path, found)
        for code, found, count in (
            ("unlabelled-query", f"no label for {plural(left, 'query', 'queries')} shown", left),
            ("label-not-shown", f"{plural(lost, 'relevant document')} not shown", lost),
        )
        if count
    ]
    return replace(
        annotations,
        source=f"{annotations.source}, with {path}",
        records=tuple(records),
        counts_discarded=True,
        notes=(*annotations.notes, *notes),
    )


def _select(record: Annotation, grades: Mapping[str, int]) -> Annotation:
    selected = {doc: at for at, doc in enumerate(record.shown, 1) if grades.get(doc, 0) > 0}
    return replace(record, selected=selected)


def _check(shown: tops.Tops, answers: Mapping[str, object], depth: int, source: str) -> None:
    lengths = [len(shown[query]) for query in answers if shown.get(query)]
    if not lengths:
        queries = plural(len(answers), "query", "queries")
        found = f"{queries} with relevant documents, none of which the run answers"
        raise no_common_query(source, found, "queries with documents shown")
    if max(lengths) < depth:
        documents = plural(depth, "document")
        found = f"annotators are to see {documents}, and the longest list has {max(lengths)}"
        raise InputError.of("depth-beyond-list", source, found, last=max(lengths))
