"""Annotations of a file or folder of one of several formats, recognised by its content."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from heldout.errors import InputError
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.labels.labels import newest_version
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.judging import judged_passages
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE
from heldout.survivorship.reading.annotation_file import read_annotation_file
from heldout.survivorship.reading.depth_qrels import has_depth_qrels, read_depth_qrels
from heldout.survivorship.reading.judged import annotate_campaign, annotate_questions
from heldout.survivorship.reading.qna import read_qna_columns, read_qna_lines
from heldout.survivorship.reading.records import LIMITS, read_shown_passages
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import TextReader
from heldout.trec.text import show

_FORMS: Mapping[str, Callable[..., Annotations]] = {
    "own": read_annotation_file,
    "shown": read_shown_passages,
    "qna-columns": read_qna_columns,
    "qna-lines": read_qna_lines,
}
_OWN = re.compile(rb'\s*\{\s*"annotations"\s*:\s*[0-9]')
_COLUMNS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{')
_SHOWN = b'"msmarco_label"'
_OWN_FIELDS = (b'"shown"', b'"selected"')
_PEEK = 1024
_HINT = "docs/survivorship.md has the forms"
_CAMPAIGN = "campaign.toml"


def read_annotations(place: Path, *, texts: bool) -> Annotations:
    """The annotations of a file or folder, whatever their form.

    Args:
        place: a folder of qrels for each depth, a campaign, a folder of questions, or a file.
        texts: whether texts are kept.

    Raises:
        InputError: code `no-annotations`: nothing there has a known form; or a file has errors.
        StoreError: a folder lacks a file.
        SetupError: ijson is needed and not installed.
    """
    if place.is_dir():
        if has_depth_qrels(place):
            return read_depth_qrels(place)
        if (place / _CAMPAIGN).is_file():
            return _read_campaign(place)
        for asked in (TRIAGE, ANSWERABLE):
            if (folder := QuestionFolder(place, asked)).exists():
                questions = folder.questions()
                judged = judged_passages(questions, folder.answers())
                return annotate_questions(questions, judged, source=str(place))
        raise _unknown(place, "a folder without them")
    form = _find_form(place)
    with open_input(place) as file:
        return _FORMS[form](file, path=str(place), texts=texts)


def by_text(annotations: Annotations, place: Path) -> bool:
    """Whether documents are known by their text alone, so that a collection can name them.

    Args:
        annotations: that were read.
        place: where.
    """
    return (
        place.is_file()
        and _find_form(place).startswith("qna")
        and any(record.shown for record in annotations.records)
    )


def _find_form(place: Path) -> str:
    with (
        open_input(place) as file,
        TextReader(file, path=str(place), limits=LIMITS) as reader,
    ):
        head = next(reader.pieces(), b"")
    if _OWN.match(head):
        return "own"
    if _COLUMNS.match(head):
        return "qna-columns"
    if not head.lstrip().startswith(b"{"):
        raise _unknown(place, _describe(head))
    first = head.lstrip().partition(b"\n")[0]
    if b'"passages"' not in first and any(name in first for name in _OWN_FIELDS):
        raise _unknown(
            place,
            "queries of the form that --save writes, without the first line",
            hint='the first line is {"annotations":1,"source":…,"depth":…,"open_ended":…,'
            '"counts_discarded":…}',
        )
    return "shown" if _SHOWN in first else "qna-lines"


def _describe(head: bytes) -> str:
    """What a file begins with that is no JSON object."""
    text = head.strip()
    if not text:
        return "an empty file"
    if b"\0" in text[:_PEEK]:
        return "a binary file"
    if text.startswith(b"["):
        return "a JSON array"
    line, _, _ = text.partition(b"\n")
    return f"a file that begins {show(line)}"


def _unknown(place: Path, found: str, *, hint: str = _HINT) -> InputError:
    return InputError.of(
        "no-annotations",
        str(place),
        found=found,
        expected="qrels for each depth, MS MARCO QnA, passages shown, a campaign, questions "
        "of triage or answerable, or a file that --save wrote",
        hint=hint,
    )


def _read_campaign(place: Path) -> Annotations:
    folder = CampaignFolder(place)
    version = newest_version(folder.labels)
    labels = None
    if version is not None:
        path = folder.labels / f"{version.name}.qrels"
        with open_input(path) as file:
            graded = read_qrels(file, path=str(path)).judgments
        labels = {
            query: {doc for doc, grade in grades.items() if grade > 0}
            for query, grades in graded.items()
        }
    return annotate_campaign(
        (*folder.pools(), *folder.challengers()),
        folder.judgments(),
        labels=labels,
        source=str(place),
    )
