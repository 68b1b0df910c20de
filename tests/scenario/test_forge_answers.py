"""A submission is answered where it was opened: once for each event, with the page's digits."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from lab import DAY, Lab, fresh_lab

from heldout.board.organiser.answer import answer
from heldout.board.policy.checks import Finding
from heldout.board.scores.session import Session
from heldout.board.store.arrivals import Arrival
from heldout.board.store.forges import Forge, Handle, Outcome
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.envelope.keys import Form
from heldout.ids import Digest

FINDINGS = (
    Finding(rule="description", severity="reject", evidence="the description is empty"),
    Finding(rule="near-others", severity="review", evidence="as a run of Hidden Team"),
)


@dataclass(frozen=True)
class Memory(Forge):
    """A forge that remembers what it was asked to say."""

    form: Form = "age"
    comments: dict[str, str] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)

    def fetch(self) -> tuple[Arrival, ...]:
        return ()

    def locate(self, source: str, name: str) -> Handle | None:
        return Handle("7") if source == f"branch submission/{name}" else None

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:
        assert handle == "7"
        known = event in self.comments
        self.comments.setdefault(event, text)
        return "known" if known else "done"

    def close(self, handle: Handle) -> Outcome:
        self.closed.add(handle)
        return "done"

    def label(self, handle: Handle, *names: str) -> Outcome:
        assert handle == "7"
        self.labels.update(names)
        return "done"


lab = fresh_lab


@contextmanager
def session(lab: Lab, *, now: str = DAY) -> Iterator[Session]:
    repository = Repository(lab.board)
    vault = Vault.open(lab.vault, board=repository.root)
    with vault.locked():
        yield Session(
            repository=repository, vault=vault, now=datetime.fromisoformat(now), by="somebody"
        )


def tell(lab: Lab, forge: Forge, name: str, findings: Sequence[Finding] = FINDINGS) -> Outcome:
    with session(lab) as sat:
        facts = {"eval": {"queries answered": 30}}
        return answer(sat, forge, name, findings=findings, facts=facts)


def test_each_event_is_told_once_with_the_digits_of_the_page(lab: Lab) -> None:
    forge = Memory()
    name = lab.receive("first")
    assert tell(lab, forge, name, ()) == "done"
    lab.organiser("publish", name, "--yes", "--why", "we know them").done()
    assert tell(lab, forge, name) == "done"
    assert tell(lab, forge, name) == "known"
    received, published = forge.comments.values()
    assert "was received" in received
    assert "**" not in received
    (row,) = lab.rows()
    shown = re.findall(r"\*\*([\d.]+)\*\* \(n = 30\)", published)
    assert shown == [f"{score:.3f}" for score in row["scores"].values()]
    assert "reject, `description`: `the description is empty`" in published
    assert "Hidden Team" not in published
    assert "we know them" not in published  # the reason stays sealed
    assert "`queries answered` 30" in published
    assert (forge.labels, forge.closed) == ({"heldout: published"}, {"7"})


def test_no_finding_is_told_under_an_embargo(lab: Lab) -> None:
    forge = Memory()
    assert tell(lab, forge, lab.enter("hidden", embargo="2027-03-01")) == "done"
    (text,) = forge.comments.values()
    assert "Findings" not in text
    assert "Lighthouse" not in text
    assert "**" in text


def test_a_question_and_a_refusal_give_their_words_and_no_score(lab: Lab) -> None:
    forge = Memory()
    name = lab.receive("first")
    lab.organiser("ask", name, "Which <b>group</b> @all?")
    assert tell(lab, forge, name, ()) == "done"
    assert forge.closed == set()
    lab.organiser("reject", name, "--why", "the third run")
    assert tell(lab, forge, name, ()) == "done"
    asked, rejected = forge.comments.values()
    assert "The organisers ask: `Which <b>group</b> @all?`" in asked
    assert "The organisers' reason: `the third run`" in rejected
    assert "**" not in asked + rejected
    assert forge.labels == {"heldout: rejected"}


def test_scores_that_wait_for_a_deadline_are_not_told_before_it(lab: Lab) -> None:
    file = lab.board / "board.toml"
    kind = 'closes = 2026-12-31\nkind = "one-shot"\nprimary = '
    file.write_text(file.read_text().replace("primary = ", kind, 1))
    lab.organiser("rebuild")
    forge = Memory()
    assert tell(lab, forge, lab.enter("first")) == "done"
    (text,) = forge.comments.values()
    assert "is published" in text
    assert "Scores" not in text
    assert not re.search(r"0\.\d", text)
