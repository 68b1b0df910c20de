"""Payments as CSV, Prolific's files, links and completion codes."""

import csv
from io import StringIO
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.judging.campaign.settings import Payment, PaymentKind, format_payments, totals
from heldout.judging.platforms.links import (
    completion_address,
    personal_code,
    prolific_files,
    read_code,
    study_link,
)

ADA, BOB = "5f" * 12, "6e" * 12


def pay(
    number: int,
    *,
    who: str = ADA,
    kind: PaymentKind = "base",
    amount: int = 200,
    study: str = "study1",
    paid_at: str = "",
) -> Payment:
    return Payment(
        key=f"{number}-0-{amount}",
        assignment=number,
        worker=f"p{number}",
        platform_id=who,
        session_id=f"s{number}",
        study=study,
        kind=kind,
        amount=amount,
        currency="GBP",
        paid_at=paid_at,
    )


def test_sums_of_what_is_due_and_what_was_paid_are_apart() -> None:
    found = totals([pay(1), pay(2, kind="pro-rata", amount=77), pay(3, paid_at="2026-11-21")])
    assert (found.due, found.paid) == (277, 200)
    assert found.by_kind == {"base": 200, "pro-rata": 77, "bonus": 0}


def test_payments_read_back_as_they_were() -> None:
    data = format_payments([pay(1, amount=5), pay(2, kind="pro-rata", amount=77)])
    first, second = csv.DictReader(StringIO(data.decode(), newline=""))
    assert (first["amount"], second["amount"], second["kind"]) == ("0.05", "0.77", "pro-rata")
    assert (first["key"], first["platform_id"], first["paid_at"]) == ("1-0-5", ADA, "")


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+1", "-1", "\tA1", "\uff1dA1"])
def test_formula_injection_by_a_workers_id_is_defused(name: str) -> None:
    data = format_payments([pay(1, who=name)])
    (row,) = csv.DictReader(StringIO(data.decode(), newline=""))
    assert row["platform_id"] == f"'{name}"


def test_formula_injection_behind_a_semicolon_is_defused() -> None:
    data = format_payments([pay(1, who="a;=1+1"), pay(2, who="'=1"), pay(3, who="=1")])
    names = [row["platform_id"] for row in csv.DictReader(StringIO(data.decode(), newline=""))]
    assert names == ["a;'=1+1", "''=1", "'=1"]


def test_prolific_bonuses_are_one_line_a_participant_and_never_of_what_was_paid() -> None:
    due = [
        pay(1),
        pay(2, who=BOB, kind="pro-rata", amount=77),
        pay(3, who=BOB, kind="bonus", amount=5),
        pay(4, who=BOB, kind="pro-rata", amount=100, paid_at="2026-11-21T12:00:00.000Z"),
    ]
    (files,), left_out = prolific_files(due)
    assert files.approve == f"{ADA}\n".encode()
    assert files.returns == f"{BOB}\n".encode()
    assert files.bonuses == f"{BOB},0.82\n".encode()
    assert (files.bonus, left_out) == (82, ())


def test_the_second_task_of_a_participant_is_a_bonus_as_a_study_approves_once() -> None:
    (files,), left_out = prolific_files([pay(1), pay(2, amount=250), pay(3, who=BOB), pay(4)])
    assert files.approve == f"{ADA}\n{BOB}\n".encode()
    assert files.bonuses == f"{ADA},4.50\n".encode()
    assert (files.base, files.bonus, left_out) == (400, 450, ())


def test_who_was_approved_and_paid_before_is_neither_approved_again_nor_asked_to_return() -> None:
    due = [pay(1, paid_at="2026-11-21T12:00:00.000Z"), pay(2), pay(3, kind="pro-rata", amount=50)]
    (files,), _ = prolific_files(due)
    assert (files.approve, files.returns) == (b"", b"")
    assert files.bonuses == f"{ADA},2.50\n".encode()


KINDS: tuple[PaymentKind, ...] = ("base", "pro-rata", "bonus")


