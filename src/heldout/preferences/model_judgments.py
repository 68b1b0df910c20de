"""What model judges answered: rows of their own kind, never a `Judgment`.

Votes, contests and labels cannot take them: a model judge mints no label. A call that failed is a
row with its reason, and no vote for anybody.
"""

from typing import Annotated, Literal

import msgspec

from heldout.errors import InputError, Problem
from heldout.preferences.drawing import Pair
from heldout.preferences.rows import parse_rows

__all__ = ["CallFailure", "Failure", "ModelJudgment", "parse_model_judgments"]

CallFailure = Literal["unreachable", "timeout", "http", "malformed", "too-large"]
"""Why no answer came: no connection, or one that broke; no answer in time; a refusing status; no
chat completion; more than is read. Asked again when the command is called again."""

AnswerFailure = Literal["refusal", "cut-off", "unparsed"]
"""Why an answer says nothing: the model would not; it ended too early; it is neither A nor B. Not
asked again: the same question gives the same answer."""

Failure = CallFailure | AnswerFailure
"""Why a row has no choice."""

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class ModelJudgment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of asking about one pair in one order.

    Attributes:
        query: its id.
        a: the passage shown as A.
        b: the one shown as B.
        chosen: one of the two, or `None` where the call or the answer failed.
        failure: why nothing was chosen; `None` where something was.
        detail: what is known of a failure, as a status of HTTP.
        model: its name, as asked for.
        served: its name, as the endpoint said; empty where it did not.
        prompt: SHA-256 of the instruction.
        asked: SHA-256 of all that was said to the model.
        seed: sent along; endpoints need not heed it.
        text: the raw answer.
        probability: that A is better, by the probabilities of the answer's first token; `None`
            where none were asked for or given.
        asked_at: when it was first tried, ISO 8601 in UTC.
        latency_ms: of the last try, milliseconds.
        tries: how often it was tried, from 1.
        input_tokens: as the endpoint counted; `None` where it did not.
        output_tokens: the same.
    """

    query: str
    a: str
    b: str
    chosen: str | None
    failure: Failure | None = None
    detail: str = ""
    model: str
    served: str = ""
    prompt: str
    asked: str
    seed: int
    text: str = ""
    probability: _Share | None = None
    asked_at: str
    latency_ms: _Count
    tries: Annotated[int, msgspec.Meta(ge=1)]
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None

    @property
    def pair(self) -> Pair:
        """Query and the two ids, the lesser first: the same in both orders."""
        return (self.query, min(self.a, self.b), max(self.a, self.b))


def parse_model_judgments(data: bytes, *, path: str) -> tuple[ModelJudgment, ...]:
    """Read rows as `format_rows` wrote them.

    Raises:
        InputError: codes `bad-row` and `bad-preference`.
    """
    rows = parse_rows(data, ModelJudgment, path=path)
    wrong = [
        Problem(
            code="bad-preference",
            path=path,
            line=number,
            found=f"{row.a} against {row.b}: {row.chosen}, {row.failure}",
            expected="two different passages, and one of them or a failure",
        )
        for number, row in enumerate(rows, 1)
        if not _fits(row)
    ]
    if wrong:
        raise InputError(wrong)
    return rows


def _fits(row: ModelJudgment) -> bool:
    if row.a == row.b or row.chosen not in (row.a, row.b, None):
        return False
    return (row.chosen is None) != (row.failure is None)
