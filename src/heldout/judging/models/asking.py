"""A language model as one more judge: what it is asked, and how it does against people."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.errors import InputError, OptionError
from heldout.judging.campaign.drawing import Pair, list_pairs
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Votes, count_votes, counted
from heldout.judging.campaign.pools import Pool, stand_for
from heldout.judging.models import judges
from heldout.judging.models.calibration import (
    ENOUGH,
    LEADS,
    Calibration,
    WinRate,
    calibrate,
    draw_judged_pairs,
    estimate_win_rates,
    order_pairs,
    reach_verdicts,
)
from heldout.options import Level, Opt, Seed
from heldout.progress_bar import SILENT, Progress


def asked_answer(rows: Sequence[judges.ModelJudgment], *, new: int) -> Answer:
    """Return what a model was asked in all, and what came of it.

    Args:
        rows: of one judge.
        new: how many of them are of this call.
    """
    last = {(row.query, row.a, row.b): row for row in rows}.values()
    failed = Counter(row.failure for row in last if row.failure is not None)
    answered = len(last) - failed.total()
    failures = dict(sorted(failed.items()))
    counted = [
        [count for row in rows if (count := getattr(row, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    ]
    given = {"all": len(last), "answered": answered, "failures": failures}
    tokens = [*map(sum, counted)] if any(counted) else ()
    return Answer(
        answer=write("model.asked", failed=failed.total(), **given),
        summary=write_facts("model.asked_summary", new=new, tokens=tokens, **given),
        tables=(),
        document={
            "asked": {"new": new, "all": len(last)},
            "answered": answered,
            "failures": failures,
        },
    )


def calibration_answer(found: Calibration, rates: Sequence[WinRate]) -> Answer:
    """Return how often it agrees, how often it flips, to what it leans; win rates with its help."""
    return Answer(
        answer=write("model.headline", found=found, enough=ENOUGH),
        summary=write_facts("model.summary", found=found, enough=ENOUGH),
        tables=(_strata_table(found), *([_rates_table(rates, found.level)] if rates else [])),
        document={
            "calibration": to_document(found) | to_document({"win_rates": rates}),
        },
    )


def _strata_table(found: Calibration) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in found.strata:
        named = f"{one.lead} or more" if one.lead == LEADS[-1] else f"{one.lead}"
        decided = one.agree + one.disagree
        counts: tuple[Cell, ...] = (one.agree, one.disagree) if one.lead else (None, None)
        share = one.agree / decided if one.lead and decided else None
        rows.append((named, one.pairs, *counts, one.flips, share))
    return write_table("model.strata", tuple(rows))


def _rates_table(rates: Sequence[WinRate], level: float) -> Table:
    rows = tuple(
        (
            one.a,
            one.b,
            one.together.labelled,
            one.together.unlabelled,
            *(one.together.value, one.together.low, one.together.high),
            *(one.people.value, one.people.low, one.people.high),
        )
        for one in rates
    )
    return write_table("model.rates", rows, level=level)


_LONGEST_PROMPT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """How a model is called."""

    endpoint: Annotated[
        str | None, Opt("OpenAI-compatible interface, such as https://HOST/v1.", metavar="URL")
    ] = None
    key_env: Annotated[
        str | None, Opt("Environment variable that holds the key.", metavar="VAR")
    ] = None
    concurrency: Annotated[int, Opt("Number of calls at once.", least=1, most=64)] = 4
    limit: Annotated[int | None, Opt("Most pairs, at random [all].", least=1, metavar="N")] = None
    timeout: Annotated[float, Opt("Seconds for one try.", least=1, most=3600)] = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What a model is asked, and what is reported of its answers."""

    model: Annotated[str, Opt("Name of the model at the endpoint.", metavar="NAME")]
    prompt: Annotated[
        Path | None,
        Opt("Instruction for the model [our own text].", metavar="FILE", path="file", exists=True),
    ] = None
    called: EndpointOptions = field(default_factory=EndpointOptions)
    calibrate: Annotated[bool, Opt("Comparison with people's votes.")] = False
    following: Annotated[
        int | None,
        Opt(
            "Number of pairs to suggest for judging next: those with fewest votes, then "
            "the least certain ones.",
            names=("--next",),
            least=1,
            metavar="N",
        ),
    ] = None
    seed: Seed = 0
    level: Level = 0.95

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise OptionError("--model is empty")
        if self.called.endpoint is None and not self.calibrate and self.following is None:
            raise OptionError("what for? --endpoint URL, --calibrate or --next N")


