"""An option that is declared once: the translation to the command line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner, Result

from heldout.cli.options import command
from heldout.options import Jobs, Level, Opt, Seed, options_of, parameters_of


def _even(value: int) -> None:
    if value % 2:
        raise ValueError(f"{value} is odd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    share: Annotated[float, Opt("Share of queries.", above=0, most=1)] = 0.5
    batch: Annotated[int, Opt("Batch size.", check=_even)] = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    samples: Annotated[int, Opt("Number of bootstrap samples.", least=1)] = 1000
    kind: Annotated[Literal["auto", "bert"], Opt("Kind of model.")] = "auto"
    measures: Annotated[
        tuple[str, ...], Opt("Measures.", names=("-m", "--measure"), metavar="MEASURE")
    ] = ("RR@10", "nDCG@10")
    pairs: Annotated[tuple[tuple[str, str], ...], Opt("Named files.")] = ()
    files: Annotated[tuple[Path, Path] | None, Opt("Two files.", path="file")] = None
    cache: Annotated[bool, Opt("No stored scores.", names=("--no-cache",))] = True
    ties: Annotated[bool, Opt("Ties.")] = True
    quiet: Annotated[bool, Opt("No progress.")] = False
    until: Annotated[datetime | None, Opt("Last day.")] = None
    vault: Annotated[Path | None, Opt("Vault.", env="TEST_VAULT", path="folder")] = None
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.quiet and self.kind == "bert":
            raise ValueError("--quiet and --kind bert exclude each other")


def _idle(*, settings: Settings) -> None:
    del settings


def run(function: Callable[..., Any], *args: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(command(function), args, env=env)


def settings_of(*args: str, env: dict[str, str] | None = None) -> Settings:
    taken = []

    def take(*, settings: Settings) -> None:
        taken.append(settings)

    result = run(take, *args, env=env)
    assert result.exit_code == 0, result.output
    return taken[0]


def refusal(*args: str) -> str:
    result = run(_idle, *args)
    assert result.exit_code == 2
    return result.stderr


def test_without_options_the_defaults_of_the_class_hold() -> None:
    assert settings_of() == Settings()


def test_each_type_is_read() -> None:
    found = settings_of(
        *("--samples", "5", "--kind", "bert", "-m", "P@1", "--measure", "RR", "--no-cache"),
        *("--pairs", "a", "x", "--pairs", "b", "y", "--files", "p", "q", "--no-ties"),
        *("--until", "2026-11-20", "--share", "1", "--batch", "4"),
    )
    assert found == Settings(
        samples=5,
        kind="bert",
        measures=("P@1", "RR"),
        pairs=(("a", "x"), ("b", "y")),
        files=(Path("p"), Path("q")),
        cache=False,
        ties=False,
        until=datetime(2026, 11, 20, tzinfo=UTC),
        inner=Inner(share=1.0, batch=4),
    )
    assert settings_of("--quiet").quiet


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--samples", "0"), "x>=1"),
        (("--share", "0"), "0<x<=1"),
        (("--share", "nan"), "not a finite number"),
        (("--kind", "t5"), "'auto', 'bert'"),
        (("--batch", "3"), "--batch': 3 is odd"),
        (("--quiet", "--kind", "bert"), "exclude each other"),
        (("--files", "only"), "requires 2 arguments"),
    ],
)
def test_what_a_declaration_forbids_is_wrong_usage(args: tuple[str, ...], words: str) -> None:
    assert words in refusal(*args)


def test_an_environment_variable_is_read() -> None:
    assert settings_of(env={"TEST_VAULT": "there"}).vault == Path("there")


def test_the_help_shows_type_default_and_bounds() -> None:
    lines = " ".join(run(_idle, "--help").output.split())
    assert "--samples INTEGER RANGE Number of bootstrap samples. [default: 1000; x>=1]" in lines
    assert "-m, --measure MEASURE Measures. [default: RR@10, nDCG@10]" in lines
    assert "--no-cache No stored scores. --ties / --no-ties Ties. [default: ties]" in lines
    assert "--share FLOAT RANGE Share of queries. [default: 0.5; 0<x<=1]" in lines


def test_a_command_declares_options_as_parameters_and_others_stay() -> None:
    @click.option("--other")
    def show(
        *,
        runs: Annotated[tuple[str, ...], Opt(argument=True, metavar="RUN...")],
        inner: Inner,
        seed: Seed = 0,
        jobs: Jobs = None,
        level: float,
        other: str,
    ) -> None:
        click.echo(repr((runs, inner, seed, jobs, level, other)))

    assert [option.field for option in parameters_of(show)] == ["runs", "inner", "seed", "jobs"]
    program, runner = command(show, level=(Level, 0.95)), CliRunner()
    result = runner.invoke(program, ["a", "b", "--seed", "3", "--other", "x"])
    assert result.output == f"{(('a', 'b'), Inner(), 3, None, 0.95, 'x')!r}\n"
    assert "Missing argument 'RUN...'" in runner.invoke(program, []).stderr


def test_a_field_that_declares_nothing_is_refused() -> None:
    @dataclass
    class Odd:
        seed: Seed = 0
        other: int = 1

    with pytest.raises(TypeError, match=r"Odd\.other is no option"):
        options_of(Odd)
