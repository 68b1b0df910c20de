"""The generated sentences: standing, facts, rules, what a chart shows."""

import html
import re
from datetime import date, timedelta
from typing import Any

from jinja2.filters import do_striptags
from sample_boards import AS_OF, OPENS, baseline, busy, facts, measured, row, spec, standings

from heldout.board.log.final import Figures, Measured, Ranges
from heldout.board.rules.spec import Policy, Registration, View
from heldout.board.site.figures import make_figures
from heldout.board.site.pages import make_board_page, render_board, say_standing
from heldout.board.site.rows import TableRow, make_columns, public_rows
from heldout.board.site.sections import list_rules
from heldout.board.standings.standings import Row, Standings


def say(rows: list[Row], **changes: Any) -> str:
    columns = make_columns(spec())
    board = standings(rows)
    lines = [TableRow(r, columns) for r in public_rows(board)]
    days = {"opens": OPENS.date(), "today": AS_OF.date()} | changes
    return say_standing(lines, columns[0], **days).striptags()


def test_nobody_yet() -> None:
    assert "baseline BM25, k1 0.9, b 0.4 stands at 0.273 on eval RR@10" in say([baseline()])
    assert say([]) == "No entries yet; the board opened on 1 Sep 2025."
    assert say([], today=date(2025, 8, 1)).endswith("the board opens on 1 Sep 2025.")


def test_one_entry_is_too_few_to_compare() -> None:
    text = say([baseline(), row("0.341", days=3)])
    assert text.endswith("is the only entry, with 0.341 on eval RR@10: too few to compare.")


def test_an_entry_below_the_baseline_is_told_so() -> None:
    text = say([baseline("0.273"), row("0.273", days=3)])
    assert text.endswith("The baseline BM25, k1 0.9, b 0.4 has not been beaten: 0.273.")


def test_the_leader_and_the_gap() -> None:
    rows = [row("0.403", days=1, description="A"), row("0.411", days=2, description="B")]
    assert say(rows).startswith("B leads with 0.411 on eval RR@10, 0.008 ahead of A. Whether")


def test_a_tie_goes_to_the_earlier() -> None:
    rows = [row("0.403", days=5, description="A"), row("0.403", days=2, description="B")]
    assert say(rows).startswith("B leads with 0.403 on eval RR@10; A has the same, later.")


def test_an_anonymous_leader_has_no_name() -> None:
    secret = row("0.5", days=1, embargoed=True, embargo_until=date(2027, 5, 20), description="S")
    text = say([secret, row("0.4", days=2, description="B")])
    assert text.startswith("An anonymous entry leads with 0.5 on eval RR@10, 0.1 ahead of B.")


def _ranged(*ranges: tuple[int, int]) -> list[Row]:
    return [
        row(f"0.{500 - n}", days=n, description=f"S{n}", rank_low=low, rank_high=high)
        for n, (low, high) in enumerate(ranges, 1)
    ]


def _measured(rows: list[Row], *alike: tuple[int, int]) -> Measured:
    """What was published of rows with ranges; `alike` are pairs of their places."""
    compared = [r for r in rows if r.rank_low is not None]
    ids = tuple(r.id for r in compared)
    ranges = Ranges(
        low=tuple(r.rank_low or 0 for r in compared),
        high=tuple(r.rank_high or 0 for r in compared),
        level=0.95,
        flips=10,
        pairs=1,
    )
    pairs = tuple((ids[one], ids[other]) for one, other in alike)
    return measured(*ids, figures=Figures(queries=100, ranges=ranges, alike=pairs))


def _worth(*ranges: tuple[int, int], alike: tuple[tuple[int, int], ...] = ()) -> str:
    rows = _ranged(*ranges)
    return say(rows, measured=_measured(rows, *alike)).partition("ahead of S2.")[2].strip()


def test_rank_ranges_say_which_differences_were_tested() -> None:
    assert _worth((1, 1), (2, 2)) == "The lead over the only other entry is significant."
    assert _worth((1, 2), (1, 2)) == "The difference to S2 is not significant."
    assert _worth((1, 3), (1, 3), (1, 3)) == "The differences to S2 and S3 are not significant."
    assert "lead over 5 of the 5 compared entries is not" in _worth(*[(1, 6)] * 6)


