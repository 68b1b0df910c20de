"""`heldout prefer judge` from the first call to the calibration, against a local server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer, chat_server, say
from click.testing import CliRunner, Result

from heldout.cli.program import main
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.models.judges import read_rows

QUERIES = 30


def passage(number: int, doc: str) -> str:
    return f"{'good' if doc == 'a' else 'poor'} {'word ' * (number % 5 + 1 + (doc == 'b'))}"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three passages for each query; people judged a against b, and like a on most queries."""
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create("campaign")
    folder.write_pools(
        [
            Pool(
                query=f"q{number}",
                text="why",
                candidates=tuple(
                    Candidate(doc=doc, text=passage(number, doc), runs=(run,), known=doc == "b")
                    for doc, run in (("a", "run1"), ("b", "run2"), ("c", "run3"))
                ),
            )
            for number in range(QUERIES)
        ]
    )
    folder.write_judgments(
        [
            Judgment(
                query=f"q{number}", left="a", right="b", preferred="b" if number % 5 == 0 else "a"
            )
            for number in range(QUERIES - 10)
        ]
    )
    return folder.path


def honest(body: dict[str, Any], _number: int) -> Answer:
    """Prefers what begins with `good`, else the first."""
    texts = json.loads(body["messages"][1]["content"])
    return say("B" if texts["passage_b"].startswith("good") else "A")


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with chat_server(honest) as server:
        yield server


def call(campaign: Path, *options: str, env: dict[str, str] | None = None) -> Result:
    arguments = ["prefer", "judge", str(campaign), "--model", "m", *options]
    return CliRunner().invoke(main, arguments, env=env)


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_calibration_asks_about_judged_pairs_and_compares(
    campaign: Path, chat: ChatServer
) -> None:
    found = told(call(campaign, "--endpoint", chat.url, "--calibrate", "--json"))
    assert found["asked"] == {"new": 40, "all": 40}
    assert (found["answered"], found["failures"]) == (40, {})
    calibration = found["calibration"]
    assert (calibration["agree"], calibration["disagree"], calibration["tied"]) == (16, 4, 0)
    assert calibration["accuracy"]["value"] == pytest.approx(0.8)
    assert {text["question"] for text in chat.texts} == {"why"}
    words = call(campaign, "--calibrate")
    assert "80.0%" in words.stdout
    assert "under 300 pairs" in words.stdout


def test_a_limit_takes_pairs_at_random_and_a_greater_one_goes_on(
    campaign: Path, chat: ChatServer
) -> None:
    told(call(campaign, "--endpoint", chat.url, "--limit", "6", "--json"))
    first = {row.pair for row in read_rows(campaign)}
    assert first != {(f"q{n}", a, b) for n in range(2) for a, b in ("ab", "ac", "bc")}
    told(call(campaign, "--endpoint", chat.url, "--limit", "9", "--json"))
    pairs = {row.pair for row in read_rows(campaign)}
    assert first < pairs
    assert len(pairs) == 9


def test_win_rates_use_the_model_where_people_did_not_judge(
    campaign: Path, chat: ChatServer
) -> None:
    told(call(campaign, "--endpoint", chat.url, "--json"))
    found = told(call(campaign, "--calibrate", "--json"))
    rates = {(one["a"], one["b"]): one for one in found["calibration"]["win_rates"]}
    together = rates["run1", "run2"]["together"]
    assert (together["labelled"], together["unlabelled"]) == (20, 10)
    assert 0 <= together["low"] <= together["value"] <= together["high"] <= 1


def test_the_next_pairs_are_those_without_votes_that_it_is_least_sure_of(
    campaign: Path, chat: ChatServer
) -> None:
    told(call(campaign, "--endpoint", chat.url, "--json"))
    found = told(call(campaign, "--next", "100", "--json"))["next"]
    assert len(found) == 3 * QUERIES
    assert [one["votes"] for one in found] == sorted(one["votes"] for one in found)
    flipped = [(one["a"], one["b"]) for one in found[:QUERIES]]
    assert set(flipped) == {("b", "c")}  # neither is good: the first, whichever it is


def test_a_prompt_of_ones_own_is_sent_and_is_another_judge(
    campaign: Path, chat: ChatServer, tmp_path: Path
) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Which is shorter? Reply A or B.")
    options = ("--endpoint", chat.url, "--limit", "1", "--json")
    ours = told(call(campaign, *options))
    own = told(call(campaign, *options, "--prompt", str(prompt)))
    assert chat.asked[-1]["messages"][0]["content"] == "Which is shorter? Reply A or B."
    assert ours["judge"]["prompt"] != own["judge"]["prompt"]
    assert (own["asked"], len(chat.asked)) == ({"new": 2, "all": 2}, 4)


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe", b"x" * 70_000])
def test_a_prompt_that_is_no_text_is_refused(campaign: Path, tmp_path: Path, data: bytes) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(data)
    result = call(campaign, "--prompt", str(prompt), "--calibrate")
    assert result.exit_code == 2
    assert "bad-prompt" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--endpoint URL, --calibrate or --next"),
        (("--endpoint", "http://models.example/v1"), "https"),
        (("--endpoint", "nowhere"), "no address"),
        (("--endpoint", "https://models.example/v1", "--key-env", "NOT_SET"), "NOT_SET"),
    ],
)
def test_wrong_usage_is_told(campaign: Path, options: tuple[str, ...], words: str) -> None:
    result = call(campaign, *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_campaign_without_texts_or_votes_is_told(tmp_path: Path, chat: ChatServer) -> None:
    assert "pool.jsonl is missing" in call(tmp_path, "--calibrate").stderr
    folder = CampaignFolder(tmp_path / "bare")
    folder.create("bare")
    pair = (Candidate(doc="a"), Candidate(doc="b"))
    folder.write_pools([Pool(query="q", text="why", candidates=pair)])
    assert "no-text" in call(folder.path, "--endpoint", chat.url).stderr
    found = told(call(folder.path, "--endpoint", chat.url, "--calibrate", "--json"))
    assert found["calibration"]["accuracy"]["value"] is None
    assert chat.asked == []
