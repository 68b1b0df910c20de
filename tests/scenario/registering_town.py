"""A town whose board asks for registration, and tools that a hostile team could have."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from town import TEAM, Town, git

from heldout.board.registration import (
    Registrant,
    RegistrationFile,
    Statement,
    SubmissionSignature,
    registrant_digest,
    registration_message,
    split_signature,
)
from heldout.envelope.bundle import open_metadata, seal_metadata
from heldout.envelope.letter import seal_letter
from heldout.envelope.signing import public_key, sign
from heldout.ids import SubmissionId, digest_bytes
from heldout.pipeline.draft import read_metadata
from heldout.pipeline.send import pack, submit
from heldout.store.repository import Repository

DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
LATER = "2026-11-04T10:00:00Z"
Change = Callable[[bytes, SubmissionSignature], bytes]
AGREEMENT = "The data are for research.\nNobody passes them on.\n"
RULES = '\n[registration]\nrequired = true\nagreement = "agreement.md"\ncloses = 2026-11-30\n'


def ask_for_registration(town: Town, rules: str = RULES) -> None:
    (town.board / "agreement.md").write_text(AGREEMENT)
    with (town.board / "board.toml").open("a") as file:
        file.write(rules)
    assert town.organiser("rebuild", now=DAY).code == 0
    publish_board(town)


def publish_board(town: Town) -> None:
    """The public side reaches everybody."""
    town.push()
    town.pull()


def register(
    town: Town, *, now: str = DAY, clone: Path | None = None, team: Mapping[str, Any] = TEAM
) -> str:
    """Register with consent; returns the handle."""
    told = ("--team", team["team"], "--institution", team["institution"])
    contact = ("--contact", "ada@lighthouse.example")
    answer = town.participant(
        "register", *told, *contact, "--agree", "--json", now=now, clone=clone
    )
    assert answer.code == 0, answer
    return str(answer.json["team"])


def admit(town: Town, *, now: str = DAY, clone: Path | None = None, **named: Any) -> str:
    """Register, be taken in, and know it."""
    handle = register(town, now=now, clone=clone, **named)
    assert town.take_in(now=now)["received"][-1]["kind"] == "registered"
    town.push()
    town.pull(clone)
    return handle


def findings(town: Town, submission: str, *, now: str = NEXT) -> list[str]:
    """What the rule says of a submission that the organisers took in."""
    answer = town.organiser("review", submission, "--json", now=now)
    (found,) = answer.json["reviews"]
    told = [f for f in found["findings"] if f["rule"] == "team-registered"]
    assert answer.code == 1 or not told, answer
    assert all(f["severity"] == "reject" for f in told)
    return [f["evidence"] for f in told]


def deliver(town: Town, data: bytes, handle: str, *, now: str = NEXT) -> Mapping[str, Any]:
    """Hand a registration in through a folder; what became of it."""
    folder = town.root / "letters"
    folder.mkdir(exist_ok=True)
    (folder / f"{handle}.json").write_bytes(data)
    answer = town.organiser("inbox", "--no-fetch", "--from", folder, "--json", now=now)
    assert answer.code == 0, answer
    (folder / f"{handle}.json").unlink()
    found = [r for r in answer.json["received"] if r["source"] == "a folder"]
    return found[0] if found else {"kind": "known", "problems": []}


def refusal(receipt: Mapping[str, Any]) -> list[str]:
    assert receipt["kind"] == "refused", receipt
    return [problem["code"] for problem in receipt["problems"]]


def own_file(town: Town, clone: Path | None = None) -> dict[str, Any]:
    note = (clone or town.clone) / ".heldout" / "team" / "registration.json"
    found: dict[str, Any] = json.loads(note.read_text())
    return found


def make_registration(
    town: Town,
    private: bytes,
    changed: Mapping[str, str] | None = None,
    *,
    team: str = "Harbour Ranking",
) -> bytes:
    """A registration by a tool of one's own; fields of the statement may be others."""
    repository = Repository(town.clone)
    spec, log = repository.spec(), repository.log()
    registrant = Registrant(team=team, institution="", contact="", salt="0b" * 16)
    statement = Statement(
        board=str(log[0].hash),
        key=public_key(private),
        agreement=str(digest_bytes(AGREEMENT.encode())),
        at=NEXT,
        private=str(registrant_digest(registrant)),
    )
    changes: dict[str, Any] = dict(changed or {})
    text = msgspec.json.encode(msgspec.structs.replace(statement, **changes)).decode()
    letter = seal_letter("age", msgspec.json.encode(registrant), spec.recipients)
    return msgspec.json.encode(
        RegistrationFile(
            statement=text,
            signature=sign(private, registration_message(text)),
            key=letter.key,
            registrant=letter.words,
        )
    )


def resign(town: Town, submission: str, change: Change) -> None:
    """Seal a draft with another signature than ours, and push it."""
    repository, name = Repository(town.clone), SubmissionId(submission)
    packed = pack(repository, name, read_metadata(repository, name))
    file = repository.packed_file(f"{submission}-metadata.json.age")
    key = (town.clone / ".heldout" / "keys" / submission).read_bytes()
    metadata, signature = split_signature(open_metadata("age", file.read_bytes(), key=key))
    assert signature is not None
    file.write_bytes(seal_metadata("age", change(metadata, signature), key=key))
    moment = datetime.fromisoformat(DAY)
    branch = submit(repository, name, packed, embargoed=True, now=moment)
    git(town.clone, "push", "-q", "origin", f"+{branch}:{branch}")
