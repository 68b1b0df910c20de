"""Mail: what it says, what it never says, and a server that takes it."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from team_stage import ONE, MakePlace, files_of, make_place, send

from heldout.board.log.submission import Submission
from heldout.errors import InputError, SetupError, StoreError
from heldout.intake.mail import Mailer, check_mail_address, make_message, read_mailer
from ports import free_port

__all__ = ["make_place"]

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SENDER = "board@example.org"


class Box:
    """Keeps what came."""

    def __init__(self) -> None:
        self.came: list[tuple[list[str], bytes]] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        self.came.append((envelope.rcpt_tos, envelope.content))
        return "250 taken"


@pytest.fixture
def box() -> Iterator[tuple[Box, Mailer]]:
    found = Box()
    controller = Controller(found, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield (
            found,
            Mailer(
                host="127.0.0.1",
                port=controller.port,
                tls=False,
                user="",
                password="",
                sender=SENDER,
            ),
        )
    finally:
        controller.stop()


def test_a_mail_arrives_as_it_was_written(box: tuple[Box, Mailer]) -> None:
    found, mailer = box
    link = "https://board.example/join/abc"
    mailer.send(make_message("ada@example.org", "Take part", link, sender=SENDER, now=NOW))
    ((to, data),) = found.came
    message = message_from_bytes(data, policy=default)
    assert to == ["ada@example.org"]
    assert message["Subject"] == "Take part"
    assert message["Auto-Submitted"] == "auto-generated"
    assert link in message.get_content()


@pytest.mark.parametrize("name", ["x\r\nBcc: eve@example.org", "x\nBcc: eve@example.org", "\u2028"])
def test_a_name_starts_no_header(name: str) -> None:
    data = make_message("ada@example.org", name, name, sender=SENDER, now=NOW).as_bytes()
    headers = data.partition(b"\r\n\r\n")[0]
    assert b"\nBcc" not in headers
    assert message_from_bytes(data, policy=default)["Bcc"] is None


@pytest.mark.parametrize(
    "text",
    [
        "ada",
        "ada@here",
        "a@b.c\r\nBcc: d@e.f",
        "a@b.c, d@e.f",
        "<a@b.c>",
        "x" * 300 + "@b.c",
        "@b.c",
    ],
)
def test_what_is_no_address_gets_no_mail(text: str) -> None:
    with pytest.raises(InputError, match="team-mail"):
        check_mail_address(text)
    with pytest.raises(InputError, match="team-mail"):
        make_message(text, "", sender=SENDER, now=NOW)


def test_a_server_that_is_gone_is_a_reason_without_a_password() -> None:
    gone = Mailer(
        host="127.0.0.1",
        port=1,
        tls=False,
        user="u",
        password="hush",  # noqa: S106 - a test's
        sender=SENDER,
    )
    with pytest.raises(StoreError, match="did not take a mail") as refused:
        gone.send(make_message("a@b.org", "", sender=SENDER, now=NOW))
    assert "hush" not in str(refused.value)


def test_the_mail_server_comes_from_the_environment() -> None:
    assert read_mailer({}) is None
    told = {"HELDOUT_SMTP": "smtps://u%40x:p@mail.example", "HELDOUT_MAIL_FROM": SENDER}
    found = read_mailer(told)
    assert found is not None
    assert (found.host, found.port, found.tls, found.user) == ("mail.example", 465, True, "u@x")
    for wrong in (
        {"HELDOUT_SMTP": "smtp://u:hush@mail.example"},
        {**told, "HELDOUT_SMTP": "http://u:hush@mail.example"},
        {**told, "HELDOUT_SMTP": "smtp://u:hush@"},
        {**told, "HELDOUT_SMTP": "smtp://u:hush@h:x"},
    ):
        with pytest.raises(SetupError, match="HELDOUT_SMTP") as refused:
            read_mailer(wrong)
        assert "hush" not in str(refused.value)


def test_a_team_is_told_what_became_of_its_submission_and_no_score(
    box: tuple[Box, Mailer], make_place: MakePlace
) -> None:
    found, mailer = box
    place = make_place(mailer=mailer)
    team, token = place.join(mail="ada@example.org")
    place.join("Another team", mail="eve@example.org")
    assert send(place.as_team(token), files_of()).is_success
    worker = place.intake.worker

    def work() -> list[str]:
        worker.work()
        told = [message_from_bytes(data, policy=default) for _, data in found.came]
        assert {one["To"] for one in told} == {"ada@example.org"}
        assert not any(token in one.get_content() for one in told)
        assert not any("0.987" in one.as_string() for one in told)
        return [one["Subject"] for one in told]

    board = place.intake.board.view().spec.name
    assert work() == [f"{board}: {ONE} is here, and waits for the organiser"]
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files_of().items())}
    for status, words in (("received", "received"), ("published", "published")):
        entry = Submission(
            id=ONE,
            received=NOW,
            files=digests,
            status=status,  # type: ignore[arg-type]  # one of them
            scores={"eval": "0.987"},
            events=((NOW, status, "0" * 64),),
        )
        view = place.intake.board.view()
        history = replace(view.history, submissions={ONE: entry})
        place.intake.board._view = replace(view, history=history)
        assert work()[-1] == f"{board}: {ONE} is {words}"
    assert len(work()) == 3  # each is told once
    assert team.mail == "ada@example.org"
