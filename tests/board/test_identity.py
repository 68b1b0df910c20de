"""Who is who: ties between teams, keys, ids that tell, and what each reader may see of it."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from boardlog import START, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.policy.identity import (
    Entrant,
    TieKind,
    key_digest,
    link_key,
    list_entrants,
    look_alike_evidence,
    mentions,
    name_evidence,
    resembles,
    same_people,
    script_evidence,
    tie_evidence,
)
from heldout.board.policy.names import without_fillers
from heldout.envelope.bundle import file_names, new_identity, open_key, seal
from heldout.envelope.keys import Form
from heldout.ids import SubmissionId

ACME = Entrant(
    submission="20261101-a",
    team="Acme Search",
    institution="Acme Corporation",
    paper="https://arxiv.org/abs/2005.00181v2",
    code="https://github.com/acme/ranker/tree/main",
    key="k1",
)
OTHER = Entrant(submission="20261102-b", team="Lighthouse", institution="Harbour University")
KINDS: tuple[TieKind, ...] = ("key", "paper", "code", "institution", "name")


def kinds(one: Entrant, *others: Entrant) -> list[str]:
    return [kind for kind, _ in same_people(one, others)]


def test_strangers_have_no_ties_and_nobody_is_tied_to_himself() -> None:
    assert kinds(ACME, OTHER, ACME, replace(ACME, submission="20261103-c")) == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"key": "k1"}, "key"),
        ({"paper": "http://www.arxiv.org/pdf/2005.00181.pdf"}, "paper"),
        ({"code": "https://GitHub.com/Acme/Ranker.git"}, "code"),
        (
            {"institution": "ACME corporation", "team": "The Acme Search group in Bonn"},
            "institution",
        ),
        ({"institution": "acme-corporation", "team": "Search by Jane Roe"}, "institution"),
        ({"team": "acme search"}, "name"),
        ({"team": "ACME Search", "institution": "AC"}, None),
        ({"team": "Acme Search", "institution": ""}, None),
    ],
)
def test_what_two_submissions_share_is_a_tie(change: Mapping[str, Any], kind: str | None) -> None:
    assert kinds(ACME, replace(OTHER, **change)) == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("one", "two", "found"),
    [
        ({"key": "", "paper": "", "code": ""}, {"key": ""}, []),
        (
            {"team": "Terrier", "institution": "University of Glasgow"},
            {"team": "Viola", "institution": "University of Glasgow"},
            [],
        ),
        (
            {"team": "Luyu Gao", "institution": "Carnegie Mellon University", "key": ""},
            {"team": "Luyu Gao and Zhuyun Dai", "institution": "CMU"},
            ["institution"],
        ),
    ],
    ids=["nothing known", "groups of one institution", "initials"],
)
def test_who_is_tied(one: dict[str, Any], two: dict[str, Any], found: list[str]) -> None:
    assert kinds(replace(ACME, **one), replace(OTHER, **two)) == found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("https://arxiv.org/abs/2010.08191", "http://arxiv.org/pdf/2010.08191v3.pdf"),
        (
            "https://doi.org/10.1145/3331184.3331303",
            "https://dl.acm.org/doi/abs/10.1145/3331184.3331303",
        ),
        ("https://github.com/A/B", "https://www.github.com/a/b/tree/main/x.py"),
        ("https://openreview.net/forum?id=xYz", "https://openreview.net/pdf?id=xYz"),
        ("https://aclanthology.org/2020.acl-1.pdf", "https://aclanthology.org/2020.acl-1/"),
    ],
)
def test_forms_of_one_address_are_one_work(one: str, two: str) -> None:
    assert link_key(one) == link_key(two) != ""


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("https://arxiv.org/abs/2010.08191", "https://arxiv.org/abs/2010.08192"),
        ("https://github.com/a/b", "https://github.com/a/c"),
        ("https://example.org/p?id=1", "https://example.org/p?id=2"),
    ],
)
def test_other_addresses_are_other_works(one: str, two: str) -> None:
    assert link_key(one) != link_key(two)


@pytest.mark.parametrize(
    "link",
    ["", "none", "javascript:alert(1)", "https://[", "https://github.com/acme", "https://a.org/"],
)
def test_a_bare_site_or_no_link_is_no_work(link: str) -> None:
    assert link_key(link) == ""


@given(st.text(max_size=80))
def test_any_text_has_a_link_key(text: str) -> None:
    assert isinstance(link_key(f"https://example.org/{text}"), str)


ADDRESSES = st.builds(
    "{}{}{}/{}{}".format,
    st.sampled_from(["https://", "HTTP://www."]),
    st.sampled_from(
        ["arxiv.org", "github.com", "openreview.net", "doi.org", "ΣA.example", "a.org"]
    ),
    st.sampled_from(["", ":443"]),
    st.lists(
        st.sampled_from(
            ["abs", "pdf", "a", "A", "Σ", "ß", "2005.00181", "10.1145", "x:Y", "forum"]
        ),
        max_size=3,
    ).map("/".join),
    st.sampled_from(["", "/", ".git", "v2", ".pdf", "?id=Ab", "?id=%41b", "?q=a/B", "#c"]),
)


@given(ADDRESSES, ADDRESSES)
def test_links_tie_whenever_they_lead_to_one_work(one: str, two: str) -> None:
    """Also where most addresses are told apart without taking them to pieces."""
    tied = kinds(replace(ACME, key="", code="", paper=one), replace(OTHER, paper=two))
    assert (tied == ["paper"]) == (link_key(one) == link_key(two) != "")


@pytest.mark.parametrize("form", ["age", "openssl"])
def test_one_key_for_two_submissions_has_one_digest(form: Form) -> None:
    organiser = new_identity(form)

    def digest(name: str, key: bytes | None) -> tuple[str, bytes]:
        sealed = seal(
            form,
            SubmissionId(name),
            runs={"eval": (".gz", b"x")},
            metadata=b"{}",
            recipients=[organiser.recipient],
            key=key,
        )
        blob = sealed.files[file_names(form, SubmissionId(name)).key]
        return key_digest(open_key(form, blob, [organiser.private])), sealed.key

    first, key = digest("20261101-a", None)
    assert digest("20261102-b", key)[0] == first
    assert digest("20261103-c", None)[0] != first
    assert key_digest(key.strip() + b"\r\n") == first
    assert key.decode().strip() not in first


@pytest.fixture
def board() -> BoardLog:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest("Acme Search"), "0.1")
    log.submit("20261102-b", make_manifest("Lantern", embargo_until=date(2027, 3, 1)), "0.2")
    log.receive("20261103-c")
    log.review("20261103-c", make_manifest("Waiting"))
    log.receive("20261104-d")
    return log


def test_who_is_under_embargo_or_undecided_is_hidden_until_the_day(board: BoardLog) -> None:
    def hidden(day: date) -> dict[str, bool]:
        found = list_entrants(board.history, day=day, keys={"20261101-a": "k"})
        return {entrant.team: entrant.hidden for entrant in found}

    start = {"Acme Search": False, "Lantern": True, "Waiting": True}
    assert hidden(START.date()) == start
    assert hidden(date(2027, 3, 1)) == {**start, "Lantern": False}
    assert [e.key for e in list_entrants(board.history, day=START.date(), keys={})] == [""] * 3


def test_a_name_given_up_is_still_known(board: BoardLog) -> None:
    board.amend("20261101-a", make_manifest("Acme Renamed", revision=2))
    found = list_entrants(board.history, day=START.date(), keys={})
    ours = [e.team for e in found if e.submission == "20261101-a"]
    assert ours == ["Acme Search", "Acme Renamed"]


def test_a_mended_name_is_not_held_against_its_own_team(board: BoardLog) -> None:
    board.submit("20261105-e", make_manifest("Harbour Laboratori"), "0.3")
    probe = replace(ACME, submission="20261201-x", team="Harbour Laboratory")

    def told(name: str) -> list[str]:
        others = list_entrants(board.history, day=START.date(), keys={"20261105-e": "k1"})
        one = replace(probe, team=name)
        ties = tie_evidence(one, others, kinds=("key",), reader="organiser")
        return [*look_alike_evidence(one, others, reader="organiser"), *ties]

    assert len(told("Harbour Laboratory")) == 2
    board.amend("20261105-e", make_manifest("Harbour Laboratory", revision=2))
    assert told("Harbour Laboratory") == []
    # Somebody else is still held to the name that was given up, and to the one in force.
    assert any("Laboratori" in text for text in told("Harbour Laborator"))
    assert any("Laboratory" in text for text in told("Harbour Laborator"))


def test_nobody_can_try_names_until_an_embargoed_team_answers(board: BoardLog) -> None:
    others = list_entrants(board.history, day=START.date(), keys={"20261102-b": "k", "x": "k"})
    probe = replace(ACME, submission="20261201-x", team="Lantem", key="k", code="", paper="")
    told = list(look_alike_evidence(probe, others, reader="organiser"))
    told += tie_evidence(probe, others, kinds=KINDS, reader="organiser")
    assert any("looks like" in text and "20261102-b" in text for text in told)
    assert any("same key" in text for text in told)
    assert list(look_alike_evidence(probe, others, reader="team")) == []
    assert list(tie_evidence(probe, others, kinds=KINDS, reader="team")) == []


def test_evidence_names_the_strange_character_and_the_submissions() -> None:
    probe = replace(ACME, submission="20261201-x", team="\u0410cme Search")
    (text,) = look_alike_evidence(probe, [ACME, OTHER], reader="team")
    assert "CYRILLIC CAPITAL LETTER A" in text
    assert "20261101-a" in text
    (text,) = script_evidence(probe.team)
    assert "U+0410" in text


def test_many_submissions_of_one_team_are_one_sentence() -> None:
    others = [replace(ACME, submission=f"20261101-{n}") for n in range(9)]
    probe = replace(OTHER, key="k1")
    (text,) = tie_evidence(probe, others, kinds=["key"], reader="organiser")
    assert "20261101-4 and 4 more" in text
    assert list(tie_evidence(probe, others, kinds=["paper"], reader="organiser")) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Team 1", "names no team"),
        ("KB team", "the board"),
        ("Acme", ""),
        ("\x1b[31m", "names no team"),
    ],
)
def test_a_name_that_does_not_do_is_explained(name: str, said: str) -> None:
    told = list(name_evidence(name, "team", reserved=["kb"]))
    assert (said in told[0]) if said else not told
    assert all(text.isprintable() for text in told)


@pytest.mark.parametrize(
    ("suffix", "team", "institution"),
    [
        ("acme-1", "Acme Search", ""),
        ("bertacmesearch", "Acme Search", ""),
        ("WATERL00-run", "Jimmy Lin", "University of Waterloo"),
        ("cmu", "Luyu Gao", "Carnegie Mellon University"),
        ("bcai-2", "Leonid Boytsov", "Bosch Center for AI"),
        ("rpradeep", "Ronak Pradeep, Jimmy Lin", ""),
        ("lin3", "Ronak Pradeep, Jimmy Lin", ""),
        ("HuaweiRun", "HuaweiPoissonLab", ""),
        ("vespabase", "Vespa.ai team", ""),
        ("elastik", "Elastic", ""),
    ],
)
def test_an_id_that_gives_the_team_away_is_told(suffix: str, team: str, institution: str) -> None:
    assert resembles(SubmissionId(f"20261120-{suffix}"), team, institution)


@pytest.mark.parametrize(
    ("suffix", "team", "institution"),
    [
        ("bert-large", "Acme Search Team", "University of Berlin"),
        ("k7f3q9", "Jimmy Lin", "University of Waterloo"),
        ("deep-ranking", "Deep Retrieval Lab", "Institute for Information Retrieval"),
        ("run-1", "Acme 1", ""),
        ("dense-a", "", ""),
    ],
)
def test_an_id_that_says_nothing_is_left_alone(suffix: str, team: str, institution: str) -> None:
    assert resembles(SubmissionId(f"20261120-{suffix}"), team, institution) is None


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, escapechar="\\")


@pytest.fixture(scope="module")
def rows(data: Callable[[str], Path]) -> list[dict[str, str]]:
    names = ("msmarco-doc-leaderboard", "msmarco-passage-leaderboard")
    return [row for name in names for row in _rows(data(f"leaderboards/{name}.csv"))]


@pytest.mark.real
def test_real_ids_tell_of_their_own_teams_more_than_of_others(rows: list[dict[str, str]]) -> None:
    known = [(SubmissionId(r["id"]), r["team"]) for r in rows if "-" in r["id"]]
    assert len(known) == 138
    assert sum(resembles(name, team) is not None for name, team in known) == 49
    other = [resembles(name, team) for (name, _), (_, team) in zip(known, known[50:], strict=False)]
    assert sum(found is not None for found in other) <= 2


@pytest.mark.real
def test_real_teams_with_one_paper_or_code_share_people(rows: list[dict[str, str]]) -> None:
    told: list[dict[str, Any]] = [
        {name: r[name] or "" for name in ("team", "paper", "code")} for r in rows
    ]
    entrants = [Entrant(submission=str(n), **one) for n, one in enumerate(told)]
    pairs = {
        tuple(sorted((one.team, other.team)))
        for n, one in enumerate(entrants)
        for _, other in same_people(one, entrants[:n])
    }
    assert all(_words(one) & _words(two) for one, two in pairs), pairs
    assert len(pairs) == 14


def _words(team: str) -> set[str]:
    return {word for word in without_fillers(team) if len(word) >= 3}


TEAM, INSTITUTION = "Rival Lab", "North Coast University"
PAPER, CODE = "https://arxiv.org/abs/2011.01234", "https://github.com/rival/ranker"


@pytest.mark.parametrize(
    "text",
    [
        "Which dataset, Rival Lab?", "rival lab: which dataset?", "Please ask RIVAL.",
        "Are you (the rivals) two groups?", "R\u0131val, which dataset?",
        "Write to someone@rival.example", "Is this the same group of North Coast University?",
        "Is NCU your only institution?", "See https://arxiv.org/pdf/2011.01234v2.",
        "The code at <https://github.com/rival/ranker.git> does not run",
    ],
)  # fmt: skip
def test_a_text_that_tells_the_team_is_found(text: str) -> None:
    assert mentions(text, TEAM, INSTITUTION, links=(PAPER, CODE))


@pytest.mark.parametrize(
    "text",
    [
        "Which dataset did you train on?", "Which group of the institute is this?",
        "Your lab has another entry; which university is it?", "two labels were on wrong queries",
        "See https://arxiv.org/abs/2011.09999 and https://github.com/other/ranker", "",
    ],
)  # fmt: skip
def test_a_text_that_tells_nobody_is_left_alone(text: str) -> None:
    assert mentions(text, TEAM, INSTITUTION, links=(PAPER, CODE, "")) is None


@pytest.mark.parametrize("team", ["Deep Search Team", "AI", "The 1", "\u533f\u540d"])
def test_a_name_of_nothing_but_common_words_is_found_as_it_stands(team: str) -> None:
    assert mentions(f"Dear {team.lower()}, which run is it?", team) == f'it says "{team}"'
    assert mentions("Which deep run is it?", team) is None


NAMES = st.text(st.characters(categories=["L", "Nd", "Zs"]), min_size=1, max_size=30)


@given(name=NAMES, before=st.sampled_from(["", "Dear ", "(of "]), after=st.sampled_from(["", "?"]))
def test_every_name_is_found_in_a_text_that_has_it(name: str, before: str, after: str) -> None:
    assert (mentions(f"{before}{name}{after}", name) is not None) == any(map(str.isalnum, name))
