"""The rules of a policy: their names, how severe a finding is, and why there is such a rule.

`heldout.board.policy.checks` has the check of each. Sources: Lin et al. 2022, sections 2.2 and 3.3.
docs/reference/policy.md gives every rule's reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FindingSeverity = Literal["reject", "review", "note"]
"""`reject` stands against publication, `review` asks for a person's reason, `note` informs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the policy.

    Attributes:
        severity: of its findings.
        reason: why there is such a rule.
        public: whether an entry may say that it was accepted with a finding of this rule: what a
            rule finds by looking at others could tell who is under embargo.
    """

    severity: FindingSeverity
    reason: str
    public: bool = True


RULES: Mapping[str, Rule] = {
    "board-open": Rule("reject", "a board takes runs between its two days"),
    "post-hoc": Rule("note", "a team that has seen others' scores has an advantage over them"),
    "id-date": Rule(
        "reject",
        "the id is the permanent key; its date should be that of the submission",
    ),
    "team-named": Rule(
        "reject",
        "anonymous probing of the held-out labels is not allowed; an embargo is",
    ),
    "team-registered": Rule(
        "reject",
        "every participant has agreed to how the data may be used",
        public=False,
    ),
    "mixed-scripts": Rule("review", "an honest word is written in one script", public=False),
    "look-alike": Rule(
        "review",
        "a quota is counted by name; a name must not pass for another's",
        public=False,
    ),
    "several-names": Rule("review", "a quota is a team's, whatever it calls itself", public=False),
    "shared-key": Rule("review", "one key is one sender", public=False),
    "name-taken": Rule("review", "one team must not use up another's quota", public=False),
    "renamed-entry": Rule(
        "review",
        "two names that are joined share a quota for good",
        public=False,
    ),
    "telling-id": Rule("review", "the id is public though the team is not", public=False),
    "institution-named": Rule(
        "reject",
        "a web search for team and institution should find the participant",
    ),
    "description": Rule("reject", "a score without a system teaches nothing"),
    "type-known": Rule("reject", "re-ranking and full ranking are compared apart"),
    "program": Rule("reject", "programs and runs are taken as board.toml says, and not mixed"),
    "training-data": Rule("reject", "readers must see whether a system saw the test material"),
    "open-runs": Rule(
        "reject",
        "a run is its team's: it is opened only where the team knew before it submitted",
    ),
    "embargo": Rule("reject", "blind review needs months, not for ever"),
    "quota": Rule("reject", "every released score leaks a little of the held-out labels"),
    "unproven-quota": Rule(
        "review", "a refusal because of a hidden entry would reveal its team", public=False
    ),
    "candidates": Rule(
        "reject",
        "a re-ranking run orders the official candidates and brings none of its own",
    ),
    "runs": Rule("reject", "a partial or broken run could probe single labels"),
    "copied-seeds": Rule(
        "reject",
        "a copy given as a further seed makes the spread smaller than it is",
    ),
    "unlike-seeds": Rule(
        "review",
        "seeds are runs of one system; other systems are submissions of their own",
    ),
    "same-run": Rule(
        "review",
        "the same run again teaches nothing, and its score is known",
        public=False,
    ),
    "others-run": Rule("review", "one run has one team; whose it is must be asked", public=False),
    "small-change": Rule("review", "many small changes of one system climb on noise", public=False),
    "near-others": Rule(
        "review",
        "a run so near to another team's may be theirs with a few changes",
        public=False,
    ),
    "ensemble": Rule(
        "review",
        "a mixture of published systems is not a system of its own",
        public=False,
    ),
    "far-below": Rule(
        "review",
        "a run spoilt on purpose asks for single labels, or for every rise from there",
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
