"""How a campaign of preference judging is run and paid: `campaign.toml`, prices, payments.

Money is in hundredths of the currency. Defaults are the study's, where it says (Arabzadeh et al.
2021, §3.1), except for pay: what nobody wrote down is promised to nobody.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Annotated, Literal

import msgspec

from heldout.errors import InputError, Problem
from heldout.files.csv import defuse, format_csv
from heldout.trec.text import show

Money = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]
"""Hundredths of the currency."""

Kind = Literal["preference", "triage", "answerable"]
"""What is asked: which of two passages is better; why a query was discarded; which passages answer
it."""

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
        kind: what is asked; of `pairs`, `judges` and `mode` all that is said of a pair holds for a
            query with its passages where these are asked about.
        question: what stands over the two passages.
        mode: which pairs are judged.
        judges: how many people judge each pair; sequential judging asks as many as it takes.
        pairs: of pools, in a task.
        tests: pairs with a known answer, in a task.
        failures: a worker that fails as many tests of a task is excluded; at most `tests`.
        exclusion: what is excluded then.
        pay_failed: whether a task with failed tests is paid; to exclude is not to refuse pay.
        lease_minutes: how long a task is kept for a worker without an answer.
        minutes: that a whole task takes, as judges read it; 0 where nobody knows.
        reward: for a whole task; 0: nobody is paid, and no page promises it.
        fee: of the platform, for a whole task.
        currency: ISO 4217.
        minimum_hourly: pay for an hour that the organiser must not go below; 0 for none.
        consent: what is agreed to before the first pair; paragraphs between empty lines.
        consent_version: recorded with each consent.
        ethics: reference of the approval, shown with the consent; empty where there is none.
        contact: whom a worker can write to.
        platform: where workers come from.
        countries: where workers of Mechanical Turk live, ISO 3166-1; none for anywhere.
        approved_tasks: workers of Mechanical Turk have more approved tasks than these; 0 for any.
        approval_rate: least percentage of their tasks that was approved; 0 for any.
        links: of platform `link`: whether an id has to be signed.
        uncounted_percent: of the rewards of all tasks: once tasks that do not count (stopped early,
            abandoned, failed tests) have earned as much, new ids from their networks get no task.
        completion_code: shown at the end, for the platform.
        lead: sequential: one of the two wins with this lead of votes; at most `cap`.
        cap: sequential: after so many answers on a pair who is ahead wins it.
        language: of passages and queries, BCP 47.
    """

    name: str
    kind: Kind = "preference"
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
    reward: Money = 0
    fee: Money = 0
    currency: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}\Z")] = "USD"
    minimum_hourly: Money = 0
    consent: str = ""
    consent_version: str = "1"
    ethics: str = ""
    contact: str = ""
    platform: Platform = "link"
    countries: tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}\Z")], ...] = ()
    approved_tasks: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    approval_rate: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
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
    def task_price(self) -> Money:
        """Reward and fee of a task."""
        return self.reward + self.fee

    @property
    def excludes(self) -> Exclusion:
        """What a failed test excludes.

        Behind open links it is never more than the task: anybody can name another's id, fail a test
        under it, and would void what its owner finished.
        """
        return "task" if self.platform == "link" and not self.signed else self.exclusion


# campaign.toml: read into `Settings`, and the text that a new one begins with.

_AT = re.compile(r" - at `\$\.?([^`]*)`")
_UNKNOWN = re.compile(r"unknown field `(.*)`")
_LINE = re.compile(r"\(at line (\d+), ")
_LANGUAGE = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"
    r"(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?",
    re.IGNORECASE,
)
"""RFC 5646, section 2.1: language, script, region, variants, extensions, private use."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""But tabs and line ends; and marks that turn the direction of what follows."""

_TEXTS = ("name", "question", "consent", "consent_version", "ethics", "contact", "completion_code")


