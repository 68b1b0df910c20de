"""The compiled scanner's scores against Python's `float` and numpy's float32, bit for bit.

    python fuzz/scores.py --seed 1 --cases 1000000

The scanner may leave a number to Python; what it reads must be exactly the same.
"""

import argparse
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from heldout.trec.orders import Order
from heldout.trec.ranking import sort_keys
from heldout.trec.scanning.scanners import BROKEN, make_scanner
from heldout.trec.text import parse_scores

__all__ = ["Verdict", "compare", "make_tokens", "read_scores"]

_COLUMNS = 6
_BATCH = 50_000
_ORDERS: tuple[Order, ...] = ("trec", "trec9")
NASTY = [
    *("0", "-0", "+0", "0.0", "-0.0", "00", ".0", "0.", "0e5", "-0e-5", "0e400", "0e401", "0e999"),
    *("7.", "+.5e-3", "-.5", "5e-1", "1E5", "1e+5", "1e-05", "1e00000000000000000000000000001"),
    *(".", "+", "-", "e", "e5", ".e5", "1e", "1e+", "1e-", "--1", "+-1", "1..2", "1.2.3", "1e1.5"),
    *("nan", "inf", "-inf", "NaN", "infinity", "0x10", "1_0", "1,5", "12abc", "1f", "1d5", "1e5e5"),
    *("9007199254740991", "9007199254740992", "9007199254740993", "9007199254740995"),
    *("-9007199254740993", "90071992547409.93", "0.9007199254740993", "9007199254740993e-22"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616"),
    *(
        "9999999999999999999",
        "99999999999999999999",
        "9999999999999999999e19",
        "9999999999999999e22",
    ),
    *("1e19", "1e20", "1e22", "1e23", "1e-19", "1e-20", "1e-22", "1e-23", "123456789e-22"),
    *("4.9e-324", "5e-324", "2.5e-324", "2.4e-324", "2.2250738585072014e-308", "1e-310", "1e-400"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "1e308", "1e309", "1e400", "1e401"),
    *("3.4028234663852886e38", "3.4028235677973366e38", "3.4028235e38", "1e38", "1e39", "9e37"),
    *("1.4e-45", "7e-46", "7.1e-46", "1.1754943508222875e-38", "1e-45", "1e-46", "16777217"),
    *("1.00000005960464477539", "1.000000059604644775", "1.0000000596046448", "0.1", "0.3", "1e-7"),
    *("1.0000000000000001110", "1.000000000000000111", "1.00000000000000011102230246251565"),
    "0." + "0" * 21 + "1",
    "0." + "0" * 22 + "1",
    "0." + "0" * 399 + "1",
    "0." + "0" * 401 + "1",
    "0" * 500 + "1.5",
    "1" + "0" * 19,
    "1" + "0" * 18,
    "1." + "0" * 18,
    "1." + "0" * 19,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a comparison.

    Attributes:
        cases: tokens compared.
        read: how many the scanner read itself.
        wrong: tokens that it read, and read differently.
    """

    cases: int
    read: int
    wrong: tuple[str, ...]


def read_scores(tokens: list[str], order: Order) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which scores the compiled scanner reads, and as what; each is a query of its own."""
    rows = [f"{number} Q0 d 1 {token} t\n" for number, token in enumerate(tokens)]
    scanner = make_scanner("compiled", {}, columns=_COLUMNS, order=order, depth=0)
    read, keys = [], []
    text = "".join(rows).encode()
    while text:
        found = scanner.scan(text, last=True)
        columns = scanner.columns(found.segments[0]._replace(rows=len(found.segments)))
        if columns is None:
            raise ValueError("this scanner keeps no columns")
        read += [not segment.flags & BROKEN for segment in found.segments]
        keys.append(columns.keys.copy())
        text = text[found.consumed :]
    return np.array(read), np.concatenate(keys)


def compare(tokens: list[str], order: Order) -> Verdict:
    """Hold the scanner's reading of tokens against `parse_scores` and `sort_keys`."""
    read, keys = read_scores(tokens, order)
    places = np.flatnonzero(read).tolist()
    taken = [tokens[place] for place in places]
    scores = parse_scores([token.encode() for token in taken])
    if scores is None:  # it read what is no number
        wrong = [token for token in taken if parse_scores([token.encode()]) is None]
    else:
        bits = sort_keys(scores, order).view(np.uint64) == keys[places].view(np.uint64)
        wrong = [taken[place] for place in np.flatnonzero(~bits).tolist()]
    return Verdict(cases=len(tokens), read=len(taken), wrong=tuple(wrong))


def make_tokens(count: int, rng: np.random.Generator) -> list[str]:
    """Scores, most of them hard: all of NASTY, and `count` at random."""
    makers = (_digits, _halfway, _near_halfway, _written, _single, _edge, _mutant)
    kinds = rng.integers(len(makers), size=count).tolist()
    return [*NASTY, *(_dressed(makers[kind](rng), rng) for kind in kinds)]


def _below(rng: np.random.Generator, count: int) -> int:
    return int(rng.integers(count))


def _digits(rng: np.random.Generator) -> str:
    """Up to 20 digits with a point somewhere, and perhaps an exponent."""
    digits = "".join(map(str, rng.integers(0, 10, size=1 + _below(rng, 20)).tolist()))
    point = _below(rng, len(digits) + 1)
    written = f"{digits[:point]}.{digits[point:]}" if _below(rng, 3) else digits
    return f"{written}e{_below(rng, 60) - 30}" if _below(rng, 2) else written


def _halfway(rng: np.random.Generator) -> str:
    """Exactly between two float64, or one unit of the last digit beside that.

    An odd number of 54 bits is, and so is it times 2 ** n, and divided by 2 ** n, which is it
    times 5 ** n with n decimals.
    """
    odd = int(rng.integers(1 << 53, 1 << 54)) | 1
    beside = _below(rng, 3) - 1
    if _below(rng, 2):
        return str((odd << _below(rng, 10)) + beside)
    places = _below(rng, 5)
    return f"{odd * 5**places + beside}e-{places}"


def _near_halfway(rng: np.random.Generator) -> str:
    """The middle of two float64, cut to 17 to 19 digits."""
    below = float(rng.uniform(1, 10)) * 10.0 ** (_below(rng, 40) - 20)
    with localcontext(Context(prec=60)):
        middle = (Decimal(below) + Decimal(float(np.nextafter(below, np.inf)))) / 2
    return f"{middle:.{16 + _below(rng, 3)}e}"


def _written(rng: np.random.Generator) -> str:
    """As programs print scores."""
    score = float(rng.normal()) * 10.0 ** (_below(rng, 45) - 22)
    forms = ("{!r}", "{:.17g}", "{:.18e}", "{:.6f}", "{:.19g}", "{:.16e}", "{:f}", "{:.8g}")
    return forms[_below(rng, len(forms))].format(score)


def _single(rng: np.random.Generator) -> str:
    """In the middle of two float32, or next to it."""
    below = np.float32(rng.normal() * 10.0 ** (_below(rng, 50) - 25))
    middle = (float(below) + float(np.nextafter(below, np.float32(np.inf)))) / 2
    return repr([middle, *np.nextafter(middle, [-np.inf, np.inf]).tolist()][_below(rng, 3)])


def _edge(rng: np.random.Generator) -> str:
    """Beside a power of two or ten, with an exponent where exact powers end."""
    power = (1 << _below(rng, 64)) if _below(rng, 2) else 10 ** _below(rng, 20)
    return f"{power + _below(rng, 5) - 2}e{(_below(rng, 2) * 2 - 1) * (17 + _below(rng, 8))}"


def _mutant(rng: np.random.Generator) -> str:
    """A known one with one character changed, left out or put in."""
    token = NASTY[_below(rng, len(NASTY))]
    place = _below(rng, len(token))
    change = ["", *"0159.eE+-"][_below(rng, 10)]
    return token[:place] + change + token[place + _below(rng, 2) :] or "0"


def _dressed(token: str, rng: np.random.Generator) -> str:
    """Perhaps with another sign, zeros in front, or zeros behind."""
    dress = _below(rng, 8)
    if dress == 0:
        return "-" + token
    if dress == 1:
        return "0" * _below(rng, 4) + token
    if dress == 2:  # noqa: PLR2004  one of eight ways
        return token + "0" * _below(rng, 4)
    return token


def main() -> None:
    """Compare in batches and say what came of it; ends with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=1_000_000)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    cases = read = 0
    while cases < asked.cases:
        tokens = make_tokens(_BATCH, rng)
        for order in _ORDERS:
            verdict = compare(tokens, order)
            if verdict.wrong:
                raise SystemExit(f"{order}: read differently: {verdict.wrong[:20]}")
        cases, read = cases + verdict.cases, read + verdict.read
    print(f"{cases} scores, {read} of them read by the scanner, none differently")


if __name__ == "__main__":
    main()
