"""What reports of outcomes say of their family, correction and rules, and where tests are odd."""

from typing import Any

from heldout.answers.table import format_p
from heldout.stats.results import TestResult
from heldout.validity.outcomes import Outcomes
from heldout.validity.verdicts import Verdict

__all__ = ["declare", "tell_family", "tell_p", "tell_rules", "tell_ties"]

_CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "none": "no correction"}


def tell_family(result: Outcomes) -> tuple[str, ...]:
    """Which hypotheses form the family of the corrected p-values."""
    rules, pairs = result.rules, len(result.pairs)
    many = "1 pair" if pairs == 1 else f"{pairs:,} pairs"
    test = result.pairs[0].declared.removeprefix(f"{rules.by}_").replace("_", " ")
    case_2 = "crossed t" if result.pairs[0].pair.grouped else "exact binomial"
    return (
        (
            f"corrected: {_CORRECTIONS[rules.correction]} over {result.hypotheses:,} hypotheses, "
            f"{many} × 2 outcomes: (2) by {case_2}, (3) by {test} on {rules.by.upper()}, as "
            "declared; a test that was not declared is corrected as if it had been"
        ),
    )


def tell_p(verdict: Verdict) -> str:
    """The p by which each rule is decided, which is none of those of the tables."""
    strict = f"strict test: p {format_p(verdict.p_strict)}, the largest p that it needs"
    if verdict.p_strict is None:
        strict = "strict test: not applicable (its tests favour different runs, or one has no p)"
    if verdict.p_no_harm is None:
        return f"{strict}; no-harm test: not applicable"
    harm = format_p(verdict.p_no_harm)
    return f"{strict}; no-harm test: p {harm}, twice the smaller p of its two ways"


def tell_ties(test: TestResult) -> str | None:
    """Why p and interval contradict each other; `None` where they do not."""
    if test.test != "signed-rank" or test.p is None or test.low is None or test.high is None:
        return None
    alpha = 1 - test.level
    holds = test.low <= 0 <= test.high
    if (test.p <= alpha) != holds:
        return None
    below, has = ("at most", "holds") if holds else ("above", "excludes")
    return (
        f"p is {below} {alpha:.2g} and yet the interval {has} 0: p counts equal differences as "
        "tied, the interval as if no two were equal"
    )


def tell_rules(result: Outcomes) -> tuple[str, ...]:
    """What the verdicts ask for."""
    rules, pairs = result.rules, len(result.pairs)
    better = "a lower ESL" if rules.by == "esl" else "a higher RR"
    over = (
        "" if pairs == 1 else f", corrected over {pairs:,} pairs ({_CORRECTIONS[rules.correction]})"
    )
    by = ("crossed t", "crossed t") if result.pairs[0].pair.grouped else ("score test", "t")
    guarded = rules.by == "esl" and rules.harm == "margin"
    guard = (
        f"; the mean ESL not higher by {rules.margins.esl:g} or more ({by[1]}, and no rare harm)"
        if guarded
        else ""
    )
    strict = (
        f"strict: more of (2) and {better} in (3){guard}; {'all' if guarded else 'both'} at α "
        f"{rules.alpha:g} (intersection-union: the largest p decides, not the column corrected)"
        f"{over}"
    )
    if rules.by == "rr":
        return (strict, "do no harm is defined by ESL and not asked with RR")
    if rules.harm == "plain":
        return (
            strict,
            (
                "do no harm, the paper's plain rule: one outcome significantly better, the other "
                "not significantly worse; that is no evidence that there is no harm"
            ),
        )
    return (
        strict,
        (
            f"do no harm: one outcome better and the other not worse by a margin, α "
            f"{rules.alpha / 2:g} for each way{over}; margins: found {rules.margins.found:g} of "
            f"the queries ({by[0]}), mean ESL {rules.margins.esl:g} ({by[1]}, on so many queries "
            "that rare harm would have been seen)"
        ),
    )


def declare(result: Outcomes) -> dict[str, Any]:
    """The rules for JSON."""
    rules, declared = result.rules, result.pairs[0]
    return {
        "correction": rules.correction,
        "family": {
            "size": result.hypotheses,
            "pairs": len(result.pairs),
            "outcomes": 2,
            "tests": [next(iter(declared.pair.tests)), declared.declared],
        },
        "alpha": rules.alpha,
        "decide": rules.decide,
        "by": rules.by,
        "harm": rules.harm,
        "margins": {"found": rules.margins.found, "esl": rules.margins.esl},
        "level": result.level,
    }
