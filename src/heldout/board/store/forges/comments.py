"""What a request is told, as Markdown: a pure function of facts that may be public.

Everything that somebody else wrote stands in a code span, on a line that begins with our own
words: forges make no mention, link, reference, HTML or command out of it. Scores come as the text
that was released, and no other number but that in an id has more digits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from heldout.board.log.manifest import is_link
from heldout.board.policy.checks import Finding
from heldout.board.rules.release import NOT_CLEAR
from heldout.errors import printable

CommentKind = Literal[
    "received",
    "asked",
    "rejected",
    "published",
    "corrected",
    "amended",
    "declined",
    "registered",
    "revoked-registration",
]
"""What happened: the kind of an event."""

_HEADS: Mapping[CommentKind, str] = {
    "received": "was received",
    "asked": "waits for an answer",
    "rejected": "was rejected",
    "published": "is published",
    "corrected": "was corrected",
    "amended": "has the name that its team asked for",
    "declined": "has its old name; the new one was refused",
    "registered": "is registered",
    "revoked-registration": "is registered no more",
}
_SAID: Mapping[CommentKind, str] = {
    "asked": "The organisers ask",
    "corrected": "What was wrong",
}
_RELEASED = re.compile(rf"-?\d+\.\d+|{NOT_CLEAR}", re.ASCII)
_MOST_LINES = 20
_LONGEST = 240
_LONGEST_SAID = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLine:
    """One view's score.

    Attributes:
        view: name of the view.
        measure: as board.toml names it.
        released: the text that was released, `0.412`, or `NOT_CLEAR`.
        queries: number that it is averaged over, `None` where that is not told.
        seeds: how many runs that differ by seed it is a mean over.
        spread: standard deviation over the seeds as released, "" where there is none.
        part: what it is a score of, or with, in words; "" for a plain one.
    """

    view: str
    measure: str
    released: str
    queries: int | None = None
    seeds: int = 1
    spread: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """What is told of one event. The caller leaves out what an embargo or a deadline hides.

    Attributes:
        kind: what happened.
        submission: the id; the team's handle, where it registered.
        at: when, UTC.
        decimals: digits after the point of every released score.
        scores: in the order of the columns.
        said: the organisers' reason or question.
        findings: of the policy.
        facts: query set -> what the scan counted in its run, in whole numbers.
        steps: commands that help now.
        page: address of the board's page; may be empty.
    """

    kind: CommentKind
    submission: str
    at: datetime
    decimals: int
    scores: Sequence[ScoreLine] = ()
    said: str = ""
    findings: Sequence[Finding] = ()
    facts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    steps: Sequence[str] = ()
    page: str = ""


def format_comment(comment: Comment) -> str:
    """The comment's Markdown, without the mark that `Forge.comment` adds.

    Raises:
        ValueError: a score is no released text, or has more digits than the board releases.
    """
    digits = comment.decimals
    parts = [
        _head(comment),
        *_said(comment),
        *_list("Scores", [_score(line, digits) for line in comment.scores]),
        *_list(
            "Findings",
            [
                f"- {one.severity}, {_code(one.rule, digits)}: {_code(one.evidence, digits)}"
                for one in comment.findings
            ],
        ),
        *_list("Runs", [_fact(name, counts) for name, counts in comment.facts.items()]),
        *_steps(comment),
    ]
    return "\n\n".join(parts) + "\n"


def _head(comment: Comment) -> str:
    moment = f"{comment.at.astimezone(UTC):%d %b %Y %H:%M:%S} UTC"
    return f"{_code(comment.submission, 99)} {_HEADS[comment.kind]} ({moment})."


def _said(comment: Comment) -> Iterator[str]:
    if comment.said:
        asked = _SAID.get(comment.kind, "The organisers' reason")
        yield f"{asked}: {_code(comment.said, comment.decimals, limit=_LONGEST_SAID)}"


def _score(line: ScoreLine, decimals: int) -> str:
    for text in (line.released, *filter(None, [line.spread])):
        if not _RELEASED.fullmatch(text) or len(text.partition(".")[2]) > decimals:
            raise ValueError(f"{line.view}: not a released score of {decimals} decimals")
    what = f"{_code(line.view, decimals)}, {_code(line.measure, decimals)}"
    what += f", {line.part}" if line.part else ""
    told = f"- {what}: **{line.released}**"
    if line.spread:
        told += f" ± {line.spread} over {line.seeds} seeds"
    return told if line.queries is None else f"{told} (n = {line.queries:,})"


def _fact(name: str, counts: Mapping[str, int]) -> str:
    told = ", ".join(f"{_code(what, 0)} {int(count):,}" for what, count in counts.items())
    return f"- {_code(name, 0)}: {told}"


def _steps(comment: Comment) -> Iterator[str]:
    if comment.steps:
        steps = ", ".join(_code(step, comment.decimals) for step in comment.steps)
        yield f"Next: {steps}"
    if comment.page and is_link(comment.page):
        yield f"Page: <{comment.page}>"


def _list(title: str, lines: list[str]) -> Iterator[str]:
    more = len(lines) - _MOST_LINES
    if lines:
        rest = [f"- and {more:,} more"] if more > 0 else []
        yield "\n".join([f"{title}:\n", *lines[:_MOST_LINES], *rest])


def _code(text: str, decimals: int, *, limit: int = _LONGEST) -> str:
    """Text in a code span that it cannot end, on one line, its numbers cut to so many digits."""
    plain = printable(text[: limit + 1])  # which makes it longer
    plain = plain if len(plain) <= limit else plain[: limit - 1] + "…"
    plain = plain.replace("`", "'").strip()
    cut = re.sub(rf"(\d+\.\d{{{decimals}}})\d+", r"\1…", plain)
    return f"`{cut}`" if plain else "(empty)"
