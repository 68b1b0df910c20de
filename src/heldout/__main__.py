"""`python -m heldout`."""

import sys

_LEAST = (3, 11)


def explain_version(major: int, minor: int) -> str:
    """Say what to do where this Python is too old, else ""; older Pythons read this file."""
    if (major, minor) >= _LEAST:
        return ""
    return (
        f"error     heldout needs Python {_LEAST[0]}.{_LEAST[1]} or newer, and this is Python "
        f"{major}.{minor}: install a newer one, then call for example: python3.12 -m heldout"
    )


if __name__ == "__main__":
    too_old = explain_version(*sys.version_info[:2])
    if too_old:
        sys.exit(too_old)

    from heldout.cli.program import run

    run()
