"""Who is measured on which input: the explicit tables."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from results import Role
from workplace import HERE, Workplace

__all__ = ["INPUTS", "MEASURES", "Contender", "Input", "contend", "contend_many"]

MEASURES = ("RR@10", "nDCG@10", "AP", "R@1000")
_ARCHIVES = ("bz2", "gz", "zst")
_UNPACKERS = {"bz2": "bzip2", "gz": "gzip"}
_TREC = ("trec_eval", "pytrec_eval", "ir_measures", "ranx", "trectools", "pandas", "polars")
_OFFICIAL = "ms_marco_eval.py"
_TREC_EVAL = ("-m", "recip_rank", "-m", "ndcg_cut.10", "-m", "map", "-m", "recall.1000")

Scores = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A file to be read and scored.

    Attributes:
        file: its name.
        title: what it is.
        expected: under which name its scores are expected.
        peers: the other tools.
        small: whether starting up is what counts.
    """

    file: str
    title: str
    expected: str = "dev"
    peers: tuple[str, ...] = ()
    small: bool = False

    @property
    def archive(self) -> str:
        """`bz2`, `gz`, `zst`, or nothing."""
        last = Path(self.file).suffix[1:]
        return last if last in _ARCHIVES else ""

    @property
    def qrels(self) -> str:
        """The name of its judgments."""
        return f"{self.file.partition('.')[0]}.qrels"


