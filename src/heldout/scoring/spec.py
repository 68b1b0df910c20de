"""Measures by name: `nDCG@10`, `RR(rel=2)@10`, `RBP(p=0.5,rel=1)`, read and written.

The notation is that of ir_measures: `Name(parameter=value,...)@cutoff`. What we write,
ir_measures reads as the same measure and writes the same way, where it has the measure.
Values are integers, decimals, True or False, quoted words, and `{grade:gain,...}`; nothing is
evaluated as code.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from heldout.errors import InputError, Problem
from heldout.scoring.measures import MEASURES, Kind, Params
from heldout.trec.answers import SIGNATURE_DEPTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure with its parameters; equal measures print equally.

    Attributes:
        name: a name in `MEASURES`.
        params: its parameters, defaults filled in.
    """

    name: str
    params: Params

    @property
    def cutoff(self) -> int | None:
        """Deepest position that counts, `None` for the whole list."""
        return self.params.cutoff

    @property
    def kind(self) -> Kind:
        """The measure's row in the table."""
        return MEASURES[self.name]

    @property
    def largest(self) -> float | None:
        """The largest difference of two scores; `None` where there is no end, or grades make it."""
        return 1.0 if self.kind.range == "0 to 1" else None

    def __str__(self) -> str:
        given = ",".join(f"{name}={_format(value)}" for name, value in self._given())
        text = f"{self.name}({given})" if given else self.name
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    def _given(self) -> Iterator[tuple[str, object]]:
        for name in self.kind.parameters:
            value = getattr(self.params, name)
            if value != getattr(self.kind.defaults, name):
                yield name, value


