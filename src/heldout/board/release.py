"""The rule that turns a true score into the number that leaves the vault.

Rounding is printf's: the exact binary value, rounded half to even at the last shown digit, as
trec_eval prints it. Everything that leaves uses the text made here: page, comment, CSV, JSON, log.
"""

from decimal import Decimal

__all__ = ["release_score"]


def release_score(score: float, *, decimals: int) -> str:
    """A score as the text that may leave the vault.

    Args:
        score: finite.
        decimals: digits after the point, 1 to 6.
    """
    if not Decimal(score).is_finite():
        raise ValueError(score)
    return f"{score:.{decimals}f}"
