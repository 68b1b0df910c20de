"""How often a simulation is tried: seldom on a push, often at night."""

import os


def choose_trials(*, push: int, night: int) -> int:
    """Return the number for this run; `make test-all` has the night's."""
    return night if os.environ.get("HELDOUT_NIGHT") == "1" else push
