"""Metadata of a submission and the ir_metadata header of a run: one made of the other.

A run that was made by a program which writes such headers says already who made it, with what, and
how long it took. A draft takes that over; the team reads it, and what it writes instead holds.
Whatever fits no field of the metadata is left in the run.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log import manifest
from heldout.board.rules.spec import read_table
from heldout.errors import InputError, Problem, quote
from heldout.ids import query_set_of
from heldout.trec.ir_metadata import Header, read_header, read_metadata_file
from heldout.trec.reading.sources import open_input

Value = str | float
"""What a field of the metadata takes."""

_USED = ("cpu", "gpu", "ram")
_MILLISECONDS = {"ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_KWH = {"j": 1 / 3.6e6, "kj": 1 / 3.6e3, "wh": 1e-3, "kwh": 1.0}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]+)", re.ASCII)
_DOI = re.compile(r"(?:doi:\s*)?(10\.\d{4,9}/\S+)", re.ASCII | re.IGNORECASE)
_ARXIV = re.compile(r"(?:arxiv:\s*)?(\d{4}\.\d{4,5})(?:v\d+)?", re.ASCII | re.IGNORECASE)
_SSH = re.compile(r"(?:ssh://)?git@([\w.-]+)[:/](.+?)(?:\.git)?/?", re.ASCII)
_DECIMALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """The header of one run of a draft.

    Attributes:
        run: the run's name: `dev`, `eval~2`; "" for a file of its own, which is of all runs.
        path: its file, for messages.
        header: what stands there.
    """

    run: str
    path: str
    header: Header


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderField:
    """One field of the metadata that a header gave.

    Attributes:
        field: of a `Manifest`; `efficiency.hardware` for one within another.
        value: what it says.
        key: where it stands in the header, as `actor: team`.
        path: the run file.
    """

    field: str
    value: Value
    key: str
    path: str

    @property
    def name(self) -> str:
        """The field as the metadata file names it."""
        return "model_description" if self.field == "description" else self.field


@dataclass(frozen=True, slots=True, kw_only=True)
class FromHeaders:
    """What headers give for the metadata, and notes on what they could not give.

    Attributes:
        taken: fields, in the order of the metadata.
        notes: problems of headers; none keeps a draft from being made.
    """

    taken: tuple[HeaderField, ...] = ()
    notes: tuple[Problem, ...] = ()


def take_from_runs(
    runs: Mapping[str, Path],
    *,
    count_queries: Callable[[str], int],
    beside: Path | None = None,
) -> FromHeaders:
    """Read the headers of run files, as far as the metadata has fields for what they say.

    Args:
        runs: run (`SET`, `SET~2` and so on) -> its file. Files that cannot be read have no header
            here; the checks of a draft say what is wrong with them.
        count_queries: number of queries of a set, by which a time is divided.
        beside: a file of such metadata of all runs, for what no header says.

    Raises:
        InputError: the file beside them has errors.
    """
    headers, notes = _read_headers(runs)
    others: list[RunHeader] = []
    if beside is not None:
        with open_input(beside) as file:
            header = read_metadata_file(file, path=str(beside))
        others = [RunHeader(run="", path=str(beside), header=header)]
    notes += [note for one in others for note in one.header.notes]
    every = [*headers, *others]

    def count(one: RunHeader) -> int:
        return sum(count_queries(query_set_of(run)) for run in ([one.run] if one.run else runs))

    measured = [headers if len(headers) == len(runs) else [], others]
    found = [
        *_take_texts(every),
        *_take_hardware(every),
        *(_take_time(headers, count) or _take_time(others, count)),
        *next(filter(None, map(_take_energy, measured)), ()),
    ]
    taken, unfit = _fitting(found)
    return FromHeaders(taken=taken, notes=(*notes, *_differences(every, taken), *unfit))


def fill_manifest(filled: manifest.Manifest, taken: Iterable[HeaderField]) -> manifest.Manifest:
    """The metadata with what headers gave; a field that says something already stays."""
    values = {one.field: one.value for one in taken}
    costs = msgspec.structs.asdict(filled.efficiency or manifest.Efficiency())
    costs |= {
        name: values[f"efficiency.{name}"]
        for name, stated in costs.items()
        if f"efficiency.{name}" in values and stated in (None, "")
    }
    texts = {
        name: value
        for name, value in values.items()
        if "." not in name and getattr(filled, name) == ""
    }
    return msgspec.structs.replace(filled, **texts, efficiency=manifest.Efficiency(**costs))


def _read_headers(runs: Mapping[str, Path]) -> tuple[list[RunHeader], list[Problem]]:
    headers, notes = [], []
    for run, path in runs.items():
        try:
            with open_input(path) as file:
                header = read_header(file, path=str(path))
        except InputError as error:
            own = [one for one in error.problems if one.code.startswith("ir-metadata")]
            notes += [replace(one, severity="note") for one in own]
            continue
        if header is not None:
            headers.append(RunHeader(run=run, path=str(path), header=header))
            notes += header.notes
    return headers, notes


def _take_texts(headers: Sequence[RunHeader]) -> Iterator[HeaderField]:
    """Of each field the first header that has it."""
    for field in _sources():
        found = (one for each in headers for one in _candidates(each, field))
        first = next(found, None)
        if first is not None:
            yield first


def _candidates(one: RunHeader, field: str) -> Iterator[HeaderField]:
    """Yield what a header says of a field, the best first."""
    for read, keys in _sources()[field]:
        if value := read(one.header, keys):
            yield HeaderField(field=field, value=value, key=": ".join(keys), path=one.path)


def _read_text(header: Header, keys: Sequence[str]) -> str:
    return header.text(*keys)


def _read_link(header: Header, keys: Sequence[str]) -> str:
    return _as_link(header.text(*keys))


def _read_names(header: Header, keys: Sequence[str]) -> str:
    """The names in a list of texts or of mappings with a name."""
    found = header.get(*keys)
    listed = found if isinstance(found, list) else [found]
    names = [one.get("name") if isinstance(one, Mapping) else one for one in listed]
    return ", ".join(" ".join(name.split()) for name in names if isinstance(name, str) and name)


_READERS = {"text": _read_text, "link": _read_link, "names": _read_names}


@cache
def _sources() -> Mapping[str, Sequence[tuple[Callable[[Header, Sequence[str]], str], list[str]]]]:
    """Field of the metadata -> how and where a header may say it, the best first."""
    table = read_table("words")["headers"].items()
    return {field: [(_READERS[kind], keys) for kind, *keys in rows] for field, rows in table}


def _as_link(text: str) -> str:
    """A text as an address; "" where it is none. A DOI, an arXiv number and SSH become one."""
    if doi := _DOI.fullmatch(text):
        text = f"https://doi.org/{doi[1]}"
    elif number := _ARXIV.fullmatch(text):
        text = f"https://arxiv.org/abs/{number[1]}"
    elif ssh := _SSH.fullmatch(text):
        text = f"https://{ssh[1]}/{ssh[2]}"
    return text if manifest.is_link(text) else ""


def _take_hardware(headers: Sequence[RunHeader]) -> Iterator[HeaderField]:
    known = ((one, _hardware(one.header)) for one in headers)
    first = next(((one, text) for one, text in known if text), None)
    if first is not None:
        yield _cost("hardware", first[1], "platform: hardware", first[0])


def _take_time(
    headers: Sequence[RunHeader], count: Callable[[RunHeader], int]
) -> Sequence[HeaderField]:
    """The time per query, over all runs whose time was measured."""
    timed = [one for one in headers if _milliseconds(one.header) is not None]
    queries = sum(map(count, timed))
    if not queries:
        return ()
    spent = sum(_milliseconds(one.header) or 0 for one in _once(timed))
    key = f"resources: runtime: wallclock, over {queries:,} queries"
    return (_cost("query_latency_ms", round(spent / queries, _DECIMALS), key, timed[0]),)


def _take_energy(headers: Sequence[RunHeader]) -> Sequence[HeaderField]:
    """The energy of all runs, where each one says it."""
    if not headers or any(_kwh(one.header) is None for one in headers):
        return ()
    spent = sum(_kwh(one.header) or 0 for one in _once(headers))
    key = "resources: energy used system, summed"
    return (_cost("energy_kwh", round(spent, _DECIMALS), key, headers[0]),)


def _cost(field: str, value: Value, key: str, of: RunHeader) -> HeaderField:
    return HeaderField(field=f"efficiency.{field}", value=value, key=key, path=of.path)


def _once(headers: Sequence[RunHeader]) -> Iterator[RunHeader]:
    """Runs that one measurement covers have the same one in their headers: it counts once."""
    seen: list[Any] = []
    for one in headers:
        measured = one.header.get("resources")
        if measured not in seen:
            seen.append(measured)
            yield one


def _hardware(header: Header) -> str:
    """`Xeon 6144, 16 cores, 32 GB RAM; GPU A100, 40 GB`: what the platform's checklist asks."""
    where = ("platform", "hardware")

    def part(*keys: str, before: str = "", after: str = "") -> str:
        text = header.text(*where, *keys)
        return f"{before}{text}{after}" if text else ""

    cpu = [
        part("cpu", "model") or part("cpu", "architecture"),
        part("cpu", "number of cores", after=" cores"),
        part("ram", after=" RAM"),
    ]
    gpu = [
        part("gpu", "model") or part("gpu", "architecture"),
        part("gpu", "ram") or part("gpu", "memory"),
    ]
    parts = [", ".join(filter(None, cpu)), ", ".join(filter(None, gpu))]
    return "; ".join(filter(None, [parts[0], parts[1] and f"GPU {parts[1]}"]))


