"""What people type for a measure: our names, trec_eval's, loose spellings, and sets of trec_eval.

Files that fix a measure, as board.toml does, take the strict names of `parse_measure` alone. What
somebody types on a command line or in a notebook may be any of these; what was meant is shown.

trec_eval's level of relevance (`-l 2`) is the parameter `rel` here: its `map -l 2` is AP(rel=2).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from heldout.errors import InputError
from heldout.scoring import families, measures
from heldout.scoring.other_measures import OtherMeasure, find_family, parse_other, trec_eval_measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A measure as somebody asked for it.

    Attributes:
        measure: what was meant.
        trec_name: as trec_eval prints it, where it was asked for by one of trec_eval's names.
    """

    measure: measures.Measure
    trec_name: str = ""

    @property
    def name(self) -> str:
        """What trec_eval's form of output calls it."""
        return self.trec_name or str(self.measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trec:
    """A name of trec_eval.

    Attributes:
        ours: the measure for a value of its parameter, with `{}` for the value; "" where neither
            we nor ir_measures have it.
        values: the parameter where none is given, as trec_eval prints it; none where it takes none.
        decimal: whether a value is a decimal, printed with two digits, and no whole number.
    """

    ours: str
    values: tuple[str, ...] = ()
    decimal: bool = False


_DEPTHS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_RECALLS = ("0.00", "0.10", "0.20", "0.30", "0.40", "0.50", "0.60", "0.70", "0.80", "0.90", "1.00")

_TREC: Mapping[str, _Trec] = {
    "num_q": _Trec(ours="NumQ"),
    "num_ret": _Trec(ours="NumRet"),
    "num_rel": _Trec(ours="NumRel"),
    "num_rel_ret": _Trec(ours="NumRelRet"),
    "map": _Trec(ours="AP"),
    "gm_map": _Trec(ours=""),
    "Rprec": _Trec(ours="Rprec"),
    "bpref": _Trec(ours="Bpref"),
    "recip_rank": _Trec(ours="RR"),
    "iprec_at_recall": _Trec(ours="IPrec@{}", values=_RECALLS, decimal=True),
    "P": _Trec(ours="P@{}", values=_DEPTHS),
    "recall": _Trec(ours="R@{}", values=_DEPTHS),
    "infAP": _Trec(ours="infAP"),
    "gm_bpref": _Trec(ours=""),
    "Rprec_mult": _Trec(ours="", values=families.TREC_EVAL["Rprec_mult"].cuts, decimal=True),
    "utility": _Trec(ours=""),
    "11pt_avg": _Trec(ours=""),
    "binG": _Trec(ours=""),
    "G": _Trec(ours=""),
    "ndcg": _Trec(ours="nDCG"),
    "ndcg_rel": _Trec(ours=""),
    "Rndcg": _Trec(ours=""),
    "ndcg_cut": _Trec(ours="nDCG@{}", values=_DEPTHS),
    "map_cut": _Trec(ours="AP@{}", values=_DEPTHS),
    "relative_P": _Trec(ours="", values=families.TREC_EVAL["relative_P"].cuts),
    "success": _Trec(ours="Success@{}", values=("1", "5", "10")),
    "set_P": _Trec(ours="SetP"),
    "set_relative_P": _Trec(ours="SetRelP"),
    "set_recall": _Trec(ours="SetR"),
    "set_map": _Trec(ours="SetAP"),
    "set_F": _Trec(ours="SetF"),
    "num_nonrel_judged_ret": _Trec(ours=""),
    "unj": _Trec(ours="Unjudged@{}", values=("5", "10", "20")),
}
"""trec_eval's names in the order in which it prints them."""

SETS: Mapping[str, tuple[str, ...]] = {
    "official": (
        *("num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref"),
        *("recip_rank", "iprec_at_recall", "P"),
    ),
    "set": (
        *("num_q", "num_ret", "num_rel", "num_rel_ret", "utility"),
        *("set_P", "set_relative_P", "set_recall", "set_map", "set_F"),
    ),
    "all_trec": tuple(_TREC),
}
"""trec_eval's sets; of all_trec we lack rbp and rbp_resid, which pytrec_eval has not either, and
the texts runid and relstring."""

_LOOSE: Mapping[str, str] = {
    "mrr": "RR",
    "recip_rank": "RR",
    "hit": "Success",
    "hit_rate": "Success",
    "hitrate": "Success",
    "r-precision": "Rprec",
}
"""Names of other programs that mean one thing only -> ours."""

_NAMES = "|".join(sorted(map(re.escape, _TREC), key=len, reverse=True))
_TREC_SHAPE = re.compile(rf"(?P<name>{_NAMES})(?:[._](?P<values>[\d.,=-]+))?", re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,6}", re.ASCII)
_SHARE = re.compile(r"\d{0,3}\.\d{1,6}|\d{1,3}", re.ASCII)
_PAIR = re.compile(r"\d{1,4}=\d{1,4}", re.ASCII)


def read_measures(text: str, *, path: str = "-m") -> tuple[Asked, ...]:
    """Return what somebody asked for by one name.

    Args:
        text: a measure of ours (`nDCG@10`), a loose spelling (`ndcg@10`, `mrr@10`), a measure that
            ir_measures alone has (`Rprec`), a name of trec_eval (`ndcg_cut.5,10`, `P_10`, `P`), or
            one of its sets: `official`, `set`, `all_trec`.
        path: where it stands, for the error.

    Raises:
        InputError: code `measure-syntax`, `measure-name` or `measure-parameter`.
        SetupError: ir_measures computes it, and is not installed.
    """
    written = text.strip()
    if written in SETS:
        return tuple(one for name in SETS[written] for one in _read_trec(name, None, name, path))
    match = _TREC_SHAPE.fullmatch(written) if len(written) <= measures.LONGEST else None
    name = "" if match is None else _same_case(match["name"], match["values"])
    if match is not None and name:
        return _read_trec(name, match["values"], written, path)
    return (Asked(measure=_read_one(text.replace("α_", "alpha_"), path)),)


def read_measure(text: str, *, path: str = "-m") -> measures.Measure:
    """The one measure that somebody asked for, whoever computes it.

    Args:
        text: as for `read_measures`.
        path: where it stands, for the error.

    Raises:
        InputError: as `read_measures`; code `measure-many`: the name stands for several.
        SetupError: ir_measures computes it, and is not installed.
    """
    found = read_measures(text, path=path)
    if len(found) > 1:
        asked, example = text.strip(), str(found[0].measure)
        raise InputError.of("measure-many", path, asked=asked, count=len(found), example=example)
    return found[0].measure


def read_own_measure(text: str, *, path: str = "-m") -> measures.Measure:
    """The one measure that somebody asked for, which heldout has to compute itself.

    Args:
        text: as for `read_measures`.
        path: where it stands, for the error.

    Raises:
        InputError: as `read_measure`; code `measure-elsewhere`: another library computes it.
    """
    measure = read_measure(text, path=path)
    if isinstance(measure, OtherMeasure):
        own, engine = ", ".join(measures.MEASURES), measure.engine
        raise InputError.of("measure-elsewhere", path, measure=measure, engine=engine, own=own)
    return measure


def _same_case(written: str, values: str | None) -> str:
    """The name of trec_eval; one letter in the other case and without a value is none."""
    sure = len(written) > 1 or values is not None
    for name in _TREC:
        if name == written or (sure and name.lower() == written.lower()):
            return name
    return ""


def _read_trec(name: str, values: str | None, text: str, path: str) -> tuple[Asked, ...]:
    """The measures of one name of trec_eval.

    Args:
        name: in `_TREC`.
        values: what stands behind it, as in `5,10`.
        text: all that was written.
        path: where it stands.
    """
    known = _TREC[name]
    if values is None:
        return tuple(_asked(name, value, path) for value in known.values or ("",))
    if name == "ndcg":
        return (_read_gains(values, text, path),)
    if name == "set_F":
        return (_read_weight(values, text, path),)
    if not known.values:
        raise _no_values(name, values, text, path)
    parts = values.split(",")
    shape = _SHARE if known.decimal else _WHOLE
    for part in parts:
        if shape.fullmatch(part) is None:
            expected = "decimals from 0" if known.decimal else "whole numbers from 1"
            raise InputError.of(
                "measure-parameter",
                path,
                repr(text),
                f"{expected}, with commas between them",
                f"for example {name}.{','.join(known.values[:2])}",
            )
    return tuple(_asked(name, part, path) for part in parts)


def _asked(name: str, value: str, path: str) -> Asked:
    """The measure for one value of the parameter, "" for none."""
    known = _TREC[name]
    if value and known.decimal:
        value = f"{float(value):.2f}"
    elif value:
        value = str(int(value))
    shown = f"{name}_{value}" if value else name
    if not known.ours:
        return Asked(measure=trec_eval_measure(name, shown), trec_name=shown)
    ours = known.ours.format(float(value) if known.decimal else value)
    return Asked(measure=_parse(ours, path), trec_name=shown)


def _parse(text: str, path: str) -> measures.Measure:
    """A name in our own spelling, whoever computes it."""
    match = measures.SHAPE.fullmatch(text)
    if match is not None and match["name"] not in _OURS and find_family(match["name"]):
        return parse_other(text, path=path)
    return measures.parse_measure(text, path=path)


_OURS = {alias: name for name, kind in measures.MEASURES.items() for alias in (name, *kind.aliases)}


def _read_gains(values: str, text: str, path: str) -> Asked:
    """`ndcg.1=3,2=9`: nDCG with other gains of grades 1 and 2."""
    parts = values.split(",")
    if not all(_PAIR.fullmatch(part) for part in parts):
        depths = [part for part in parts if _WHOLE.fullmatch(part)]
        hint = f"did you mean nDCG@{depths[0]}, which is ndcg_cut_{depths[0]}?" if depths else ""
        expected = "gains in whole numbers, as in ndcg.1=3,2=9"
        raise InputError.of("measure-parameter", path, repr(text), expected, hint)
    gains = ",".join(part.replace("=", ":") for part in parts)
    measure = measures.parse_measure(f"nDCG(gains={{{gains}}})", path=path)
    return Asked(measure=measure, trec_name=f"ndcg_{values}")


def _read_weight(values: str, text: str, path: str) -> Asked:
    """`set_F.2`: SetF with beta 2."""
    if _SHARE.fullmatch(values) is None:
        expected = "one weight, as in set_F.2"
        raise InputError.of("measure-parameter", path, repr(text), expected)
    measure = parse_other(f"SetF(beta={float(values)})", path=path)
    return Asked(measure=measure, trec_name=f"set_F_{values}")


_CUT = {"map": "AP", "recip_rank": "RR", "bpref": "Bpref"}


def _no_values(name: str, values: str, text: str, path: str) -> InputError:
    """The error of a value behind a name of trec_eval that takes none."""
    ours = _CUT.get(name, "")
    hint = ""
    if ours and measures.MEASURES[ours].cutoff != "none" and _WHOLE.fullmatch(values):
        hint = f"did you mean {ours}@{values}?"
    expected = f"{name} without a value, as trec_eval has it"
    if name in ("utility", "11pt_avg"):
        expected = f"{name} without a value: pytrec_eval computes it with trec_eval's own alone"
    return InputError.of("measure-parameter", path, repr(text), expected, hint)


def _read_one(text: str, path: str) -> measures.Measure:
    """A measure of ours or of ir_measures, perhaps loosely spelled."""
    try:
        return _parse(text, path)
    except InputError as error:
        (problem,) = error.problems
        if problem.code != "measure-name":
            raise
    own = _unfold(text, path)
    if not own:
        raise _unknown(text, path)
    return _parse(own, path)


def _unfold(text: str, path: str) -> str:
    """The measure as we spell it, where only case or a well-known other name differs; else ""."""
    match = measures.SHAPE.fullmatch(text)
    if match is None:
        return ""
    written = match["name"]
    folded = {alias.lower(): name for alias, name in _OURS.items()}
    own = _LOOSE.get(written.lower()) or folded.get(written.lower(), "")
    if own == "RBP" and not match["inside"]:
        raise InputError.of(
            "measure-name",
            path,
            repr(text),
            "RBP with its gains: trec_eval and ir_measures differ in what rbp means",
            "RBP(rel=1) for labels of 0 and 1, RBP(max_rel=3) for grades up to 3",
        )
    return text.strip().replace(written, own, 1) if own else ""


def _unknown(text: str, path: str) -> InputError:
    """The error of a name that nobody has, with the names like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    match = measures.SHAPE.fullmatch(text)
    written = text.strip() if match is None else match["name"]
    rest = text.strip().removeprefix(written)
    if own := measures.translate_name(written):
        whole_name = own if "@" in own else f"{own}{rest}"
        return _refuse_name(written, f"did you mean {whole_name}?", path)
    folded = {one.lower(): one for one in (*_TREC, *families.FAMILIES, *_LOOSE, *_OURS)}
    near = dict.fromkeys(
        _OURS.get(folded[one], _LOOSE.get(folded[one], folded[one]))
        for one in get_close_matches(written.lower(), folded, n=1)
    )
    whole = [name if name in _TREC else f"{name}{rest}" for name in near]
    near_hint = f"did you mean {' or '.join(whole)}?" if whole else ""
    return _refuse_name(written, near_hint or "docs/reference/measures.md lists them all", path)


def _refuse_name(written: str, hint: str, path: str) -> InputError:
    expected = (
        f"a measure of heldout ({', '.join(measures.MEASURES)}), of ir_measures or of trec_eval"
    )
    return InputError.of("measure-name", path, repr(written), expected, hint)
