"""People's answers, seen as annotations: judgments of a campaign, and answers to questions.

Judges of a campaign see two passages at a time, drawn in any order. So the order here is that in
which a query's passages first came before anybody, passage A before passage B: it says who saw what
when, and is no ranking. What was selected are the labels made of the judgments, or, before there
are any, the known answer where somebody saw it.

Passages of triage stand as the first annotators saw them; those of answerable in an order drawn at
random, which is no ranking.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Pool
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.discarded.judging import Judged
from heldout.survivorship.discarded.questions import Question


def annotate_campaign(
    pools: Iterable[Pool],
    judgments: Sequence[Judgment],
    *,
    labels: Mapping[str, AbstractSet[str]] | None,
    source: str,
) -> Annotations:
    """The annotations that a campaign amounts to.

    Args:
        pools: its pools, and those of challengers, whose passages join those of the same query.
        judgments: all that were recorded, in their order; tests show passages of no pool.
        labels: query -> selected documents, of a label version; `None` where there is none.
        source: the campaign, for messages and records.

    Returns:
        The queries of which passages were shown, in the order of the pools; the note
        `nothing-shown` says how many had none. A query is discarded where none of its selected
        documents was shown.

    Raises:
        InputError: code `no-judgments`: no passage of a pool was shown.
    """
    seen = _first_displays(judgments)
    texts: dict[str, str] = {}
    passages: defaultdict[str, dict[str, str]] = defaultdict(dict)
    known: defaultdict[str, set[str]] = defaultdict(set)
    for pool in pools:
        texts.setdefault(pool.query, pool.text)
        passages[pool.query] |= {one.doc: one.text for one in pool.candidates}
        known[pool.query] |= {one.doc for one in pool.candidates if one.known}
    records = []
    for query, text in texts.items():
        shown = tuple(DocId(doc) for doc in seen.get(query, ()) if doc in passages[query])
        chosen = known[query] if labels is None else labels.get(query, set())
        places = {doc: at for at, doc in enumerate(shown, 1) if doc in chosen}
        if shown:
            own = {doc: passages[query][doc] for doc in shown if passages[query][doc]}
            records.append(
                Annotation(
                    query=QueryId(query), text=text or None, shown=shown, selected=places, texts=own
                )
            )
    if not records:
        hint = "`heldout prefer export` writes what judges saw"
        raise _no_judgments(source, "no passage of a pool that was shown to a judge", hint)
    unseen = plural(len(texts) - len(records), "query", "queries")
    return Annotations(
        source=source,
        records=tuple(records),
        depth=max(len(record.shown) for record in records),
        notes=_unseen(source, f"{unseen} of which nobody saw a passage", texts, records),
    )


def _first_displays(judgments: Sequence[Judgment]) -> Mapping[str, Mapping[str, None]]:
    """Query -> passages, in the order in which they were first shown."""
    seen: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in sorted(judgments, key=lambda one: one.shown_at.removesuffix("Z")):
        if one.answer is None:
            seen[one.query] |= dict.fromkeys((one.left, one.right))
    return seen


def _no_judgments(source: str, found: str, hint: str) -> InputError:
    return InputError(
        Problem(code="no-judgments", path=source, found=found, expected="at least one", hint=hint)
    )


def _unseen(
    source: str, found: str, asked: Sized, records: Sequence[Annotation]
) -> tuple[Problem, ...]:
    """A note where some of what was asked has no judgment."""
    note = Problem(
        "nothing-shown",
        source,
        found=found,
        expected="judgments of all",
        hint="these were left out",
        severity="note",
    )
    return (note,) if len(asked) > len(records) else ()


def annotate_questions(
    questions: Sequence[Question], judged: Mapping[str, Judged], *, source: str
) -> Annotations:
    """The annotations that answered questions amount to.

    Args:
        questions: all of the folder, in order.
        judged: query -> what people say of its passages.
        source: the folder, for messages and records.

    Returns:
        The queries that somebody judged; a query is discarded where no passage was ticked by more
        than half. The note `nothing-shown` says how many nobody judged.

    Raises:
        InputError: code `no-judgments`: nobody judged any.
    """
    records = tuple(_annotate(one, judged[one.query]) for one in questions if one.query in judged)
    if not records:
        hint = "`heldout survive triage` and `answerable` serve the pages"
        raise _no_judgments(source, f"no answer to {plural(len(questions), 'question')}", hint)
    unseen = plural(len(questions) - len(records), "question")
    return Annotations(
        source=source,
        records=records,
        depth=max(len(record.shown) for record in records),
        notes=_unseen(source, f"{unseen} that nobody judged", questions, records),
    )


def _annotate(question: Question, judged: Judged) -> Annotation:
    shown = tuple(DocId(passage.doc) for passage in question.passages)
    return Annotation(
        query=QueryId(question.query),
        text=question.text,
        shown=shown,
        selected={doc: at for at, doc in enumerate(shown, 1) if doc in judged.answering},
        texts={DocId(passage.doc): passage.text for passage in question.passages},
    )
