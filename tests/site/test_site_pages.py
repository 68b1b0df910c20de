"""The pages: exactly their data, nothing injected, nothing of an embargo, every state."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from typing import Any, get_type_hints

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import meta
from sample_boards import (
    AS_OF,
    BOARDS,
    HOSTILE,
    RULES,
    baseline,
    busy,
    facts,
    hostile,
    row,
    spec,
    standings,
)

from heldout.board.efficiency import Efficiency
from heldout.board.event_fields import FIELDS
from heldout.board.events import KINDS
from heldout.board.spec import Baselines, Example
from heldout.board.standings import Row, Standings
from heldout.errors import SetupError
from heldout.site import render
from heldout.site.entries import HISTORY_WORDS, EntryPage, format_bibtex, make_entry_page
from heldout.site.pages import BoardPage, make_board_page
from heldout.site.render import STATIC, TEMPLATES, render_board
from heldout.site.rows import make_columns, make_row, public_rows

PAGES = (BoardPage, EntryPage)


class Document(HTMLParser):
    """What a parser finds in a page: elements with attributes, and text outside of scripts."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]

    @property
    def links(self) -> list[str]:
        return [a["href"] or "" for tag, a in self.elements if tag == "a" and "href" in a]


@pytest.fixture(scope="module")
def shown() -> Callable[[str], Document]:
    rendered = {
        name: render_board(BOARDS[name], RULES[name], facts())
        for name in ("busy", "hostile", "empty", "crowded")
    }

    def find(path: str) -> Document:
        name, _, rest = path.partition("/")
        return Document(rendered[name][f"leaderboard/{rest}"])

    return find


def render_page(page: BoardPage | EntryPage) -> Document:
    return Document(render._render(render._environment(jinja2), page))


def entry_page(one: Row) -> EntryPage:
    board, columns = standings([one]), make_columns(spec())
    rows = public_rows(board)
    return make_entry_page(rows[0], rows, columns, standings=board, spec=spec(), facts=facts())


def sources() -> dict[str, str]:
    names = ("base.html", "board.html", "entry.html", "macros.html", "ranking_trust.html")
    return {name: render._read("templates", name).decode() for name in names}


@pytest.mark.parametrize("page", PAGES)
def test_a_template_receives_exactly_its_page(page: type[BoardPage] | type[EntryPage]) -> None:
    environment = render._environment(jinja2)
    used: set[str] = set()
    macros = set(re.findall(r"macro (\w+)", sources()["macros.html"]))
    for name in (TEMPLATES[page], "base.html"):
        used |= meta.find_undeclared_variables(environment.parse(sources()[name]))
    assert used - macros == {field.name for field in fields(page)}


def _nested(page: type) -> Iterator[tuple[type, str]]:
    for hint in get_type_hints(page).values():
        for kind in (hint, *getattr(hint, "__args__", ())):
            if is_dataclass(kind) and isinstance(kind, type):
                yield from ((kind, field.name) for field in fields(kind))
                yield from _nested(kind)


@pytest.mark.parametrize("page", PAGES)
def test_no_field_of_a_page_goes_unread(page: type) -> None:
    text = "".join(sources().values())
    unread = {f"{kind.__name__}.{name}" for kind, name in _nested(page) if f".{name}" not in text}
    # `words` and `pieces` read them for the template.
    assert unread <= {"Embargo.before", "Embargo.due", "Column.measure"}


def test_only_the_charts_are_not_escaped() -> None:
    text = "".join(sources().values())
    assert re.findall(r"\S+\|safe", text) == ["figure.wide|safe", "figure.narrow|safe"]
    assert "autoescape" not in text


def test_the_policy_of_the_page_allows_no_inline_code(shown: Callable[[str], Document]) -> None:
    for path in ("busy/index.html", "hostile/entries/20251001-script.html"):
        document = shown(path)
        policy = next(a["content"] for t, a in document.elements if a.get("http-equiv"))
        assert policy is not None
        assert policy.startswith(
            "default-src 'none'; style-src 'self' file:; script-src 'self' file:"
        )
        assert "unsafe" not in policy
        names = {name for _, attributes in document.elements for name in attributes}
        assert "style" not in names
        assert not [name for name in names if name.startswith("on")]
        scripts = [a for tag, a in document.elements if tag == "script"]
        assert len(scripts) == 1
        assert str(scripts[0]["src"]).endswith("static/heldout.js")