def test_of_a_pair_that_was_not_compared_nothing_is_said_but_that() -> None:
    like = "S3 is nearly the same as the leader, so not compared with it."
    alone = _worth((1, 2), (2, 3), (1, 3), alike=((0, 2),))
    assert alone == f"The lead over the only compared entry is significant. {like}"
    assert _worth(*[(1, 3)] * 3, alike=((0, 2),)).endswith(f"S2 is not significant. {like}")
    alone = _worth((1, 2), (1, 2), alike=((0, 1),))
    assert alone == "S2 is nearly the same as the leader, so not compared with it."


def test_a_leader_that_was_not_compared_is_told_so() -> None:
    rows = [row("0.6", days=9, description="Late"), *_ranged((1, 2), (1, 2))]
    assert say(rows, measured=_measured(rows)).endswith("so its lead was not tested.")


def test_facts_of_a_board() -> None:
    page = make_board_page(busy(), spec(), facts())
    assert page.facts == (
        "Open until 31 Mar 2027",
        "44 entries, 10 teams, 2 anonymous",
        "1,050 held-out queries",
    )
    assert page.waiting == 1


def _first_fact(board: Standings, **changes: Any) -> str:
    return make_board_page(board, spec(**changes), facts()).facts[0]


def test_when_a_board_is_open() -> None:
    board = standings([baseline()])
    assert _first_fact(board, closes=None) == "Open since 1 Sep 2025"
    assert _first_fact(board, closes=AS_OF.date()) == "Open until 20 Nov 2026"
    assert _first_fact(board, closes=AS_OF.date() - timedelta(days=1)) == "Closed since 19 Nov 2026"
    assert _first_fact(board, opens=AS_OF.date() + timedelta(days=1)) == "Opens on 21 Nov 2026"


def _rule(about: str, **changes: Any) -> str:
    return next((r.says for r in list_rules(spec(**changes)) if r.about == about), "")


def test_rules_follow_board_toml() -> None:
    policy = Policy(quota=1, quota_days=7, embargo_months=0, id_days=1, off=("quota", "leak"))
    assert _rule("How often") == "At most 2 submissions of a team within 30 days."
    assert _rule("How often", policy=policy) == "At most 1 submission of a team within 7 days."
    assert _rule("Staying anonymous", policy=policy) == "Not possible on this board."
    assert _rule("Staying anonymous").startswith("For at most 9 months")
    assert _rule("Dates", policy=policy).endswith("may differ by 1 day.")
    assert _rule("Not applied here", policy=policy) == "leak, quota"
    assert _rule("Not applied here") == ""
    assert "sealed with age to 1" in _rule("Sealing", recipients=("k",))


def test_a_rule_that_changed_says_since_when() -> None:
    days = [date(2026, 9, n) for n in (1, 5, 9, 12)]
    quotas = (2, 1, 1, 1)
    given = zip(days, quotas, strict=True)
    versions = [(day, spec(policy=Policy(quota=quota), title=f"{day}")) for day, quota in given]
    said = {rule.about: rule.says for rule in list_rules(versions[-1][1], versions)}
    assert said["How often"].endswith("within 30 days. In force since 5 Sep 2026.")
    assert [about for about, says in said.items() if "In force" in says] == ["How often"]
    assert list_rules(versions[-1][1], versions[1:]) == list_rules(versions[-1][1])
    back = [*versions, (date(2026, 9, 20), versions[0][1])]
    rules = {rule.about: rule.says for rule in list_rules(back[-1][1], back)}
    assert "In force since 20 Sep 2026." in rules["How often"]


def test_a_one_shot_board_has_no_records() -> None:
    rows = [row(f"0.{n}", "0.5", days=n) for n in range(1, 5)]
    board, columns = standings(rows), make_columns(spec())
    figures = make_figures(board, public_rows(board), columns, one_by_one=False)
    assert [figure.key for figure in figures] == ["dev-and-official"]
    assert figures[0].marks == (("circle", "entry"),)


