"""`heldout doctor`: what it tells of machines that have everything, little, or something broken."""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from click.testing import CliRunner, Result
from packaging.requirements import Requirement

from heldout import installation
from heldout import installation as speed
from heldout.board.organiser import containers
from heldout.cli.program import main
from heldout.errors import SetupError
from heldout.installation import (
    PARTS,
    Finding,
    Sample,
    draw_sample,
    find_parts,
    find_score_store,
    find_scratch,
    find_unknown_switches,
    measure,
)
from heldout.scoring.cache import ScoreCache
from heldout.trec import runs
from heldout.trec.accelerators import Accelerators, Bzip2, Gzip, Scanner, find_accelerators
from heldout.trec.runs import Gathered, scan_run
from heldout.trec.scans import Scan

module = import_module("heldout.cli.doctor")
ROOT = Path(__file__).parents[2]
READING = [part.name for part in PARTS if part.group == "reading"]
OPTIONAL = [part.name for part in PARTS if part.group != "base"]
EVERYTHING = Accelerators(scanner="compiled", bzip2="lbzip2", gzip="isal", threads=2)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments])


def states(document: dict[str, Any]) -> dict[str, str]:
    return {part["name"]: part["state"] for part in document["parts"]}


def find(name: str, environ: dict[str, str]) -> Finding:
    return next(found for found in find_parts(environ) if found.part.name == name)


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No container engine of this machine is asked: that takes longer than all the rest."""
    monkeypatch.delenv("HELDOUT_ENGINE", raising=False)
    monkeypatch.setattr(containers, "ENGINES", ())


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make packages look as if they were not installed."""

    def hide_packages(*names: str) -> None:
        def version(name: str) -> str:
            if name in names:
                raise metadata.PackageNotFoundError(name)
            return "1.0"

        def find_spec(name: str) -> object:
            hidden = name == "isal" and "isal" in names
            return None if hidden or (name.endswith("._scan") and "compiled" in names) else name

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(installation, "find_spec", find_spec)
        monkeypatch.setattr("heldout.trec.accelerators.find_spec", find_spec)

    return hide_packages


# the table


def _is_wanted(requirement: Requirement) -> bool:
    """Whether this Python needs it."""
    return requirement.marker is None or requirement.marker.evaluate()


def test_the_table_has_every_dependency_and_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"base": project["dependencies"], **project["optional-dependencies"]}
    del extras["test"], extras["docs"]
    named = {
        extra: {one.name for one in map(Requirement, requirements) if _is_wanted(one)}
        for extra, requirements in extras.items()
    }
    packages = [part for part in PARTS if part.kind == "package"]
    assert {part.name for part in packages} == set().union(*named.values())
    for part in packages:
        extra = re.search(r"heldout\[(\w+)\]", part.get)
        assert part.name in named[extra[1] if extra else "base"]


def test_the_table_has_every_accelerator() -> None:
    known = {*get_args(Scanner), *get_args(Bzip2), *get_args(Gzip)}
    assert known - {"numpy", "plain", "stdlib"} == set(READING)


# machines