def test_nothing_is_loaded_from_elsewhere(shown: Callable[[str], Document]) -> None:
    for tag, attributes in shown("busy/index.html").elements:
        for name in ("src", "xlink:href", "srcset", "data", "action"):
            assert not str(attributes.get(name, "")).startswith(("http", "//")), (tag, name)
        if tag == "link":
            assert str(attributes["href"]).startswith(
                ("static/", "data:image/svg+xml,", "feed.xml")
            )
    for name in STATIC:
        assert not re.search(
            rb"@import|url\(|https?://|fetch\(|eval\(", render._read("static", name)
        )


def test_links_of_participants_tell_nobody_where_they_stand(
    shown: Callable[[str], Document],
) -> None:
    elements = shown("busy/index.html").elements
    outside = [a for tag, a in elements if tag == "a" and str(a["href"]).startswith("http")]
    assert len(outside) > 10
    assert all(a["rel"] == "nofollow noopener noreferrer" for a in outside)


def _is_ours(link: str) -> bool:
    start = (
        "#",
        "entries/",
        "../",
        "leaderboard.",
        "feed.xml",
        "https://git.example.org",
        "https://stdlib",
    )
    return link.startswith(start)


def test_every_link_of_a_hostile_board_is_ours(shown: Callable[[str], Document]) -> None:
    board = shown("hostile/index.html")
    assert all(map(_is_ours, board.links)), [x for x in board.links if not _is_ours(x)]
    for name in HOSTILE:
        document = shown(f"hostile/entries/20251001-{name}.html")
        assert all(map(_is_ours, document.links)), document.links


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_makes_no_element(name: str) -> None:
    harmless, attack = _twice(HOSTILE[name])
    assert attack.skeleton == harmless.skeleton
    if name in ("script", "image", "closing", "template", "svg", "css"):
        assert HOSTILE[name] in attack.text


def test_a_hostile_board_has_the_elements_of_a_harmless_one(
    shown: Callable[[str], Document],
) -> None:
    board = hostile()
    rows = [
        replace(r, team="x", institution="x", description="x", type=f"t{n}")
        for n, r in enumerate(board.rows)
    ]
    harmless = render_board(replace(board, rows=tuple(rows)), spec(), facts())
    allowed = {tag for tag, _ in Document(harmless["leaderboard/index.html"]).elements}
    attacked = [tag for tag, _ in shown("hostile/index.html").elements]
    assert set(attacked) == allowed
    assert attacked.count("script") == attacked.count("h1") == 1
    assert "img" not in attacked


def _twice(text: str) -> tuple[Document, Document]:
    """The page of an entry, and the same with somebody's text in every field."""
    documents = []
    for words in ("x", f"x{text}"):
        texts = dict.fromkeys(
            ("team", "institution", "description", "training_data", "type"), words
        )
        one = row("0.4", "0.5", days=1, **texts, findings=(words,), errata=((AS_OF, words),))
        documents.append(render_page(entry_page(replace(one, files={words: words}))))
    return documents[0], documents[1]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_no_text_changes_the_page_of_an_entry(text: str) -> None:
    harmless, attack = _twice(text)
    assert attack.skeleton == harmless.skeleton


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(codec=None, exclude_categories=()), min_size=1))
def test_no_text_changes_the_page_of_a_board(text: str) -> None:
    documents = []
    for words in ("x", f"x{text}"):
        texts = dict.fromkeys(("team", "institution", "description", "type"), words)
        board = standings([baseline(**texts, code=words)])
        rules = spec(title=words, task=words, submit=words, contact=words)
        example = Example(query=words, document=words, text=words)
        page = make_board_page(board, rules, facts(example=example, repository=words))
        documents.append(render_page(page))
    assert documents[1].skeleton == documents[0].skeleton


HIDDEN = "Vexillology"