def _format(value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(f"{grade}:{gain}" for grade, gain in value) + "}"
    return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """What a parameter may be, in code and in words."""

    accepts: Callable[[Any], bool]
    expected: str


_HIGHEST = 1000
"""No scale of grades goes so far, and 2^1000 is still a finite float64."""


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_grade(value: object) -> bool:
    return _is_count(value) and isinstance(value, int) and value <= _HIGHEST


_PARAMETERS = {
    "cutoff": _Parameter(accepts=_is_count, expected="a whole number from 1"),
    "rel": _Parameter(accepts=_is_grade, expected="a grade from 1 to 1000, as in rel=2"),
    "max_rel": _Parameter(accepts=_is_grade, expected="a grade from 1 to 1000, as in max_rel=3"),
    "judged_only": _Parameter(
        accepts=lambda value: isinstance(value, bool), expected="True or False"
    ),
    "dcg": _Parameter(
        accepts=lambda value: value in ("log2", "exp-log2"), expected="'log2' or 'exp-log2'"
    ),
    "gains": _Parameter(
        accepts=lambda value: (
            isinstance(value, tuple)
            and all(0 <= number <= _HIGHEST for pair in value for number in pair)
        ),
        expected="whole numbers from 0 to 1000, as in gains={1:1,2:3}",
    ),
    "p": _Parameter(
        accepts=lambda value: isinstance(value, float) and 0 < value < 1,
        expected="a decimal between 0 and 1, as in p=0.8",
    ),
    "weight": _Parameter(
        accepts=lambda value: value in ("log2", "geometric"), expected="'log2' or 'geometric'"
    ),
}

_SHAPE = re.compile(
    r"\s*(?P<name>[A-Za-z]\w*)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<cutoff>[^@]*?))?\s*",
    re.ASCII | re.DOTALL,
)
_PAIR = re.compile(r"\s*(\w+)\s*=\s*(\{[^{}]*\}|[^,{}]*?)\s*(?:,|$)", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,9}", re.ASCII)
_DECIMAL = re.compile(
    r"(?=[\d.]{2})\d{0,9}\.\d{0,20}(?:[eE]-?\d{1,3})?|\d{1,9}[eE]-\d{1,3}", re.ASCII
)
_GAIN = re.compile(r"\s*(\d{1,9})\s*:\s*(\d{1,9})\s*", re.ASCII)
_LONGEST = 200
_TREC_EVAL_SHAPE = re.compile(
    r"(?P<name>[A-Za-z]+(?:_[A-Za-z]+)*)(?:[_.]?(?P<cutoff>\d{1,9}))?", re.ASCII
)
_TREC_EVAL = {
    "recip_rank": "RR",
    "rr": "RR",
    "mrr": "RR",
    "err": "ERR",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "map": "AP",
    "map_cut": "AP",
    "p": "P",
    "recall": "R",
    "success": "Success",
    "unj": "Unjudged",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
}
"""What trec_eval and others call a measure -> our name; a cutoff stands after `_` or `.` there."""

_ABSENT = frozenset({"rprec", "infap", "gm_map", "gmap", "num_ret", "num_rel", "num_rel_ret"})
"""Measures that look like another one of ours and are not here: nothing near is what was meant."""


def parse_measure(text: str, *, path: str = "measure") -> Measure:
    """Read a measure's name.

    Args:
        text: for example `nDCG@10` or `RBP(p=0.5,rel=1)@10`.
        path: where it stands, for the error.

    Raises:
        InputError: code `measure-syntax`, `measure-name` or `measure-parameter`.
    """
    match = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        own = _translate(text.strip()) if len(text) <= _LONGEST else ""
        hint = f"did you mean {own}?" if own else ""
        raise _refusal("measure-syntax", path, repr(text[:_LONGEST]), _FORM, hint)
    name = _find_name(match["name"], text, path)
    given = dict(_read_parameters(match["inside"], name=name, text=text, path=path))
    if match["cutoff"] is not None:
        if "cutoff" in given:
            raise _refusal(
                "measure-parameter", path, repr(text), "one cutoff", f"for example {name}@10"
            )
        given["cutoff"] = _read_value(match["cutoff"])
    for parameter, value in given.items():
        _check_value(parameter, value, text=text, path=path)
    _check_together(name, given, text=text, path=path)
    return Measure(name=name, params=replace(MEASURES[name].defaults, **given))


_FORM = "Name, Name@cutoff or Name(parameter=value,...)@cutoff, as in RR(rel=2)@10"


def _refusal(code: str, path: str, found: str, expected: str, hint: str = "") -> InputError:
    return InputError(Problem(code=code, path=path, found=found, expected=expected, hint=hint))


def _find_name(written: str, text: str, path: str) -> str:
    """The measure's own name for a name or alias.

    Args:
        written: the name.
        text: the whole measure, so that a hint can be copied.
        path: where it stands.
    """
    names = {alias: name for name, kind in MEASURES.items() for alias in (name, *kind.aliases)}
    if written in names:
        return names[written]
    folded = {alias.lower(): name for alias, name in names.items()}
    own = folded.get(written.lower()) or _translate(written)
    near = [] if written.lower() in _ABSENT else _alike(written.lower(), folded, most=3)
    candidates = [own] if own else list(dict.fromkeys(folded[alias] for alias in near))
    rest = text.strip().removeprefix(written)
    whole = [name if "@" in name else f"{name}{rest}" for name in candidates]
    hint = f"did you mean {' or '.join(whole)}?" if whole else ""
    expected = "one of " + ", ".join(MEASURES)
    raise _refusal("measure-name", path, repr(written), expected, hint)


def _translate(written: str) -> str:
    """Our name for one of trec_eval's, such as `ndcg_cut_10`; "" for anything else."""
    match = _TREC_EVAL_SHAPE.fullmatch(written)
    name = "" if match is None else _TREC_EVAL.get(match["name"].lower(), "")
    return f"{name}@{match['cutoff']}" if name and match and match["cutoff"] else name


def _alike(written: str, names: Iterable[str], *, most: int) -> list[str]:
    """The names that look like what was written, the nearest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    return get_close_matches(written, list(names), n=most)


def _read_parameters(
    inside: str | None, *, name: str, text: str, path: str
) -> Iterator[tuple[str, Any]]:
    """Parameter names, allowed and unrepeated, with their values."""
    allowed = (*MEASURES[name].parameters, "cutoff")
    seen: set[str] = set()
    at = 0
    while inside is not None and at < len(inside.rstrip()):
        pair = _PAIR.match(inside, at)
        if pair is None:
            raise _refusal("measure-syntax", path, repr(text), _FORM)
        parameter, written = pair.groups()
        if parameter not in allowed or parameter in seen:
            hint = _near(parameter, allowed)
            found = f"{parameter} in {text!r}" + (" for the second time" * (parameter in seen))
            expected = f"of {name} only " + (", ".join(allowed))
            raise _refusal("measure-parameter", path, found, expected, hint)
        seen.add(parameter)
        yield parameter, _read_value(written)
        at = pair.end()


def _near(written: str, allowed: tuple[str, ...]) -> str:
    near = _alike(written, allowed, most=1)
    return f"did you mean {near[0]}?" if near and near[0] != written else ""


def _read_value(written: str) -> object:
    """The value that stands there; `None` where it is none."""
    if _INTEGER.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written):
        return float(written)
    if written in ("True", "False"):
        return written == "True"
    if written[:1] in ("'", '"') and written[-1:] == written[:1]:
        return written[1:-1]
    return _read_gains(written) if written.startswith("{") else None


def _read_gains(written: str) -> tuple[tuple[int, int], ...] | None:
    """`{1:1,2:3}` as sorted pairs; pairs that change nothing are left out."""
    inside = written[1:-1]
    matches = [_GAIN.fullmatch(part) for part in inside.split(",")] if inside.strip() else []
    pairs = [(int(match[1]), int(match[2])) for match in matches if match is not None]
    if len(pairs) < len(matches) or len({grade for grade, _ in pairs}) < len(pairs):
        return None
    return tuple(sorted((grade, gain) for grade, gain in pairs if grade != gain))


def _check_value(parameter: str, value: object, *, text: str, path: str) -> None:
    rule = _PARAMETERS[parameter]
    if not rule.accepts(value):
        raise _refusal("measure-parameter", path, f"{parameter} in {text!r}", rule.expected)


def _check_together(name: str, given: dict[str, Any], *, text: str, path: str) -> None:
    kind = MEASURES[name]
    if kind.cutoff == "required" and "cutoff" not in given:
        raise _refusal("measure-parameter", path, repr(text), "a cutoff", f"for example {name}@10")
    if kind.cutoff == "none" and "cutoff" in given:
        raise _refusal("measure-parameter", path, repr(text), f"{name} without a cutoff")
    if name == "RBP" and "rel" in given and "max_rel" in given:
        expected = "rel (binary gains) or max_rel (graded gains), not both"
        raise _refusal("measure-parameter", path, repr(text), expected)
    if kind.exposure:
        _check_exposure(given, text=text, path=path)


def _check_exposure(given: dict[str, Any], *, text: str, path: str) -> None:
    if given["cutoff"] > SIGNATURE_DEPTH:
        expected = f"a cutoff up to {SIGNATURE_DEPTH}: so much is kept of each list's documents"
        raise _refusal("measure-parameter", path, repr(text), expected)
    if "p" in given and given.get("weight") != "geometric":
        expected = "p with weight='geometric' only"
        raise _refusal("measure-parameter", path, repr(text), expected)
