"""The Atom feed: what RFC 4287 demands, every kind of news, nothing of an embargo."""

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import feedparser  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_boards import (
    AS_OF,
    BOARDS,
    OPENS,
    RULES,
    baseline,
    empty,
    facts,
    hostile,
    row,
    spec,
    standings,
)

from heldout.board.log.events import parse_time
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.site.exports import FEED, format_feed
from heldout.board.site.pages import render_board
from heldout.board.standings.standings import Row, Standings

ATOM = {"a": "http://www.w3.org/2005/Atom"}
UNTIL = date(2026, 3, 1)
SECRETS = {
    "team": "Kestrel Secret Team",
    "institution": "Kestrel Secret Institute",
    "description": "Kestrel Secret System",
    "paper": "https://kestrel-secret.example.org/paper",
    "code": "https://kestrel-secret.example.org/code",
    "training_data": "Kestrel secret clicks",
}


def feed(*rows: Row, **changes: Any) -> bytes:
    return format_feed([(standings(rows, **changes), spec())], spec(), facts())


def items(data: bytes) -> list[dict[str, str]]:
    """What each item says, by element; of its link the address, of its category the term."""
    found = []
    for entry in ET.fromstring(data).findall("a:entry", ATOM):  # noqa: S314 - our own output
        said = {e.tag.partition("}")[2]: e.text or "" for e in entry}
        link, category = entry.find("a:link", ATOM), entry.find("a:category", ATOM)
        assert link is not None
        assert category is not None
        author = entry.findtext("a:author/a:name", "", ATOM)
        found.append(
            said | {"link": link.attrib["href"], "kind": category.attrib["term"], "author": author}
        )
    return found


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_a_feed_that_rfc_4287_allows(name: str) -> None:
    data = format_feed([(BOARDS[name], RULES[name])], RULES[name], facts())
    root = ET.fromstring(data)  # noqa: S314 - our own output
    assert root.tag == "{http://www.w3.org/2005/Atom}feed"
    for element in (root, *root.findall("a:entry", ATOM)):
        for needed in ("id", "title", "updated"):
            assert len(element.findall(f"a:{needed}", ATOM)) == 1
        assert parse_time(element.findtext("a:updated", "", ATOM)) <= AS_OF
        assert element.findtext("a:id", "", ATOM).startswith("urn:uuid:")
        assert element.find("a:link[@rel='alternate']", ATOM) is not None
    assert root.findtext("a:author/a:name", "", ATOM)
    ids = [e.text for e in root.iterfind(".//a:id", ATOM)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", BOARDS)
def test_a_feed_reader_reads_the_same(name: str) -> None:
    data = format_feed([(BOARDS[name], RULES[name])], RULES[name], facts())
    read = feedparser.parse(data, response_headers={"content-type": "application/atom+xml"})
    assert not read.bozo
    assert read.version == "atom10"
    assert [e.id for e in read.entries] == [i["id"] for i in items(data)]
    assert [e.updated for e in read.entries] == [i["updated"] for i in items(data)]


def test_a_new_best_is_told_from_a_new_entry_and_a_baseline() -> None:
    rows = [baseline(), row("0.300", days=1), row("0.290", days=2), row("0.310", days=3)]
    assert [i["kind"] for i in items(feed(*rows))] == ["best", "entry", "best", "baseline"]


def test_an_item_says_what_how_good_and_where() -> None:
    item = items(feed(row("0.341", "0.352", days=20, description="A & B <i>")))[0]
    assert item["title"] == "New best: A & B <i>, 0.341"
    assert item["summary"].startswith("eval RR@10 0.341; full ranking; submitted on 21 Sep 2025")
    assert item["author"] == "Lighthouse Institute"
    assert item["link"].endswith("/leaderboard/entries/20250921-entry-020.html")


def test_a_correction_is_an_item_with_its_reason() -> None:
    errata = ((AS_OF, "3 judgments were repaired"), (AS_OF, "one more"))
    found = items(feed(row("0.4", days=1, errata=errata)))
    assert [i["kind"] for i in found] == ["correction", "correction", "best"]
    reasons = [i["summary"].partition(";")[0] for i in found[:2]]
    assert sorted(reasons) == ["3 judgments were repaired", "one more"]


def test_a_score_on_a_new_view_is_no_correction() -> None:
    errata = ((AS_OF, "labels by judges were added"),)
    first, _ = items(feed(row("0.4", days=1, errata=errata, added=(AS_OF,))))
    assert (first["kind"], first["title"].partition(":")[0]) == ("view", "Scored on a new view")


def test_an_embargoed_identity_is_never_in_the_feed() -> None:
    hidden = row(
        "0.4", days=1, embargoed=True, embargo_until=UNTIL, errata=((AS_OF, "repaired"),), **SECRETS
    )
    data = feed(baseline(), hidden)
    assert b"ecret" not in data
    assert items(data)[-2]["title"] == "New best: an anonymous entry, 0.4"
    assert not items(data)[-2]["author"]


def test_a_reveal_is_an_item_of_the_first_moment_of_its_day() -> None:
    first, second = items(feed(row("0.4", days=1, embargo_until=UNTIL, **SECRETS)))
    assert (first["kind"], first["updated"]) == ("reveal", "2026-03-01T00:00:00Z")
    assert first["title"] == "Revealed: Kestrel Secret System, 0.4"
    assert first["author"] == "Kestrel Secret Team"
    assert second["kind"] == "best"


def test_an_embargo_that_was_over_before_publication_reveals_nothing() -> None:
    shown = row("0.4", days=1, embargo_until=OPENS.date(), **SECRETS)
    assert [i["kind"] for i in items(feed(shown))] == ["best"]


def test_an_item_keeps_its_id_through_reveal_correction_and_removal_of_a_record() -> None:
    before = row("0.4", days=1, embargoed=True, embargo_until=UNTIL)
    after = row("0.3", days=1, embargo_until=UNTIL, errata=((AS_OF, "repaired"),))
    bar = row("0.35", days=0, id="earlier")
    ids = [{i["id"] for i in items(feed(bar, one))} for one in (before, after)]
    assert ids[0] < ids[1]


def test_the_feed_is_dated_by_its_newest_item_and_not_by_the_day_of_the_page() -> None:
    later = datetime(2026, 12, 24, tzinfo=UTC)
    one = row("0.4", days=1)
    assert feed(one) == feed(one, as_of=later)
    root = ET.fromstring(feed(one))  # noqa: S314 - our own output
    assert root.findtext("a:updated", "", ATOM) == items(feed(one))[0]["updated"]


def test_a_board_without_entries_has_a_feed_too() -> None:
    data = format_feed([(empty(), spec())], spec(), facts())
    assert [i["kind"] for i in items(data)] == ["baseline"]
    assert b"<updated>2025-09-01T00:00:00Z</updated>" in feed()


def test_an_entry_without_a_score_says_why() -> None:
    held = row("", days=1, scores={}, unranked=NOT_CLEAR)
    board = replace(standings([baseline()]), unranked=(held,))
    first = items(format_feed([(board, spec())], spec(), facts()))[0]
    assert first["title"] == "New entry: monoT5 over BM25 top 100"
    assert first["summary"].startswith("Not clearly above the best run that was sent; ")


def test_the_scores_of_a_one_shot_board_are_news_when_its_last_day_is_over() -> None:
    closes = date(2026, 3, 1)
    rules = msgspec.structs.replace(spec(), kind="one-shot", closes=closes)
    rows = (row("0.412", days=9), row("0.341", days=3), baseline())

    def read(day: int) -> list[dict[str, str]]:
        told = standings(rows, as_of=datetime(2026, 3, day, 12, tzinfo=UTC))
        return items(format_feed([(told, rules)], rules, facts()))

    assert "scores" not in [item["kind"] for item in read(1)]
    assert "best" not in [item["kind"] for item in read(2)]
    (item,) = [item for item in read(2) if item["kind"] == "scores"]
    assert item["updated"] == "2026-03-02T00:00:00Z"
    assert item["title"].startswith("Scores published: 2 entries, best ")
    assert item["title"].endswith(", 0.412")
    assert item["link"].endswith("index.html")
    assert item["author"] == ""
    assert [i["id"] for i in read(9)] == [i["id"] for i in read(2)]


def test_only_the_newest_hundred_are_kept() -> None:
    found = items(feed(*(row(f"0.{n + 100}", days=n) for n in range(150))))
    assert len(found) == 100
    assert found[0]["updated"] > found[-1]["updated"]
    assert all(a["updated"] >= b["updated"] for a, b in pairwise(found))


def test_without_a_home_links_are_relative_and_ids_stay() -> None:
    board: Standings = standings([row("0.4", days=1)])
    here = format_feed([(board, spec())], spec(), facts())
    away = format_feed([(board, spec())], spec(), facts(home=""))
    assert items(away)[0]["link"] == "entries/20250902-entry-001.html"
    assert items(away)[0]["id"] == items(here)[0]["id"]
    assert b'rel="self"' in here
    assert b'rel="self"' not in away


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_carried_as_text(team: str, words: str) -> None:
    data = feed(row("0.4", days=1, team=team, description=words, errata=((AS_OF, words),)))
    tags = {e.tag.partition("}")[2] for e in ET.fromstring(data).iter()}  # noqa: S314 - our own output
    assert tags <= {
        *("feed", "entry", "id", "title", "subtitle", "updated", "published", "author", "name"),
        *("category", "link", "summary"),
    }


def test_hostile_fields_add_no_element_and_no_link() -> None:
    data = format_feed([(hostile(), spec())], spec(), facts())
    links = {e.attrib["href"] for e in ET.fromstring(data).iterfind(".//a:link", ATOM)}  # noqa: S314 - our own output
    assert all(link.startswith("https://stdlib-docs.example.org/leaderboard/") for link in links)
    assert b"<script" not in data
    assert "\u202e".encode() not in data


def test_every_page_links_to_the_feed() -> None:
    files = render_board(standings([row("0.4", days=1)]), spec(), facts())
    assert files[f"leaderboard/{FEED}"].startswith(b"<?xml")
    for path, way in (("index.html", b""), ("entries/20250902-entry-001.html", b"../")):
        link = b'<link rel="alternate" type="application/atom+xml" href="' + way + b'feed.xml"'
        assert link in files[f"leaderboard/{path}"]