def _secretive(until: date, **changes: Any) -> Standings:
    """An embargoed row that still holds its identity: the page withholds it all the same."""
    texts = dict.fromkeys(("team", "institution", "description", "training_data"), HIDDEN)
    links = dict.fromkeys(("paper", "code"), f"https://{HIDDEN}.example/")
    hidden = row(
        *("0.500", "0.510"),
        days=400,
        id="20261006-x7f3",
        embargoed=True,
        embargo_until=until,
        findings=(HIDDEN,),
        **texts,
        **links,
        **changes,
    )
    return standings([baseline(), hidden, row("0.4", "0.41", days=3), row("0.3", "0.31", days=9)])


def test_an_embargo_is_kept_in_every_file() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    assert not [path for path, data in files.items() if HIDDEN.lower() in data.decode().lower()]
    document = Document(files["leaderboard/index.html"])
    assert "Anonymous until 20 May 2027" in document.text
    assert "0.500" in document.text
    entry = Document(files["leaderboard/entries/20261006-x7f3.html"])
    assert "Team, description, paper and code are withheld; score" in entry.text
    assert "{{Anonymous}}" in entry.text


def test_a_reveal_that_is_due_is_told() -> None:
    board = _secretive(date(2026, 11, 18), reveal_due=True)
    files = render_board(board, spec(), facts())
    text = Document(files["leaderboard/index.html"]).text
    assert "Anonymous; reveal due since 18 Nov 2026" in text
    assert (
        "until the organisers rebuild"
        in Document(files["leaderboard/entries/20261006-x7f3.html"]).text
    )


def test_the_script_knows_the_day_of_a_reveal() -> None:
    files = render_board(_secretive(date(2027, 5, 20)), spec(), facts())
    for path in ("index.html", "entries/20261006-x7f3.html"):
        elements = Document(files[f"leaderboard/{path}"]).elements
        marked = [a for _, a in elements if "data-embargo-until" in a]
        assert marked
        assert all(a["data-embargo-until"] == "2027-05-20" for a in marked)
        assert all(a["data-after"] == "Anonymous; reveal due since 20 May 2027" for a in marked)


def test_an_embargo_without_a_day_is_anonymous() -> None:
    board = standings([row("0.4", days=1, embargoed=True, description=HIDDEN)])
    embargo = make_board_page(board, spec(), facts()).rows[0].embargo
    assert embargo is not None
    assert embargo.words == "Anonymous"


def test_the_empty_board_shows_baseline_day_and_commands(shown: Callable[[str], Document]) -> None:
    document = shown("empty/index.html")
    assert "No entries yet" in document.text
    assert document.text.count("heldout submit ID") == 2
    assert not [tag for tag, _ in document.elements if tag == "figure"]


def test_a_board_without_any_row_has_no_table() -> None:
    document = render_page(make_board_page(standings([]), spec(), facts()))
    assert not [tag for tag, _ in document.elements if tag == "table"]


def test_a_baseline_has_no_rank_and_no_trophy() -> None:
    page = make_board_page(busy(), spec(), facts())
    base = next(r for r in page.rows if r.baseline)
    assert base.rank is None
    assert not base.trophy
    document = render_page(page)
    assert document.text.count("\u2013no rank") == 2
    trophies = sum(r.trophy for r in page.rows)
    assert document.text.count(" best when submitted") == trophies + 1  # and the key


def test_ranks_and_order_are_those_of_the_standings() -> None:
    page = make_board_page(busy(), spec(), facts())
    assert [r.id for r in page.rows] == [r.id for r in busy().rows]
    assert [r.rank for r in page.rows if r.rank] == list(range(1, 45))


def test_a_rank_range_is_shown_only_where_it_is_given() -> None:
    with_range = standings([row("0.4", days=1, rank_low=1, rank_high=3), baseline()])
    text = "".join(render_page(make_board_page(with_range, spec(), facts())).text.split())
    assert "range1\u20133" in text
    assert "range1\u2013" not in render_page(make_board_page(busy(), spec(), facts())).text


def heads(document: Document) -> list[str | None]:
    """Classes of the headings; those of costs are in test_site_costs."""
    names = [a.get("class") for tag, a in document.elements if a.get("role") == "columnheader"]
    return [name for name in names if not (name or "").startswith("cost")]


def score_labels(document: Document) -> set[str | None]:
    labelled = [a for _, a in document.elements if "data-label" in a]
    return {a["data-label"] for a in labelled if a["class"] == "score"}