def judge_by_model(
    folder: CampaignFolder,
    options: ModelOptions,
    *,
    variables: Mapping[str, str],
    progress: Progress = SILENT,
) -> Answer:
    """Ask a model what it was not asked yet, and report on its answers.

    Args:
        folder: the campaign; answers and failures are added to model-judgments.jsonl.
        options: what is asked and reported.
        variables: of the environment, for the key.
        progress: counts the calls.

    Raises:
        InputError: code `bad-prompt`; a file has errors.
        StoreError: the campaign has no settings or pools.
        SetupError: no key.
    """
    called, rng = options.called, _rng(options.seed)
    judge = judges.ModelJudge(
        model=options.model, instruction=_instruction(options.prompt), seed=options.seed
    )
    pools, settings = folder.pools(), folder.settings()
    valid = counted(folder.judgments(), exclusion=settings.exclusion, failures=settings.failures)
    votes = count_votes(valid, same=stand_for(pools))
    new = 0
    if called.endpoint is not None:
        pairs = _pairs(pools, votes, called.limit, judged=options.calibrate, rng=rng)
        new = _ask(
            folder,
            judge,
            called,
            pairs=pairs,
            pools=pools,
            variables=variables,
            progress=progress,
        )
    rows = judges.rows_of(judges.read_rows(folder.path), judge)
    answers, verdicts = [_describe_judge(judge), asked_answer(rows, new=new)], reach_verdicts(rows)
    if options.calibrate:
        rng, level = _rng(options.seed), options.level
        found = calibrate(verdicts, votes, pools=pools, rng=rng, level=level)
        rates = estimate_win_rates(pools, votes, verdicts, level=level)
        answers.append(calibration_answer(found, rates))
    if options.following is not None:
        counts = _count(votes)
        due = order_pairs(list_pairs(pools), verdicts, turn=counts)[: options.following]
        answers.append(_describe_next(due, counts))
    return Answer(
        answer=answers[-1].answer,
        summary=[line for one in answers for line in one.summary],
        tables=[table for one in answers for table in one.tables],
        document=dict(pair for one in answers for pair in one.document.items()),
    )


def _rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _instruction(prompt: Path | None) -> str:
    if prompt is None:
        return judges.INSTRUCTION
    data = prompt.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or len(data) > _LONGEST_PROMPT:
        size, most = f"{len(data):,} bytes", _LONGEST_PROMPT >> 10
        raise InputError.of("bad-prompt", str(prompt), size, most=most)
    return text


def _pairs(
    pools: Sequence[Pool],
    votes: Votes,
    limit: int | None,
    *,
    judged: bool,
    rng: np.random.Generator,
) -> Sequence[Pair]:
    """Draw what is asked about: pairs at random, or with `judged` those people judged.

    A greater limit goes on where a smaller one ended.
    """
    there = list_pairs(pools)
    if judged:
        drawn = draw_judged_pairs(votes, count=limit or ENOUGH, rng=rng)
        known = set(there)
        return [pair for pair in drawn if pair in known]
    return [there[index] for index in rng.permutation(len(there)).tolist()][:limit]


def _ask(
    folder: CampaignFolder,
    judge: judges.ModelJudge,
    called: EndpointOptions,
    *,
    pairs: Sequence[Pair],
    pools: Sequence[Pool],
    variables: Mapping[str, str],
    progress: Progress,
) -> int:
    """Ask what was not answered yet, and give how many calls that were."""
    url = judges.completions_url(called.endpoint or "")
    key = judges.read_key(variables, called.key_env)
    calls = judges.plan_calls(pairs, pools, judge, done=judges.read_rows(folder.path))
    if not calls:
        return 0
    with (
        judges.open_rows(folder.path) as record,
        judges.new_client(seconds=called.timeout, connections=called.concurrency) as http,
        progress.steps("asking", len(calls)) as done,
    ):
        client = judges.ModelClient(
            client=http,
            url=url,
            model=judge.model,
            key=key,
            seed=judge.seed,
            seconds=called.timeout,
            now=lambda: datetime.now(UTC),
            tick=time.monotonic,
            sleep=time.sleep,
        )
        work = judges.ask_model(calls, judge, client, concurrency=called.concurrency, record=record)
        with closing(work):
            for _ in work:
                done()
    return len(calls)


def _describe_judge(judge: judges.ModelJudge) -> Answer:
    line = f"{judge.model}, prompt {judge.prompt[:12]}, seed {judge.seed}"
    document = {"model": judge.model, "prompt": judge.prompt, "seed": judge.seed}
    return Answer(
        answer=f"The judge is {name_one(judge.model)}.",
        summary=[("judge", line)],
        tables=(),
        document={"judge": document},
    )


def _count(votes: Votes) -> Mapping[Pair, int]:
    return Counter(
        {
            (query, first, second): one.total
            for query, found in votes.items()
            for (first, second), one in found.items()
        }
    )


def _describe_next(pairs: Sequence[Pair], counts: Mapping[Pair, int]) -> Answer:
    """Pairs with the fewest votes first; the model breaks ties."""
    rows = [(*pair, counts.get(pair, 0)) for pair in pairs]
    table = write_table("model.next_pairs", tuple(rows))
    keys = ("query", "a", "b", "votes")
    document = {"next": [dict(zip(keys, row, strict=True)) for row in rows]}
    fewest = min((row[-1] for row in rows), default=0)
    said = write("model.next", count=len(rows), fewest=fewest)
    return Answer(answer=said, summary=(), tables=[table], document=document)
