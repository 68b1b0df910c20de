"""A lab whose board asks for registration, and tools that a hostile team could have."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from lab import DAY, NEXT, TEAM, Lab, Team, build_once, git

from heldout.board.log import registration
from heldout.board.log.manifest import SubmissionSignature, split_signature
from heldout.board.organiser.inbox import receive_registrations
from heldout.board.participant.draft import read_metadata
from heldout.board.participant.send import pack, submit
from heldout.board.scores.session import Session
from heldout.board.store.arrivals import find_registrations_in_folder
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import open_metadata, seal_message, seal_metadata
from heldout.envelope.keys import public_key, sign
from heldout.ids import SubmissionId, digest_bytes

LATER = "2026-11-04T10:00:00Z"
Change = Callable[[bytes, SubmissionSignature], bytes]
AGREEMENT = "The data are for research.\nNobody passes them on.\n"
RULES = '\n[registration]\nrequired = true\nagreement = "agreement.md"\ncloses = 2026-11-30\n'


def asking_lab(folder: Path) -> Lab:
    """A copy of a lab whose board asks for registration, in an empty folder."""
    return _asking().copy(folder)


def admitted_lab(folder: Path) -> Lab:
    """The same, with one team that is registered and knows it."""
    return _admitted().copy(folder)


def ask_for_registration(lab: Lab, rules: str = RULES, *, now: str = DAY) -> None:
    (lab.board / "agreement.md").write_text(AGREEMENT)
    lab.rule(now=now, more=rules)


def register(
    lab: Lab,
    *,
    now: str = DAY,
    clone: Path | None = None,
    team: Team = TEAM,
    to: Path | None = None,
) -> str:
    """Register with consent, on a branch or into a folder; returns the handle."""
    args = ("--team", team["team"], "--institution", team["institution"])
    contact = ("--contact", team.get("contact", "ada@lighthouse.example"))
    way = () if to is None else ("--to", to)
    answer = lab.participant(
        "register", *args, *contact, *way, "--agree", "--json", now=now, clone=clone
    ).done()
    return str(answer.json["team"])


def admit(lab: Lab, *, now: str = DAY, clone: Path | None = None, **named: Any) -> str:
    """Register, be taken in, and know it."""
    handle = register(lab, now=now, clone=clone, **named)
    assert lab.take_in(now=now)["received"][-1]["kind"] == "registered"
    lab.share(clone)
    return handle


def findings(lab: Lab, submission: str, *, now: str = NEXT) -> list[str]:
    """What the rule says of a submission that the organisers took in."""
    return team_findings(lab, submission, now=now)[submission]


def team_findings(lab: Lab, *submissions: str, now: str) -> dict[str, list[str]]:
    """The same of several."""
    answer = lab.organiser("review", *submissions, "--json", now=now)
    found: dict[str, list[str]] = {}
    for review in answer.json["reviews"]:
        said = [f for f in review["findings"] if f["rule"] == "team-registered"]
        assert all(f["severity"] == "reject" for f in said)
        found[review["id"]] = [f["evidence"] for f in said]
    assert answer.code == 1 or not any(found.values()), answer
    return found


def deliver(lab: Lab, data: bytes, handle: str, *, now: str = NEXT) -> Mapping[str, Any]:
    """Hand a registration in through a folder; what became of it."""
    folder = lab.root / "letters"
    folder.mkdir(exist_ok=True)
    file = folder / f"{handle}.json"
    file.write_bytes(data)
    with sitting(lab, now=now) as session:
        (receipt,) = receive_registrations(session, find_registrations_in_folder(folder))
    file.unlink()
    problems = [asdict(problem) for problem in receipt.problems]
    return {"kind": receipt.kind, "notes": receipt.notes, "problems": problems}


@contextmanager
def sitting(lab: Lab, *, now: str) -> Iterator[Session]:
    """The organiser's session, without the commands."""
    repository = Repository(lab.board)
    vault = Vault.open(lab.vault, board=repository.root)
    with vault.locked():
        moment = datetime.fromisoformat(now)
        yield Session(repository=repository, vault=vault, now=moment, by="somebody")


def refusal(receipt: Mapping[str, Any]) -> list[str]:
    assert receipt["kind"] == "refused", receipt
    return [problem["code"] for problem in receipt["problems"]]


def own_file(lab: Lab, clone: Path | None = None) -> dict[str, Any]:
    note = (clone or lab.clone) / ".git/heldout" / "team" / "registration.json"
    found: dict[str, Any] = json.loads(note.read_text())
    return found


def make_registration(
    lab: Lab,
    private: bytes,
    changed: Mapping[str, str] | None = None,
    *,
    team: str = "Harbour Ranking",
) -> bytes:
    """A registration by a tool of one's own; fields of the statement may be others."""
    repository = Repository(lab.clone)
    spec, log = repository.spec(), repository.log()
    registrant = registration.Registrant(team=team, institution="", contact="", salt="0b" * 16)
    statement = registration.Statement(
        board=str(log[0].hash),
        key=public_key(private),
        agreement=str(digest_bytes(AGREEMENT.encode())),
        at=NEXT,
        private=str(registration.registrant_digest(registrant)),
    )
    changes: dict[str, Any] = dict(changed or {})
    text = msgspec.json.encode(msgspec.structs.replace(statement, **changes)).decode()
    letter = seal_message("age", msgspec.json.encode(registrant), spec.recipients)
    return msgspec.json.encode(
        registration.RegistrationFile(
            statement=text,
            signature=sign(private, registration.registration_message(text)),
            key=letter.key,
            registrant=letter.words,
        )
    )


def resign(lab: Lab, submission: str, change: Change) -> None:
    """Seal a draft with another signature than ours, and push it."""
    repository, name = Repository(lab.clone), SubmissionId(submission)
    packed = pack(repository, name, read_metadata(repository, name))
    file = repository.packed_file(f"{submission}-metadata.json.age")
    key = (lab.clone / ".git/heldout" / "keys" / submission).read_bytes()
    metadata, signature = split_signature(open_metadata("age", file.read_bytes(), key=key))
    assert signature is not None
    file.write_whole(seal_metadata("age", change(metadata, signature), key=key))
    moment = datetime.fromisoformat(DAY)
    branch = submit(repository, name, packed, embargoed=True, now=moment)
    git(lab.clone, "push", "-q", "origin", f"+{branch}:{branch}")


def _ask_and_admit(lab: Lab) -> None:
    ask_for_registration(lab)
    admit(lab)


_asking, _admitted = build_once(ask_for_registration), build_once(_ask_and_admit)
