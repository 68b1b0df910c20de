"""The organiser's page of quality, worked out: all of it, or what takes no time."""

import numpy as np

from heldout.preferences.agreement import judge_agreement
from heldout.preferences.bias import measure_bias
from heldout.preferences.judgments import counted
from heldout.preferences.quality import judging_quality
from heldout.preferences.settings import Settings
from heldout.store.judging import organiser, readings
from heldout.store.judging.database import Database
from heldout.web.admin_pages import Section
from heldout.web.admin_quality import quality_sections

__all__ = ["measure_quality", "more_section"]

_SEED = 2021
_DRAWS = 1000


def measure_quality(
    database: Database, settings: Settings, *, effects: bool
) -> tuple[Section, ...]:
    """Tests, agreement, sides, time.

    Args:
        database: of the campaign.
        settings: its rules.
        effects: also the interval of agreement and the effects of side and length, which take
            seconds where there are many judgments.

    Raises:
        DatabaseError: see `Fault`.
    """
    found = readings.judgments(database)
    votes = counted(found, exclusion=settings.excludes, failures=settings.failures)
    # The same draws at each visit: a page that is loaded again says the same
    rng = np.random.default_rng(_SEED)
    agreement = judge_agreement(votes, rng, trials=_DRAWS if effects else 0)
    docs = organiser.passage_lengths(database) if effects else {}
    shown = {(one.query, doc) for one in votes for doc in (one.left, one.right)} if docs else ()
    bias = measure_bias(votes, lengths={place: docs[place[1]] for place in shown}, effects=effects)
    return quality_sections(judging_quality(found, settings), agreement, bias)


def more_section(judgments: int) -> Section:
    """Where the rest of the page is.

    Args:
        judgments: how many were recorded.
    """
    told = (
        f"There are {judgments:,} answers: the interval of agreement and the effects of side and "
        "length take some seconds, and are shown once they are asked for."
    )
    return Section(told=(told,), link=("/admin/quality?effects=yes", "Work them out"))