def test_a_column_that_is_empty_in_every_row_is_not_shown(
    shown: Callable[[str], Document],
) -> None:
    score = "score official"
    assert heads(shown("busy/index.html")) == [
        *("rank", score, "system", "links", "score", "type", "date")
    ]
    assert heads(shown("crowded/index.html")) == [
        *("rank", score, "system", "score", "score", "type", "date")
    ]
    bare = standings([row("0.4", days=1, type=""), row("0.3", days=2, type="")])
    document = render_page(make_board_page(bare, spec(), facts()))
    assert heads(document) == ["rank", score, "system", "date"]
    assert "dev RR@10" not in document.text


@pytest.mark.parametrize("name", ["paper", "code"])
def test_the_column_of_links_is_named_for_what_it_holds(name: str) -> None:
    link: Any = {name: "https://papers.example.org/1"}
    page = make_board_page(standings([row("0.4", days=1, **link), baseline()]), spec(), facts())
    assert page.links == name
    assert f"{name.capitalize()}\n" in render_page(page).text


def test_one_query_set_is_named_once_and_not_in_every_column(
    shown: Callable[[str], Document],
) -> None:
    document = shown("crowded/index.html")
    assert score_labels(document) == {"P@5", "RBP(p=0.5,max_rel=2)"}
    assert document.text.count("(eval)") == 1
    assert "eval nDCG@10" not in document.text
    both = shown("busy/index.html")
    assert score_labels(both) == {"dev RR@10"}


def test_a_wide_measure_may_break_between_its_parts() -> None:
    pieces = [column.pieces for column in make_columns(RULES["crowded"])]
    assert pieces == [("nDCG@10",), ("P@5",), ("RBP", "(p=0.5,", "max_rel=2)")]


@given(st.text("R(p=0.5,) @", min_size=1))
def test_the_pieces_of_a_measure_are_the_measure(text: str) -> None:
    column = replace(make_columns(spec())[0], measure=text)
    assert "".join(column.pieces) == text


def test_progress_is_linked_where_there_is_any(shown: Callable[[str], Document]) -> None:
    assert "#progress" in shown("busy/index.html").links
    assert "#progress" not in shown("empty/index.html").links


def test_the_key_speaks_of_baselines_only_where_there_are_some(
    shown: Callable[[str], Document],
) -> None:
    assert "baselines too" in shown("busy/index.html").text
    document = shown("crowded/index.html")
    assert "Strictly above everything submitted before it." in document.text
    assert "A dash is a baseline" not in document.text
    free = spec(baselines=Baselines(bar=False))
    page = make_board_page(busy(), free, facts())
    assert "baselines too" not in render_page(page).text


def test_sections_come_in_their_order(shown: Callable[[str], Document]) -> None:
    ids = [a["id"] for tag, a in shown("busy/index.html").elements if tag == "h2"]
    assert ids == [
        *("standing-title", "table-title", "progress"),
        *("take-part", "rules", "trust", "downloads"),
    ]