INPUTS = (
    Input(file="dev.tsv", title="MS MARCO form, plain", peers=(_OFFICIAL, "pandas", "polars")),
    Input(file="dev.tsv.bz2", title="MS MARCO form, bz2", peers=(_OFFICIAL, "pandas")),
    Input(file="dev.tsv.gz", title="MS MARCO form, gz", peers=(_OFFICIAL, "pandas", "polars")),
    Input(file="dev.tsv.zst", title="MS MARCO form, zst"),
    Input(file="dev.trec", title="TREC form, plain", peers=_TREC),
    Input(
        file="dev.trec.bz2",
        title="TREC form, bz2",
        peers=("trec_eval", "pytrec_eval", "ir_measures", "ranx", "pandas"),
    ),
    Input(
        file="dev.trec.gz",
        title="TREC form, gz",
        peers=("trec_eval", "pytrec_eval", "ir_measures", "ranx", "pandas", "polars"),
    ),
    Input(file="dev.trec.zst", title="TREC form, zst"),
    Input(
        file="dev.digits.trec",
        title="TREC form, scores with all digits of a double",
        peers=("trec_eval", "pytrec_eval"),
    ),
    Input(
        file="dev.ties.trec",
        title="TREC form, some 50 different scores in a query",
        expected="dev.ties",
        peers=("trec_eval", "pytrec_eval"),
    ),
    Input(
        file="dev.shuffled.trec",
        title="TREC form, the lines of each query shuffled",
        peers=("trec_eval", "pytrec_eval"),
    ),
    Input(
        file="dev.interleaved.trec",
        title="TREC form, the queries interleaved",
        peers=("trec_eval", "pytrec_eval"),
    ),
    Input(file="dl.trec", title="a small run, TREC form", expected="dl", peers=_TREC, small=True),
    Input(file="dl.tsv.bz2", title="a small run, MS MARCO form, bz2", expected="dl", small=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A process to be measured.

    Attributes:
        name: as in the tables.
        role: reading alone, ourselves, or another tool.
        command: program and arguments.
        scores: reads the scores from what it prints; `None` if it has none.
        missing: why it cannot be measured, if so.
    """

    name: str
    role: Role
    command: tuple[str, ...]
    scores: Callable[[str], Scores] | None = None
    missing: str = ""


def contend(given: Input, workplace: Workplace) -> tuple[Contender, ...]:
    """All contenders on an input, also those that are not there."""
    floors = _start_up(workplace) if given.small else _floors(given, workplace)
    ours = _ourselves(workplace, _files(given, workplace))
    peers = [_peer(name, given, workplace) for name in given.peers]
    return (*floors, ours, *peers)


def _files(given: Input, workplace: Workplace) -> tuple[str, ...]:
    run, qrels = workplace.data / given.file, workplace.data / given.qrels
    return (str(run), "--qrels", str(qrels))


def _start_up(workplace: Workplace) -> Iterator[Contender]:
    for name, code in (("start of Python", "pass"), ("import of numpy", "import numpy")):
        yield Contender(name=name, role="floor", command=(str(workplace.python), "-P", "-c", code))


def _floors(given: Input, workplace: Workplace) -> Iterator[Contender]:
    path, cores = str(workplace.data / given.file), str(workplace.cores)
    programs: dict[str, dict[str, tuple[str, ...]]] = {
        "": {"cat": ("cat", path)},
        "bz2": {
            "lbzip2": ("lbzip2", f"-n{cores}", "-dc", path),
            "bzip2": ("bzip2", "-dc", path),
        },
        "gz": {"gzip": ("gzip", "-dc", path)},
        "zst": {"zstd": ("zstd", "-qdc", path)},
    }
    inside: dict[str, tuple[str, ...]] = {
        "": (),
        "bz2": ("stdlib", "rapidgzip"),
        "gz": ("zlib",),
        "zst": ("zstandard",),
    }
    for name, command in programs[given.archive].items():
        there = name == "cat" or workplace.versions[name]
        yield Contender(
            name=f"{name} alone",
            role="floor",
            command=command,
            missing="" if there else "not installed",
        )
    for name in inside[given.archive]:
        child = (str(workplace.python), str(HERE / "floors.py"), name, path, cores)
        yield Contender(
            name=f"{name} alone",
            role="floor",
            command=child,
            missing="" if workplace.versions.get(name, "there") else "not installed",
        )


def _ourselves(workplace: Workplace, files: tuple[str, ...]) -> Contender:
    measures = [part for name in MEASURES for part in ("-m", name)]
    return Contender(
        name="heldout",
        role="heldout",
        command=(*_program(workplace), *("evaluate", *files, *measures, "--json", "--no-cache")),
        scores=_heldout_scores,
    )


def _program(workplace: Workplace) -> tuple[str, ...]:
    """The command that users type, where it is installed."""
    installed = workplace.python.with_name("heldout")
    return (str(installed),) if installed.exists() else (str(workplace.python), "-m", "heldout")


def _peer(name: str, given: Input, workplace: Workplace) -> Contender:
    run, qrels = str(workplace.data / given.file), str(workplace.data / given.qrels)
    if name == _OFFICIAL:
        return _official(run, qrels, workplace)
    unpacked = str(workplace.scratch / "unpacked.trec")
    reads = name != "trec_eval" and not (name == "ranx" and given.archive == "bz2")
    tool = _tool(name, qrels, run if reads or not given.archive else unpacked, workplace)
    if reads or not given.archive:
        return tool
    unpacker = _UNPACKERS[given.archive]
    return replace(
        tool,
        name=f"{name} behind {unpacker}",
        command=_behind(unpacker, run, unpacked, tool.command),
    )


def _official(run: str, qrels: str, workplace: Workplace) -> Contender:
    return Contender(
        name=_OFFICIAL,
        role="peer",
        command=(str(workplace.python), str(workplace.msmarco), qrels, run),
        scores=_msmarco_scores,
        missing="" if workplace.msmarco else "no --msmarco-script",
    )


def _tool(name: str, qrels: str, run: str, workplace: Workplace) -> Contender:
    if name == "trec_eval":
        return Contender(
            name=name,
            role="peer",
            command=(str(workplace.trec_eval), *_TREC_EVAL, qrels, run),
            scores=_trec_eval_scores,
            missing="" if workplace.trec_eval else "not built",
        )
    distribution = {"pytrec_eval": "pytrec_eval-terrier"}.get(name, name)
    return Contender(
        name=name,
        role="peer",
        command=(str(workplace.python), str(HERE / "peers.py"), name, qrels, run),
        scores=_json_scores,
        missing="" if workplace.versions[distribution] else "not installed",
    )


def _behind(unpacker: str, packed: str, unpacked: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, on a copy of the run decompressed before."""
    script = f'{unpacker} -dc "$1" > "$2" && shift 2 && exec "$@"'
    return ("sh", "-c", script, "sh", packed, unpacked, *command)


def contend_many(workplace: Workplace, data: Path) -> tuple[Contender, ...]:
    """Those that score the runs of TREC-COVID, round 1, all together."""
    folder = data / "trec-covid-round1"
    qrels = str(folder / "qrels-round1.txt.gz")
    runs = sorted(map(str, (folder / "runs-depth100").iterdir()))
    command = (str(workplace.python), str(HERE / "peers.py"), "many", qrels, *runs)
    peer = Contender(
        name="ir_measures, one process",
        role="peer",
        command=command,
        scores=_many_scores,
        missing="" if workplace.versions["ir_measures"] else "not installed",
    )
    return (_ourselves(workplace, (*runs, "--qrels", qrels)), peer)


def _heldout_scores(output: str) -> Scores:
    runs: list[Mapping[str, dict[str, float]]] = json.loads(output)["runs"]
    if len(runs) == 1:
        return runs[0]["scores"]
    return {
        f"{Path(str(run['path'])).name} {measure}": score
        for run in runs
        for measure, score in run["scores"].items()
    }


def _many_scores(output: str) -> Scores:
    runs: dict[str, Scores] = json.loads(output)
    return {
        f"{Path(path).name} {measure}": score
        for path, scores in runs.items()
        for measure, score in scores.items()
    }


def _json_scores(output: str) -> Scores:
    found: Scores = json.loads(output)
    return found


def _trec_eval_scores(output: str) -> Scores:
    names = {"recip_rank": "RR", "ndcg_cut_10": "nDCG@10", "map": "AP", "recall_1000": "R@1000"}
    rows = [line.split() for line in output.splitlines()]
    return {names[row[0]]: float(row[2]) for row in rows}


def _msmarco_scores(output: str) -> Scores:
    found = [line for line in output.splitlines() if line.startswith("MRR @10: ")]
    return {"RR@10": float(found[0].partition(": ")[2])}
