"""How a campaign of preference judging is run: `campaign.toml`, as a value.

Money is in hundredths of the currency. Defaults are the study's, where it says
(shallow-pooling, section 3.1).
"""

from typing import Annotated, Literal

import msgspec

__all__ = ["Exclusion", "Links", "Mode", "Money", "Platform", "Settings"]

Money = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]
"""Hundredths of the currency."""

Mode = Literal["paper", "sequential"]
"""Which pairs are judged: all of a pool, or the best passage so far against one challenger after
another."""

Exclusion = Literal["task", "worker"]
"""What a failed test excludes: the task it was failed in, or all that the worker ever judged."""

Platform = Literal["link", "mturk", "prolific"]
"""Where workers come from: anywhere, by a link with `worker=`; Mechanical Turk; Prolific."""

Links = Literal["open", "personal"]
"""Who is let in by the link of platform `link`: whoever names an id, or who was sent a link that is
signed for theirs."""

_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A campaign.

    Attributes:
        name: shown to judges as the study's title.
        question: what stands over the two passages.
        mode: which pairs are judged.
        judges: how many people judge each pair; sequential judging asks as many as it takes.
        pairs: of pools, in a task.
        tests: pairs with a known answer, in a task.
        failures: a worker that fails as many tests of a task is excluded; at most `tests`.
        exclusion: what is excluded then.
        pay_failed: whether a task with failed tests is paid; to exclude is not to refuse pay.
        lease_minutes: how long a task is kept for a worker without an answer.
        minutes: that a whole task takes, as told to judges; 0 where nobody knows.
        reward: for a whole task.
        fee: of the platform, for a whole task.
        currency: ISO 4217.
        minimum_hourly: pay for an hour that the organiser must not go below; 0 for none.
        consent: what is agreed to before the first pair; paragraphs between empty lines.
        consent_version: recorded with each consent.
        ethics: reference of the approval, shown with the consent; empty where there is none.
        contact: whom a worker can write to.
        platform: where workers come from.
        links: of platform `link`: whether an id has to be signed.
        uncounted_percent: of the rewards of all tasks: once tasks that do not count (stopped early,
            abandoned, failed tests) have earned as much, no further task is handed out.
        completion_code: shown at the end, for the platform.
        lead: sequential: one of the two wins with this lead of votes; at most `cap`.
        cap: sequential: after so many answers on a pair who is ahead wins it.
        language: of passages and queries, BCP 47.
    """

    name: str
    question: str = "Which passage answers it better?"
    mode: Mode = "paper"
    judges: _Count = 1
    pairs: _Count = 10
    tests: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3
    failures: _Count = 1
    exclusion: Exclusion = "task"
    pay_failed: bool = True
    lease_minutes: _Count = 60
    minutes: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    reward: Money = 200
    fee: Money = 40
    currency: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}\Z")] = "USD"
    minimum_hourly: Money = 0
    consent: str = ""
    consent_version: str = "1"
    ethics: str = ""
    contact: str = ""
    platform: Platform = "link"
    links: Links = "personal"
    uncounted_percent: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 20
    completion_code: str = ""
    lead: _Count = 2
    cap: _Count = 7
    language: str = "en"

    @property
    def signed(self) -> bool:
        """Whether only links that are signed for their worker are let in."""
        return self.platform == "link" and self.links == "personal"

    @property
    def excludes(self) -> Exclusion:
        """What a failed test excludes.

        Behind open links it is never more than the task: anybody can name another's id, fail a test
        under it, and would void what its owner finished.
        """
        return "task" if self.platform == "link" and not self.signed else self.exclusion
