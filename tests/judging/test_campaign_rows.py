"""A campaign's files with JSON that contradicts itself: refused with its line."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from heldout.errors import InputError
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.settings import Settings, new_campaign, parse_campaign

POOL = '{"query":"q","candidates":[{"doc":"a","known":true},{"doc":"b"}]}'
TASK = '{"task":"t","items":[{"query":"q","left":"a","right":"b"}]}'


def problems(folder: Path, name: str, line: str) -> list[tuple[str, int | None]]:
    """Codes and lines of what is wrong with a file whose second line is this one."""
    (folder / f"{name}.jsonl").write_text(f"{POOL if name == 'pool' else TASK}\n{line}\n")
    campaign = CampaignFolder(folder)
    with pytest.raises(InputError) as caught:
        _ = campaign.pools() if name == "pool" else campaign.tasks()
    return [(one.code, one.line) for one in caught.value.problems]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (POOL, "repeated-query"),
        ('{"query":"r","candidates":[]}', "empty-pool"),
        ('{"query":"r","candidates":[{"doc":"a"},{"doc":"a"}]}', "repeated-document"),
        ('{"query":"r","candidates":[{"doc":"a","same":["b"]},{"doc":"b"}]}', "repeated-document"),
        (
            '{"query":"r","candidates":[{"doc":"a","known":true},{"doc":"b","known":true}]}',
            "repeated-answer",
        ),
        ('{"query":"r","candidates":[{"doc":"a\\u202eb"}]}', "bad-row"),
        ('{"query":"r\\u0000","candidates":[{"doc":"a"}]}', "bad-row"),
        ('{"query":"r","query":"s","candidates":[{"doc":"a"}]}', "bad-row"),
        ('{"query":"r","candidates":[{"doc":"a","d\\u006fc":"b"}]}', "bad-row"),
    ],
    ids=[
        *("query", "empty", "document", "copy", "answers", "direction", "nul"),
        *("key-twice", "inner-key-twice"),
    ],
)
def test_pools_that_contradict_themselves_are_refused(tmp_path: Path, line: str, code: str) -> None:
    assert problems(tmp_path, "pool", line) == [(code, 2)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (TASK, "repeated-task"),
        ('{"task":"u","items":[]}', "task-item"),
        ('{"task":"u","items":[{"query":"q","left":"a","right":"a"}]}', "task-item"),
        ('{"task":"u","items":[{"query":"q","left":"a","right":"b","answer":"c"}]}', "task-item"),
        (
            (
                '{"task":"u","items":[{"query":"q","left":"a","right":"b"},'
                '{"query":"q","left":"b","right":"a"}]}'
            ),
            "task-item",
        ),
        ('{"task":"u\\n","items":[{"query":"q","left":"a","right":"b"}]}', "bad-row"),
    ],
    ids=["id", "empty", "itself", "answer", "pair-twice", "line-end"],
)
def test_tasks_that_contradict_themselves_are_refused(tmp_path: Path, line: str, code: str) -> None:
    assert problems(tmp_path, "tasks", line) == [(code, 2)]


@pytest.mark.parametrize(
    ("rows", "line", "key"),
    [
        ("tests = 3\nfailures = 4", 3, "failures"),
        ('mode = "sequential"\nlead = 8\ncap = 7', 3, "lead"),
        ('language = "english please"', 2, "language"),
        ('language = ""', 2, "language"),
        ('question = "a\\u0000b"', 2, "question"),
        ('contact = "a\\u202eb"', 2, "contact"),
    ],
    ids=["failures", "lead", "no-tag", "no-language", "nul", "direction"],
)
def test_settings_that_contradict_each_other_are_refused(rows: str, line: int, key: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_campaign(f'name = "x"\n{rows}\n'.encode())
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("campaign-settings", line)
    assert key in problem.found


@pytest.mark.parametrize(
    "rows",
    [
        "tests = 0\nfailures = 4",
        'mode = "paper"\nlead = 9',
        *(
            f'language = "{tag}"'
            for tag in ("en", "de-CH-1996", "zh-Hant-TW", "es-419", "de-x-dialect", "fa")
        ),
    ],
)
def test_settings_that_may_stand_together_are_read(rows: str) -> None:
    assert parse_campaign(f'name = "x"\n{rows}\n'.encode()).name == "x"


def test_a_new_campaign_can_be_read() -> None:
    assert parse_campaign(new_campaign("x")).question


def test_the_page_has_every_setting_with_its_default() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "campaign.md"
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", page.read_text("utf-8"), re.MULTILINE)
    found = {name: default.strip() for name, default in rows if name in Settings.__struct_fields__}
    defaults = {
        field.name: json.dumps(field.default)
        for field in msgspec.structs.fields(Settings)
        if field.default is not msgspec.NODEFAULT
    }
    assert found == {"name": "", **defaults}


def test_a_new_campaign_is_the_defaults_but_for_its_consent() -> None:
    """Whoever removes a line of campaign.toml promises nothing else by it."""
    made = parse_campaign(new_campaign("x"))
    assert made == Settings(name="x", consent=made.consent)
    assert "paid" not in made.consent
