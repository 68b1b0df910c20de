"""Personal links: with `links = "personal"` nobody comes in another's name."""

import csv
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import judging_stage
import pytest
from click.testing import CliRunner, Result
from judging_stage import Stage, Stages, fields_of, words_of
from organiser_stage import Organiser

from heldout.cli.program import main
from heldout.judging.platforms.links import personal_link

stages = judging_stage.stages


def fields_in(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


@pytest.fixture
def personal(stages: Stages) -> Stage:
    return stages.make(links="personal")


def link_of(one: Stage, worker: str, key: bytes | None = None) -> str:
    secret = one.campaign.key if key is None else key
    return personal_link("http://judging.example/", one.campaign.code, key=secret, worker=worker)


def refused(one: Stage, fields: dict[str, str]) -> bool:
    """Whether neither the first page nor its form lets somebody in."""
    pages = [
        one.client.get(one.link, params=fields),
        one.client.post(f"{one.link}/consent", data={**fields, "batch": "1"}),
    ]
    assert {page.status_code for page in pages} <= {200, 303, 403}
    told = ["link that was sent to you" in words_of(page) for page in pages]
    assert told == [page.status_code == 403 for page in pages]
    assert told[0] == told[1]
    return all(told)


def test_who_has_a_personal_link_judges_with_it(personal: Stage) -> None:
    fields = fields_in(link_of(personal, "ada & söhne"))
    assert fields["worker"] == "ada & söhne"
    page = personal.client.get(personal.link, params=fields)
    assert "I agree, begin" in words_of(page)
    assert "Your worker id" not in words_of(page)
    begun = personal.client.post(f"{personal.link}/consent", data=fields_of(page))
    root = begun.headers["location"].rpartition("/item/")[0]
    personal.answer(root, 1)
    assert "Continue your task" in words_of(personal.client.get(personal.link, params=fields))
    personal.finish(root, 4)
    again = personal.client.get(personal.link, params=fields)
    assert "Your last task: 4 of 4 answered" in words_of(again)


def test_an_id_without_a_signature_is_refused(personal: Stage) -> None:
    for fields in ({"worker": "ada"}, {}, {"worker": "ada", "sig": ""}, {"sig": "x"}):
        assert refused(personal, fields)
    assert personal.judgments() == ()


def test_a_signature_forged_with_another_key_is_refused(personal: Stage, stages: Stages) -> None:
    assert refused(personal, fields_in(link_of(personal, "ada", bytes(range(32)))))
    elsewhere = stages.make(links="personal")
    assert refused(personal, fields_in(link_of(elsewhere, "ada")))


def test_a_signature_swapped_to_another_worker_is_refused(personal: Stage) -> None:
    mine = fields_in(link_of(personal, "bob"))
    assert not refused(personal, mine)
    assert refused(personal, mine | {"worker": "ada"})
    assert refused(personal, mine | {"worker": "Bob"})
    assert refused(personal, mine | {"worker": ""})


@pytest.mark.parametrize("change", ["cut", "longer", "case", "padded", "unicode"])
def test_a_truncated_or_changed_signature_is_refused(personal: Stage, change: str) -> None:
    fields = fields_in(link_of(personal, "ada"))
    sig = fields["sig"]
    changed = {
        "cut": sig[:-1],
        "longer": sig + "A",
        "case": sig.swapcase(),
        "padded": sig + "==",
        "unicode": sig[:-1] + "ä",
    }
    assert refused(personal, fields | {"sig": changed[change]})


def test_an_assignment_token_is_no_signature(personal: Stage) -> None:
    """What the pages give away themselves opens no other worker's place."""
    fields = fields_in(link_of(personal, "ada"))
    page = personal.client.get(personal.link, params=fields)
    begun = personal.client.post(f"{personal.link}/consent", data=fields_of(page))
    token = begun.headers["location"].split("/")[2]
    assert refused(personal, {"worker": "bob", "sig": token})


def test_open_links_need_no_signature_and_ignore_one(stages: Stages) -> None:
    one = stages.make()
    assert not refused(one, {"worker": "ada", "sig": "nonsense"})
    assert "Your worker id" in words_of(one.client.get(one.link))


def test_the_organiser_reads_where_the_links_are(stages: Stages, personal: Stage) -> None:
    organiser = Organiser(personal, stages.portal)
    organiser.sign_in()
    words = organiser.words("/admin")
    assert "heldout prefer links" in words
    assert personal.link not in words


def write_links(one: Stage, *arguments: object) -> Result:
    url = str(one.database.engine.url)
    command = ["prefer", "links", "--root", "http://judging.example", "--database", url]
    return CliRunner().invoke(main, [*command, *map(str, arguments)])


def test_written_links_let_in_each_worker_and_stay_the_same(
    personal: Stage, tmp_path: Path
) -> None:
    out = tmp_path / "links.csv"
    done = write_links(personal, "--count", 3, "--out", out)
    assert done.exit_code == 0, done.output
    assert "3 links" in done.output
    assert out.stat().st_mode & 0o777 == 0o600
    first = out.read_text()
    rows = list(csv.DictReader(first.splitlines()))
    assert [row["worker"] for row in rows] == ["w1", "w2", "w3"]
    for row in rows:
        assert not refused(personal, fields_in(row["link"]))
    write_links(personal, "--count", 4, "--out", out)
    assert out.read_text().startswith(first)


def test_links_are_written_for_the_ids_of_a_file(personal: Stage, tmp_path: Path) -> None:
    names, out = tmp_path / "ids.txt", tmp_path / "links.csv"
    names.write_text("=ada()\n\n=ada()\nbob@example.org\n")
    assert write_links(personal, "--workers", names, "--out", out).exit_code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert rows[0]["worker"].startswith("'=")
    assert [fields_in(row["link"])["worker"] for row in rows] == ["=ada()", "bob@example.org"]
    for wrong in ("x" * 256, "a\u202eb\n", "\n"):
        names.write_text(wrong)
        done = write_links(personal, "--workers", names, "--out", out)
        assert done.exit_code != 0
        assert "worker-id" in done.output
        assert "Traceback" not in done.output


def test_links_need_to_be_told_for_whom_and_where(personal: Stage, stages: Stages) -> None:
    assert "whose links?" in write_links(personal).output
    assert "whose links?" in write_links(personal, "--count", 2, "--workers", __file__).output
    assert write_links(personal, "--count", 2, "--root", "judging.example").exit_code == 2
    one = stages.make()
    told = write_links(one, "--count", 1, "--out", stages.folder / "l.csv").output
    assert "without a signature are let in too" in " ".join(told.split())
