# The public names of heldout.judging, written by `python tools/api.py`.

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

__all__ = [
    "Judged",
    "Judgment",
    "Made",
    "Pool",
    "bias",
    "build_pools",
    "compare_labels",
    "contests",
    "make_labels",
    "read_judgments",
    "read_ratings",
    "rescore",
    "strengths",
]