def parse_campaign(data: bytes, *, path: str = "campaign.toml") -> Settings:
    """Read a campaign's settings.

    Raises:
        InputError: code `not-toml`; `campaign-settings`: a key is missing, unknown, of the wrong
            kind or out of range, or contradicts another; each with its line where there is one.
    """
    try:
        text = data.decode()
        settings = msgspec.convert(tomllib.loads(text), Settings, strict=True)
    except msgspec.ValidationError as error:
        key = _AT.search(str(error)) or _UNKNOWN.search(str(error))
        line, row = _line_of(key.group(1) if key else "", text)
        said, keys = _AT.sub("", str(error)), "the keys that `heldout prefer pool` writes"
        found, expected = (show(row), said) if line else (said, keys)
        raise InputError.of("campaign-settings", path, found, expected, line=line) from None
    except (ValueError, RecursionError) as error:
        at = _LINE.search(str(error))
        odd = isinstance(error, UnicodeDecodeError)
        said, line = "bytes that are not UTF-8" if odd else str(error), int(at[1]) if at else None
        raise InputError.of("not-toml", path, said, "TOML in UTF-8", line=line) from None
    problems = []
    for name, expected in _contradictions(settings):
        line, row = _line_of(name, text)
        problems.append(
            Problem.of("campaign-settings", path, show(row or name), expected, line=line)
        )
    if problems:
        raise InputError(problems)
    return settings


def new_campaign(name: str, kind: Kind = "preference") -> bytes:
    """Return the settings of a new campaign, with a comment to each key."""
    text = (files("heldout.judging.campaign") / "templates" / "campaign.toml").read_text()
    quoted, tests = json.dumps(name, ensure_ascii=False), 3 if kind == "preference" else 0
    return Template(text).substitute(name=quoted, kind=json.dumps(kind), tests=tests).encode()


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield keys that another key, or a reader, does not allow so, and what they do."""
    if settings.kind != "preference" and (settings.tests or settings.mode != "paper"):
        yield "kind", 'preference; or tests = 0 and mode = "paper"'
    if settings.tests and settings.failures > settings.tests:
        yield "failures", f"at most the {settings.tests} of `tests`: nobody can fail more"
    if settings.mode == "sequential" and settings.lead > settings.cap:
        yield "lead", f"at most `cap`, {settings.cap}: nobody can lead by more"
    if settings.excludes != settings.exclusion:
        own = (
            'task, or links = "personal": an open link lets anybody fail tests under another\'s id'
        )
        yield "exclusion", own
    if not _LANGUAGE.fullmatch(settings.language):
        yield "language", "a tag of BCP 47, as en, de-CH or zh-Hant"
    for key in _TEXTS:
        if _CONTROL.search(getattr(settings, key)):
            yield key, "text without control characters"


def _line_of(key: str, text: str) -> tuple[int | None, str]:
    """Return where a key is set, and that line; `None` where it is not."""
    begins = re.compile(rf"\s*{re.escape(key)}\s*=")
    for number, row in enumerate(text.splitlines(), 1):
        if key and begins.match(row):
            return number, row.strip()
    return None, ""


# What judging costs (Arabzadeh et al. 2021, §§3.1 and 4.1).

_MINUTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of judging pairs, in hundredths of the currency.

    Attributes:
        pairs: different ones.
        judgments: pairs times judges.
        tasks: each of `Settings.pairs` pairs and its tests; the last may be smaller.
        rewards: for all tasks.
        fees: of the platform, for all tasks.
        currency: ISO 4217.
    """

    pairs: int
    judgments: int
    tasks: int
    rewards: Money
    fees: Money
    currency: str

    @property
    def total(self) -> Money:
        """Rewards and fees."""
        return self.rewards + self.fees


