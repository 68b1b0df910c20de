"""What a system cost, as its team states it: size, training, hardware, time and energy.

All of it is optional and none of it is checked by anybody, so it ranks nothing. Numbers of two
teams were measured on two machines.

Where others have a field for the same, this is how to fill ours from it: `hardware` says what
ir_metadata lists under `platform`, `hardware`; `query_latency_ms` is TIREx tracker's
`TIME_ELAPSED_WALL_CLOCK_MS` by the number of queries; `energy_kwh` is the sum of its
`CPU_ENERGY_SYSTEM_JOULES`, `RAM_ENERGY_SYSTEM_JOULES` and `GPU_ENERGY_SYSTEM_JOULES` by
3,600,000. Neither has a field for parameters or training pairs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from heldout.errors import Problem, quote

__all__ = ["LIMITS", "Efficiency", "check_efficiency", "read_efficiency"]


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """A system's cost; `None` and "" are what its team does not state.

    Attributes:
        parameters: of all models that it runs, summed; 0 where it has none.
        training_pairs: (query, document) pairs that it was trained on; 0 where there are none.
        hardware: what the times and the energy were measured on.
        query_latency_ms: mean wall-clock time per query, in milliseconds.
        energy_kwh: energy that making the submitted runs took, in kWh; training apart.
    """

    parameters: int | None = None
    training_pairs: int | None = None
    hardware: str = ""
    query_latency_ms: float | None = None
    energy_kwh: float | None = None


LIMITS: Mapping[str, tuple[float, float]] = {
    "parameters": (0, 10**15),
    "training_pairs": (0, 10**15),
    "query_latency_ms": (0.0001, 10**9),
    "energy_kwh": (0.0001, 10**9),
}
"""Field -> least and most it may state.

Nothing takes no time and no energy. Between these ends every JSON writer prints a number with the
same digits and without an exponent, so that anybody can make the digest of a sealed identity.
"""

_WHOLE = ("parameters", "training_pairs")


def read_efficiency(value: object) -> Efficiency | None:
    """A checked value as its struct, or what the log says of it.

    Args:
        value: an object in which `check_efficiency` finds nothing, or `None`.

    Returns:
        `None` where nothing is stated.

    Raises:
        msgspec.ValidationError: the value was not checked.
    """
    stated = msgspec.convert(value, Efficiency | None)
    return None if stated == Efficiency() else stated


def check_efficiency(value: object, *, path: str) -> Iterator[Problem]:
    """The problems of the metadata's field; the text in `hardware` is the caller's to check.

    Args:
        value: what stands in the file, as JSON gives it.
        path: where it stands, for errors.
    """
    if value is None:
        return
    if not isinstance(value, dict):
        yield Problem(
            code="wrong-field",
            path=path,
            found=quote(value),
            expected="an object with any of " + ", ".join(Efficiency.__struct_fields__),
        )
        return
    for name in value:
        if name not in Efficiency.__struct_fields__:
            yield Problem(
                code="unknown-field",
                path=path,
                found=quote(name),
                expected="one of " + ", ".join(Efficiency.__struct_fields__),
                hint="remove it, or correct its spelling",
            )
    yield from _check_numbers(value, path)


def _check_numbers(value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name, (least, most) in LIMITS.items():
        number = value.get(name)
        kinds = (int,) if name in _WHOLE else (int, float)
        if number is None or (type(number) in kinds and least <= number <= most):
            continue
        kind = "a whole number" if name in _WHOLE else "a number"
        yield Problem(
            code="wrong-field",
            path=f"{path}.{name}",
            found=quote(number),
            expected=f"{kind} from {least:,} to {most:,}, or null",
        )
