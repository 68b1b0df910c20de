"""How the documents of a run may be ordered."""

from collections.abc import Mapping
from typing import Literal, get_args

Order = Literal["trec", "trec9", "msmarco"]
ORDERS: tuple[Order, ...] = get_args(Order)

DESCRIPTIONS: Mapping[Order, str] = {
    "trec": "score descending, ties by document id descending; ranks ignored",
    "trec9": "as trec, with scores rounded to float32, as in trec_eval up to 9",
    "msmarco": "by rank",
}
"""Every order in words."""