def test_the_rules_of_a_one_shot_board_do_not_contradict_each_other() -> None:
    one_shot = {name: _rule(name, kind="one-shot") for name in ("How often", "Ranking")}
    assert "until 31 Mar 2027. The scores of all entries are shown after" in one_shot["How often"]
    assert "A trophy marks" not in one_shot["Ranking"]
    assert "There are no trophies" in one_shot["Ranking"]
    assert "Date and type are shown meanwhile" in _rule("Staying anonymous", kind="one-shot")
    assert "A trophy marks" in _rule("Ranking")
    assert "Score, date and type are shown meanwhile" in _rule("Staying anonymous")


def _front(**changes: Any) -> str:
    page = render_board(busy(), spec(**changes), facts())["leaderboard/index.html"].decode()
    return html.unescape(page)


def _commands(page: str) -> list[str]:
    """What the section on taking part has a participant type."""
    return re.findall(r'<li><code class="command">(.*?)</code>', page[page.index("take-part") :])


def test_downloads_are_the_public_files() -> None:
    page = _front()
    assert re.findall('<dt><a href="(.*?)"', page[page.index('id="downloads"') :]) == [
        "leaderboard.csv",
        "leaderboard.json",
        "feed.xml",
        "../queries/dev.tsv",
        "../qrels/dev.qrels",
        "../queries/eval.tsv",
        "../candidates/eval.tsv.gz",
        "../board.toml",
        "../log.jsonl",
    ]


def _figures(rows: list[Row], **changes: Any) -> list[str]:
    board, columns = standings(rows), make_columns(spec(**changes))
    return [do_striptags(f.says) for f in make_figures(board, public_rows(board), columns)]


def test_a_chart_says_what_it_shows() -> None:
    rows = [row("0.200", "0.400", days=1), row("0.400", "0.500", days=2)]
    rows = [baseline("0.300", "0.400"), *rows]
    progress, scatter = _figures(rows)
    assert progress.endswith("0.400, by monoT5 over BM25 top 100 since 3 Sep 2025.")
    assert "Across 3 systems the median ratio of eval RR@10 to dev RR@10 is 0.750" in scatter
    assert "(dashed line; range 0.500–0.800)" in scatter


def _progress(rows: list[Row], *, bar: bool = True) -> str:
    board, columns = standings(rows), make_columns(spec())
    return do_striptags(make_figures(board, public_rows(board), columns, bar=bar)[0].says)


def test_a_chart_speaks_of_the_best_baseline_only_where_it_counts() -> None:
    rows = [row("0.3", days=1), row("0.4", days=2)]
    begins = "It begins with the first entry above the best baseline."
    assert _progress([baseline("0.2"), *rows]).endswith(begins)
    assert begins not in _progress([baseline("0.2"), *rows], bar=False)
    assert begins not in _progress(rows)
    assert _progress(rows).endswith("in 2 steps.")


def test_no_scatter_where_it_would_say_nothing() -> None:
    few = [row("0.4", "0.5", days=1), row("0.41", "0.5", days=2), row("0.42", days=3)]
    assert len(_figures(few)) == 1
    zero = [row("0.4", "0.5", days=1), row("0.0", "0.5", days=2), row("0.42", "0.5", days=3)]
    assert len(_figures(zero)) == 1
    only = spec().views[1:]
    assert len(_figures([row("0.4", "0.5", days=n) for n in range(4)], views=only)) == 1


def test_a_private_view_has_no_column() -> None:
    views = (*spec().views, View(name="reserve", set="eval", measure="RR@10", public=False))
    assert [c.key for c in make_columns(spec(views=views))] == ["eval", "dev"]


def test_where_teams_register_the_page_says_so_and_links_the_agreement() -> None:
    asked = Registration(required=True, agreement="legal/agree.md", closes=date(2026, 11, 30))
    page, link = _front(registration=asked), '<a href="../legal/agree.md">agree.md</a>'
    first, *rest = _commands(page)
    assert first == 'heldout register --team "NAME"'
    assert rest == _commands(_front())
    assert rest[1:] == ["heldout check ID", "heldout submit ID"]
    assert page.count(link) == 2  # beside the command, and among the downloads
    assert _rule("Registration", registration=asked) == (
        "A submission has to come from a registered team. To register is to agree to "
        "legal/agree.md. New teams register until 30 Nov 2026. A team's names are sealed for the "
        "organisers."
    )
    assert _rule("Registration") == ""
    assert "shows the agreement" not in _front(registration=Registration())
