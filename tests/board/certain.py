"""What has to be there: for values that may be `None` elsewhere."""

from typing import TypeVar

T = TypeVar("T")


def sure(value: T | None) -> T:
    assert value is not None
    return value
