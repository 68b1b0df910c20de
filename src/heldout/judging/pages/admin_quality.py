"""What the organiser reads of how pairs are judged: tests, agreement, sides, time, pairs. Pure."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlencode

import numpy as np

from heldout.database.database import Database
from heldout.errors import plural
from heldout.judging.campaign.judgments import Judgment, Reason, counted
from heldout.judging.campaign.settings import Settings
from heldout.judging.database import organiser
from heldout.judging.database import overviews as readings
from heldout.judging.database.organiser import PairTexts
from heldout.judging.database.overviews import PairJudgment
from heldout.judging.pages.admin_pages import Ask, Cell, Section, Table, percent, seconds
from heldout.judging.pages.admin_views import PAGE, pages_section
from heldout.judging.studies.bias import LEFT_OUT, Effect, SideBias, describe_effect, measure_bias
from heldout.judging.studies.judges import (
    STUDY_ACCURACY,
    JudgeAgreement,
    JudgingQuality,
    Spread,
    expected_alpha,
    judge_agreement,
    judging_quality,
)

_REASONS: Mapping[Reason, str] = {
    "same": "both say the same",
    "neither": "neither answers it",
    "unreadable": "one cannot be read",
    "language": "language not known",
    "other": "another reason",
}


def quality_sections(
    found: JudgingQuality, agreement: JudgeAgreement, bias: SideBias
) -> tuple[Section, ...]:
    """Tests, agreement, bias and time."""
    times = [
        ("From page to answer", _spread(found.shown)),
        ("Page looked at", _spread(found.looked)),
    ]
    return (
        Section(title="Tests", facts=_tests(found)),
        _agreement(agreement, found.accuracy),
        Section(
            title="Side and length",
            paragraphs=[
                (
                    "Sides are random: judges without a bias prefer each side equally often. "
                    "Lengths are not random: judges may prefer long passages because they say more."
                )
            ],
            facts=_bias(bias),
        ),
        Section(title="Time for a pair", facts=times),
        Section(title="Could not be judged", facts=_cannot(found)),
    )


def pairs_sections(judgments: Sequence[Judgment], *, query: str, start: int) -> tuple[Section, ...]:
    """Pairs by query, with their answers.

    Args:
        judgments: all that were recorded.
        query: only pairs of this one; empty for all.
        start: how many pairs come before.
    """
    answers: dict[tuple[str, str, str], Counter[str | None]] = {}
    for one in judgments:
        if one.answer is None and one.left and (not query or one.query == query):
            answers.setdefault(one.pair, Counter())[one.preferred] += 1
    pairs = sorted(answers)
    shown = pairs[start : start + PAGE]
    table = Table(
        caption=f"{plural(len(pairs), 'pair')} with an answer; changed answers are counted too.",
        columns=(
            *("Query", "First", "Second"),
            *("First preferred", "Second preferred", "Can't judge", "History"),
        ),
        rows=[
            (
                *pair,
                *(answers[pair][chosen] for chosen in (pair[1], pair[2], None)),
                Cell("History", href=_address(*pair)),
            )
            for pair in shown
        ],
        empty="No pair has an answer yet." if not query else "No pair of this query has an answer.",
    )
    ask = Ask(action="/admin/pairs", name="query", label="Id of a query", value=query)
    before = f"/admin/pairs?{urlencode({'query': query})}&"
    return (Section(ask=ask, table=table), *pages_section(before, start, len(pairs)))


def pair_sections(
    pair: tuple[str, str, str], texts: PairTexts, history: Sequence[PairJudgment]
) -> tuple[Section, ...]:
    """The texts of a pair, and every answer that was ever given to it."""
    _, a, b = pair
    return (
        Section(title="What is shown", texts=(("Query", texts.query), (a, texts.a), (b, texts.b))),
        Section(
            title="Answers",
            table=Table(
                caption="In the order recorded; of one task the last answer stands.",
                columns=("Answered", "Worker", "Task", "Passage A", "Answer", "Counts"),
                rows=[
                    (
                        one.judgment.answered_at.replace("T", " ")[:19],
                        one.judgment.worker,
                        f"{one.judgment.task}, question {one.judgment.position}",
                        one.judgment.left,
                        _answer(one.judgment),
                        _counts(one),
                    )
                    for one in history
                ],
                empty="Nobody has answered it yet.",
            ),
        ),
    )


def _address(query: str, a: str, b: str) -> str:
    return f"/admin/pair?{urlencode({'query': query, 'a': a, 'b': b})}"


def _answer(one: Judgment) -> str:
    if one.preferred is not None:
        return f"prefers {one.preferred}"
    return f"can't judge: {_REASONS[one.reason or 'other']}"


def _counts(one: PairJudgment) -> str:
    if one.counts:
        return "yes"
    if one.judgment.answer is not None:
        return "no: a test"
    return "no: not finished" if one.state != "submitted" else "no"


def _tests(found: JudgingQuality) -> tuple[tuple[str, str], ...]:
    if not found.tests:
        return (("Failed", "no test was answered in a finished task"),)
    return (
        ("Failed", f"{found.failed:,} of {plural(found.tests, 'test')}"),
        ("Passed", percent(found.accuracy)),
        ("Tasks excluded", f"{found.excluded:,} of {plural(found.tasks, 'finished task')}"),
    )


def _agreement(found: JudgeAgreement, accuracy: float | None) -> Section:
    if found.alpha is None:
        why = f"Not defined: {found.why}. It needs pairs that two workers judged."
        return Section(title="Agreement", paragraphs=[why])
    interval = ""
    if found.interval is not None:
        low, high = found.interval
        interval = f", 95% interval {low:.3f} to {high:.3f}, drawn by query"
    facts = [
        ("Krippendorff's α", f"{found.alpha:.3f}{interval}"),
        ("Two votes alike", percent(found.alike)),
        ("Pairs", f"{plural(found.votes, 'vote')} on {plural(found.pairs, 'pair')}"),
    ]
    if accuracy is not None:
        easy = "if pairs were as easy as tests:"
        alpha = expected_alpha(max(accuracy, 0.5))
        facts.append(
            ("Expected from the tests", f"{alpha:.3f}, {easy} {percent(accuracy)} were passed")
        )
    right = f"if votes are right as often as in the study ({percent(STUDY_ACCURACY)})"
    facts.append(("Expected from the study", f"{expected_alpha(STUDY_ACCURACY):.3f}, {right}"))
    return Section(title="Agreement", paragraphs=_why_low(accuracy), facts=facts)


def _why_low(accuracy: float | None) -> list[str]:
    """What a low alpha can mean; failed tests show careless work."""
    meanings = [
        (
            "A low α can mean that passages are about equally good. It can also mean that workers "
            "are careless: α depends on how often a vote is right, whatever the reason."
        )
    ]
    if accuracy is None:
        meanings.append("No test was answered, so nothing here shows which one it is.")
    elif accuracy < STUDY_ACCURACY:
        meanings.append(
            f"Workers failed {percent(1 - accuracy)} of the tests, although tests are easy. In the "
            f"study, {percent(1 - STUDY_ACCURACY)} of the votes on real pairs were wrong; guessing "
            "fails half. Look for careless workers first (see Workers), and do not use the votes "
            "until then."
        )
    return meanings


def _bias(found: SideBias) -> tuple[tuple[str, str], ...]:
    if found.low is None or found.high is None or found.p is None:
        return (("Passage A preferred", "no vote counts yet"),)
    interval = f"{found.level:.0%} interval {percent(found.low)} to {percent(found.high)}"
    votes = f"{percent(found.share)} of {plural(found.judgments, 'vote')}"
    return (
        ("Passage A preferred", f"{votes}, {interval}"),
        ("Against one half", f"p = {found.p:.3g}, exact binomial"),
        ("Effect of side A", _effect(found.position, found.level)),
        ("Effect of length", _effect(found.length, found.level)),
    )


def _effect(found: Effect, level: float) -> str:
    return "not computed yet" if found.why == LEFT_OUT else describe_effect(found, level)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "no answer has a time"
    low, middle, high = map(seconds, spread.quartiles)
    return f"median {middle}, half of them {low} to {high}, {plural(spread.answers, 'answer')}"


def _cannot(found: JudgingQuality) -> tuple[tuple[str, str], ...]:
    number = sum(found.cannot.values())
    share = percent(number / found.answers) if found.answers else "–"
    total = ("Answers", f"{number:,} of {plural(found.answers, 'answer')} ({share})")
    return (total, *((_REASONS[why], f"{n:,}") for why, n in sorted(found.cannot.items())))


# What took long to work out, stored until what it comes from changes.

Result = TypeVar("Result")


class LastResult(Generic[Result]):
    """The last result and its state; threads may share it, and wait while one works it out."""

    def __init__(self) -> None:
        """Nothing is stored yet."""
        self._lock = threading.Lock()
        self._last: tuple[Hashable, Result] | None = None

    def has(self, state: Hashable) -> bool:
        """Whether the result for a state is stored; does not wait."""
        last = self._last
        return last is not None and last[0] == state

    def get(self, state: Hashable, work: Callable[[], Result]) -> Result:
        """The result for a state.

        Args:
            state: of all that the result comes from; read before `work` reads it.
            work: works it out; called where another state, or none, is stored.
        """
        with self._lock:
            if self._last is None or self._last[0] != state:
                self._last = (state, work())
            return self._last[1]


# The organiser's page of quality, worked out: all of it, or what takes no time.

_SEED = 2021
_DRAWS = 1000


def measure_quality(
    database: Database, settings: Settings, *, effects: bool
) -> tuple[Section, ...]:
    """Tests, agreement, sides, time.

    Args:
        database: of the campaign.
        settings: its rules.
        effects: also the interval of agreement and the effects of side and length, which take
            seconds where there are many judgments.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    found = readings.judgments(database)
    votes = counted(found, exclusion=settings.excludes, failures=settings.failures)
    # The same draws at each visit: a page that is loaded again says the same
    rng = np.random.default_rng(_SEED)
    agreement = judge_agreement(votes, rng, trials=_DRAWS if effects else 0)
    docs = organiser.passage_lengths(database) if effects else {}
    shown = {(one.query, doc) for one in votes for doc in (one.left, one.right)} if docs else ()
    bias = measure_bias(votes, lengths={place: docs[place[1]] for place in shown}, effects=effects)
    return quality_sections(judging_quality(found, settings), agreement, bias)


def more_section(judgments: int) -> Section:
    """Where the rest of the page is.

    Args:
        judgments: how many were recorded.
    """
    rest = (
        f"With {judgments:,} answers, the interval of agreement and the effects of side and length "
        "take some seconds to compute."
    )
    return Section(paragraphs=[rest], link=("/admin/quality?effects=yes", "Compute them"))