def test_nothing_optional(hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    hide(*OPTIONAL)
    monkeypatch.setenv("PATH", "")
    result = call()
    assert result.exit_code == 0, result.output
    assert result.output.startswith("All that scoring runs needs is here; 32 of 32 ")
    for extra in ("fast", "cluster", "png", "web", "rankers", "neural", "timestamps", "measures"):
        assert f"pip install 'heldout[{extra}]'\n" in result.output
    assert "apt install git" in result.output
    document = json.loads(call("--json").output)
    assert document["ok"] is True
    assert all(states(document)[name] == "missing" for name in OPTIONAL)


def test_everything(hide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    hide()
    monkeypatch.setattr(module, "find_parts", lambda _: _all("ready"))
    result = call()
    assert result.exit_code == 0
    assert result.output.startswith(
        "All that scoring runs needs is here, and no optional part is missing.\n"
    )
    assert "missing   " not in result.output


def _all(state: installation.State) -> tuple[Finding, ...]:
    return tuple(Finding(part=part, state=state, version="1.0") for part in PARTS)


def test_a_missing_dependency_is_the_answer_no(hide: Callable[..., None]) -> None:
    hide("scipy", "numpy", "compiled")
    result = call("--measure")
    assert result.exit_code == 1
    assert result.output.startswith(
        "Runs cannot be scored here: numpy is missing, scipy is missing.\n"
    )
    assert "measured" not in result.output
    done = call("--json", "--measure")
    assert done.exit_code == 1
    document = json.loads(done.output)
    assert (document["ok"], document["scores"], document["measured"]) == (False, None, None)


@pytest.mark.parametrize("name", ["numpy", "isal"])
def test_a_package_that_does_not_load(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(name)

    def fail(wanted: str) -> object:
        if wanted.startswith(name):
            raise ImportError("wrong ELF class")
        return import_module(wanted)

    monkeypatch.setattr(installation, "import_module", fail)
    result = call()
    assert f"broken    {name}: it does not load: wrong ELF class\n" in result.output
    assert result.exit_code == (1 if name == "numpy" else 0)


def _fail_to_load(name: str) -> object:
    raise ImportError("undefined symbol", name=name)


def _load_an_old_one(_: str) -> object:
    return SimpleNamespace(INTERFACE=0)


@pytest.mark.parametrize(
    ("load", "why"),
    [(_load_an_old_one, "another version of heldout"), (_fail_to_load, "undefined symbol")],
)
def test_a_broken_scanner_is_told_and_not_used(
    load: Callable[[str], object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("heldout.trec.scanning._scan")

    def only_the_scanner(name: str) -> object:
        return load(name) if name == "heldout.trec.scanning._scan" else import_module(name)

    monkeypatch.setattr(installation, "import_module", only_the_scanner)
    monkeypatch.setattr("heldout.trec.accelerators.import_module", only_the_scanner)
    monkeypatch.delenv("HELDOUT_WITHOUT", raising=False)
    assert find_accelerators({}).scanner == "numpy"
    result = call()
    assert result.exit_code == 0
    assert re.search(f"broken +compiled: .*{why}", result.output)
    assert not find("compiled", {}).stops


# programs


def make_program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment that has only this program."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": str(folder)}


def test_programs_tell_their_versions(tmp_path: Path) -> None:
    environ = make_program(tmp_path, "lbzip2", "echo lbzip2 version 9.8; echo 1.2.3")
    found = find("lbzip2", environ)
    assert (found.state, found.version) == ("in use", "9.8")
    assert find("lbzip2", {**environ, "HELDOUT_WITHOUT": " lbzip2 "}).state == "off"
    assert find("git", environ).state == "missing"
    found = find("git", make_program(tmp_path, "git", "echo none of your business"))
    assert (found.state, found.version) == ("ready", None)


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.25.4", "broken"), ("2.26.0", "ready"), ("2.39.5 (Apple Git-154)", "ready")],
)
def test_a_git_that_is_too_old_is_told(version: str, state: str, tmp_path: Path) -> None:
    found = find("git", make_program(tmp_path, "git", f"echo 'git version {version}'"))
    assert (found.state, found.version) == (state, version.split(maxsplit=1)[0])
    assert ("older than 2.26" in found.why) == (state == "broken")


@pytest.mark.parametrize("text", ["exit 3", "sleep 5", "kill -9 $$"])
def test_programs_that_do_not_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_PATIENCE", 0.2)
    found = find(
        "lbzip2", make_program(tmp_path, "lbzip2", f"exec {text}" if " 5" in text else text)
    )
    assert found.state == "broken"
    assert found.why.startswith("it does not run: ")
    assert not found.stops


ENGINE = """case "$1" in
--version) echo podman version 5.4.2 ;;
info) echo '{"host": {"cgroupControllers": [%s]}}' ;;
import) test -s "$2" && echo sha256:b1 ;;
create) echo aaaaaaaaaaaaaaaa ;;
container) case "$4" in *Pid*) echo 0 ;; *) echo exited 0 false ;; esac ;;
rm|rmi) echo "$@" >> "$0.gone" ;;
esac"""
LIMITED = ENGINE % '"cpu", "memory", "pids"'
STARTS_NONE = (
    LIMITED.replace("echo exited", "echo created").removesuffix("esac")
    + "start) echo crun: setrlimit: Operation not permitted >&2; exit 126 ;;\nesac"
)


@pytest.mark.parametrize(
    ("text", "state", "why"),
    [
        (LIMITED, "ready", ""),
        (ENGINE % '"cpu"', "broken", "an engine without limits of memory, pids"),
        ("echo cannot connect >&2; exit 1", "broken", '--version fails: "cannot connect"'),
    ],
)
def test_what_runs_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, state: str, why: str
) -> None:
    monkeypatch.setattr(containers, "ENGINES", ("podman",))
    found = find("podman or docker", make_program(tmp_path, "podman", text))
    assert (found.state, found.why) == (state, why)
    assert found.version == ("podman 5.4.2" if state == "ready" else None)


def test_what_runs_containers_by_another_name(tmp_path: Path) -> None:
    environ = make_program(tmp_path, "engine", LIMITED)
    assert find("podman or docker", environ).state == "missing"
    named = {**environ, "HELDOUT_ENGINE": str(tmp_path / "engine")}
    assert find("podman or docker", named).state == "ready"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (STARTS_NONE, 'could not be started: "crun: setrlimit: Operation not permitted". Perhaps'),
        (LIMITED.replace("echo exited 0", "echo exited 3"), "no container: exit code 3"),
        (LIMITED.replace("echo aaaaaaaaaaaaaaaa", "exit 125"), "no container: create fails"),
        (LIMITED.replace("echo sha256:b1", "exit 1"), "no container: import fails"),
    ],
)
def test_an_engine_that_starts_no_container_is_not_ready(
    tmp_path: Path, text: str, why: str
) -> None:
    environ = make_program(tmp_path, "engine", text)
    found = find("podman or docker", {**environ, "HELDOUT_ENGINE": str(tmp_path / "engine")})
    assert (found.state, found.version, why in found.why) == ("broken", "podman 5.4.2", True)
    assert "HELDOUT_CONTAINER_FLAGS" in found.why
    gone = tmp_path / "engine.gone"
    removed = gone.read_text().split() if gone.exists() else []
    assert ("aaaaaaaaaaaaaaaa" in removed) == ("create" not in why and "import" not in why)
    assert ("sha256:b1" in removed) == ("import" not in why)


