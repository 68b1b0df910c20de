"""The rules of a policy: their names, how severe a finding is, and who sees it.

`heldout.board.policy.checks` has the check of each, docs/reference/policy.md the reason. Sources:
Lin et al. 2022, sections 2.2 and 3.3.
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
        shown: what the public sees of a finding: `all`; `rule`, without the evidence, which may be
            of others; or nothing: what only `organisers` see could tell who is under embargo.
        field: of the metadata that it looks at; "" for none or several.
        again: when it is applied to a published entry again: `amended`, whenever its metadata
            change; `renamed`, where its team shall be another; "" for never.
    """

    severity: FindingSeverity
    shown: Literal["all", "rule", "organisers"]
    field: str = ""
    again: Literal["", "amended", "renamed"] = ""


RULES: Mapping[str, Rule] = {
    "board-open": Rule("reject", "all"),
    "post-hoc": Rule("note", "rule"),
    "id-date": Rule("reject", "all"),
    "team-named": Rule("reject", "rule", field="team", again="amended"),
    "team-registered": Rule("reject", "organisers", again="renamed"),
    "mixed-scripts": Rule("review", "organisers", again="renamed"),
    "look-alike": Rule("review", "organisers", again="renamed"),
    "several-names": Rule("review", "organisers", again="renamed"),
    "shared-key": Rule("review", "organisers", again="renamed"),
    "name-taken": Rule("review", "organisers", again="renamed"),
    "renamed-entry": Rule("review", "organisers", again="renamed"),
    "telling-id": Rule("review", "organisers", again="renamed"),
    "institution-named": Rule("reject", "rule", field="institution", again="amended"),
    "description": Rule("reject", "all", field="model_description", again="amended"),
    "type-known": Rule("reject", "all", field="type", again="amended"),
    "program": Rule("reject", "rule", field="program"),
    "training-data": Rule("reject", "all", field="training_data", again="amended"),
    "open-runs": Rule("reject", "rule", field="open_runs", again="amended"),
    "embargo": Rule("reject", "all", field="embargo_until"),
    "quota": Rule("reject", "rule", again="renamed"),
    "unproven-quota": Rule("review", "organisers", again="renamed"),
    "candidates": Rule("reject", "all"),
    "runs": Rule("reject", "all"),
    "copied-seeds": Rule("reject", "all"),
    "unlike-seeds": Rule("review", "all"),
    "same-run": Rule("review", "organisers"),
    "others-run": Rule("review", "organisers"),
    "small-change": Rule("review", "organisers"),
    "near-others": Rule("review", "organisers"),
    "ensemble": Rule("review", "organisers"),
    "far-below": Rule("review", "organisers"),
}
"""Every rule, in the order in which findings are shown."""
