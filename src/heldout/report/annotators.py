"""What tables of people's answers share as JSON: shares and agreement, with what is undefined."""

from dataclasses import asdict
from typing import Any

from heldout.stats.agreement import Agreement
from heldout.survivorship.discarded.shares import Share

__all__ = ["agreement_value", "share_value"]


def share_value(share: Share, *, why: str) -> dict[str, Any]:
    """A share for JSON.

    Args:
        share: of queries.
        why: there are none, where there are none.
    """
    return asdict(share) | ({"why": why} if share.share is None else {})


def agreement_value(
    alpha: Agreement, interval: tuple[float, float] | None, *, units: str
) -> dict[str, Any]:
    """Krippendorff's alpha and its interval for JSON.

    Args:
        alpha: of all units.
        interval: from drawing queries; `None` where undefined.
        units: what they are called, as `queries`.
    """
    found = {
        "alpha": alpha.value,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        units: alpha.units,
    }
    return found | ({} if interval else {"why": alpha.why or _no_interval(alpha)})


def _no_interval(alpha: Agreement) -> str:
    if alpha.observed == 0:
        return "no interval: annotators agree on all, so no draw of queries tells anything"
    return "no interval: too few queries; draws are all alike, or alpha is undefined in one"
