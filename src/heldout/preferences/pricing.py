"""What judging costs (shallow-pooling, sections 3.1 and 4.1)."""

from dataclasses import dataclass

from heldout.preferences.settings import Money, Settings

__all__ = ["Price", "format_money", "price"]


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


def format_money(amount: Money, currency: str) -> str:
    """An amount as people read it: `$1,675.20`, `1,675.20 EUR`."""
    number = f"{amount // 100:,}.{amount % 100:02}"
    return f"${number}" if currency == "USD" else f"{number} {currency}"
