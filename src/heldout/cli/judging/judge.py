"""`heldout prefer judge`: a language model as one more judge, and how it does against people."""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.cli.context import reports_disk
from heldout.cli.judging.campaign import campaign_argument
from heldout.cli.options import DecimalRange, level_option, one_argument
from heldout.cli.printing import Output, output_options, print_answer, progress, seed_option
from heldout.errors import InputError, Problem
from heldout.judging.campaign.drawing import Pair, list_pairs
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Votes, count_votes, counted
from heldout.judging.campaign.pools import Pool
from heldout.judging.labels.contests import stand_for
from heldout.judging.models import words as calibration_report
from heldout.judging.models.calibration import (
    ENOUGH,
    Calibration,
    Verdict,
    WinRate,
    calibrate,
    draw_judged_pairs,
    estimate_win_rates,
    order_pairs,
    reach_verdicts,
)
from heldout.judging.models.client import (
    ModelClient,
    ask_model,
    completions_url,
    new_client,
    open_rows,
    read_key,
    read_rows,
)
from heldout.judging.models.judges import (
    INSTRUCTION,
    ModelJudge,
    ModelJudgment,
    plan_calls,
    rows_of,
)

_LONGEST_PROMPT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """How a model is called.

    Attributes:
        endpoint: root of the interface; `None`: nobody is asked.
        key_env: the variable with the key.
        concurrency: calls at once.
        limit: most pairs.
        probabilities: ask for them.
        max_tokens: longest answer.
        timeout: seconds for one try.
    """

    endpoint: str | None
    key_env: str | None
    concurrency: int
    limit: int | None
    probabilities: bool
    max_tokens: int
    timeout: float


_endpoint_options = one_argument(
    "called",
    _Endpoint,
    click.option("--endpoint", metavar="URL", help="OpenAI-compatible, as https://HOST/v1."),
    click.option("--key-env", metavar="VAR", help="Environment variable that holds the key."),
    click.option("--concurrency", type=click.IntRange(1, 64), default=4, show_default=True),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Most pairs, at random."),
    click.option(
        "--probabilities", is_flag=True, help="Ask for those of the answer's first token."
    ),
    click.option("--max-tokens", type=click.IntRange(1, 100_000), default=1024, show_default=True),
    click.option(
        "--timeout",
        type=DecimalRange(1, 3600),
        default=120.0,
        show_default=True,
        help="Seconds for one try.",
    ),
)


