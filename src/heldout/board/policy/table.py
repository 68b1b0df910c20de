"""The policy: one explicit table of rules, each a pure function that yields findings.

A rule sees the board, its history, the manifest, what the scan said of the runs, and the times.
It says what is the case and shows its evidence; a person decides. Sources:
fostering-coopetition, sections 2.2 and 3.3. docs/policy.md gives every rule's reason.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from heldout.board.policy.case import Case
from heldout.board.policy.checks import (
    check_alike,
    check_candidates,
    check_description,
    check_embargo,
    check_ensemble,
    check_far_below,
    check_id_date,
    check_id_words,
    check_institution,
    check_look_alikes,
    check_open,
    check_open_runs,
    check_post_hoc,
    check_quota,
    check_renamed,
    check_runs,
    check_scripts,
    check_seeds,
    check_team,
    check_ties,
    check_training_data,
    check_type,
    check_unproven_quota,
)
from heldout.board.policy.registered import check_registered

FindingSeverity = Literal["reject", "review", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of a submission.

    Attributes:
        rule: name of the rule, a key of `RULES`.
        severity: `reject` stands against publication, `review` asks for a person's reason,
            `note` is for information.
        evidence: what was found, in a sentence.
        public: whether the entry may say that it was accepted with it: what a rule finds by
            looking at others could tell who is under embargo.
    """

    rule: str
    severity: FindingSeverity
    evidence: str
    public: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the policy.

    Attributes:
        check: yields the evidence of each violation.
        severity: of its findings.
        reason: why there is such a rule.
        public: of its findings.
    """

    check: Callable[[Case], Iterator[str]]
    severity: FindingSeverity
    reason: str
    public: bool = True


def judge(case: Case, *, only: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Apply every rule that the board has not switched off, in the order of the table.

    Args:
        case: what they look at.
        only: names of the rules to apply; `None` for all.
    """
    return tuple(
        Finding(rule=name, severity=rule.severity, evidence=evidence, public=rule.public)
        for name, rule in RULES.items()
        if name not in case.spec.policy.off and (only is None or name in only)
        for evidence in rule.check(case)
    )


RULES: Mapping[str, Rule] = {
    "board-open": Rule(
        check=check_open, severity="reject", reason="a board takes runs between its two days"
    ),
    "post-hoc": Rule(
        check=check_post_hoc,
        severity="note",
        reason="whoever has seen the scores of others has an advantage over them",
    ),
    "id-date": Rule(
        check=check_id_date,
        severity="reject",
        reason="the id is the permanent key; its date should be that of the submission",
    ),
    "team-named": Rule(
        check=check_team,
        severity="reject",
        reason="anonymous probing of the held-out labels is not allowed; an embargo is",
    ),
    "team-registered": Rule(
        check=check_registered,
        severity="reject",
        reason="whoever takes part has agreed to how the data may be used",
        public=False,
    ),
    "mixed-scripts": Rule(
        check=check_scripts,
        severity="review",
        reason="an honest word is written in one script",
        public=False,
    ),
    "look-alike": Rule(
        check=check_look_alikes,
        severity="review",
        reason="a quota is counted by name; a name must not pass for another's",
        public=False,
    ),
    "several-names": Rule(
        check=check_ties("paper", "code", "institution"),
        severity="review",
        reason="a quota is a team's, whatever it calls itself",
        public=False,
    ),
    "shared-key": Rule(
        check=check_ties("key"),
        severity="review",
        reason="one key is one sender",
        public=False,
    ),
    "name-taken": Rule(
        check=check_ties("name"),
        severity="review",
        reason="one team must not use up another's quota",
        public=False,
    ),
    "renamed-entry": Rule(
        check=check_renamed,
        severity="review",
        reason="two names that are joined share quota and Ladder for good",
        public=False,
    ),
    "telling-id": Rule(
        check=check_id_words,
        severity="review",
        reason="the id is public though the team is not",
        public=False,
    ),
    "institution-named": Rule(
        check=check_institution,
        severity="reject",
        reason="a web search for team and institution should find the participant",
    ),
    "description": Rule(
        check=check_description,
        severity="reject",
        reason="a score without a system teaches nothing",
    ),
    "type-known": Rule(
        check=check_type, severity="reject", reason="re-ranking and full ranking are compared apart"
    ),
    "training-data": Rule(
        check=check_training_data,
        severity="reject",
        reason="readers must see whether a system saw the test material",
    ),
    "open-runs": Rule(
        check=check_open_runs,
        severity="reject",
        reason="a run is its team's: it is opened only where the team knew before it submitted",
    ),
    "embargo": Rule(
        check=check_embargo, severity="reject", reason="blind review needs months, not for ever"
    ),
    "quota": Rule(
        check=check_quota,
        severity="reject",
        reason="every released score leaks a little of the held-out labels",
    ),
    "unproven-quota": Rule(
        check=check_unproven_quota,
        severity="review",
        reason="a refusal for what is hidden would tell who hides",
        public=False,
    ),
    "candidates": Rule(
        check=check_candidates,
        severity="reject",
        reason="a re-ranking run orders the official candidates and brings none of its own",
    ),
    "runs": Rule(
        check=check_runs,
        severity="reject",
        reason="a partial or broken run could probe single labels",
    ),
    "copied-seeds": Rule(
        check=check_seeds(copied=True),
        severity="reject",
        reason="a copy given as a further seed makes the spread smaller than it is",
    ),
    "unlike-seeds": Rule(
        check=check_seeds(copied=False),
        severity="review",
        reason="seeds are runs of one system; other systems are submissions of their own",
    ),
    "same-run": Rule(
        check=check_alike("identical", own=True),
        severity="review",
        reason="the same run again teaches nothing, and its score is known",
        public=False,
    ),
    "others-run": Rule(
        check=check_alike("identical", own=False),
        severity="review",
        reason="one run has one team; whose it is must be asked",
        public=False,
    ),
    "small-change": Rule(
        check=check_alike("variant", own=True),
        severity="review",
        reason="many small changes of one system climb on noise",
        public=False,
    ),
    "near-others": Rule(
        check=check_alike("variant", own=False),
        severity="review",
        reason="a run so near to another team's may be theirs with a few changes",
        public=False,
    ),
    "ensemble": Rule(
        check=check_ensemble,
        severity="review",
        reason="a mixture of published systems is not a system of its own",
        public=False,
    ),
    "far-below": Rule(
        check=check_far_below,
        severity="review",
        reason="a run spoilt on purpose asks for single labels, or for every rise from there",
        public=False,
    ),
}
"""Every rule, in the order in which findings are shown."""

METADATA_RULES = frozenset(
    ("team-named", "institution-named", "description", "type-known", "training-data", "open-runs")
)
"""The rules that look at the metadata alone: a published entry's have to keep to them too."""

NAME_RULES = METADATA_RULES | {
    *("team-registered", "mixed-scripts", "look-alike", "several-names", "shared-key"),
    *("name-taken", "renamed-entry", "telling-id", "quota", "unproven-quota"),
}
"""The rules that ask who it is: applied again where a published entry's team shall be another."""
