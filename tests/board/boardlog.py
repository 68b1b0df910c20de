"""Builds logs with the events and fields that the pipeline writes (log.md lists them)."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from heldout.board.log.events import Draft, Entry, EventSignature, event_message, format_entry, link
from heldout.board.log.history import History, read_history
from heldout.board.log.manifest import Manifest, identity_fields, team_key
from heldout.board.policy.checks import Case
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.errors import InputError, Problem
from heldout.ids import Digest, SubmissionId

START = datetime(2026, 11, 1, 12, tzinfo=UTC)

RULES = """\
schema = 1
name = "kb"
title = "Knowledge base"
task = "Find the passage that answers the question."
opens = 2026-11-01
closes = 2027-12-31
primary = "eval"
decimals = 3
types = ["full ranking", "reranking"]
envelope = "age"
recipients = ["age1example"]
contact = "organisers@example.org"
submit = "Open a pull request."

[runs]
order = "trec"
depth = 100
min_depth = 1
complete = true

[sets.dev]
queries = "queries/dev.tsv"
qrels = "qrels/dev.qrels"
candidates = "candidates/dev.tsv"

[sets.eval]
queries = "queries/eval.tsv"

[[views]]
name = "dev"
set = "dev"
measure = "RR@10"

[[views]]
name = "eval"
set = "eval"
measure = "RR@10"
public = true