# switches


def test_switches_are_those_that_reading_runs_knows(hide: Callable[..., None]) -> None:
    hide("nothing")
    for name in READING:
        assert name not in _used({"HELDOUT_WITHOUT": name, "PATH": ""})
    assert find_unknown_switches({"HELDOUT_WITHOUT": "lbzip2,bzip, isal,"}) == ("bzip",)
    assert find_unknown_switches({}) == ()


def _used(environ: dict[str, str]) -> set[str]:
    found = find_accelerators(environ)
    return {found.scanner, found.bzip2, found.gzip}


def test_a_switch_that_means_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELDOUT_WITHOUT", "bzip2")
    assert (
        "unknown   HELDOUT_WITHOUT names bzip2; it can name compiled, lbzip2, isal\n"
        in call().output
    )


# folders


def test_the_score_store(tmp_path: Path) -> None:
    assert find_score_store({"HELDOUT_CACHE": "off"}).why == "HELDOUT_CACHE=off"
    assert find_score_store({}).path is None
    assert find_score_store({}).why
    environ = {"HELDOUT_CACHE": str(tmp_path / "new" / "cache")}
    empty = find_score_store(environ)
    assert (empty.path, empty.bytes, empty.why) == (tmp_path / "new" / "cache", 0, "")
    assert empty.limit is None
    assert find_score_store({"HOME": str(tmp_path)}).limit == ScoreCache(root=tmp_path).limit
    (tmp_path / "file").touch()
    assert find_score_store({"HELDOUT_CACHE": str(tmp_path / "file" / "in")}).why


