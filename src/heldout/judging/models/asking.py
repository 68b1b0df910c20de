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
from heldout.answers.table import UNDEFINED, Cell, Column, Table, columns, format_p
from heldout.errors import InputError, OptionError, plural
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
from heldout.stats.regression import MeanFit


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
    lines = [
        ("asked", f"{new:,} now, {len(last):,} in all; a pair is asked in both orders"),
        ("answered", f"{answered:,}"),
    ]
    if failures:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in failures.items())
        lines.append(("failed", f"{counts}: no vote for anybody; failed calls are asked again"))
    counted = [
        [count for row in rows if (count := getattr(row, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    ]
    if any(counted):
        came, went = map(sum, counted)
        lines.append(("tokens", f"{came:,} in, {went:,} out, as the endpoint says"))
    document = {
        "asked": {"new": new, "all": len(last)},
        "answered": answered,
        "failures": failures,
    }
    said = f"The model answered {answered:,} of {plural(len(last), 'question')}"
    if failures:
        said += f"; {failed.total():,} failed and are asked again"
    return Answer(answer=f"{said}.", summary=lines, tables=(), document=document)


def calibration_answer(found: Calibration, rates: Sequence[WinRate]) -> Answer:
    """Return how often it agrees, how often it flips, to what it leans; win rates with its help."""
    shares = {
        name: _describe_share(share, found.level)
        for name, share in (
            ("accuracy", found.accuracy),
            ("decided", found.decided),
            ("flips", found.flip_rate),
        )
    }
    lines = [
        ("compared", f"{found.compared:,} pairs on which people are not tied"),
        ("agrees", f"{shares['accuracy']}; no preference counts as a half"),
        ("", f"{shares['decided']} where it has a preference"),
        ("kappa", _describe_kappa(found)),
        ("flips", f"{shares['flips']} of {found.verdicts:,} pairs"),
        ("side", _describe_side(found)),
        ("length", _describe_length(found)),
    ]
    if found.compared < ENOUGH:
        lines.append(("note", f"under {ENOUGH} pairs: too few to rely on"))
    return Answer(
        answer=_calibration_headline(found),
        summary=lines,
        tables=(_strata_table(found), *([_rates_table(rates, found.level)] if rates else [])),
        document={
            "calibration": to_document(found) | to_document({"win_rates": rates}),
        },
    )


def _calibration_headline(found: Calibration) -> str:
    if found.accuracy.value is None:
        return "The model cannot be compared with people: no pair has both its answer and a winner."
    few = f", too few to rely on (under {ENOUGH})" if found.compared < ENOUGH else ""
    pairs = f"{found.compared:,} {'pair' if found.compared == 1 else 'pairs'}"
    return (
        f"The model agrees with people on {found.accuracy.value:.1%} of {pairs}{few}; its answer "
        f"changes with the order in {_say_flips(found)} of pairs."
    )


def _say_flips(found: Calibration) -> str:
    return "an unknown share" if found.flip_rate.value is None else f"{found.flip_rate.value:.1%}"


def _describe_share(found: MeanFit, level: float) -> str:
    if found.value is None:
        return "undefined: no pair"
    if found.low is None or found.high is None:
        return f"{found.value:.1%}; one query, so no interval"
    return (
        f"{found.value:.1%}, {level:.0%} interval {_cut(found.low):.1%} to {_cut(found.high):.1%}"
    )


def _cut(share: float) -> float:
    return min(1.0, max(0.0, share))


def _describe_kappa(found: Calibration) -> str:
    if found.kappa.value is None:
        return f"undefined: {found.kappa.why}"
    kappa = f"{found.kappa.value:.3f}"
    if found.kappa_interval is None:
        return kappa
    low, high = found.kappa_interval
    return f"{kappa}, {found.level:.0%} interval {low:.3f} to {high:.3f}"


def _describe_side(found: Calibration) -> str:
    if found.side_p is None:
        return "no flip whose sides are known"
    first = f"of its flips {found.first_twice:,} to the passage shown first"
    return f"{first}, {found.second_twice:,} to the second, p {format_p(found.side_p)}"


def _describe_length(found: Calibration) -> str:
    if found.length.why is not None:
        return f"undefined: {found.length.why}"
    slope, low, high = (
        ends[1] for ends in (found.length.values, found.length.low, found.length.high)
    )
    interval = f"{found.level:.0%} interval {low:+.2f} to {high:+.2f}"
    return f"log odds {slope:+.2f} for a passage e times as long, {interval}, people's votes equal"


def _strata_table(found: Calibration) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in found.strata:
        named = f"{one.lead} or more" if one.lead == LEADS[-1] else f"{one.lead}"
        decided = one.agree + one.disagree
        counts: tuple[Cell, ...] = (one.agree, one.disagree) if one.lead else (None, None)
        share = one.agree / decided if one.lead and decided else None
        rows.append((named, one.pairs, *counts, one.flips, share))
    return Table(
        title="The model against people, by their lead of votes",
        columns=(
            Column(name="lead"),
            *columns("count", "pairs", "agree", "disagree", "flips"),
            *columns("share", "agree, if decided", decimals=3),
        ),
        rows=tuple(rows),
        notes=(
            "A flip: the model's answers in the two orders differ, so it has no preference.",
            f"{UNDEFINED}: people were tied, or the model decided no pair.",
        ),
    )


def _rates_table(rates: Sequence[WinRate], level: float) -> Table:
    return Table(
        title="How often people prefer a run's first passage: with the model, and from votes alone",
        columns=(
            *columns("text", "run", "against"),
            *columns("count", "judged by both", "by the model alone"),
            *columns("share", "with the model", "low", "high", decimals=3),
            *columns("share", "votes alone", "low", "high", decimals=3),
        ),
        rows=tuple(
            (
                one.a,
                one.b,
                one.together.labelled,
                one.together.unlabelled,
                *(one.together.value, one.together.low, one.together.high),
                *(one.people.value, one.people.low, one.people.high),
            )
            for one in rates
        ),
        notes=(
            f"With the model: PPI++, {level:.0%} intervals by Student's t, four queries added.",
            "Below five queries it has none. Votes alone: Clopper and Pearson.",
            "It holds where the pairs with votes are a random part of those the model judged.",
        ),
    )


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
    table = Table(
        title="What people should see next",
        columns=(*columns("text", "query", "passage", "against"), *columns("count", "votes")),
        rows=tuple(rows),
    )
    keys = ("query", "a", "b", "votes")
    document = {"next": [dict(zip(keys, row, strict=True)) for row in rows]}
    fewest = min((row[-1] for row in rows), default=0)
    said = "No pair is left for people to see."
    if rows:
        votes = plural(fewest, "vote")
        said = f"People should see these {len(rows):,} pairs next; the first has {votes}."
    return Answer(answer=said, summary=(), tables=[table], document=document)
