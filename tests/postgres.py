"""PostgreSQL servers for tests, from the package pgserver."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


def start_postgres(folder: Path) -> Any:
    """A server with its data in a new folder; `cleanup` stops it.

    Skips on Python 3.13 and later, which pgserver has no wheel for. Elsewhere it has to be there.
    """
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # pgserver looks at it when imported
    if sys.version_info >= (3, 13):
        pytest.importorskip("pgserver")
    get_server = import_module("pgserver.postgres_server").get_server
    return get_server(folder / "data", cleanup_mode="stop")