@pytest.mark.parametrize("path", ["busy/index.html", "empty/index.html", "hostile/index.html"])
def test_ids_are_unique_and_fragments_exist(shown: Callable[[str], Document], path: str) -> None:
    document = shown(path)
    ids = [a["id"] for _, a in document.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(ids)


def test_every_page_that_is_linked_is_made() -> None:
    files = render_board(busy(200), spec(), facts())
    document = Document(files["leaderboard/index.html"])
    linked = {link for link in document.links if link.startswith(("entries/", "leaderboard."))}
    assert {f"leaderboard/{link}" for link in linked} <= set(files)
    assert len([link for link in linked if link.startswith("entries/")]) == 202


def test_the_page_of_an_entry_tells_its_story() -> None:
    when = datetime(2026, 11, 19, 8, 30, tzinfo=UTC)
    one = row(
        *("0.403", "0.405"),
        days=3,
        findings=("near-variant",),
        errata=((when, "Scored again."),),
        paper="https://papers.example.org/1",
    )
    text = render_page(entry_page(one)).text
    for words in (
        *("Rank 1 of 1", "0.403", "mean over 1,050 queries", "near-variant", "Scored again."),
        *("19 Nov 2026", "Sealed files received", "4 Sep 2025, 12:00 UTC"),
        *(one.id, one.events[0][2], next(iter(one.files.values()))),
        "https://stdlib-docs.example.org/leaderboard/entries/" + one.id + ".html",
    ):
        assert words in text


def test_the_history_says_what_an_approval_told() -> None:
    def said(**changes: Any) -> str:
        rules = spec(**changes)
        one = row("0.403", days=3, **held)
        board = standings([one])
        shown = public_rows(board)
        made = make_entry_page(
            shown[0], shown, make_columns(rules), standings=board, spec=rules, facts=facts()
        )
        return next(m.words for m in made.history if m.words.startswith("Approved"))

    held: dict[str, Any] = {}
    assert said() == "Approved and published; the score released"
    later = "Approved and published; all scores are told after 31 Mar 2027"
    assert said(kind="one-shot") == later
    assert said(kind="one-shot", closes=date(2025, 9, 2)).endswith("the score released")
    held = {"not_above": {"eval": "not above 0.412"}}
    assert said() == "Approved and published; no score released"


def test_a_long_description_is_cut_in_table_and_sentences_and_whole_on_its_own_page() -> None:
    long = "LongName " * 200 + "End"
    one = row("0.403", days=3, description=long, efficiency=Efficiency(parameters=7))
    others = [
        row("0.3", days=i, id=f"o{i}", efficiency=Efficiency(parameters=10 * i)) for i in (4, 5)
    ]
    pages = render_board(standings([one, *others]), spec(), facts())
    index = pages["leaderboard/index.html"].decode()
    assert "LongName LongName" in index
    assert "LongName " * 14 not in index
    assert "Pareto" in index
    assert long in pages[f"leaderboard/entries/{one.id}.html"].decode()
    assert long in json.loads(pages["leaderboard/leaderboard.json"])["rows"][0]["description"]


def test_the_rank_then_is_told_where_it_differs() -> None:
    rows = [row("0.3", days=1, id="a"), row("0.35", days=2, id="b"), row("0.4", days=3, id="c")]
    board, columns = standings(rows), make_columns(spec())
    shown_rows = public_rows(board)
    places = {
        r.id: make_entry_page(
            r, shown_rows, columns, standings=board, spec=spec(), facts=facts()
        ).place
        for r in shown_rows
    }
    assert places == {
        "a": "Rank 3 of 3; rank 1 of 1 when it was submitted",
        "b": "Rank 2 of 3; rank 1 of 2 when it was submitted",
        "c": "Rank 1 of 3",
    }


def test_without_an_address_there_is_no_permalink() -> None:
    board, columns = standings([row("0.4", days=1)]), make_columns(spec())
    rows = public_rows(board)
    made = make_entry_page(
        rows[0], rows, columns, standings=board, spec=spec(), facts=facts(home="")
    )
    assert made.permalink == ""
    assert "url" not in made.bibtex


def test_every_kind_of_event_has_words() -> None:
    about_board = {kind for kind, fields in FIELDS.items() if fields.about_board}
    assert set(HISTORY_WORDS) == set(KINDS) - about_board


@given(st.text())
def test_bibtex_braces_balance_and_nothing_escapes_them(text: str) -> None:
    one = row("0.4", days=1, team=text, description=text)
    line = make_row(public_rows(standings([one]))[0], make_columns(spec()))
    made = format_bibtex(line, board=text.replace("\n", " "), link="https://a.example/%7D}")
    depth, low = 0, 1
    for character in made[made.index("{") :]:
        depth += (character == "{") - (character == "}")
        low = min(low, depth)
        assert depth > 0 or character == "}"
    assert depth == low == 0


def test_a_strange_id_of_a_baseline_stays_in_its_folder() -> None:
    files = render_board(standings([baseline(id="../../x y%")]), spec(), facts())
    path = "leaderboard/entries/..%2F..%2Fx%20y%25.html"
    assert path in files
    links = Document(files["leaderboard/index.html"]).links
    assert "entries/..%252F..%252Fx%2520y%2525.html" in links


@pytest.mark.parametrize("module", ["jinja2", "vl_convert"])
def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SetupError, match=re.escape("pip install 'heldout[site]'")):
        render_board(busy(4), spec(), facts())