def price(pairs: int, settings: Settings) -> Price:
    """The price of judging so many pairs: tasks x (reward + fee), tasks rounded up.

    Repeated tasks, where a worker failed a test or left, come on top.
    """
    tasks = -(-pairs // settings.pairs) * settings.judges
    return price_tasks(tasks, settings, pairs=pairs, judgments=pairs * settings.judges)


def price_tasks(tasks: int, settings: Settings, *, pairs: int, judgments: int) -> Price:
    """The price of so many tasks, which ask for so many judgments on so many pairs."""
    return Price(
        pairs=pairs,
        judgments=judgments,
        tasks=tasks,
        rewards=tasks * settings.reward,
        fees=tasks * settings.fee,
        currency=settings.currency,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyPay:
    """What a task pays for an hour, in hundredths of the currency.

    Attributes:
        amount: reward x 60 / minutes, rounded down.
        too_low: it is below the stated minimum.
    """

    amount: Money
    too_low: bool


def hourly_pay(settings: Settings) -> HourlyPay | None:
    """Return what an hour pays; `None` where it is not known how long a task takes."""
    if not settings.minutes:
        return None
    an_hour = settings.reward * _MINUTES
    return HourlyPay(
        amount=an_hour // settings.minutes,
        too_low=an_hour < settings.minimum_hourly * settings.minutes,
    )


def describe_hourly(settings: Settings) -> str:
    """The hourly pay as an organiser reads it, with a warning below the minimum."""
    found = hourly_pay(settings)
    least = format_money(settings.minimum_hourly, settings.currency)
    if found is None:
        unknown = "not known: campaign.toml has no minutes"
        return f"{unknown}; {least} is the least" if settings.minimum_hourly else unknown
    pay = f"{format_money(found.amount, settings.currency)}, at {settings.minutes} minutes a task"
    return f"{pay}: too low, {least} is the least" if found.too_low else pay


def format_money(amount: Money, currency: str) -> str:
    """An amount as people read it: `$1,675.20`, `1,675.20 EUR`."""
    number = f"{amount // 100:,}.{amount % 100:02}"
    return f"${number}" if currency == "USD" else f"{number} {currency}"


# Payments to workers: what each is for, and the list of them as CSV.
#
# Every payment has an idempotency key: who pays, by hand or by a program, pays each key once.


PaymentKind = Literal["base", "pro-rata", "bonus"]
"""`base`: the reward of a finished task; a platform pays it when the work is approved. `pro-rata`:
the share of a task that was not finished; `bonus`: what was still owed for a finished one: both
are sent as a bonus."""

_HEADER = (
    *("key", "worker", "platform_id", "study", "place", "assignment"),
    *("kind", "amount", "currency", "paid_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment, made or due.

    Attributes:
        key: of this payment and no other.
        assignment: for which.
        worker: the pseudonym.
        platform_id: the platform's id of the worker.
        session_id: the platform's id of the assignment.
        study: the platform's id of the study.
        kind: what it is for.
        amount: hundredths, above 0.
        currency: ISO 4217.
        paid_at: when it was recorded as paid, ISO 8601 in UTC; empty where it is due.
    """

    key: str
    assignment: int
    worker: str
    platform_id: str
    session_id: str
    study: str
    kind: PaymentKind
    amount: Money
    currency: str
    paid_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTotals:
    """Sums over payments, in hundredths.

    Attributes:
        due: of those not yet made.
        paid: of those made.
        by_kind: of those due, by what they are for.
    """

    due: Money
    paid: Money
    by_kind: Mapping[PaymentKind, Money]


def totals(payments: Iterable[Payment]) -> PaymentTotals:
    """Sum up payments of one currency."""
    by_kind: dict[PaymentKind, Money] = {"base": 0, "pro-rata": 0, "bonus": 0}
    paid = 0
    for one in payments:
        if one.paid_at:
            paid += one.amount
        else:
            by_kind[one.kind] += one.amount
    return PaymentTotals(due=sum(by_kind.values()), paid=paid, by_kind=by_kind)


def format_payments(payments: Iterable[Payment]) -> bytes:
    """CSV with a header, in the order given; amounts in units, as 0.77; no cell is a formula."""
    rows = (
        [
            *map(defuse, (one.key, one.worker, one.platform_id, one.study, one.session_id)),
            *(str(one.assignment), one.kind, f"{one.amount // 100}.{one.amount % 100:02}"),
            *(one.currency, one.paid_at),
        ]
        for one in payments
    )
    return format_csv(_HEADER, rows)
