"""A comment: released digits only, and nobody's text does anything on a forge."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from heldout.board.organiser.answer import Comment, CommentScore, format_comment
from heldout.board.policy.checks import Finding
from heldout.board.rules.release import NOT_CLEAR
from heldout.ids import SubmissionId

ID = SubmissionId("20261120-lighthouse-monot5")
AT = datetime(2026, 11, 20, 17, 10, tzinfo=UTC)

GOLDEN = """\
`20261120-lighthouse-monot5` is published (20 Nov 2026 17:10:00 UTC).

The organisers' reason: `the third run was agreed on`

Scores:

- `dev`, `RR@10`: **0.431** (n = 6,980)
- `eval`, `RR@10`: **not clearly above the best run that was sent** (n = 5,793)

Findings:

- note, `variants`: `20261001-lighthouse-monot5 has the same top 10 in 97.123…% of the queries`

Runs:

- `eval`: `queries answered` 5,793, `documents` 579,300

Next: `heldout status 20261120-lighthouse-monot5`

Page: <https://board.example/leaderboard/>
"""


def test_a_whole_comment_reads_like_this() -> None:
    comment = Comment(
        kind="published",
        submission=ID,
        at=AT,
        decimals=3,
        said="the third run was agreed on",
        scores=[
            CommentScore(view="dev", measure="RR@10", released="0.431", queries=6980),
            CommentScore(view="eval", measure="RR@10", released=NOT_CLEAR, queries=5793),
        ],
        findings=[
            Finding(
                rule="variants",
                severity="note",
                evidence="20261001-lighthouse-monot5 has the same top 10 in 97.12345% "
                "of the queries",
            )
        ],
        facts={"eval": {"queries answered": 5793, "documents": 579_300}},
        steps=[f"heldout status {ID}"],
        page="https://board.example/leaderboard/",
    )
    assert format_comment(comment) == GOLDEN


def comment_of(score: CommentScore | None = None, **changes: Any) -> Comment:
    scores = [] if score is None else [score]
    told: dict[str, Any] = {"kind": "published", "submission": ID, "at": AT, "decimals": 3}
    return Comment(**(told | {"scores": scores} | changes))


def scored(released: str, **changes: Any) -> CommentScore:
    told: dict[str, Any] = {"view": "eval", "measure": "RR@10", "released": released, "queries": 9}
    return CommentScore(**(told | changes))


def test_a_short_comment_has_no_empty_sections() -> None:
    assert (
        format_comment(comment_of(kind="received"))
        == f"`{ID}` was received (20 Nov 2026 17:10:00 UTC).\n"
    )


def test_a_mean_over_seeds_has_its_spread_with_the_same_digits() -> None:
    line = scored("0.412", seeds=3, spread="0.004")
    assert "**0.412** ± 0.004 over 3 seeds (n = 9)" in format_comment(comment_of(line))
    with pytest.raises(ValueError, match="not a released score"):
        format_comment(comment_of(replace(line, spread="0.00412")))


def test_a_score_with_noise_says_so_and_may_lie_below_0() -> None:
    part = "with noise (for information only)"
    told = comment_of(scored("-0.041", view="check", part=part))
    assert f"- `check`, `RR@10`, {part}: **-0.041** (n = 9)" in format_comment(told)


@pytest.mark.parametrize("released", ["0.4123", "0.41234567", "1", "nan", "", "0.41\n@all", ".4"])
def test_a_score_that_was_not_released_so_is_refused(released: str) -> None:
    with pytest.raises(ValueError, match="not a released score"):
        format_comment(comment_of(scored(released)))


HOSTILE = [
    "<script>alert(1)</script>",
    "@everyone and @org/team",
    "`@everyone` ``x`` ```",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "https://evil.example www.evil.example",
    "fixes #1, !2, lab/board#3, 4f3c2d1e0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d",
    "\n/merge\n/close\n/approve",
    "\r\n\r\n# Heading\n\n---\n\n- [x] done",
    "--> <!-- heldout " + "0" * 64 + " -->",
    "\\`@all\\`",
    "\u202egnp\u200b\x1b[31m",
    "|a|b|\n|-|-|",
    "&#64;all &lt;b&gt;",
    "    indented",
    "`",
    "",
    " ",
    "A" * 100_000,
]
texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=60),
    st.text(alphabet="`@<>[]()!#/\\ \n\r\t*_~|&;:-.x1", max_size=60),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
)
findings = st.builds(
    Finding, rule=texts, severity=st.sampled_from(["reject", "review", "note"]), evidence=texts
)
comments = st.builds(
    Comment,
    kind=st.sampled_from(["received", "asked", "rejected", "published", "corrected"]),
    submission=st.just(ID),
    at=st.just(AT),
    decimals=st.integers(3, 6),
    said=texts,
    scores=st.lists(
        st.builds(
            CommentScore,
            view=texts,
            measure=texts,
            released=st.floats(0, 1).map(lambda score: f"{score:.3f}"),
            queries=st.integers(0, 10**6),
        ),
        max_size=3,
    ),
    findings=st.lists(findings, max_size=30),
    facts=st.dictionaries(texts, st.dictionaries(texts, st.integers(0, 10**9), max_size=2)),
    steps=st.lists(texts, max_size=3),
    page=st.one_of(texts, st.just("https://board.example/")),
)


def flatten(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flatten(token.children or [])


@given(comments)
def test_nobodys_text_is_more_than_code(comment: Comment) -> None:
    """Read as a forge reads it: by a CommonMark parser with tables, links and strikethrough."""
    text = format_comment(comment)
    tokens = list(flatten(MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(text)))
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_inline", "html_block", "image", "heading_open", "table_open"}
    assert not kinds & {"fence", "code_block", "hr", "blockquote_open", "s_open", "em_open"}
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    assert links in ([], [comment.page])
    plain = "".join(token.content for token in tokens if token.type == "text")
    ours = plain.replace(comment.page, "") if links else plain
    assert not re.search(r"[@<>#!~\\`&]|://|www\.", ours)
    assert not any(line.lstrip().startswith("/") for line in text.splitlines())
    assert text.replace("\n", "").isprintable()
    digits = [len(found) for found in re.findall(r"\d\.(\d+)", text)]
    assert max(digits, default=0) <= comment.decimals


@given(st.floats(0, 1), st.integers(1, 6))
def test_a_true_score_in_a_finding_comes_out_cut(score: float, decimals: int) -> None:
    finding = Finding(rule="x", severity="note", evidence=f"the score is {score!r} of 1")
    shown = format_comment(comment_of(decimals=decimals, findings=[finding]))
    assert all(len(n) <= decimals for n in re.findall(r"\d\.(\d+)", shown))


def test_the_longest_comment_fits_into_the_smallest_forge() -> None:
    """GitHub takes 65,536 characters."""
    long = "\U000e0001" * 10_000
    finding = Finding(rule=long, severity="reject", evidence=long)
    lines = [scored("0.412", view=long, measure=long)] * 500
    text = format_comment(comment_of(said=long, findings=[finding] * 500, scores=lines))
    assert "and 480 more" in text
    assert 20_000 < len(text) < 60_000
