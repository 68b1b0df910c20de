"""Rows of model judges for tests, and pools with texts."""

from typing import Any

from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.models.judges import ModelJudge, ModelJudgment

JUDGE = ModelJudge(model="a-model", seed=3)


def row_of_pair(query: str, a: str, b: str, chosen: str | None, **changes: Any) -> ModelJudgment:
    """A row as JUDGE would have got it."""
    fields: dict[str, Any] = {
        "query": query,
        "a": a,
        "b": b,
        "chosen": chosen,
        "failure": None if chosen else "timeout",
        "model": JUDGE.model,
        "prompt": JUDGE.prompt,
        "asked": "0" * 64,
        "seed": JUDGE.seed,
        "asked_at": "2026-11-21T12:00:00Z",
        "latency_ms": 5,
        "tries": 1,
        **changes,
    }
    return ModelJudgment(**fields)


def pool_of(query: str, texts: dict[str, str], **runs: tuple[str, ...]) -> Pool:
    """A pool of these passages; `runs` says which came from which runs, `known` from the labels."""
    return Pool(
        query=query,
        text=f"what is {query}",
        candidates=tuple(
            Candidate(
                doc=doc,
                text=text,
                runs=tuple(run for run, docs in runs.items() if doc in docs and run != "known"),
                known=doc in runs.get("known", ()),
            )
            for doc, text in sorted(texts.items())
        ),
    )