[policy]
quota = 2
quota_days = 30
embargo_months = 9
id_days = 7
off = []
"""


def table(head: str, **keys: Any) -> str:
    """A table of a board.toml under its heading."""
    texts = {n: str(v) if isinstance(v, date) else json.dumps(v) for n, v in keys.items()}
    return "\n".join([head, *(f"{name} = {text}" for name, text in texts.items()), "", ""])


def ranking(name: str, query_set: str = "", measure: str = "RR@10", **keys: Any) -> str:
    """A view, of the set of its name if no other is named."""
    told = {"name": name, "set": query_set or name, "measure": measure}
    return table("[[views]]", **told, **keys)


def season(name: str, view: str, opens: date, closes: date | None = None) -> str:
    ends = {} if closes is None else {"closes": closes}
    return table("[[seasons]]", name=name, view=view, opens=opens, **ends)


def make_spec(**policy: Any) -> BoardSpec:
    """The board of `RULES`, with other numbers in its policy."""
    spec = parse_spec(RULES.encode())
    return msgspec.structs.replace(spec, policy=msgspec.structs.replace(spec.policy, **policy))


def find_problems(rules: str) -> tuple[Problem, ...]:
    """What is wrong with a board.toml."""
    with pytest.raises(InputError) as caught:
        parse_spec(rules.encode())
    return caught.value.problems


def make_manifest(team: str = "Lighthouse", **changes: Any) -> Manifest:
    """Metadata that nothing stands against."""
    manifest = Manifest(
        team=team,
        institution=f"Institute of {team}",
        description=f"BM25 by {team}",
        paper=f"https://example.org/papers/{team_key(team)}".replace(" ", "-"),
        code=f"https://example.org/code/{team_key(team)}".replace(" ", "-"),
        training_data="none",
        type="full ranking",
    )
    return msgspec.structs.replace(manifest, **changes)


PRIVATE = new_signing_key("ORGANISER")


@dataclass(slots=True)
class BoardLog:
    """A vault's log that grows; the clock stands still unless told."""

    now: datetime = START
    entries: list[Entry] = field(default_factory=list)
    private: bytes = PRIVATE
    """The organiser's signing key; none for a chain that nobody folds."""
    salts: Iterator[str] = field(default_factory=lambda: map(_salt, iter(range(10**9))))

    @property
    def history(self) -> History:
        return read_history(self.entries)

    @property
    def data(self) -> bytes:
        return b"".join(map(format_entry, self.entries))

    def add(
        self,
        kind: str,
        submission: str | None,
        public: Mapping[str, Any] | None = None,
        sealed: Mapping[str, Any] | None = None,
    ) -> Entry:
        draft = Draft(
            kind=kind, by="age1q8f", submission=submission, public=public or {}, sealed=sealed or {}
        )
        last = self.entries[-1] if self.entries else None
        new_salt, signer = (lambda: next(self.salts)), self.sign if self.private else None
        entry = link(draft, last, at=self.now, new_salt=new_salt, sign=signer)
        self.entries.append(entry)
        return entry

    def sign(self, digest: Digest) -> EventSignature:
        return EventSignature(
            key=public_key(self.private), value=sign(self.private, event_message(digest))
        )

    def wait(self, **span: float) -> "BoardLog":
        self.now += timedelta(**span)
        return self

    def open(self, rules: str = RULES) -> "BoardLog":
        labels = {"eval": hashlib.sha256(b"labels").hexdigest()}
        signers = {"signers": {"age1q8f": public_key(self.private)}} if self.private else {}
        self.add("opened-board", None, {"board.toml": rules, **signers}, {"labels": labels})
        return self

    def change_rules(self, rules: str) -> None:
        self.add("changed-rules", None, {"board.toml": rules})

    def mend_labels(self, rules: str = RULES) -> None:
        labels = {"eval": hashlib.sha256(b"repaired").hexdigest()}
        self.add("changed-rules", None, {"board.toml": rules, "why": "typo"}, {"labels": labels})

    def receive(self, name: str) -> None:
        files = {f"{name}.{end}": _hash(name + end) for end in ("tar.age", "key.age")}
        public = {"files": files, "fingerprint": _hash(name), "source": f"branch submission/{name}"}
        self.add("received", name, public)

    def review(self, name: str, manifest: Manifest | None = None) -> None:
        if manifest is None:
            self.add("reviewed", name)
            return
        sealed = {
            "identity": identity_fields(manifest),
            "type": manifest.type,
            "embargo_until": _iso(manifest.embargo_until),
            "revision": manifest.revision,
        }
        self.add("reviewed", name, sealed=sealed)

    def publish(
        self,
        name: str,
        manifest: Manifest,
        score: str,
        *,
        why: str = "",
        findings: Any = (),
        public: Mapping[str, Any] | None = None,
        sealed: Mapping[str, Any] | None = None,
    ) -> None:
        told = {
            "scores": {"dev": score, "eval": score},
            "queries": {"dev": 100, "eval": 90},
            "type": manifest.type,
            "embargo_until": _iso(manifest.embargo_until),
            "revision": manifest.revision,
        }
        kept = {"identity": identity_fields(manifest), "why": why, "findings": list(findings)}
        kept |= {"evidence": _evidence(name)}
        self.add("published", name, {**told, **(public or {})}, {**kept, **(sealed or {})})

    def submit(self, name: str, manifest: Manifest, score: str, **told: Any) -> None:
        """Received, reviewed and published in one moment."""
        self.receive(name)
        self.review(name, manifest)
        self.publish(name, manifest, score, **told)

    def seal(self, name: str, score: str) -> None:
        """The same, while nobody may know the score yet."""
        manifest = make_manifest(name)
        self.receive(name)
        self.review(name, manifest)
        public = {"type": manifest.type, "embargo_until": None, "revision": 1}
        scores = {"scores": {"dev": score, "eval": score}, "queries": {"dev": 100, "eval": 90}}
        sealed = {"identity": identity_fields(manifest), "why": "", "findings": []}
        self.add("published", name, public, {**scores, **sealed})

    def baseline(self, name: str, score: str, *, view: str = "eval") -> None:
        told = {"scores": {"dev": score, view: score}, "queries": {"dev": 100, view: 90}}
        public = {**told, "type": "baseline", "embargo_until": None}
        runs = {query_set: _hash(name + query_set) for query_set in ("dev", "eval")}
        identity = identity_fields(make_manifest("Us"))
        sealed = {"identity": identity, "runs": runs, "evidence": _evidence(name)}
        self.add("baseline", name, public, sealed)

    def update(self, name: str, manifest: Manifest, *, withdrawn: bool = False) -> None:
        files = {f"{name}-metadata.json.age": _hash(repr(manifest))}
        public = {"files": files, "fingerprint": _hash(repr(manifest) + name)}
        sealed = {"identity": identity_fields(manifest), "revision": manifest.revision}
        self.add("withdrawn" if withdrawn else "updated", name, public, sealed)

    def propose(self, name: str, manifest: Manifest) -> None:
        files = {f"{name}-metadata.json.age": _hash(repr(manifest))}
        public = {"files": files, "fingerprint": _hash(repr(manifest) + name), "source": "here"}
        sealed = {"identity": identity_fields(manifest), "revision": manifest.revision}
        self.add("proposed", name, public, sealed)

    def amend(self, name: str, manifest: Manifest) -> None:
        """What was proposed, approved."""
        self.propose(name, manifest)
        files = {f"{name}-metadata.json.age": _hash(repr(manifest))}
        identity = {"identity": identity_fields(manifest), "revision": manifest.revision}
        self.add("amended", name, {"files": files}, {**identity, "why": "", "findings": []})

    def decline(self, name: str) -> None:
        self.add("declined", name, {"why": "who are they?"})

    def reject(self, name: str) -> None:
        self.add("rejected", name, {"why": "quota"})

    def ask(self, name: str) -> None:
        self.add("asked", name, {"why": "Which collection?"})

    def show_score(self, name: str) -> None:
        self.add("score-shown", name)

    def correct(
        self,
        name: str,
        score: str,
        why: str = "labels repaired",
        *,
        public: Mapping[str, Any] | None = None,
        sealed: Mapping[str, Any] | None = None,
    ) -> None:
        told = {"scores": {"dev": score, "eval": score}, "queries": {"dev": 100, "eval": 89}}
        kept = {"evidence": _evidence(name), **(sealed or {})}
        self.add("corrected", name, {**told, "why": why, **(public or {})}, kept)

    def rekey(self, rules: str = RULES, labels: Any = None, **changes: Any) -> None:
        lists = {"added": ["age1new"], "removed": ["age1q8f"], "not_opened": []}
        told = {"old_keys": "kept", "grace_until": "2027-01-01", "sealed_again": {}}
        public = {"board.toml": rules, "why": "lost", **lists, **told, **changes}
        self.add("rekeyed", None, public, {"labels": labels} if labels else {})

    def close(self) -> None:
        vouched = {"open_runs": ["20261101-one"], "agreed": ["20261101-one"], "why": "a letter"}
        self.add("closed-board", None, vouched)

    def measure(self, *names: str, due: str = "2026-11-01", **figures: Any) -> None:
        """What was told of the ranking of some entries: ranges that say nothing, unless given."""
        n = len(names)
        every = {"low": [1] * n, "high": [n] * n, "level": 0.95, "flips": 10_000, "pairs": n}
        public: dict[str, Any] = {"view": "eval", "season": "", "due": due, "seed": 0}
        public |= {"entries": list(names), "left_out": {}}
        public["figures"] = {"queries": 89, **({"ranges": every} | figures)}
        self.add("measured", None, public, {"table": _hash("scores")})

    def name_finalists(self, *names: str, why: str = "") -> None:
        public = {"view": "final", "finalists": list(names), "why": why}
        self.add("named-finalists", None, public)

    def open_final(
        self, scores: Mapping[str, str], *, below: Iterable[str] = (), **changes: Any
    ) -> None:
        """The scores of a final, finalists in the order of receipt; fields may be others."""
        best = max(scores, key=lambda name: float(scores[name]))
        public = {
            "view": "final",
            "final_scores": dict(scores),
            "queries": {"final": 50},
            "best": best,
            "below": list(below),
            "winner": next(name for name in scores if name not in below),
            "luck": "0.0104" if len(scores) > 1 else "",
            "why": "",
        }
        evidence = {name: _hash(f"{name}final") for name in scores}
        self.add("opened-final", None, {**public, **changes}, {"evidence": evidence})

    def extend(self, name: str, until: date) -> None:
        self.add("extended", name, {"embargo_until": _iso(until), "why": "review takes longer"})


def _evidence(name: str) -> dict[str, str]:
    return {view: _hash(name + view) for view in ("dev", "eval")}


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _salt(number: int) -> str:
    return _hash(f"salt {number}")[:32]


def make_case(
    log: BoardLog, name: str = "20261101-a", team: str = "Lighthouse", **changes: Any
) -> Case:
    """What rules judge of a submission that comes now."""
    fields: dict[str, Any] = {
        "spec": make_spec(),
        "history": log.history,
        "id": SubmissionId(name),
        "received": log.now,
        "manifest": make_manifest(team),
        "problems": {},
    }
    return Case(**(fields | changes))
