"""Whether a contender found the scores that are expected."""

from collections.abc import Mapping

from results import AGREES

__all__ = ["compare"]

_HALF = 0.5e-4 + 1e-9
"""Half of the fourth decimal, which trec_eval rounds to."""
_SHOWN = 3


def compare(found: Mapping[str, float], expected: Mapping[str, float]) -> str:
    """`agrees`, or what differs, to four decimals.

    Args:
        found: by measure; measures that are not expected are left out.
        expected: by measure.
    """
    common = found.keys() & expected.keys()
    if not common:
        return "computes none of the measures"
    wrong = sorted(name for name in common if abs(found[name] - expected[name]) > _HALF)
    if not wrong:
        return AGREES
    if len(common) > len(wrong) + _SHOWN or len(wrong) > _SHOWN:
        worst = max(abs(found[name] - expected[name]) for name in wrong)
        return f"differs in {len(wrong)} of {len(common)} scores, by at most {worst:.4f}"
    return "; ".join(f"{name} {found[name]:.4f}, not {expected[name]:.4f}" for name in wrong)
