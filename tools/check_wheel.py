"""Checks built packages of heldout, far from its sources.

    python tools/check_wheel.py dist          the wheel and the sdist of a folder
    python tools/check_wheel.py --installed   the heldout that this Python has installed

Of a folder: the wheel has each file that lies beside the modules, and works in a new environment;
the sdist installs where there is no C compiler, and scores the same without the scanner.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_SOURCES = Path(__file__).resolve().parents[1] / "src"
_LEFT_OUT = {".c", ".h", ".so", ".pyc"}
"""What is compiled is not packed, and what it is compiled to differs by machine."""
_SCANNER = "heldout.trec.scanning._scan"


def main() -> int:
    """Check what was asked for; 1 with a line that says what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("--pure", action="store_true", help="no compiled scanner wanted")
    given = parser.parse_args()
    try:
        if given.installed:
            check_installed(pure=given.pure)
        else:
            check_folder(given.folder.resolve())
    except (AssertionError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def check_folder(folder: Path) -> None:
    """Check the one wheel and the one sdist of a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    missing = missing_files(wheel)
    _want(not missing, f"{wheel.name} lacks {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        scores = _install_and_check(Path(place), [str(wheel)], ())
        again = ["--force-reinstall", "--no-deps", str(sdist)]
        pure = _install_and_check(Path(place), again, ["--pure"], CC="no-compiler-here")
    _want(scores == pure, "the wheel and the sdist without a compiler score differently")
    print(f"{wheel.name} and {sdist.name} install and work")


def missing_files(wheel: Path) -> set[str]:
    """Files beside the modules that a wheel lacks."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        path.relative_to(_SOURCES).as_posix()
        for path in (_SOURCES / "heldout").rglob("*")
        if path.is_file() and path.suffix not in _LEFT_OUT
    }
    return wanted - packed


def check_installed(*, pure: bool) -> None:
    """Work with the installed heldout in an empty folder, and print the scores of a run."""
    import heldout  # noqa: PLC0415 - only here is it installed

    home = Path(heldout.__file__).parent
    _want(_SOURCES not in home.parents, f"{home} is the source tree")
    _want((home / "py.typed").is_file(), "no py.typed")
    compiled = find_spec(_SCANNER) is not None
    _want(compiled != pure, f"the compiled scanner is {'there' if compiled else 'missing'}")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(_work(Path(folder)), sort_keys=True))


def _work(folder: Path) -> object:
    """Score runs, and make a board with its page."""
    (folder / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    _heldout(folder, "doctor")
    _heldout(folder, "demo", "--files", "files")
    _heldout(
        *(folder, "board", "new", "kb", "--vault", "kb-vault", "--order", "trec"),
        *("--dev", "files/dev.tsv", "files/dev.qrels"),
        *("--eval", "files/eval.tsv", "files/eval.qrels"),
    )
    _heldout(
        *(folder, "board", "baseline", "20261201-tfidf", "--description", "TF-IDF"),
        *("--dev", "files/runs/dev/tfidf.run.gz", "--eval", "files/runs/eval/tfidf.run.gz"),
        *("--board", "kb", "--vault", "kb-vault"),
    )
    page = (folder / "kb/leaderboard/index.html").read_text("utf-8")
    _want("TF-IDF" in page, "the page does not show the baseline")
    runs = sorted(path.as_posix() for path in folder.glob("files/runs/dev/*.gz"))
    scored = _heldout(
        folder, "evaluate", *runs, "--qrels", "files/dev.qrels", "-m", "RR@10", "--json"
    )
    found = json.loads(scored)
    _want(len(found["runs"]) == len(runs) > 1, "not every run was scored")
    return [run["scores"] for run in found["runs"]]


def _heldout(folder: Path, *arguments: str) -> str:
    """What a command prints, with nothing of this machine's user around it."""
    environment = os.environ | {"HOME": str(folder), "HELDOUT_CACHE": "off"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "heldout", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    _want(done.returncode == 0, f"heldout {' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout


def _install_and_check(
    place: Path, packages: Sequence[str], arguments: Sequence[str], **environment: str
) -> str:
    """What `--installed` prints in an environment once packages are installed there."""
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True, env=os.environ | environment)
    check = [python, str(Path(__file__).resolve()), "--installed", *arguments]
    done = subprocess.run(check, cwd=place, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _want(holds: object, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