def _milliseconds(header: Header) -> float | None:
    return _amount(header.text("resources", "runtime", "wallclock"), _MILLISECONDS)


def _kwh(header: Header) -> float | None:
    found = [_amount(header.text("resources", part, "energy used system"), _KWH) for part in _USED]
    known = [one for one in found if one is not None]
    return sum(known) if known else None


def _amount(text: str, units: Mapping[str, float]) -> float | None:
    """A number with its unit in the unit that is asked for; `None` for anything else."""
    found = _AMOUNT.fullmatch(text)
    factor = None if found is None else units.get(found[2].casefold())
    return None if found is None or factor is None else float(found[1]) * factor


def _differences(headers: Sequence[RunHeader], taken: Sequence[HeaderField]) -> Iterator[Problem]:
    """List where headers of two runs say different things: the first holds."""
    for one in taken:
        others = [each for each in headers if each.path != one.path and "." not in one.field]
        for other in others:
            said = next(_candidates(other, one.field), None)
            if said is not None and said.value != one.value:
                yield Problem.of(
                    "ir-metadata-differs",
                    other.path,
                    f"{quote(said.value)} as {said.key}",
                    line=other.header.first,
                    value=quote(one.value),
                    one=one,
                )


def _fitting(found: Sequence[HeaderField]) -> tuple[tuple[HeaderField, ...], list[Problem]]:
    """Return what the metadata takes as it is; and why it does not take the rest."""
    empty = manifest.Manifest(
        team="", institution="", description="", paper="", code="", training_data="", type="x"
    )
    taken, notes = [], []
    for one in found:
        data = manifest.format_manifest(fill_manifest(empty, [one]))
        _, problems = manifest.read_manifest(data, path=one.path)
        taken += [] if problems else [one]
        notes += [
            replace(p, path=f"{one.path}: {one.key}", line=None, severity="note") for p in problems
        ]
    return tuple(taken), notes


def describe_identity(who: manifest.Identity, *, tag: str) -> Mapping[str, Any]:
    """The fields of a header that says what a team says of its system.

    Args:
        who: of a submission's metadata, or of an entry of the log.
        tag: of the run, mostly its id.

    Returns:
        For `heldout.trec.ir_metadata.format_header`. What is not stated is empty.
    """
    costs = who.efficiency or manifest.Efficiency()
    return {
        "tag": tag,
        "platform": {"hardware": {"cpu": {"model": costs.hardware}}},
        "research goal": {"publication": {"url": who.paper}},
        "implementation": {"source": {"repository": who.code}},
        "method": {"description": who.description, "parameters": costs.parameters},
        "actor": {"team": who.team, "institution": who.institution},
        "data": {
            "training data": [{"name": who.training_data}] if who.training_data else [],
            "training pairs": costs.training_pairs,
        },
        "resources": {
            "runtime": {"wallclock per query": _with_unit(costs.query_latency_ms, "ms")},
            "energy used": _with_unit(costs.energy_kwh, "kWh"),
        },
    }


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value} {unit}"