def test_what_is_stored_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", "cache")
    Path("run").write_text("q1\ta\t1\n", encoding="utf-8")
    Path("qrels").write_text("q1 0 a 1\n", encoding="utf-8")
    arguments = ["evaluate", "run", "--qrels", "qrels", "-m", "RR@10"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    Path("cache/notes.txt").write_text("not ours", encoding="utf-8")
    sizes = [path.stat().st_size for path in Path("cache/scores-1").rglob("*") if path.is_file()]
    assert len(sizes) == 1
    assert json.loads(call("--json").output)["scores"]["bytes"] == sizes[0]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="sees open files on Linux only")
def test_rows_go_where_it_is_said(tmp_path: Path) -> None:
    """SQLite looks at its variables once in a process, so each case is a child of one process."""
    cases = [("TMPDIR",), ("SQLITE_TMPDIR",), ("TMPDIR", "SQLITE_TMPDIR"), ()]
    environs = [{name: str(tmp_path / name) for name in names} for names in cases]
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        (tmp_path / name).mkdir()
    code = (
        "import os\n"
        f"from {Gathered.__module__} import Gathered\n"
        f"for environ in {environs}:\n"
        "    if os.fork():\n"
        "        assert os.wait()[1] == 0\n"
        "        continue\n"
        "    os.environ.update(environ)\n"
        "    gathered = Gathered(in_memory=0, path='run')\n"
        "    for number in range(8): gathered.add(b'q', b'x' * (1 << 20), [number])\n"
        "    links = [f'/proc/self/fd/{fd}' for fd in os.listdir('/proc/self/fd')]\n"
        "    print([os.readlink(l) for l in links if os.path.islink(l)], flush=True)\n"
        "    os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(environs)
    for environ, line in zip(environs, lines, strict=True):
        spilled = re.findall(r"'([^']+)/etilqs_", line)
        assert spilled
        assert {str(find_scratch(environ)[-1].path)} == set(spilled)


def test_scratch_that_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", fail)
    monkeypatch.setattr(installation, "_is_writable", lambda _: False)
    result = call()
    assert result.exit_code == 0
    assert "scratch   no folder that can be written, so no runs that come through" in result.output
    assert json.loads(call("--json").output)["scratch"][0]["path"] is None


# speed


def draw_small(rng: np.random.Generator) -> Sample:
    return draw_sample(rng, queries=3, depth=20)


def make_clock() -> Callable[[], float]:
    """A second later each time."""
    return map(float, count()).__next__


def test_the_sample_is_the_same_each_time_and_clean() -> None:
    sample = draw_small(np.random.default_rng(7))
    assert sample == draw_small(np.random.default_rng(7))
    assert sample != draw_small(np.random.default_rng(8))
    for form in sample.files:
        scan = speed._read(sample, form, (), Accelerators())
        assert scan.ok
        assert scan.problems == ()
        assert scan.facts.documents == 60
        assert scan.facts.tied == scan.facts.displaced_top == 0
        assert len(scan.rankings.grades) == len(scan.rankings) == 3


def test_times_are_medians_and_ratios_to_nothing_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that runs only while something is read."""
    now = 0.0
    repeat = 0
    costs = {"compiled": 0.25, "lbzip2": 0.5, "isal": 0.8}

    def read(_: Sample, form: speed.Form, parts: tuple[str, ...], __: Accelerators) -> Scan:
        nonlocal now
        cost = 8.0 + (1000.0 if repeat == 1 else 0.0)  # one repeat is disturbed
        for part in parts:
            cost *= costs[part]
        now += cost
        return found[form]

    def done() -> None:
        nonlocal repeat
        repeat += 1

    sample = draw_small(np.random.default_rng(0))
    found = {form: speed._read(sample, form, (), Accelerators()) for form in sample.files}
    monkeypatch.setattr(speed, "_read", read)
    result = measure(sample, EVERYTHING, clock=lambda: now, repeats=3, load=0.5, done=done)
    assert repeat == 3
    assert (result.queries, result.depth, result.repeats) == (3, 20, 3)
    assert (result.threads, result.load) == (2, 0.5)
    assert [(t.form, t.parts, t.seconds, t.ratio) for t in result.timings] == [
        ("plain", (), 8.0, 1.0),
        ("plain", ("compiled",), 2.0, 4.0),
        ("gz", (), 8.0, 1.0),
        ("gz", ("compiled",), 2.0, 4.0),
        ("gz", ("isal",), pytest.approx(6.4), pytest.approx(1.25)),
        ("gz", ("compiled", "isal"), pytest.approx(1.6), pytest.approx(5.0)),
        ("bz2", (), 8.0, 1.0),
        ("bz2", ("compiled",), 2.0, 4.0),
        ("bz2", ("lbzip2",), 4.0, 2.0),
        ("bz2", ("compiled", "lbzip2"), 1.0, 8.0),
    ]
    assert {t.bytes for t in result.timings} == {len(data) for data in sample.files.values()}


def test_only_the_parts_named_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(*args: Any, accelerators: Accelerators, **options: Any) -> Scan:
        seen.append((accelerators.scanner, accelerators.bzip2, accelerators.gzip))
        return scan_run(*args, **options)

    monkeypatch.setattr(runs, "scan_run", spy)
    measure(draw_small(np.random.default_rng(0)), EVERYTHING, clock=make_clock(), repeats=1)
    n, s, c = "numpy", "stdlib", "compiled"
    assert seen[1:] == [
        *((n, s, s), (c, s, s)),
        *((n, s, s), (c, s, s), (n, s, "isal"), (c, s, "isal")),
        *((n, s, s), (c, s, s), (n, "lbzip2", s), (c, "lbzip2", s)),
    ]


def test_a_part_that_finds_something_else_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(*args: Any, accelerators: Accelerators, **options: Any) -> Scan:
        if accelerators.gzip == "isal":
            options["qrels"] = {}
        return scan_run(*args, **options)

    monkeypatch.setattr(runs, "scan_run", lie)
    with pytest.raises(SetupError, match=r"HELDOUT_WITHOUT=isal,"):
        measure(
            draw_small(np.random.default_rng(0)),
            Accelerators(gzip="isal"),
            clock=make_clock(),
            repeats=1,
        )


# what is printed


@dataclass
class Screen:
    """A terminal that keeps what is printed."""

    width: int
    is_terminal: bool = True
    lines: list[str] = field(default_factory=list)

    def print(self, *objects: object) -> None:
        self.lines += " ".join(map(str, objects)).split("\n")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("state", ["ready", "missing", "off", "broken"])
def test_everything_fits_the_screen(width: int, state: installation.State) -> None:
    screen = Screen(width=width)
    shown = module._State(
        findings=_all(state),
        unknown=("bzip",),
        scores=find_score_store({"HELDOUT_CACHE": "/short"}),
        scratch=find_scratch({}),
    )
    sample = draw_small(np.random.default_rng(0))
    most = replace(EVERYTHING, scanner="numpy")  # the compiled one may be missing
    measured = measure(sample, most, clock=make_clock(), repeats=1, load=99.0)
    module._print(screen, shown, measured)
    assert max(map(len, screen.lines)) <= width
    assert any("others were at work, a load of 99.0 on 2 cores" in line for line in screen.lines)


def test_measured_in_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "draw_sample", draw_small)
    result = call("--measure")
    assert result.exit_code == 0, result.output
    assert (
        "measured  3 queries × 20 in TREC form, from memory; read and checked on" in result.output
    )
    assert result.output.count("nothing optional\n") == 3
    assert "next " not in result.output
    measured = json.loads(call("--measure", "--json").output)["measured"]
    assert measured["repeats"] == 3
    for timing in measured["timings"]:
        assert timing["seconds"] > 0
        assert timing["bytes"] > 0
        assert timing["parts"] or timing["ratio"] == 1


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB")),
        *((268_435_456, "268.4 MB"), (71_900_000_000, "71.9 GB"), (4 * 10**15, "4,000,000.0 GB")),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert module._size(size) == text


def test_help_needs_no_numpy() -> None:
    code = (
        "import sys; from heldout.cli import main\n"
        "try: main(['doctor', '--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_look_imports_no_extra() -> None:
    code = (
        "import sys; from heldout.cli import main\n"
        "try: main(['doctor'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'scipy', 'jinja2', 'resvg_py', 'bm25s', 'Stemmer', 'torch'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