@given(
    st.lists(
        st.builds(
            pay,
            st.integers(1, 99),
            who=st.sampled_from([ADA, BOB, "7d" * 12, "", "=1", ADA.upper()]),
            kind=st.sampled_from(KINDS),
            amount=st.integers(1, 10**6),
            study=st.sampled_from(["study1", "study2", "../x"]),
            paid_at=st.sampled_from(["", "", "2026-11-21T12:00:00.000Z"]),
        )
    )
)
def test_what_prolifics_files_pay_and_what_is_left_out_is_what_is_due(due: list[Payment]) -> None:
    studies, left_out = prolific_files(due)
    rest = totals(left_out).due
    for files in studies:
        lines = [line.partition(",") for line in files.bonuses.decode().splitlines()]
        assert sum(round(float(amount) * 100) for _, _, amount in lines) == files.bonus
        names = files.approve.decode().split()
        assert len(set(names)) == len(names)
        rewards = [one for one in due if one.study == files.study and one.kind == "base"]
        first = {one.platform_id: one.amount for one in rewards[::-1] if not one.paid_at}
        assert sum(first[name] for name in names) == files.base
        assert not set(names) & {one.platform_id for one in rewards if one.paid_at}
    assert rest + sum(one.base + one.bonus for one in studies) == totals(due).due


def test_each_study_has_files_of_its_own() -> None:
    files, _ = prolific_files([pay(1), pay(2, study="study2", who=BOB)])
    assert [(one.study, one.approve) for one in files] == [
        ("study1", f"{ADA}\n".encode()),
        ("study2", f"{BOB}\n".encode()),
    ]


@pytest.mark.parametrize(
    "who", ["", "=cmd", f"{ADA},9.99", f"{ADA}\n{BOB}", ADA.upper(), ADA + "0"]
)
def test_injection_by_a_forged_participant_reaches_no_file(who: str) -> None:
    files, left_out = prolific_files([pay(1), pay(2, who=who, kind="pro-rata")])
    assert [one.bonuses for one in files] == [b""]
    assert [one.assignment for one in left_out] == [2]


def test_injection_by_a_forged_study_reaches_no_file_name() -> None:
    files, left_out = prolific_files([pay(1, study="../../etc")])
    assert (files, len(left_out)) == ((), 1)


def test_a_completion_code_goes_back_to_prolific() -> None:
    parts = urlsplit(completion_address("C1A2B3"))
    assert (parts.scheme, parts.query) == ("https", "cc=C1A2B3")


@given(st.binary(min_size=32, max_size=32), st.integers(0, 10**9))
def test_a_personal_code_names_its_assignment_however_it_is_typed(key: bytes, number: int) -> None:
    code = personal_code(key, number)
    assert read_code(key, code) == number
    typed = code.lower().replace("0", "o").replace("1", "l").replace("-", " ")
    assert read_code(key, f" {typed} ") == number


@given(
    st.integers(0, 10**6), st.integers(0, 8), st.sampled_from("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
)
def test_a_code_with_another_letter_is_nobodys(number: int, place: int, letter: str) -> None:
    key = b"k" * 32
    code = personal_code(key, number).replace("-", "")
    place = len(code) - 1 - place
    if place < 0 or code[place] == letter:
        return
    assert read_code(key, code[:place] + letter + code[place + 1 :]) is None


@pytest.mark.parametrize("text", ["", "-", "12345678", "U" * 9, "é" * 9, "0" * 41, "<b>"])
def test_what_is_no_code_is_nobodys(text: str) -> None:
    assert read_code(b"k" * 32, text) is None


def test_a_code_of_another_campaign_is_nobodys() -> None:
    assert read_code(b"k" * 32, personal_code(b"x" * 32, 7)) is None


def test_links_carry_what_each_platform_puts_in() -> None:
    assert study_link("https://a.example/", "c", "link") == "https://a.example/j/c"
    assert study_link("https://a.example", "c", "mturk") == "https://a.example/j/c"
    assert "PROLIFIC_PID={{%PROLIFIC_PID%}}" in study_link("https://a.example", "c", "prolific")
