"""Preference judging: from shallow pools to better labels.

    judged = heldout.judging.read_judgments("judgments.tsv", qrels="dev.qrels")
    heldout.judging.contests(judged, "runs/*.gz")
    labels = heldout.judging.make_labels(judged)
    heldout.judging.rescore(judged, labels, "runs/*.gz", "RR@10")

A name is imported when it is used. How far judges agree: `heldout.agreement`.
"""

from typing import TYPE_CHECKING, Any

from heldout.lazy import import_name

if TYPE_CHECKING:
    from heldout.judging.campaign.judgments import Judgment as Judgment
    from heldout.judging.campaign.pools import Pool as Pool
    from heldout.judging.labels.labels import Made as Made
    from heldout.judging.labels.source import Judged as Judged
    from heldout.judging.services.values import bias as bias
    from heldout.judging.services.values import build_pools as build_pools
    from heldout.judging.services.values import compare_labels as compare_labels
    from heldout.judging.services.values import contests as contests
    from heldout.judging.services.values import make_labels as make_labels
    from heldout.judging.services.values import read_judgments as read_judgments
    from heldout.judging.services.values import read_ratings as read_ratings
    from heldout.judging.services.values import rescore as rescore
    from heldout.judging.services.values import strengths as strengths

_HOMES = {
    ".campaign.judgments": ("Judgment",),
    ".campaign.pools": ("Pool",),
    ".labels.labels": ("Made",),
    ".labels.source": ("Judged",),
    ".services.values": (
        *("bias", "build_pools", "compare_labels", "contests", "make_labels"),
        *("read_judgments", "read_ratings", "rescore", "strengths"),
    ),
}
"""Public names by the module that has them."""

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605 - a list of strings

if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        found = globals()[name] = import_name(__name__, _HOMES, name)
        return found

    def __dir__() -> list[str]:
        return __all__