@click.command
@campaign_argument
@click.option("--model", required=True, metavar="NAME", help="As the endpoint calls it.")
@click.option(
    "--prompt",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="What the model is told, instead of our own text.",
)
@_endpoint_options
@click.option("--calibrate", "calibrates", is_flag=True, help="Compare with people's votes.")
@click.option(
    "--next",
    "following",
    type=click.IntRange(min=1),
    metavar="N",
    help="Name the next pairs for people: fewest votes, then those it is least sure of.",
)
@seed_option
@level_option
@output_options
@reports_disk
def judge(
    *,
    campaign: Path,
    model: str,
    prompt: Path | None,
    called: _Endpoint,
    calibrates: bool,
    following: int | None,
    seed: int,
    level: float,
    output: Output,
) -> None:
    """Ask a language model about the pairs of a campaign, each in both orders.

    Where its two answers differ it has no preference. Answers and failures are rows of
    model-judgments.jsonl, which only grows; nothing that was answered is asked again. The file is
    not read by what makes labels: a model can say which pairs people should see next, and be
    compared with them.

    With --calibrate it is asked about pairs that people judged, at random and each lead of votes by
    its share, 300 of them unless --limit says otherwise; else about all pairs. Without --endpoint
    nobody is asked.

    \b
    Examples:
      heldout prefer judge campaign --endpoint https://models.example/v1 --model m \\
      --key-env MODEL_KEY --calibrate
      heldout prefer judge campaign --model m --next 50
    """
    if called.endpoint is None and not calibrates and following is None:
        raise click.UsageError("what for? --endpoint URL, --calibrate or --next N")
    folder = CampaignFolder(campaign)
    judge = ModelJudge(model=_name(model), instruction=_instruction(prompt), seed=seed)
    pools, votes = folder.pools(), _votes(folder)
    new = 0
    if called.endpoint is not None:
        pairs = _pairs(pools, votes, called.limit, judged=calibrates, rng=_rng(seed))
        new = _ask(folder, judge, called, pairs=pairs, pools=pools)
    rows = rows_of(read_rows(campaign), judge)
    answer = _answer_rows(judge, rows, new)
    verdicts = reach_verdicts(rows)
    if calibrates:
        found = calibrate(verdicts, votes, pools=pools, rng=_rng(seed), level=level)
        _add_calibration(answer, found, estimate_win_rates(pools, votes, verdicts, level=level))
    if following is not None:
        _add_next(answer, _queue(pools, votes, verdicts)[:following], votes)
    print_answer(Answer(facts=answer.facts, tables=answer.tables, value=answer.value), output)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An answer that grows."""

    facts: list[tuple[str, str]]
    tables: list[Table]
    value: dict[str, Any]


def _rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _name(model: str) -> str:
    if not model.strip():
        raise click.UsageError("--model is empty")
    return model


def _instruction(prompt: Path | None) -> str:
    if prompt is None:
        return INSTRUCTION
    data = prompt.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or len(data) > _LONGEST_PROMPT:
        raise InputError(
            Problem(
                code="bad-prompt",
                path=str(prompt),
                found=f"{len(data):,} bytes",
                expected=f"a text in UTF-8, at most {_LONGEST_PROMPT >> 10} KiB",
                hint="the question and the two passages are sent after it, as one JSON object",
            )
        )
    return text


def _votes(folder: CampaignFolder) -> Votes:
    settings = folder.settings()
    valid = counted(folder.judgments(), exclusion=settings.exclusion, failures=settings.failures)
    return count_votes(valid, same=stand_for(folder.pools()))


def _pairs(
    pools: Sequence[Pool],
    votes: Votes,
    limit: int | None,
    *,
    judged: bool,
    rng: np.random.Generator,
) -> Sequence[Pair]:
    """What is asked about: pairs at random, or with `judged` a sample of those that people judged.

    A greater limit goes on where a smaller one ended.
    """
    there = list_pairs(pools)
    if judged:
        drawn = draw_judged_pairs(votes, count=limit or ENOUGH, rng=rng)
        known = set(there)
        return [pair for pair in drawn if pair in known]
    return [there[place] for place in rng.permutation(len(there)).tolist()][:limit]


def _ask(
    folder: CampaignFolder,
    judge: ModelJudge,
    called: _Endpoint,
    *,
    pairs: Sequence[Pair],
    pools: Sequence[Pool],
) -> int:
    """Ask what was not answered yet, and give how many calls that were."""
    url = completions_url(called.endpoint or "")
    key = read_key(os.environ, called.key_env)
    calls = plan_calls(pairs, pools, judge, done=read_rows(folder.path))
    if not calls:
        return 0
    with (
        open_rows(folder.path) as record,
        new_client(seconds=called.timeout, connections=called.concurrency) as http,
        progress("asking", len(calls)) as done,
    ):
        client = ModelClient(
            client=http,
            url=url,
            model=judge.model,
            key=key,
            seed=judge.seed,
            most_tokens=called.max_tokens,
            probabilities=called.probabilities,
            seconds=called.timeout,
            now=lambda: datetime.now(UTC),
            tick=time.monotonic,
            sleep=time.sleep,
        )
        work = ask_model(calls, judge, client, concurrency=called.concurrency, record=record)
        with closing(work):
            for _ in work:
                done()
    return len(calls)


def _answer_rows(judge: ModelJudge, rows: Sequence[ModelJudgment], new: int) -> _Answer:
    told = {"model": judge.model, "prompt": judge.prompt, "seed": judge.seed}
    return _Answer(
        facts=[
            ("judge", f"{judge.model}, prompt {judge.prompt[:12]}, seed {judge.seed}"),
            *calibration_report.asked_facts(rows, new=new),
        ],
        tables=[],
        value={"judge": told, **calibration_report.asked_value(rows, new=new)},
    )


def _add_calibration(answer: _Answer, found: Calibration, rates: Sequence[WinRate]) -> None:
    answer.facts.extend(calibration_report.facts(found))
    answer.tables.extend(calibration_report.tables(found, rates))
    answer.value["calibration"] = calibration_report.value(found, rates)


def _queue(pools: Sequence[Pool], votes: Votes, verdicts: Sequence[Verdict]) -> Sequence[Pair]:
    """All pairs, those with the fewest votes first; the model breaks ties."""
    turn = _count(votes)
    return order_pairs(list_pairs(pools), verdicts, turn=turn)


def _count(votes: Votes) -> Mapping[Pair, int]:
    return Counter(
        {
            (query, first, second): one.total
            for query, found in votes.items()
            for (first, second), one in found.items()
        }
    )


def _add_next(answer: _Answer, pairs: Sequence[Pair], votes: Votes) -> None:
    counts = _count(votes)
    answer.tables.append(
        Table(
            title="What people should see next",
            columns=(
                Column(name="query"),
                Column(name="passage"),
                Column(name="against"),
                Column(name="votes", form="count"),
            ),
            rows=tuple((*pair, counts.get(pair, 0)) for pair in pairs),
        )
    )
    answer.value["next"] = [
        {"query": query, "a": a, "b": b, "votes": counts.get((query, a, b), 0)}
        for query, a, b in pairs
    ]
