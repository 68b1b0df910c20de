"""What judging costs (shallow-pooling, sections 3.1 and 4.1)."""

from dataclasses import dataclass

from heldout.preferences.settings import Money, Settings

__all__ = ["HourlyPay", "Price", "format_money", "hourly_pay", "price", "tell_hourly"]


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
    return Price(
        pairs=pairs,
        judgments=pairs * settings.judges,
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
    """What an hour pays; `None` where it is not known how long a task takes."""
    if not settings.minutes:
        return None
    an_hour = settings.reward * _MINUTES
    return HourlyPay(
        amount=an_hour // settings.minutes,
        too_low=an_hour < settings.minimum_hourly * settings.minutes,
    )


def tell_hourly(settings: Settings) -> str:
    """The hourly pay as an organiser reads it, with a warning below the minimum."""
    found = hourly_pay(settings)
    least = format_money(settings.minimum_hourly, settings.currency)
    if found is None:
        unknown = "not known: campaign.toml has no minutes"
        return f"{unknown}; {least} is the least" if settings.minimum_hourly else unknown
    told = f"{format_money(found.amount, settings.currency)}, at {settings.minutes} minutes a task"
    return f"{told}: too low, {least} is the least" if found.too_low else told


def format_money(amount: Money, currency: str) -> str:
    """An amount as people read it: `$1,675.20`, `1,675.20 EUR`."""
    number = f"{amount // 100:,}.{amount % 100:02}"
    return f"${number}" if currency == "USD" else f"{number} {currency}"
